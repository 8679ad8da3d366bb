// Handlers of products with vectors.
#include "handlers.h"
#include "pagerank.h"
#include "sddmm.h"
#include "spmspv.h"
#include "spmv.h"

using namespace jaxspv;

JAXSPV_SERVES_SEMIRINGS(spmv, "", spmv, JAXSPV_VALUES)
JAXSPV_SERVES_SEMIRINGS(winners, "", winners, float, double)
JAXSPV_SERVES_SEMIRINGS(spmv_transposed, "", spmv_transposed, JAXSPV_VALUES)
JAXSPV_SERVES(spmv_derivatives, "", JAXSPV_FLOATS(spmv_derivatives))
JAXSPV_SERVES_SEMIRINGS(spmspv, "columns rows extent", spmspv, JAXSPV_VALUES)
JAXSPV_SERVES_SEMIRINGS(sddmm, "", sddmm, JAXSPV_VALUES)
JAXSPV_SERVES(pagerank, "symmetric", JAXSPV_FLOATS(pagerank))
