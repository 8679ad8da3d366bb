// A product of dense matrices at the entries of a sparse one: S[e] = add_k mul(X[i, k], Y[j, k]).
#pragma once
#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// Sums in eight parts, joined in a fixed order.
template <class Add, class Mul, class T>
T dot(const T* x, const T* y, int64_t k) {
  constexpr int kParts = 8;
  T part[kParts];
  for (T& p : part) p = Add::template identity<T>();
  int64_t c = 0;
  for (; c + kParts <= k; c += kParts)
    for (int p = 0; p < kParts; ++p)
      part[p] = Add::template apply<T>(part[p], Mul::template apply<T>(x[c + p], y[c + p]));
  typename Add::template Fold<T> fold;
  for (const T p : part) fold.add(p);
  for (; c < k; ++c) fold.add(Mul::template apply<T>(x[c], y[c]));
  return fold.result();
}

// s: (slots,); padding gets 0.
template <class Add, class Mul, class T, class Team>
void sddmm(Team& team, const Matrix& a, const T* x, const T* y, int64_t k, T* s) {
  over_rows(team, a, [&](Id first, Id last, int) {
    for (Id i = first; i < last; ++i)
      for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e)
        s[e] = dot<Add, Mul>(x + i * k, y + a.idx[e] * k, k);
  });
  std::fill(s + a.ptr[a.rows], s + a.slots, T(0));
}

}  // namespace jaxspv
