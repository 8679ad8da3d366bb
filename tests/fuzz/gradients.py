"""Derivatives of products and element-wise operations, against formulas in NumPy."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .cases import Case, Fuzzer
from .operands import part_of, triplets
from .wrappers import WRAPPERS

SEMIRINGS = ("plus_times", "min_plus", "max_plus", "max_times")
MODES = ("grad", "jvp", "jacrev", "value_and_grad")


def _formula(case: Case, dense: np.ndarray, is_valid: np.ndarray, x: np.ndarray, c: np.ndarray):
    """Derivatives of `sum(c * y)` where y is stored, by every place of A and of x."""
    A, P = (dense.T, is_valid.T) if case["op"] == "vxm" else (dense, is_valid)
    if case["op"] == "ewise_mult":  # A * A^2, entry by entry
        return np.where(P, 3 * A**2 * c[:, None], 0), np.zeros_like(x)
    add, mul = case["semiring"].split("_")
    by_a = np.broadcast_to(x if mul == "times" else np.ones_like(x), A.shape)
    by_x = A if mul == "times" else np.ones_like(A)
    won = P
    if add != "plus":
        terms = A * x if mul == "times" else A + x
        far = np.where(P, terms, np.inf if add == "min" else -np.inf)
        best = (np.argmin if add == "min" else np.argmax)(far, axis=1)  # the smallest index at ties
        won = P & (np.arange(A.shape[1]) == best[:, None])
    da = np.where(won, c[:, None] * by_a, 0)
    dx = np.where(won, c[:, None] * by_x, 0).sum(0)
    return (da.T if case["op"] == "vxm" else da), dx


@functools.lru_cache(maxsize=32)
def _program(structure: tuple[tuple[str, Any], ...]) -> Any:
    case = dict(structure)
    ring = getattr(jsp.semirings, case["semiring"])

    def loss(data, x, A, c):
        M = A.with_data(data).asformat(case["format"])
        if case["op"] == "ewise_mult":
            y = jsp.ewise_mult(M, jsp.ewise_mult(M, M))
            return jnp.sum(jsp.reduce(y, axis=1).todense() * c)
        y = jsp.mxv(M, x, ring) if case["op"] == "mxv" else jsp.vxm(x, M, ring)
        stored = jsp.reduce(M, axis=1 if case["op"] == "mxv" else 0).structure()
        return jnp.sum(jnp.where(stored, y * c, 0))

    def slopes(data, x, A, c):
        if case["mode"] == "jvp":  # by the basis: forward mode, batched

            def along(d, v):
                return jax.jvp(lambda d, v: loss(d, v, A, c), (data, x), (d, v))[1]

            zero_d, zero_x = jnp.zeros_like(data), jnp.zeros_like(x)
            by_d = jax.vmap(lambda d: along(d, zero_x))(jnp.eye(data.size, dtype=data.dtype))
            return by_d, jax.vmap(lambda v: along(zero_d, v))(jnp.eye(x.size, dtype=x.dtype))
        if case["mode"] == "jacrev":
            return jax.jacrev(loss, (0, 1))(data, x, A, c)
        if case["mode"] == "value_and_grad":
            return jax.value_and_grad(loss, (0, 1))(data, x, A, c)[1]
        return jax.grad(loss, (0, 1))(data, x, A, c)

    return jax.jit(WRAPPERS[case["wrapper"]](slopes))


def _possible(case: Case) -> bool:
    return case["op"] != "ewise_mult" or case["semiring"] == "plus_times"


def run(case: Case) -> tuple[str, ...]:
    """Raises where a derivative is another than the formula says."""
    with jax.enable_x64(case["x64"]):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    rng = np.random.default_rng(case["seed"])
    dtype = "float64" if case["x64"] else "float32"
    (m, n), layout = case["shape"], case["layout"]
    dense, is_valid = part_of(rng, (m, n), dtype, layout)
    rows, columns = (n, m) if case["op"] == "vxm" else (m, n)
    x = rng.integers(-3, 4, columns).astype(dtype)
    c = rng.integers(-2, 3, rows).astype(dtype)
    if case["op"] == "ewise_mult":
        c = rng.integers(-2, 3, m).astype(dtype)
    A = triplets(rng, (dense, is_valid), layout)
    structure = tuple((k, v) for k, v in case.items() if k != "seed")
    da, dx = jax.device_get(_program(structure)(A.data, x, A, c))
    want_a, want_x = _formula(case, dense, is_valid, x, c)
    valid = np.asarray(A.row) < m
    want = np.zeros(A.nse, dtype)
    want[valid] = want_a[A.row[valid], A.col[valid]]
    np.testing.assert_allclose(da, want, rtol=1e-5, atol=1e-5, err_msg="by the values")
    np.testing.assert_allclose(dx, want_x, rtol=1e-5, atol=1e-5, err_msg="by the vector")
    return ("numpy",)


FUZZER = Fuzzer(
    {
        "op": ("mxv", "vxm", "ewise_mult"),
        "semiring": SEMIRINGS,
        "mode": MODES,
        "format": ("coo", "csr", "csc", "tiled"),
        "layout": ("sorted", "padded", "unsorted"),
        "shape": ((2, 3), (5, 4), (1, 1), (7, 1), (12, 9)),
        "wrapper": tuple(WRAPPERS),
        "x64": (False, True),
    },
    run,
    possible=_possible,
)
