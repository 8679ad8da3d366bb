// Orders of vertices: by generations of an acyclic graph, and with neighbours near each other.
// Kahn, "Topological sorting of large networks", CACM 5, 1962; Cuthill, McKee, "Reducing the
// bandwidth of sparse symmetric matrices", 1969; George, Liu, "An implementation of a
// pseudoperipheral node finder", ACM TOMS 5, 1979.
#pragma once
#include <algorithm>
#include <utility>
#include <vector>

#include "checked.h"

namespace jaxspv {

// generation[v]: the most edges of a path to v; -1 on cycles, behind them and where `exists` is false;
// order: the vertices that have one, by it, then by number; `n` behind them. Returns whether there is no
// cycle.
inline bool topological_order(const Matrix& g, Maybe<const uint8_t> exists, Id* order, Id* generation) {
  const Id n = g.rows;
  std::vector<Id> missing(n, 0), queue;
  queue.reserve(n);
  for (Id e = 0; e < g.ptr[n]; ++e) ++missing[g.idx[e]];
  std::fill(generation, generation + n, 0);
  for (Id v = 0; v < n; ++v)
    if (!missing[v]) queue.push_back(v);
  for (size_t i = 0; i < queue.size(); ++i) {
    const Id v = queue[i];
    for (const Id u : row(g, v)) {
      generation[u] = std::max(generation[u], generation[v] + 1);
      if (!--missing[u]) queue.push_back(u);
    }
  }
  for (Id v = 0; v < n; ++v)
    if (missing[v] || (exists && !exists[v])) generation[v] = -1;
  std::fill(order + counting_sort(generation, n, n, order)[n], order + n, n);
  return Id(queue.size()) == n;
}

class CuthillMcKee {
 public:
  explicit CuthillMcKee(const Matrix& g) : g_(g), degree_(g.rows), seen_(g.rows, 0) {
    degrees_without_loops(g, degree_.data());
  }

  // order[k]: the vertex in place k of the reversed order; behind the last one `rows`. `exists`:
  // which vertices there are, null for all.
  void run(const uint8_t* exists, Id* order) {
    const Id n = g_.rows;
    std::vector<uint8_t> done(n, 0);
    std::vector<Id> all;
    all.reserve(n);
    for (Id v = 0; v < n; ++v) {
      if (done[v] || (exists && !exists[v])) continue;
      search(far_from(v), true);
      for (const Id u : queue_) done[u] = 1;
      all.insert(all.end(), queue_.begin(), queue_.end());
      if (all.size() > size_t(n)) all.resize(n);  // of a pattern that is not symmetric
    }
    std::fill(std::reverse_copy(all.begin(), all.end(), order), order + n, n);
  }

 private:
  std::pair<Id, Id> rank(Id v) const { return {degree_[v], v}; }
  Id least(size_t first) const {
    return *std::min_element(queue_.begin() + first, queue_.end(), [&](Id u, Id v) { return rank(u) < rank(v); });
  }

  // A vertex far from others of its component: as long as that finds more levels, a search starts
  // from the last level's vertex of least degree.
  Id far_from(Id v) {
    search(v, false);
    Id root = least(0), depth = search(root, false);
    for (;;) {
      const Id next = least(last_), levels = search(next, false);
      if (levels <= depth) return root;
      depth = levels, root = next;
    }
  }

  // Fills `queue_` breadth first and returns the number of levels; `last_` is where the last begins.
  Id search(Id root, bool by_degree) {
    ++number_;
    queue_.assign(1, root);
    seen_[root] = number_;
    last_ = 0;
    for (Id levels = 1;; ++levels) {
      const size_t end = queue_.size();
      for (size_t i = last_; i < end; ++i) {
        const size_t first = queue_.size();
        for (const Id u : row(g_, queue_[i]))
          if (seen_[u] != number_) seen_[u] = number_, queue_.push_back(u);
        if (by_degree)
          std::sort(queue_.begin() + first, queue_.end(), [&](Id u, Id v) { return rank(u) < rank(v); });
      }
      if (queue_.size() == end) return levels;
      last_ = end;
    }
  }

  const Matrix g_;
  std::vector<Id> degree_, seen_, queue_;
  Id number_ = 0;
  size_t last_ = 0;
};

inline void reverse_cuthill_mckee(const Matrix& g, Maybe<const uint8_t> exists, Id* order) {
  CuthillMcKee(g).run(exists, order);
}

}  // namespace jaxspv
