// Shortest paths from one source: a radix heap, delta-stepping, Bellman-Ford.
//
// A label falls only where a path is strictly shorter, so predecessors always make a tree; rounded
// sums of floats make the distances those of Dijkstra's algorithm in the same arithmetic, to the bit.
#pragma once
#include <atomic>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "radix.h"
#include "semirings.h"

namespace jaxspv {

template <class T>
using Bits = std::conditional_t<sizeof(T) == 4, uint32_t, uint64_t>;

// Lengths >= 0 as unsigned integers of the same order.
template <class T>
Bits<T> key_of(T x) {
  Bits<T> key;
  std::memcpy(&key, &x, sizeof x);
  return key;
}
template <class T>
T length_of(Bits<T> key) {
  T x;
  std::memcpy(&x, &key, sizeof x);
  return x;
}

// What one search reads and writes. parent may be null but for Bellman-Ford.
template <class T>
struct Search {
  const Matrix& graph;
  const T* weights;
  Id source;
  T* dist;
  Id* parent;
  // The search may end when all of these are settled; none: it runs to the end.
  const Id* targets;
  int64_t target_count;

  bool starts() {
    std::fill(dist, dist + graph.rows, largest<T>());
    if (parent) std::fill(parent, parent + graph.rows, Id(-1));
    if (!graph.holds(source)) return false;
    dist[source] = 0;
    if (parent) parent[source] = source;
    return true;
  }
  // The length beyond which nothing matters any more.
  T bound() const {
    if (!target_count) return largest<T>();
    T most = T(0);
    for (int64_t i = 0; i < target_count; ++i) {
      if (!graph.holds(targets[i])) return largest<T>();
      most = std::max(most, dist[targets[i]]);
    }
    return most;
  }
};

template <class T>
int64_t radix_heap(Search<T> s) {
  if (!s.starts()) return 0;
  RadixHeap<Bits<T>> heap;
  heap.push(0, s.source);
  int64_t steps = 0;
  const auto& g = s.graph;
  for (std::pair<Bits<T>, Id> next; heap.pop(next);) {
    const Id u = next.second;
    const T d = length_of<T>(next.first);
    if (s.dist[u] < d) continue;
    if (s.target_count && d > s.bound()) break;
    ++steps;
    for (Id e = g.begin(u), stop = g.end(u); e < stop; ++e) {
      const T w = s.weights[e];
      const T to = MinExtend::apply(d, w);
      const Id v = g.idx[e];
      if (!g.holds(v) || !(to < s.dist[v]) || !(w >= 0)) continue;
      s.dist[v] = to;
      if (s.parent) s.parent[v] = u;
      heap.push(key_of(to), v);
    }
  }
  return steps;
}

// Labels of delta-stepping: length and parent in one word, so that threads lower both by one atomic.
template <class T>
class PackedLabels {
 public:
  static_assert(sizeof(T) == 4 && sizeof(Id) == 4);
  explicit PackedLabels(Search<T>& s, bool shared) : s_(s), shared_(shared) {
    label_ = buffer<std::atomic<uint64_t>>(s.graph.rows);
    for (Id v = 0; v < s.graph.rows; ++v) put(v, pack(s.dist[v], s.parent ? s.parent[v] : Id(-1)));
  }
  void fetch(Id v) const { __builtin_prefetch(&label_[v]); }
  T length(Id v) const { return length_of<T>(Bits<T>(get(v) >> 32)); }
  bool lower(Id v, T to, Id from) {
    const uint64_t mine = pack(to, from);
    uint64_t old = get(v);
    if (!(to < length_of<T>(Bits<T>(old >> 32)))) return false;
    if (!shared_) return put(v, mine), true;
    while (!label_[v].compare_exchange_weak(old, mine, std::memory_order_relaxed))
      if (!(to < length_of<T>(Bits<T>(old >> 32)))) return false;
    return true;
  }
  void finish() {
    for (Id v = 0; v < s_.graph.rows; ++v) {
      s_.dist[v] = length(v);
      if (s_.parent) s_.parent[v] = Id(uint32_t(get(v)));
    }
  }

 private:
  static uint64_t pack(T x, Id v) { return uint64_t(key_of(x)) << 32 | uint32_t(v); }
  uint64_t get(Id v) const { return label_[v].load(std::memory_order_relaxed); }
  void put(Id v, uint64_t x) { label_[v].store(x, std::memory_order_relaxed); }
  Search<T>& s_;
  bool shared_;
  std::unique_ptr<std::atomic<uint64_t>[]> label_;
};

// By bins of a width, as in the GAP benchmark suite; what lies beyond kBins bins waits in a far bin.
// Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J. Algorithms 2003.
template <class T>
class DeltaStepping {
 public:
  DeltaStepping(Team& team, Search<T> search, double delta)
      : team_(team), s_(search), delta_(std::max(delta, 1e-30)), scale_(1.0 / delta_),
        bins_(team.size(), std::vector<std::vector<Id>>(kBins)), fars_(team.size()) {}

  int64_t run() {
    if (!s_.starts()) return 0;
    PackedLabels<T> labels(s_, team_.size() > 1);
    labels_ = &labels;
    int64_t steps = 0;
    std::vector<Id> front{s_.source};
    do {
      ++steps;
      if (team_.size() > 1 && front.size() > 1024)
        team_.blocks(int64_t(front.size()), 128, [&](int64_t first, int64_t last, int me) {
          for (int64_t i = first; i < last; ++i) relax(front[i], me);
        });
      else
        for (size_t i = 0; i < front.size(); ++i) {
          fetch(front, i);
          relax(front[i], 0);
        }
      front.clear();
      next_bin(front);
    } while ((!front.empty() || refill(front)) && !settled());
    labels.finish();
    return steps;
  }

 private:
  static constexpr int64_t kBins = 512;
  static constexpr size_t kAhead = 8;

  // What vertices behind place i will read. GCC drops calls of a function that does nothing else.
  JAXSPV_INLINE void fetch(const std::vector<Id>& front, size_t i) const {
    if (i + 2 * kAhead < front.size()) {
      __builtin_prefetch(s_.graph.ptr + front[i + 2 * kAhead] + 1);
      labels_->fetch(front[i + 2 * kAhead]);
    }
    if (i + kAhead >= front.size()) return;
    const Id soon = s_.graph.begin(front[i + kAhead]);
    for (const Id line : {0, 15}) {  // a row may lie in two lines of the cache
      __builtin_prefetch(s_.graph.idx + soon + line);
      __builtin_prefetch(s_.weights + soon + line);
    }
  }

  double bin_of(T d) const { return std::min((double(d) - base_) * scale_, double(kBins)); }

  bool settled() const {  // whether all targets lie below the current bin
    for (int64_t i = 0; i < s_.target_count; ++i) {
      const Id v = s_.targets[i];
      if (!s_.graph.holds(v) || !(bin_of(labels_->length(v)) < double(bin_))) return false;
    }
    return s_.target_count > 0;
  }

  void relax(Id u, int me) {
    const auto& g = s_.graph;
    const T d = labels_->length(u);
    if (bin_of(d) < double(bin_)) return;  // settled in an earlier bin
    for (Id e = g.begin(u), stop = g.end(u); e < stop; ++e) {
      const T w = s_.weights[e];
      const Id v = g.idx[e];
      if (!g.holds(v) || !(w >= 0)) continue;
      const T to = MinExtend::apply(d, w);
      if (!labels_->lower(v, to, u)) continue;
      const int64_t at = std::max(int64_t(bin_of(to)), bin_);
      (at < kBins ? bins_[me][at] : fars_[me]).push_back(v);
    }
  }

  void next_bin(std::vector<Id>& front) {  // the next bin of all threads that is not empty
    for (; bin_ < kBins && front.empty(); bin_ += front.empty())
      for (auto& mine : bins_) {
        auto& some = mine[bin_];
        if (front.empty()) std::swap(front, some);
        else front.insert(front.end(), some.begin(), some.end());
        some.clear();
      }
  }

  bool refill(std::vector<Id>& front) {  // bins from the far vertices, of which the nearest is first
    std::vector<Id> far;
    for (auto& mine : fars_) {
      far.insert(far.end(), mine.begin(), mine.end());
      mine.clear();
    }
    const double end = base_ + double(kBins) * delta_;
    T least = largest<T>();
    for (const Id v : far)
      if (double(labels_->length(v)) >= end) least = std::min(least, labels_->length(v));
    if (least == largest<T>()) return false;
    // Wider bins where one step leads over many empty rounds of bins.
    while (double(least) + double(kBins) * delta_ <= double(least)) delta_ *= 2, scale_ = 1.0 / delta_;
    base_ = double(least);
    bin_ = 0;
    for (const Id v : far) {
      const T d = labels_->length(v);
      if (d < least) continue;
      const double at = bin_of(d);
      (at < double(kBins) ? bins_[0][int64_t(at)] : fars_[0]).push_back(v);
    }
    next_bin(front);
    return !front.empty();
  }

  Team& team_;
  Search<T> s_;
  double delta_, scale_;
  PackedLabels<T>* labels_ = nullptr;
  std::vector<std::vector<std::vector<Id>>> bins_;  // of each thread
  std::vector<std::vector<Id>> fars_;
  double base_ = 0;  // the length at which the first bin begins
  int64_t bin_ = 0;
};

// Whether a vertex is its own ancestor; the source is the root.
inline bool has_cycle(const Id* parent, Id source, Id n) {
  std::vector<Id> mark(n, -1);
  mark[source] = n;
  for (Id start = 0; start < n; ++start) {
    Id v = start;
    for (; v >= 0 && mark[v] < 0; v = parent[v]) mark[v] = start;
    if (v >= 0 && mark[v] == start) return true;
  }
  return false;
}

// Any weights, by rounds over the vertices whose label fell. false: a negative cycle is reachable: it
// shows among the parents, or in the label of the source (a negative loop there looks like the root
// among the parents), or in more rounds than there are vertices.
// Cherkassky, Goldberg, "Negative-cycle detection algorithms", Math. Programming 1999.
template <class T>
bool bellman_ford(Search<T> s, int64_t& steps) {
  const auto& g = s.graph;
  steps = 0;
  if (!s.starts()) return true;
  std::vector<Id> front{s.source}, next;
  std::vector<uint8_t> waits(g.rows, 0);
  for (int64_t check = 2; !front.empty();) {
    for (const Id u : front) {
      waits[u] = 0;
      const T d = s.dist[u];
      for (Id e = g.begin(u), stop = g.end(u); e < stop; ++e) {
        const Id v = g.idx[e];
        if (!g.holds(v)) continue;
        const T to = MinExtend::apply(d, s.weights[e]);
        if (!(to < s.dist[v])) continue;
        s.dist[v] = to;
        s.parent[v] = u;
        if (!waits[v]) waits[v] = 1, next.push_back(v);
      }
    }
    front.clear();
    front.swap(next);
    ++steps;
    if (s.dist[s.source] < 0 || (steps > g.rows && !front.empty())) return false;
    if (steps < check) continue;
    if (has_cycle(s.parent, s.source, g.rows)) return false;
    check *= 2;
  }
  return true;
}

struct Weights {  // of the entries of a graph
  double mean = 0, least = 0, most = 0;  // those that are not finite count as 0 in the mean
};
template <class T>
Weights weights_of(const Matrix& g, const T* w) {
  constexpr int kLanes = 8;  // running results that do not wait for each other
  T least[kLanes], most[kLanes];
  double sum[kLanes] = {};
  std::fill(least, least + kLanes, largest<T>());
  std::fill(most, most + kLanes, smallest<T>());
  auto take = [&](const T* x, int lanes) {
    for (int i = 0; i < lanes; ++i) least[i] = x[i] < least[i] ? x[i] : least[i];
    for (int i = 0; i < lanes; ++i) most[i] = (x[i] > most[i]) & (x[i] < largest<T>()) ? x[i] : most[i];
    for (int i = 0; i < lanes; ++i) sum[i] += double(x[i] < largest<T>() ? x[i] : T(0));
  };
  const Id end = g.entries(), whole = end - end % kLanes;
  for (Id e = 0; e < whole; e += kLanes) take(w + e, kLanes);
  for (Id e = whole; e < end; ++e) take(w + e, 1);
  const T low = *std::min_element(least, least + kLanes), high = *std::max_element(most, most + kLanes);
  if (!(low < largest<T>())) return {};
  return {std::accumulate(sum, sum + kLanes, 0.0) / double(end), double(low), double(high)};
}

// The width of bins. A vertex of many edges is lowered often within a bin: the more edges, the narrower.
// Threads share the vertices of a bin, so that many of them want it wider.
inline double delta_of(const Matrix& g, const Weights& weights, int threads) {
  const double degree = double(g.entries()) / std::max(Id(1), g.rows);
  return weights.mean * std::min(1.0, (threads < 4 ? 2 : 8) / std::max(degree, 1.0));
}

// Whether the sum at an edge of a reached vertex is no finite integer, and may have made a length wrong:
// one that is too large does not, where the head has a finite length. A weight that is the largest
// integer counts as infinity, so that no sum with it was a length.
template <class T>
bool any_overflow(const Matrix& g, const T* w, const T* dist) {
  T far = 0, low = 0, most = 0, least = 0;
  for (Id v = 0; v < g.rows; ++v)
    if (dist[v] != largest<T>()) far = std::max(far, dist[v]), low = std::min(low, dist[v]);
  for (Id e = 0, end = g.entries(); e < end; ++e) most = std::max(most, w[e]), least = std::min(least, w[e]);
  auto wraps = [](T a, T b) {
    T sum;
    return __builtin_add_overflow(a, b, &sum) || sum == largest<T>();
  };
  if (!wraps(far, most) && !wraps(low, least)) return false;
  for (Id u = 0; u < g.rows; ++u) {
    if (dist[u] == largest<T>()) continue;
    for (Id e = g.begin(u), stop = g.end(u); e < stop; ++e) {
      const T to = dist[g.column(e)];
      if (w[e] == largest<T>() ? to == w[e] || std::min(dist[u], T(0)) + w[e] < to
                               : wraps(dist[u], w[e]) && (w[e] < 0 || to == largest<T>()))
        return true;
    }
  }
  return false;
}

// On one thread a radix heap is faster where all weights are equal, delta-stepping where they are not;
// the heap cannot be shared. Returns whether a length overflowed.
template <class T>
bool sssp(Team& team, Unchecked g, Entries<const T> weights, Id source, List<const Id> targets, T* dist, Id* parent,
          Id& steps, uint8_t& converged) {
  constexpr int kManyThreads = 4;
  const Search<T> search{g, weights, source, dist, parent, targets, targets.size};
  const Weights about = weights_of<T>(g, weights);
  int64_t count = 0;
  converged = true;
  if (about.least < 0) {
    converged = bellman_ford(search, count);
  } else if (sizeof(T) == 8 || (about.least == about.most && team.size() < kManyThreads)) {
    count = radix_heap(search);
  } else if constexpr (sizeof(T) == 4) {
    count = DeltaStepping<T>(team, search, delta_of(g, about, team.size())).run();
  }
  steps = clipped(count);
  if constexpr (std::is_integral_v<T>) return any_overflow<T>(g, weights, dist);
  else return false;
}

}  // namespace jaxspv
