// Entries compressed along one axis, compressed along the other: stable counting sorts.
#pragma once
#include <algorithm>
#include <vector>

#include "checked.h"

namespace jaxspv {

// Entries by the other axis: where its rows begin (columns + 1), the row and the slot of each entry.
// Padding keeps its slot and has row a.rows.
inline void transpose(const Matrix& a, int64_t nse, Id columns, Id* ptr, Id* row, Id* slot) {
  const Id m = a.ptr[a.rows];
  std::fill(ptr, ptr + columns + 1, 0);
  for (Id e = 0; e < m; ++e) ++ptr[a.idx[e] + 1];
  for (Id j = 0; j < columns; ++j) ptr[j + 1] += ptr[j];
  for (Id i = 0; i < a.rows; ++i)
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      const Id at = ptr[a.idx[e]]++;
      row[at] = i;
      slot[at] = e;
    }
  for (Id j = columns; j > 0; --j) ptr[j] = ptr[j - 1];
  ptr[0] = 0;
  for (int64_t e = m; e < nse; ++e) row[e] = a.rows, slot[e] = Id(e);
}

}  // namespace jaxspv
