// Trees of shortest paths from the distances, and sums along the paths of a tree.
//
// An edge u -> v of weight w is tight where d[u] + w = d[v] and v is reached.
#pragma once
#include <algorithm>
#include <cmath>
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

template <class T>
struct Distances {
  const Matrix& g;
  const T *weight, *d;
  bool reached(Id v) const { return d[v] < largest<T>(); }
  bool tight(Id u, Id e) const {
    const Id v = g.idx[e];
    return reached(v) && MinExtend::apply<T>(d[u], weight[e]) == d[v];
  }
};

// For each reached vertex the tight predecessor of smallest (edges from the source, number); the
// source is its own, others have -1.
template <class T>
void shortest_path_tree(const Distances<T>& p, Id source, Id* parent) {
  const Matrix& g = p.g;
  std::fill(parent, parent + g.rows, Id(-1));
  if (source < 0 || source >= g.rows) return;
  std::vector<Id> hops(g.rows, -1), level{source}, next;
  parent[source] = source;
  hops[source] = 0;
  for (Id depth = 1; !level.empty(); ++depth) {
    for (const Id u : level)
      for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
        const Id v = g.idx[e];
        if ((hops[v] >= 0 && hops[v] < depth) || !p.tight(u, e)) continue;
        if (hops[v] < 0) hops[v] = depth, parent[v] = u, next.push_back(v);
        else parent[v] = std::min(parent[v], u);
      }
    level.swap(next);
    next.clear();
  }
}

// slot[v]: the tight edge into v that carries its derivative, the number of slots for none; row[v]:
// its tail, v for none. The rules are those of algorithms/sssp/tree/tight_edges.py.
template <class T>
void tight_edges(const Distances<T>& p, Id source, Id* slot, Id* row) {
  const Matrix& g = p.g;
  const Id n = g.rows, none = g.slots;
  std::vector<uint8_t> wanted(n);
  bool orphans = false;
  for (Id v = 0; v < n; ++v) {
    slot[v] = none;
    row[v] = v;
    wanted[v] = v != source && std::abs(p.d[v]) < largest<T>();
  }
  for (Id u = 0; u < n; ++u)  // 1. from strictly nearer vertices the first slot
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
      const Id v = g.idx[e];
      if (slot[v] == none && wanted[v] && p.d[u] < p.d[v] && p.tight(u, e)) slot[v] = e, row[v] = u;
    }
  std::vector<Id> level, next;
  for (Id v = 0; v < n; ++v) {
    const bool orphan = wanted[v] && slot[v] == none;
    orphans |= orphan;
    wanted[v] = orphan;
    if (!orphan && std::abs(p.d[v]) < largest<T>()) level.push_back(v);
  }
  if (!orphans) return;
  while (!level.empty()) {  // 2. orphans, round by round from vertices that have theirs
    for (const Id u : level)
      for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e) {
        const Id v = g.idx[e];
        if (!wanted[v] || p.d[u] != p.d[v] || !p.tight(u, e)) continue;
        if (slot[v] == none) next.push_back(v);
        if (e < slot[v]) slot[v] = e, row[v] = u;
      }
    for (const Id v : next) wanted[v] = 0;
    level.swap(next);
    next.clear();
  }
  if (std::find(wanted.begin(), wanted.end(), 1) == wanted.end()) return;
  shortest_path_tree(p, source, row);  // 3. all take the tree
  for (Id v = 0; v < n; ++v) {
    const Id u = row[v];
    slot[v] = none;
    if (u < 0 || v == source || !(std::abs(p.d[v]) < largest<T>())) {
      row[v] = v;
      continue;
    }
    for (Id e = g.ptr[u]; e < g.ptr[u + 1] && slot[v] == none; ++e)
      if (g.idx[e] == v && p.tight(u, e)) slot[v] = e;
  }
}

// A tree by the parent of each vertex; a root is its own, the source a root too.
class Tree {
 public:
  Tree(const Id* parent, Id n, Id source) : parent_(parent), n_(n), source_(source), children_(n, 0) {
    for (Id v = 0; v < n; ++v)
      if (above(v) >= 0) ++children_[above(v)];
    for (Id v = 0; v < n; ++v)
      if (!children_[v]) order_.push_back(v);
    for (size_t i = 0; i < order_.size(); ++i) {
      const Id u = above(order_[i]);
      if (u >= 0 && !--children_[u]) order_.push_back(u);
    }
  }
  // sums[v] += those of all above v, or of all below it. Vertices on a cycle are left out.
  void to_root(double* sums) const {
    for (auto v = order_.rbegin(); v != order_.rend(); ++v)
      if (above(*v) >= 0) sums[*v] += sums[above(*v)];
  }
  void from_leaves(double* sums) const {
    for (const Id v : order_)
      if (above(v) >= 0) sums[above(v)] += sums[v];
  }

 private:
  Id above(Id v) const {
    const Id u = parent_[v];
    return u == v || u == source_ || u < 0 || u >= n_ ? -1 : u;
  }
  const Id* parent_;
  const Id n_, source_;
  std::vector<Id> children_, order_;  // children before their parents
};

}  // namespace jaxspv
