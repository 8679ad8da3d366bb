"""Operations on matrices and vectors of any layout, against values and presence in NumPy."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .cases import Case, Fuzzer

Part = tuple[np.ndarray, np.ndarray]  # values, which places are stored
OPS = ("mxv", "vxm", "mxm", "ewise_add", "ewise_mult", "apply", "reduce", "transpose", "extract")
ADD = {"plus_times": np.add, "min_plus": np.minimum, "max_times": np.maximum}
MUL = {"plus_times": np.multiply, "min_plus": np.add, "max_times": np.multiply}
WIDE = {"float32": "float64", "int32": "int64", "int8": "int8"}


def _part(rng: np.random.Generator, shape: tuple[int, ...], dtype: str) -> Part:
    values, there = rng.integers(-3, 4, shape).astype(dtype), rng.random(shape) < 0.5
    return np.where(there, values, 0), there


def _duplicated(rng, index, values, layout: str):
    """Entries in the caller's order; `layout` "duplicates": every value in two halves."""
    if layout == "duplicates":
        first = rng.integers(-3, 4, values.shape).astype(values.dtype)
        index = [np.concatenate([i, i]) for i in index]
        values = np.concatenate([first, values - first])
    if layout in ("unsorted", "duplicates"):
        order = rng.permutation(values.size)
        index, values = [i[order] for i in index], values[order]
    return index, values


def _vector(rng, part: Part, layout: str) -> Any:
    (index,), values = _duplicated(rng, [np.flatnonzero(part[1])], part[0][part[1]], layout)
    extra = 3 if layout != "sorted" else 0
    n, count = part[0].size, values.size
    garbage = np.full(extra, 99, values.dtype)
    return jsp.SparseVector(
        jnp.asarray(np.concatenate([values, garbage])),
        jnp.asarray(np.concatenate([index, np.full(extra, n)]).astype(np.int32)),
        jnp.int32(count),
        jnp.asarray(False),
        (n,),
        layout in ("sorted", "padded"),
        layout != "duplicates",
    )


def _matrix(rng, part: Part, layout: str, format: str) -> Any:
    (row, col), values = _duplicated(rng, list(np.nonzero(part[1])), part[0][part[1]], layout)
    (m, n), extra = part[0].shape, 3 if layout != "sorted" else 0
    coo = jsp.COO(
        jnp.asarray(np.concatenate([values, np.full(extra, 99, values.dtype)])),
        jnp.asarray(np.concatenate([row, np.full(extra, m)]).astype(np.int32)),
        jnp.asarray(np.concatenate([col, np.full(extra, n)]).astype(np.int32)),
        jnp.asarray(False),
        (m, n),
        layout in ("sorted", "padded"),
        layout != "duplicates",
    ).check_invariants()
    if format == "tiled" and layout == "duplicates":
        format = "coo"  # tiles hold a place once
    return coo.asformat(format)


def _product(a: Part, b: Part, semiring: str) -> Part:
    (x, p), (y, q) = a, b
    both = p[:, :, None] & q[None, :, :]
    terms = MUL[semiring](x[:, :, None], y[None, :, :])
    zero = {"plus_times": 0, "min_plus": 127, "max_times": -127}[semiring]
    z = ADD[semiring].reduce(np.where(both, terms, zero), axis=1, initial=zero)
    there = both.any(axis=1)
    return np.where(there, z, 0).astype(x.dtype), there


def _union(a: Part, b: Part) -> Part:
    return a[0] + b[0], a[1] | b[1]  # what is not stored is 0


def _expected(case: Case, a: Part, b: Part, x: Part) -> Part:
    op = case["op"]
    if op in ("mxv", "vxm"):
        row = (x[0][None], x[1][None])
        left, right = ((a[0].T, a[1].T) if op == "mxv" else a), row
        z, there = _product(right, left, case["semiring"])
        return z[0], there[0]
    if op == "mxm":
        return _product(a, (b[0].T, b[1].T), case["semiring"])
    if op == "ewise_add":
        return _union(a, b)
    if op == "ewise_mult":
        return a[0] * b[0], a[1] & b[1]
    if op == "apply":
        return -a[0], a[1]
    if op == "reduce":
        return a[0].sum(1).astype(a[0].dtype), a[1].any(1)
    if op == "transpose":
        return a[0].T, a[1].T
    return a[0][::-1], a[1][::-1]


def _call(op: str, semiring: str, A, B, x, options: dict[str, Any]) -> Any:
    ring = getattr(jsp.semirings, semiring)
    if op == "extract":
        return jsp.extract(A, np.arange(A.shape[0])[::-1].copy(), None, **options)
    return {
        "mxv": lambda: jsp.mxv(A, x, ring, **options),
        "vxm": lambda: jsp.vxm(x, A, ring, **options),
        "mxm": lambda: jsp.mxm(A, B.T, ring, **options),
        "ewise_add": lambda: jsp.ewise_add(A, B, jsp.operators.plus, **options),
        "ewise_mult": lambda: jsp.ewise_mult(A, B, jsp.operators.times, **options),
        "apply": lambda: jsp.apply(A, jsp.operators.ainv, **options),
        "reduce": lambda: jsp.reduce(A, axis=1, **options),
        "transpose": lambda: jsp.transpose(A, **options),
    }[op]()


def run(case: Case) -> None:
    """Raises where the operation of the case gives another result than NumPy."""
    with jax.enable_x64(case["x64"]):
        _run(case)


def _run(case: Case) -> None:
    rng = np.random.default_rng(case["seed"])
    dtype = WIDE[case["dtype"]] if case["x64"] else case["dtype"]
    m, n = case["shape"]
    a, b = _part(rng, (m, n), dtype), _part(rng, (m, n), dtype)
    x = _part(rng, (n if case["op"] == "mxv" else m,), dtype)
    A = _matrix(rng, a, case["layout"], case["format"])
    B = _matrix(rng, b, case["layout"], case["format"])
    v = _vector(rng, x, case["layout"])
    z, there = _expected(case, a, b, x)
    options: dict[str, Any] = {}
    allowed = np.ones(z.shape, bool)
    if case["mask"] != "none":
        mask = rng.random(z.shape) < 0.5
        allowed = mask if case["mask"] == "array" else ~mask
        options["mask"] = jnp.asarray(mask) if case["mask"] == "array" else ~jsp.masks.Mask(mask)
    if case["out"]:
        c = _part(rng, z.shape, dtype)
        make = _vector if z.ndim == 1 else lambda *args: _matrix(*args, case["format"])
        options |= {"out": make(rng, c, case["layout"]), "replace": case["replace"]}
        if case["accum"]:
            options["accum"] = jsp.operators.plus
            z, there = _union((np.where(there, z, 0), there), c)
        kept = np.zeros_like(there) if case["replace"] else c[1]
        z, there = np.where(allowed, z, c[0]), np.where(allowed, there, kept)
    else:
        there = there & allowed
    op, semiring = case["op"], case["semiring"]
    call = lambda A, B, v, o: _call(op, semiring, A, B, v, options | o)  # noqa: E731
    arrays = {k: options.pop(k) for k in ("out", "mask") if k in options}
    run_it = jax.jit(call) if case["wrapper"] == "jit" else call
    y = run_it(A, B, v, arrays)
    jsp.check(y)
    got = y.with_data(jnp.ones_like(y.data, bool)).todense(False), y.todense()
    np.testing.assert_array_equal(np.asarray(got[0]), there, "which entries are stored")
    np.testing.assert_array_equal(np.asarray(got[1]), np.where(there, z, 0))


FUZZER = Fuzzer(
    {
        "op": OPS,
        "semiring": tuple(ADD),
        "format": ("coo", "csr", "csc", "tiled"),
        "layout": ("sorted", "padded", "unsorted", "duplicates"),
        "shape": ((2, 3), (5, 4), (1, 1), (0, 3), (3, 0), (33, 20)),
        "mask": ("none", "array", "complement"),
        "out": (False, True),
        "accum": (False, True),
        "replace": (False, True),
        "dtype": tuple(WIDE),
        "wrapper": ("eager", "jit"),
        "x64": (False, True),
    },
    run,
)
