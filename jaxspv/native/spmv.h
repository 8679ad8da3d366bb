// Sparse matrix times dense vector over a semiring: y[i] = add over j of mul(A[i, j], x[j]).
#pragma once
#include "csr.h"
#include "semirings.h"

namespace jaxspv {

// Values of the entries: one each, or the same for all (`mask` 0).
template <class T>
struct Values {
  const T* data;
  int64_t mask;
  T operator[](int64_t e) const { return data[e & mask]; }
};

// By rows: each is added up from its first entry to its last, so threads change nothing. Sums of
// float32 are kept in double. One load of x is what the loop waits for: sums in several parts and
// vector gathers are not faster.
template <class Add, class Mul, class T, class I, class Team>
void spmv(Team& team, const Csr<I>& a, Values<T> values, const T* x, T* y) {
  over_rows(team, a, [&](I first, I last, int) {
    for (I i = first; i < last; ++i) {
      typename Add::template Sum<T> sum = Add::template identity<T>();
      for (I e = a.begin(i), end = a.end(i); e < end; ++e)
        sum = Add::template apply<decltype(sum)>(sum, Mul::template apply<T>(values[e], x[a.column(e)]));
      y[i] = T(sum);
    }
  });
}

// The transposed product, y[j] = add over i of mul(A[i, j], x[i]), on one thread: the entries are
// read in the order of memory, y is written at random.
template <class Add, class Mul, class T, class I>
void spmv_transposed(const Csr<I>& a, Values<T> values, const T* x, T* y) {
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
