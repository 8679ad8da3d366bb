// Sparse times dense: Y[i, j] = add_k mul(A[i, k], X[k, j]), arrays by rows.
#pragma once
#include <algorithm>
#include <type_traits>
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

constexpr Id kLongRow = 1 << 14;  // entries from which on float32 is added up in float64
// `kWidth` columns of row i, whose sums stay in registers. Rows of X are fetched `kAhead` entries
// before they are used, as they lie anywhere in memory; those of Y two rows before.
template <class T, class Sum, class Add, class Mul, int kWidth>
void spmm_row(const Matrix& a, Id i, const T* data, const T* x, int64_t k, T* y) {
  constexpr Id kAhead = 32;
  Sum sum[kWidth];
  for (int j = 0; j < kWidth; ++j) sum[j] = Sum(Add::template identity<T>());
  for (int j = 0; j < kWidth; j += 64 / sizeof(T)) __builtin_prefetch(y + 2 * k + j, 1);
  const Id last = a.ptr[a.rows] - 1;
  for (Id e = a.ptr[i], end = a.ptr[i + 1]; e < end; ++e) {
    const T value = data[e];
    const T *row = x + a.idx[e] * k, *later = x + a.idx[std::min(e + kAhead, last)] * k;
    for (int j = 0; j < kWidth; j += 64 / sizeof(T)) __builtin_prefetch(later + j);
    if constexpr (std::is_same_v<Sum, T>)
      for (int j = 0; j < kWidth; ++j) sum[j] = Add::template apply<T>(sum[j], Mul::template apply<T>(value, row[j]));
    else
      for (int j = 0; j < kWidth; ++j) sum[j] += Mul::template apply<Sum>(value, row[j]);
  }
  for (int j = 0; j < kWidth; ++j) y[j] = T(sum[j]);
}

// f(width, first column) for blocks of k columns whose numbers stay in registers.
template <class Add, class Sum, class F>
void over_widths(int64_t k, const F& f) {
  constexpr int kMost = std::is_same_v<Add, Plus> ? 8 * kVector / int(sizeof(Sum)) : 16;
  int64_t j = 0;
  auto columns = [&](auto width) {
    for (; j + width() <= k; j += width()) f(width, j);
  };
  columns(std::integral_constant<int, kMost>());
  if constexpr (kMost > 16) columns(std::integral_constant<int, 16>());
  columns(std::integral_constant<int, 8>());
  columns(std::integral_constant<int, 4>());
  columns(std::integral_constant<int, 1>());
}

template <class Add, class Mul, class T, class Team>
void spmm(Team& team, const Matrix& a, const T* data, const T* x, int64_t k, T* y) {
  auto run = [&](auto sum, Id i) {
    over_widths<Add, decltype(sum)>(k, [&](auto width, int64_t j) {
      spmm_row<T, decltype(sum), Add, Mul, width()>(a, i, data, x + j, k, y + i * k + j);
    });
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

// Whether a row has so many entries, of a matrix whose arrays list them by column.
inline bool any_long_row(const Matrix& a) {
  if (a.rows <= kLongRow) return false;
  std::vector<uint16_t> count(a.columns);
  for (Id e = 0; e < a.ptr[a.rows]; ++e)
    if (++count[a.idx[e]] > kLongRow) return true;
  return false;
}

// `kWidth` columns of what the entries of column j of A add to Y, rows of which are fetched early.
template <class T, class Add, class Mul, int kWidth>
void spmm_column(const Matrix& a, Id j, const T* data, const T* x, int64_t k, T* y) {
  constexpr Id kAhead = 16;
  T own[kWidth];
  std::copy_n(x, kWidth, own);
  const Id last = a.ptr[a.rows] - 1;
  for (Id e = a.ptr[j], end = a.ptr[j + 1]; e < end; ++e) {
    const T value = data[e];
    T *row = y + a.idx[e] * k, *later = y + a.idx[std::min(e + kAhead, last)] * k;
    for (int c = 0; c < kWidth; c += 64 / sizeof(T)) __builtin_prefetch(later + c, 1);
    for (int c = 0; c < kWidth; ++c) row[c] = Add::template apply<T>(row[c], Mul::template apply<T>(value, own[c]));
  }
}

// The same where the arrays list the entries by column, on one thread. No sums in float64; the terms
// of a sum in the same order.
template <class Add, class Mul, class T>
void spmm_transposed(const Matrix& a, const T* data, const T* x, int64_t k, T* y) {
  std::fill(y, y + a.columns * k, Add::template identity<T>());
  for (Id j = 0; j < a.rows; ++j)
    over_widths<Add, T>(k, [&](auto width, int64_t c) {
      spmm_column<T, Add, Mul, width()>(a, j, data, x + j * k + c, k, y + c);
    });
}

}  // namespace jaxspv
