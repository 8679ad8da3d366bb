// Sums of the products of one row by column, in the order of the columns.
#pragma once
#include <algorithm>
#include <cstring>
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// What products are joined in: float32 in double, so that long sums are exact to a few units.
template <class T>
using Wide = Plus::Sum<T>;

typedef Id Ids __attribute__((vector_size(kVector)));

// place[c]: how many of `count` columns are smaller than column c; behind both are 32 spare ones. No
// branch depends on the columns.
inline void ranks(const Id* column, Id count, Id* place) {
  constexpr Id kLanes = kVector / sizeof(Id);
  for (Id c = 0; c < count; c += 4 * kLanes) {
    Ids a, b, d, e, p = {}, q = {}, r = {}, s = {};
    std::memcpy(&a, column + c, kVector), std::memcpy(&b, column + c + kLanes, kVector);
    std::memcpy(&d, column + c + 2 * kLanes, kVector), std::memcpy(&e, column + c + 3 * kLanes, kVector);
    for (Id k = 0; k < count; ++k) {
      const Id x = column[k];
      p -= x < a, q -= x < b, r -= x < d, s -= x < e;
    }
    std::memcpy(place + c, &p, kVector), std::memcpy(place + c + kLanes, &q, kVector);
    std::memcpy(place + c + 2 * kLanes, &r, kVector), std::memcpy(place + c + 3 * kLanes, &s, kVector);
  }
}

// The sums of one row.
template <class T>
class RowSums {
 public:
  RowSums(Id columns, T none) : columns_(columns), none_(none) {}

  template <class Add, class Value>
  void join(const Id* __restrict column, Id n, const Value& value) {
    if (!sum_) allocate();
    Id *__restrict list = column_.get(), count = count_;
    uint8_t* __restrict hit = hit_.data();
    Wide<T>* __restrict sum = sum_.get();
    auto add = [&](auto seldom) {  // whether a column is seldom new: then a branch is better
      for (Id k = 0; k < n; ++k) {
        const Id j = column[k];
        if (!decltype(seldom)::value || __builtin_expect(!hit[j], 0)) {
          list[count] = j;
          count += !hit[j];
          hit[j] = 1;
        }
        sum[j] = Add::template apply<Wide<T>>(sum[j], Wide<T>(value(k)));
      }
    };
    count_ && few_new_ ? add(std::true_type()) : add(std::false_type());
    few_new_ = 8 * (count - count_) < n;
    count_ = count;
  }

  // Writes the first `most` columns in order and their sums; the number of all. Begins a new row.
  __attribute__((noinline)) Id write(Id most, Id* idx, T* value) {
    constexpr Id kRanked = 192;  // columns; more are cheaper to sort
    Id *const list = column_.get(), place[kRanked + 32], least = 0x7fffffff, greatest = 0;
    const Id count = count_;
    count_ = 0;
    for (Id c = 0; c < count; ++c) least = std::min(least, list[c]), greatest = std::max(greatest, list[c]);
    auto put = [&](Id j, Id to) {
      if (to < most) idx[to] = j, value[to] = T(sum_[j]);
      sum_[j] = none_, hit_[j] = 0;
    };
    const bool close = greatest - least <= 16 * int64_t(count);
    if (count <= kRanked && !close) {
      ranks(list, count, place);
      for (Id c = 0; c < count; ++c) put(list[c], place[c]);
    } else {
      order(least, greatest, count, close);
      for (Id c = 0; c < count; ++c) put(list[c], c);
    }
    return count;
  }

 private:
  void allocate() {  // by the first row that needs it
    sum_ = buffer<Wide<T>>(columns_), column_ = buffer<Id>(int64_t(columns_) + 32);
    which_ = buffer<Id>((columns_ >> 6) + 8);
    std::fill(sum_.get(), sum_.get() + columns_, Wide<T>(none_));
    hit_.resize(size_t(columns_) + 8), word_.resize((columns_ >> 6) + 1), top_.resize((columns_ >> 12) + 1);
  }

  // Lists base + (number >> kShift) of the bits that are set, four at a time.
  template <int kShift>
  static Id* listed(uint64_t bits, Id base, Id* to) {
    Id* const end = to + __builtin_popcountll(bits);
    for (; bits; to += 4)
      for (int i = 0; i < 4; ++i, bits &= bits - 1)
        to[i] = base + Id(__builtin_ctzll(bits | uint64_t(1) << 63) >> kShift);
    return end;
  }

  // Sorts the columns: those that are close are read off `hit_`, others off bits in two levels.
  void order(Id least, Id greatest, Id count, bool close) {
    Id *list = column_.get(), *end = which_.get();
    const Id first = least >> 12, last = greatest >> 12;
    if (close) {
      for (Id j = least & ~7; j <= greatest; j += 8) {
        uint64_t hits;
        std::memcpy(&hits, &hit_[j], sizeof hits);
        list = listed<3>(hits, j, list);
      }
    } else if (last - first > 16 * int64_t(count)) {
      std::sort(list, list + count);
    } else {
      for (Id c = 0; c < count; ++c) set(word_.data(), list[c]), set(top_.data(), list[c] >> 6);
      for (Id t = first; t <= last; ++t) end = listed<0>(top_[t], t << 6, end), top_[t] = 0;
      for (const Id* w = which_.get(); w < end; ++w)
        list = listed<0>(word_[*w], *w << 6, list), word_[*w] = 0;
    }
  }

  const Id columns_;
  const T none_;
  std::unique_ptr<Wide<T>[]> sum_;  // of a column
  std::vector<uint8_t> hit_;        // whether a column is listed
  std::unique_ptr<Id[]> column_;
  std::vector<uint64_t> word_, top_;  // bits of columns, and of words that are not 0
  std::unique_ptr<Id[]> which_;
  Id count_ = 0;
  bool few_new_ = false;
};

constexpr Id kFew = 16;  // products of a row that are compared with each other

// The sums of at most kFew products in the order of their columns: no branch depends on them, and
// nothing is read back that was just written, as each column is compared with all. The number of columns.
template <class Add, class T>
Id sums_of_few(const Id* column, const T* value, Id count, Id most, Id* idx, T* sum) {
  constexpr bool wide = sizeof(T) == 8, wraps = std::is_integral_v<T> && std::is_same_v<Add, Plus>;
  constexpr int kLanes = kVector / (wide ? 8 : 4);
  using Int = std::conditional_t<wide, int64_t, int32_t>;
  using Lane = std::conditional_t<wraps, std::make_unsigned_t<Int>, std::conditional_t<sizeof(T) == 1, Int, T>>;
  typedef Lane Sums __attribute__((vector_size(kVector)));
  typedef Int Columns __attribute__((vector_size(kVector)));
  typedef Id Places __attribute__((vector_size(4 * kLanes)));
  Id place[kFew];
  Lane sums[kFew];
  auto columns = [&](Id c) {
    Places v;
    std::memcpy(&v, column + c, sizeof v);
    return __builtin_convertvector(v, Columns);
  };
  auto keep = [&](Id c, Columns p, Sums s) {
    const Places v = __builtin_convertvector(p, Places);
    std::memcpy(place + c, &v, sizeof v), std::memcpy(sums + c, &s, sizeof s);
  };
  for (Id c = 0; c < count; c += 2 * kLanes) {
    const Columns a = columns(c), b = columns(c + kLanes);
    Columns p = {}, q = {};
    const Sums none = Sums{} + Lane(Add::template identity<T>());
    Sums s = none, t = none;
    for (Id k = 0; k < count; ++k) {
      const Int x = column[k];
      const Sums v = Sums{} + Lane(value[k]);
      p -= x < a, q -= x < b;
      s = Add::apply(s, x == a ? v : none), t = Add::apply(t, x == b ? v : none);
    }
    keep(c, p, s), keep(c + kLanes, q, t);
  }
  uint32_t taken = 0;
  for (Id k = 0; k < count; ++k) taken |= 1u << place[k];
  for (Id k = 0; k < count; ++k) {
    const Id to = __builtin_popcount(taken & ((1u << place[k]) - 1));
    if (to < most) idx[to] = column[k], sum[to] = T(sums[k]);
  }
  return __builtin_popcount(taken);
}

}  // namespace jaxspv
