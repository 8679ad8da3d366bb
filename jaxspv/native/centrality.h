// Betweenness and closeness of vertices by paths of fewest edges.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <numeric>
#include <vector>

#include "bfs.h"

namespace jaxspv {

// score[v] = sum over sources s and t of the share of shortest paths s -> t that pass v; returns
// whether a count of paths is infinite. Brandes, "A faster algorithm for betweenness centrality",
// Journal of Mathematical Sociology 25, 2001. Sources are shared by threads in pieces whose number
// does not depend on theirs, so that sums do not.
template <class T>
bool betweenness(Team& team, const Matrix& g, List<const Id> sources, bool endpoints, T* score) {
  const Id n = g.rows;
  const int64_t count = sources.size;
  const int64_t pieces = std::min<int64_t>(count, 16), each = pieces ? (count + pieces - 1) / pieces : 0;
  std::vector<std::vector<T>> scores(pieces);
  std::atomic<bool> overflow{false};
  team.each(pieces, [&](int64_t piece, int) {
    std::vector<T>& mine = scores[piece];
    mine.assign(n, 0);
    std::vector<Id> level(n, -1), queue(n);
    std::vector<T> paths(n, 0), share(n);
    for (int64_t k = piece * each; k < std::min(count, (piece + 1) * each); ++k) {
      const Id source = sources[k];
      if (source < 0 || source >= n) continue;
      Id tail = 1;
      queue[0] = source, level[source] = 0, paths[source] = 1;
      for (Id head = 0; head < tail; ++head) {
        const Id u = queue[head], below = level[u] + 1;
        const T ways = paths[u];
        for (const Id v : row(g, u)) {
          if (level[v] < 0) level[v] = below, queue[tail++] = v;
          if (level[v] == below) paths[v] += ways;
        }
      }
      for (Id at = tail; at-- > 0;) {
        const Id v = queue[at], below = level[v] + 1;
        T total = 0;
        for (const Id u : row(g, v))
          if (level[u] == below) total += share[u];
        share[v] = 1 / paths[v] + total;
        if (!std::isfinite(paths[v])) overflow = true;
        if (at) mine[v] += paths[v] * total + T(endpoints);
      }
      if (endpoints) mine[source] += T(tail - 1);
      for (Id at = 0; at < tail; ++at) level[queue[at]] = -1, paths[queue[at]] = 0;
    }
  });
  std::fill(score, score + n, T(0));
  for (const auto& mine : scores)
    for (Id v = 0; v < n; ++v) score[v] += mine[v];
  return overflow;
}

// Of each vertex: the sum of the distances to it, its upper and lower 24 bits, of their inverses, and how
// many reach it (itself too).
inline void closeness(Team& team, const Matrix& g, Id* high, Id* low, float* inverse, Id* reached) {
  const Id n = g.rows;
  const int64_t searches = (int64_t(n) + kWord - 1) / kWord, pieces = std::min<int64_t>(searches, 16);
  struct Sums {
    int64_t far = 0;
    double harmonic = 0;
    Id reached = 0;
  };
  std::vector<std::vector<Sums>> sums(pieces);
  team.each(pieces, [&](int64_t piece, int) {
    sums[piece].resize(n);
    for (int64_t s = piece; s < searches; s += pieces) {
      Id sources[kWord];
      std::iota(sources, sources + kWord, Id(s * kWord));
      const auto at = [mine = sums[piece].data()](Id v, uint64_t bits, Id depth) {
        const int count = __builtin_popcountll(bits);
        mine[v].reached += count, mine[v].far += int64_t(count) * depth;
        if (depth) mine[v].harmonic += count * (1.0 / depth);
      };
      search_sources(g, sources, std::min(kWord, n - s * kWord), at, [](Id, Id, uint64_t, Id) {});
    }
  });
  for (Id v = 0; v < n; ++v) {
    Sums all;
    for (const auto& mine : sums)
      all.reached += mine[v].reached, all.far += mine[v].far, all.harmonic += mine[v].harmonic;
    high[v] = Id(all.far >> 24), low[v] = Id(all.far & 0xffffff);
    inverse[v] = float(all.harmonic), reached[v] = all.reached;
  }
}

}  // namespace jaxspv
