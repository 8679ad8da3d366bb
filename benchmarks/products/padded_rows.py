"""SpMV by storage format, CSR, ELL and SELL-C, over the types of sparsity of "GraphBLAS on GPU".

The experiments of the report's section on formats: seven types of sparsity, matrices of 256 and of
4,096 rows at 95% sparsity, SELL with slices of 2 to 64 rows; and of 10^5 and 10^6 rows with 16
entries each, where a GPU is busy. cuSPARSE, or SciPy on a CPU, beside them. Other matrices by name
(`--graphs`) take the same formats.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import baselines
from ..graphs.sparsity_types import SPARSITY_TYPES, sparsity
from ..harness import Candidate, measure
from ..options import Options
from ..suite import Workload
from . import _products
from .spmv import plus_times_check

SIZES = (256, 4096)
LARGE = (10**5, 10**6)
LARGE_ROW = 16  # entries a row, the mean
DENSITY = 0.05
ROUNDING = 2**-30  # of an entry in the sum of a row, relative
SLICES = (2, 4, 8, 16, 32, 64)


def workloads(options: Options) -> list[Workload]:
    """Every type in every size; a million rows on a GPU alone (`--max-scale`)."""
    found = []
    for n in (*SIZES, *LARGE[: 2 if options.max_scale > 18 else 1]):
        density = DENSITY if n in SIZES else LARGE_ROW / n
        found += [_workload(kind, n, density) for kind in SPARSITY_TYPES]
    return found


def _workload(kind: str, n: int, density: float) -> Workload:
    def build():
        return sparsity(jax.random.key(0), kind, n, density).to_scipy()

    return Workload(f"{kind}-{n}", build, f"{density:.3g} of places hold an entry")


def formats(A: jsp.CSR) -> dict[str, Any]:
    """A in every format that does not refuse it; SELL unsorted too, as the report has it."""
    makers = {"CSR": lambda: A, "ELL": lambda: A.asformat("ell")}
    for C in SLICES:
        makers[f"SELL-{C}"] = lambda C=C: jsp.SELL.from_matrix(A, C=C)
    makers["SELL-32, rows as they come"] = lambda: jsp.SELL.from_matrix(A, C=32, sigma=1)
    found = {}
    for name, make in makers.items():
        try:
            found[name] = make()
        except ValueError:  # mostly padding
            continue
    return found


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    S = workload.matrix()
    x = np.random.default_rng(0).random(S.shape[1], np.float32)
    longest = int(np.diff(S.indptr).max(initial=0))  # SELL adds up a row in turn
    check = plus_times_check(S, x, max(2e-5, longest * ROUNDING))
    vector = jnp.asarray(x)
    found = []
    for name, A in formats(jsp.from_scipy(S)).items():
        notes = {"slots": A.nse, "chosen": jsp.choose_format(jsp.from_scipy(S), "mxv").format}
        for repeats in (1, options.repeats) if options.repeats else (1,):
            label = name if repeats == 1 else f"{name}, inside jit"
            call = _products.call(_product, vector, A, repeats)
            found.append(Candidate(label, call, check, repeats, None, notes))
    found += _others(S, x, check, options)
    records = measure(found, **options.timing())
    return [{**r, "n": S.shape[0], "entries": S.nnz} for r in records]


def _product(x: jax.Array, A: Any) -> jax.Array:
    return jsp.mxv(A, x)


def _others(S: sp.csr_array, x: np.ndarray, check: Any, options: Options) -> list[Candidate]:
    if not baselines.has_cupy():
        return [Candidate("SciPy", baselines.scipy_spmv(S, x), check)]
    repeats = options.repeats or 1
    call = baselines.cupy_spmv(S, x, repeats)
    return [Candidate("cuSPARSE, in a row", call, check, repeats)]
