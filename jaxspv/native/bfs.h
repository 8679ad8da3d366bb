// Breadth-first search: levels and parents from one source or several.
#pragma once
#include <atomic>
#include <cstring>
#include <vector>

#include "checked.h"
#include "until.h"

namespace jaxspv {

// f(b) for the bits b of a word that are set.
template <class F>
void each_bit(uint64_t word, const F& f) {
  for (; word; word &= word - 1) f(__builtin_ctzll(word));
}

// A vertex that was reached and, in the upper half, the one from which.
using Step = uint64_t;
inline Step step(Id to, Id from) { return uint64_t(uint32_t(from)) << 32 | uint32_t(to); }
inline Id reached(Step s) { return Id(uint32_t(s)); }
inline Id origin(Step s) { return Id(s >> 32); }

// Appends the open neighbours of queue[head, end) and closes them; returns where the queue ends then. One
// more is written than is kept. open: (rows + 1,), the last one 0. Neither whether a neighbour is open nor
// where a row of up to four ends is a branch, which would be guessed wrong too often.
inline int64_t push(const Matrix g, Step* queue, int64_t head, const int64_t end, uint8_t* open) {
  typedef uint32_t Four __attribute__((vector_size(16)));
  typedef int32_t Places __attribute__((vector_size(16)));
  const uint32_t n = uint32_t(g.rows);
  const Four none = {n, n, n, n};
  const Id readable = g.slots - 3;
  int64_t tail = end;
  const auto append = [&](Step s) JAXSPV_INLINE {
    queue[tail] = s;
    tail += open[uint32_t(s)];
    open[uint32_t(s)] = 0;
  };
  for (; head < end; ++head) {
    if (head + 24 < tail) __builtin_prefetch(g.ptr + reached(queue[head + 24]) + 1);
    if (head + 12 < tail) {
      const Id* const soon = g.idx + g.begin(reached(queue[head + 12]));
      __builtin_prefetch(soon), __builtin_prefetch(soon + 15);  // a row may lie in two lines of the cache
    }
    const Id u = reached(queue[head]), stop = g.end(u);
    Id e = g.begin(u);
    if (stop > readable) {
      for (; e < stop; ++e) append(step(Id(std::min(uint32_t(g.idx[e]), n)), u));
      continue;
    }
    const uint64_t from = step(0, u);
    for (; e < stop; e += 4) {
      Four to;
      std::memcpy(&to, g.idx + e, sizeof to);
      to = Places{0, 1, 2, 3} < stop - e ? to : none;
      to = to < none ? to : none;
      append(from | to[0]), append(from | to[1]), append(from | to[2]), append(from | to[3]);
    }
  }
  return tail;
}

// One source, direction-optimizing. Threads change which of several parents is found, never levels.
// Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.
class BreadthFirst {
 public:
  // in: the transposed graph, or null: then every level is pushed. level, parent: (rows,); parent
  // may be null. -1 where unreached.
  BreadthFirst(Team& team, const Matrix& out, const Matrix* in, Id* level, Id* parent)
      : team_(team), out_(out), in_(in), level_(level), parent_(parent), n_(out.rows),
        words_(int64_t(n_) / 64 + 1) {}

  // stop(depth, vertices of that level): asked when a level is complete. Returns how many levels
  // hold a vertex.
  template <class Stop>
  Id run(Id source, const Stop& stop) {
    open_.assign(64 * words_, 0);
    std::fill(open_.begin(), open_.begin() + n_, 1);
    if (out_.holds(source)) {
      queue_ = buffer<Step>(int64_t(n_) + 1);
      found_.resize(team_.size());
      queue_[0] = step(source, source);
      open_[source] = 0;
      tail_ = 1;
    }
    for (Id depth = 0; tail_ > (depth ? ends_.back() : 0);) {
      ends_.push_back(Id(tail_));
      if (stop(depth++, tail_ - head_)) break;
      if (in_ && pull_is_cheaper()) pull(depth);
      else if (team_.size() > 1 && tail_ - head_ >= kAlone) push_together();
      else if (tail_ - head_ < kThin) push_thin();
      else push_alone();
    }
    write();
    return Id(ends_.size());
  }
  bool reaches(Id v) const { return out_.holds(v) && !open_[v]; }

 private:
  static constexpr int64_t kAlone = 4096;  // vertices of a level from which on threads share it
  static constexpr int64_t kThin = 8;      // vertices of a level, as on a path
  static constexpr Id kNarrow = 64;        // below n / kNarrow vertices a level is pushed unasked

  // Costs whose ratios matter: an edge pushed 6, by threads 14, an in-neighbour looked at 8, a vertex passed by 4.
  // About m / edges looks hit the frontier, and never more than the degree.
  bool pull_is_cheaper() const {
    if (tail_ - head_ < std::max<int64_t>(1, n_ / kNarrow)) return false;
    double edges = 0;
    for (int64_t i = head_; i < tail_; ++i) edges += double(out_.degree(reached(queue_[i])));
    const double m = double(out_.entries()), n = double(n_);
    const double looks = std::min(m / (edges + 1), m / n);
    const int push = team_.size() > 1 && tail_ - head_ >= kAlone ? 14 : 6;
    return push * edges > 0.2 * n + (n - double(tail_)) * (4 + 8 * looks);
  }

  // The processor guesses whether a neighbour was reached and reads on: the next level waits for nothing.
  void push_thin() {
    front_known_ = false;
    for (const int64_t end = tail_; head_ < end; ++head_) {
      const Id u = reached(queue_[head_]);
      for (Id e = out_.begin(u), stop = out_.end(u); e < stop; ++e) {
        const Id v = out_.idx[e];
        if (!out_.holds(v) || !open_[v]) continue;
        open_[v] = 0;
        queue_[tail_++] = step(v, u);
      }
    }
  }

  void push_alone() {
    front_known_ = false;
    const int64_t end = tail_;
    tail_ = push(out_, queue_.get(), head_, end, open_.data());
    head_ = end;
  }

  void push_together() {
    front_known_ = false;
    const int64_t begin = head_;
    team_.blocks(tail_ - head_, 256, [&](int64_t first, int64_t last, int me) {
      for (int64_t i = begin + first; i < begin + last; ++i) {
        const Id u = reached(queue_[i]);
        for (Id e = out_.begin(u), stop = out_.end(u); e < stop; ++e) {
          const Id v = out_.idx[e];
          if (out_.holds(v) && claim(v)) found_[me].push_back(step(v, u));
        }
      }
    });
    head_ = tail_;
    for (auto& some : found_) {
      std::copy(some.begin(), some.end(), queue_.get() + tail_);
      tail_ += int64_t(some.size());
      some.clear();
    }
  }

  // Levels and parents that were pushed since the last time; the first time -1 for all others.
  void write() {
    if (!written_) {
      std::fill(level_, level_ + n_, -1);
      if (parent_) std::fill(parent_, parent_ + n_, -1);
    }
    for (; written_ < ends_.size(); ++written_) {
      const int64_t begin = written_ ? ends_[written_ - 1] : 0;
      team_.blocks(ends_[written_] - begin, kAlone, [&](int64_t first, int64_t last, int) {
        for (int64_t i = begin + first; i < begin + last; ++i) {
          level_[reached(queue_[i])] = Id(written_);
          if (parent_) parent_[reached(queue_[i])] = origin(queue_[i]);
        }
      });
    }
  }

  bool claim(Id v) {  // whether this thread is the first to reach v
    auto& open = reinterpret_cast<std::atomic<uint8_t>&>(open_[v]);
    return open.load(std::memory_order_relaxed) && open.exchange(0, std::memory_order_relaxed);
  }

  void pull(Id depth) {
    write();
    ++written_;  // this level is written as it is found
    if (!front_known_) {
      front_.assign(words_, 0);
      next_.resize(words_);
      for (int64_t i = head_; i < tail_; ++i) set(front_.data(), reached(queue_[i]));
    }
    front_known_ = true;
    team_.blocks(words_, 128, [&](int64_t first, int64_t last, int) {
      for (int64_t w = first; w < last; ++w) next_[w] = pulled(w, depth);
    });
    std::swap(front_, next_);
    head_ = tail_;
    for (int64_t w = 0; w < words_; ++w) each_bit(front_[w], [&](int b) { queue_[tail_++] = step(Id(w << 6) + b, 0); });
  }

  uint64_t pulled(int64_t w, Id depth) {  // those of 64 vertices that have a parent in the frontier
    uint64_t open = 0, got = 0;
    for (int k = 0; k < 64; k += 8) {  // the lowest bits of eight bytes, side by side
      uint64_t bytes;
      std::memcpy(&bytes, &open_[64 * w + k], sizeof bytes);
      open |= bytes * 0x0102040810204080 >> 56 << k;
    }
    each_bit(open, [&](int b) {
      const Id v = Id(w << 6) + b;
      for (Id e = in_->begin(v), stop = in_->end(v); e < stop; ++e) {
        const Id u = in_->idx[e];
        if (!in_->holds(u) || !test(front_.data(), u)) continue;
        level_[v] = depth;
        if (parent_) parent_[v] = u;
        open_[v] = 0;
        got |= uint64_t(1) << b;
        break;
      }
    });
    return got;
  }

  Team& team_;
  const Matrix& out_;
  const Matrix* in_;
  Id *level_, *parent_;
  const Id n_;
  const int64_t words_;
  std::unique_ptr<Step[]> queue_;  // all that was reached, level by level; [head, tail) is the frontier
  int64_t head_ = 0, tail_ = 0;
  std::vector<Id> ends_;                // of the levels in the queue
  size_t written_ = 0;                  // levels that `level` and `parent` have
  std::vector<uint64_t> front_, next_;  // sets of vertices, a bit each
  std::vector<uint8_t> open_;           // a 1 for each vertex that was not reached, padded by zeros
  std::vector<std::vector<Step>> found_;
  bool front_known_ = false;  // whether `front_` is the frontier
};

// Of several parents the one of smallest number, from the levels alone. O(rows + entries).
inline void smallest_parents(const Matrix& out, Id source, const Id* level, Id* parent) {
  std::fill(parent, parent + out.rows, Id(-1));
  for (Id u = 0; u < out.rows; ++u) {
    if (level[u] < 0) continue;
    for (Id e = out.begin(u), stop = out.end(u); e < stop; ++e) {
      const Id v = out.idx[e];
      if (out.holds(v) && parent[v] < 0 && level[v] == level[u] + 1) parent[v] = u;
    }
  }
  if (out.holds(source) && level[source] == 0) parent[source] = source;
}

// From one source. until: pairs of a condition, as in `until.h`; `pulls`: whether `in` is the
// transposed graph; `deterministic`: the parent is the smallest. Returns how many levels hold a vertex.
inline Id bfs(Team& team, Unchecked out, Unchecked in, Id source, Table<const Id> until, bool pulls, bool deterministic,
              Id* level, Maybe<Id> parent) {
  expect(in.rows == out.rows, "a graph and its transpose differ in size");
  expect(until.columns == 2, "conditions are pairs");
  BreadthFirst search(team, out, pulls ? &in : nullptr, level, deterministic ? nullptr : parent.data);
  const Id levels = search.run(source, [&](Id depth, int64_t width) {
    return holds(until, until.rows, depth, width == 0, [&](Id v) { return search.reaches(v); });
  });
  if (parent && deterministic) smallest_parents(out, source, level, parent);
  return levels;
}

// Up to 64 sources, a bit each: an edge is read one time for all that share a frontier. For each vertex
// by its distance, at(v, sources, distance); before, reach(u, v, sources, distance) for the edges by which
// some sources reach v first.
// Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.
constexpr int64_t kWord = 64;
template <class At, class Reach>
void search_sources(const Matrix& out, const Id* sources, int64_t count, const At& at, const Reach& reach) {
  std::vector<uint64_t> seen(out.rows, 0), front(out.rows, 0), next(out.rows, 0);
  std::vector<Id> queue, following;
  for (int64_t b = 0; b < count; ++b) {
    const Id s = sources[b];
    if (!out.holds(s)) continue;
    if (!front[s]) queue.push_back(s);
    front[s] |= uint64_t(1) << b;
    reach(s, s, uint64_t(1) << b, 0);
  }
  for (const Id v : queue) seen[v] = front[v];
  for (Id depth = 0; !queue.empty(); ++depth) {
    for (const Id u : queue) {
      const uint64_t bits = front[u];
      front[u] = 0;
      at(u, bits, depth);
      for (Id e = out.begin(u), stop = out.end(u); e < stop; ++e) {
        const Id v = out.idx[e];
        if (!out.holds(v)) continue;
        const uint64_t fresh = bits & ~seen[v];
        if (!fresh) continue;
        seen[v] |= fresh;
        if (!next[v]) following.push_back(v);
        next[v] |= fresh;
        reach(u, v, fresh, depth + 1);
      }
    }
    queue.clear();
    queue.swap(following);
    front.swap(next);
  }
}

// level, parent: (sources, rows); parent may have none.
inline void bfs_sources(Team& team, Unchecked out, List<const Id> sources, bool deterministic, Table<Id> level,
                        Table<Id> parent) {
  const int64_t n = out.rows, parents = parent.rows ? sources.size : 0;
  expect(level.rows == sources.size && level.columns == n, "a row of levels for each source");
  expect(parent.rows == parents && (!parents || parent.columns == n), "a row of parents for each source");
  std::fill(level + 0, level + sources.size * n, -1);
  std::fill(parent + 0, parent + parents * n, -1);
  team.each((sources.size + kWord - 1) / kWord, [&](int64_t word, int) {
    const int64_t first = word * kWord, count = std::min(kWord, sources.size - first);
    Id *const levels = level + first * n, *const up = parents ? parent + first * n : nullptr;
    const auto reach = [=](Id u, Id v, uint64_t bits, Id depth) JAXSPV_INLINE {
      each_bit(bits, [&](int b) {
        levels[b * n + v] = depth;
        if (up) up[b * n + v] = u;
      });
    };
    search_sources(out, sources + first, count, [](Id, uint64_t, Id) {}, reach);
    for (int64_t i = 0; parents && deterministic && i < count; ++i)
      smallest_parents(out, sources[first + i], levels + i * n, up + i * n);
  });
}

}  // namespace jaxspv
