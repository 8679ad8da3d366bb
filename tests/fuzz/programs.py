"""Operations on matrices and vectors of any layout, against values and presence in NumPy."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from .cases import Case, Fuzzer
from .operands import LAYOUTS, Part, compressed, part_of, triplets, vector
from .wrappers import NAMES, wrapped

OPS = (
    "mxv", "vxm", "mxm", "ewise_add", "ewise_mult", "apply", "select", "reduce", "transpose",
    "extract", "mxv dense", "vxm dense", "kron", "arithmetic",
)  # fmt: skip
ADD = {
    "plus_times": np.add,
    "min_plus": np.minimum,
    "max_times": np.maximum,
    "max_plus": np.maximum,
}
MUL = {"plus_times": np.multiply, "min_plus": np.add, "max_times": np.multiply, "max_plus": np.add}
DTYPES = ("float32", "int32", "int8", "float64", "int64", "float16")
MADE = {"csr by hand": jsp.CSR, "csc by hand": jsp.CSC}
VECTORS = ("mxv", "vxm", "reduce", "mxv dense", "vxm dense")
CHOOSING = ("mxv", "vxm", "mxm", "mxv dense", "vxm dense")  # take a backend


def _product(a: Part, b: Part, semiring: str) -> Part:
    (x, p), (y, q) = a, b
    both = p[:, :, None] & q[None, :, :]
    terms = MUL[semiring](x[:, :, None], y[None, :, :])
    zero = {np.add: 0, np.minimum: 127, np.maximum: -127}[ADD[semiring]]
    z = ADD[semiring].reduce(np.where(both, terms, zero), axis=1, initial=zero)
    valid = both.any(axis=1)
    return np.where(valid, z, 0).astype(x.dtype), valid


def _union(a: Part, b: Part) -> Part:
    total = np.where(a[1], a[0], 0) + np.where(b[1], b[0], 0)
    return total.astype(a[0].dtype), a[1] | b[1]


def _expected(op: str, semiring: str, a: Part, b: Part, x: Part) -> Part:
    if op.startswith("mxv"):
        z, valid = _product(a, (x[0][:, None], x[1][:, None]), semiring)
        return z[:, 0], valid[:, 0]
    if op.startswith("vxm"):
        z, valid = _product((x[0][None], x[1][None]), a, semiring)
        return z[0], valid[0]
    both = a[1] & b[1]
    return {
        "mxm": lambda: _product(a, (b[0].T, b[1].T), semiring),
        "ewise_add": lambda: _union(a, b),
        "ewise_mult": lambda: (np.where(both, a[0] * b[0], 0), both),
        "apply": lambda: (-a[0], a[1]),
        "select": lambda: (np.where(a[0] > 0, a[0], 0), a[1] & (a[0] > 0)),
        "reduce": lambda: (a[0].sum(1).astype(a[0].dtype), a[1].any(1)),
        "transpose": lambda: (a[0].T, a[1].T),
        "extract": lambda: (a[0][::-1], a[1][::-1]),
        "kron": lambda: (np.kron(a[0], b[0]).astype(a[0].dtype), np.kron(a[1], b[1])),
        "arithmetic": lambda: _union((a[0] * 2, a[1]), (-b[0], b[1])),
    }[op]()


def _result(op: str, semiring: str, A: Any, B: Any, x: Any, options: dict[str, Any]) -> Any:
    ring = getattr(jsp.semirings, semiring)
    rows = np.arange(A.shape[0])[::-1].copy()
    return {
        "mxv": lambda: jsp.mxv(A, x, ring, **options),
        "vxm": lambda: jsp.vxm(x, A, ring, **options),
        "mxm": lambda: jsp.mxm(A, B.T, ring, **options),
        "ewise_add": lambda: jsp.ewise_add(A, B, jsp.operators.plus, **options),
        "ewise_mult": lambda: jsp.ewise_mult(A, B, jsp.operators.times, **options),
        "apply": lambda: jsp.apply(A, jsp.operators.ainv, **options),
        "select": lambda: jsp.select(A, jsp.operators.valuegt, 0, **options),
        "reduce": lambda: jsp.reduce(A, axis=1, **options),
        "transpose": lambda: jsp.transpose(A, **options),
        "extract": lambda: jsp.extract(A, rows, None, **options),
        "kron": lambda: jsp.kron(A, B, **options),
        "arithmetic": lambda: A * 2 + (-B),
    }[op.removesuffix(" dense")]()


@jax.jit
def _looked_at(y: Any) -> Any:
    valid = dataclasses.replace(y, data=jnp.ones(y.data.shape, bool)).todense(False)
    return y.todense(), valid, y.overflow


@functools.lru_cache(maxsize=32)
def _program(structure: tuple[tuple[str, Any], ...]) -> Any:
    """The compiled program of a structure: takes the arrays of a draw."""
    case = dict(structure)
    op, semiring, format = case["op"], case["semiring"], case["format"]
    format = "csr" if format in MADE else format
    if format == "tiled" and case["layout"] == "duplicates":
        format = "coo"  # tiles hold a place once

    def converted(M):
        return jax.jit(lambda M: M.asformat(format))(M) if isinstance(M, jsp.COO) else M

    def f(A, B, x, out, mask):
        options: dict[str, Any] = {"backend": case["backend"]} if op in CHOOSING else {}
        if out is not None:
            options |= {"out": converted(out), "replace": case["replace"]}
            options |= {"accum": jsp.operators.plus} if case["accum"] else {}
        if mask is not None:
            options["mask"] = mask if case["mask"] == "array" else ~jsp.Mask(mask)
        if op.endswith("dense"):
            x = x.todense()
        y = _result(op, semiring, converted(A), converted(B), x, options)
        return (y,) if isinstance(y, jax.Array) else _looked_at(y)

    return wrapped(f, case["wrapper"])


def _possible(case: Case) -> bool:
    wide = case["dtype"] in ("float64", "int64")
    if wide and not case["x64"]:
        return False
    if case["backend"] and case["op"] not in CHOOSING:
        return False
    if case["op"] in ("arithmetic", "mxv dense", "vxm dense"):
        return not case["out"] and case["mask"] == "none"
    if case["op"] == "kron":
        return max(case["shape"]) <= 5
    return case["out"] or not (case["accum"] or case["replace"])


def run(case: Case) -> tuple[str, ...]:
    """Raises where the operation of the case gives another result than NumPy."""
    with jax.enable_x64(case["x64"]):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    rng = np.random.default_rng(case["seed"])
    (m, n), dtype, layout, op = case["shape"], case["dtype"], case["layout"], case["op"]
    a, b = part_of(rng, (m, n), dtype, layout), part_of(rng, (m, n), dtype, layout)
    x = part_of(rng, (n if op.startswith("mxv") else m,), dtype, layout)
    if op.endswith("dense"):
        x = x[0], np.ones_like(x[1])
    with np.errstate(over="ignore"):
        z, valid = _expected(op, case["semiring"], a, b, x)
    allowed, mask, out = np.ones(z.shape, bool), None, None
    if case["mask"] != "none":
        mask = rng.random(z.shape) < 0.5
        allowed = mask if case["mask"] == "array" else ~mask
    if case["out"]:
        c = part_of(rng, z.shape, dtype, layout)
        out = (vector if z.ndim == 1 else triplets)(rng, c, layout)
        if case["accum"]:
            z, valid = _union((np.where(valid, z, 0), valid), c)
        kept = np.zeros_like(valid) if case["replace"] else c[1]
        z, valid = np.where(allowed, z, c[0]), np.where(allowed, valid, kept)
    else:
        valid = valid & allowed
    v = vector(rng, x, "padded" if op.endswith("dense") else layout)
    matrix = triplets
    if kind := MADE.get(case["format"]):
        matrix = functools.partial(compressed, kind=kind)
    operands = matrix(rng, a, layout), matrix(rng, b, layout), v
    if case["wrapper"] == "eager":
        operands, out, mask = jax.tree.map(jnp.asarray, (operands, out, mask))
    structure = tuple((k, v) for k, v in case.items() if k != "seed")
    got = jax.device_get(_program(structure)(*operands, out, mask))
    if len(got) == 1:  # dense: the identity where nothing is stored
        np.testing.assert_array_equal(got[0][valid], z[valid])
        return ("numpy",)
    assert not got[2], "overflow"
    np.testing.assert_array_equal(got[1], valid, "which entries are stored")
    np.testing.assert_array_equal(got[0], np.where(valid, z, 0))
    return ("numpy",)


FUZZER = Fuzzer(
    {
        "op": OPS,
        "semiring": tuple(ADD),
        "format": ("coo", "csr", "csc", "tiled", *MADE),
        "layout": LAYOUTS,
        "shape": ((2, 3), (5, 4), (1, 1), (0, 3), (3, 0), (7, 1), (20, 11), (3, 150)),
        "mask": ("none", "array", "complement"),
        "out": (False, True),
        "accum": (False, True),
        "replace": (False, True),
        "dtype": DTYPES,
        "wrapper": NAMES,
        "backend": (None, "xla"),
        "x64": (False, True),
    },
    run,
    draws=lambda case: {"captured": 2, "eager": 25}.get(case["wrapper"]),  # the slow ones
    possible=_possible,
)
