// A product of dense matrices at the entries of a sparse one: S[e] = add_k mul(X[i, k], Y[j, k]).
#pragma once
#include <algorithm>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// Sums of blocks in eight parts, joined in a fixed order; of float32 blocks are added up in double.
template <class Add, class Mul, class T>
T dot(const T* x, const T* y, int64_t k) {
  constexpr int kParts = 8, kBlock = 512;
  typename Add::template Fold<T> fold;
  for (int64_t c = 0; c < k;) {
    const int64_t end = std::min<int64_t>(c + kBlock, k);
    T part[kParts];
    for (T& p : part) p = Add::template identity<T>();
    for (; c + kParts <= end; c += kParts)
      for (int p = 0; p < kParts; ++p)
        part[p] = Add::template apply<T>(part[p], Mul::template apply<T>(x[c + p], y[c + p]));
    for (const T p : part) fold.add(p);
    for (; c < end; ++c) fold.add(Mul::template apply<T>(x[c], y[c]));
  }
  return fold.result();
}

// Padding gets 0. Rows of a Y beyond caches are fetched `kAhead` entries early.
template <class Add, class Mul, class T>
void sddmm(Team& team, Unchecked given, Table<const T> x, Table<const T> y, Entries<T> s) {
  expect(x.columns == y.columns && x.rows == given.rows, "X and Y have other shapes than are expected");
  const Matrix a = checked(given, y.rows);
  const int64_t k = x.columns;
  constexpr Id kAhead = 16, kLine = 64 / sizeof(T);
  const int64_t fetched = a.columns * k * int64_t(sizeof(T)) > (1 << 22) ? k : 0;
  const Id end = a.ptr[a.rows];
  over_rows(team, a, [&](Id first, Id last, int) {
    for (Id i = first; i < last; ++i)
      for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
        const T* later = y + a.idx[std::min(e + kAhead, end - 1)] * k;
        for (int64_t j = 0; j < fetched; j += kLine) __builtin_prefetch(later + j);
        s[e] = dot<Add, Mul>(x + i * k, y + a.idx[e] * k, k);
      }
  });
  std::fill(s + end, s + a.slots, T(0));
}

}  // namespace jaxspv
