// Trees of shortest paths from the distances, and sums along the paths of a tree.
//
// An edge u -> v of weight w is tight where d[u] + w = d[v] and v is reached.
#pragma once
#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "checked.h"
#include "semirings.h"

namespace jaxspv {

template <class T>
struct Distances {
  const Matrix& g;
  const T *weight, *d;
  bool reached(Id v) const { return d[v] < largest<T>(); }
  bool finite(Id v) const { return std::abs(d[v]) < largest<T>(); }
  bool exact(Id u, Id e) const { return MinExtend::apply<T>(d[u], weight[e]) == d[g.idx[e]]; }
  bool tight(Id u, Id e) const { return reached(g.idx[e]) && exact(u, e); }
};

// For each reached vertex the tight predecessor of smallest (edges from the source, number); the
// source is its own, others have -1.
template <class T>
void shortest_path_tree(const Matrix& g, Entries<const T> weight, const T* d, Id source, Id* parent) {
  const Distances<T> p{g, weight, d};
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
// its tail, v for none. The rules are those of algorithms/sssp/tree.py.
template <class T>
void tight_edges(Team& team, const Matrix& g, Entries<const T> weight, const T* d, Id source, Id* slot, Id* row) {
  const Distances<T> p{g, weight, d};
  const Id n = g.rows, none = g.slots;
  std::fill(slot, slot + n, none);
  for (Id v = 0; v < n; ++v) row[v] = v;
  std::mutex mutex;
  over_rows(team, g, [&](Id first, Id last, int) {  // 1. from strictly nearer vertices the first slot
    constexpr int kMost = 512;
    Id edge[kMost], tail[kMost];  // a list, as no branch foresees which edges are tight
    auto take = [&](int count) {
      std::lock_guard<std::mutex> lock(mutex);
      for (int k = 0; k < count; ++k) {
        const Id e = edge[k], u = tail[k], v = g.idx[e];
        if (e < slot[v] && v != source && p.d[u] < p.d[v] && p.reached(v)) slot[v] = e, row[v] = u;
      }
    };
    int found = 0;
    const Id* head = g.idx;
    over_entries(g, first, last, Numbers(), [&, weight = p.weight, d, head](Id e, Id u) JAXSPV_INLINE {
      edge[found] = e, tail[found] = u;
      found += MinExtend::apply<T>(d[u], weight[e]) == d[head[e]];
      if (found == kMost) take(found), found = 0;
    });
    take(found);
  });
  std::vector<uint8_t> wanted(n);
  bool orphans = false;
  for (Id v = 0; v < n; ++v) {
    wanted[v] = p.finite(v) && v != source && slot[v] == none;
    orphans |= wanted[v];
  }
  if (!orphans) return;
  std::vector<Id> level, next;
  for (Id v = 0; v < n; ++v)
    if (p.finite(v) && !wanted[v]) level.push_back(v);
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
  shortest_path_tree(g, weight, d, source, row);  // 3. all take the tree
  for (Id v = 0; v < n; ++v) {
    const Id u = row[v];
    slot[v] = none;
    if (u < 0 || v == source || !p.finite(v)) {
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
  Tree(const Id* parent, Id n, Id source) : parent_(parent), n_(n), source_(source), order_(buffer<Id>(n + 1)) {
    std::vector<Id> children(n);  // those not in order_ yet
    for (Id v = 0; v < n; ++v)
      if (above(v) >= 0) ++children[above(v)];
    auto put = [&](Id v) { order_[size_] = v, size_ += children[v] == 0; };  // no branch to foresee
    for (Id v = 0; v < n; ++v) put(v);
    for (Id i = 0; i < size_; ++i) {
      const Id u = above(order_[i]);
      if (u >= 0) --children[u], put(u);
    }
  }
  // sums[v] += those of all above v, or of all below it. Vertices on a cycle are left out.
  void to_root(double* sums) const {
    for (Id i = size_; i-- > 0;)
      if (const Id v = order_[i], u = above(v); u >= 0) sums[v] += sums[u];
  }
  void from_leaves(double* sums) const {
    for (Id i = 0; i < size_; ++i)
      if (const Id v = order_[i], u = above(v); u >= 0) sums[u] += sums[v];
  }

 private:
  Id above(Id v) const {
    const Id u = parent_[v];
    return u == v || u == source_ || u < 0 || u >= n_ ? -1 : u;
  }
  const Id* parent_;
  const Id n_, source_;
  Id size_ = 0;
  std::unique_ptr<Id[]> order_;  // children before their parents
};

// result: sums of values to the root, or with `down` from the leaves; of values at the slots of the
// vertices, or of the vertices where there are no slots.
template <class T>
void sums_along_paths(List<const T> values, List<const Id> parent, Id source, List<const Id> slot, bool down,
                      List<T> result) {
  const Id n = Id(parent.size);
  expect(parent.size <= 0x7fffffff && (!slot.size || slot.size == n), "a parent, and a slot, for each vertex");
  expect((slot.size && !down) || values.size == n, "values differ in number from vertices");
  expect((slot.size && down) || result.size == n, "results differ in number from vertices");
  const bool gathers = slot.size && !down, scatters = slot.size && down;
  std::vector<double> sums(n);
  for (Id v = 0; v < n; ++v) {
    if (!gathers) sums[v] = double(values[v]);
    else if (uint32_t(slot[v]) < uint64_t(values.size)) sums[v] = double(values[slot[v]]);
  }
  const Tree tree(parent, n, source);
  down ? tree.from_leaves(sums.data()) : tree.to_root(sums.data());
  if (scatters) std::fill(result.begin(), result.end(), T(0));
  for (Id v = 0; v < n; ++v) {
    if (!scatters) result[v] = T(sums[v]);
    else if (uint32_t(slot[v]) < uint64_t(result.size)) result[slot[v]] += T(sums[v]);
  }
}

}  // namespace jaxspv
