// Handlers of algorithms on the structure of graphs.
#include "centrality.h"
#include "cores.h"
#include "eccentricity.h"
#include "ffi.h"
#include "forest.h"
#include "matching.h"
#include "operands.h"
#include "strong.h"
#include "triangles.h"

using namespace jaxspv;

// (indptr, indices) -> int64 triangles, whether the edges to higher rank exceed the slots / 2
JAXSPV_HANDLER(triangles) {
  const Matrix g = square(call);
  Team team(call.pool());
  int64_t edges = 0;
  *array<int64_t>(call.result(0), 0) = count_triangles(team, g, &edges);
  *array<uint8_t>(call.result(1), 0) = edges > g.slots / 2;
}

JAXSPV_HANDLER(triangles_of_vertices) {
  const Matrix g = square(call);
  Team team(call.pool());
  triangles_of_vertices(team, g, vertices<Id>(call.result(0), g));
}

// (indptr, indices, int32 data, k) -> indptr, indices, data of the k-truss; rows sorted, no loops
JAXSPV_HANDLER(k_truss) {
  const Matrix g = square(call);
  Team team(call.pool());
  auto keep = buffer<uint8_t>(g.slots);
  std::fill(keep.get(), keep.get() + g.slots, 0);
  k_truss(team, g, *array<Id>(call.operand(3), 0), keep.get());
  const Id* given = entries<Id>(call.operand(2), g);
  Id *ptr = vector<Id>(call.result(0), int64_t(g.rows) + 1), top = ptr[0] = 0;
  Id *idx = entries<Id>(call.result(1), g), *data = entries<Id>(call.result(2), g);
  for (Id i = 0; i < g.rows; ptr[++i] = top)
    for (Id e = g.ptr[i]; e < g.ptr[i + 1]; ++e)
      if (keep[e]) idx[top] = g.idx[e], data[top++] = given[e];
  std::fill(idx + top, idx + g.slots, g.rows);
  std::fill(data + top, data + g.slots, 0);
}

// (indptr, indices) -> core numbers, the largest
JAXSPV_HANDLER(cores) {
  const Matrix g = square(call);
  *array<Id>(call.result(1), 0) = cores(g, vertices<Id>(call.result(0), g));
}

// (indptr, indices) -> the column of each row, the row of each column; -1 for none
JAXSPV_HANDLER(matching) {
  const Matrix a = checked(call, 0, length(call.result(1)));
  Matching(a, vector<Id>(call.result(0), a.rows), vector<Id>(call.result(1), a.columns)).run();
}

// (indptr, indices) -> labels, the number of components
JAXSPV_HANDLER(strong_components) {
  const Matrix g = square(call);
  *array<Id>(call.result(1), 0) = strong_components(g, vertices<Id>(call.result(0), g));
}

// (indptr, indices, weights) -> the entries of the forest in order, nse behind them; their rows, n
// behind them
JAXSPV_HANDLER(spanning_forest) {
  const Matrix g = square(call);
  const Id edges = std::max(Id(0), g.rows - 1);
  Id *slots = vector<Id>(call.result(0), edges), *rows = vector<Id>(call.result(1), edges);
  auto chosen = buffer<uint8_t>(g.slots);
  const bool symmetric = call.number("symmetric") != 0;
  with_values(call.operand(2).dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!std::is_same_v<T, uint8_t>)
      spanning_forest(g, entries<T>(call.operand(2), g), symmetric, chosen.get());
    else
      throw Invalid("weights must be numbers");
  });
  Id found = 0;
  for (Id u = 0; u < g.rows; ++u)
    for (Id e = g.ptr[u]; e < g.ptr[u + 1]; ++e)
      if (chosen[e]) slots[found] = e, rows[found++] = u;
  std::fill(slots + found, slots + edges, g.slots);
  std::fill(rows + found, rows + edges, g.rows);
}

// (indptr, indices, sources) -> scores, whether counts of paths overflowed
JAXSPV_HANDLER(betweenness) {
  const Matrix g = square(call);
  const Buffer& sources = call.operand(2);
  const bool endpoints = call.number("endpoints") != 0;
  Team team(call.pool());
  auto run = [&](auto zero) {
    using T = decltype(zero);
    T* scores = vertices<T>(call.result(0), g);
    *array<uint8_t>(call.result(1), 0) =
        !betweenness(team, g, array<Id>(sources, 1), length(sources), endpoints, scores);
  };
  call.result(0).dtype == abi::kF64 ? run(double()) : run(float());
}

// (indptr, indices) -> the sum of distances to each vertex, upper and lower 24 bits, of their
// inverses, and how many reach it
JAXSPV_HANDLER(closeness) {
  const Matrix g = square(call);
  Team team(call.pool());
  Id *high = vertices<Id>(call.result(0), g), *low = vertices<Id>(call.result(1), g);
  float* inverse = vertices<float>(call.result(2), g);
  auto far = buffer<int64_t>(g.rows);
  auto harmonic = buffer<double>(g.rows);
  closeness(team, g, vertices<Id>(call.result(3), g), far.get(), harmonic.get());
  for (Id v = 0; v < g.rows; ++v) {
    high[v] = Id(far[v] >> 24), low[v] = Id(far[v] & 0xffffff);
    inverse[v] = float(harmonic[v]);
  }
}

// (indptr, indices) -> the entries of each row off the diagonal
JAXSPV_HANDLER(degrees_without_loops) {
  const Matrix g = square(call);
  Id* degree = vertices<Id>(call.result(0), g);
  for (Id v = 0; v < g.rows; ++v)
    degree[v] = g.degree(v) - Id(std::count(g.idx + g.ptr[v], g.idx + g.ptr[v + 1], v));
}

// (indptr, indices, sources) -> the largest distance from each and how many vertices it reaches
JAXSPV_HANDLER(eccentricities) {
  const Matrix g = square(call);
  const Id* sources = array<Id>(call.operand(2), 1);
  const int64_t count = length(call.operand(2));
  Id *far = vector<Id>(call.result(0), count), *reached = vector<Id>(call.result(1), count);
  constexpr int64_t kWord = 64;
  Team team(call.pool());
  team.each((count + kWord - 1) / kWord, [&](int64_t word, int) {
    const int64_t first = word * kWord;
    const int some = int(std::min(kWord, count - first));
    eccentricities(g, sources + first, some, far + first, reached + first);
  });
}

// (indptr, indices, start, limit) -> diameter, searches, vertices reached; `start` counts only where
// `given`, else a vertex of largest degree is the first
JAXSPV_HANDLER(diameter) {
  const Matrix g = square(call);
  Id start = *array<Id>(call.operand(2), 0);
  if (!call.number("given")) {
    start = g.rows ? 0 : -1;
    for (Id v = 1; v < g.rows; ++v)
      if (g.degree(v) > g.degree(start)) start = v;
  }
  Team team(call.pool());
  const Diameter found = diameter(team, g, start, *array<Id>(call.operand(3), 0));
  *array<Id>(call.result(0), 0) = found.diameter;
  *array<Id>(call.result(1), 0) = found.searches;
  *array<Id>(call.result(2), 0) = found.reached;
}
