// Sparse times dense: Y[i, j] = add_k mul(A[i, k], X[k, j]), arrays by rows.
#pragma once
#include <algorithm>
#include <type_traits>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

constexpr Id kLongRow = 1 << 14;  // entries from which on float32 is added up in float64

// `kWidth` columns of row i, whose sums stay in registers.
template <class T, class Sum, class Add, class Mul, int kWidth>
void spmm_row(const Matrix& a, Id i, const T* data, const T* x, int64_t k, T* y) {
  Sum sum[kWidth];
  for (int j = 0; j < kWidth; ++j) sum[j] = Sum(Add::template identity<T>());
  for (Id e = a.ptr[i], end = a.ptr[i + 1]; e < end; ++e) {
    const T value = data[e];
    const T* row = x + a.idx[e] * k;
    if constexpr (std::is_same_v<Sum, T>)
      for (int j = 0; j < kWidth; ++j) sum[j] = Add::template apply<T>(sum[j], Mul::template apply<T>(value, row[j]));
    else
      for (int j = 0; j < kWidth; ++j) sum[j] += Mul::template apply<Sum>(value, row[j]);
  }
  for (int j = 0; j < kWidth; ++j) y[j] = T(sum[j]);
}

template <class Add, class Mul, class T, class Team>
void spmm(Team& team, const Matrix& a, const T* data, const T* x, int64_t k, T* y) {
  auto run = [&](auto sum, Id i) {
    using Sum = decltype(sum);
    int64_t j = 0;
    for (; j + 16 <= k; j += 16) spmm_row<T, Sum, Add, Mul, 16>(a, i, data, x + j, k, y + i * k + j);
    for (; j + 4 <= k; j += 4) spmm_row<T, Sum, Add, Mul, 4>(a, i, data, x + j, k, y + i * k + j);
    for (; j < k; ++j) spmm_row<T, Sum, Add, Mul, 1>(a, i, data, x + j, k, y + i * k + j);
  };
  team.blocks(a.rows, 1 << 9, [&](int64_t begin, int64_t end, int) {
    for (Id i = Id(begin); i < end; ++i) {
      if constexpr (std::is_same_v<T, float> && std::is_same_v<Add, Plus>)
        if (degree(a, i) > kLongRow) {
          run(double(), i);
          continue;
        }
      run(T(), i);
    }
  });
}

}  // namespace jaxspv
