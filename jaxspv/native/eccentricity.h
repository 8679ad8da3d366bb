// How far the farthest vertex is: from several vertices, and the most of an undirected component.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "bfs.h"

namespace jaxspv {

// far[b], reached[b]: the largest distance from source b and the vertices it reaches.
inline void eccentricities(Team& team, const Matrix& g, List<const Id> sources, List<Id> far, List<Id> reached) {
  std::fill(far.begin(), far.end(), 0);
  std::fill(reached.begin(), reached.end(), 0);
  expect(far.size == sources.size && reached.size == sources.size, "results differ in number from sources");
  team.each((sources.size + kWord - 1) / kWord, [&](int64_t word, int) {
    const int64_t first = word * kWord;
    const auto at = [&](Id, uint64_t bits, Id depth) {
      each_bit(bits, [&](int b) { far[first + b] = depth, ++reached[first + b]; });
    };
    search_sources(g, sources + first, std::min(kWord, sources.size - first), at, [](Id, Id, uint64_t, Id) {});
  });
}

// Returns the diameter of the component of `start`, of a symmetric g, in at most `limit` searches; how
// many they were and the vertices reached. `given`: whether `start` counts, else a vertex of largest
// degree is the first. From a vertex of eccentricity e, that of one at distance d is at least
// max(e - d, d). A pair farther apart than all found has two open ends; if no open vertex is farther
// than o, that at distance d is at most o + d from another. Open are those whose least such bound is
// above what was found. Searches start alternately where it is largest, and at a central vertex, open
// or not: one of smallest lower bound, of these of largest degree. From the ninth search on, the kind
// that last closed fewer vertices has two turns of eight.
// Takes, Kosters, "Determining the diameter of small world networks", CIKM 2011; of pairs: Crescenzi et
// al., "On computing the diameter of real-world undirected graphs", Theor. Comput. Sci. 514, 2013.
inline void diameter(Team& team, const Matrix& g, Id start, Id limit, bool given, Id& found, Id& searches,
                     Id& reached) {
  constexpr Id kMost = std::numeric_limits<Id>::max();
  std::vector<Id> level(g.rows), low(g.rows, 0), high(g.rows, kMost);
  std::vector<bool> searched(g.rows);
  Id closed[] = {kMost, kMost}, left = g.rows;  // by the last search of either kind; open vertices
  int kind = 0;                                 // 1: from a central vertex
  if (!given) {
    start = g.rows ? 0 : -1;
    for (Id v = 1; v < g.rows; ++v)
      if (degree(g, v) > degree(g, start)) start = v;
  }
  for (found = searches = reached = 0; start >= 0 && searches < limit;) {
    BreadthFirst search(team, g, &g, level.data(), nullptr);
    const Id far = std::max(0, search.run(start, [](Id, int64_t width) { return width == 0; }) - 1);
    if (g.holds(start)) searched[start] = true;
    found = std::max(found, far);
    reached = 0;
    Id widest = -1, central = -1, open = 0, many = 0;
    for (Id v = 0; v < g.rows; ++v)
      if (high[v] > found) open = std::max(open, level[v]);
    const auto nearer = [&](Id v, Id u) { return low[v] == low[u] ? degree(g, v) > degree(g, u) : low[v] < low[u]; };
    for (Id v = 0; v < g.rows; ++v) {
      const Id d = level[v];
      if (d < 0) continue;
      ++reached;
      low[v] = std::max(low[v], std::max(far - d, d));
      high[v] = std::min(high[v], Id(std::min<int64_t>(int64_t(open) + d, kMost)));
      if (!searched[v] && (central < 0 || nearer(v, central))) central = v;
      if (high[v] <= found) continue;
      ++many;
      if (widest < 0 || high[v] > high[widest]) widest = v;
    }
    closed[kind] = left - many, left = many;
    kind = searches++ % 2;
    if (searches > 8 && (searches - 1) % 8 > 1 && closed[kind] < closed[1 - kind]) kind = 1 - kind;
    start = widest >= 0 && kind ? central : widest;
  }
}

}  // namespace jaxspv
