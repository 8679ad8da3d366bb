// Breadth-first search: levels and parents from one source or several.
#pragma once
#include <atomic>
#include <vector>

#include "csr.h"

namespace jaxspv {

// One source, direction-optimizing. Threads change which of several parents is found, never levels.
// Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012.
template <class I, class Team>
class BreadthFirst {
 public:
  // in: the transposed graph, or null: then every level is pushed. level, parent: (rows,); parent
  // may be null. -1 where unreached.
  BreadthFirst(Team& team, const Csr<I>& out, const Csr<I>* in, I* level, I* parent)
      : team_(team), out_(out), in_(in), level_(level), parent_(parent), n_(out.rows),
        words_((int64_t(n_) + 63) / 64), shared_(team.size() > 1) {}

  // stop(depth, vertices of that level): asked when a level is complete. Returns how many levels
  // hold a vertex.
  template <class Stop>
  I run(I source, const Stop& stop) {
    std::fill(level_, level_ + n_, I(-1));
    if (parent_) std::fill(parent_, parent_ + n_, I(-1));
    if (!out_.holds(source) || source >= n_) return 0;
    queue_ = buffer<I>(int64_t(n_) + 1);  // one more is written than is kept
    from_ = buffer<I>(int64_t(n_) + 1);
    seen_.assign(words_, 0);
    found_.resize(team_.size());
    level_[source] = 0;
    if (parent_) parent_[source] = source;
    queue_[0] = source;
    tail_ = 1;
    set(seen_.data(), source);
    const bool thin = !shared_ && out_.entries() / kThinDegree <= n_;
    if (thin) reached_.assign(n_, 0), reached_[source] = 1;
    I depth = 0;
    while (!stop(depth, tail_ - head_)) {
      const int64_t before = tail_;
      ++depth;
      if (in_ && pull_is_cheaper()) pull(depth);
      else if (shared_ && tail_ - head_ >= kAlone) push_together(depth);
      else if (thin) push_alone<true>(depth);
      else push_alone<false>(depth);
      if (tail_ == before) return depth;
    }
    return depth + 1;
  }

 private:
  static constexpr int64_t kAlone = 4096;  // vertices of a level from which on threads share it
  static constexpr I kThinDegree = 16;     // mean degree up to which a graph is thin
  static constexpr I kNarrow = 64;         // below n / kNarrow vertices a level is pushed unasked

  // Costs whose ratios matter: an edge pushed 14, an in-neighbour looked at 8, a vertex passed by 4.
  // About m / edges looks hit the frontier, and never more than the degree.
  bool pull_is_cheaper() const {
    if (tail_ - head_ < std::max<int64_t>(1, n_ / kNarrow)) return false;
    double edges = 0;
    for (int64_t i = head_; i < tail_; ++i) edges += double(out_.degree(queue_[i]));
    const double m = double(out_.entries()), n = double(n_);
    const double looks = std::min(m / (edges + 1), m / n);
    return 14 * edges > 0.2 * n + (n - double(tail_)) * (4 + 8 * looks);
  }

  // kThin: a neighbour is appended without a branch on whether it was seen, which would be guessed
  // wrong too often where vertices have few of them.
  template <bool kThin>
  void push_alone(I depth) {
    front_known_ = false;
    const Csr<I> g = out_;
    I *const queue = queue_.get(), *const from = from_.get();
    uint64_t* const seen = seen_.data();
    uint8_t* const reached = reached_.data();
    int64_t tail = tail_;
    for (; head_ < tail_; ++head_) {
      if (head_ + 8 < tail) __builtin_prefetch(g.ptr + queue[head_ + 8]);
      if (head_ + 4 < tail) __builtin_prefetch(g.idx + g.begin(queue[head_ + 4]));
      const I u = queue[head_];
      for (I e = g.begin(u), stop = g.end(u); e < stop; ++e) {
        const I v = g.idx[e];
        if (!g.holds(v) || (!kThin && test(seen, v))) continue;
        const bool fresh = !kThin || !reached[v];
        if constexpr (kThin) reached[v] = 1;
        else set(seen, v);
        queue[tail] = v;
        from[tail] = u;
        tail += fresh;
      }
    }
    for (std::swap(tail, tail_); tail < tail_; ++tail) {
      level_[queue[tail]] = depth;
      if (parent_) parent_[queue[tail]] = from[tail];
    }
  }

  void push_together(I depth) {
    front_known_ = false;
    const int64_t begin = head_;
    team_.blocks(tail_ - head_, 256, [&](int64_t first, int64_t last, int me) {
      for (int64_t i = begin + first; i < begin + last; ++i) {
        const I u = queue_[i];
        for (I e = out_.begin(u), stop = out_.end(u); e < stop; ++e) {
          const I v = out_.idx[e];
          if (!out_.holds(v) || !claim(v)) continue;
          level_[v] = depth;
          if (parent_) parent_[v] = u;
          found_[me].push_back(v);
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

  bool claim(I v) {  // whether this thread is the first to reach v
    auto& word = reinterpret_cast<std::atomic<uint64_t>&>(seen_[v >> 6]);
    const uint64_t bit = uint64_t(1) << (v & 63);
    return !(word.load(std::memory_order_relaxed) & bit) &&
           !(word.fetch_or(bit, std::memory_order_relaxed) & bit);
  }

  void pull(I depth) {
    if (!front_known_) {
      front_.assign(words_, 0);
      next_.resize(words_);
      for (int64_t i = head_; i < tail_; ++i) set(front_.data(), queue_[i]);
    }
    if (!reached_.empty())
      for (; known_ < tail_; ++known_) set(seen_.data(), queue_[known_]);
    front_known_ = true;
    team_.blocks(n_, 1 << 13, [&](int64_t first, int64_t last, int) {
      for (int64_t w = first >> 6; w < (last + 63) >> 6; ++w) next_[w] = pulled(w, depth);
    });
    std::swap(front_, next_);
    head_ = tail_;
    for (int64_t w = 0; w < words_; ++w)
      for (uint64_t left = front_[w]; left; left &= left - 1) {
        const I v = queue_[tail_++] = I(w << 6) + I(__builtin_ctzll(left));
        if (!reached_.empty()) reached_[v] = 1;
      }
  }

  uint64_t pulled(int64_t w, I depth) {  // those of 64 vertices that have a parent in the frontier
    uint64_t open = ~seen_[w], got = 0;
    if (w == words_ - 1 && n_ & 63) open &= (uint64_t(1) << (n_ & 63)) - 1;
    for (; open; open &= open - 1) {
      const I v = I(w << 6) + I(__builtin_ctzll(open));
      for (I e = in_->begin(v), stop = in_->end(v); e < stop; ++e) {
        const I u = in_->idx[e];
        if (!in_->holds(u) || !test(front_.data(), u)) continue;
        level_[v] = depth;
        if (parent_) parent_[v] = u;
        got |= open & -open;
        break;
      }
    }
    seen_[w] |= got;
    return got;
  }

  Team& team_;
  const Csr<I>& out_;
  const Csr<I>* in_;
  I *level_, *parent_;
  const I n_;
  const int64_t words_;
  const bool shared_;
  std::unique_ptr<I[]> queue_;  // all vertices reached, level by level; [head, tail) is the frontier
  std::unique_ptr<I[]> from_;   // the parents of those that `push_alone` appends
  int64_t head_ = 0, tail_ = 0, known_ = 0;  // of those before `known_`, `seen_` holds all
  std::vector<uint64_t> seen_, front_, next_;  // sets of vertices, a bit each
  std::vector<uint8_t> reached_;  // of thin graphs; `seen_` is filled from the queue when pulled
  std::vector<std::vector<I>> found_;
  bool front_known_ = false;  // whether `front_` is up to date
};

// Of several parents the one of smallest number, from the levels alone. O(rows + entries).
template <class I>
void smallest_parents(const Csr<I>& out, I source, const I* level, I* parent) {
  std::fill(parent, parent + out.rows, I(-1));
  for (I u = 0; u < out.rows; ++u) {
    if (level[u] < 0) continue;
    for (I e = out.begin(u), stop = out.end(u); e < stop; ++e) {
      const I v = out.idx[e];
      if (out.holds(v) && parent[v] < 0 && level[v] == level[u] + 1) parent[v] = u;
    }
  }
  if (out.holds(source) && source < out.rows && level[source] == 0) parent[source] = source;
}

// Up to 64 sources, a bit each: an edge is read one time for all that share a frontier.
// reach(source, v, parent, depth) is called for each vertex that a source reaches, by depth.
// Then et al., "The more the merrier: efficient multi-source graph traversal", VLDB 2014.
template <class I, class F>
void search_sources(const Csr<I>& out, const I* sources, int count, const F& reach) {
  const int64_t n = out.rows;
  std::vector<uint64_t> seen(n, 0), front(n, 0), next(n, 0);
  std::vector<I> queue, following;
  for (int b = 0; b < count; ++b) {
    const I s = sources[b];
    if (!out.holds(s) || s >= n) continue;
    if (!front[s]) queue.push_back(s);
    front[s] |= uint64_t(1) << b;
    reach(b, s, s, I(0));
  }
  for (const I v : queue) seen[v] = front[v];
  for (I depth = 1; !queue.empty(); ++depth) {
    for (size_t i = 0; i < queue.size(); ++i) {
      const I u = queue[i];
      const uint64_t bits = front[u];
      front[u] = 0;
      for (I e = out.begin(u), stop = out.end(u); e < stop; ++e) {
        const I v = out.idx[e];
        if (!out.holds(v)) continue;
        const uint64_t fresh = bits & ~seen[v];
        if (!fresh) continue;
        seen[v] |= fresh;
        if (!next[v]) following.push_back(v);
        next[v] |= fresh;
        for (uint64_t left = fresh; left; left &= left - 1) reach(__builtin_ctzll(left), v, u, depth);
      }
    }
    queue.clear();
    queue.swap(following);
    front.swap(next);
  }
}

// level, parent: (count, rows); parent may be null.
template <class I>
void bfs_sources(const Csr<I>& out, const I* sources, int count, I* level, I* parent) {
  const int64_t n = out.rows;
  std::fill(level, level + count * n, I(-1));
  if (parent) std::fill(parent, parent + count * n, I(-1));
  search_sources(out, sources, count, [&](int b, I v, I u, I depth) {
    level[b * n + v] = depth;
    if (parent) parent[b * n + v] = u;
  });
}

}  // namespace jaxspv
