// Handlers of products of sparse matrices.
#include "mxm.h"

#include "ffi.h"
#include "operands.h"

using namespace jaxspv;

namespace {

// Places that are allowed: operands i, i + 1 are a sparse mask, i + 2 which entries count.
enum MaskKind : int64_t { kNone = 0, kListed = 1, kWithout = 2 };

struct Mask {
  int64_t kind;
  Matrix matrix;
  const uint8_t* holds;
};

Mask mask_of(const Call& call, int i, const Matrix& a, Id columns) {
  const int64_t kind = call.number("mask");
  if (kind == kNone) return {kind, {}, nullptr};
  const Matrix matrix = checked(call, i, columns);
  expect(matrix.rows == a.rows, "the mask has another number of rows than the product");
  const Buffer& holds = call.operand(i + 2);
  return {kind, matrix, length(holds) ? entries<uint8_t>(holds, matrix) : nullptr};
}

Allowed allowed_by(const Mask& mask) {
  Allowed allowed;
  if (mask.kind == kWithout) allowed.without = &mask.matrix, allowed.holds = mask.holds;
  return allowed;
}

}  // namespace

// (A, B: indptr and indices each, the mask) -> int32 entries of A B; 2^31 - 1 stands for any larger
JAXSPV_HANDLER(mxm_count) {
  const Id columns = Id(call.number("columns"));
  const Matrix a = checked(call, 0, length(call.operand(2)) - 1), b = checked(call, 2, columns);
  const Mask mask = mask_of(call, 4, a, columns);
  expect(mask.kind != kListed, "a mask that lists places bounds the product");
  Team team(call.pool());
  const int64_t total = count_product(team, a, b, allowed_by(mask));
  *array<Id>(call.result(0), 0) = Id(std::min<int64_t>(total, 0x7fffffff));
}

// (A, B: indptr and indices each, the mask, values of A and B) -> indptr, indices, values, int32 entries
JAXSPV_HANDLER(mxm) {
  const Id columns = Id(call.number("columns"));
  const Matrix a = checked(call, 0, length(call.operand(2)) - 1), b = checked(call, 2, columns);
  const Mask mask = mask_of(call, 4, a, columns);
  const int64_t nse = length(call.result(1));
  Id *ptr = vector<Id>(call.result(0), int64_t(a.rows) + 1), *idx = vector<Id>(call.result(1), nse);
  Team team(call.pool());
  int64_t total = 0;
  auto run = [&](const auto& terms, auto* value) {
    if (mask.kind == kListed)
      return multiply_where(team, a, b, terms, mask.matrix, mask.holds, nse, ptr, idx, value);
    return multiply(team, a, b, terms, allowed_by(mask), nse, ptr, idx, value);
  };
  with_types(call, call.result(2).dtype, [&](auto add, auto mul, auto zero) {
    using T = decltype(zero);
    const T *x = entries<T>(call.operand(7), a), *y = entries<T>(call.operand(8), b);
    T* value = vector<T>(call.result(2), nse);
    const Terms<T> t = terms<decltype(add), decltype(mul)>(x, y);
    total = run(t, value);
  });
  *array<Id>(call.result(3), 0) = Id(std::min<int64_t>(total, 0x7fffffff));
}
