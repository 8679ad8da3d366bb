// Random graphs through the headers of orders, greedy choices, communities and several paths, and
// random keys through those of entries, for the sanitizers. usage: fuzz_orders COUNT [FIRST SEED]; ends with 1 at the first wrong answer.
#include <cmath>
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "communities.h"
#include "convert.h"
#include "entries.h"
#include "greedy.h"
#include "orders.h"
#include "parallel.h"
#include "random_matrices.h"
#include "several_paths.h"

// A random directed graph, and the same without directions and with weights of at least 0.
struct Graphs {
  Id n;
  Sparse directed;
  std::vector<Row> both;
  Sparse symmetric;
  Graphs(Case& c, Id size) : n(size), directed(c.sparse(n, n, 2)), both(n), symmetric(closed()) {}

 private:
  Sparse closed() {
    for (Id u = 0; u < n; ++u)
      for (auto [v, w] : directed.rows[u]) both[u][v] = both[v][u] = std::abs(w);
    return Sparse(both, n);
  }
};

// In order of the keys, equal ones by number: each choice by its definition.
bool choices(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  const Matrix S = g.symmetric.matrix();
  std::vector<Id> key(n), place(n), color(n);
  std::vector<uint8_t> member(n);
  for (auto& x : key) x = c.in(-3, 3);
  const auto order = order_of(key.data(), n);
  for (Id i = 0; i < n; ++i) place[order[i]] = i;
  for (Id i = 1; i < n; ++i)
    CHECK(std::make_pair(key[order[i - 1]], order[i - 1]) < std::make_pair(key[order[i]], order[i]))
  Id members = independent_set(S, key.data(), member.data());
  const Id colors = greedy_color(S, key.data(), false, color.data());
  for (Id v = 0; v < n; ++v) {
    bool free = true;
    std::set<Id> used;
    for (auto [u, w] : g.both[v])
      if (place[u] < place[v]) free &= !member[u], used.insert(color[u]);
    Id least = 0;
    while (used.count(least)) ++least;
    CHECK(bool(member[v]) == free && color[v] == least && color[v] < colors)
    members -= member[v];
  }
  CHECK(members == 0)
  return true;
}

// A vertex's generation is the longest path to it, by n rounds over all edges.
bool generations_by_paths(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  std::vector<Id> generation(n), longest(n, 0);
  std::vector<Id> sorted(n);
  const bool placed = topological_order(g.directed.matrix(), {}, sorted.data(), generation.data());
  for (Id round = 0; round <= 2 * n; ++round)  // a path of n edges or more passes a cycle
    for (Id u = 0; u < n; ++u)
      for (auto [v, w] : g.directed.rows[u])
        longest[v] = std::min(std::max(longest[v], longest[u] + 1), 2 * n);
  Id acyclic = 0;
  for (Id v = 0; v < n; ++v) {
    CHECK(generation[v] == (longest[v] >= n ? -1 : longest[v]))
    acyclic += generation[v] >= 0;
  }
  CHECK(placed == (acyclic == n))
  std::vector<Id> wanted;
  for (Id k = 0; k < n; ++k)
    for (Id v = 0; v < n; ++v)
      if (generation[v] == k) wanted.push_back(v);
  wanted.resize(n, n);
  CHECK(sorted == wanted)
  return true;
}

// Reverse Cuthill-McKee, read in the order of its searches: each vertex after a neighbour, or a root.
bool cuthill_mckee(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  std::vector<uint8_t> exists(n);
  for (Id v = 0; v < n; ++v) exists[v] = !g.both[v].empty() || c.in(0, 1);
  std::vector<Id> found(n);
  CuthillMcKee(g.symmetric.matrix()).run(exists.data(), found.data());
  std::set<Id> seen;
  Id there = 0;
  for (Id v = 0; v < n; ++v) there += exists[v];
  for (Id i = there; i-- > 0;) {
    const Id v = found[i];
    CHECK(v >= 0 && v < n && exists[v] && !seen.count(v))
    bool after = false, open = false;
    for (auto [u, w] : g.both[v]) after |= u != v && seen.count(u);
    for (const Id u : seen)
      for (auto [x, w] : g.both[u]) open |= !seen.count(x);
    CHECK(after == open)
    seen.insert(v);
  }
  for (Id i = there; i < n; ++i) CHECK(found[i] == n)
  return true;
}

// One step of label propagation: the label that most neighbours in both directions have, the least of them.
bool labels(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  const Sparse& d = g.directed;
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  std::vector<Id> label(n), want(n);
  for (auto& x : label) x = c.in(0, std::max(0, n - 1));
  const auto start = label;
  for (Id v = 0; v < n; ++v) {
    std::map<Id, Id> count;
    for (auto [u, w] : d.rows[v]) ++count[start[u]];
    for (Id u = 0; u < n; ++u)
      if (d.rows[u].count(v)) ++count[start[u]];
    Id most = 0;
    want[v] = start[v];
    for (auto [l, times] : count)
      if (times > most) most = times, want[v] = l;
  }
  Id steps;
  const bool converged = label_propagation(team, d.matrix(), start.data(), 1, false, label.data(), steps);
  CHECK(label == want && steps == (n > 0) && converged == (start == want))
  return true;
}

// Louvain's communities bear the name of a member; modularity by its definition, no less than of each vertex alone.
bool communities(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  const Matrix S = g.symmetric.matrix();
  std::vector<Id> label(n);
  std::vector<float> weight(g.symmetric.data.begin(), g.symmetric.data.end());
  const double resolution = c.in(1, 3) / 2.0;
  Id levels;
  louvain(S, entries(weight), float(resolution), label.data(), levels);
  double inside = 0, total = 0, expected = 0, alone = 0;
  std::vector<double> strength(n, 0);
  for (Id u = 0; u < n; ++u) {
    CHECK(label[label[u]] == label[u] && label[u] <= u)
    for (auto [v, w] : g.both[u]) {
      const double both_ends = u == v ? 2 * w : w;
      total += both_ends, strength[u] += both_ends;
      if (label[u] == label[v]) inside += both_ends;
    }
  }
  for (Id u = 0; u < n && total > 0; ++u) {
    if (g.both[u].count(u)) alone += 2 * g.both[u].at(u) / total;
    alone -= resolution * strength[u] / total * strength[u] / total;
    for (Id v = 0; v < n; ++v)
      if (label[u] == label[v]) expected += strength[u] / total * strength[v] / total;
  }
  const double quality = total > 0 ? inside / total - resolution * expected : 0;
  CHECK(std::abs(modularity<double>(S, entries(g.symmetric.data), label.data(), resolution, false) - quality) < 1e-9)
  CHECK(quality >= alone - 1e-6)
  return true;
}

// The k shortest paths among all, which a search without a bound lists; graphs with too many are left out.
bool several_paths(Case& c, const Graphs& g) {
  const int seed = c.seed;
  const Id n = g.n;
  const Sparse& d = g.directed;
  if (n == 0) return true;
  std::vector<float> length(d.data.begin(), d.data.end());
  for (auto& x : length) x = std::abs(x);
  const Id source = c.in(0, n - 1), target = c.in(0, n - 1), k = c.in(1, 8);
  std::vector<double> all;
  std::vector<uint8_t> passed(n, 0);
  std::function<void(Id, double)> walk = [&](Id v, double sum) {
    if (v == target) return all.push_back(sum);
    passed[v] = 1;
    for (auto [u, w] : d.rows[v])
      if (!passed[u] && all.size() < 20000) walk(u, sum + std::abs(w));
    passed[v] = 0;
  };
  walk(source, 0);
  if (all.size() >= 20000) return true;
  std::sort(all.begin(), all.end());
  const auto paths = SeveralPaths<float>(d.matrix(), length.data(), target).run(source, k);
  CHECK(paths.size() == std::min(all.size(), size_t(k)))
  std::set<std::vector<Id>> different;
  for (size_t i = 0; i < paths.size(); ++i) {
    const auto& vertices = paths[i].vertices;
    CHECK(std::abs(paths[i].length - all[i]) < 1e-6 && different.insert(vertices).second)
    CHECK(vertices.front() == source && vertices.back() == target && vertices.size() == paths[i].slots.size() + 1)
    CHECK(std::set<Id>(vertices.begin(), vertices.end()).size() == vertices.size())
    for (size_t j = 0; j + 1 < vertices.size(); ++j) {
      const Id e = paths[i].slots[j];
      CHECK(e >= d.ptr[vertices[j]] && e < d.ptr[vertices[j] + 1] && d.idx[e] == vertices[j + 1])
    }
  }
  return true;
}

bool orders(Case& c) {
  const Graphs g(c, c.in(0, 30));
  return choices(c, g) && generations_by_paths(c, g) && cuthill_mckee(c, g) && labels(c, g) &&
         communities(c, g) && several_paths(c, g);
}

// Sorted keys of one axis or two against std::set; then the same with any bytes among them.
bool entries_of_keys(Case& c) {
  const int seed = c.seed, axes = c.in(1, 2);
  using Key = std::pair<int32_t, int32_t>;
  const auto drawn = [&] {
    std::set<Key> keys;
    for (int k = c.in(0, 40); k > 0; --k) keys.insert({c.in(0, 9), axes == 2 ? c.in(0, 9) : 0});
    return keys;
  };
  const std::set<Key> a = drawn(), b = drawn();
  std::set<Key> all = a;
  all.insert(b.begin(), b.end());
  std::vector<int32_t> parts[4];
  for (auto [i, j] : a) parts[0].push_back(i), parts[1].push_back(j);
  for (auto [i, j] : b) parts[2].push_back(i), parts[3].push_back(j);
  const auto keys = [&](int k) {
    return Keys{int64_t(parts[k].size()), parts[k].data(), axes == 2 ? parts[k + 1].data() : nullptr};
  };
  const auto capacity = std::vector<int32_t>(c.in(0, 60));
  auto left = capacity, right = capacity;
  std::vector<int32_t> slots(b.size());
  const int32_t size_a = int32_t(a.size()), size_b = int32_t(b.size());
  CHECK(unite(keys(0), size_a, keys(2), size_b, list(left), list(right)) == int64_t(all.size()))
  size_t place = 0;
  for (const Key& key : all) {
    if (place == left.size()) break;
    const auto in_a = a.find(key), in_b = b.find(key);
    CHECK(left[place] == (in_a == a.end() ? size_a : std::distance(a.begin(), in_a)))
    CHECK(right[place] == (in_b == b.end() ? size_b : std::distance(b.begin(), in_b)))
    ++place;
  }
  for (; place < left.size(); ++place) CHECK(left[place] == size_a && right[place] == size_b)
  lower_bounds(keys(0), keys(2), list(slots));
  place = 0;
  for (const Key& key : b) CHECK(slots[place++] == std::distance(a.begin(), a.lower_bound(key)))
  std::vector<uint8_t> chosen(c.in(0, 50));
  std::vector<int32_t> want, got(c.in(0, 60));
  for (size_t i = 0; i < chosen.size(); ++i)
    if ((chosen[i] = uint8_t(c.in(0, 1)))) want.push_back(int32_t(i));
  CHECK(chosen_slots(list(std::as_const(chosen)), list(got)) == int64_t(want.size()))
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == (i < want.size() ? want[i] : int32_t(chosen.size())))
  std::vector<uint8_t> marked(c.in(0, 70));
  const uint8_t others = uint8_t(c.in(0, 1));
  marks(list(std::as_const(want)), others, list(marked));
  for (size_t i = 0; i < marked.size(); ++i) CHECK(marked[i] == (others ^ (i < chosen.size() && chosen[i])))
  chosen.resize(a.size(), 0);
  std::vector<int32_t> major(c.in(0, 50)), minor(major.size());
  std::vector<double> kept(major.size()), values;
  for (size_t i = 0; i < a.size(); ++i) values.push_back(c.in(1, 9));
  const NewKeys to{int64_t(major.size()), major.data(), axes == 2 ? minor.data() : nullptr};
  int32_t fit;
  const bool over = keep<double>(list(std::as_const(chosen)), keys(0), list(std::as_const(values)), 0, Option(10), Option(10), to, list(kept), fit);
  size_t next = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!chosen[i]) continue;
    if (next < major.size()) CHECK(major[next] == parts[0][i] && minor[next] == (axes == 2 ? parts[1][i] : 0) && kept[next] == values[i])
    ++next;
  }
  CHECK(over == (next > major.size()) && size_t(fit) == std::min(next, major.size()))
  for (; next < major.size(); ++next) CHECK(major[next] == 10 && minor[next] == (axes == 2 ? 10 : 0) && kept[next] == 0)
  for (auto& part : parts)
    for (auto& v : part)
      if (c.in(0, 9) == 0) v = int32_t(c.random());
  unite(keys(0), c.in(-3, 50), keys(2), c.in(-3, 50), list(left), list(right));
  lower_bounds(keys(0), keys(2), list(slots));
  for (int32_t slot : slots) CHECK(slot >= 0 && slot <= int64_t(a.size()))
  return true;
}

// Any bytes as offsets and indices: what `valid` lets through is safe to walk.
bool safe(Case& c) {
  Sparse a = c.sparse(c.in(0, 20), c.in(1, 20), 4);
  a.columns = Id(a.rows.size());
  for (auto* list : {&a.ptr, &a.idx})
    for (auto& v : *list)
      if (c.in(0, 19) == 0) v = c.in(0, 1) ? Id(c.random()) : c.in(-2, 25);
  const Matrix A = a.matrix();
  if (!valid(A)) return true;
  Team alone;
  std::vector<Id> label(A.rows);
  std::vector<Id> any_order(A.rows), steps(1);
  for (auto& v : any_order) v = c.in(0, 9) ? c.in(-2, A.rows + 1) : Id(c.random());
  std::vector<uint8_t> members(A.rows);
  independent_set(A, any_order.data(), members.data());
  greedy_color(A, any_order.data(), c.in(0, 1), label.data());
  topological_order(A, {}, std::vector<Id>(A.rows).data(), label.data());
  CuthillMcKee(A).run(nullptr, label.data());
  std::vector<float> weight(A.slots);
  for (auto& x : weight) x = c.in(0, 5) ? float(c.in(-3, 9)) : c.in(0, 1) ? NAN : INFINITY;
  modularity<float>(A, entries(weight), any_order.data(), 1, c.in(0, 1) != 0);
  label_propagation(alone, A, any_order.data(), 3, c.in(0, 1), label.data(), steps[0]);
  louvain(A, entries(weight), 1, label.data(), steps[0]);
  if (A.rows) SeveralPaths<float>(A, weight.data(), c.in(0, A.rows - 1)).run(c.in(0, A.rows - 1), 3);
  return true;
}

int main(int count, char** arguments) {
  const int first = count > 2 ? std::atoi(arguments[2]) : 0;
  for (int seed = first; seed < first + std::atoi(arguments[1]); ++seed) {
    Case one(seed), two(seed), three(seed);
    if (!orders(one) || !safe(two) || !entries_of_keys(three)) return 1;
  }
  std::puts("ok");
}
