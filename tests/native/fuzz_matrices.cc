// Random matrices through the headers of products, conversions and structure, for the sanitizers.
// usage: fuzz_matrices COUNT [FIRST SEED]; ends with 1 at the first wrong answer.
#include <cstdlib>
#include <functional>
#include <set>
#include <utility>

#include "centrality.h"
#include "convert.h"
#include "cores.h"
#include "eccentricity.h"
#include "forest.h"
#include "matching.h"
#include "merge.h"
#include "mxm.h"
#include "pagerank.h"
#include "parallel.h"
#include "path_tree.h"
#include "random_matrices.h"
#include "sddmm.h"
#include "semirings.h"
#include "spmm.h"
#include "spmspv.h"
#include "strong.h"
#include "triangles.h"

bool products(Case& c) {
  const int seed = c.seed;
  const Id m = c.in(0, seed % 20 ? 60 : 5000), l = c.in(1, 80), n = c.in(1, seed % 7 ? 90 : 9000);
  const int degree = seed % 4 ? 6 : 40;  // rows of more products than are held at a time
  const Sparse a = c.sparse(m, l, degree), b = c.sparse(l, n, degree), filter = c.sparse(m, n, 4);
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  const Matrix A = a.matrix(), B = b.matrix(), M = filter.matrix();
  CHECK(valid(A) && valid(B) && valid(M))
  std::vector<uint8_t> holds(filter.idx.size());
  for (auto& h : holds) h = uint8_t(c.in(0, 1));
  const uint8_t* some = c.in(0, 1) ? holds.data() : nullptr;
  auto right = [&](auto zero) {
    using T = decltype(zero);
    const std::vector<T> x(a.data.begin(), a.data.end()), y(b.data.begin(), b.data.end());
    for (int kind = 0; kind < 3; ++kind) {
      std::vector<Row> want(m);
      int64_t count = 0;
      for (Id i = 0; i < m; ++i) {
        std::set<Id> listed;
        for (Id e = filter.ptr[i]; e < filter.ptr[i + 1]; ++e)
          if (!some || some[e]) listed.insert(filter.idx[e]);
        for (auto [k, v] : a.rows[i])
          for (auto [j, w] : b.rows[k])
            if (kind == 0 || (listed.count(j) > 0) == (kind == 1)) want[i][j] += v * w;
        count += int64_t(want[i].size());
      }
      const Allowed allowed = kind ? Allowed{&M, some} : Allowed{};
      if (kind != 1) CHECK(count_product(team, A, B, allowed) == count)
      const int64_t nse = c.in(0, 2) ? count + c.in(0, 2) : c.in(0, int(count));
      std::vector<Id> ptr(m + 1), idx(nse);
      std::vector<T> value(nse);
      const Terms<T> t = terms<Plus, Times>(x.data(), y.data());
      const auto run = kind == 1 ? multiply_where<T> : multiply<T>;
      CHECK(run(team, A, B, t, allowed, nse, ptr.data(), idx.data(), value.data()) == count)
      int64_t at = 0;
      for (Id i = 0; i < m; ++i) {
        CHECK(ptr[i] == std::min(at, nse))
        for (auto [j, v] : want[i]) {
          if (at < nse) CHECK(idx[at] == j && value[at] == v)
          ++at;
        }
      }
      CHECK(ptr[m] == std::min(at, nse))
    }
    return true;
  };
  if (!right(double()) || !right(float()) || !right(int32_t())) return false;
  const Id k = c.in(1, 40);
  std::vector<double> x(size_t(l) * k), y(size_t(m) * k);
  for (auto& v : x) v = c.in(-9, 9);
  spmm<Plus, Times>(team, A, a.data.data(), x.data(), k, y.data());
  for (Id i = 0; i < m; ++i)
    for (Id j = 0; j < k; ++j) {
      double sum = 0;
      for (auto [p, v] : a.rows[i]) sum += v * x[size_t(p) * k + j];
      CHECK(y[size_t(i) * k + j] == sum)
    }
  std::vector<double> back(size_t(l) * k), again(size_t(l) * k);  // A^T Y, by both ways
  const Transposed<double> transposed(A, a.data.data());
  spmm<Plus, Times>(team, transposed.matrix, transposed.values.get(), y.data(), k, back.data());
  spmm_transposed<Plus, Times>(A, a.data.data(), y.data(), k, again.data());
  CHECK(back == again && !any_long_row(A))
  std::vector<double> left(size_t(m) * k), sampled(a.idx.size());
  for (auto& v : left) v = c.in(-9, 9);
  sddmm<Plus, Times, double>(team, {A}, {{left.data()}, m, k}, {{x.data()}, l, k}, {{sampled.data()}});
  for (Id i = 0; i < m; ++i)
    for (Id e = a.ptr[i]; e < a.ptr[i + 1]; ++e) {
      double sum = 0;
      for (Id j = 0; j < k; ++j) sum += left[size_t(i) * k + j] * x[size_t(a.idx[e]) * k + j];
      CHECK(sampled[e] == sum)
    }
  // Sparse vectors: by the rows of A, and by the columns of its transpose, which are those rows.
  Row some_x, by_row, by_column;
  std::vector<uint8_t> may(m), may_columns(l);
  for (auto& v : may) v = uint8_t(c.in(0, 1));
  for (auto& v : may_columns) v = uint8_t(c.in(0, 1));
  std::vector<Id> at_x;
  std::vector<double> of_x;
  for (Id j = 0; j < std::max(l, m); ++j)
    if (c.in(0, 2) == 0) some_x[j] = c.in(-9, 9), at_x.push_back(j), of_x.push_back(some_x[j]);
  for (Id i = 0; i < m; ++i)
    for (auto [j, v] : a.rows[i]) {
      if (some_x.count(j) && may[i]) by_row[i] += v * some_x[j];
      if (some_x.count(i) && may_columns[j]) by_column[j] += v * some_x[i];
    }
  for (const bool columns : {false, true}) {
    const Row& want = columns ? by_column : by_row;
    const Id nse = c.in(0, Id(want.size()) + 2);
    std::vector<Id> at(nse);
    std::vector<double> of(nse);
    const SparseOperand<double> operand{at_x.data(), of_x.data(), Id(at_x.size()),
                                        columns ? may_columns.data() : may.data()};
    const auto run = columns ? &spmspv_columns<Plus, Times, double> : &spmspv_rows<Plus, Times, double>;
    CHECK(run(A, a.data.data(), operand, nse, at.data(), of.data()) == Id(want.size()))
    Id next = 0;
    for (auto [i, v] : want) {
      if (next < nse) CHECK(at[next] == i && of[next] == v)
      ++next;
    }
  }
  std::vector<Id> ptr(l + 1), row(a.idx.size()), slot(a.idx.size());
  transpose(A, A.slots, l, ptr.data(), row.data(), Numbers(), slot.data());
  for (Id j = 0; j < l; ++j)
    for (Id e = ptr[j]; e < ptr[j + 1]; ++e)
      CHECK(a.idx[slot[e]] == j && a.rows[row[e]].count(j) && (e == ptr[j] || row[e - 1] < row[e]))
  return ptr[l] == a.ptr[m];
}

// Reachability by squaring, and all that is counted from neighbours of each vertex.
bool structure(Case& c) {
  const int seed = c.seed;
  const Id n = c.in(0, 40);
  const Sparse d = c.sparse(n, n, 3);
  std::vector<Row> both(n);
  for (Id u = 0; u < n; ++u)
    for (auto [v, w] : d.rows[u])
      if (u != v) both[u][v] = both[v][u] = w;
  const Sparse s(both, n);
  const Matrix D = d.matrix(), S = s.matrix();
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  std::vector<Id> label(n), core(n), corners(n), want(n, 0);
  std::vector<std::vector<int64_t>> far(n, std::vector<int64_t>(n, 1 << 20));
  for (Id u = 0; u < n; ++u) {
    far[u][u] = 0;
    for (auto [v, w] : d.rows[u])
      if (u != v) far[u][v] = 1;
  }
  for (Id k = 0; k < n; ++k)
    for (Id u = 0; u < n; ++u)
      for (Id v = 0; v < n; ++v) far[u][v] = std::min(far[u][v], far[u][k] + far[k][v]);
  strong_components(D, label.data());
  for (Id v = 0; v < n; ++v) {
    Id least = v;
    for (Id u = n; u-- > 0;)
      if (far[u][v] < 1 << 20 && far[v][u] < 1 << 20) least = u;
    CHECK(label[v] == least)
  }
  std::vector<Id> reached(n), high(n), low(n);
  std::vector<float> harmonic(n);
  closeness(team, D, high.data(), low.data(), harmonic.data(), reached.data());
  for (Id v = 0; v < n; ++v) {
    int64_t all = 0, total = 0;
    for (Id u = 0; u < n; ++u)
      if (far[u][v] < 1 << 20) ++all, total += far[u][v];
    CHECK(reached[v] == all && (int64_t(high[v]) << 24) + low[v] == total)
  }
  std::vector<Id> all(n), farthest(n), reach(n);
  for (Id v = 0; v < n; ++v) all[v] = v;
  eccentricities(team, S, list(std::as_const(all)), list(farthest), list(reach));
  if (const Id from = c.in(0, std::max(0, n - 1)); n) {
    std::vector<Id> level(n);
    BreadthFirst(team, S, nullptr, level.data(), nullptr).run(from, [](Id, int64_t width) {
      return width == 0;
    });
    Id most = 0;
    for (Id v = 0; v < n; ++v)
      if (level[v] >= 0) most = std::max(most, farthest[v]);
    Id found, searches, visited;
    diameter(team, S, from, n, true, found, searches, visited);
    CHECK(found == most && visited == reach[from] && searches <= n)
    CHECK(farthest[from] == *std::max_element(level.begin(), level.end()))
  }
  if (n) {  // trees of shortest paths with edges of weight 0, and sums along them
    const Id from = c.in(0, n - 1);
    std::vector<double> weight(d.idx.size()), dist(n, largest<double>()), sums(n), below(n, 1);
    for (auto& w : weight) w = c.in(0, 3);
    dist[from] = 0;
    for (Id round = 0; round < n; ++round)
      for (Id u = 0; u < n; ++u)
        for (Id e = d.ptr[u]; e < d.ptr[u + 1]; ++e)
          dist[d.idx[e]] = std::min(dist[d.idx[e]], dist[u] + weight[e]);
    const Distances<double> p{D, weight.data(), dist.data()};
    std::vector<Id> tree(n), slot(n), tail(n);
    shortest_path_tree(D, entries(weight), dist.data(), from, tree.data());
    tight_edges(team, D, entries(weight), dist.data(), from, slot.data(), tail.data());
    Id count = 0;
    for (Id v = 0; v < n; ++v) {
      const bool inner = v != from && dist[v] < largest<double>();
      count += dist[v] < largest<double>();
      CHECK(inner ? tree[v] >= 0 : tree[v] == (v == from ? from : -1))
      CHECK(inner == (slot[v] < D.slots) && (inner || tail[v] == v))
      if (inner) CHECK(d.idx[slot[v]] == v && p.tight(tail[v], slot[v]))
      sums[v] = inner ? weight[slot[v]] : 0;
    }
    const Tree paths(tail.data(), n, n);
    paths.to_root(sums.data());
    paths.from_leaves(below.data());
    for (Id v = 0; v < n; ++v) CHECK(dist[v] == largest<double>() ? below[v] == 1 : sums[v] == dist[v])
    CHECK(below[from] == count)
  }
  int64_t triangles = 0, found;
  for (Id u = 0; u < n; ++u)
    for (auto [v, x] : s.rows[u])
      for (auto [w, y] : s.rows[v])
        if (u < v && v < w && s.rows[u].count(w)) ++triangles, ++want[u], ++want[v], ++want[w];
  CHECK(!count_triangles(team, S, found) && found == triangles)
  triangles_of_vertices(team, S, corners.data());
  CHECK(corners == want)
  std::vector<Id> column(n), row(n), holds(n, -1);
  Matching(D, column.data(), row.data()).run();
  Id pairs = 0, most = 0;
  for (Id v = 0; v < n; ++v) {
    CHECK(column[v] < 0 || (row[column[v]] == v && d.rows[v].count(column[v])))
    CHECK(row[v] < 0 || column[row[v]] == v)
    pairs += column[v] >= 0;
  }
  std::vector<uint8_t> tried;
  std::function<bool(Id)> grows = [&](Id v) {  // one augmenting path after the other
    for (auto [w, x] : d.rows[v]) {
      if (tried[w]++) continue;
      if (holds[w] < 0 || grows(holds[w])) return holds[w] = v, true;
    }
    return false;
  };
  for (Id v = 0; v < n; ++v) tried.assign(n, 0), most += grows(v);
  CHECK(pairs == most)
  cores(S, core.data());
  for (Id k = 1; k < n; ++k) {  // the k-core by definition
    std::set<Id> inside;
    for (Id v = 0; v < n; ++v) inside.insert(v);
    for (bool more = true; more;) {
      more = false;
      for (Id v = 0; v < n; ++v) {
        Id degree = 0;
        for (auto [w, x] : s.rows[v]) degree += Id(inside.count(w));
        if (inside.count(v) && degree < k) inside.erase(v), more = true;
      }
    }
    for (Id v = 0; v < n; ++v) CHECK((core[v] >= k) == (inside.count(v) > 0))
  }
  const Id k = c.in(2, 5);
  std::vector<Id> slots(s.idx.size()), truss_ptr(n + 1), truss(S.slots), kept(S.slots);
  for (Id e = 0; e < S.slots; ++e) slots[e] = e;
  k_truss(team, S, entries(slots), k, list(truss_ptr), {{truss.data()}}, {{kept.data()}});
  auto left = both;
  for (bool more = true; more;) {
    more = false;
    for (Id u = 0; u < n; ++u)
      for (auto it = left[u].begin(); it != left[u].end();) {
        Id support = 0;
        for (auto [w, x] : left[u]) support += Id(left[it->first].count(w));
        if (support >= k - 2) {
          ++it;
          continue;
        }
        left[it->first].erase(u);
        it = left[u].erase(it);
        more = true;
      }
  }
  Id next = 0;
  for (Id u = 0; u < n; ++u) {
    CHECK(truss_ptr[u] == next)
    for (Id e = s.ptr[u]; e < s.ptr[u + 1]; ++e)
      if (left[u].count(s.idx[e])) {
        CHECK(truss[next] == s.idx[e] && kept[next] == e)
        ++next;
      }
  }
  CHECK(truss_ptr[n] == next)
  std::vector<Id> edge(std::max(n - 1, 0)), tail(edge.size());
  spanning_forest(S, entries(s.data), true, list(edge), list(tail));
  spanning_forest(D, entries(d.data), false, list(edge), list(tail));
  std::vector<double> start(n, 1.0 / std::max(n, 1)), rank(n), shared(n), positive(s.idx.size(), 1);
  Id steps;
  for (Id e = 0; e < s.ptr[n]; ++e) positive[e] = c.in(0, 3);
  for (Id u = 0; u < n; ++u)
    for (Id e = s.ptr[u]; e < s.ptr[u + 1]; ++e)
      for (Id f = s.ptr[s.idx[e]]; f < s.ptr[s.idx[e] + 1]; ++f)
        if (s.idx[f] == u) positive[f] = positive[e];
  const auto ranked = [&](bool symmetric, std::vector<double>& score) {
    return pagerank(team, S, entries(positive), start.data(), 0.85, 1e-9, 200, 0, symmetric, score.data(), steps);
  };
  CHECK(ranked(false, rank) && ranked(true, shared))
  double mass = 0;
  for (Id v = 0; v < n; ++v) {
    CHECK(std::abs(rank[v] - shared[v]) < 1e-8)
    mass += rank[v];
  }
  CHECK(n == 0 || std::abs(mass - 1) < 1e-6)
  std::vector<Id> sources(c.in(0, 9));
  for (auto& v : sources) v = c.in(-2, n + 1);
  std::vector<double> score(n);
  return !betweenness(team, D, list(std::as_const(sources)), true, score.data());
}

// Any bytes as offsets and indices: what `valid` lets through is safe to walk.
bool safe(Case& c) {
  Sparse a = c.sparse(c.in(0, 20), c.in(1, 20), 4);
  for (auto* list : {&a.ptr, &a.idx})
    for (auto& v : *list)
      if (c.in(0, 9) == 0) v = c.in(0, 1) ? Id(c.random()) : c.in(-2, 25);
  const Matrix A = a.matrix();
  if (!valid(A)) return true;
  Team alone;
  std::vector<Id> ptr(A.columns + 1), row(A.slots), slot(A.slots);
  transpose(A, A.slots, A.columns, ptr.data(), row.data(), Numbers(), slot.data());
  std::vector<Id> taken(A.rows), takes(A.columns);
  Matching(A, taken.data(), takes.data()).run();
  if (A.rows != A.columns) return true;
  Id counts[3];
  diameter(alone, A, c.in(-2, A.rows + 1), 3, c.in(0, 1), counts[0], counts[1], counts[2]);
  std::vector<double> dist(A.rows);
  std::vector<Id> tree(A.rows), edge(A.rows);
  for (auto& x : dist) x = c.in(0, 5) ? c.in(-3, 3) : c.in(0, 1) ? NAN : INFINITY;
  tight_edges(alone, A, entries(a.data), dist.data(), c.in(-2, A.rows + 1), edge.data(), tree.data());
  shortest_path_tree(A, entries(a.data), dist.data(), c.in(-2, A.rows + 1), tree.data());
  for (auto& v : tree) v = c.in(-2, A.rows + 1);
  const Tree any(tree.data(), A.rows, c.in(-2, A.rows + 1));
  any.to_root(dist.data());
  any.from_leaves(dist.data());
  std::vector<Id> label(A.rows), sources(c.in(0, 99)), far(sources.size()), reached(far);
  for (auto& v : sources) v = c.in(-2, A.rows + 1);
  eccentricities(alone, A, list(std::as_const(sources)), list(far), list(reached));
  int64_t triangles;
  count_triangles(alone, A, triangles);
  triangles_of_vertices(alone, A, label.data());
  std::vector<Id> data(A.slots), other(A.slots), kept(A.slots);
  std::vector<Id> truss_ptr(A.rows + 1), rows(std::max(A.rows - 1, 0)), slots(rows);
  k_truss(alone, A, entries(data), c.in(-1, 5), list(truss_ptr), {{other.data()}}, {{kept.data()}});
  cores(A, label.data());
  strong_components(A, label.data());
  spanning_forest(A, entries(a.data), c.in(0, 1) != 0, list(slots), list(rows));
  return true;
}

// Rows merged by maps, one thread or several, in more slots than needed; then any columns in any order.
bool merges(Case& c) {
  const int seed = c.seed;
  const Id m = c.in(0, 9) ? c.in(0, 40) : 2500, n = c.in(1, 20);
  Sparse a = c.sparse(m, n, 4), b = c.sparse(m, n, 4);
  const bool united = c.in(0, 1) != 0, defaults = c.in(0, 1) != 0;
  const int op = c.in(0, 4);
  const auto join = [&](double x, double y) {
    return op == 0 ? x + y : op == 1 ? x - y : op == 2 ? x * y : op == 3 ? std::min(x, y) : std::max(x, y);
  };
  const Matrix A = a.matrix(), B = b.matrix();
  const Values<double> x{a.data.data(), b.data.data(), 2, 3, defaults};
  const Id slots = (united ? A.slots + B.slots : std::min(A.slots, B.slots)) + c.in(0, 5);
  std::vector<Id> ptr(m + 1), idx(slots);
  std::vector<double> data(slots);
  Threads threads{c.random, {}};
  Team team(Pool{&threads, &Threads::schedule, c.in(1, 4)});
  const auto run = united ? merge<true, double> : merge<false, double>;
  run(team, A, B, x, op, slots, ptr.data(), idx.data(), data.data());
  Id k = 0;
  for (Id i = 0; i < m; ++i) {
    CHECK(ptr[i] == k)
    for (Id j = 0; j < n; ++j) {
      const bool in_a = a.rows[i].count(j), in_b = b.rows[i].count(j);
      if (united ? !in_a && !in_b : !in_a || !in_b) continue;
      const double p = in_a ? a.rows[i][j] : 2, q = in_b ? b.rows[i][j] : 3;
      CHECK(idx[k] == j && data[k] == (defaults || (in_a && in_b) ? join(p, q) : in_a ? p : q))
      ++k;
    }
  }
  CHECK(ptr[m] == k)
  for (; k < slots; ++k) CHECK(idx[k] == n && data[k] == 0)
  for (auto* list : {&a, &b})
    for (auto& j : list->idx) j = c.in(0, n - 1);
  run(team, a.matrix(), b.matrix(), x, op, slots, ptr.data(), idx.data(), data.data());
  return true;
}

int main(int count, char** arguments) {
  const int first = count > 2 ? std::atoi(arguments[2]) : 0;
  for (int seed = first; seed < first + std::atoi(arguments[1]); ++seed) {
    Case one(seed), two(seed), three(seed), four(seed);
    if (!products(one) || !structure(two) || !safe(three) || !merges(four)) return 1;
  }
  std::puts("ok");
}
