// Entries: lists of keys, ascending, of one axis or two (row, column). Any bytes are safe: what does
// not ascend gives some slots within the arrays.
#pragma once
#include <algorithm>
#include <cstdint>

#include "checked.h"

namespace jaxspv {

struct Keys {
  int64_t size;
  const int32_t *major, *minor;  // minor: null for one axis

  // A number that orders keys as they are ordered.
  int64_t at(int64_t i) const {
    return minor ? int64_t(major[i]) * (int64_t(1) << 32) + (int64_t(minor[i]) + (int64_t(1) << 31)) : major[i];
  }
};

struct NewKeys {
  int64_t size;
  int32_t *major, *minor;
};

// For each place of the union of the first `count_a` keys of a and `count_b` of b, without doubles, its
// slot in each: the size of a list that lacks it, and of all behind the last place. The number of places,
// some of which may not fit.
inline int32_t unite(Keys a, int32_t count_a, Keys b, int32_t count_b, List<int32_t> left, List<int32_t> right) {
  const int64_t capacity = std::min(left.size, right.size);
  const int32_t no_a = int32_t(a.size), no_b = int32_t(b.size);
  a.size = std::min(a.size, std::max<int64_t>(0, count_a)), b.size = std::min(b.size, std::max<int64_t>(0, count_b));
  int64_t i = 0, j = 0, place = 0;
  while (i < a.size && j < b.size) {
    const int64_t x = a.at(i), y = b.at(j);
    if (place < capacity) left[place] = x <= y ? int32_t(i) : no_a, right[place] = y <= x ? int32_t(j) : no_b;
    i += x <= y, j += y <= x, ++place;
  }
  for (; i < a.size; ++i, ++place)
    if (place < capacity) left[place] = int32_t(i), right[place] = no_b;
  for (; j < b.size; ++j, ++place)
    if (place < capacity) left[place] = no_a, right[place] = int32_t(j);
  const int64_t fit = std::min(place, capacity);
  std::fill(left + fit, left.end(), no_a);
  std::fill(right + fit, right.end(), no_b);
  return int32_t(place);
}

// The first slot of each wanted key that is not before it. Each search begins where the last one
// ended: in steps that double, and by bisection of the last step.
inline void lower_bounds(Keys keys, Keys wanted, List<int32_t> slots) {
  expect(slots.size == wanted.size, "a slot for each wanted key");
  int64_t from = 0;
  for (int64_t i = 0; i < wanted.size; ++i) {
    const int64_t want = wanted.at(i);
    if (from > 0 && keys.at(from - 1) >= want) from = 0;  // wanted keys that do not ascend
    int64_t low = from, step = 1;
    while (low + step <= keys.size && keys.at(low + step - 1) < want) low += step, step *= 2;
    int64_t high = std::min(low + step - 1, keys.size);
    while (low < high) {
      const int64_t middle = low + (high - low) / 2;
      if (keys.at(middle) < want) low = middle + 1;
      else high = middle;
    }
    slots[i] = int32_t(from = low);
  }
}

// The slots that are chosen, `size` behind them; their number, some of which may not fit.
inline int32_t chosen_slots(List<const uint8_t> chosen, List<int32_t> slots) {
  expect(chosen.size < 0x7fffffff, "the number of slots exceeds int32");
  int64_t count = 0, i = 0;
  for (; i < chosen.size && count < slots.size; ++i) {
    slots[count] = int32_t(i);
    count += chosen[i] != 0;
  }
  std::fill(slots + count, slots.end(), int32_t(chosen.size));
  for (; i < chosen.size; ++i) count += chosen[i] != 0;
  return int32_t(count);
}

// The places that are listed, or all others.
inline void marks(List<const int32_t> places, bool complement, List<uint8_t> marked) {
  std::fill(marked + 0, marked.end(), uint8_t(complement));
  for (int64_t k = 0; k < places.size; ++k)
    if (places[k] >= 0 && places[k] < marked.size) marked[places[k]] = !complement;
}

// The entries that are chosen, behind them the extents as keys and zeros as values; how many fit;
// returns `overflow`, or whether there are more.
template <class T>
bool keep(List<const uint8_t> chosen, Keys e, List<const T> values, uint8_t overflow, Option rows, Option columns,
          NewKeys to, List<T> kept, int32_t& fit) {
  expect(chosen.size == e.size && values.size == e.size && kept.size == to.size, "as many keys as values and flags");
  int64_t count = 0, i = 0;
  for (; i < e.size && count < to.size; ++i) {
    to.major[count] = e.major[i];
    if (to.minor) to.minor[count] = e.minor[i];
    kept[count] = values[i];
    count += chosen[i] != 0;
  }
  std::fill(to.major + count, to.major + to.size, int32_t(rows));
  if (to.minor) std::fill(to.minor + count, to.minor + to.size, int32_t(columns));
  std::fill(kept + count, kept.end(), T(0));
  fit = int32_t(count);
  for (; i < e.size; ++i) overflow |= chosen[i] != 0;
  return overflow;
}

}  // namespace jaxspv
