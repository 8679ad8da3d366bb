// Handlers of products with dense matrices and of conversions.
#include "convert.h"
#include "ffi.h"
#include "operands.h"
#include "spmm.h"

using namespace jaxspv;

// (indptr, indices, data, X) -> A X; `by_columns`: the arrays list the entries by column
JAXSPV_HANDLER(spmm) {
  const Buffer &x = call.operand(3), &y = call.result(0);
  const bool by_columns = call.number("by_columns") != 0;
  expect(x.rank == 2 && y.rank == 2 && x.dims[1] == y.dims[1], "X and Y need as many columns");
  const Matrix a = checked(call, 0, (by_columns ? y : x).dims[0]);
  expect((by_columns ? x : y).dims[0] == a.rows, "Y has another number of rows than A");
  Team team(call.pool());
  with_types(call, x.dtype, [&](auto add, auto mul, auto zero) {
    using T = decltype(zero);
    using Add = decltype(add);
    using Mul = decltype(mul);
    const T *data = entries<T>(call.operand(2), a), *from = array<T>(x, 2);
    const int64_t k = x.dims[1];
    T* to = array<T>(y, 2);
    if (!by_columns) return spmm<Add, Mul>(team, a, data, from, k, to);
    // Entries are put in order where many columns, or threads, make up for that.
    if (k * team.size() <= 128 && (!std::is_same_v<T, float> || !std::is_same_v<Add, Plus> || !any_long_row(a)))
      return spmm_transposed<Add, Mul>(a, data, from, k, to);
    const Transposed<T> transposed(a, data);
    spmm<Add, Mul, T>(team, transposed.matrix, transposed.values.get(), from, k, to);
  });
}

// (indptr, indices) -> by the other axis: indptr, indices, the slot of each entry
JAXSPV_HANDLER(transpose) {
  const Matrix a = checked(call, 0, length(call.result(0)) - 1);
  transpose(a, a.slots, a.columns, array<Id>(call.result(0), 1), entries<Id>(call.result(1), a), Numbers(),
            entries<Id>(call.result(2), a));
}

// (indptr,) -> the row of each slot
JAXSPV_HANDLER(expand) {
  const Buffer &ptr = call.operand(0), &row = call.result(0);
  expect(length(ptr) > 0, "indptr is empty");
  const Matrix a{Id(length(ptr) - 1), 0, Id(length(row)), array<Id>(ptr, 1), nullptr};
  Id* rows = array<Id>(row, 1);
  std::fill(rows, rows + a.slots, a.rows);
  for (Id i = 0; i < a.rows; ++i)
    if (a.begin(i) < a.end(i)) std::fill(rows + a.begin(i), rows + a.end(i), i);
}

// (row of each slot, ascending) -> how many slots lie before each row
JAXSPV_HANDLER(compress) {
  const int64_t slots = length(call.operand(0)), extent = length(call.result(0)) - 1;
  const Id* row = array<Id>(call.operand(0), 1);
  Id* ptr = array<Id>(call.result(0), 1);
  expect(extent >= 0 && slots <= 0x7fffffff, "an extent exceeds int32");
  int64_t i = 0;  // the next row to begin
  for (int64_t e = 0; e < slots && i <= extent; ++e)
    for (; i <= std::min<int64_t>(row[e], extent); ++i) ptr[i] = Id(e);
  for (; i <= extent; ++i) ptr[i] = Id(slots);
}
