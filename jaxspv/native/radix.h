// Sorting by numbers of fixed width, digit by digit, and a heap of them.
#pragma once
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "checked.h"

namespace jaxspv {

// Unsigned numbers in the order of the values; -0 is 0.
template <class T>
auto sortable(T value) {
  using Bits = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
  constexpr Bits kSign = Bits(1) << (8 * sizeof(Bits) - 1);
  Bits bits;
  if constexpr (std::is_floating_point_v<T>) value += T(0);
  std::memcpy(&bits, &value, sizeof bits);
  if constexpr (std::is_floating_point_v<T>) return bits & kSign ? Bits(~bits) : Bits(bits | kSign);
  else return Bits(bits ^ kSign);
}

template <class Bits>
struct Keyed {
  Bits key;
  Id slot;
};

// Sorts stably by `key`, 11 bits at a time; digits that are all alike are passed over.
template <class Bits>
void radix_sort(std::vector<Keyed<Bits>>& items) {
  constexpr int kWidth = 11, kDigits = (8 * sizeof(Bits) + kWidth - 1) / kWidth;
  constexpr size_t kSize = size_t(1) << kWidth;
  std::vector<Id> count(kDigits * kSize, 0);
  for (const auto& item : items)
    for (int d = 0; d < kDigits; ++d) ++count[d * kSize + (item.key >> (d * kWidth) & (kSize - 1))];
  std::vector<Keyed<Bits>> other(items.size());
  for (int d = 0; d < kDigits; ++d) {
    Id *of = count.data() + d * kSize, sum = 0;
    if (items.empty() || of[items[0].key >> (d * kWidth) & (kSize - 1)] == Id(items.size())) continue;
    for (size_t i = 0; i < kSize; ++i) {
      const Id here = of[i];
      of[i] = sum;
      sum += here;
    }
    for (const auto& item : items) other[of[item.key >> (d * kWidth) & (kSize - 1)]++] = item;
    items.swap(other);
  }
}

// Keys never fall below the last one taken. There is no parameter to choose.
// Ahuja, Mehlhorn, Orlin, Tarjan, "Faster algorithms for the shortest path problem", J. ACM 1990.
template <class K>
class RadixHeap {
 public:
  using Item = std::pair<K, Id>;
  void push(K key, Id v) { buckets_[width(key ^ last_)].push_back({key, v}); }
  bool pop(Item& item) {  // false: there is none
    int i = 0;
    while (buckets_[i].empty())
      if (++i > kBits) return false;
    if (i > 0) {
      auto& from = buckets_[i];
      last_ = from[0].first;
      for (const Item& other : from) last_ = std::min(last_, other.first);
      for (const Item& other : from) buckets_[width(other.first ^ last_)].push_back(other);
      from.clear();
    }
    item = buckets_[0].back();
    buckets_[0].pop_back();
    return true;
  }

 private:
  static constexpr int kBits = 8 * sizeof(K);
  static int width(K x) {
    if (!x) return 0;
    return kBits == 64 ? 64 - __builtin_clzll(x) : 32 - __builtin_clz(unsigned(x));
  }
  std::vector<Item> buckets_[kBits + 1];
  K last_ = 0;
};

}  // namespace jaxspv
