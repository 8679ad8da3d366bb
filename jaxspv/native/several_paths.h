// The k shortest paths without a vertex twice. Yen, "Finding the k shortest loopless paths in a
// network", Management Science 17, 1971; Lawler, Management Science 18, 1972; searches are led to the
// target by distances to it, and end at a vertex whose shortest path to it is free: Feng, "Finding k
// shortest simple paths in directed graphs", Networks 64, 2014.
#pragma once
#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <utility>
#include <vector>

#include "convert.h"
#include "semirings.h"

namespace jaxspv {

template <class T>
class SeveralPaths {
 public:
  using Length = std::conditional_t<std::is_integral_v<T>, int64_t, double>;
  struct Path {
    std::vector<Id> vertices, slots;  // of its edges
    Length length = 0;
    size_t left = 0;  // where it leaves the path that it came from
  };

  // A negative weight counts as 0; an infinite one (the largest integer), or NaN, is no edge.
  SeveralPaths(const Matrix& g, const T* weight, Id target)
      : g_(g), weight_(weight), target_(target), ahead_(g.rows, kFar), far_(g.rows), from_(g.rows),
        slot_(g.rows), after_(g.rows, -1), child_(g.rows, -1), sibling_(g.rows, -1), seen_(g.rows, 0),
        closed_(g.rows, 0), barred_(g.rows, 0) {
    const Transposed<Id> back(g, Numbers());
    Queue queue;
    ahead_[target] = 0;
    queue.push({0, target});
    while (!queue.empty()) {
      const auto [length, v] = queue.top();
      queue.pop();
      if (length > ahead_[v]) continue;
      for (Id e = back.ptr[v]; e < back.ptr[v + 1]; ++e) {
        const Id u = back.row[e], slot = back.values[e];
        const Length sum = plus(length, of(slot));
        if (!(sum < ahead_[u])) continue;
        ahead_[u] = sum, after_[u] = slot;
        queue.push({sum, u});
      }
    }
    for (Id v = 0; v < g.rows; ++v)
      if (after_[v] >= 0) sibling_[v] = child_[g.idx[after_[v]]], child_[g.idx[after_[v]]] = v;
  }

  // At most k paths, shortest first. No more of them wait than are still to be found.
  std::vector<Path> run(Id source, Id k) {
    std::vector<Path> found;
    std::map<std::pair<Length, int64_t>, Path> waiting;  // by length, then in the order they were found
    const auto leave = [&](const Path& start, Id spur) {
      const size_t most = size_t(k) - found.size();
      const Length worst = waiting.size() < most ? kFar : waiting.rbegin()->first.first;
      Path path;
      if (!search(spur) || !trace(start, worst, path)) return;
      waiting.emplace(std::make_pair(path.length, number_), std::move(path));
      if (waiting.size() > most) waiting.erase(std::prev(waiting.end()));
    };
    leave({}, source);
    while (!waiting.empty() && found.size() < size_t(k)) {
      found.push_back(std::move(waiting.begin()->second));
      waiting.erase(waiting.begin());
      if (found.size() == size_t(k)) break;
      const Path last = found.back();
      std::vector<size_t> alike;  // how many of their first vertices known paths share with the last
      for (const Path& path : found) {
        const auto end = std::mismatch(last.vertices.begin(), last.vertices.end(), path.vertices.begin(), path.vertices.end());
        alike.push_back(end.first - last.vertices.begin());
      }
      ++mark_;
      Path start;  // the last path up to the vertex where it is left
      for (size_t i = 0; i < last.slots.size(); ++i) {
        close(last.vertices[i]);
        if (i >= last.left) {
          taken_.clear();
          for (size_t j = 0; j < found.size(); ++j)
            if (alike[j] > i && found[j].slots.size() > i) taken_.push_back(found[j].vertices[i + 1]);
          leave(start, last.vertices[i]);
        }
        start.vertices.push_back(last.vertices[i]);
        start.slots.push_back(last.slots[i]);
        start.length = plus(start.length, of(last.slots[i]));
      }
    }
    return found;
  }

 private:
  using Item = std::pair<Length, Id>;
  using Queue = std::priority_queue<Item, std::vector<Item>, std::greater<>>;
  static constexpr Length kFar = largest<Length>();

  Length of(Id e) const { return weight_[e] < largest<T>() ? std::max(Length(0), Length(weight_[e])) : kFar; }
  static Length plus(Length a, Length b) { return MinExtend::apply(a, b); }

  // Closes a vertex, and bars those whose shortest path to the target passes it.
  void close(Id v) {
    closed_[v] = mark_;
    for (stack_.assign(1, v); !stack_.empty();) {
      const Id u = stack_.back();
      stack_.pop_back();
      if (barred_[u] == mark_) continue;
      barred_[u] = mark_;
      for (Id c = child_[u]; c >= 0; c = sibling_[c]) stack_.push_back(c);
    }
  }

  // Whether the target is reached from a vertex past no closed vertex, the first step to none of
  // `taken_`: by a shortest path, which `from_` and `slot_` hold up to `end_`, the tree from there.
  bool search(Id spur) {
    ++number_;
    Queue queue;
    const auto visit = [&](Id v, Length length, Id from, Id slot) {
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
      if (barred_[v] != mark_) return end_ = v, true;
      for (Id e = g_.ptr[v]; e < g_.ptr[v + 1]; ++e) {
        const Id u = g_.idx[e];
        const Length through = plus(of(e), ahead_[u]);
        if (closed_[u] == mark_ || !(through < kFar)) continue;
        if (v == spur && std::find(taken_.begin(), taken_.end(), u) != taken_.end()) continue;
        visit(u, plus(length, std::max(Length(0), through - ahead_[v])), v, e);  // by reduced weights
      }
    }
    return false;
  }

  // The path of the last search, behind `start`; whether it is shorter than `worst`.
  bool trace(const Path& start, Length worst, Path& path) const {
    Length length = plus(start.length, ahead_[end_]);
    for (Id v = end_; slot_[v] >= 0; v = from_[v]) length = plus(length, of(slot_[v]));
    if (!(length < worst)) return false;
    path = start;
    path.length = length;
    path.left = start.vertices.size();
    for (Id v = end_; v >= 0; v = from_[v]) {
      path.vertices.push_back(v);
      if (slot_[v] >= 0) path.slots.push_back(slot_[v]);
    }
    std::reverse(path.vertices.begin() + path.left, path.vertices.end());
    std::reverse(path.slots.begin() + path.left, path.slots.end());
    for (Id v = end_; v != target_; v = path.vertices.back()) {
      path.slots.push_back(after_[v]);
      path.vertices.push_back(g_.idx[after_[v]]);
    }
    return true;
  }

  const Matrix g_;
  const T* weight_;
  const Id target_;
  std::vector<Length> ahead_, far_;  // to the target; by reduced weights from where a search starts
  std::vector<Id> from_, slot_;  // the vertex and the edge before, in a search
  std::vector<Id> after_, child_, sibling_;  // the tree of shortest paths to the target: the edge after
  std::vector<int64_t> seen_, closed_, barred_;  // by the last search, for the last path
  std::vector<Id> taken_, stack_;
  int64_t number_ = 0, mark_ = 1;
  Id end_ = 0;
};

// Of each path its length, vertices, edges and their slots; behind the last one infinity, the number of
// vertices, -1 and the number of slots. `count`: how many there are.
template <class T>
void k_shortest_paths(const Matrix& g, Entries<const T> weight, Id source, Id target, List<T> length,
                      Table<Id> vertices, List<Id> edges, Id& count, Table<Id> slots) {
  const int64_t n = g.rows, k = length.size;
  expect(vertices.rows == k && vertices.columns == n && slots.rows == k && slots.columns == n && edges.size == k,
         "a result has another shape");
  std::fill(length.begin(), length.end(), largest<T>());
  std::fill(vertices + 0, vertices + k * n, g.rows);
  std::fill(edges.begin(), edges.end(), -1);
  std::fill(slots + 0, slots + k * n, g.slots);
  count = 0;
  if (!g.holds(source) || !g.holds(target)) return;
  for (const auto& path : SeveralPaths<T>(g, weight, target).run(source, Id(k))) {
    if (std::is_integral_v<T> && !(path.length < largest<T>())) break;  // nor do later ones fit
    std::copy(path.vertices.begin(), path.vertices.end(), vertices + count * n);
    std::copy(path.slots.begin(), path.slots.end(), slots + count * n);
    length[count] = T(path.length);
    edges[count++] = Id(path.slots.size());
  }
}

}  // namespace jaxspv
