// Core numbers. Batagelj, Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003.
#pragma once
#include <algorithm>
#include <vector>

#include "checked.h"

namespace jaxspv {

// core[v] = max k: v lies in a subgraph whose vertices all have degree >= k in it. Without loops.
// `order` is sorted by degree; the next vertex takes itself out of the degrees of its neighbours,
// each of which then changes places with the first of its degree. Returns the largest.
inline Id cores(const Matrix& g, Id* core) {
  Id most = 0;
  for (Id v = 0; v < g.rows; ++v) {
    Id degree = 0;
    for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e) degree += g.idx[e] != v;
    core[v] = degree;
    most = std::max(most, degree);
  }
  std::vector<Id> first(size_t(most) + 2, 0), order(g.rows), place(g.rows);
  for (Id v = 0; v < g.rows; ++v) ++first[core[v] + 1];
  for (Id d = 0; d <= most; ++d) first[d + 1] += first[d];
  {
    std::vector<Id> next(first);
    for (Id v = 0; v < g.rows; ++v) order[place[v] = next[core[v]]++] = v;
  }
  for (Id i = 0; i < g.rows; ++i) {
    const Id v = order[i];
    for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e) {
      const Id u = g.idx[e];
      if (core[u] <= core[v]) continue;
      const Id start = first[core[u]]++, other = order[start];
      std::swap(order[place[u]], order[start]);
      place[other] = place[u];
      place[u] = start;
      --core[u];
    }
  }
  return g.rows ? core[order[g.rows - 1]] : 0;
}

}  // namespace jaxspv
