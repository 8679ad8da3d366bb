// Handlers of orders, greedy choices and communities.
#include "communities.h"
#include "convert.h"
#include "ffi.h"
#include "greedy.h"
#include "operands.h"
#include "orders.h"

using namespace jaxspv;

// (indptr, indices, keys) -> members, their number
JAXSPV_HANDLER(independent_set) {
  const Matrix g = square(call);
  const auto order = order_of(vertices<Id>(call.operand(2), g), g.rows);
  *array<Id>(call.result(1), 0) = independent_set(g, order, vertices<uint8_t>(call.result(0), g));
}

// (indptr, indices, keys, or where `ordered` the order) -> colours, their number
JAXSPV_HANDLER(greedy_color) {
  const Matrix g = square(call);
  const Id* given = vertices<Id>(call.operand(2), g);
  std::vector<Id> order;
  if (!call.number("ordered")) order = order_of(given, g.rows);
  const Id* by = order.empty() ? given : order.data();
  *array<Id>(call.result(1), 0) = greedy_color(g, by, vertices<Id>(call.result(0), g));
}

// (indptr, indices, which vertices exist, or nothing for all) -> order, generations, whether every
// vertex has one; -1 for those that do not exist
JAXSPV_HANDLER(topological_order) {
  const Matrix g = square(call);
  const uint8_t* exists = length(call.operand(2)) ? vertices<uint8_t>(call.operand(2), g) : nullptr;
  Id* generation = vertices<Id>(call.result(1), g);
  *array<uint8_t>(call.result(2), 0) = generations(g, generation) == g.rows;
  for (Id v = 0; exists && v < g.rows; ++v)
    if (!exists[v]) generation[v] = -1;
  by_generation(generation, g.rows, vertices<Id>(call.result(0), g));
}

// (indptr, indices, which vertices exist, or nothing for all) -> the order
JAXSPV_HANDLER(reverse_cuthill_mckee) {
  const Matrix g = square(call);
  const uint8_t* exists = length(call.operand(2)) ? vertices<uint8_t>(call.operand(2), g) : nullptr;
  CuthillMcKee(g).run(exists, vertices<Id>(call.result(0), g));
}

// (indptr, indices, labels, limit) -> labels, steps, whether the last step changed nothing
JAXSPV_HANDLER(label_propagation) {
  const Matrix g = square(call);
  const Id *start = vertices<Id>(call.operand(2), g), n = g.rows;
  Id* label = vertices<Id>(call.result(0), g);
  std::copy(start, start + n, label);
  const bool symmetric = call.number("symmetric") != 0;
  const Id m = symmetric ? 0 : g.ptr[n];
  std::vector<Id> ptr(symmetric ? 0 : size_t(n) + 1), idx(m), slot(m);
  if (!symmetric) transpose(g, m, n, ptr.data(), idx.data(), Numbers(), slot.data());
  const Matrix in{n, n, m, ptr.data(), idx.data()};
  Team team(call.pool());
  const Id limit = *array<Id>(call.operand(3), 0);
  *array<uint8_t>(call.result(2), 0) =
      propagate_labels(team, g, symmetric ? nullptr : &in, limit, label, array<Id>(call.result(1), 0));
}

// (indptr, indices, float32 weights, resolution) -> labels, levels, the number of communities
JAXSPV_HANDLER(louvain) {
  const Matrix g = square(call);
  Id* label = vertices<Id>(call.result(0), g);
  Louvain found(g, entries<float>(call.operand(2), g), *array<float>(call.operand(3), 0));
  *array<Id>(call.result(1), 0) = found.run(label);
  Id count = 0;
  for (Id v = 0; v < g.rows; ++v) count += label[v] == v;
  *array<Id>(call.result(2), 0) = count;
}

// (indptr, indices, weights, labels, resolution) -> the modularity
JAXSPV_HANDLER(modularity) {
  const Matrix g = square(call);
  const Id* label = vertices<Id>(call.operand(3), g);
  const bool directed = call.number("directed") != 0;
  auto run = [&](auto zero) {
    using T = decltype(zero);
    const T *weight = entries<T>(call.operand(2), g), resolution = *array<T>(call.operand(4), 0);
    *array<T>(call.result(0), 0) = T(modularity(g, weight, label, resolution, directed));
  };
  call.operand(2).dtype == abi::kF64 ? run(double()) : run(float());
}
