"""Sums along long rows in every precision, against float64 within a few units of the result."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import scipy.sparse

import jaxspv as jsp

from ..cases import Case, Fuzzer

RINGS = {  # a user's sum takes other forms than the built-in one
    "plus_times": jsp.semirings.plus_times,
    "own product": jsp.semiring(jnp.add, lambda a, b: a * b, name="own_product"),
    "own sum": jsp.semiring(jsp.monoid(lambda a, b: a + b, 0, name="own"), lambda a, b: a * b),
}
CALLS = {  # name -> (of A and a semiring, of S in float64); A has few rows or columns, one long
    "mxv": (lambda A, R: jsp.mxv(A, jnp.ones(A.shape[1], A.dtype), R), lambda S: S.sum(1)),
    "vxm": (lambda A, R: jsp.vxm(jnp.ones(A.shape[0], A.dtype), A, R), lambda S: S.sum(0)),
    "spmm": (
        lambda A, R: jsp.mxm(A, jnp.ones((A.shape[1], 3), A.dtype), R),
        lambda S: np.stack([S.sum(1)] * 3, 1),
    ),
    "transposed spmm": (
        lambda A, R: jsp.mxm(A.T, jnp.ones((A.shape[0], 3), A.dtype), R),
        lambda S: np.stack([S.sum(0)] * 3, 1),
    ),
    "mxm": (lambda A, R: jsp.mxm(A, A.T, R, nse=32).todense(), lambda S: (S @ S.T).toarray()),
    "sparse mxv": (
        lambda A, R: jsp.mxv(A, _whole(A.shape[1], A.dtype), R).todense(),
        lambda S: S.sum(1),
    ),
    "sparse vxm": (
        lambda A, R: jsp.vxm(_whole(A.shape[0], A.dtype), A, R).todense(),
        lambda S: S.sum(0),
    ),
    "sddmm": (lambda A, R: _dots(A, R), lambda S: S.sum(1)),
    "gradient": (
        lambda A, R: jax.grad(lambda x: jnp.sum(jsp.mxv(A, x, R).astype(jnp.float32)))(
            jnp.ones(A.shape[1], A.dtype)
        ),
        lambda S: S.sum(0),
    ),
    "gradient of spmm": (
        lambda A, R: jax.grad(lambda X: jnp.sum(jsp.mxm(A, X, R).astype(jnp.float32)))(
            jnp.ones((A.shape[1], 3), A.dtype)
        ),
        lambda S: np.stack([S.sum(0)] * 3, 1),
    ),
    "reduce rows": (lambda A, R: jsp.reduce(A, R.add, axis=1).todense(), lambda S: S.sum(1)),
    "reduce columns": (lambda A, R: jsp.reduce(A, R.add, axis=0).todense(), lambda S: S.sum(0)),
    "reduce": (lambda A, R: jsp.reduce(A, R.add), lambda S: S.sum()),
}
WITHOUT_RINGS = {
    "mean": (lambda A: A.mean(), lambda S: S.mean()),
    "aggregate": (jsp.learning.aggregate, lambda S: S.sum(1)),
    "average": (lambda A: jsp.learning.aggregate(A, "mean"), lambda S: _of_rows(S, np.mean)),
    "variance": (lambda A: jsp.learning.aggregate(A, "var"), lambda S: _of_rows(S, np.var)),
    "normalize": (
        lambda A: jsp.learning.normalize(A, "row").todense(),
        lambda S: S.toarray() / np.where(S.sum(1) == 0, 1, S.sum(1))[:, None],
    ),
}
UNITS = {"float64": 4096}  # of the last place; nothing is joined in more than float64
IN_FLOAT32 = 256  # units of jaxlib's own product, which adds rows of up to 2^14 entries one by one


def _whole(n: int, dtype: Any) -> Any:
    arrays = jnp.ones(n, dtype), jnp.arange(n), jnp.int32(n), jnp.asarray(False)
    return jsp.SparseVector(*arrays, (n,), True, True)


def _dots(A: Any, R: Any) -> Any:
    """Each row times ones: few dot products over all columns."""
    few = jsp.from_edges(jnp.arange(A.shape[0]), jnp.zeros(A.shape[0], int), shape=(A.shape[0], 1))
    return jsp.sddmm(few, A.todense(), jnp.ones((1, A.shape[1]), A.dtype), R).data


def _of_rows(S: Any, f: Any) -> np.ndarray:
    return np.array([f(S[[i]].data) if S[[i]].nnz else 0.0 for i in range(S.shape[0])])


def run(case: Case) -> tuple[str, ...]:
    """Raises where a sum is off by more than its terms' rounding explains."""
    with jax.enable_x64(case["dtype"] == "float64"):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    rng = np.random.default_rng(case["seed"])
    dtype = np.dtype(getattr(ml_dtypes, case["dtype"], case["dtype"]))
    m, n = 5, case["length"]
    lengths = np.array([n, 0, 1, 7, n // 2])[rng.permutation(m)]
    col = [np.sort(rng.permutation(n)[:k]) for k in lengths]
    row = np.repeat(np.arange(m), lengths)
    low, high = {"ones": (1, 1), "near 1000": (990, 1010), "below 1": (0, 1)}[case["values"]]
    data = rng.uniform(low, high, len(row)).astype(dtype)
    col = np.concatenate(col)
    if case["long"] == "columns":
        order = np.lexsort((row, col))
        m, n, row, col, data = n, m, col[order], row[order], data[order]
    S = scipy.sparse.csr_array((data.astype(np.float64), (row, col)), shape=(m, n))
    rows, columns = jnp.asarray(row, jnp.int32), jnp.asarray(col, jnp.int32)
    order = rng.permutation(len(row)) if case["format"] == "unsorted" else slice(None)
    ordered = case["format"] != "unsorted"
    arrays = jnp.asarray(data)[order], rows[order], columns[order], jnp.asarray(False)
    A = jsp.COO(*arrays, (m, n), ordered, True)
    A = A.asformat(case["format"]) if ordered else A
    call, oracle = (CALLS | WITHOUT_RINGS)[case["name"]]
    ring = (RINGS[case["semiring"]],) if case["name"] in CALLS else ()
    found, want = np.asarray(call(A, *ring)), np.asarray(oracle(S))
    assert found.dtype == dtype or case["name"] in ("average", "variance", "mean"), found.dtype
    eps = float(jnp.finfo(found.dtype).eps)
    if case["name"] == "variance":  # of the terms as they are, no more than cancels in two passes
        slack = UNITS.get(case["dtype"], 64) * eps * np.maximum(want, eps * high**2)
    else:
        own = IN_FLOAT32 if "spmm" in case["name"] else 8 if "sddmm" in case["name"] else 4
        units = UNITS.get(case["dtype"], own)  # sddmm: dot products, by XLA's reduction
        slack = units * eps * np.abs(want)
    top = float(jnp.finfo(found.dtype).max)
    got = found.astype(np.float64)
    finite = np.abs(want) < top * (1 - eps)
    slack += 4 * float(jnp.finfo(found.dtype).smallest_subnormal)  # the unit of tiny results
    wrong = finite & ~(np.abs(got - want) <= slack)
    assert not wrong.any(), (got[wrong][:3], want[wrong][:3])
    assert np.isinf(got[np.abs(want) > top * (1 + eps)]).all(), "beyond the largest number"
    return ("float64",)


def _possible(case: Case) -> bool:
    if case["name"] in ("mxm", "sddmm") and case["long"] == "columns":
        return False  # would be large
    return case["name"] in CALLS or case["semiring"] == "plus_times"


FUZZER = Fuzzer(
    {
        "name": (*CALLS, *WITHOUT_RINGS),
        "semiring": tuple(RINGS),
        "long": ("rows", "columns"),
        "dtype": ("float32", "float16", "bfloat16", "float64"),
        "format": ("csr", "coo", "csc", "unsorted"),
        "length": (3000, 100_000),
        "values": ("ones", "near 1000", "below 1"),
    },
    run,
    draws=lambda case: 25 if case["length"] > 3000 else None,  # making the data takes the time
    possible=_possible,
)
