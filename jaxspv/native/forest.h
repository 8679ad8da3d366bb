// Minimum spanning forests. Kruskal, "On the shortest spanning subtree of a graph", 1956; the edges
// sorted digit by digit, trees joined with paths halved.
#pragma once
#include <vector>

#include "radix.h"

namespace jaxspv {

// slots, rows: the entries of the forest in order, and their rows; the numbers of slots and rows behind
// them. Edges go by (weight, smaller end, larger end, slot); `symmetric`: each is stored twice, and only
// the entry in the row of its smaller end counts.
template <class T>
void spanning_forest(const Matrix& g, Entries<const T> weight, bool symmetric, List<Id> slots, List<Id> rows) {
  const Id m = g.ptr[g.rows];
  std::vector<uint8_t> chosen(m, 0);
  std::vector<Keyed<decltype(sortable(T()))>> edges;
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
  int64_t left = slots.size;
  for (const auto& edge : edges) {
    if (left <= 0) break;
    const Id a = root(tail[edge.slot]), b = root(g.idx[edge.slot]);
    if (a == b) continue;
    up[std::max(a, b)] = std::min(a, b);
    chosen[edge.slot] = 1;
    --left;
  }
  std::fill(slots.begin(), slots.end(), g.slots);
  std::fill(rows.begin(), rows.end(), g.rows);
  for (Id e = 0, found = 0; e < m; ++e)
    if (chosen[e]) slots[found] = e, rows[found++] = tail[e];
}

}  // namespace jaxspv
