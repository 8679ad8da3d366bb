// Sparse matrix times dense vector over a semiring: y[i] = add over j of mul(A[i, j], x[j]).
#pragma once
#include "csr.h"
#include "semirings.h"

namespace jaxspv {

// Rows [first, last), whose bounds and indices are clamped to the arrays or known to be in range.
template <class Add, class Mul, bool kClamped, class T, class I>
void spmv_rows(const Csr<I>& a, const T* values, const T* x, T* y, I first, I last) {
  I next = kClamped ? a.begin(first) : a.ptr[first];
  for (I i = first; i < last; ++i) {
    typename Add::template Fold<T> fold;
    I e = next;
    next = kClamped ? a.end(i) : a.ptr[i + 1];
    for (; e < next; ++e) fold.add(Mul::template apply<T>(values[e], x[kClamped ? a.column(e) : a.idx[e]]));
    y[i] = fold.result();
  }
}

// By rows: each is added up from its first entry to its last, so threads change nothing. Sums of
// float32 are kept in double. One load of x is what the loop waits for: sums in several parts and
// vector gathers are not faster. Only blocks of rows with anything out of range are clamped.
template <class Add, class Mul, class T, class I, class Team>
void spmv(Team& team, const Csr<I>& a, const T* values, const T* x, T* y) {
  constexpr I kBlock = 256;
  over_rows(team, a, [&](I first, I last, int) {
    for (I i = first, stop; i < last; i = stop) {
      stop = i + std::min(kBlock, I(last - i));
      if (a.ascends(i, stop) && a.all_columns(a.ptr[i], a.ptr[stop]))
        spmv_rows<Add, Mul, false>(a, values, x, y, i, stop);
      else
        spmv_rows<Add, Mul, true>(a, values, x, y, i, stop);
    }
  });
}

// The transposed product, y[j] = add over i of mul(A[i, j], x[i]), on one thread: the entries are
// read in the order of memory, y is written at random.
template <class Add, class Mul, class T, class I>
void spmv_transposed(const Csr<I>& a, const T* values, const T* x, T* y) {
  using Sum = typename Add::template Sum<T>;
  std::unique_ptr<Sum[]> own;
  Sum* sums;
  if constexpr (std::is_same_v<Sum, T>) {
    sums = y;
  } else {
    own = buffer<Sum>(a.columns);
    sums = own.get();
  }
  std::fill(sums, sums + a.columns, Sum(Add::template identity<T>()));
  for (I i = 0; i < a.rows; ++i) {
    const T xi = x[i];
    for (I e = a.begin(i), end = a.end(i); e < end; ++e) {
      const I j = a.idx[e];
      if (a.holds(j)) sums[j] = Add::template apply<Sum>(sums[j], Mul::template apply<T>(values[e], xi));
    }
  }
  if constexpr (!std::is_same_v<Sum, T>)
    for (I j = 0; j < a.columns; ++j) y[j] = T(sums[j]);
}

}  // namespace jaxspv
