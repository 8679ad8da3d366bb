// Element-wise operations on two matrices: each row is merged by its columns.
#pragma once
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// f(op) for the operator of a number in ewise.py; sums and products of integers wrap.
template <class T, class F>
void with_operator(int64_t number, const F& f) {
  switch (number) {
    case 0: return f([](T a, T b) { return std::is_same_v<T, uint8_t> ? T(a || b) : wrapping_sum(a, b); });
    case 1: return f([](T a, T b) { return wrapping_sum(a, std::is_integral_v<T> ? wrapping_product(b, T(-1)) : T(-b)); });
    case 2: return f([](T a, T b) { return wrapping_product(a, b); });
    case 3: return f([](T a, T b) { return a <= b || a != a ? a : b; });
    case 5: return f([](T a, T) { return a; });
    case 6: return f([](T, T b) { return b; });
    case 7:
      if constexpr (std::is_floating_point_v<T>) return f([](T a, T b) { return a / b; });
    default: return f([](T a, T b) { return a >= b || a != a ? a : b; });
  }
}

// The entries of a row of the result: at the places of both matrices, or at those that both have.
template <bool kUnion>
Id merged(const Matrix& a, const Matrix& b, Id row) {
  Id i = a.ptr[row], j = b.ptr[row], common = 0;
  const Id end_a = a.ptr[row + 1], end_b = b.ptr[row + 1], all = end_a - i + end_b - j;
  while (i < end_a && j < end_b) {
    const Id c = a.idx[i], d = b.idx[j];
    common += c == d, i += c <= d, j += d <= c;
  }
  return kUnion ? all - common : common;
}

// In a union a place that one matrix lacks keeps the other's value, or with `defaults` has the
// operator of it and no_a or no_b.
template <class T>
struct Values {
  const T *a, *b;
  T no_a, no_b;
  bool defaults;
};

// Writes a row of the result from idx and data on; how many entries it has.
template <bool kUnion, class T, class Op>
Id merge_row(const Matrix& a, const Matrix& b, const Values<T>& x, Id row, Op op, Id* idx, T* data) {
  Id i = a.ptr[row], j = b.ptr[row], k = 0;
  const Id end_a = a.ptr[row + 1], end_b = b.ptr[row + 1];
  while (i < end_a && j < end_b) {
    const Id c = a.idx[i], d = b.idx[j];
    const bool in_a = c <= d, in_b = d <= c;
    const T u = x.a[i], v = x.b[j];
    if constexpr (kUnion) {  // no branch depends on which is less
      const T z = op(in_a ? u : x.no_a, in_b ? v : x.no_b);
      idx[k] = in_a ? c : d;
      data[k++] = x.defaults || (in_a && in_b) ? z : in_a ? u : v;
    } else if (c == d) {
      idx[k] = c;
      data[k++] = op(u, v);
    }
    i += in_a, j += in_b;
  }
  if constexpr (kUnion) {
    const bool of_a = i < end_a;
    const Id* column = of_a ? a.idx + i : b.idx + j;
    const T* value = of_a ? x.a + i : x.b + j;
    for (Id left = of_a ? end_a - i : end_b - j; left > 0; --left, ++k, ++column, ++value) {
      idx[k] = *column;
      data[k] = x.defaults ? op(of_a ? *value : x.no_a, of_a ? x.no_b : *value) : *value;
    }
  }
  return k;
}

// The result in `slots`, at least as many as hold any. One thread writes in one pass, several count
// first.
template <bool kUnion, class T>
void merge(Team& team, const Matrix& a, const Matrix& b, const Values<T>& x, int64_t op, Id slots, Id* ptr, Id* idx,
           T* data) {
  const int64_t pieces = team.size() == 1 ? 1 : std::max(1, std::min(4 * team.size(), a.rows / 1024));
  const auto first = [&](int64_t piece) { return Id(int64_t(a.rows) * piece / pieces); };
  std::vector<Id> start(pieces + 1, 0);
  if (pieces > 1)
    team.each(pieces, [&](int64_t piece, int) {
      for (Id row = first(piece); row < first(piece + 1); ++row) start[piece + 1] += merged<kUnion>(a, b, row);
    });
  for (int64_t piece = 0; piece < pieces; ++piece) start[piece + 1] += start[piece];
  team.each(pieces, [&](int64_t piece, int) {
    Id at = start[piece];
    with_operator<T>(op, [&](auto f) {
      for (Id row = first(piece); row < first(piece + 1); ++row) {
        ptr[row] = at;
        at += merge_row<kUnion>(a, b, x, row, f, idx + at, data + at);
      }
    });
    if (piece == pieces - 1) ptr[a.rows] = at;
  });
  std::fill(idx + ptr[a.rows], idx + slots, a.columns);
  std::fill(data + ptr[a.rows], data + slots, T(0));
}

}  // namespace jaxspv
