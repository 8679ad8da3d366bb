"""SpMV y = A x in float32, and over min-plus, against SciPy, BCOO, BCSR and cuSPARSE."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, measure, preparation
from ..options import Options
from ..prepared import method_name, prepared, runs_here
from ..suite import Workload
from . import _products

BASELINE = "SciPy"


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    A = workload.matrix()
    x = np.random.default_rng(0).random(A.shape[1], np.float32)
    check = plus_times_check(A, x)
    found = _ours(A, x, check, _min_plus_check(A, x), options)
    if options.baselines:
        found += _others(A, x, check, options)
    records = measure(found, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, gnzps=A.nnz / record["median_ms"] * 1e-6)
    return records


def _ours(A, x, check, check_min_plus, options):
    x = jnp.asarray(x)
    matrix, convert_s = preparation(lambda: jsp.from_scipy(A))
    graph, costs = prepared(A, "mxv")
    memory = {"bytes_over_csr": costs["bytes_over_csr"], "convert_s": convert_s}
    found = []
    for name, operand, semiring, verify in (
        ("jaxspv", graph, jsp.semirings.plus_times, check),
        ("jaxspv, bare CSR", matrix, jsp.semirings.plus_times, check),
        ("jaxspv min_plus", graph, jsp.semirings.min_plus, check_min_plus),
    ):
        impl = runs_here(jsp.explain("mxv", operand, x, semiring))[0]
        notes = {**memory, "method": method_name(impl)}
        cost = costs["prepare_s"] if operand is graph else None

        def product(x, operand, semiring=semiring):
            return jsp.mxv(operand, x, semiring)

        for repeats in (1, options.repeats) if options.repeats else (1,):
            label = name if repeats == 1 else f"{name}, inside jit"
            call = _products.call(product, x, operand, repeats)
            fields = {**notes, "inside": repeats > 1}
            found.append(Candidate(label, call, verify, repeats, cost, fields))
    return found


def _others(A, x, check, options):
    found = [Candidate(BASELINE, baselines.scipy_spmv(A, x), check)]
    if options.repeats and jax.default_backend() == "cpu":  # it finds the matrix in the caches too
        calls, name = baselines.scipy_spmv(A, x, options.repeats), f"{BASELINE}, in a row"
        found.append(Candidate(name, calls, check, options.repeats))
    loose = plus_times_check(A, x, 1e-4)  # long rows by atomics, one entry after the other
    for name, make in (("BCOO", baselines.bcoo_spmv), ("BCSR", baselines.bcsr_spmv)):
        program, matrix = make(A)
        vector = jnp.asarray(x)

        def call(program=program, matrix=matrix, vector=vector):
            return jax.block_until_ready(program(matrix, vector))

        found.append(Candidate(name, call, loose))
    if baselines.has_cupy():
        for repeats in {1, options.repeats or 1}:
            name = "cuSPARSE" if repeats == 1 else "cuSPARSE, in a row"
            found.append(Candidate(name, baselines.cupy_spmv(A, x, repeats), check, repeats))
    return found


def plus_times_check(A: sp.csr_array, x: np.ndarray, bound: float = 2e-5):
    """Within the rounding of float32 sums: |y - Ax| <= bound |A| |x|, against float64."""
    want = A.astype(np.float64) @ x.astype(np.float64)
    scale = abs(A).astype(np.float64) @ np.abs(x).astype(np.float64)

    def check(y):
        _compare(want, np.asarray(y, np.float64), bound * scale)

    return check


def _min_plus_check(A: sp.csr_array, x: np.ndarray):
    want = np.full(A.shape[0], np.inf, np.float32)
    rows = np.flatnonzero(np.diff(A.indptr))
    if len(rows):
        want[rows] = np.minimum.reduceat(A.data + x[A.indices], A.indptr[rows])

    def check(y):
        _compare(want, np.asarray(y), 0)

    return check


def _compare(want: np.ndarray, got: np.ndarray, bound: Any) -> None:
    assert got.shape == want.shape, f"the shape is {got.shape}, not {want.shape}."
    with np.errstate(invalid="ignore"):  # inf - inf, equal already
        wrong = np.flatnonzero(~((got == want) | (np.abs(got - want) <= bound)))
    assert not len(wrong), f"y[{wrong[0]}] is {got[wrong[0]]}, not {want[wrong[0]]}."
