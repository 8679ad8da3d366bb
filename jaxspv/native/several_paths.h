// The k shortest paths without a vertex twice. Yen, "Finding the k shortest loopless paths in a
// network", Management Science 17, 1971; Lawler, Management Science 18, 1972; searches are led to the
// target by distances to it: Hart, Nilsson, Raphael, "A formal basis for the heuristic determination
// of minimum cost paths", IEEE Transactions on Systems Science and Cybernetics 4, 1968.
#pragma once
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "convert.h"

namespace jaxspv {

struct Path {
  std::vector<Id> vertices, slots;  // of its edges
  double length = 0;
  size_t left = 0;  // where it leaves the path that it came from
};

template <class T>
class SeveralPaths {
 public:
  // A negative weight counts as 0; an infinite one, or NaN, is no edge.
  SeveralPaths(const Matrix& g, const T* weight, Id target)
      : g_(g), weight_(weight), target_(target), ahead_(g.rows, kFar), far_(g.rows, kFar),
        from_(g.rows), slot_(g.rows), seen_(g.rows, 0), closed_(g.rows, 0) {
    std::vector<Id> ptr(size_t(g.rows) + 1), row(g.slots), slot(g.slots);
    transpose(g, g.slots, g.rows, ptr.data(), row.data(), slot.data());
    Queue queue;
    put(queue, ahead_, target, 0);
    while (!queue.empty()) {
      const auto [length, v] = queue.top();
      queue.pop();
      if (length > ahead_[v]) continue;
      for (Id e = ptr[v]; e < ptr[v + 1]; ++e) put(queue, ahead_, row[e], length + of(slot[e]));
    }
  }

  // At most k paths, shortest first.
  std::vector<Path> run(Id source, Id k) {
    std::vector<Path> found;
    std::vector<Path> waiting(1);
    std::set<std::pair<double, size_t>> order;  // of those that wait
    if (search({}, source, waiting[0])) order.insert({waiting[0].length, 0});
    while (!order.empty() && found.size() < size_t(k)) {
      found.push_back(std::move(waiting[order.begin()->second]));
      order.erase(order.begin());
      const Path last = found.back();
      std::vector<size_t> alike;  // how many of their first vertices known paths share with the last
      for (const Path& path : found) {
        size_t i = 0;
        while (i < std::min(path.vertices.size(), last.vertices.size()) && path.vertices[i] == last.vertices[i]) ++i;
        alike.push_back(i);
      }
      ++mark_;
      Path start;  // the last path up to the vertex where it is left
      for (size_t i = 0; i < last.slots.size() && found.size() < size_t(k); ++i) {
        if (i >= last.left) {
          taken_.clear();
          for (size_t j = 0; j < found.size(); ++j)
            if (alike[j] > i && found[j].slots.size() > i) taken_.push_back(found[j].vertices[i + 1]);
          Path path;
          if (search(start, last.vertices[i], path)) {
            order.insert({path.length, waiting.size()});
            waiting.push_back(std::move(path));
          }
        }
        closed_[last.vertices[i]] = mark_;
        start.vertices.push_back(last.vertices[i]);
        start.slots.push_back(last.slots[i]);
        start.length += of(last.slots[i]);
      }
      taken_.clear();
    }
    return found;
  }

 private:
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  using Queue = std::priority_queue<std::pair<double, Id>, std::vector<std::pair<double, Id>>, std::greater<>>;

  double of(Id e) const { return weight_[e] < kFar ? std::max(0.0, double(weight_[e])) : kFar; }

  static void put(Queue& queue, std::vector<double>& far, Id v, double length) {
    if (length < far[v]) far[v] = length, queue.push({length, v});
  }

  // The shortest path from a vertex to the target past no closed vertex, whose first step goes to none
  // of `taken_`; its length is measured with that of `start`, by reduced weights.
  bool search(const Path& start, Id spur, Path& path) {
    ++number_;
    Queue queue;
    const auto visit = [&](Id v, double length, Id from, Id slot) {
      if (seen_[v] != number_) seen_[v] = number_, far_[v] = kFar;
      if (!(length < far_[v])) return;
      far_[v] = length, from_[v] = from, slot_[v] = slot;
      queue.push({length, v});
    };
    if (ahead_[spur] < kFar) visit(spur, 0, -1, -1);
    while (!queue.empty()) {
      const auto [length, v] = queue.top();
      queue.pop();
      if (length > far_[v]) continue;
      if (v == target_) return trace(start, path), true;
      for (Id e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) {
        const Id u = g_.idx[e];
        const double w = of(e);
        if (closed_[u] == mark_ || !(ahead_[u] < kFar) || !(w < kFar)) continue;
        if (v == spur && std::find(taken_.begin(), taken_.end(), u) != taken_.end()) continue;
        visit(u, length + std::max(0.0, w + ahead_[u] - ahead_[v]), v, e);
      }
    }
    return false;
  }

  void trace(const Path& start, Path& path) const {
    path = start;
    path.left = start.vertices.size();
    for (Id v = target_; v >= 0; v = from_[v]) {
      path.vertices.push_back(v);
      if (slot_[v] >= 0) path.slots.push_back(slot_[v]), path.length += of(slot_[v]);
    }
    std::reverse(path.vertices.begin() + path.left, path.vertices.end());
    std::reverse(path.slots.begin() + path.left, path.slots.end());
  }

  const Matrix g_;
  const T* weight_;
  const Id target_;
  std::vector<double> ahead_, far_;  // to the target; by reduced weights from where a search starts
  std::vector<Id> from_, slot_;  // the vertex and the edge before, in a search
  std::vector<int64_t> seen_, closed_;  // by the last search, for the last path
  std::vector<Id> taken_;
  int64_t number_ = 0, mark_ = 1;
};

}  // namespace jaxspv
