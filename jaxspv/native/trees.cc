// Handlers of trees of shortest paths.
#include "ffi.h"
#include "operands.h"
#include "path_tree.h"
#include "several_paths.h"

using namespace jaxspv;

// (indptr, indices, weights, distances, source) -> parents
JAXSPV_HANDLER(shortest_path_tree) {
  const Matrix g = square(call);
  with_values(call.operand(2).dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, uint8_t>) {
      throw Invalid("weights must be numbers");
    } else {
      const Distances<T> p{g, entries<T>(call.operand(2), g), vertices<T>(call.operand(3), g)};
      shortest_path_tree(p, *array<Id>(call.operand(4), 0), vertices<Id>(call.result(0), g));
    }
  });
}

// (indptr, indices, weights, distances, source) -> the slot and the tail of an edge into each vertex
JAXSPV_HANDLER(tight_edges) {
  const Matrix g = square(call);
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const Distances<T> p{g, entries<T>(call.operand(2), g), vertices<T>(call.operand(3), g)};
    Team team(call.pool());
    const Id source = *array<Id>(call.operand(4), 0);
    tight_edges(team, p, source, vertices<Id>(call.result(0), g), vertices<Id>(call.result(1), g));
  };
  call.operand(2).dtype == abi::kF64 ? run(double()) : run(float());
}

// (values, parents, source, slots) -> sums to the root, or with `down` from the leaves: of values at
// the slots of the vertices, of the vertices where there are no slots
JAXSPV_HANDLER(sums_along_paths) {
  expect(length(call.operand(1)) <= 0x7fffffff, "the number of vertices exceeds int32");
  const Id n = Id(length(call.operand(1)));
  const Id* parent = vector<Id>(call.operand(1), n);
  const bool down = call.number("down") != 0, by_slot = length(call.operand(3)) > 0;
  const Id* slot = by_slot ? vector<Id>(call.operand(3), n) : nullptr;
  const int64_t given = length(call.operand(0)), wanted = length(call.result(0));
  expect((down || by_slot || given == n) && (!down || given == n), "values differ in number from vertices");
  expect((down && by_slot) || wanted == n, "results differ in number from vertices");
  const Tree tree(parent, n, *array<Id>(call.operand(2), 0));
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const T* values = array<T>(call.operand(0), 1);
    T* result = array<T>(call.result(0), 1);
    std::vector<double> sums(n);
    for (Id v = 0; v < n; ++v) {
      if (down || !by_slot) sums[v] = double(values[v]);
      else if (slot[v] >= 0 && slot[v] < given) sums[v] = double(values[slot[v]]);
    }
    down ? tree.from_leaves(sums.data()) : tree.to_root(sums.data());
    if (down && by_slot) std::fill(result, result + wanted, T(0));
    for (Id v = 0; v < n; ++v) {
      if (!down || !by_slot) result[v] = T(sums[v]);
      else if (slot[v] >= 0 && slot[v] < wanted) result[slot[v]] += T(sums[v]);
    }
  };
  call.operand(0).dtype == abi::kF64 ? run(double()) : run(float());
}

// (indptr, indices, weights, source, target) -> lengths (k,), vertices (k, n), edges (k,) of each
// path, how many there are, the slots of their edges (k, n)
JAXSPV_HANDLER(k_shortest_paths) {
  const Matrix g = square(call);
  const int64_t n = g.rows, k = length(call.result(0));
  for (const int i : {1, 4}) {
    expect(call.result(i).rank == 2 && call.result(i).dims[0] == k, "a result has another shape");
    expect(call.result(i).dims[1] == n, "a result has another shape");
  }
  Id *vertices = array<Id>(call.result(1), 2), *slots = array<Id>(call.result(4), 2);
  Id *hops = vector<Id>(call.result(2), k), &count = *array<Id>(call.result(3), 0);
  std::fill(vertices, vertices + k * n, g.rows);
  std::fill(slots, slots + k * n, g.slots);
  std::fill(hops, hops + k, -1);
  const Id source = *array<Id>(call.operand(3), 0), target = *array<Id>(call.operand(4), 0);
  with_values(call.operand(2).dtype, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (std::is_same_v<T, uint8_t>) {
      throw Invalid("weights must be numbers");
    } else {
      const T* weights = entries<T>(call.operand(2), g);
      T* lengths = vector<T>(call.result(0), k);
      std::fill(lengths, lengths + k, largest<T>());
      count = 0;
      if (!g.holds(source) || !g.holds(target)) return;
      for (const auto& path : SeveralPaths<T>(g, weights, target).run(source, Id(k))) {
        if (std::is_integral_v<T> && !(path.length < largest<T>())) break;  // nor do later ones fit
        std::copy(path.vertices.begin(), path.vertices.end(), vertices + count * n);
        std::copy(path.slots.begin(), path.slots.end(), slots + count * n);
        lengths[count] = T(path.length);
        hops[count++] = Id(path.slots.size());
      }
    }
  });
}
