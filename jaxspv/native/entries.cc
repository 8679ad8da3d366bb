// Handlers of entries: merging two lists of keys or two matrices, finding keys, choosing slots.
#include "handlers.h"
#include "merge.h"

using namespace jaxspv;

// The element-wise result of two matrices whose missing entries are `no_a` and `no_b`, where `defaults`.
template <class T>
static bool element_wise(Team& team, Rectangle a, Entries<const T> x, Rectangle b, Entries<const T> y, T no_a, T no_b,
                         uint8_t over_a, uint8_t over_b, Option op, bool united, bool defaults, List<Id> ptr,
                         List<Id> idx, List<T> value) {
  const int64_t needed = united ? int64_t(a.slots) + b.slots : std::min(a.slots, b.slots);
  expect(a.rows == b.rows && ptr.size == int64_t(a.rows) + 1, "matrices do not match");
  expect(needed <= idx.size && idx.size == value.size && idx.size <= 0x7fffffff, "the result is too large");
  const Values<T> values{x, y, no_a, no_b, defaults};
  const auto run = united ? merge<true, T> : merge<false, T>;
  run(team, a, b, values, op, Id(idx.size), ptr, idx, value);
  return over_a | over_b;
}

JAXSPV_SERVES(unite, "", unite)
JAXSPV_SERVES(lower_bounds, "", lower_bounds)
JAXSPV_SERVES(chosen_slots, "", chosen_slots)
JAXSPV_SERVES(marks, "complement", marks)
JAXSPV_SERVES(keep, "rows columns", JAXSPV_NUMBERS(keep), keep<uint8_t>)
JAXSPV_SERVES(merge, "op union defaults", JAXSPV_NUMBERS(element_wise), element_wise<uint8_t>)
