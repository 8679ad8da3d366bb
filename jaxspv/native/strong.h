// Strong components by one depth-first search without recursion. Tarjan, "Depth-first search and
// linear graph algorithms", SIAM J. Computing 1, 1972; one number a vertex as in Pearce, "A
// space-efficient algorithm for finding strongly connected components", IPL 116, 2016.
#pragma once
#include <algorithm>
#include <vector>

#include "checked.h"

namespace jaxspv {

// label[v]: the smallest vertex of the strong component of v. Returns the number of components.
inline Id strong_components(const Matrix& g, Id* label) {
  struct Frame {
    Id v, edge, number;  // the vertex, its next edge, its number in order of discovery
  };
  constexpr Id kClosed = 0x7fffffff;  // beyond every number
  std::vector<Id> low(g.rows, 0);  // the smallest number of an open vertex reached; 0: not discovered
  std::vector<Id> open;
  std::vector<Frame> path;
  open.reserve(g.rows);
  Id number = 0, components = 0;
  for (Id root = 0; root < g.rows; ++root) {
    if (low[root]) continue;
    path.push_back({root, g.ptr[root], low[root] = ++number});
    open.push_back(root);
    while (!path.empty()) {
      Frame& top = path.back();
      const Id v = top.v, last = g.ptr[v + 1];
      Id e = top.edge, least = low[v];
      for (; e < last && low[g.idx[e]]; ++e) least = std::min(least, low[g.idx[e]]);
      low[v] = least;
      if (e < last) {
        const Id next = g.idx[e];
        top.edge = e;  // looked at again on the way back, when `low` of its head is known
        low[next] = ++number;
        open.push_back(next);
        path.push_back({next, g.ptr[next], number});
        continue;
      }
      if (least == top.number) {
        ++components;
        size_t begin = open.size();
        Id smallest = v;
        do smallest = std::min(smallest, open[--begin]); while (open[begin] != v);
        for (size_t i = begin; i < open.size(); ++i) {
          label[open[i]] = smallest;
          low[open[i]] = kClosed;
        }
        open.resize(begin);
      }
      path.pop_back();
    }
  }
  return components;
}

}  // namespace jaxspv
