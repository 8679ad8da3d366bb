// Sparse matrix times dense vector over a semiring: y[i] = add over j of mul(A[i, j], x[j]).
#pragma once
#include <cstring>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

// Rows [first, last) of any bounds and indices, which are clamped to the arrays.
template <class Add, class Mul, class T>
void spmv_rows(const Matrix& a, const T* values, const T* x, T* y, Id first, Id last) {
  for (Id i = first; i < last; ++i) {
    typename Add::template Fold<T> fold;
    for (Id e = a.begin(i), end = a.end(i); e < end; ++e) fold.add(Mul::template apply<T>(values[e], x[a.column(e)]));
    y[i] = fold.result();
  }
}

// Sums and extremes of floats, four entries a step.
template <class Add, class Mul, class T>
constexpr bool in_lanes() {
  return std::is_floating_point_v<T> && !std::is_same_v<Mul, Pair> && !std::is_same_v<Mul, Lower> &&
         !std::is_same_v<Mul, Upper>;
}

template <class Add, class V>
V joined(V a, V b) {  // for NaN see `spmv_lanes`
  if constexpr (std::is_same_v<Add, Plus>) return a + b;
  else if constexpr (std::is_same_v<Add, Min>) return b < a ? b : a;
  else return a < b ? b : a;
}

template <class T>
struct Four {
  using Int = std::conditional_t<sizeof(T) == 4, int32_t, int64_t>;
  typedef T Vector __attribute__((vector_size(4 * sizeof(T))));
  typedef Int Mask __attribute__((vector_size(4 * sizeof(T))));
  typedef uint32_t Columns __attribute__((vector_size(16)));
  typedef uint64_t Pairs __attribute__((vector_size(16)));
  static Columns last_column(const Matrix& a) {
    const uint32_t last = uint32_t(a.columns - 1);
    return Columns{last, last, last, last};
  }
  // Of four entries; columns out of range are clamped, for less than a check costs.
  template <class Mul>
  static Vector terms(const T* values, const Id* idx, const T* x, Columns last) {
    Vector factors;
    Columns at;
    std::memcpy(&factors, values, sizeof factors);
    std::memcpy(&at, idx, sizeof at);
    at = at < last ? at : last;
    const uint64_t low = ((Pairs)at)[0], high = ((Pairs)at)[1];
    return Mul::template apply<Vector>(
        factors, Vector{x[uint32_t(low)], x[low >> 32], x[uint32_t(high)], x[high >> 32]});
  }
  template <class Mul>
  static T term(T value, Id column, const T* x, Columns last) {
    return Mul::template apply<T>(value, x[std::min(uint32_t(column), last[0])]);
  }
  // The first `count` of four terms; the identity in place of the rest.
  template <class Add>
  static Vector first(Vector term, Int count) {
    const T zero = Add::template identity<T>();
    const Mask inside = Mask{0, 1, 2, 3} < count;
    if constexpr (std::is_same_v<Add, Plus>) return (Vector)((Mask)term & inside);
    else return inside ? term : Vector{zero, zero, zero, zero};
  }
  template <class Add>
  static T all(Vector v) {
    return joined<Add, T>(joined<Add, T>(v[0], v[2]), joined<Add, T>(v[1], v[3]));
  }
  // The same of four vectors.
  template <class Add>
  static Vector all(Vector a, Vector b, Vector c, Vector d) {
    auto halves = [](Vector a, Vector b) {
      return joined<Add>(Vector{a[0], b[0], a[1], b[1]}, Vector{a[2], b[2], a[3], b[3]});
    };
    const Vector one = halves(a, b), other = halves(c, d);
    return joined<Add>(Vector{one[0], one[1], other[0], other[1]}, Vector{one[2], one[3], other[2], other[3]});
  }
};

// One row of any length; of float32, sums of eight terms are added up in double.
template <class Add, class Mul, class T>
__attribute__((noinline)) T spmv_row(const T* values, const Id* idx, const T* x, Id count,
                                     typename Four<T>::Columns last) {
  using Sum = typename Add::template Sum<T>;
  typedef Sum Sums __attribute__((vector_size(4 * sizeof(Sum))));
  using Vector = typename Four<T>::Vector;
  auto terms = [&](Id e) { return Four<T>::template terms<Mul>(values + e, idx + e, x, last); };
  auto term = [&](Id e) { return Four<T>::template term<Mul>(values[e], idx[e], x, last); };
  const Sum zero = Sum(Add::template identity<T>());
  Sums some = {zero, zero, zero, zero}, nan = {};
  Id e = 0;
  for (Id stop; e + 4 <= count;) {
    Vector part = terms(e), odd = part;
    for (stop = std::min(Id(e + 32), Id(count & ~Id(3))), e += 4; e < stop; e += 4) {
      const Vector more = terms(e);
      part = joined<Add>(part, more);
      if constexpr (!std::is_same_v<Add, Plus>) odd += more;
    }
    some = joined<Add>(some, __builtin_convertvector(part, Sums));
    if constexpr (!std::is_same_v<Add, Plus>) nan += odd;
  }
  Sum all = joined<Add, Sum>(joined<Add, Sum>(some[0], some[2]), joined<Add, Sum>(some[1], some[3]));
  if constexpr (std::is_same_v<Add, Plus>) {
    for (; e < count; ++e) all += Sum(term(e));
    return T(all);
  } else {
    typename Add::template Fold<T> fold;
    const Sum any = nan[0] + nan[1] + nan[2] + nan[3];
    if (any != any) e = 0;  // from the beginning, as `joined` loses NaN
    else fold.add(all);
    for (; e < count; ++e) fold.add(term(e));
    return fold.result();
  }
}

// Rows [first, last) that ascend: eight entries a step, of which the last ones are masked, so that few
// branches depend on the lengths of rows. false: an operand is NaN, y is not complete.
template <class Add, class Mul, class T>
bool spmv_lanes(const Matrix& a, const T* values, const T* x, T* y, Id first, Id last) {
  using F = Four<T>;
  using Vector = typename F::Vector;
  constexpr Id kShort = 128;  // entries that are added up in float32
  const T zero = Add::template identity<T>();
  const auto most = F::last_column(a);
  const Id readable = a.slots - 7, *const ptr = a.ptr, *const idx = a.idx;
  typename F::Mask nan = {};
  for (Id i = first, next = ptr[first]; i < last; ++i) {
    Id e = next;
    const Id end = next = ptr[i + 1];
    if (end >= readable || end - e > kShort) {
      y[i] = spmv_row<Add, Mul>(values + e, idx + e, x, end - e, most);
      continue;
    }
    auto join = [&](Vector& sum, Id at) {
      const Vector four = F::template terms<Mul>(values + at, idx + at, x, most);
      const Vector term = F::template first<Add>(four, typename F::Int(end - at));
      if constexpr (!std::is_same_v<Add, Plus>) nan |= term != term;
      sum = joined<Add>(sum, term);
    };
    Vector sum = {zero, zero, zero, zero}, other = sum;
    do join(sum, e), join(other, e + 4);
    while ((e += 8) < end);
    y[i] = F::template all<Add>(joined<Add>(sum, other));
  }
  return !(nan[0] | nan[1] | nan[2] | nan[3]);
}

constexpr int kBlock = 256, kTerms = 4 * kBlock;

// The most entries of rows [first, last).
inline Id longest(const Matrix& a, Id first, Id last) {
  Id most = 0;
  for (Id i = first; i < last; ++i) most = std::max(most, a.ptr[i + 1] - a.ptr[i]);
  return most;
}

// The same for rows of few entries, at most kTerms in all: products in the order of memory, then four
// rows a step. `kFull`: 4 k rows of at most four, behind which the arrays have four more; each is read once.
template <bool kFull, class Add, class Mul, class T>
bool spmv_fours(const Matrix& a, const T* values, const T* x, T* y, Id first, Id last) {
  using F = Four<T>;
  using Vector = typename F::Vector;
  const auto most = F::last_column(a);
  const Id *const ptr = a.ptr, *const idx = a.idx, base = ptr[first], count = kFull ? 0 : ptr[last] - base;
  T terms[kFull ? 4 : kTerms + 4];
  Id done = 0;
  for (; done + 4 <= count; done += 4) {
    const Vector four = F::template terms<Mul>(values + base + done, idx + base + done, x, most);
    std::memcpy(terms + done, &four, sizeof four);
  }
  for (; done < count; ++done) terms[done] = F::template term<Mul>(values[base + done], idx[base + done], x, most);
  typename F::Mask nan = {};
  auto row = [&](Id i) {
    const Id e = ptr[i];
    Vector term;
    if constexpr (kFull) term = F::template terms<Mul>(values + e, idx + e, x, most);
    else std::memcpy(&term, terms + (e - base), sizeof term);
    term = F::template first<Add>(term, typename F::Int(ptr[i + 1] - e));
    if constexpr (!std::is_same_v<Add, Plus>) nan |= term != term;
    return term;
  };
  for (Id i = first; i < last; i += 4) {
    const Id end = std::min(last, Id(i + 4));
    if (kFull || (end - i == 4 && longest(a, i, i + 4) <= 4)) {
      const Vector sum = F::template all<Add>(row(i), row(i + 1), row(i + 2), row(i + 3));
      std::memcpy(y + i, &sum, sizeof sum);
      continue;
    }
    for (Id r = i; r < end; ++r) {
      typename Add::template Fold<T> fold;
      for (Id e = ptr[r]; e < ptr[r + 1]; ++e) fold.add(terms[e - base]);
      y[r] = fold.result();
    }
  }
  return !(nan[0] | nan[1] | nan[2] | nan[3]);
}

// By rows; threads change nothing. Indices out of range are clamped.
template <class Add, class Mul, class T>
void spmv(Team& team, Unchecked a, Entries<const T> values, List<const T> x, T* y) {
  expect(x.size > 0, "x is empty");
  a.columns = Id(x.size);
  // Blocks do not depend on the pieces, as the order of a sum depends on its block.
  auto whole = [&](Id row) { return row == a.rows ? row : row - row % kBlock; };
  over_rows(team, a, [&](Id first, Id last, int) {
    for (Id i = whole(first), stop; i < whole(last); i = stop) {
      stop = i + std::min(Id(kBlock), Id(a.rows - i));
      if constexpr (in_lanes<Add, Mul, T>())
        if (a.ascends(i, stop)) {
          const Id count = a.ptr[stop] - a.ptr[i], most = count <= 4 * (stop - i) ? longest(a, i, stop) : kTerms;
          const bool full = count > 3 * (stop - i) && (stop - i) % 4 == 0 && a.slots - a.ptr[stop] >= 4;
          if (most <= 4 && full ? spmv_fours<true, Add, Mul, T>(a, values, x, y, i, stop)
              : most <= 8       ? spmv_fours<false, Add, Mul, T>(a, values, x, y, i, stop)
                                : spmv_lanes<Add, Mul, T>(a, values, x, y, i, stop))
            continue;
        }
      spmv_rows<Add, Mul, T>(a, values, x, y, i, stop);
    }
  });
}

// Of each row the first entry whose term is y[i], the number of slots where there is none.
template <class Add, class Mul, class T>
void winners(Team& team, Unchecked a, Entries<const T> values, List<const T> x, const T* y, Id* slot) {
  expect(x.size > 0, "x is empty");
  a.columns = Id(x.size);
  over_rows(team, a, [&](Id first, Id last, int) {
    for (Id i = first; i < last; ++i) {
      Id e = a.begin(i);
      const Id end = std::max(e, a.end(i));
      while (e < end && Mul::template apply<T>(values[e], x[a.column(e)]) != y[i]) ++e;
      slot[i] = e < end ? e : a.slots;
    }
  });
}

// Sums of columns over rows [first, last): the entries are read in the order of memory.
template <class Add, class Mul, class T, class Sum, class F>
void columns_of(const Matrix& a, Id first, Id last, const T* values, const T* x, Sum* sums, const F& also) {
  std::fill(sums, sums + a.columns, Sum(Add::template identity<T>()));
  over_entries(a, first, last, x, [=](Id e, T xi) JAXSPV_INLINE {
    const Id j = a.idx[e];
    if (a.holds(j)) {
      sums[j] = Add::template apply<Sum>(sums[j], Mul::template apply<T>(values[e], xi));
      also(e, xi, j);
    } else {
      also(e, xi, a.column(e));
    }
  });
}

// The transposed product, y[j] = add over i of mul(A[i, j], x[i]). also(e, x[i], j) is called at each
// entry. Of long columns, parts of the rows have sums of their own: of floats as many for any threads.
template <class Add, class Mul, class T, class F>
void add_to_columns(Team& team, const Matrix& a, const T* values, const T* x, T* y, const F& also) {
  using Sum = typename Add::template Sum<T>;
  constexpr bool ordered = std::is_floating_point_v<T> && std::is_same_v<Add, Plus>;
  const bool alone = team.size() == 1;
  const int64_t n = a.columns, most = alone && !ordered ? 1 : 4;
  const int64_t parts = std::max<int64_t>(1, std::min(most, a.entries() / std::max<int64_t>(16 * n, 1 << 15)));
  const auto own = buffer<Sum>((alone ? std::min<int64_t>(2, parts) : parts) * n);
  Sum* const all = own.get();
  const auto add = [=](int64_t p, int64_t begin, int64_t end) {
    const Sum* __restrict more = all + p * n;
    for (int64_t j = begin; j < end; ++j) all[j] = Add::template apply<Sum>(all[j], more[j]);
  };
  team.each(parts, [&](int64_t p, int) {
    Sum* const sums = all + (alone ? std::min<int64_t>(p, 1) : p) * n;
    columns_of<Add, Mul, T>(a, first_row(a, p, parts), first_row(a, p + 1, parts), values, x, sums, also);
    if (alone && p) add(1, 0, n);
  });
  team.blocks(n, 8192, [=](int64_t begin, int64_t end, int) {
    for (int64_t p = 1; p < parts && !alone; ++p) add(p, begin, end);
    for (int64_t j = begin; j < end; ++j) y[j] = T(all[j]);
  });
}

template <class Add, class Mul, class T>
void spmv_transposed(Team& team, Unchecked a, Entries<const T> values, const T* x, List<T> y) {
  a.columns = Id(y.size);
  add_to_columns<Add, Mul, T>(team, a, values, x, y, [](Id, T, Id) {});
}

// The derivatives of sum_i w[i] sum_j A[i, j] x[j]: by_values[e] = w[i] x[j], 0 in padding, and
// by_vector[j] = sum_i w[i] A[i, j]. An empty one is not wanted.
template <class T>
void spmv_derivatives(Team& team, Unchecked a, List<const T> values, const T* w, List<const T> x, List<T> by_values,
                      List<T> by_vector) {
  const bool matrix = by_values.size > 0, vector = by_vector.size > 0;
  const int64_t columns = vector ? by_vector.size : x.size;
  expect(!matrix || (by_values.size == a.slots && x.size == columns), "x has another length");
  expect(!vector || values.size == a.slots, "data and indices differ in length");
  expect(columns > 0, "x is empty");
  a.columns = Id(columns);
  const auto term = [to = by_values.data, from = x.data](Id e, T wi, Id j) JAXSPV_INLINE { to[e] = wi * from[j]; };
  if (matrix) std::fill(by_values + (a.ascends(0, a.rows) ? a.ptr[a.rows] : 0), by_values.end(), T(0));
  if (matrix && vector) add_to_columns<Plus, Times, T>(team, a, values, w, by_vector, term);
  else if (vector) spmv_transposed<Plus, Times, T>(team, a, {{values}}, w, by_vector);
  else over_rows(team, a, [&](Id first, Id last, int) {
    over_entries(a, first, last, w, [=](Id e, T wi) { term(e, wi, a.column(e)); });
  });
}

}  // namespace jaxspv
