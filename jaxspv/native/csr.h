// Views of compressed sparse rows over operands that are not checked.
//
// The bounds of every row are clamped to the arrays, so any bytes are safe to iterate over. Indices
// are not: a loop either skips the entries that `holds` refuses or clamps by `column`.
#pragma once
#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#if defined(__linux__)
#include <sys/mman.h>
#endif

#include "parallel.h"

namespace jaxspv {

#if defined(__AVX2__)
constexpr int kVector = 32;  // bytes that a processor takes together
#else
constexpr int kVector = 16;
#endif

using Id = int32_t;

struct Matrix {
  using Unsigned = uint32_t;
  Id rows, columns;
  Id slots;  // length of `idx`; those from ptr[rows] on are padding
  const Id *ptr, *idx;

  Id begin(Id row) const { return Id(std::min(Unsigned(ptr[row]), Unsigned(slots))); }
  Id end(Id row) const { return begin(row + 1); }
  Id degree(Id row) const { return std::max(Id(0), Id(end(row) - begin(row))); }
  Id entries() const { return rows ? end(rows - 1) : 0; }
  // Whether the bounds of rows [first, last) ascend inside of the arrays, and so need no clamping.
  bool ascends(Id first, Id last) const {
    Unsigned bad = Unsigned(ptr[last]) | Unsigned(slots - std::max(Id(0), ptr[last]));
    for (Id i = first; i < last; ++i) bad |= Unsigned(ptr[i]) | (Unsigned(ptr[i + 1]) - Unsigned(ptr[i]));
    return Id(bad) >= 0;  // no sign bit was set
  }
  // Whether the indices of entries [first, last) are all columns.
  bool all_columns(Id first, Id last) const {
    Unsigned bad = 0;
    for (Id e = first; e < last; ++e) bad |= Unsigned(idx[e]) | (Unsigned(columns - 1) - Unsigned(idx[e]));
    return Id(bad) >= 0;
  }
  bool holds(Id column) const { return Unsigned(column) < Unsigned(columns); }
  // The column of an entry, the last one for an index out of range; `columns` > 0.
  Id column(Id entry) const { return Id(std::min(Unsigned(idx[entry]), Unsigned(columns - 1))); }
};

// The first row of piece `piece` of `pieces`, which have about equal rows + entries.
inline Id first_row(const Matrix& a, int64_t piece, int64_t pieces) {
  if (piece >= pieces) return a.rows;
  const int64_t target = (int64_t(a.entries()) + a.rows) / pieces * piece;
  Id low = 0, high = a.rows;
  while (low < high) {
    const Id middle = low + (high - low) / 2;
    if (int64_t(a.begin(middle)) + middle < target) low = middle + 1;
    else high = middle;
  }
  return low;
}

// work(first, last, member) over pieces of rows of about equal work.
template <class F>
void over_rows(Team& team, const Matrix& a, const F& work) {
  const int64_t total = int64_t(a.entries()) + a.rows;
  const int64_t most = team.size() == 1 ? 1 : 4 * team.size();
  const int64_t pieces = std::max<int64_t>(1, std::min(most, total / 16384));
  team.each(pieces, [&](int64_t p, int member) {
    // Broken bounds make no order of rows; the pieces still cover each row at least once.
    work(first_row(a, p, pieces), first_row(a, p + 1, pieces), member);
  });
}

#define JAXSPV_INLINE __attribute__((always_inline))

// each(entry, of[row]) for the entries of rows [first, last), in order. Short rows first write theirs
// to each of their entries, some rows at a time: no branch depends on the length of a row.
template <class Of, class F>
void over_entries(const Matrix& a, Id first, Id last, const Of& of, const F& each) {
  constexpr Id kRows = 64, kMean = 16, kStep = 8;
  std::decay_t<decltype(of[Id(0)])> spread[kRows * kMean + kStep];
  for (Id i = first, stop; i < last; i = stop) {
    stop = i + std::min(kRows, Id(last - i));
    if (a.ascends(i, stop) && a.ptr[stop] - a.ptr[i] <= kMean * (stop - i)) {
      const Id base = a.ptr[i], count = a.ptr[stop] - base;
      for (Id r = i; r < stop; ++r)
        for (Id k = a.ptr[r] - base; k < a.ptr[r + 1] - base; k += kStep) std::fill_n(spread + k, kStep, of[r]);
      for (Id k = 0; k < count; ++k) each(base + k, spread[k]);
    } else {
      for (Id r = i; r < stop; ++r) {
        const auto own = of[r];
        for (Id e = a.begin(r), end = a.end(r); e < end; ++e) each(e, own);
      }
    }
  }
}
struct Numbers {  // 0, 1, 2, ...
  Id operator[](Id i) const { return i; }
};

// Asks for pages of 2 MiB under memory that is about to be written: far fewer page faults. What
// lies around it stays as it is.
inline void advise_large_pages([[maybe_unused]] void* data, [[maybe_unused]] size_t bytes) {
#if defined(__linux__)
  constexpr uintptr_t kPage = uintptr_t(2) << 20;
  const uintptr_t first = (uintptr_t(data) + kPage - 1) & ~(kPage - 1), end = (uintptr_t(data) + bytes) & ~(kPage - 1);
  if (first < end) madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE);
#endif
}

template <class T>
std::unique_ptr<T[]> buffer(int64_t n) {  // not initialised
  auto made = std::unique_ptr<T[]>(new T[n > 0 ? n : 1]);
  advise_large_pages(made.get(), n * sizeof(T));
  return made;
}

inline bool test(const uint64_t* bits, int64_t i) { return bits[i >> 6] >> (i & 63) & 1; }
inline void set(uint64_t* bits, int64_t i) { bits[i >> 6] |= uint64_t(1) << (i & 63); }

}  // namespace jaxspv
