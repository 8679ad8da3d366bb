// Handlers of entries: merging two lists of keys or two matrices, finding keys, choosing slots.
#include "entries.h"

#include "ffi.h"
#include "merge.h"
#include "operands.h"

using namespace jaxspv;

// The keys whose arrays are operands i and, of two axes, i + 1.
static Keys keys(const Call& call, int i, int64_t axes) {
  const int64_t size = length(call.operand(i));
  expect(size < 0x7fffffff, "the number of keys exceeds int32");
  return {size, vector<int32_t>(call.operand(i), size),
          axes == 2 ? vector<int32_t>(call.operand(i + 1), size) : nullptr};
}

static int64_t axes_of(const Call& call) {
  const int64_t axes = call.number("axes");
  expect(axes == 1 || axes == 2, "keys have one or two axes");
  return axes;
}

// The keys and, behind them, how many of them count.
static Keys counted(const Call& call, int i, int64_t axes) {
  Keys found = keys(call, i, axes);
  const int64_t count = *array<int32_t>(call.operand(i + int(axes)), 0);
  found.size = std::min(std::max<int64_t>(count, 0), found.size);
  return found;
}

// (keys, count, keys, count) -> the slot of each place of the union in the one and in the other, the
// capacity of one that lacks it; the number of places
JAXSPV_HANDLER(unite) {
  const int64_t axes = axes_of(call), capacity = length(call.result(0));
  const Keys a = counted(call, 0, axes), b = counted(call, int(axes) + 1, axes);
  const int32_t none_a = int32_t(length(call.operand(0))), none_b = int32_t(length(call.operand(int(axes) + 1)));
  int32_t *left = vector<int32_t>(call.result(0), capacity), *right = vector<int32_t>(call.result(1), capacity);
  const int64_t places = unite(a, b, capacity, left, right), fit = std::min(places, capacity);
  for (int64_t i = 0; i < fit; ++i) {
    if (left[i] < 0) left[i] = none_a;
    if (right[i] < 0) right[i] = none_b;
  }
  std::fill(left + fit, left + capacity, none_a);
  std::fill(right + fit, right + capacity, none_b);
  *array<int32_t>(call.result(2), 0) = int32_t(places);
}

// (keys, wanted) -> the first slot of each wanted key that is not before it
JAXSPV_HANDLER(lower_bounds) {
  const int64_t axes = axes_of(call);
  const Keys wanted = keys(call, int(axes), axes);
  lower_bounds(keys(call, 0, axes), wanted, vector<int32_t>(call.result(0), wanted.size));
}

// (chosen,) -> the slots that are chosen, the length of `chosen` behind them; their number
JAXSPV_HANDLER(chosen_slots) {
  const int64_t size = length(call.operand(0)), capacity = length(call.result(0));
  expect(size < 0x7fffffff, "the number of slots exceeds int32");
  const uint8_t* chosen = array<uint8_t>(call.operand(0), 1);
  *array<int32_t>(call.result(1), 0) =
      int32_t(chosen_slots(chosen, size, capacity, vector<int32_t>(call.result(0), capacity)));
}

// (chosen, keys, values, overflow) -> the chosen entries: keys, values, their number, overflow
JAXSPV_HANDLER(keep) {
  const int64_t axes = axes_of(call), size = length(call.operand(0)), capacity = length(call.result(0));
  const uint8_t *chosen = vector<uint8_t>(call.operand(0), size), *before = array<uint8_t>(call.operand(2 + int(axes)), 0);
  const Keys e = keys(call, 1, axes);
  expect(e.size == size, "there are not as many keys as flags");
  const int32_t extents[2] = {int32_t(call.number("rows")), int32_t(call.number("columns"))};
  const int at = int(axes);
  int32_t* minor = axes == 2 ? vector<int32_t>(call.result(1), capacity) : nullptr;
  with_values(call.result(at).dtype, [&](auto zero) {
    using T = decltype(zero);
    const int64_t count = keep(chosen, e, vector<T>(call.operand(1 + at), size), capacity, extents,
                               vector<int32_t>(call.result(0), capacity), minor, vector<T>(call.result(at), capacity));
    *array<int32_t>(call.result(at + 1), 0) = int32_t(std::min(count, capacity));
    *array<uint8_t>(call.result(at + 2), 0) = *before | (count > capacity);
  });
}

// (indptr, indices, data, indptr, indices, data, what the one lacks, what the other lacks, overflow of
// both) -> the element-wise result: indptr, indices, data, overflow
JAXSPV_HANDLER(merge) {
  const int64_t columns = call.number("columns");
  const Matrix a = checked(call, 0, columns), b = checked(call, 3, columns);
  const bool united = call.number("union") != 0;
  const int64_t slots = length(call.result(1)), needed = united ? int64_t(a.slots) + b.slots : std::min(a.slots, b.slots);
  expect(a.rows == b.rows && needed <= slots && slots <= 0x7fffffff, "matrices do not match, or their result is too large");
  *array<uint8_t>(call.result(3), 0) = *array<uint8_t>(call.operand(8), 0) | *array<uint8_t>(call.operand(9), 0);
  Team team(call.pool());
  Id *ptr = vector<Id>(call.result(0), int64_t(a.rows) + 1), *idx = vector<Id>(call.result(1), slots);
  with_values(call.result(2).dtype, [&](auto zero) {
    using T = decltype(zero);
    const Values<T> x{entries<T>(call.operand(2), a), entries<T>(call.operand(5), b), *array<T>(call.operand(6), 0),
                      *array<T>(call.operand(7), 0), call.number("defaults") != 0};
    const auto run = united ? merge<true, T> : merge<false, T>;
    run(team, a, b, x, call.number("op"), Id(slots), ptr, idx, vector<T>(call.result(2), slots));
  });
}
