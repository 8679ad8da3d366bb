// Betweenness and closeness of vertices by paths of fewest edges.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "checked.h"

namespace jaxspv {

// score[v] = sum over sources s and t of the share of shortest paths s -> t that pass v; returns
// whether all counts of paths are finite. Brandes, "A faster algorithm for betweenness centrality",
// Journal of Mathematical Sociology 25, 2001. Sources are shared by threads in pieces whose number
// does not depend on theirs, so that sums do not.
template <class T, class Team>
bool betweenness(Team& team, const Matrix& g, const Id* sources, int64_t count, bool endpoints,
                 T* score) {
  const Id n = g.rows;
  const int64_t pieces = std::min<int64_t>(count, 16), each = pieces ? (count + pieces - 1) / pieces : 0;
  std::vector<std::vector<T>> scores(pieces);
  std::vector<char> finite(pieces, 1);
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
        for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
          const Id v = g.idx[e];
          if (level[v] < 0) level[v] = below, queue[tail++] = v;
          if (level[v] == below) paths[v] += ways;
        }
      }
      for (Id at = tail; at-- > 0;) {
        const Id v = queue[at], below = level[v] + 1;
        T total = 0;
        for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e)
          if (level[g.idx[e]] == below) total += share[g.idx[e]];
        share[v] = 1 / paths[v] + total;
        if (!std::isfinite(paths[v])) finite[piece] = 0;
        if (at) mine[v] += paths[v] * total + T(endpoints);
      }
      if (endpoints) mine[source] += T(tail - 1);
      for (Id at = 0; at < tail; ++at) level[queue[at]] = -1, paths[queue[at]] = 0;
    }
  });
  std::fill(score, score + n, T(0));
  bool all = true;
  for (int64_t piece = 0; piece < pieces; ++piece) {
    for (Id v = 0; v < n; ++v) score[v] += scores[piece][v];
    all = all && finite[piece];
  }
  return all;
}

// Of each vertex: how many reach it (itself too), the sum of their distances, of the inverses.
// Searches from 64 vertices together, a bit each: Then et al., "The more the merrier: efficient
// multi-source graph traversal", VLDB 2014.
template <class Team>
void closeness(Team& team, const Matrix& g, Id* reached, int64_t* far, double* harmonic) {
  const Id n = g.rows;
  const int64_t searches = (int64_t(n) + 63) / 64, pieces = std::min<int64_t>(searches, 16);
  struct Sums {
    std::vector<int64_t> far;
    std::vector<double> harmonic;
    std::vector<Id> reached;
  };
  std::vector<Sums> sums(pieces);
  team.each(pieces, [&](int64_t piece, int) {
    Sums& mine = sums[piece];
    mine.far.assign(n, 0), mine.harmonic.assign(n, 0), mine.reached.assign(n, 0);
    std::vector<uint64_t> seen(n), front(n), next(n, 0);
    std::vector<Id> active, found;
    for (int64_t s = piece; s < searches; s += pieces) {
      std::fill(seen.begin(), seen.end(), 0);
      active.clear();
      for (Id v = Id(s * 64); v < std::min<int64_t>(n, s * 64 + 64); ++v) {
        seen[v] = front[v] = uint64_t(1) << (v & 63);
        active.push_back(v);
        ++mine.reached[v];
      }
      for (int64_t depth = 1; !active.empty(); ++depth) {
        found.clear();
        for (const Id u : active) {
          const uint64_t bits = front[u];
          for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
            const Id v = g.idx[e];
            const uint64_t fresh = bits & ~seen[v];
            if (!fresh) continue;
            if (!next[v]) found.push_back(v);
            next[v] |= fresh;
          }
        }
        const double inverse = 1.0 / double(depth);
        for (const Id v : found) {
          const uint64_t bits = next[v];
          next[v] = 0, front[v] = bits, seen[v] |= bits;
          const int count = __builtin_popcountll(bits);
          mine.reached[v] += count, mine.far[v] += count * depth, mine.harmonic[v] += count * inverse;
        }
        active.swap(found);
      }
    }
  });
  for (Id v = 0; v < n; ++v) {
    reached[v] = 0;
    far[v] = 0, harmonic[v] = 0;
    for (const Sums& mine : sums)
      reached[v] += mine.reached[v], far[v] += mine.far[v], harmonic[v] += mine.harmonic[v];
  }
}

}  // namespace jaxspv
