// Sparse times sparse, row by row, rows of the result in order. Gustavson, "Two fast algorithms for
// sparse matrices: multiplication and permuted transposition", ACM TOMS 4 (3), 1978.
#pragma once
#include <atomic>
#include <vector>

#include "row_sums.h"

namespace jaxspv {

// The products of entries of A behind each other; of the last one some may be left.
template <class T>
struct Products {
  static constexpr Id kMost = 512;
  Id next = 0, skip = 0, count = 0;  // the next entry, how much of its row of B is done; products
  Id start[kMost + 1];               // of an entry of A
  Id column[kMost + 32];
  T value[kMost + 32];
};

// A mask of places: all for null, else those that it does not list, or in `multiply_where` those that it does.
struct Allowed {
  const Matrix* mask = nullptr;
  const uint8_t* holds = nullptr;  // which entries of the mask count; null: all
};

// Which columns are allowed, for one row after the other.
class Filter {
 public:
  Filter(const Allowed& allowed, Id columns) : allowed_(allowed), row_(allowed.mask ? columns : 0, -1) {}
  // Moves the products of row i that are allowed to the front; their number.
  template <class T>
  Id keep(Id i, Id* column, T* value, Id count) {
    const Matrix* const m = allowed_.mask;
    if (!m) return count;
    for (Id e = m->ptr[i]; e < m->ptr[i + 1]; ++e)
      if (!allowed_.holds || allowed_.holds[e]) row_[m->idx[e]] = i;
    Id kept = 0;
    for (Id c = 0; c < count; ++c) {
      const Id j = column[c];
      column[kept] = j, value[kept] = value[c];
      kept += row_[j] != i;
    }
    return kept;
  }

 private:
  Allowed allowed_;
  std::vector<Id> row_;  // the last one in which a column is not allowed
};

// What products are made of and joined by: functions, so that all else is compiled once a dtype.
template <class T>
struct Terms {
  const T *x, *y;  // of the entries of A and of B
  T none;          // the sum of no products
  void (*expand)(const Terms&, const Matrix& a, const Matrix& b, Id last, Products<T>&);
  void (*join)(RowSums<T>&, const Id* column, const T* value, Id count);
  void (*join_times)(RowSums<T>&, T factor, const Id* column, const T* value, Id count);
  Id (*few)(const Id* column, const T* value, Id count, Id most, Id* idx, T* sum);
  void (*marked)(const Id* mark, const Id* column, const T* value, Id count, Wide<T>* sum, char* hit);
};

// Eight products; columns and values behind them are spare.
template <class Mul, class T>
void times_eight(T factor, const Id* __restrict idx, const T* __restrict y, Id* __restrict column,
                 T* __restrict value) {
  std::memcpy(column, idx, 8 * sizeof(Id));
  for (int g = 0; g < 8; ++g) value[g] = Mul::template apply<T>(factor, y[g]);
}

// The products of entries from `out.next` on, up to `last` at most.
template <class Mul, class T>
void expand(const Terms<T>& terms, const Matrix& a, const Matrix& b, Id last, Products<T>& out) {
  const Id *const ptr = b.ptr, *const rows = a.idx, first = out.next, end = a.ptr[a.rows] - 1;
  last = Id(std::min<int64_t>(last, int64_t(first) + Products<T>::kMost));
  Id n = 0, e = first, skip = out.skip;
  for (; e < last; ++e) {
    __builtin_prefetch(ptr + rows[std::min(e + 24, end)] + 1);  // rows of B that come soon
    const Id soon = ptr[rows[std::min(e + 12, end)]];
    __builtin_prefetch(b.idx + soon), __builtin_prefetch(b.idx + soon + 15);  // they may lie in two lines
    __builtin_prefetch(terms.y + soon), __builtin_prefetch(terms.y + soon + 64 / sizeof(T) - 1);
    const T factor = terms.x[e];
    const Id k = rows[e], f = ptr[k] + skip, left = ptr[k + 1] - f, count = std::min(left, Products<T>::kMost - n);
    out.start[e - first] = n;
    if (f + int64_t(count) + 8 <= b.slots) {
      for (Id g = 0; g < count; g += 8)
        times_eight<Mul>(factor, b.idx + f + g, terms.y + f + g, out.column + n + g, out.value + n + g);
    } else {
      _Pragma("GCC unroll 1") for (Id g = 0; g < count; ++g)
        out.column[n + g] = b.idx[f + g], out.value[n + g] = Mul::template apply<T>(factor, terms.y[f + g]);
    }
    n += count;
    skip = count < left ? skip + count : 0;
    if (count < left) break;
  }
  if (e == last) out.start[e - first] = n;
  out.next = e, out.skip = skip, out.count = n;
}

// visit(i, column, value, count, whole, few) for rows [begin, end) in order: their products that are
// allowed, of a long row in parts, of which the last one makes it whole; few: at most kFew with those
// that are not allowed, which does not depend on the threads. `visit` may bring `end` nearer.
template <class T, class Visit>
void each_row(const Terms<T>& terms, const Matrix& a, const Matrix& b, const Allowed& allowed, Id begin,
              const Id& end, const Visit& visit) {
  Filter filter(allowed, b.columns);
  Products<T> p;
  p.next = a.ptr[begin];
  bool begun = false;  // a part of the row was visited
  for (Id i = begin; i < end;) {
    const Id first = p.next;
    terms.expand(terms, a, b, a.ptr[end], p);
    for (bool whole = true; whole && i < end; i += whole) {
      const Id low = std::max(a.ptr[i], first), high = a.ptr[i + 1], from = p.start[low - first];
      whole = high <= p.next;
      const Id count = (whole ? p.start[high - first] : p.count) - from;
      if (!whole && low > first && count <= kFew) {  // it may have few: again from its beginning
        p.next = low, p.skip = 0;
        break;
      }
      const Id kept = filter.keep(i, p.column + from, p.value + from, count);
      visit(i, p.column + from, p.value + from, kept, whole, whole && !begun && count <= kFew);
      begun = !whole;
    }
  }
}

// The first entry of A B in each block of rows, and behind them the number of all. Where these are more
// than `most` it counts no further: the square of a star has as many as there are pairs of vertices.
inline std::vector<int64_t> begins(Team& team, const Matrix& a, const Matrix& b, const Allowed& allowed, int64_t block,
                                   int64_t most = INT64_MAX) {
  std::vector<int64_t> count(a.rows / block + 2, 0);
  std::atomic<int64_t> all{0};
  team.blocks(a.rows, block, [&](int64_t begin, int64_t end, int) {
    if (all > most) return;
    std::vector<Id> stamp(b.columns, -1);
    int64_t mine = 0;
    Id stop = Id(end);
    const Terms<Id> terms{a.idx, b.idx, 0, expand<First, Id>, nullptr, nullptr, nullptr, nullptr};
    each_row(terms, a, b, allowed, Id(begin), stop, [&](Id i, const Id* column, const Id*, Id n, bool, bool) {
      for (Id c = 0; c < n; ++c) mine += stamp[column[c]] != i, stamp[column[c]] = i;
      if (mine > most) stop = i;
    });
    count[begin / block + 1] = mine;
    all += mine;
  });
  for (size_t p = 1; p < count.size(); ++p) count[p] += count[p - 1];
  return count;
}

inline int64_t rows_in_block(const Team& team, const Matrix& a) {
  return std::max<int64_t>(1024, a.rows / (8 * team.size()));
}

// The entries of A B.
inline int64_t count_product(Team& team, const Matrix& a, const Matrix& b, const Allowed& allowed) {
  return begins(team, a, b, allowed, rows_in_block(team, a), INT32_MAX).back();
}

template <class Add, class Mul, class T>
Terms<T> terms(const T* x, const T* y) {
  auto join = [](RowSums<T>& sums, const Id* column, const T* value, Id n) {
    sums.template join<Add>(column, n, [=](Id k) { return value[k]; });
  };
  auto join_times = [](RowSums<T>& sums, T factor, const Id* column, const T* value, Id n) {
    sums.template join<Add>(column, n, [=](Id k) { return Mul::template apply<T>(factor, value[k]); });
  };
  auto marked = [](const Id* mark, const Id* column, const T* value, Id n, Wide<T>* sum, char* hit) {
    for (Id c = 0; c < n; ++c) {
      const Id p = mark[column[c]];
      if (p < 0) continue;
      sum[p] = Add::template apply<Wide<T>>(sum[p], Wide<T>(value[c]));
      hit[p] = 1;
    }
  };
  return {x, y, Add::template identity<T>(), expand<Mul, T>, join, join_times, sums_of_few<Add, T>, marked};
}

// Fills the capacity behind the entries.
template <class T>
int64_t padded(int64_t entries, int64_t nse, Id columns, Id* idx, T* value) {
  const int64_t end = std::min(entries, nse);
  std::fill(idx + end, idx + nse, columns);
  std::fill(value + end, value + nse, T(0));
  return entries;
}

constexpr Id kLong = 16;  // the mean length of rows of B from which on they are joined where they lie

// C = A B in a capacity of `nse` entries; returns their number. Row i begins at ptr[i], at `nse` at
// most. With more than one thread the entries are counted first.
template <class T>
int64_t multiply(Team& team, const Matrix& a, const Matrix& b, const Terms<T>& terms,
                 const Allowed& allowed, int64_t nse, Id* ptr, Id* idx, T* value) {
  const Id columns = b.columns, last = a.ptr[a.rows] - 1;
  const bool apart = !allowed.mask && b.ptr[b.rows] >= kLong * int64_t(b.rows);
  auto rows = [&](Id begin, Id end, int64_t top) {
    RowSums<T> sums(columns, terms.none);
    auto most = [&] { return Id(std::max<int64_t>(0, std::min<int64_t>(columns, nse - top))); };
    auto row = [&](Id i, const Id* column, const T* product, Id count, bool whole, bool few) {
      if (few) top += terms.few(column, product, count, most(), idx + top, value + top);
      else terms.join(sums, column, product, count);
      if (whole && !few) top += sums.write(most(), idx + top, value + top);
      if (whole) ptr[i + 1] = Id(std::min(top, nse));
    };
    if (!apart) each_row(terms, a, b, allowed, begin, end, row);
    for (Id i = begin; apart && i < end; ++i) {
      for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
        const Id f = b.ptr[a.idx[e]], soon = b.ptr[a.idx[std::min(e + 4, last)]];
        __builtin_prefetch(b.idx + soon), __builtin_prefetch(terms.y + soon);
        terms.join_times(sums, terms.x[e], b.idx + f, terms.y + f, degree(b, a.idx[e]));
      }
      row(i, nullptr, nullptr, 0, true, false);
    }
    return top;
  };
  ptr[0] = 0;
  if (team.size() == 1 || a.rows < 2048) return padded(rows(0, a.rows, 0), nse, columns, idx, value);
  const int64_t block = rows_in_block(team, a);
  const auto first = begins(team, a, b, allowed, block);
  team.blocks(a.rows, block, [&](int64_t begin, int64_t end, int) {
    rows(Id(begin), Id(end), first[begin / block]);
  });
  return padded(first.back(), nse, columns, idx, value);
}

// C = A B at the places that the mask lists: its columns are marked by
// their slots, products are joined in the cells of the slots, and those that were hit are written.
template <class T>
int64_t multiply_where(Team& team, const Matrix& a, const Matrix& b, const Terms<T>& terms,
                       const Allowed& listed, int64_t nse, Id* ptr, Id* idx, T* value) {
  const Matrix& mask = *listed.mask;
  const int64_t places = mask.ptr[mask.rows];
  auto sum = buffer<Wide<T>>(places);
  auto hit = buffer<char>(places);
  std::fill(sum.get(), sum.get() + places, terms.none);
  std::fill(hit.get(), hit.get() + places, 0);
  team.blocks(a.rows, rows_in_block(team, a), [&](int64_t begin, int64_t end, int) {
    std::vector<Id> mark(b.columns, -1);
    bool open = true;
    auto row = [&](Id i, const Id* column, const T* product, Id count, bool whole, bool) {
      for (Id p = mask.ptr[i]; open && p < mask.ptr[i + 1]; ++p)
        if (!listed.holds || listed.holds[p]) mark[mask.idx[p]] = p;
      terms.marked(mark.data(), column, product, count, sum.get(), hit.get());
      for (Id p = mask.ptr[i]; whole && p < mask.ptr[i + 1]; ++p) mark[mask.idx[p]] = -1;
      open = whole;
    };
    for (Id i = Id(begin), stop; i < end; i = stop + 1) {  // rows without a place are passed over
      for (stop = i; stop < end && degree(mask, stop);) ++stop;
      each_row(terms, a, b, Allowed{}, i, stop, row);
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
  return padded(top, nse, b.columns, idx, value);
}

}  // namespace jaxspv
