"""Products over semirings of tuples beside that over `min_plus`: what two words cost over one.

Distances with the id of the neighbour that gives them, and pairs in lexicographic order, by the
kernel or the segmented scan, each one of `--repeats` products in one program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp

from ..harness import Candidate, chained, measure
from ..options import Options
from ..suite import Workload

S = jsp.semirings
FORMS = ("pallas", "xla")


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    W = workload.weighted()
    A, n = jsp.from_scipy(W), W.shape[1]
    x = np.random.default_rng(0).integers(0, 99, n).astype(np.float32)
    ids = np.arange(n, dtype=np.int32)
    least, nearest = _reference(W, x)

    def distances(y):
        np.testing.assert_array_equal(jax.tree.leaves(y)[0], least)

    def with_ids(y):
        distances(y)
        np.testing.assert_array_equal(y[1], nearest)

    argmin, pairs = S.argmin_plus(), S.lexicographic(S.min_plus, S.max_min)
    each = {  # name -> (semiring, values of entries, x, check)
        "min_plus": (S.min_plus, A.data, x, distances),
        "argmin_plus": (argmin, (A.data, np.full(A.nse, 2**31 - 1, np.int32)), (x, ids), with_ids),
        "lexicographic": (pairs, (A.data, A.data), (x, x), distances),
    }
    gpu = jax.default_backend() == "gpu"
    found = []
    for name, (semiring, values, vector, check) in each.items():
        operands = jax.tree.map(jnp.asarray, (values, vector))
        for form in FORMS if gpu and name != "min_plus" else (None,):
            if options.backend is None or form in (options.backend, None):
                label = f"jaxspv, {name}" + (", XLA" if form == "xla" else "")
                repeats = 1 if form == "xla" else options.repeats or 1
                call = _repeated(A, semiring, *operands, form, repeats)
                found.append(Candidate(label, call, check, repeats))
    records = measure(found, **options.timing())
    return [{**record, "n": n, "entries": W.nnz} for record in records]


def _repeated(A: Any, semiring: Any, values: Any, x: Any, form: Any, repeats: int) -> Callable:
    """Runs products one after the other; each x depends on the y before, in place."""

    def step(carry, A, values):
        x, _ = carry
        y = lax.optimization_barrier(jsp.mxv(A.with_data(values), x, semiring, backend=form))
        number = jax.tree.leaves(y)[0][0]
        zero = jnp.where(jnp.isnan(number), 1, 0)  # which XLA does not know
        x = jax.tree.map(lambda v: v.at[0].add(zero.astype(v.dtype)), x)
        return lax.optimization_barrier((x, y))

    shapes = jax.eval_shape(lambda *a: step((x, None), *a)[1], A, values)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=True)
    return lambda: jax.block_until_ready(program((x, empty), A, values))[1]


def _reference(W: Any, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """min over j of W[i, j] + x[j] by NumPy, and the least j that gives it."""
    terms = (W.data + x[W.indices]).astype(np.float32)
    m, filled = W.shape[0], np.flatnonzero(np.diff(W.indptr))
    least, nearest = np.full(m, np.inf, np.float32), np.full(m, 2**31 - 1, np.int32)
    if filled.size:
        starts = W.indptr[filled]
        least[filled] = np.minimum.reduceat(terms, starts)
        rows = np.repeat(np.arange(m), np.diff(W.indptr))
        given = np.where(terms == least[rows], W.indices, 2**31 - 1)
        nearest[filled] = np.minimum.reduceat(given, starts)
    return least, nearest
