// Random graphs, whole and broken, through the headers of jaxspv/native, for the sanitizers.
// usage: fuzz COUNT [FIRST SEED [LARGEST]]; ends with 1 at the first wrong answer. LARGEST: vertices.
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <random>

#include "bfs.h"
#include "components.h"
#include "late_threads.h"
#include "parallel.h"
#include "spmv.h"
#include "sssp.h"
#include "until.h"

using namespace jaxspv;
using Graph = Matrix;
using Edges = std::vector<std::vector<std::pair<Id, float>>>;

#define CHECK(what)                                                   \
  if (!(what)) {                                                      \
    std::printf("wrong: %s, seed %d\n", #what, seed);                 \
    return false;                                                     \
  }

static int most_vertices = 20000;

struct Case {
  int seed;
  std::mt19937 random;
  Id n;
  Edges edges;
  std::vector<Id> ptr, idx;
  std::vector<float> weights;

  int in(int low, int high) { return int(random() % unsigned(high - low + 1)) + low; }

  explicit Case(int s) : seed(s), random(s) {
    n = in(1, std::min(most_vertices, seed % 10 ? 300 : 20000));
    edges.resize(n);
    const int shape = in(0, 2);
    for (int k = in(0, n * in(0, 12)); k > 0; --k) {
      const Id a = in(0, n - 1);
      const Id b = shape == 0 ? in(0, n - 1) : shape == 1 ? std::min(n - 1, a + 1) : in(0, n / 50);
      float w = in(0, 3) ? float(in(0, 9)) : std::ldexp(float(in(1, 9)), in(-90, 90));
      if (in(0, 99) == 0) w = INFINITY;
      edges[a].push_back({b, w});
      edges[b].push_back({a, w});
    }
    ptr.push_back(0);
    for (auto& row : edges) {
      for (auto [to, w] : row) idx.push_back(to), weights.push_back(w);
      ptr.push_back(Id(idx.size()));
    }
    idx.resize(idx.size() + 3, n);  // padding
    weights.resize(idx.size(), NAN);
    idx.shrink_to_fit(), weights.shrink_to_fit(), ptr.shrink_to_fit();
  }
  Graph graph() const { return {n, n, Id(idx.size()), ptr.data(), idx.data()}; }
};

bool right(Case& c) {
  const int seed = c.seed;
  const Id n = c.n, source = c.in(-1, n);
  const Graph g = c.graph();
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  const bool inside = source >= 0 && source < n;

  std::vector<Id> level(n), parent(n), want(n, -1);
  std::queue<Id> waiting;
  if (inside) want[source] = 0, waiting.push(source);
  for (; !waiting.empty(); waiting.pop())
    for (auto [v, w] : c.edges[waiting.front()])
      if (want[v] < 0) want[v] = want[waiting.front()] + 1, waiting.push(v);
  const Id depth = *std::max_element(want.begin(), want.end()) + 1;
  auto is_tree = [&](const Id* tree) {
    for (Id v = 0; v < n; ++v) {
      if ((tree[v] >= 0) != (want[v] >= 0)) return false;
      if (want[v] <= 0) continue;
      bool edge = false;
      for (auto [to, w] : c.edges[tree[v]]) edge |= to == v;
      if (!edge || want[tree[v]] != want[v] - 1) return false;
    }
    return true;
  };
  auto never = [](Id, int64_t) { return false; };
  for (const Graph* in : {static_cast<const Graph*>(nullptr), &g}) {
    CHECK(BreadthFirst(team, g, in, level.data(), parent.data()).run(source, never) == depth)
    CHECK(level == want && is_tree(parent.data()))
    const Id most = c.in(0, 3);
    BreadthFirst(team, g, in, level.data(), parent.data()).run(source, [&](Id d, int64_t) { return d >= most; });
    for (Id v = 0; v < n; ++v) CHECK(level[v] == (want[v] <= most ? want[v] : -1))
  }
  smallest_parents(g, source, want.data(), parent.data());
  CHECK(is_tree(parent.data()))
  {
    const Id count = c.in(1, 64);
    std::vector<Id> asked(count, source), levels(count * n), parents(count * n);
    for (Id i = 1; i < count; ++i) asked[i] = c.in(-2, n + 1);
    const auto& sources = asked;
    bfs_sources(team, {g}, list(sources), c.in(0, 1), {{levels.data()}, count, n}, {{parents.data()}, count, n});
    CHECK(std::equal(want.begin(), want.end(), levels.begin()) && is_tree(parents.data()))
  }

  std::vector<float> far(n, INFINITY), dist(n);
  if (inside) far[source] = 0;
  for (bool more = inside; more;) {
    more = false;
    for (Id u = 0; u < n; ++u)
      for (auto [v, w] : c.edges[u])
        if (far[u] + w < far[v]) far[v] = far[u] + w, more = true;
  }
  auto is_path_tree = [&] {
    for (Id v = 0; v < n; ++v) {
      Id u = v;
      for (Id k = 0; k <= n && u >= 0 && u != source; ++k) u = parent[u];
      if ((u == source && inside) != std::isfinite(far[v])) return false;
    }
    return true;
  };
  Search<float> search{g, c.weights.data(), source, dist.data(), parent.data(), nullptr, 0};
  radix_heap(search);
  CHECK(dist == far && is_path_tree())
  int64_t steps;
  CHECK(bellman_ford(search, steps) && dist == far && is_path_tree())
  for (const double delta : {delta_of(g, weights_of(g, c.weights.data()), 1), 0.0, 3.0, 1e30}) {
    DeltaStepping<float>(team, search, delta).run();
    CHECK(dist == far && is_path_tree())
  }
  const Id target = c.in(0, n - 1);
  Search<float> some{g, c.weights.data(), source, dist.data(), parent.data(), &target, 1};
  radix_heap(some);
  CHECK(dist[target] == far[target])
  DeltaStepping<float>(team, some, 3.0).run();
  CHECK(dist[target] == far[target])

  for (const bool symmetric : {false, true}) {
    Components(team, g, level.data()).run(symmetric);
    for (Id v = 0; v < n; ++v) {
      CHECK(level[v] <= v && level[level[v]] == level[v])
      for (auto [to, w] : c.edges[v]) CHECK(level[to] == level[v])
    }
  }

  std::vector<double> x(n), y(n), z(n);
  for (auto& v : x) v = c.in(-9, 9);
  const std::vector<double> ones(c.idx.size(), 1);
  const auto from = list(std::as_const(x)), by_rows = list(std::as_const(y)), all = list(ones);
  spmv<Plus, Times, double>(team, {g}, entries(ones), from, y.data());
  spmv_transposed<Plus, Times, double>(team, {g}, entries(ones), x.data(), list(z));
  std::vector<double> least(n), sums(n), slopes(c.idx.size()), alone(c.idx.size());
  std::vector<Id> won(n);
  spmv<Min, Times, double>(team, {g}, entries(ones), from, least.data());
  winners<Min, Times, double>(team, {g}, entries(ones), from, least.data(), won.data());
  spmv_derivatives<double>(team, {g}, all, x.data(), by_rows, list(slopes), list(sums));
  spmv_derivatives<double>(team, {g}, {}, x.data(), by_rows, list(alone), {});
  CHECK(slopes == alone && sums == z)
  for (Id v = 0, e = 0; v < n; ++v) {
    double sum = 0;
    Id first = Id(c.idx.size());
    for (auto [to, w] : c.edges[v]) {
      CHECK(slopes[e] == x[v] * y[to])
      sum += x[to];
      if (first == Id(c.idx.size()) && x[to] == least[v]) first = e;
      ++e;
    }
    CHECK(y[v] == sum && z[v] == sum && won[v] == first)
  }
  CHECK(std::count(slopes.end() - 3, slopes.end(), 0.0) == 3)
  return true;
}

// Any bytes as offsets and indices: nothing may be read or written outside, and every call ends.
bool safe(Case& c) {
  c.n = std::min(c.n, Id(60));
  c.ptr.resize(c.n + 1), c.idx.resize(c.in(1, 40)), c.weights.resize(c.idx.size());
  c.ptr.shrink_to_fit(), c.idx.shrink_to_fit(), c.weights.shrink_to_fit();
  for (auto* list : {&c.ptr, &c.idx})
    for (auto& v : *list)
      if (c.in(0, 2) == 0) v = c.in(0, 1) ? Id(c.random()) : c.in(-2, 70);
  for (auto& w : c.weights) w = c.in(0, 5) ? float(c.in(0, 9)) : NAN;
  const Graph g = c.graph();
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  std::vector<Id> level(c.n), parent(c.n), levels(3 * c.n), parents(3 * c.n);
  std::vector<float> dist(c.n), x(c.n, 1), y(c.n);
  const Id source = c.in(-1, c.n), sources[] = {source, Id(c.random()), 0};
  auto never = [](Id, int64_t) { return false; };
  BreadthFirst(team, g, &g, level.data(), parent.data()).run(source, never);
  smallest_parents(g, source, level.data(), parent.data());
  bfs_sources(team, {g}, {{sources}, 3}, c.in(0, 1), {{levels.data()}, 3, c.n}, {{parents.data()}, 3, c.n});
  Search<float> search{g, c.weights.data(), source, dist.data(), parent.data(), sources, 3};
  radix_heap(search);
  DeltaStepping<float>(team, search, weights_of(g, c.weights.data()).mean).run();
  any_overflow(g, c.idx.data(), level.data());
  int64_t steps;
  for (auto& w : c.weights) w -= float(c.in(0, 3));
  bellman_ford(search, steps);
  Components(team, g, level.data()).run(c.in(0, 1));
  const auto values = entries(std::as_const(c.weights));
  const auto from = list(std::as_const(x));
  spmv<Min, MinExtend, float>(team, {g}, values, from, y.data());
  spmv_transposed<Max, First, float>(team, {g}, values, x.data(), list(y));
  winners<Min, MinExtend, float>(team, {g}, values, from, y.data(), level.data());
  std::vector<float> slopes(c.idx.size());
  spmv_derivatives<float>(team, {g}, list(std::as_const(c.weights)), x.data(), from, list(slopes), list(y));
  spmv_derivatives<float>(team, {g}, {}, x.data(), from, list(slopes), {});
  std::vector<Id> pairs(2 * c.in(0, 9));
  for (auto& v : pairs) v = c.in(-1, 5);
  holds(pairs.data(), int64_t(pairs.size()) / 2, 3, false, [](Id) { return true; });
  return true;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? std::atoi(argv[1]) : 100, first = argc > 2 ? std::atoi(argv[2]) : 0;
  if (argc > 3) most_vertices = std::atoi(argv[3]);
  for (int seed = first; seed < first + count; ++seed) {
    Case whole(seed), broken(seed);
    if (!right(whole) || !safe(broken)) return 1;
  }
  std::printf("%d cases, nothing wrong\n", count);
}
