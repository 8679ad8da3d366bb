// PageRank: x <- d (x D^-1 A + dangling(x) p) + (1 - d) p, D the row sums of A.
// Page, Brin, Motwani, Winograd, "The PageRank citation ranking", 1999.
#pragma once
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "convert.h"
#include "spmv.h"

namespace jaxspv {

// score: (rows,), from p, by `steps`, of which there are `least` to `most`; returns whether the last one
// changed at most `tol`. symmetric: A equals its transpose. Sums over vertices are in double and by
// blocks of a fixed size, so they do not depend on the threads.
template <class T>
bool pagerank(Team& team, const Matrix& a, Entries<const T> weights, const T* p, T damping, T tol, Id most, Id least,
              bool symmetric, T* score, Id& steps) {
  const Id n = a.rows;
  const int64_t block = 1 << 13, blocks = (int64_t(n) + block - 1) / block;
  auto share = buffer<T>(n), flow = buffer<T>(n);
  auto inverse = buffer<double>(n);
  for (Id i = 0; i < n; ++i) {
    double sum = 0;
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) sum += double(weights[e]);
    inverse[i] = sum > 0 ? 1 / sum : 0;
  }
  std::optional<Transposed<T>> transposed;
  if (!symmetric) weights = {{transposed.emplace(a, weights).values.get()}};
  const Matrix& back = symmetric ? a : transposed->matrix;
  std::vector<double> changes(blocks), dangles(blocks);
  double dangling = 0, change = 0;
  // update(v) gives the new score; then what its edges share, and both sums over all vertices.
  auto pass = [&](const auto& update) {
    team.each(blocks, [&](int64_t b, int) {
      constexpr int kLanes = 8;  // sums that do not wait for each other
      double moved[kLanes] = {}, sinks[kLanes] = {};
      auto one = [&, shares = share.get(), inverses = inverse.get()](int64_t v, int lane) {
        const T next = update(v);
        moved[lane] += std::abs(double(next) - double(score[v]));
        sinks[lane] += inverses[v] == 0 ? double(next) : 0.0;
        score[v] = next;
        shares[v] = T(next * inverses[v]);
      };
      int64_t v = b * block;
      const int64_t end = std::min<int64_t>(n, v + block);
      for (; v + kLanes <= end; v += kLanes)
        for (int lane = 0; lane < kLanes; ++lane) one(v + lane, lane);
      for (; v < end; ++v) one(v, 0);
      changes[b] = std::accumulate(moved, moved + kLanes, 0.0);
      dangles[b] = std::accumulate(sinks, sinks + kLanes, 0.0);
    });
    dangling = change = 0;
    for (int64_t b = 0; b < blocks; ++b) dangling += dangles[b], change += changes[b];
  };
  pass([&](int64_t v) { return p[v]; });
  change = largest<double>();
  const double along = double(damping);
  for (steps = 0; steps < most && (change > tol || steps < least); ++steps) {
    if (n > 0) spmv<Plus, Times, T>(team, {back}, weights, {{share.get()}, n}, flow.get());
    const double rest = along * dangling + (1 - along);
    pass([&](int64_t v) { return T(along * double(flow[v]) + rest * double(p[v])); });
  }
  return change <= tol;
}

}  // namespace jaxspv
