"""SpMM Y = A X of some columns and its gradient, against SciPy, BCOO, segment_sum and cuSPARSE."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, measure
from ..options import Options
from ..suite import Workload
from . import _products

BASELINE = "SciPy"
COLUMNS = {"gpu": (8, 32, 128, 512), "cpu": (16, 64)}
DTYPES = {"gpu": ("float32", "bfloat16"), "cpu": ("float32",)}
LOOKED_AT = 1000  # rows of a result, or entries, that are compared
HELD = 2**29  # products that BCOO and segment_sum may hold
BOUND = {"float32": 2e-5, "bfloat16": 2e-2}


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix: forward, and the gradient by values and X, for each k and dtype."""
    A = workload.matrix()
    platform = "gpu" if jax.default_backend() == "gpu" else "cpu"
    records = []
    for k in COLUMNS[platform]:
        rng = np.random.default_rng(k)
        X, W = (rng.random((n, k), np.float32) for n in (A.shape[1], A.shape[0]))
        for dtype in DTYPES[platform]:
            found = list(_candidates(A, X, W, dtype, options))
            some = measure(found, **options.timing())
            head = {"benchmark": f"spmm: {k} columns, {dtype}", "columns": k, "dtype": dtype}
            records += [{**r, **head} for r in some]
    for record in records:
        work = 2 * A.nnz * record["columns"]
        record.update(n=A.shape[0], entries=A.nnz, gflops=work / record["median_ms"] * 1e-6)
    return records


def _candidates(A, X, W, dtype, options):
    forward, gradient = _checks(A, X, W, dtype)
    X_, W_ = (jnp.asarray(v).astype(dtype) for v in (X, W))
    matrix = jsp.from_scipy(A).astype(dtype)
    graph = jsp.prepare(matrix, for_=())

    def inside(name, product, shifted, operand, check):
        call = _products.call(product, shifted, operand, options.repeats or 1)
        notes = {"inside": bool(options.repeats)}
        return Candidate(name, call, check, options.repeats or 1, None, notes)

    def ours(name, product, operand, check):
        return inside(name, product, operand.data, (operand, X_), check)

    def slopes(name, product, operand):
        return inside(name, _gradient(product), W_, (operand, X_), gradient)

    yield ours("jaxspv", _forward, matrix, forward)
    yield slopes("jaxspv gradient", _forward, graph)
    yield slopes("jaxspv gradient, bare CSR", _forward, matrix)
    if not options.baselines:
        return
    if dtype == "float32" and A.nnz * X.shape[1] <= HELD:
        bcoo = baselines.bcoo_spmv(A)[1]
        yield ours("BCOO", _by_bcoo, bcoo, forward)
        yield slopes("BCOO gradient", _by_bcoo, bcoo)
        yield ours("segment_sum", _by_segments, matrix, forward)
    if jax.default_backend() == "cpu":
        yield Candidate(BASELINE, lambda: A @ X, forward)
    elif baselines.has_torch():
        repeats = options.repeats or 1
        call = baselines.torch_spmm(A, X, dtype, repeats)
        notes, check, name = {"inside": repeats > 1}, forward, "torch.sparse"
        if dtype == "bfloat16":  # it is off by more than half on rmat18: told, not refused
            notes["verified"], check, name = False, _unchecked, "torch.sparse (unchecked)"
        yield Candidate(name, call, check, repeats, None, notes)


# What the chain of `_products` shifts comes first. Of a product these are the values, which are
# fewer than the numbers of X. Of a gradient it is the cotangent W, as both slopes depend on it: of
# slopes by values that do not, XLA would make those of one step for all.


def _forward(data, operand):
    matrix, X = operand
    return matrix.with_data(data) @ X


def _by_bcoo(data, operand):
    M, X = operand
    order = {"indices_sorted": M.indices_sorted, "unique_indices": M.unique_indices}
    return type(M)((data, M.indices), shape=M.shape, **order) @ X


def _by_segments(data, operand):
    M, X = operand
    row, col = M.rowcol()
    terms = data[:, None] * X[col]
    return jax.ops.segment_sum(terms, row, M.shape[0], indices_are_sorted=True)


def _gradient(product):
    def slopes(W, operand):
        matrix, X = operand
        Y, back = jax.vjp(lambda data, X: product(data, (matrix, X)), matrix.data, X)
        return back(W.astype(Y.dtype))

    return slopes


def _unchecked(_):
    """Takes any result."""


def _checks(A, X, W, dtype):
    """Some rows and entries against float64, within the rounding of sums in float32."""
    as_given = functools.partial(_rounded, dtype=dtype)
    X, W, bound = as_given(X), as_given(W), BOUND[dtype]
    exact = A.astype(np.float64)
    exact.data = as_given(A.data)
    rows = _some_rows(exact)
    want = exact[rows] @ X
    transposed = exact.T.tocsr()
    columns = _some_rows(transposed)
    want_X = transposed[columns] @ W
    entries = np.linspace(0, A.nnz - 1, min(A.nnz, LOOKED_AT)).astype(int)
    place = np.searchsorted(A.indptr, entries, side="right") - 1
    want_data = np.sum(W[place] * X[A.indices[entries]], axis=1)

    def forward(Y):
        _close(Y, rows, want, bound)

    def gradient(slopes):
        by_values, by_X = slopes
        _close(by_values, entries, want_data, bound)
        _close(by_X, columns, want_X, bound)

    return forward, gradient


def _rounded(v, dtype):
    return np.asarray(jnp.asarray(v).astype(dtype).astype(jnp.float32), np.float64)


def _some_rows(A):
    """Rows spread over A, and the longest."""
    spread = np.linspace(0, A.shape[0] - 1, min(A.shape[0], LOOKED_AT)).astype(int)
    return np.unique(np.concatenate([spread, np.argsort(np.diff(A.indptr))[-5:]]))


def _close(got: Any, places: np.ndarray, want: np.ndarray, bound: float) -> None:
    some = got[places] if isinstance(got, np.ndarray) else got[jnp.asarray(places)]
    found = np.asarray(some.astype("float32"), np.float64)
    np.testing.assert_allclose(found, want, rtol=bound, atol=bound * np.abs(want).max(initial=0))
