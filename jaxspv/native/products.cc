// Handlers of products with vectors.
#include "ffi.h"
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
void product(const Call& call, const F& f) {
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
        T* to = lanes.at<T>(call.result(0), 1, lane);
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
  product(call, [&](auto& lanes, int64_t lane, Team& team, auto a, auto m, auto* values, auto* x, auto* y) {
    spmv<decltype(a), decltype(m)>(team, matrix(call, lanes, lane, columns), values, x, y);
  });
}

JAXSPV_HANDLER(spmv_transposed) {
  const int64_t columns = length(call.result(0));
  expect(length(call.operand(3)) == length(call.operand(0)) - 1, "x has another length than A has rows");
  product(call, [&](auto& lanes, int64_t lane, Team&, auto a, auto m, auto* values, auto* x, auto* y) {
    spmv_transposed<decltype(a), decltype(m)>(matrix(call, lanes, lane, columns), values, x, y);
  });
}
