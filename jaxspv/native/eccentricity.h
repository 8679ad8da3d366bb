// How far the farthest vertex is: from several vertices, and the most of an undirected component.
#pragma once
#include <algorithm>
#include <limits>
#include <vector>

#include "bfs.h"
#include "checked.h"

namespace jaxspv {

// far[b], reached[b]: the largest distance from source b and the vertices it reaches.
inline void eccentricities(const Matrix& g, const Id* sources, int count, Id* far, Id* reached) {
  std::fill(far, far + count, 0);
  std::fill(reached, reached + count, 0);
  search_sources(g, sources, count, [&](int b, Id, Id, Id depth) {
    far[b] = depth;
    ++reached[b];
  });
}

struct Diameter {
  Id diameter = 0, searches = 0, reached = 0;
};

// The diameter of the component of `start`, of a symmetric g, in at most `limit` searches. From a
// vertex of eccentricity e, that of one at distance d is within max(e - d, d) and e + d. Searches
// start alternately where the upper bound is largest and where the lower one is smallest.
// Takes, Kosters, "Determining the diameter of small world networks", CIKM 2011.
template <class Team>
Diameter diameter(Team& team, const Matrix& g, Id start, Id limit) {
  constexpr Id kMost = std::numeric_limits<Id>::max();
  std::vector<Id> level(g.rows), low(g.rows, 0), high(g.rows, kMost);
  Diameter found;
  while (start >= 0 && found.searches < limit) {
    BreadthFirst<Id, Team> search(team, g, &g, level.data(), nullptr);
    const Id far = std::max(0, search.run(start, [](Id, int64_t width) { return width == 0; }) - 1);
    found.diameter = std::max(found.diameter, far);
    found.reached = 0;
    Id widest = -1, nearest = -1;
    for (Id v = 0; v < g.rows; ++v) {
      const Id d = level[v];
      if (d < 0) continue;
      ++found.reached;
      low[v] = std::max(low[v], std::max(far - d, d));
      high[v] = std::min(high[v], Id(std::min<int64_t>(int64_t(far) + d, kMost)));
      if (high[v] <= found.diameter) continue;
      if (widest < 0 || high[v] > high[widest]) widest = v;
      if (nearest < 0 || low[v] < low[nearest]) nearest = v;
    }
    start = found.searches++ % 2 ? nearest : widest;
  }
  return found;
}

}  // namespace jaxspv
