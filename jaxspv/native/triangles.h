// Triangles of a symmetric pattern: in all, of each vertex, of each edge; trusses.
//
// Edges are directed to the end of higher (degree, number), so that no vertex has more than
// sqrt(2 m) of them: O(m^1.5). Schank, Wagner, "Finding, counting and listing all triangles in large
// graphs", WEA 2005; Latapy, "Main-memory triangle computations", TCS 407, 2008.
#pragma once
#include <algorithm>
#include <atomic>
#include <cstring>
#include <numeric>
#include <vector>

#include "checked.h"

namespace jaxspv {

constexpr Id kSpare = 4;  // more numbers of vertices behind the edges

// The edges to an end of higher rank, in the order of their rows; `slot`: where each is stored.
struct Upward {
  std::unique_ptr<Id[]> ptr, idx, slot;
  Matrix matrix(Id n) const { return {n, n, ptr[n], ptr.get(), idx.get()}; }
};

inline Upward upward(Team& team, const Matrix& g, bool slots) {
  auto rank = [&](Id v) { return uint64_t(degree(g, v)) << 32 | uint32_t(v); };
  const int64_t pieces = team.size() == 1 ? 1 : 4 * team.size();
  std::vector<Id> start(pieces + 1, 0);  // of the edges of a piece of rows
  start[1] = g.ptr[g.rows];
  if (pieces > 1)
    team.each(pieces, [&](int64_t p, int) {
      Id count = 0;
      for (Id u = first_row(g, p, pieces), last = first_row(g, p + 1, pieces); u < last; ++u)
        for (const Id v : row(g, u)) count += rank(u) < rank(v);
      start[p + 1] = count;
    });
  std::partial_sum(start.begin(), start.end(), start.begin());
  const int64_t most = start[pieces];
  Upward up{buffer<Id>(int64_t(g.rows) + 1), buffer<Id>(most + kSpare), buffer<Id>(slots ? most + 1 : 0)};
  auto write = [&](auto several, int64_t p) {  // what is written last may be overwritten
    Id to = start[p], u = first_row(g, p, pieces), *const idx = up.idx.get(), *const slot = up.slot.get();
    const Id end = start[p + 1], last = first_row(g, p + 1, pieces);
    for (; u < last; ++u) {
      up.ptr[u] = to;
      for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
        if (decltype(several)::value && to == end) break;
        idx[to] = g.idx[e];
        if (slots) slot[to] = e;
        to += rank(u) < rank(g.idx[e]);
      }
    }
    if (p == pieces - 1) up.ptr[g.rows] = to;
  };
  if (pieces == 1) write(std::false_type(), 0);
  else team.each(pieces, [&](int64_t p, int) { write(std::true_type(), p); });
  std::fill_n(up.idx.get() + up.ptr[g.rows], kSpare, 0);
  return up;
}

// The triangles where no vertex has more than four edges to higher rank: rows are compared four by four.
inline int64_t count_in_fours(Team& team, const Matrix& l) {
  typedef Id Four __attribute__((vector_size(16)));
  auto row = [&](Id v, Id none) {
    Four some;
    std::memcpy(&some, l.idx + l.ptr[v], sizeof some);
    return Four{0, 1, 2, 3} < degree(l, v) ? some : Four{} + none;
  };
  // Rows of fewer edges are passed over where they are many.
  const Id least = l.ptr[l.rows] < l.rows + l.rows / 4 ? 2 : 0;
  std::atomic<int64_t> total{0};
  constexpr Id kRows = 1 << 14;
  team.each((int64_t(l.rows) + kRows - 1) / kRows, [&](int64_t piece, int) {
    Four closed = {};
    for (Id u = Id(piece * kRows), end = Id(std::min<int64_t>(l.rows, (piece + 1) * kRows)); u < end; ++u) {
      const Id *const edges = l.idx + l.ptr[u], count = degree(l, u);
      if (count < least) continue;
      const Four mine = row(u, -1);
      auto add = [&](Id k) {
        const Four other = row(edges[k], -2);
        closed -= ((other == mine[0]) | (other == mine[1]) | (other == mine[2]) | (other == mine[3])) & -Id(k < count);
      };
      add(0), add(1);
      if (count > 2) add(2), add(3);
    }
    total += int64_t(closed[0]) + closed[1] + closed[2] + closed[3];
  });
  return total;
}

// Counts triangles; returns whether the edges to higher rank are more than half of the slots.
inline bool count_triangles(Team& team, const Matrix& g, int64_t& found) {
  const Upward up = upward(team, g, false);
  const Matrix l = up.matrix(g.rows);
  const bool over = l.ptr[g.rows] > g.slots / 2;
  Id most = 0;
  for (Id u = 0; u < g.rows; ++u) most = std::max(most, degree(l, u));
  if (most <= 4) return found = count_in_fours(team, l), over;
  std::vector<std::vector<uint8_t>> marks(team.size());
  std::atomic<int64_t> total{0};
  team.blocks(g.rows, 512, [&](int64_t begin, int64_t end, int me) {
    marks[me].resize(g.rows);
    uint8_t* mark = marks[me].data();
    int64_t count = 0;
    for (Id u = Id(begin); u < end; ++u) {
      const Id first = l.ptr[u], last = l.ptr[u + 1];
      if (last - first < 2) continue;
      for (Id e = first; e < last; ++e) mark[l.idx[e]] = 1;
      for (Id e = first; e < last; ++e) {
        const Id v = l.idx[e];
        Id closed = 0;
        for (Id f = l.ptr[v]; f < l.ptr[v + 1]; ++f) closed += mark[l.idx[f]];
        count += closed;
      }
      for (Id e = first; e < last; ++e) mark[l.idx[e]] = 0;
    }
    total += count;
  });
  return found = total, over;
}

// For each triangle of edges e = (u, v), f = (v, w), g = (u, w) of `l` triangle(w, f, g), after those of an
// edge edge(u, v, e, their number), of the counter that counter(thread) gives.
template <class Counter>
void each_triangle(Team& team, const Matrix& l, const Counter& counter) {
  std::vector<std::vector<Id>> marks(team.size());
  team.blocks(l.rows, 512, [&](int64_t begin, int64_t end, int me) {
    marks[me].resize(l.rows, -1);
    Id* mark = marks[me].data();
    const auto counts = counter(me);
    for (Id u = Id(begin); u < end; ++u) {
      const Id first = l.ptr[u], last = l.ptr[u + 1];
      if (last - first < 2) continue;
      for (Id e = first; e < last; ++e) mark[l.idx[e]] = e;
      for (Id e = first; e < last; ++e) {
        const Id v = l.idx[e];
        Id closed = 0;
        for (Id f = l.ptr[v], stop = l.ptr[v + 1]; f < stop; ++f) {
          const Id g = mark[l.idx[f]];
          if (g >= 0) counts.triangle(l.idx[f], f, g), ++closed;
        }
        if (closed) counts.edge(u, v, e, closed);
      }
      for (Id e = first; e < last; ++e) mark[l.idx[e]] = -1;
    }
  });
}

// count[v]: the triangles that v is a corner of. Each thread counts for itself: hubs are in most of them.
inline void triangles_of_vertices(Team& team, const Matrix& g, Id* count) {
  struct Counts {
    Id* of;
    void triangle(Id w, Id, Id) const { ++of[w]; }
    void edge(Id u, Id v, Id, Id closed) const { of[u] += closed, of[v] += closed; }
  };
  const Upward up = upward(team, g, false);
  std::vector<std::vector<Id>> own(team.size());
  each_triangle(team, up.matrix(g.rows), [&](int me) {
    own[me].resize(g.rows);
    return Counts{own[me].data()};
  });
  std::fill(count, count + g.rows, 0);
  for (const auto& some : own)
    for (size_t v = 0; v < some.size(); ++v) count[v] += some[v];
}

// The slot of (v, u) for that of (u, v), u > v; its own where rows, sorted, do not hold it.
inline std::unique_ptr<Id[]> twins(const Matrix& g) {
  auto twin = buffer<Id>(g.ptr[g.rows]), next = buffer<Id>(g.rows);
  for (Id u = 0; u < g.rows; ++u) {
    next[u] = Id(std::upper_bound(g.idx + g.ptr[u], g.idx + g.ptr[u + 1], u) - g.idx);
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
      const Id v = g.idx[e];
      twin[e] = e;
      if (v >= u) continue;
      Id at = next[v];
      while (at < g.ptr[v + 1] && g.idx[at] < u) ++at;
      next[v] = at;
      if (at < g.ptr[v + 1] && g.idx[at] == u) twin[e] = at;
    }
  }
  return twin;
}

// ptr, idx, kept: the k-truss, with the data of its entries. Rows are sorted, without loops. The triangles
// of each edge are counted once; an edge of too few leaves, which takes one from its triangles' others.
// Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008.
inline void k_truss(Team& team, const Matrix& g, Entries<const Id> data, Id k, List<Id> ptr, Entries<Id> idx,
                    Entries<Id> kept) {
  const Id m = g.ptr[g.rows], least = std::max(k, 2) - 2;
  const auto edge = twins(g);
  const Upward up = upward(team, g, true);
  std::vector<Id> support(m, 0), queue;
  struct Supports {
    Id* of;
    const Id *twin, *slot;
    bool shared;
    void add(Id side, Id closed) const {
      Id& support = of[twin[slot[side]]];
      if (shared) __atomic_fetch_add(&support, closed, __ATOMIC_RELAXED);
      else support += closed;
    }
    void triangle(Id, Id f, Id g) const { add(f, 1), add(g, 1); }
    void edge(Id, Id, Id e, Id closed) const { add(e, closed); }
  };
  const Supports supports{support.data(), edge.get(), up.slot.get(), team.size() > 1};
  if (least > 0) each_triangle(team, up.matrix(g.rows), [&](int) { return supports; });
  std::vector<Id> tail(m);
  std::vector<char> gone(m, 0);
  for (Id u = 0; u < g.rows; ++u)
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
      tail[e] = u;
      if (edge[e] == e && support[e] < least) queue.push_back(e);
    }
  for (size_t i = 0; i < queue.size(); ++i) {
    const Id e = queue[i];
    Id u = tail[e], v = g.idx[e];
    if (degree(g, u) < degree(g, v)) std::swap(u, v);
    const Id *low = g.idx + g.ptr[u], *high = g.idx + g.ptr[u + 1];
    for (Id f = g.ptr[v]; f < g.ptr[v + 1]; ++f) {
      if (gone[edge[f]]) continue;
      low = std::lower_bound(low, high, g.idx[f]);
      if (low == high) break;
      if (*low != g.idx[f]) continue;
      const Id h = Id(low - g.idx);
      if (gone[edge[h]]) continue;
      for (const Id other : {edge[f], edge[h]})
        if (support[other]-- == least) queue.push_back(other);
    }
    gone[e] = 1;
  }
  expect(ptr.size == int64_t(g.rows) + 1, "an offset for each row and one more");
  Id top = ptr[0] = 0;
  for (Id u = 0; u < g.rows; ptr[++u] = top)
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e)
      if (!gone[edge[e]]) idx[top] = g.idx[e], kept[top++] = data[e];
  std::fill(idx + top, idx + g.slots, g.rows);
  std::fill(kept + top, kept + g.slots, 0);
}

}  // namespace jaxspv
