// Handlers of products with vectors.
#include "ffi.h"
#include "operands.h"
#include "pagerank.h"
#include "sddmm.h"
#include "spmspv.h"
#include "spmv.h"

using namespace jaxspv;

namespace {

// The matrix of a lane: operands 0 and 1 are indptr and indices.
Csr<int32_t> matrix(const Call& call, const Lanes& lanes, int64_t lane, int64_t columns) {
  const Buffer &ptr = call.operand(0), &idx = call.operand(1);
  expect(length(ptr) > 0, "indptr is empty");
  return {int32_t(length(ptr) - 1), int32_t(columns), int32_t(length(idx)),
          lanes.at<const int32_t>(ptr, 1, lane), lanes.at<const int32_t>(idx, 1, lane)};
}

// f(add, mul, values, x, y) for every lane, with the types of the call: operands 2 and 3 are the
// values and x.
template <class F>
void product(const Call& call, const Buffer& result, const F& f) {
  const Lanes lanes(call.result(0), 1);
  const Buffer &data = call.operand(2), &x = call.operand(3);
  const int64_t add = call.number("add"), mul = call.number("mul");
  expect(length(data) == length(call.operand(1)), "data and indices differ in length");
  with_values(x.dtype, [&](auto zero) {
    using T = decltype(zero);
    const bool known = with_semiring<T>(add, mul, [&](auto a, auto m) {
      lanes.each(call, [&](int64_t lane, Team& team) {
        const T* given = lanes.at<const T>(data, 1, lane);
        const T* from = lanes.at<const T>(x, 1, lane);
        T* to = lanes.at<T>(result, 1, lane);
        f(lanes, lane, team, a, m, given, from, to);
      });
    });
    expect(known, "there is no such semiring");
  });
}

}  // namespace

JAXSPV_HANDLER(spmv) {
  const int64_t columns = length(call.operand(3));
  expect(length(call.result(0)) == length(call.operand(0)) - 1, "y has another length than A has rows");
  expect(columns > 0, "x is empty");
  product(call, call.result(0), [&](auto& lanes, int64_t lane, Team& team, auto a, auto m, auto* given, auto* x, auto* y) {
    spmv<decltype(a), decltype(m)>(team, matrix(call, lanes, lane, columns), given, x, y);
  });
}

// (indptr, indices, values, x, y) -> the slot of each row that gave y
JAXSPV_HANDLER(winners) {
  const Buffer &x = call.operand(3), &y = call.operand(4), &slots = call.result(0);
  expect(length(y) == length(slots) && length(y) == length(call.operand(0)) - 1, "y has another length than A has rows");
  expect(length(x) > 0, "x is empty");
  product(call, y, [&](auto& lanes, int64_t lane, Team& team, auto a, auto m, auto* given, auto* x, auto* y) {
    using T = std::remove_pointer_t<decltype(y)>;
    if constexpr (std::is_floating_point_v<T> && !std::is_same_v<decltype(a), Plus>)
      winners<decltype(m), T>(team, matrix(call, lanes, lane, length(call.operand(3))), given, x, y,
                              lanes.template at<Id>(slots, 1, lane));
    else
      throw Invalid("extremes of floats have winners");
  });
}

JAXSPV_HANDLER(spmv_transposed) {
  const int64_t columns = length(call.result(0));
  expect(length(call.operand(3)) == length(call.operand(0)) - 1, "x has another length than A has rows");
  product(call, call.result(0), [&](auto& lanes, int64_t lane, Team& team, auto a, auto m, auto* values, auto* x, auto* y) {
    const auto nothing = [](auto, auto, auto) {};
    spmv_transposed<decltype(a), decltype(m)>(team, matrix(call, lanes, lane, columns), values, x, y, nothing);
  });
}

// (indptr, indices, data, w, x) -> the derivatives by data and by x; an empty result is not wanted
JAXSPV_HANDLER(spmv_derivatives) {
  const Buffer &idx = call.operand(1), &data = call.operand(2), &x = call.operand(4);
  const Buffer &by_values = call.result(0), &by_vector = call.result(1);
  const Lanes lanes(by_values, 1);
  const bool values = length(by_values) > 0, vector = length(by_vector) > 0;
  const int64_t columns = length(vector ? by_vector : x);
  expect(length(call.operand(3)) == length(call.operand(0)) - 1, "w has another length than A has rows");
  expect(!values || (length(by_values) == length(idx) && length(x) == columns), "x has another length");
  expect(!vector || length(data) == length(idx), "data and indices differ in length");
  expect(columns > 0, "x is empty");
  auto run = [&](auto zero) {
    using T = decltype(zero);
    lanes.each(call, [&](int64_t lane, Team& team) {
      auto at = [&](const Buffer& b) { return lanes.at<T>(b, 1, lane); };
      spmv_derivatives(team, matrix(call, lanes, lane, columns), at(data), at(call.operand(3)), at(x),
                       values ? at(by_values) : nullptr, vector ? at(by_vector) : nullptr);
    });
  };
  by_values.dtype == abi::kF64 ? run(double()) : run(float());
}

// (A: indptr, indices, data; x: indices, data, count; the rows allowed, or none for all) -> indices,
// data, how many. By `columns`, A is the transposed matrix.
JAXSPV_HANDLER(spmspv) {
  const bool by_columns = call.number("columns") != 0;
  const Id rows = Id(call.number("rows")), columns = Id(call.number("extent"));
  const Matrix a = checked(call, 0, by_columns ? rows : columns);
  expect(a.rows == (by_columns ? columns : rows), "indptr has another length than is expected");
  const Buffer& data = call.operand(4);
  const Id size = Id(length(data)), nse = Id(length(call.result(0)));
  const bool some = length(call.operand(6)) > 0;
  with_types(call, data.dtype, [&](auto add, auto mul, auto zero) {
    using T = decltype(zero);
    const SparseOperand<T> x{vector<Id>(call.operand(3), size), vector<T>(data, size),
                             std::min(size, *array<Id>(call.operand(5), 0)),
                             some ? vector<uint8_t>(call.operand(6), rows) : nullptr};
    Id* idx = vector<Id>(call.result(0), nse);
    T *y = vector<T>(call.result(1), nse), *values = entries<T>(call.operand(2), a);
    const auto run = by_columns ? &spmspv_columns<decltype(add), decltype(mul), T>
                                : &spmspv_rows<decltype(add), decltype(mul), T>;
    const Id count = run(a, values, x, nse, idx, y), kept = std::min(count, nse);
    std::fill(idx + kept, idx + nse, rows);
    std::fill(y + kept, y + nse, T(0));
    *array<Id>(call.result(2), 0) = count;
  });
}

// (indptr, indices, X, Y) -> values
JAXSPV_HANDLER(sddmm) {
  const Buffer &x = call.operand(2), &y = call.operand(3);
  expect(x.rank == 2 && y.rank == 2 && x.dims[1] == y.dims[1], "X and Y need as many columns");
  const Matrix a = checked(call, 0, y.dims[0]);
  expect(x.dims[0] == a.rows, "X has another number of rows than A");
  Team team(call.pool());
  with_types(call, x.dtype, [&](auto add, auto mul, auto zero) {
    using T = decltype(zero);
    sddmm<decltype(add), decltype(mul), T>(team, a, array<T>(x, 2), array<T>(y, 2), x.dims[1],
                                           entries<T>(call.result(0), a));
  });
}

// (indptr, indices, weights, p, damping, tol, most and least steps) -> scores, steps, converged
JAXSPV_HANDLER(pagerank) {
  const Lanes lanes(call.result(0), 1);
  const bool symmetric = call.number("symmetric") != 0;
  const int64_t n = length(call.result(0));
  expect(length(call.operand(0)) == n + 1 && length(call.operand(3)) == n, "p needs an element a vertex");
  expect(length(call.operand(1)) == length(call.operand(2)), "a weight for each entry");
  auto run = [&](auto zero) {
    using T = decltype(zero);
    lanes.each(call, [&](int64_t lane, Team& team) {
      const Matrix a = matrix(call, lanes, lane, n);
      expect(valid(a), "indptr or indices of a matrix are out of range");
      auto number = [&](int i) { return double(*lanes.at<const T>(call.operand(i), 0, lane)); };
      auto steps = [&](int i) { return *lanes.at<const Id>(call.operand(i), 0, lane); };
      bool converged = false;
      const PageRankEnds ends{number(4), number(5), steps(6), steps(7)};
      *lanes.at<Id>(call.result(1), 0, lane) =
          Id(pagerank(team, a, lanes.at<const T>(call.operand(2), 1, lane), symmetric,
                      lanes.at<const T>(call.operand(3), 1, lane), ends,
                      lanes.at<T>(call.result(0), 1, lane), &converged));
      *lanes.at<uint8_t>(call.result(2), 0, lane) = converged;
    });
  };
  call.result(0).dtype == abi::kF64 ? run(double()) : run(float());
}
