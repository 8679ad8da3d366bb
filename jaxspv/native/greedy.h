// Independent sets and colours, one vertex after the other in a given order.
#pragma once
#include <algorithm>
#include <vector>

#include "radix.h"

namespace jaxspv {

// The vertices by ascending key, the smaller number first where keys are equal.
inline std::vector<Id> order_of(const Id* key, Id n) {
  std::vector<Keyed<uint32_t>> items(n);
  for (Id v = 0; v < n; ++v) items[v] = {sortable(key[v]), v};
  radix_sort(items);
  std::vector<Id> order(n);
  for (Id i = 0; i < n; ++i) order[i] = items[i].slot;
  return order;
}

// member[v]: no neighbour before v in the order is one. Returns their number.
inline Id independent_set(const Matrix& g, const std::vector<Id>& order, uint8_t* member) {
  std::fill(member, member + g.rows, 0);
  std::vector<uint8_t> excluded(g.rows, 0);
  Id count = 0;
  for (const Id v : order) {
    if (excluded[v]) continue;
    member[v] = 1;
    ++count;
    for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e) excluded[g.idx[e]] = 1;
  }
  return count;
}

// color[v]: the least that no neighbour before v in the order has; -1 for a vertex that the order
// leaves out. Returns how many are used.
inline Id greedy_color(const Matrix& g, const Id* order, Id* color) {
  const Id n = g.rows;
  std::fill(color, color + n, -1);
  std::vector<Id> taken(size_t(n) + 1, -1);  // by colour: the last place that found it at a neighbour
  Id count = 0;
  for (Id i = 0; i < n; ++i) {
    const Id v = order[i];
    if (uint32_t(v) >= uint32_t(n)) continue;
    for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e)
      if (g.idx[e] != v && color[g.idx[e]] >= 0) taken[color[g.idx[e]]] = i;
    Id c = 0;
    while (taken[c] == i) ++c;
    color[v] = c;
    count = std::max(count, c + 1);
  }
  return count;
}

}  // namespace jaxspv
