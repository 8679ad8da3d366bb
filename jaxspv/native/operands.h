// Operands and results of handlers without lanes, their shapes, dtypes and indices checked.
#pragma once
#include "checked.h"
#include "ffi.h"
#include "semirings.h"

namespace jaxspv {

// The elements of an array of `rank` axes.
template <class T>
T* array(const Buffer& b, int64_t rank) {
  expect(b.dtype == dtype_of<T>(), "an array has another dtype than is expected");
  expect(b.rank == rank, "an array has another number of axes than is expected");
  return static_cast<T*>(b.data);
}

template <class T>
T* vector(const Buffer& b, int64_t size) {
  T* elements = array<T>(b, 1);
  expect(b.dims[0] == size, "an array has another length than is expected");
  return elements;
}

// The matrix whose indptr and indices are operands i and i + 1.
inline Matrix checked(const Call& call, int i, int64_t columns) {
  const Buffer &ptr = call.operand(i), &idx = call.operand(i + 1);
  const Id *offsets = array<Id>(ptr, 1), *indices = array<Id>(idx, 1);
  constexpr int64_t kMost = 0x7fffffff;
  expect(length(ptr) > 0, "indptr is empty");
  expect(std::max({length(ptr), length(idx), columns}) <= kMost, "an extent exceeds int32");
  const Matrix a{Id(length(ptr) - 1), Id(columns), Id(length(idx)), offsets, indices};
  expect(valid(a), "indptr or indices of a matrix are out of range");
  return a;
}

inline Matrix square(const Call& call) { return checked(call, 0, length(call.operand(0)) - 1); }

template <class T>
T* vertices(const Buffer& b, const Matrix& g) { return vector<T>(b, g.rows); }

template <class T>
T* entries(const Buffer& b, const Matrix& g) { return vector<T>(b, g.slots); }

// f(add, mul, zero) for the semiring and the dtype of the values.
template <class F>
void with_types(const Call& call, abi::Dtype dtype, const F& f) {
  const int64_t add = call.number("add"), mul = call.number("mul");
  with_values(dtype, [&](auto zero) {
    const bool known = with_semiring<decltype(zero)>(add, mul, [&](auto a, auto m) { f(a, m, zero); });
    expect(known, "there is no such semiring");
  });
}

}  // namespace jaxspv
