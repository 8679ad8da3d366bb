// Sparse matrix times sparse vector: y[i] = add over the entries j of x of mul(A[i, j], x[j]).
#pragma once
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// The entries of x and the rows that y may have; `allowed` null: all.
template <class T>
struct SparseOperand {
  const Id* idx;
  const T* values;
  Id count;
  const uint8_t* allowed;
};

// By the columns of A, given as the rows of `a`: products are added to a dense array. Returns the
// entries of y, in order; those beyond `nse` are counted alone. O(products + extent), no more.
template <class Add, class Mul, class T>
Id spmspv_columns(const Matrix& a, const T* values, const SparseOperand<T>& x, Id nse, Id* idx, T* y) {
  using Sum = typename Add::template Sum<T>;
  auto sum = buffer<Sum>(a.columns);
  std::vector<uint64_t> seen((size_t(a.columns) + 63) >> 6, 0);
  for (Id k = 0; k < x.count; ++k) {
    if (uint32_t(x.idx[k]) >= uint32_t(a.rows)) continue;
    for (Id e = a.ptr[x.idx[k]], end = a.ptr[x.idx[k] + 1]; e < end; ++e) {
      const Id i = a.idx[e];
      if (x.allowed && !x.allowed[i]) continue;
      const Sum term = Sum(Mul::template apply<T>(values[e], x.values[k]));
      sum[i] = test(seen.data(), i) ? Add::template apply<Sum>(sum[i], term) : term;
      set(seen.data(), i);
    }
  }
  Id count = 0;
  for (size_t w = 0; w < seen.size(); ++w)
    for (uint64_t left = seen[w]; left; left &= left - 1, ++count)
      if (count < nse) {
        const Id i = idx[count] = Id(w << 6) + Id(__builtin_ctzll(left));
        y[count] = T(sum[i]);
      }
  return count;
}

// By the rows of A: each that is allowed looks its columns up in x. O(their entries + extents).
template <class Add, class Mul, class T>
Id spmspv_rows(const Matrix& a, const T* values, const SparseOperand<T>& x, Id nse, Id* idx, T* y) {
  std::vector<Id> place(a.columns, -1);
  for (Id k = 0; k < x.count; ++k)
    if (uint32_t(x.idx[k]) < uint32_t(a.columns)) place[x.idx[k]] = k;
  Id count = 0;
  for (Id i = 0; i < a.rows; ++i) {
    if (x.allowed && !x.allowed[i]) continue;
    typename Add::template Fold<T> fold;
    bool any = false;
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      const Id k = place[a.idx[e]];
      if (k < 0) continue;
      any = true;
      fold.add(Mul::template apply<T>(values[e], x.values[k]));
    }
    if (any && count < nse) idx[count] = i, y[count] = fold.result();
    count += any;
  }
  return count;
}

// A x in a capacity; the entries of y, of which some may not fit. `by_columns`: A^T is given.
template <class Add, class Mul, class T>
Id spmspv(Unchecked given, Entries<const T> values, List<const Id> at, List<const T> of, Id count,
          List<const uint8_t> allowed, bool by_columns, Option rows, Option columns, List<Id> idx, List<T> y) {
  const Matrix a = checked(given, by_columns ? rows : columns);
  expect(a.rows == (by_columns ? columns : rows) && at.size == of.size && idx.size == y.size && idx.size < 0x7fffffff &&
         (!allowed.size || allowed.size == rows), "an array has another length than is expected");
  const SparseOperand<T> x{at, of, Id(std::min<int64_t>(at.size, count)), allowed.size ? allowed.data : nullptr};
  const auto run = by_columns ? spmspv_columns<Add, Mul, T> : spmspv_rows<Add, Mul, T>;
  const Id found = run(a, values, x, Id(idx.size), idx, y), kept = Id(std::min<int64_t>(found, idx.size));
  std::fill(idx + kept, idx.end(), Id(rows));
  std::fill(y + kept, y.end(), T(0));
  return found;
}

}  // namespace jaxspv
