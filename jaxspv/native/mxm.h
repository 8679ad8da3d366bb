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

// The columns of a row: each is stamped with the row, and listed when it comes first.
class ColumnSet {
 public:
  explicit ColumnSet(Id columns)
      : stamp_(columns, -1), list_(buffer<Id>(int64_t(columns) + 1)),
        words_((size_t(columns) >> 6) + 1, 0) {}

  void open(Id row) { row_ = row, count_ = 0; }
  void insert(Id j) {
    list_[count_] = j;  // stays if it is new
    count_ += stamp_[j] != row_;
    stamp_[j] = row_;
  }
  Id size() const { return count_; }

  // The columns in order: read off bits where they lie close to each other, else sorted.
  __attribute__((noinline)) const Id* ordered() {
    constexpr Id kClose = 16;  // words a column that cost as much as to sort it
    Id *list = list_.get(), least = list[0], most = list[0];
    for (Id c = 1; c < count_; ++c) least = std::min(least, list[c]), most = std::max(most, list[c]);
    const Id first = least >> 6, last = most >> 6;
    if (count_ < 8 || last - first > int64_t(kClose) * count_) {
      std::sort(list, list + count_);
      return list;
    }
    for (Id c = 0; c < count_; ++c) words_[list[c] >> 6] |= uint64_t(1) << (list[c] & 63);
    for (Id w = first; w <= last; ++w) {
      for (uint64_t bits = words_[w]; bits; bits &= bits - 1) *list++ = w << 6 | Id(__builtin_ctzll(bits));
      words_[w] = 0;
    }
    return list_.get();
  }

 private:
  std::vector<Id> stamp_;
  std::unique_ptr<Id[]> list_;
  std::vector<uint64_t> words_;
  Id row_ = -1, count_ = 0;
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

// What products are joined in: float32 in double, so that long sums are exact to a few units.
template <class T>
using Wide = Plus::Sum<T>;

// Values of one factor's rows, and what a product is joined by: one function for each semiring, so
// that all else is compiled once a dtype.
template <class T>
struct Terms {
  const T *x, *y;  // of the entries of A and of B
  T identity;
  void (*row)(const Terms&, const Matrix& a, const Matrix& b, Id i, const Filter*, ColumnSet&, Wide<T>* sum);
  void (*marked)(const Terms&, const Matrix& a, const Matrix& b, Id i, const Id* mark, Wide<T>* sum, char* hit);
};

template <class Add, class Mul, class T>
Terms<T> terms(const T* x, const T* y) {
  auto row = [](const Terms<T>& terms, const Matrix& a, const Matrix& b, Id i, const Filter* may,
                ColumnSet& set, Wide<T>* sum) {
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      const T factor = terms.x[e];
      const Id k = a.idx[e];
      for (Id f = b.ptr[k]; f < b.ptr[k + 1]; ++f) {
        const Id j = b.idx[f];
        if (may && !(*may)(j)) continue;
        sum[j] = Add::template apply<Wide<T>>(sum[j], Mul::template apply<T>(factor, terms.y[f]));
        set.insert(j);
      }
    }
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
    ColumnSet set(columns);
    Filter may(allowed, columns);
    const Filter* filter = allowed.everything() ? nullptr : &may;
    auto sum = buffer<Wide<T>>(columns);
    std::fill(sum.get(), sum.get() + columns, terms.identity);
    for (Id i = begin; i < end; ++i) {
      may.open(i);
      set.open(i);
      terms.row(terms, a, b, i, filter, set, sum.get());
      if (const Id count = set.size()) {
        const Id* found = set.ordered();
        const int64_t kept = std::max<int64_t>(0, std::min<int64_t>(count, nse - top));
        for (Id c = 0; c < kept; ++c) {
          idx[top + c] = found[c];
          value[top + c] = T(sum[found[c]]);
        }
        for (Id c = 0; c < count; ++c) sum[found[c]] = terms.identity;
        top += count;
      }
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
