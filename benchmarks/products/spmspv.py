"""SpMSpV y = A x by every method and vector density, against SciPy and the dense product."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, jitted, measure, preparation
from ..options import Options
from ..prepared import runs_here
from ..suite import Workload
from . import _products

BASELINE = "SciPy"
METHODS = ("auto", "scatter", "sort", "merge", "row", "dense")
DENSITIES = (1e-1, 1e-2, 1e-3, 1e-4)


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix at each density of the vector."""
    A = workload.matrix()
    n = A.shape[1]
    matrix, convert_s = preparation(lambda: jsp.from_scipy(A).asformat("csc"))
    columns = A.tocsc()
    rng = np.random.default_rng(0)
    records = []
    for density in DENSITIES:
        count = max(1, round(density * n))
        indices = np.sort(rng.choice(n, count, replace=False)).astype(np.int32)
        values = rng.random(count, np.float32)
        part = columns[:, indices]
        check = _check(part, values)
        found = _ours(matrix, indices, values, check, convert_s, options)
        if options.baselines:
            found += _others(A, columns, indices, values, check, options)
        for record in measure(found, **options.timing()):
            record.update(
                n=n,
                entries=A.nnz,
                density=density,
                edges=int(part.nnz),
                case=f"{workload.name} {density:g}",
            )
            records.append(record)
    return records


def _ours(matrix, indices, values, check, convert_s, options):
    x = jsp.vector_from_entries(indices, values, matrix.shape[1])
    notes = {"convert_s": convert_s}
    found = []
    for label, asked in _programs(matrix, x):
        run = functools.partial(_product, **asked)
        chosen = "method" not in asked  # the others are compared by single calls, to save compiling
        for repeats in {1, options.repeats or 1} if chosen else {1}:
            name = label if repeats == 1 else f"{label}, inside jit"
            call = _products.call(run, x, matrix, repeats)
            found.append(Candidate(name, call, check, repeats, notes=notes))
    dense = jnp.asarray(x.todense())
    rows = matrix.asformat("csr")
    product = jitted(jsp.mxv)
    call = lambda: jax.block_until_ready(product(rows, dense))  # noqa: E731
    return [*found, Candidate("jaxspv SpMV", call, check, notes=notes)]


def _programs(matrix, x) -> list[tuple[str, dict[str, Any]]]:
    """What runs unasked, and every method; those of XLA apart where a kernel takes the call."""
    kernels = [i.name for i in runs_here(jsp.explain("mxv", matrix, x)) if i.backend == "pallas"]
    listed = [("jaxspv auto", {})]
    if kernels:
        listed.append(("jaxspv xla auto", {"backend": "xla"}))
    for method in METHODS[1:]:
        label = f"jaxspv xla {method}" if method in kernels else f"jaxspv {method}"
        listed.append((label, {"method": method, "backend": "xla"}))
    return listed


def _product(x, A, **asked):
    return jsp.mxv(A, x, **asked)


def _others(A, columns, indices, values, check, options):
    found = [Candidate(BASELINE, lambda: columns[:, indices] @ values, check)]
    if baselines.has_cupy():
        x = np.zeros(A.shape[1], np.float32)
        x[indices] = values
        for repeats in {1, options.repeats or 1}:
            name = "cuSPARSE SpMV" if repeats == 1 else "cuSPARSE SpMV, in a row"
            found.append(Candidate(name, baselines.cupy_spmv(A, x, repeats), check, repeats))
    return found


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
