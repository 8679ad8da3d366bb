// Random matrices for the programs of the sanitizers.
#pragma once
#include <cstdio>
#include <map>
#include <random>
#include <vector>

#include "checked.h"
#include "late_threads.h"

using namespace jaxspv;
using Row = std::map<Id, double>;

#define CHECK(what)                                      \
  if (!(what)) {                                         \
    std::printf("wrong: %s, seed %d\n", #what, seed);    \
    return false;                                        \
  }

struct Sparse {
  std::vector<Row> rows;
  Id columns;
  std::vector<Id> ptr, idx;
  std::vector<double> data;

  Sparse(std::vector<Row> given, Id n) : rows(std::move(given)), columns(n) {
    ptr.push_back(0);
    for (auto& row : rows) {
      for (auto [j, x] : row) idx.push_back(j), data.push_back(x);
      ptr.push_back(Id(idx.size()));
    }
    idx.resize(idx.size() + 2, n);  // padding
    data.resize(idx.size(), -99);
    ptr.shrink_to_fit(), idx.shrink_to_fit(), data.shrink_to_fit();
  }
  Matrix matrix() const { return {Id(rows.size()), columns, Id(idx.size()), ptr.data(), idx.data()}; }
};

struct Case {
  int seed;
  std::mt19937 random;
  explicit Case(int s) : seed(s), random(s) {}
  int in(int low, int high) { return int(random() % unsigned(high - low + 1)) + low; }
  Sparse sparse(Id m, Id n, int degree) {
    std::vector<Row> rows(m);
    const Id reach = in(0, 3) ? n : std::max(1, n / 50);
    for (int64_t k = int64_t(m) * in(0, degree); m && n && k > 0; --k)
      rows[in(0, m - 1)][in(0, reach - 1)] = in(-9, 9);
    return Sparse(rows, n);
  }
};
