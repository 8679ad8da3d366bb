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
  if (!g.rows) return 0;
  degrees_without_loops(g, core);
  std::vector<Id> order(g.rows), place(g.rows);
  std::vector<Id> first = counting_sort(core, g.rows, *std::max_element(core, core + g.rows) + 1, order.data());
  for (Id i = 0; i < g.rows; ++i) place[order[i]] = i;
  for (const Id v : order)
    for (const Id u : row(g, v)) {
      if (core[u] <= core[v]) continue;
      const Id start = first[core[u]]++, other = order[start];
      std::swap(order[place[u]], order[start]);
      place[other] = place[u];
      place[u] = start;
      --core[u];
    }
  return core[order.back()];
}

}  // namespace jaxspv
