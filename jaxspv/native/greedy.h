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

// member[v]: no neighbour before v in the order of the keys is one. Returns their number.
inline Id independent_set(const Matrix& g, const Id* key, uint8_t* member) {
  std::fill(member, member + g.rows, 0);
  std::vector<uint8_t> excluded(g.rows, 0);
  Id count = 0;
  for (const Id v : order_of(key, g.rows)) {
    if (excluded[v]) continue;
    member[v] = 1;
    ++count;
    for (const Id u : row(g, v)) excluded[u] = 1;
  }
  return count;
}

// color[v]: the least that no neighbour before v has, in the order of the keys, or `ordered`, in the
// order that they are; -1 for a vertex that the order leaves out. Returns how many are used.
inline Id greedy_color(const Matrix& g, const Id* key, bool ordered, Id* color) {
  const Id n = g.rows;
  const std::vector<Id> order = ordered ? std::vector<Id>(key, key + n) : order_of(key, n);
  std::fill(color, color + n, -1);
  std::vector<Id> taken(size_t(n) + 1, -1);  // by colour: the last place that found it at a neighbour
  Id count = 0;
  for (Id i = 0; i < n; ++i) {
    const Id v = order[i];
    if (uint32_t(v) >= uint32_t(n)) continue;
    for (const Id u : row(g, v))
      if (u != v && color[u] >= 0) taken[color[u]] = i;
    Id c = 0;
    while (taken[c] == i) ++c;
    color[v] = c;
    count = std::max(count, c + 1);
  }
  return count;
}

}  // namespace jaxspv
