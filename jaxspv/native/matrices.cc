// Handlers of products with dense matrices and of conversions.
#include "convert.h"
#include "handlers.h"
#include "spmm.h"

using namespace jaxspv;

JAXSPV_SERVES_SEMIRINGS(spmm, "by_columns", sparse_times_dense, JAXSPV_VALUES)
JAXSPV_SERVES(transpose, "", slots_by_column)
JAXSPV_SERVES(expand, "", expand)
JAXSPV_SERVES(compress, "", compress)
