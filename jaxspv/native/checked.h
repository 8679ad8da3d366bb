// Matrices that were checked: loops over them neither clamp nor skip.
#pragma once
#include "csr.h"

namespace jaxspv {

using Id = int32_t;
using Matrix = Csr<Id>;

// Whether offsets ascend within the slots and every index is below `columns`: one pass over both.
inline bool valid(const Matrix& a) {
  if (a.rows < 0 || a.ptr[0] != 0 || !a.ascends(0, a.rows)) return false;
  return a.all_columns(0, a.ptr[a.rows]);
}

inline Id degree(const Matrix& a, Id i) { return a.ptr[i + 1] - a.ptr[i]; }

}  // namespace jaxspv
