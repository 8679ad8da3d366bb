// Weakly connected components: the smallest vertex of each.
#pragma once
#include <atomic>
#include <utility>
#include <vector>

#include "bfs.h"

namespace jaxspv {

// Afforest: links a few edges of every vertex, then all edges of those outside of the largest
// component. `symmetric`: every edge has its reverse; only then the largest may be skipped, and thin
// graphs are searched on one thread.
// Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity computation via subgraph
// sampling", IPDPS 2018.
class Components {
 public:
  Components(Team& team, const Matrix& graph, Id* label) : team_(team), g_(graph), label_(label) {}

  void run(bool symmetric) {
    if (symmetric && team_.size() == 1 && g_.entries() / kThin <= g_.rows) return search();
    for (Id v = 0; v < g_.rows; ++v) label_[v] = v;
    for (Id round = 0; round < kRounds; ++round) {
      team_.blocks(g_.rows, kBlock, [&](int64_t first, int64_t last, int) {
        for (Id v = Id(first); v < last; ++v)
          if (g_.degree(v) > round) link(v, g_.idx[g_.begin(v) + round]);
      });
      compress();
    }
    const Id largest = symmetric && g_.rows ? most_frequent() : Id(-1);
    team_.blocks(g_.rows, kBlock, [&](int64_t first, int64_t last, int) {
      for (Id v = Id(first); v < last; ++v) {
        if (get(v) == largest) continue;
        for (Id e = g_.begin(v) + std::min(kRounds, g_.degree(v)), stop = g_.end(v); e < stop; ++e)
          link(v, g_.idx[e]);
      }
    });
    compress();
  }

 private:
  static constexpr Id kThin = 8;  // entries a vertex, up to which searches are faster on one thread
  static constexpr Id kRounds = 2;
  static constexpr int64_t kBlock = 1 << 13;

  // A search from every vertex that no smaller one reaches.
  void search() {
    const auto queue = buffer<Step>(int64_t(g_.rows) + 1);
    std::vector<uint8_t> open(size_t(g_.rows) + 1, 1);
    open[g_.rows] = 0;
    for (Id root = 0; root < g_.rows; ++root) {
      if (!open[root]) continue;
      open[root] = 0;
      queue[0] = step(root, root);
      int64_t head = 0, tail = 1;
      while (head < tail) tail = push(g_, queue.get(), std::exchange(head, tail), tail, open.data());
      for (int64_t i = 0; i < tail; ++i) label_[reached(queue[i])] = root;
    }
  }

  std::atomic<Id>& at(Id v) const { return reinterpret_cast<std::atomic<Id>&>(label_[v]); }
  Id get(Id v) const { return at(v).load(std::memory_order_relaxed); }

  void link(Id u, Id v) {  // joins the trees of u and v: the higher root hooks onto the lower
    if (!g_.holds(v)) return;
    Id p = get(u), q = get(v);
    while (p != q) {
      const Id high = std::max(p, q), low = std::min(p, q);
      Id above = get(high);
      if (above == low) return;
      if (above == high && team_.size() == 1) return at(high).store(low, std::memory_order_relaxed);
      if (above == high && at(high).compare_exchange_strong(above, low, std::memory_order_relaxed)) return;
      p = get(get(high));
      q = get(low);
    }
  }

  void compress() {
    if (team_.size() == 1) {  // no label exceeds its vertex, and those before are roots already
      for (Id v = 0; v < g_.rows; ++v) label_[v] = label_[label_[v]];
      return;
    }
    team_.blocks(g_.rows, kBlock, [&](int64_t first, int64_t last, int) {
      for (Id v = Id(first); v < last; ++v) {
        Id root = get(v);
        while (get(root) != root) root = get(root);
        at(v).store(root, std::memory_order_relaxed);
      }
    });
  }

  Id most_frequent() const {  // label of a sample
    std::vector<Id> sample(256);
    for (size_t i = 0; i < sample.size(); ++i)
      sample[i] = label_[uint64_t(i) * uint64_t(g_.rows) / sample.size()];
    std::sort(sample.begin(), sample.end());
    size_t most = 0;
    Id found = -1;
    for (size_t i = 0, j; i < sample.size(); i = j) {
      for (j = i; j < sample.size() && sample[j] == sample[i];) ++j;
      if (j - i > most) most = j - i, found = sample[i];
    }
    return found;
  }

  Team& team_;
  const Matrix& g_;
  Id* label_;
};

// Returns the number of components.
inline Id components(Team& team, Unchecked g, bool symmetric, Id* label) {
  Components(team, g, label).run(symmetric);
  return count_labels(label, g.rows);
}

}  // namespace jaxspv
