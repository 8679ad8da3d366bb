// Handlers of traversals. Operands 0 and 1 are indptr and indices of a square matrix.
#include "bfs.h"
#include "components.h"
#include "ffi.h"
#include "sssp.h"
#include "until.h"

using namespace jaxspv;

namespace {

using Graph = Csr<int32_t>;

Graph graph_of(const Call& call, const Lanes& lanes, int64_t lane, int ptr) {
  const Buffer &starts = call.operand(ptr), &heads = call.operand(ptr + 1);
  expect(length(starts) > 0, "indptr is empty");
  const int32_t n = int32_t(length(starts) - 1);
  return {n, n, int32_t(length(heads)), lanes.at<const int32_t>(starts, 1, lane),
          lanes.at<const int32_t>(heads, 1, lane)};
}

// On one thread a radix heap is faster where all weights are equal, delta-stepping where they are
// not; the heap cannot be shared.
constexpr int kManyThreads = 4;

void expect_vertices(const Call& call, int i) {
  expect(length(call.result(i)) == length(call.operand(0)) - 1, "a result has not an element a vertex");
}

}  // namespace

// (indptr, indices, in-indptr, in-indices, source, until (k, 2)) -> levels, parents, number of levels
JAXSPV_HANDLER(bfs) {
  expect_vertices(call, 0);
  const bool pulls = call.number("pulls"), parents = call.number("parents");
  const bool deterministic = call.number("deterministic");
  const Lanes lanes(call.result(0), 1);
  if (parents) expect_vertices(call, 1);
  const Buffer& until = call.operand(5);
  expect(until.rank >= 2 && length(until) == 2, "conditions are pairs");
  const int64_t conditions = until.dims[until.rank - 2];
  lanes.each(call, [&](int64_t lane, Team& team) {
    const Graph out = graph_of(call, lanes, lane, 0), in = graph_of(call, lanes, lane, 2);
    expect(in.rows == out.rows, "a graph and its transpose differ in size");
    const int32_t source = *lanes.at<const int32_t>(call.operand(4), 0, lane);
    const int32_t* pairs = lanes.at<const int32_t>(until, 2, lane);
    int32_t* level = lanes.at<int32_t>(call.result(0), 1, lane);
    int32_t* parent = parents ? lanes.at<int32_t>(call.result(1), 1, lane) : nullptr;
    BreadthFirst search(team, out, pulls ? &in : nullptr, level, deterministic ? nullptr : parent);
    const int32_t levels = search.run(source, [&](int32_t depth, int64_t width) {
      return holds(pairs, conditions, depth, width == 0, [&](int32_t node) {
        return uint32_t(node) < uint32_t(out.rows) && level[node] >= 0;
      });
    });
    if (parents && deterministic) smallest_parents(out, source, level, parent);
    *lanes.at<int32_t>(call.result(2), 0, lane) = levels;
  });
}

// (indptr, indices, sources (count,)) -> levels (count, n), parents (count, n)
JAXSPV_HANDLER(bfs_sources) {
  expect_vertices(call, 0);
  const bool parents = call.number("parents"), deterministic = call.number("deterministic");
  const Lanes lanes(call.result(0), 2);
  const int64_t count = length(call.operand(2)), n = length(call.result(0));
  const auto& levels = call.result(0);
  expect(levels.dims[levels.rank - 2] == count, "a row of levels for each source");
  constexpr int64_t kWord = 64;
  const int64_t words = (count + kWord - 1) / kWord;
  Team team(call.pool());
  team.each(lanes.count() * words, [&](int64_t piece, int) {
    const int64_t lane = piece / words, first = piece % words * kWord;
    const int some = int(std::min(kWord, count - first));
    const Graph out = graph_of(call, lanes, lane, 0);
    const int32_t* sources = lanes.at<const int32_t>(call.operand(2), 1, lane) + first;
    int32_t* level = lanes.at<int32_t>(levels, 2, lane) + first * n;
    int32_t* parent = parents ? lanes.at<int32_t>(call.result(1), 2, lane) + first * n : nullptr;
    bfs_sources(out, sources, some, level, deterministic ? nullptr : parent);
    if (parents && deterministic)
      for (int i = 0; i < some; ++i) smallest_parents(out, sources[i], level + i * n, parent + i * n);
  });
}

// (indptr, indices, weights, source, targets) -> distances, parents, steps, converged, overflow
JAXSPV_HANDLER(sssp) {
  expect_vertices(call, 0);
  expect_vertices(call, 1);
  const Lanes lanes(call.result(0), 1);
  const Buffer& weights = call.operand(2);
  expect(length(weights) == length(call.operand(1)), "a weight for each entry");
  with_values(weights.dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, uint8_t>) {
      throw Invalid("weights must be numbers");
    } else {
      lanes.each(call, [&](int64_t lane, Team& team) {
        const Graph g = graph_of(call, lanes, lane, 0);
        const T* w = lanes.at<const T>(weights, 1, lane);
        T* dist = lanes.at<T>(call.result(0), 1, lane);
        Search<T, int32_t> search{g, w, *lanes.at<const int32_t>(call.operand(3), 0, lane), dist,
                                  lanes.at<int32_t>(call.result(1), 1, lane),
                                  lanes.at<const int32_t>(call.operand(4), 1, lane),
                                  length(call.operand(4))};
        const Weights about = weights_of(g, w);
        bool converged = true;
        int64_t steps = 0;
        if (about.negative) {
          converged = bellman_ford(search, steps);
        } else if (sizeof(T) == 8 || (about.least == about.most && team.size() < kManyThreads)) {
          steps = radix_heap(search);
        } else if constexpr (sizeof(T) == 4) {
          steps = DeltaStepping(team, search, delta_of(g, about, team.size())).run();
        }
        *lanes.at<int32_t>(call.result(2), 0, lane) = int32_t(std::min<int64_t>(steps, 0x7fffffff));
        *lanes.at<uint8_t>(call.result(3), 0, lane) = converged;
        *lanes.at<uint8_t>(call.result(4), 0, lane) = any_overflow(g, w, dist);
      });
    }
  });
}

// (indptr, indices) -> labels, number of components
JAXSPV_HANDLER(components) {
  expect_vertices(call, 0);
  const bool symmetric = call.number("symmetric");
  const Lanes lanes(call.result(0), 1);
  lanes.each(call, [&](int64_t lane, Team& team) {
    const Graph g = graph_of(call, lanes, lane, 0);
    int32_t* label = lanes.at<int32_t>(call.result(0), 1, lane);
    Components(team, g, label).run(symmetric);
    int32_t count = 0;
    for (int32_t v = 0; v < g.rows; ++v) count += label[v] == v;
    *lanes.at<int32_t>(call.result(1), 0, lane) = count;
  });
}
