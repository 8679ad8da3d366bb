// The operators of built-in semirings: what monoids add by and what multiplies.
#pragma once
#include <cstdint>
#include <limits>
#include <type_traits>

namespace jaxspv {

template <class T>
constexpr T largest() {
  return std::numeric_limits<T>::has_infinity ? std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::max();
}
template <class T>
constexpr T smallest() {
  return std::numeric_limits<T>::has_infinity ? -std::numeric_limits<T>::infinity()
                                              : std::numeric_limits<T>::min();
}

// Signed sums wrap, as XLA's do.
template <class T>
T wrapping_sum(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(a) + U(b));
  } else {
    return a + b;
  }
}
template <class T>
T wrapping_product(T a, T b) {
  if constexpr (std::is_integral_v<T>) {
    using U = std::make_unsigned_t<T>;
    return T(U(U(a) * U(b)));
  } else {
    return a * b;
  }
}

// ---- Monoids: `Sum<T>` is what a running result is kept in, `Fold<T>` folds many terms into one.
// NaN spreads, as in NumPy; `apply` takes vectors of the compiler too. ----

template <class T>
struct SumFold {
  std::conditional_t<std::is_same_v<T, float>, double, T> sum = 0;
  void add(T x) { sum = wrapping_sum(sum, decltype(sum)(x)); }
  T result() const { return T(sum); }
};
// The extreme of all terms but NaN, and whether one is NaN: no branch depends on the terms.
template <class T, bool kLeast>
struct ExtremeFold {
  T best = kLeast ? largest<T>() : smallest<T>();
  bool nan = false;
  void add(T x) {
    if constexpr (kLeast) best = x < best ? x : best;
    else best = best < x ? x : best;
    if constexpr (!std::is_integral_v<T>) nan |= x != x;
  }
  T result() const { return nan ? std::numeric_limits<T>::quiet_NaN() : best; }
};

struct Plus {
  template <class T>
  using Sum = std::conditional_t<std::is_same_v<T, float>, double, T>;
  template <class T>
  using Fold = SumFold<T>;
  template <class T>
  static constexpr T identity() { return T(0); }
  template <class T>
  static T apply(T a, T b) { return wrapping_sum(a, b); }
};
template <bool kLeast>
struct Extreme {
  template <class T>
  using Sum = T;
  template <class T>
  using Fold = ExtremeFold<T, kLeast>;
  template <class T>
  static constexpr T identity() { return kLeast ? largest<T>() : smallest<T>(); }
  template <class T>
  static T apply(T a, T b) {
    if constexpr (kLeast) return (b < a) | (b != b) ? b : a;
    else return (b > a) | (b != b) ? b : a;
  }
};
using Min = Extreme<true>;
using Max = Extreme<false>;

// ---- Multipliers ----

struct Times {
  template <class T>
  static T apply(T a, T b) { return wrapping_product(a, b); }
};
struct First {
  template <class T>
  static T apply(T a, T) { return a; }
};
struct Second {
  template <class T>
  static T apply(T, T b) { return b; }
};
struct Pair {
  template <class T>
  static T apply(T, T) { return T(1); }
};
// Lengths of paths: integer sums are clamped, and the identity of the monoid stays what it is.
template <class Add>
struct Extend {
  template <class T>
  static T apply(T a, T b) {
    if constexpr (std::is_integral_v<T>) {
      constexpr T far = Add::template identity<T>();
      if (a == far || b == far) return far;
      const T sum = wrapping_sum(a, b);
      return b > 0 && sum < a ? largest<T>() : b < 0 && sum > a ? smallest<T>() : sum;
    } else {
      return a + b;
    }
  }
};
using MinExtend = Extend<Min>;
using MaxExtend = Extend<Max>;
// For bounds and for truth values, which are the bytes 0 and 1: `or` is max, `and` is min.
struct Lower : Min {};
struct Upper : Max {};

// The codes of `codes.py`.
enum AddCode : int64_t { kPlus = 0, kMin = 1, kMax = 2 };
enum MulCode : int64_t {
  kTimes = 0, kFirst = 1, kSecond = 2, kPair = 3, kMinExtend = 4, kMaxExtend = 5, kLower = 6, kUpper = 7
};

// f(add, mul), for the semiring of two codes on values of type T; false where none is compiled.
template <class Add, class T, class F>
bool with_multiplier(int64_t mul, const F& f) {
  constexpr bool truth = std::is_same_v<T, uint8_t>, sums = std::is_same_v<Add, Plus>;
  using Always = std::bool_constant<!(truth && sums)>;
  using Number = std::bool_constant<!truth>;
  using Selects = std::bool_constant<!sums>;
  auto serve = [&](int64_t code, auto multiplier, auto compiled) {
    if constexpr (decltype(compiled)::value) return mul == code && f(Add{}, multiplier);
    else return false;
  };
  return serve(kTimes, Times{}, Number{}) || serve(kFirst, First{}, Always{}) || serve(kSecond, Second{}, Always{}) ||
         serve(kPair, Pair{}, Always{}) || serve(kLower, Lower{}, Selects{}) || serve(kUpper, Upper{}, Selects{}) ||
         serve(kMinExtend, MinExtend{}, std::bool_constant<!truth && std::is_same_v<Add, Min>>{}) ||
         serve(kMaxExtend, MaxExtend{}, std::bool_constant<!truth && std::is_same_v<Add, Max>>{});
}
template <class T, class F>
bool with_semiring(int64_t add, int64_t mul, const F& f) {
  switch (add) {
    case kPlus: return with_multiplier<Plus, T>(mul, f);
    case kMin: return with_multiplier<Min, T>(mul, f);
    case kMax: return with_multiplier<Max, T>(mul, f);
    default: return false;
  }
}

}  // namespace jaxspv
