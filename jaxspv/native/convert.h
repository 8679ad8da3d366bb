// Entries compressed along one axis, compressed along the other: stable counting sorts.
#pragma once
#include <algorithm>
#include <memory>

#include "checked.h"

namespace jaxspv {

// Entries by the other axis: where its rows begin (columns + 1), the row of each entry and of[e] of
// slot e, its value or with `Numbers` the slot. Padding keeps its slot and has row a.rows.
template <class Of, class T>
void transpose(const Matrix& a, int64_t nse, Id columns, Id* ptr, Id* row, const Of& of, T* moved) {
  const Id m = a.ptr[a.rows];
  std::fill(ptr, ptr + columns + 1, 0);
  for (Id e = 0; e < m; ++e) ++ptr[a.idx[e] + 1];
  for (Id j = 0; j < columns; ++j) ptr[j + 1] += ptr[j];
  over_entries(a, Id(0), a.rows, Numbers(), [=](Id e, Id i) JAXSPV_INLINE {
    const Id at = ptr[a.idx[e]]++;
    row[at] = i;
    moved[at] = of[e];
  });
  for (Id j = columns; j > 0; --j) ptr[j] = ptr[j - 1];
  ptr[0] = 0;
  for (int64_t e = m; e < nse; ++e) row[e] = a.rows, moved[e] = of[Id(e)];
}

template <class T>
struct Transposed {
  std::unique_ptr<Id[]> ptr, row;
  std::unique_ptr<T[]> values;
  Matrix matrix;
  template <class Of>
  Transposed(const Matrix& a, const Of& given)
      : ptr(buffer<Id>(int64_t(a.columns) + 1)), row(buffer<Id>(a.slots)), values(buffer<T>(a.slots)),
        matrix{a.columns, a.rows, a.slots, ptr.get(), row.get()} {
    transpose(a, a.slots, a.columns, ptr.get(), row.get(), given, values.get());
  }
};

}  // namespace jaxspv
