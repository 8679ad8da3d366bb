// Matrices that were checked, so that loops over them neither clamp nor skip; arrays that go with them.
#pragma once
#include <stdexcept>
#include <vector>

#include "csr.h"

namespace jaxspv {

struct Unchecked : Matrix {};  // of any bytes
struct Rectangle : Matrix {};  // of any number of columns
struct Option {
  int64_t value;
  explicit Option(int64_t given) : value(given) {}
  operator int64_t() const { return value; }
};

inline Id clipped(int64_t count) { return Id(std::min<int64_t>(count, 0x7fffffff)); }

struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
};
inline void expect(bool condition, const char* message) {
  if (!condition) throw Invalid(message);
}

// Whether offsets ascend within the slots and every index is below `columns`: one pass over both.
inline bool valid(const Matrix& a) {
  if (a.rows < 0 || a.ptr[0] != 0 || !a.ascends(0, a.rows)) return false;
  return a.all_columns(0, a.ptr[a.rows]);
}

// The same matrix with so many columns, checked.
inline Matrix checked(Matrix a, int64_t columns) {
  expect(columns < 0x7fffffff, "an extent exceeds int32");
  a.columns = Id(columns);
  expect(valid(a), "indptr or indices of a matrix are out of range");
  return a;
}

inline Id degree(const Matrix& a, Id i) { return a.ptr[i + 1] - a.ptr[i]; }

template <class T>
struct View {
  T* data;
  operator T*() const { return data; }
};
template <class T>
struct Entries : View<T> {};  // an element for each entry of a matrix
template <class T>
struct Maybe : View<T> {};  // for each row, or null
template <class T>
struct List : View<T> {  // any number of elements
  int64_t size;
  T* begin() const { return this->data; }
  T* end() const { return this->data + size; }
};
template <class T>
struct Table : View<T> {
  int64_t rows, columns;
};

inline List<const Id> row(const Matrix& a, Id i) { return {{a.idx + a.ptr[i]}, degree(a, i)}; }

// The entries of each row off the diagonal.
inline void degrees_without_loops(const Matrix& g, Id* degree) {
  for (Id v = 0; v < g.rows; ++v) degree[v] = Id(row(g, v).size - std::count(row(g, v).begin(), row(g, v).end(), v));
}

// order: the numbers below n by ascending key, equal ones in order, without those of negative keys.
// Returns where those of each key begin; keys are below `keys`.
inline std::vector<Id> counting_sort(const Id* key, Id n, Id keys, Id* order) {
  std::vector<Id> first(size_t(keys) + 1, 0);
  for (Id v = 0; v < n; ++v)
    if (key[v] >= 0) ++first[key[v] + 1];
  for (Id k = 0; k < keys; ++k) first[k + 1] += first[k];
  std::vector<Id> next(first);
  for (Id v = 0; v < n; ++v)
    if (key[v] >= 0) order[next[key[v]]++] = v;
  return first;
}

// label[v]: the smallest vertex of the group of v; how many groups there are.
inline Id count_labels(const Id* label, Id n) {
  Id count = 0;
  for (Id v = 0; v < n; ++v) count += label[v] == v;
  return count;
}

}  // namespace jaxspv
