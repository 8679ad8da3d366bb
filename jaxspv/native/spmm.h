// Sparse times dense: Y[i, j] = add_k mul(A[i, k], X[k, j]), arrays by rows.
#pragma once
#include <algorithm>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "convert.h"
#include "semirings.h"

namespace jaxspv {

constexpr Id kLongRow = 1 << 14;  // entries from which on float32 is added up in float64

template <class T, int kLanes>
struct Some {
  typedef T Vector __attribute__((vector_size(kLanes * sizeof(T))));
};
template <class T>
struct Some<T, 1> {
  using Vector = T;
};

// `kWidth` numbers in registers: as vectors where the operators take them, since a compiler that looks
// for vectors by itself keeps the numbers in memory, and each part by a number known to it.
template <class Add, class Mul, class Sum, int kWidth>
struct Block {
  static constexpr bool kWraps = std::is_integral_v<Sum> && sizeof(Sum) > 1 && std::is_same_v<Add, Plus>;
  static constexpr bool kVectors = (kWraps || std::is_floating_point_v<Sum>) && !std::is_same_v<Mul, Pair>;
  static constexpr int kLanes = kVectors ? std::min(kWidth, kVector / int(sizeof(Sum))) : 1;
  using Lane = std::conditional_t<kWraps, std::conditional_t<sizeof(Sum) == 8, uint64_t, uint32_t>, Sum>;
  using Vector = typename Some<Lane, kLanes>::Vector;
  Vector part[kWidth / kLanes];
  template <class To, class From>
  static To as(From v) {
    if constexpr (kLanes == 1) return To(v);
    else return __builtin_convertvector(v, To);
  }
  template <class T>
  static Vector load(const T* from) {
    typename Some<T, kLanes>::Vector some;
    std::memcpy(&some, from, sizeof some);
    return as<Vector>(some);
  }
  template <class T>
  static void store(Vector v, T* to) {
    const auto some = as<typename Some<T, kLanes>::Vector>(v);
    std::memcpy(to, &some, sizeof some);
  }
  // f(part, first number) for each part.
  template <class F>
  JAXSPV_INLINE void each(const F& f) { each(f, std::make_integer_sequence<int, kWidth / kLanes>()); }
  template <class F, int... kPart>
  JAXSPV_INLINE void each(const F& f, std::integer_sequence<int, kPart...>) { (f(part[kPart], kPart * kLanes), ...); }
};

// `kWidth` columns of row i. Rows of X are fetched `kAhead` entries before they are used, as they
// lie anywhere in memory.
template <class T, class Sum, class Add, class Mul, int kWidth>
JAXSPV_INLINE inline void spmm_row(const Matrix& a, Id i, const T* data, const T* x, int64_t k, T* y) {
  constexpr Id kAhead = 32;
  using B = Block<Add, Mul, Sum, kWidth>;
  using V = typename B::Vector;
  B sum;
  sum.each([&](V& v, int) JAXSPV_INLINE { v = typename B::Lane(Add::template identity<Sum>()) - V{}; });
  const Id last = a.ptr[a.rows] - 1;
  for (Id e = a.ptr[i], end = a.ptr[i + 1]; e < end; ++e) {
    const V value = typename B::Lane(data[e]) - V{};
    const T *row = x + a.idx[e] * k, *later = x + a.idx[std::min(e + kAhead, last)] * k;
    for (int j = 0; j < kWidth; j += 64 / sizeof(T)) __builtin_prefetch(later + j);
    sum.each([&](V& v, int j) JAXSPV_INLINE {
      v = Add::template apply<V>(v, Mul::template apply<V>(value, B::load(row + j)));
    });
  }
  sum.each([&](V& v, int j) JAXSPV_INLINE { B::store(v, y + j); });
}

// f(width, first column) for blocks of k columns whose numbers stay in registers.
template <class Add, class Mul, class Sum, class F>
JAXSPV_INLINE inline void over_widths(int64_t k, const F& f) {
  constexpr int kMost = std::max(16, 8 * Block<Add, Mul, Sum, 64>::kLanes);
  int64_t j = 0;
  auto columns = [&](auto width) JAXSPV_INLINE {
    for (; j + width() <= k; j += width()) f(width, j);
  };
  columns(std::integral_constant<int, kMost>());
  if constexpr (kMost > 16) columns(std::integral_constant<int, 16>());
  columns(std::integral_constant<int, 8>());
  columns(std::integral_constant<int, 4>());
  columns(std::integral_constant<int, 1>());
}

template <class Add, class Mul, class T>
void spmm(Team& team, const Matrix& a, const T* data, const T* x, int64_t k, T* y) {
  auto run = [&](auto sum, Id i) {
    over_widths<Add, Mul, decltype(sum)>(k, [&](auto width, int64_t j) JAXSPV_INLINE {
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
JAXSPV_INLINE inline void spmm_column(const Matrix& a, Id j, const T* data, const T* x, int64_t k, T* y) {
  constexpr Id kAhead = 16;
  using B = Block<Add, Mul, T, kWidth>;
  using V = typename B::Vector;
  B own;
  own.each([&](V& v, int c) JAXSPV_INLINE { v = B::load(x + c); });
  const Id last = a.ptr[a.rows] - 1;
  for (Id e = a.ptr[j], end = a.ptr[j + 1]; e < end; ++e) {
    const V value = typename B::Lane(data[e]) - V{};
    T *row = y + a.idx[e] * k, *later = y + a.idx[std::min(e + kAhead, last)] * k;
    for (int c = 0; c < kWidth; c += 64 / sizeof(T)) __builtin_prefetch(later + c, 1);
    own.each([&](V& v, int c) JAXSPV_INLINE {
      B::store(Add::template apply<V>(B::load(row + c), Mul::template apply<V>(value, v)), row + c);
    });
  }
}

// The same where the arrays list the entries by column, on one thread. No sums in float64; the terms
// of a sum in the same order.
template <class Add, class Mul, class T>
void spmm_transposed(const Matrix& a, const T* data, const T* x, int64_t k, T* y) {
  std::fill(y, y + a.columns * k, Add::template identity<T>());
  for (Id j = 0; j < a.rows; ++j)
    over_widths<Add, Mul, T>(k, [&](auto width, int64_t c) JAXSPV_INLINE {
      spmm_column<T, Add, Mul, width()>(a, j, data, x + j * k + c, k, y + c);
    });
}

// Y = A X; `by_columns`: the arrays list the entries by column.
template <class Add, class Mul, class T>
void sparse_times_dense(Team& team, Unchecked given, Entries<const T> data, Table<const T> x, bool by_columns,
                        Table<T> y) {
  const int64_t k = x.columns, rows = by_columns ? y.rows : x.rows, listed = by_columns ? x.rows : y.rows;
  expect(y.columns == k && listed == given.rows, "Y has another shape than is expected");
  const Matrix a = checked(given, rows);
  if (!by_columns) return spmm<Add, Mul, T>(team, a, data, x, k, y);
  // Entries are put in order where many columns, or threads, make up for that.
  const bool sums_in_double = std::is_same_v<T, float> && std::is_same_v<Add, Plus>;
  if (k * team.size() <= 128 && !(sums_in_double && any_long_row(a)))
    return spmm_transposed<Add, Mul, T>(a, data, x, k, y);
  const Transposed<T> transposed(a, data);
  spmm<Add, Mul, T>(team, transposed.matrix, transposed.values.get(), x, k, y);
}

}  // namespace jaxspv
