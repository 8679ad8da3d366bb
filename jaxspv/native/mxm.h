// Sparse times sparse, row by row, rows of the result in order. Gustavson, "Two fast algorithms for
// sparse matrices: multiplication and permuted transposition", ACM TOMS 4 (3), 1978.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// What products are joined in: float32 in double, so that long sums are exact to a few units.
template <class T>
using Wide = Plus::Sum<T>;

// The sums of one row, in slots by the first occurrence of their columns.
template <class T>
class RowSums {
 public:
  explicit RowSums(Id columns)
      : columns_(columns), slot_(buffer<Id>(columns)), column_(buffer<Id>(int64_t(columns) + 8)),
        sum_(buffer<Wide<T>>(int64_t(columns) + 1)), words_((size_t(columns) >> 6) + 1, 0) {
    std::fill(slot_.get(), slot_.get() + columns, -1);
  }

  void open() {  // slots of earlier rows are below `base_`
    base_ += count_, count_ = 0;
    if (base_ <= 0x7fffffff - columns_) return;
    std::fill(slot_.get(), slot_.get() + columns_, -1);
    base_ = 0;
  }
  // products(add) calls add(column, product) for all of the row. State is in registers meanwhile.
  template <class Add, class Products>
  void collect(const Products& products) {
    Id *__restrict slot = slot_.get(), *__restrict column = column_.get();
    Wide<T>* __restrict sum = sum_.get();
    const Id base = base_;
    Id count = 0;
    products([&](Id j, T product) {
      const Id seen = slot[j] - base;
      const Id p = seen < 0 ? count : seen;
      slot[j] = base + p;
      column[p] = j;
      sum[p] = Add::template apply<Wide<T>>(seen < 0 ? Wide<T>(Add::template identity<T>()) : sum[p], Wide<T>(product));
      count += seen < 0;
    });
    count_ = count;
  }
  Id size() const { return count_; }

  // Writes the first `most` columns in order and their sums.
  __attribute__((noinline)) void write(Id most, Id* idx, T* value) {
    if (count_ <= kRanked) return by_rank(most, idx, value);
    const Id* list = ordered();
    for (Id c = 0; c < most; ++c) idx[c] = list[c], value[c] = T(sum_[slot_[list[c]] - base_]);
  }

 private:
  static constexpr Id kRanked = 96;  // columns; more are cheaper to sort

  // A column's place is the number of smaller ones: no branch depends on them.
  void by_rank(Id most, Id* idx, T* value) {
    typedef Id Eight __attribute__((vector_size(32)));
    const Id* column = column_.get();
    Id place[kRanked];
    for (Id c = 0; c < count_; c += 8) {
      Eight these, rank = {};
      std::memcpy(&these, column + c, sizeof these);
      for (Id k = 0; k < count_; ++k) rank -= column[k] < these;
      std::memcpy(place + c, &rank, sizeof rank);
    }
    for (Id c = 0; c < count_; ++c)
      if (place[c] < most) idx[place[c]] = column[c], value[place[c]] = T(sum_[c]);
  }

  // Read off bits where the columns lie close to each other, else sorted.
  const Id* ordered() {
    constexpr Id kClose = 16;  // words a column that cost as much as to sort it
    Id *list = column_.get(), least = list[0], most = list[0];
    for (Id c = 1; c < count_; ++c) least = std::min(least, list[c]), most = std::max(most, list[c]);
    const Id first = least >> 6, last = most >> 6;
    if (last - first > int64_t(kClose) * count_) {
      std::sort(list, list + count_);
      return list;
    }
    for (Id c = 0; c < count_; ++c) words_[list[c] >> 6] |= uint64_t(1) << (list[c] & 63);
    for (Id w = first; w <= last; ++w) {
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1) *list++ = w << 6 | Id(__builtin_ctzll(bits));
      words_[w] = 0;
    }
    return column_.get();
  }

  Id columns_;
  std::unique_ptr<Id[]> slot_, column_;  // of a column, + base_; of a slot
  std::unique_ptr<Wide<T>[]> sum_;
  std::vector<uint64_t> words_;
  Id base_ = 0, count_ = 0;
};

// Places that a product may have, unless a mask lists them: all, or those of neither a sparse
// matrix, nor zeros (or with `complement` ones) of a dense one.
struct Allowed {
  const Matrix* without = nullptr;  // sparse: places that are not allowed, where `holds` is not false
  const uint8_t* holds = nullptr;   // of the entries; null: all
  const uint8_t* dense = nullptr;   // (m, n)
  bool complement = false;       // of `dense`
  bool everything() const { return !without && !dense; }
};

// Which columns the mask allows, for one row after the other.
class Filter {
 public:
  Filter(const Allowed& allowed, Id columns)
      : allowed_(allowed), columns_(columns), row_(allowed.without ? columns : 0, -1) {}
  void open(Id i) {
    i_ = i;
    if (!allowed_.without) return;
    const Matrix& m = *allowed_.without;
    for (Id e = m.ptr[i]; e < m.ptr[i + 1]; ++e)
      if (!allowed_.holds || allowed_.holds[e]) row_[m.idx[e]] = i;
  }
  bool operator()(Id j) const {
    if (allowed_.without) return row_[j] != i_;
    return allowed_.dense[int64_t(i_) * columns_ + j] != uint8_t(allowed_.complement);
  }

 private:
  Allowed allowed_;
  Id columns_, i_ = -1;
  std::vector<Id> row_;
};

// Entry e of A is multiplied now: rows of B that come soon are fetched.
template <class T>
void fetch_rows(const Matrix& a, const Matrix& b, const T* values, Id e) {
  const Id last = a.ptr[a.rows] - 1;
  __builtin_prefetch(b.ptr + a.idx[std::min(e + 16, last)]);
  const Id begin = b.ptr[a.idx[std::min(e + 8, last)]];
  __builtin_prefetch(b.idx + begin);
  __builtin_prefetch(values + begin);
}

// Entries of rows [begin, end) of A B: `row(entries)` after each.
template <class Row>
void count_rows(const Matrix& a, const Matrix& b, const Allowed& allowed, Id begin, Id end,
                const Row& row) {
  std::vector<Id> stamp(b.columns, -1);
  Filter may(allowed, b.columns);
  const bool all = allowed.everything();
  for (Id i = begin; i < end; ++i) {
    may.open(i);
    Id count = 0;
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      fetch_rows(a, b, b.idx, e);
      const Id k = a.idx[e];
      for (Id f = b.ptr[k]; f < b.ptr[k + 1]; ++f) {
        const Id j = b.idx[f];
        if (!all && !may(j)) continue;
        count += stamp[j] != i;
        stamp[j] = i;
      }
    }
    row(count);
  }
}

// The entries of A B.
template <class Team>
int64_t count_product(Team& team, const Matrix& a, const Matrix& b, const Allowed& allowed) {
  std::atomic<int64_t> total{0};
  team.blocks(a.rows, std::max<int64_t>(1024, a.rows / (8 * team.size())),
              [&](int64_t begin, int64_t end, int) {
    int64_t mine = 0;
    count_rows(a, b, allowed, Id(begin), Id(end), [&](Id count) { mine += count; });
    total += mine;
  });
  return total;
}

// Values of one factor's rows, and what a product is joined by: one function for each semiring, so
// that all else is compiled once a dtype.
template <class T>
struct Terms {
  const T *x, *y;  // of the entries of A and of B
  T identity;
  void (*row)(const Terms&, const Matrix& a, const Matrix& b, Id i, const Filter*, RowSums<T>&);
  void (*marked)(const Terms&, const Matrix& a, const Matrix& b, Id i, const Id* mark, Wide<T>* sum, char* hit);
};

template <class Add, class Mul, class T>
Terms<T> terms(const T* x, const T* y) {
  auto row = [](const Terms<T>& terms, const Matrix& a, const Matrix& b, Id i, const Filter* may,
                RowSums<T>& sums) {
    sums.template collect<Add>([&, values = terms.y](const auto& add) {
      for (Id e = a.ptr[i], end = a.ptr[i + 1]; e < end; ++e) {
        fetch_rows(a, b, values, e);
        const T factor = terms.x[e];
        const Id *const idx = b.idx, k = a.idx[e];
        for (Id f = b.ptr[k], stop = b.ptr[k + 1]; f < stop; ++f)
          if (!may || (*may)(idx[f])) add(idx[f], Mul::template apply<T>(factor, values[f]));
      }
    });
  };
  auto marked = [](const Terms<T>& terms, const Matrix& a, const Matrix& b, Id i, const Id* mark, Wide<T>* sum,
                   char* hit) {
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      const T factor = terms.x[e];
      const Id k = a.idx[e];
      for (Id f = b.ptr[k]; f < b.ptr[k + 1]; ++f) {
        const Id p = mark[b.idx[f]];
        if (p < 0) continue;
        sum[p] = Add::template apply<Wide<T>>(sum[p], Mul::template apply<T>(factor, terms.y[f]));
        hit[p] = 1;
      }
    }
  };
  return {x, y, Add::template identity<T>(), row, marked};
}

// C = A B in a capacity of `nse` entries; returns their number. Row i begins at ptr[i], at `nse` at
// most. With more than one thread the entries are counted first.
template <class T, class Team>
int64_t multiply(Team& team, const Matrix& a, const Matrix& b, const Terms<T>& terms,
                 const Allowed& allowed, int64_t nse, Id* ptr, Id* idx, T* value) {
  const Id columns = b.columns;
  auto rows = [&](Id begin, Id end, int64_t top) {
    RowSums<T> sums(columns);
    Filter may(allowed, columns);
    const Filter* filter = allowed.everything() ? nullptr : &may;
    for (Id i = begin; i < end; ++i) {
      may.open(i);
      sums.open();
      terms.row(terms, a, b, i, filter, sums);
      if (top < nse) sums.write(Id(std::min<int64_t>(sums.size(), nse - top)), idx + top, value + top);
      top += sums.size();
      ptr[i + 1] = Id(std::min(top, nse));
    }
    return top;
  };
  ptr[0] = 0;
  int64_t total = 0;
  if (team.size() == 1 || a.rows < 2048) {
    total = rows(0, a.rows, 0);
  } else {
    const int64_t block = std::max<int64_t>(1024, a.rows / (8 * team.size()));
    auto begins = buffer<int64_t>(a.rows / block + 2);
    team.blocks(a.rows, block, [&](int64_t begin, int64_t end, int) {
      int64_t mine = 0;
      count_rows(a, b, allowed, Id(begin), Id(end), [&](Id count) { mine += count; });
      begins[begin / block] = mine;
    });
    for (int64_t p = 0; p * block < a.rows; ++p) {
      const int64_t mine = begins[p];
      begins[p] = total;
      total += mine;
    }
    team.blocks(a.rows, block, [&](int64_t begin, int64_t end, int) {
      rows(Id(begin), Id(end), begins[begin / block]);
    });
  }
  const int64_t end = std::min(total, nse);
  std::fill(idx + end, idx + nse, columns);
  std::fill(value + end, value + nse, T(0));
  return total;
}

// C = A B at the places that a mask lists, where `holds` (null: all): its columns are marked by
// their slots, products are joined in the cells of the slots, and those that were hit are written.
template <class T, class Team>
int64_t multiply_where(Team& team, const Matrix& a, const Matrix& b, const Terms<T>& terms,
                       const Matrix& mask, const uint8_t* holds, int64_t nse, Id* ptr, Id* idx, T* value) {
  const int64_t places = mask.ptr[mask.rows];
  auto sum = buffer<Wide<T>>(places);
  auto hit = buffer<char>(places);
  std::fill(sum.get(), sum.get() + places, terms.identity);
  std::fill(hit.get(), hit.get() + places, 0);
  team.blocks(a.rows, std::max<int64_t>(1024, a.rows / (8 * team.size())),
              [&](int64_t begin, int64_t end, int) {
    std::vector<Id> mark(b.columns, -1);
    for (Id i = Id(begin); i < end; ++i) {
      const Id low = mask.ptr[i], high = mask.ptr[i + 1];
      if (low == high) continue;
      for (Id p = low; p < high; ++p)
        if (!holds || holds[p]) mark[mask.idx[p]] = p;
      terms.marked(terms, a, b, i, mark.data(), sum.get(), hit.get());
      for (Id p = low; p < high; ++p) mark[mask.idx[p]] = -1;
    }
  });
  int64_t top = 0;
  ptr[0] = 0;
  for (Id i = 0; i < a.rows; ++i) {
    for (Id p = mask.ptr[i]; p < mask.ptr[i + 1]; ++p) {
      if (!hit[p]) continue;
      if (top < nse) idx[top] = mask.idx[p], value[top] = T(sum[p]);
      ++top;
    }
    ptr[i + 1] = Id(std::min(top, nse));
  }
  const int64_t end = std::min(top, nse);
  std::fill(idx + end, idx + nse, b.columns);
  std::fill(value + end, value + nse, T(0));
  return top;
}

}  // namespace jaxspv
