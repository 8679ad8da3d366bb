"""SpMSpV y = A x by every method and vector density, against SciPy and the dense product."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .harness import Candidate, jitted, measure, timed
from .options import Options
from .suite import Workload

BASELINE = "SciPy"
METHODS = ("auto", "scatter", "sort", "merge", "row", "dense")
DENSITIES = (1e-1, 1e-2, 1e-3, 1e-4)


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix at each density of the vector."""
    A = workload.matrix()
    n = A.shape[1]
    matrix, convert_s = timed(lambda: jsp.from_scipy(A).asformat("csc"))
    columns = A.tocsc()
    rng = np.random.default_rng(0)
    records = []
    for density in DENSITIES:
        count = max(1, round(density * n))
        indices = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
        values = rng.random(count, np.float32)
        part = columns[:, indices]
        check = _check(part, values)
        found = _ours(matrix, indices, values, check, convert_s)
        if options.baselines:
            found.append(Candidate(BASELINE, lambda i=indices, v=values: columns[:, i] @ v, check))
        for record in measure(found, **options.timing()):
            record.update(
                n=n, entries=A.nnz, density=density, edges=int(part.nnz),
                case=f"{workload.name} {density:g}",
            )  # fmt: skip
            records.append(record)
    return records


def _ours(matrix, indices, values, check, convert_s):
    x = jsp.vector_from_entries(indices, values, matrix.shape[1])
    notes = {"convert_s": convert_s}
    found = []
    for method in METHODS:
        program = jitted(lambda A, x, method=method: jsp.spmspv(A, x, method=method))

        def call(program=program):
            return jax.block_until_ready(program(matrix, x))

        found.append(Candidate(f"jaxspv {method}", call, check, notes=notes))
    dense = jnp.asarray(x.todense())
    rows = matrix.asformat("csr")
    product = jitted(jsp.spmv)
    call = lambda: jax.block_until_ready(product(rows, dense))  # noqa: E731
    return [*found, Candidate("jaxspv SpMV", call, check, notes=notes)]


def _check(part: Any, values: np.ndarray):
    """The rows with a product are those stored, their sums within float32 rounding."""
    want = part.astype(np.float64) @ values.astype(np.float64)
    scale = abs(part).astype(np.float64) @ np.abs(values).astype(np.float64)
    stored = np.bincount(part.indices, minlength=part.shape[0]) > 0

    def check(y):
        if isinstance(y, jsp.SparseVector):
            assert (np.asarray(y.structure()) == stored).all(), "other rows are stored."
            y = y.todense()
        wrong = np.flatnonzero(~(np.abs(np.asarray(y, np.float64) - want) <= 2e-5 * scale))
        assert not len(wrong), f"y[{wrong[0]}] is not {want[wrong[0]]}."

    return check
