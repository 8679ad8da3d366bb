// Entries: lists of keys, ascending, of one axis or two (row, column). Any bytes are safe: what does
// not ascend gives some slots within the arrays.
#pragma once
#include <algorithm>
#include <cstdint>

namespace jaxspv {

struct Keys {
  int64_t size;
  const int32_t *major, *minor;  // minor: null for one axis

  // A number that orders keys as they are ordered.
  int64_t at(int64_t i) const {
    return minor ? int64_t(major[i]) * (int64_t(1) << 32) + (int64_t(minor[i]) + (int64_t(1) << 31)) : major[i];
  }
};

// For each place of the union of a and b, without doubles, its slot in each: the size of a list that
// lacks it, and of all behind the last place. The number of places, some of which may not fit.
inline int64_t unite(const Keys& a, const Keys& b, int64_t capacity, int32_t* left, int32_t* right) {
  int64_t i = 0, j = 0, place = 0;
  while (i < a.size && j < b.size) {
    const int64_t x = a.at(i), y = b.at(j);
    if (place < capacity) left[place] = int32_t(x <= y ? i : -1), right[place] = int32_t(y <= x ? j : -1);
    i += x <= y, j += y <= x, ++place;
  }
  for (; i < a.size; ++i, ++place)
    if (place < capacity) left[place] = int32_t(i), right[place] = -1;
  for (; j < b.size; ++j, ++place)
    if (place < capacity) left[place] = -1, right[place] = int32_t(j);
  return place;
}

// The first slot of each wanted key that is not before it. Each search begins where the last one
// ended: in steps that double, and by bisection of the last step.
inline void lower_bounds(const Keys& keys, const Keys& wanted, int32_t* slots) {
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
inline int64_t chosen_slots(const uint8_t* chosen, int64_t size, int64_t capacity, int32_t* slots) {
  int64_t count = 0, i = 0;
  for (; i < size && count < capacity; ++i) {
    slots[count] = int32_t(i);
    count += chosen[i] != 0;
  }
  std::fill(slots + count, slots + capacity, int32_t(size));
  for (; i < size; ++i) count += chosen[i] != 0;
  return count;
}

// The entries that are chosen, behind them the extents as keys and zeros as values; their number,
// some of which may not fit.
template <class T>
int64_t keep(const uint8_t* chosen, const Keys& e, const T* values, int64_t capacity, const int32_t extents[2],
             int32_t* major, int32_t* minor, T* kept) {
  int64_t count = 0, i = 0;
  for (; i < e.size && count < capacity; ++i) {
    major[count] = e.major[i];
    if (minor) minor[count] = e.minor[i];
    kept[count] = values[i];
    count += chosen[i] != 0;
  }
  std::fill(major + count, major + capacity, extents[0]);
  if (minor) std::fill(minor + count, minor + capacity, extents[1]);
  std::fill(kept + count, kept + capacity, T(0));
  for (; i < e.size; ++i) count += chosen[i] != 0;
  return count;
}

}  // namespace jaxspv
