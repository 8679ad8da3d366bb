// Handlers of products of sparse matrices. Of a mask, `holds` says which entries count, empty: all.
#include "mxm.h"

#include "handlers.h"

using namespace jaxspv;

enum MaskKind : int64_t { kNone = 0, kListed = 1, kWithout = 2 };

static Allowed allowed_by(int64_t kind, const Matrix& a, const Matrix& mask, List<const uint8_t> holds) {
  if (kind == kNone) return {};
  expect(mask.rows == a.rows, "the mask has another number of rows than the product");
  expect(!holds.size || holds.size == mask.slots, "a truth value for each entry of the mask");
  return {&mask, holds.size ? holds.data : nullptr};
}

// The entries of A B; 2^31 - 1 stands for any larger number.
static Id mxm_count(Team& team, Unchecked left, Rectangle b, Rectangle mask, List<const uint8_t> holds, Option kind) {
  expect(kind != kListed, "a mask that lists places bounds the product");
  const Matrix a = checked(left, b.rows);
  return clipped(count_product(team, a, b, allowed_by(kind, a, mask, holds)));
}

// The same in a capacity, with the product.
template <class Add, class Mul, class T>
static Id mxm(Team& team, Unchecked left, Entries<const T> x, Rectangle b, Entries<const T> y, Rectangle mask,
              List<const uint8_t> holds, Option kind, List<Id> ptr, List<Id> idx, List<T> value) {
  const Matrix a = checked(left, b.rows);
  expect(ptr.size == int64_t(a.rows) + 1 && idx.size == value.size, "a result has another length");
  const Allowed places = allowed_by(kind, a, mask, holds);
  const auto run = kind == kListed ? multiply_where<T> : multiply<T>;
  return clipped(run(team, a, b, terms<Add, Mul, T>(x, y), places, idx.size, ptr, idx, value));
}

JAXSPV_SERVES(mxm_count, "mask", mxm_count)
JAXSPV_SERVES_SEMIRINGS(mxm, "mask", mxm, JAXSPV_VALUES)
