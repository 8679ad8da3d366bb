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

// The same of a matrix with `ptr.size - 1` columns, with the slots.
inline void slots_by_column(Unchecked given, List<Id> ptr, Entries<Id> row, Entries<Id> slot) {
  const Matrix a = checked(given, ptr.size - 1);
  transpose(a, a.slots, a.columns, ptr, row, Numbers(), slot.data);
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

// The row of each slot, the number of rows for padding.
inline void expand(List<const Id> ptr, List<Id> row) {
  expect(ptr.size > 0 && std::max(ptr.size, row.size) <= 0x7fffffff, "indptr is empty, or an extent exceeds int32");
  const Matrix a{Id(ptr.size - 1), 0, Id(row.size), ptr, nullptr};
  std::fill(row.begin(), row.end(), a.rows);
  for (Id i = 0; i < a.rows; ++i)
    if (a.begin(i) < a.end(i)) std::fill(row + a.begin(i), row + a.end(i), i);
}

// How many slots lie before each row, of the row of each slot, ascending.
inline void compress(List<const Id> row, List<Id> ptr) {
  const int64_t extent = ptr.size - 1;
  expect(extent >= 0 && row.size <= 0x7fffffff, "an extent exceeds int32");
  int64_t i = 0;  // the next row to begin
  for (int64_t e = 0; e < row.size && i <= extent; ++e)
    for (; i <= std::min<int64_t>(row[e], extent); ++i) ptr[i] = Id(e);
  std::fill(ptr + i, ptr.end(), Id(row.size));
}

}  // namespace jaxspv
