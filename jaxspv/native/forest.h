// Minimum spanning forests. Kruskal, "On the shortest spanning subtree of a graph", 1956; the edges
// sorted digit by digit, trees joined with paths halved.
#pragma once
#include <vector>

#include "radix.h"

namespace jaxspv {

// chosen[e]: whether the entry is in the forest. Edges go by (weight, smaller end, larger end, slot);
// `symmetric`: each is stored twice, and only the entry in the row of its smaller end counts.
template <class T>
void spanning_forest(const Matrix& g, const T* weight, bool symmetric, uint8_t* chosen) {
  using Bits = decltype(sortable(T()));
  const Id m = g.ptr[g.rows];
  std::fill(chosen, chosen + m, 0);
  std::vector<Keyed<Bits>> edges;
  std::vector<Id> tail(m);
  edges.reserve(symmetric ? m / 2 + 1 : m);
  for (Id u = 0; u < g.rows; ++u)
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
      tail[e] = u;
      const Id v = g.idx[e];
      if (symmetric ? u < v : u != v) edges.push_back({sortable(weight[e]), e});
    }
  if (!symmetric) {  // in order of (smaller end, larger end) first
    std::vector<Keyed<uint64_t>> ends;
    ends.reserve(edges.size());
    for (const auto& edge : edges) {
      const uint64_t u = tail[edge.slot], v = g.idx[edge.slot];
      ends.push_back({std::min(u, v) << 32 | std::max(u, v), edge.slot});
    }
    radix_sort(ends);
    for (size_t i = 0; i < ends.size(); ++i) edges[i] = {sortable(weight[ends[i].slot]), ends[i].slot};
  }
  radix_sort(edges);
  std::vector<Id> up(g.rows);
  for (Id v = 0; v < g.rows; ++v) up[v] = v;
  auto root = [&](Id v) {
    while (up[v] != v) v = up[v] = up[up[v]];
    return v;
  };
  Id left = g.rows - 1;
  for (const auto& edge : edges) {
    if (left <= 0) break;
    const Id a = root(tail[edge.slot]), b = root(g.idx[edge.slot]);
    if (a == b) continue;
    up[std::max(a, b)] = std::min(a, b);
    chosen[edge.slot] = 1;
    --left;
  }
}

}  // namespace jaxspv
