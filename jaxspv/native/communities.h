// Communities: label propagation and Louvain.
// Raghavan, Albert, Kumara, "Near linear time algorithm to detect community structures in
// large-scale networks", Physical Review E 76, 2007; Blondel, Guillaume, Lambiotte, Lefebvre, "Fast
// unfolding of communities in large networks", Journal of Statistical Mechanics, 2008.
#pragma once
#include <algorithm>
#include <atomic>
#include <numeric>
#include <optional>
#include <vector>

#include "convert.h"

namespace jaxspv {

// label[v] becomes the most frequent label of the neighbours, the smallest at ties, of all vertices in
// the same step; where g is not `symmetric`, of those in both directions. Labels outside of [0, rows)
// count for nothing. Returns whether the last step changed nothing; `steps`: how many were taken.
inline bool label_propagation(Team& team, const Matrix& g, const Id* start, Id limit, bool symmetric, Id* label,
                              Id& steps) {
  const Id n = g.rows;
  std::copy(start, start + n, label);
  std::optional<Transposed<Id>> in;
  if (!symmetric) in.emplace(g, Numbers());
  std::vector<Id> next(n);
  std::vector<std::vector<Id>> counts(team.size());
  bool converged = n == 0;
  for (steps = 0; !converged && steps < limit; ++steps) {
    std::atomic<bool> changed{false};
    over_rows(team, g, [&](Id first, Id last, int member) {
      auto& count = counts[member];
      count.resize(n, 0);
      for (Id v = first; v < last; ++v) {
        Id most = 0, best = label[v];
        const List<const Id> sides[] = {row(g, v), in ? row(in->matrix, v) : List<const Id>{}};
        for (const auto& side : sides)
          for (const Id u : side) {
            const Id l = label[u];
            if (!g.holds(l)) continue;
            const Id times = ++count[l];
            if (times > most || (times == most && l < best)) most = times, best = l;
          }
        for (const auto& side : sides)
          for (const Id u : side)
            if (g.holds(label[u])) count[label[u]] = 0;
        next[v] = best;
        if (best != label[v]) changed.store(true, std::memory_order_relaxed);
      }
    });
    std::copy(next.begin(), next.end(), label);
    converged = !changed;
  }
  return converged;
}

// sum over communities c of w(c, c) / W - resolution (k(c) / W) (l(c) / W): w the weight inside, k of
// edges that leave vertices of c, l of those that enter, W of all. Undirected: l = k, loops count twice.
// Vertices whose label is outside of [0, rows) are in no community.
template <class T>
T modularity(const Matrix& g, Entries<const T> weight, const Id* label, T resolution, bool directed) {
  std::vector<double> out(g.rows, 0), in(directed ? g.rows : 0, 0);
  double inside = 0, total = 0, expected = 0;
  for (Id v = 0; v < g.rows; ++v)
    for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e) {
      const Id u = g.idx[e], from = label[v], to = label[u];
      const double w = double(weight[e]) * (!directed && u == v ? 2 : 1);
      total += w;
      if (g.holds(from)) out[from] += w;
      if (directed && g.holds(to)) in[to] += w;
      if (from == to && g.holds(from)) inside += w;
    }
  if (total <= 0) return 0;  // NaN spreads
  for (Id c = 0; c < g.rows; ++c) expected += out[c] / total * ((directed ? in : out)[c] / total);
  return T(inside / total - double(resolution) * expected);
}

class Louvain {
 public:
  // Weights are >= 0; those of loops count twice.
  Louvain(const Matrix& g, const float* weight, double resolution)
      : resolution_(resolution), ptr_(g.ptr, g.ptr + g.rows + 1), idx_(g.idx, g.idx + g.ptr[g.rows]),
        weight_(weight, weight + g.ptr[g.rows]), member_(g.rows) {
    std::iota(member_.begin(), member_.end(), 0);
    for (Id v = 0; v < g.rows; ++v)
      for (Id e = g.ptr[v]; e < g.ptr[v + 1]; ++e)
        if (g.idx[e] == v) weight_[e] *= 2;
  }

  // label[v]: the smallest vertex of the community of v; `levels`: how often communities were joined.
  // Returns the number of communities.
  Id run(Id* label, Id& levels) {
    for (levels = 0; levels < kLevels && join();) ++levels;
    const Id n = Id(member_.size());
    std::vector<Id> smallest(n, n);
    for (Id v = n - 1; v >= 0; --v) smallest[member_[v]] = v;
    for (Id v = 0; v < n; ++v) label[v] = smallest[member_[v]];
    return count_labels(label, n);
  }

 private:
  static constexpr Id kSweeps = 64, kLevels = 32;
  // A move must gain this share of the weight of the vertex's edges: sums are rounded.
  static constexpr double kLeast = 1e-10;

  // Moves vertices between communities, each named by a vertex, until none gains or all sweeps are
  // done. due[v]: the sweep that visits v next, the one after a neighbour has moved.
  void move() {
    const Id n = Id(ptr_.size()) - 1;
    std::vector<double> strength(n, 0), inside, to(n, 0);
    for (Id v = 0; v < n; ++v)
      for (Id e = ptr_[v]; e < ptr_[v + 1]; ++e) strength[v] += weight_[e];
    const double total = std::accumulate(strength.begin(), strength.end(), 0.0);
    const double factor = resolution_ / (total > 0 ? total : 1);
    std::vector<Id> due(n, 0);
    inside = strength;
    group_.resize(n);
    std::iota(group_.begin(), group_.end(), 0);
    bool moved = true;
    for (Id sweep = 0; moved && sweep < kSweeps; ++sweep) {
      moved = false;
      for (Id v = 0; v < n; ++v) {
        if (due[v] < sweep) continue;
        const Id own = group_[v];
        const double pull = factor * strength[v];
        for (Id e = ptr_[v]; e < ptr_[v + 1]; ++e)
          if (idx_[e] != v) to[group_[idx_[e]]] += weight_[e];
        double most = to[own] - pull * (inside[own] - strength[v]) + kLeast * strength[v];
        Id best = own;
        for (Id e = ptr_[v]; e < ptr_[v + 1]; ++e) {
          const Id other = group_[idx_[e]];
          const double gain = to[other] - pull * inside[other];
          if (other != own && gain > most) most = gain, best = other;
        }
        for (Id e = ptr_[v]; e < ptr_[v + 1]; ++e) to[group_[idx_[e]]] = 0;
        if (best == own) continue;
        moved = true;
        group_[v] = best;
        inside[own] -= strength[v];
        inside[best] += strength[v];
        for (Id e = ptr_[v]; e < ptr_[v + 1]; ++e) due[idx_[e]] = sweep + (idx_[e] <= v);
      }
    }
  }

  // Makes communities the vertices; whether there are fewer of them than before.
  bool join() {
    move();
    const Id n = Id(ptr_.size()) - 1;
    std::vector<Id> number(size_t(n) + 1, 0);
    for (Id v = 0; v < n; ++v) number[group_[v] + 1] = 1;
    std::partial_sum(number.begin(), number.end(), number.begin());
    const Id count = number[n];
    if (count == n) return false;
    for (Id& c : group_) c = number[c];
    for (Id& v : member_) v = group_[v];
    std::vector<Id> order(n);
    const std::vector<Id> first = counting_sort(group_.data(), n, count, order.data());
    std::vector<Id> ptr(1, 0), idx, slot(count, -1);  // slot[d]: of the entry of this row and column d
    std::vector<double> weight;
    for (Id c = 0; c < count; ++c) {
      for (Id i = first[c]; i < first[c + 1]; ++i)
        for (Id e = ptr_[order[i]]; e < ptr_[order[i] + 1]; ++e) {
          const Id d = group_[idx_[e]];
          if (slot[d] < ptr[c]) slot[d] = Id(idx.size()), idx.push_back(d), weight.push_back(0);
          weight[slot[d]] += weight_[e];
        }
      ptr.push_back(Id(idx.size()));
    }
    ptr_.swap(ptr), idx_.swap(idx), weight_.swap(weight);
    return true;
  }

  const double resolution_;
  std::vector<Id> ptr_, idx_;
  std::vector<double> weight_;
  std::vector<Id> member_, group_;  // of the graph's vertices; of this level's
};

inline Id louvain(const Matrix& g, Entries<const float> weight, float resolution, Id* label, Id& levels) {
  return Louvain(g, weight, resolution).run(label, levels);
}

}  // namespace jaxspv
