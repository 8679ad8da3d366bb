// Sparse matrix times dense vector over a semiring: y[i] = add over j of mul(A[i, j], x[j]).
#pragma once
#include "csr.h"
#include "semirings.h"

namespace jaxspv {

// Whether every index of the entries [first, last) is a column. One pass, vectorised.
template <class I>
bool all_columns(const Csr<I>& a, I first, I last) {
  bool bad = false;
  for (I e = first; e < last; ++e) bad |= !a.holds(a.idx[e]);
  return !bad;
}

// Rows [first, last); `column(e)` is the column of an entry.
template <class Add, class Mul, class T, class I, class Column>
void spmv_rows(const Csr<I>& a, const T* values, const T* x, T* y, I first, I last, const Column& column) {
  I next = a.begin(first);
  for (I i = first; i < last; ++i) {
    typename Add::template Fold<T> fold;
    I e = next;
    next = a.end(i);
    for (; e < next; ++e) fold.add(Mul::template apply<T>(values[e], x[column(e)]));
    y[i] = fold.result();
  }
}

// By rows: each is added up from its first entry to its last, so threads change nothing. Sums of
// float32 are kept in double. One load of x is what the loop waits for: sums in several parts and
// vector gathers are not faster. Blocks of rows whose indices are all in range, which a pass over
// them finds, need no clamping.
template <class Add, class Mul, class T, class I, class Team>
void spmv(Team& team, const Csr<I>& a, const T* values, const T* x, T* y) {
  constexpr I kBlock = 256;
  over_rows(team, a, [&](I first, I last, int) {
    for (I i = first; i < last; i += std::min(kBlock, I(last - i))) {
      const I stop = i + std::min(kBlock, I(last - i));
      // Bounds that do not ascend may leave the entries between the first and the last one.
      bool ascend = true;
      for (I k = i; k < stop; ++k) ascend &= a.begin(k) <= a.end(k);
      if (ascend && all_columns(a, a.begin(i), a.end(stop - 1)))
        spmv_rows<Add, Mul>(a, values, x, y, i, stop, [&](I e) { return a.idx[e]; });
      else
        spmv_rows<Add, Mul>(a, values, x, y, i, stop, [&](I e) { return a.column(e); });
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
