// Handlers made of functions: the types of their parameters say what a call holds, in the order of its
// operands and then of its results.
//
//   Team&                  the threads of the call
//   const Matrix&          indptr and indices of a square matrix, checked
//   Rectangle              the same of a matrix with as many columns as the attribute `columns` says
//   Unchecked              the same of a square matrix, any bytes
//   T*, Maybe<T>           an element for each row of the last matrix; or none
//   Entries<T>             an element for each of its slots
//   List<T>, Table<T>      arrays of one axis and of two, of any lengths
//   Keys, NewKeys          as many arrays as the attribute `axes` says
//   T, T&                  a number; one of the results
//   bool, Option           an attribute, by the names that the handler gives in their order
//
// Arrays of `const T` are operands, others are results; what is returned is the last result. Of several
// functions the first whose dtypes are those of the call runs, for each lane of vmap.
#pragma once
#include <tuple>

#include "entries.h"
#include "ffi.h"
#include "semirings.h"

namespace jaxspv {

template <class T, int axes>
struct Array {
  using Element = T;
  static constexpr int kAxes = axes;
};
inline void expect_length(bool right) { expect(right, "an array has another length than is expected"); }

template <class T>
struct Parameter : Array<const T, 0> {
  static T make(const T* data, const Buffer&, const Matrix&) { return *data; }
};
template <class T>
struct Parameter<T&> : Array<T, 0> {
  static T& make(T* data, const Buffer&, const Matrix&) { return *data; }
};
template <class T>
struct Parameter<T*> : Array<T, 1> {
  static T* make(T* data, const Buffer& b, const Matrix& a) { return expect_length(length(b) == a.rows), data; }
};
template <class T>
struct Parameter<Maybe<T>> : Array<T, 1> {
  static Maybe<T> make(T* data, const Buffer& b, const Matrix& a) {
    expect_length(length(b) == 0 || length(b) == a.rows);
    return {{length(b) ? data : nullptr}};
  }
};
template <class T>
struct Parameter<Entries<T>> : Array<T, 1> {
  static Entries<T> make(T* data, const Buffer& b, const Matrix& a) {
    return expect_length(length(b) == a.slots), Entries<T>{{data}};
  }
};
template <class T>
struct Parameter<List<T>> : Array<T, 1> {
  static List<T> make(T* data, const Buffer& b, const Matrix&) { return {{data}, length(b)}; }
};
template <class T>
struct Parameter<Table<T>> : Array<T, 2> {
  static Table<T> make(T* data, const Buffer& b, const Matrix&) { return {{data}, b.dims[b.rank - 2], length(b)}; }
};

// Reads one parameter after the other.
class Reader {
 public:
  Reader(const Call& call, std::string_view names) : call_(call), names_(names) {}
  Reader(const Call& call, std::string_view names, const Lanes& lanes, int64_t lane, Team& team)
      : call_(call), names_(names), lanes_(&lanes), lane_(lane), team_(&team) {}

  template <class P>
  static constexpr bool is_matrix = std::is_base_of_v<Matrix, std::decay_t<P>>;
  template <class P>
  static constexpr bool is_keys = std::is_same_v<P, Keys> || std::is_same_v<P, NewKeys>;
  template <class P>
  static constexpr bool is_option = std::is_same_v<P, bool> || std::is_same_v<P, Option>;

  template <class P>
  bool fits() {  // whether the dtype of an array is that of the parameter
    if constexpr (is_matrix<P>) return operand_ += 2, true;
    else if constexpr (is_keys<P>) return (std::is_same_v<P, Keys> ? operand_ : result_) += axes(), true;
    else if constexpr (is_option<P> || std::is_same_v<P, Team&>) return true;
    else return buffer<typename Parameter<P>::Element>().dtype == dtype_of<typename Parameter<P>::Element>();
  }

  template <class P>
  P next() {
    if constexpr (std::is_same_v<P, Team&>) {
      return *team_;
    } else if constexpr (is_option<P>) {
      const size_t end = std::min(names_.find(' '), names_.size());
      const int64_t value = call_.number(names_.substr(0, end));
      names_.remove_prefix(std::min(end + 1, names_.size()));
      return P(value);
    } else if constexpr (is_matrix<P>) {
      const Buffer &ptr = buffer<const Id>(), &idx = buffer<const Id>();
      const int64_t rows = length(ptr) - 1, columns = std::is_same_v<P, Rectangle> ? call_.number("columns") : rows;
      expect(rows >= 0, "indptr is empty");
      expect(std::max({rows, length(idx), columns}) < 0x7fffffff, "an extent exceeds int32");
      matrix_ = {Id(rows), Id(columns), Id(length(idx)), at<const Id>(ptr, 1), at<const Id>(idx, 1)};
      if constexpr (!std::is_same_v<P, Unchecked>) checked(matrix_, columns);
      if constexpr (std::is_reference_v<P>) return matrix_;
      else return {matrix_};
    } else if constexpr (is_keys<P>) {
      using T = std::conditional_t<std::is_same_v<P, Keys>, const Id, Id>;
      const auto major = next<List<T>>();
      expect(major.size < 0x7fffffff, "the number of keys exceeds int32");
      if (axes() == 1) return {major.size, major.data, nullptr};
      const auto minor = next<List<T>>();
      return expect_length(minor.size == major.size), P{major.size, major.data, minor.data};
    } else {
      const Buffer& b = buffer<typename Parameter<P>::Element>();
      return Parameter<P>::make(at<typename Parameter<P>::Element>(b, Parameter<P>::kAxes), b, matrix_);
    }
  }

 private:
  int axes() const {
    const int64_t axes = call_.number("axes");
    expect(axes == 1 || axes == 2, "keys have one or two axes");
    return int(axes);
  }
  template <class T>
  const Buffer& buffer() { return std::is_const_v<T> ? call_.operand(operand_++) : call_.result(result_++); }
  template <class T>
  T* at(const Buffer& b, int axes) const { return lanes_->at<T>(b, axes, lane_); }

  const Call& call_;
  std::string_view names_;
  const Lanes* lanes_ = nullptr;
  int64_t lane_ = 0;
  Team* team_ = nullptr;
  int operand_ = 0, result_ = 0;
  Matrix matrix_{};
};

template <class R, class... P>
bool run_if_fits(Call& call, std::string_view names, R (*f)(P...)) {
  Reader types(call, names);
  if (!(types.fits<P>() && ...)) return false;
  const Buffer& first = call.result(0);
  const Lanes lanes(first, int(first.rank - call.operand(0).rank + 1));
  lanes.each(call, [&](int64_t lane, Team& team) {
    Reader reader(call, names, lanes, lane, team);
    std::tuple<P...> arguments{reader.next<P>()...};
    if constexpr (std::is_void_v<R>) {
      std::apply(f, arguments);
    } else {
      auto& last = reader.next<std::conditional_t<std::is_same_v<R, bool>, uint8_t, R>&>();
      last = std::apply(f, arguments);
    }
  });
  return true;
}

#define JAXSPV_SERVES(name, names, ...)                                            \
  JAXSPV_HANDLER(name) { serve_one_of(call, names, __VA_ARGS__); }
template <class... F>
void serve_one_of(Call& call, std::string_view names, F... functions) {
  const bool found = (run_if_fits(call, names, functions) || ...);
  expect(found, "an operand or a result has another dtype than is expected");
}

// The same for one function for each semiring, of the attributes `add` and `mul`, and each of the dtypes.
#define JAXSPV_SERVES_SEMIRINGS(name, names, f, ...)                                         \
  JAXSPV_HANDLER(name) {                                                                     \
    serve_semiring<__VA_ARGS__>(call, names, [](auto add, auto mul, auto zero) {             \
      return &f<decltype(add), decltype(mul), decltype(zero)>;                               \
    });                                                                                      \
  }
template <class... T, class F>
void serve_semiring(Call& call, std::string_view names, const F& function_of) {
  const int64_t add = call.number("add"), mul = call.number("mul");
  auto serve = [&](auto zero) {
    return with_semiring<decltype(zero)>(add, mul, [&](auto a, auto m) {
      return run_if_fits(call, names, function_of(a, m, zero));
    });
  };
  expect((serve(T()) || ...), "there is no such semiring on arrays of these dtypes");
}
#define JAXSPV_FLOATS(f) f<float>, f<double>
#define JAXSPV_NUMBERS(f) JAXSPV_FLOATS(f), f<int32_t>, f<int64_t>
#define JAXSPV_VALUES float, double, int32_t, int64_t, uint8_t

}  // namespace jaxspv
