// Matrices that were checked: loops over them neither clamp nor skip.
#pragma once
#include "csr.h"

namespace jaxspv {

using Id = int32_t;
using Matrix = Csr<Id>;

// Whether offsets ascend within the slots and every index is below `columns`: one pass over both.
inline bool valid(const Matrix& a) {
  if (a.rows < 0 || a.ptr[0] != 0) return false;
  bool wrong = a.ptr[a.rows] > a.slots;
  for (Id i = 0; i < a.rows; ++i) wrong |= a.ptr[i] > a.ptr[i + 1];
  if (wrong) return false;
  for (Id e = 0, end = a.ptr[a.rows]; e < end; ++e) wrong |= uint32_t(a.idx[e]) >= uint32_t(a.columns);
  return !wrong;
}

inline Id degree(const Matrix& a, Id i) { return a.ptr[i + 1] - a.ptr[i]; }

}  // namespace jaxspv
