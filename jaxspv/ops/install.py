"""What operators and SciPy's methods do: `A + B`, `A.sum()`, `A > B`, ..., set on the classes here.

The classes declare them with signature and docstring; `jaxspv/__init__.py` calls `install` once.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import fitting, is_eager, on_accelerator, to_device
from .._core.eager.kept import kept
from .._core.pytree import is_concrete
from .._core.reductions import dtype_of_means
from ..algebra import operators
from ..algebra.monoids import max_, min_, plus
from ..algebra.operators import IndexUnaryOp
from ..algebra.semirings import plus_first, plus_second
from ..construct.from_arrays import from_bcoo, from_bcsr, from_edges, from_scipy
from ..formats import base
from ..formats.csr import joined as once
from ..formats.methods import COMPARED, Arithmetic, Products, SciPyMatrixMethods, SciPyMethods
from ..formats.stored import Stored, first_slots
from ..interop.graphs import from_igraph, from_networkx
from .apply import applied, apply, bound, select
from .ewise import ewise_add, ewise_union
from .products.mxv.api import mxv, vxm
from .reduce import reduce
from .structure import diag
from .sugar import added, item, matmul, rmatmul, scaled, subtracted
from .write_rule.call import Options, call, format_of, operand
from .write_rule.entries import Entries, entries_of, keep

EXTREMES = {"min": (min_, jnp.minimum), "max": (max_, jnp.maximum)}
NUMBERS = ("float32", "float64", "int32", "int64")  # of values in C++
NUMBER = (bool, int, float, complex, np.generic, np.ndarray, jax.Array)
COMPARABLE = (Arithmetic, *COMPARED)
nonzero = IndexUnaryOp(lambda x, i, j, s: x != 0, "nonzero")
elsewhere = IndexUnaryOp(lambda x, i, j, s: (j != i + s[0]) | (i >= s[1]), "elsewhere")


def _axis(A: Stored, axis: Any, out: None = None) -> int | None:
    """`axis` as `reduce` takes it: that of a vector is all there is. Raises ValueError: the object
    has no such axis, or `out` is given."""
    if out is not None:
        raise ValueError("`out` must be None: arrays of JAX never change.")
    if axis is None:
        return None
    whole = isinstance(axis, (int, np.integer)) and not isinstance(axis, bool)
    if not whole or not -A.ndim <= axis < A.ndim:
        raise ValueError(f"`axis` must be None or an axis of {A.ndim}; got {axis!r}.")
    return None if A.ndim == 1 else int(axis) % 2


def _joined(A: Any, add: Any, axis: int | None) -> Array:
    """The entries joined, a dense vector or a scalar; the identity where there are none."""
    if axis is None:
        if A.ndim == 2 and _has_kernels(A) and (values := _values_on_host(A)).size:
            return _joined_on_host(values, add, A.data)
        return reduce(A, add)
    if add is plus and _has_kernels(A):
        n, dtype = A.shape[axis], A.dtype
        ones = kept((A.indptr,), ("ones", n, dtype), lambda: to_device(np.ones(n, dtype), A.indptr))
        return mxv(A, ones, plus_first) if axis else vxm(ones, A, plus_second)
    start = jnp.full(A.shape[1 - axis], add.identity_of(A.dtype))
    return reduce(A, add, axis=axis, out=start)


def _has_kernels(A: Any) -> bool:
    """Whether an eager product of A runs in C++, and so compiles in milliseconds."""
    if A.format not in ("csr", "csc") or A.entry_shape or A.nse == 0 or not A.unique:
        return False
    known = A.dtype.name in NUMBERS and A.index_dtype == np.int32
    return known and is_eager(A) and not on_accelerator(A.data)


def _values_on_host(A: Any) -> np.ndarray:
    return np.asarray(A.data)[: int(np.asarray(A.indptr)[-1])]


def _joined_on_host(values: np.ndarray, add: Any, like: Any) -> Array:
    """The sum, the least or the greatest of one value or more, where `like` is; NaN spreads,
    integers wrap."""
    if add is plus:
        wide = np.float64 if values.dtype == np.float32 else values.dtype
        return to_device(np.sum(values, dtype=wide).astype(values.dtype), like)
    return to_device((np.min if add is min_ else np.max)(values), like)


def _sum(A: Stored, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    axis, A = _axis(A, axis, out), operand("A", A)
    if dtype is None:  # small integers would wrap around
        integers = A.dtype == bool or jnp.issubdtype(A.dtype, jnp.integer)
        small = jnp.uint32 if A.dtype.kind == "u" else jnp.int32
        dtype = small if integers and A.dtype.itemsize < 4 else A.dtype
    return _joined(A if dtype == A.dtype else A.astype(dtype), plus, axis)


def _mean(A: Stored, axis: Any = None, dtype: Any = None, out: None = None) -> Array:
    axis = _axis(A, axis, out)
    asked = A.dtype if dtype is None else dtype
    wide = jnp.promote_types(dtype_of_means(asked), jnp.float32)
    found = _sum(A, axis, wide) / float(math.prod(A.shape) if axis is None else A.shape[axis])
    return found if dtype is None else found.astype(dtype)


def _extreme(A: Any, which: str, axis: Any, out: None = None) -> Array:
    axis = _axis(A, axis, out)
    places = math.prod(A.shape) if axis is None else A.shape[axis]
    if places == 0:
        raise ValueError(f"the {which} of no places: the shape is {A.shape}.")
    if A.dtype == bool:
        return _extreme(A.astype(jnp.int8), which, axis).astype(bool)
    most = min(places, np.iinfo(np.int32).max)  # more places than entries can be counted
    if axis is None and A.ndim == 2 and _has_kernels(A):
        values = _values_on_host(A)
        values = np.append(values, values.dtype.type(0)) if values.size < most else values
        return _joined_on_host(values, EXTREMES[which][0], A.data)
    return _with_zeros(A, which, axis, most)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _with_zeros(A: Any, which: str, axis: int | None, most: int) -> Array:
    """The extreme of entries, and of 0 where there are fewer than `most`, by one program."""
    add, extreme = EXTREMES[which]
    A = A if axis is None or A.unique else once(A)  # a place listed twice is one entry
    joined = _joined(A, add, axis)
    if axis is None:
        count = entries_of(A).count
    else:
        ones = jnp.ones(A.data.shape, jnp.int32)
        count = _joined(dataclasses.replace(A, data=ones), plus, axis)
    return jnp.where(count < most, extreme(joined, jnp.zeros((), joined.dtype)), joined)


def _dot(A: Any, other: Any) -> Any:
    if not isinstance(other, Stored) and np.ndim(other) == 0:
        return A * other
    if A.ndim == 1 and getattr(other, "ndim", 1) == 1:
        return _sum(A * other)
    return A @ other


def _power(A: Stored, n: Any, dtype: Any = None) -> Any:
    if np.ndim(n):
        raise ValueError(f"`n` must be a scalar; got shape {np.shape(n)}.")
    if is_concrete(n) and n == 0:
        raise ValueError("`n` is 0, and the result would be dense: use `jnp.ones(A.shape)`.")
    A = A if dtype is None else A.astype(dtype)
    integers = not any(jnp.issubdtype(jnp.result_type(v), jnp.inexact) for v in (A.data, n))
    if integers and is_concrete(n) and n < 0:
        raise ValueError(f"integers have no powers of {n}: take `A.astype(float)`.")
    if isinstance(n, int):  # known to the program, it is a few products
        return apply(A, _to_the(n))
    return apply(A, operators.pow_, right=n)


@functools.lru_cache(maxsize=64)  # one function a power, one program a function
def _to_the(n: int) -> Callable[[Array], Array]:
    return lambda x: operators.pow_(x, n)


def _nonzero(A: Stored) -> tuple[Array, ...]:
    if not is_eager(A):
        raise ValueError("`nonzero` needs concrete values: under jit their number is unknown.")
    if A.ndim == 2 and _has_kernels(A) and A.sorted and A.format == "csr":  # pyright: ignore
        row, col, values = base.entries_on_host(A)
        return tuple(to_device([k[values != 0] for k in (row, col)], A.data))
    found = _nonzero_entries(A)
    return tuple(first_slots(found.keys, int(found.count)))


@jax.jit
def _nonzero_entries(A: Stored) -> Entries:
    e = entries_of(A)
    return keep(e, e.valid() & (e.data != 0))


def _compare(A: Any, other: Any, op: Any) -> Any:
    """`A < other` and its like: a boolean object of what is true; of an array, an array."""
    if not isinstance(other, (Stored, *NUMBER)):
        return NotImplemented
    if not isinstance(other, Stored) and np.ndim(other):
        return op(A.todense(), jnp.asarray(other))
    number: Any = 0 if isinstance(other, Stored) else other
    if not is_concrete(number):
        raise ValueError(
            "whether missing entries satisfy a comparison decides what its result is, so the "
            f"number must be concrete; got {number}. `jsp.apply` compares what is stored."
        )
    if bool(getattr(operator, op.name)(0, np.asarray(number))):
        raise TypeError(
            "missing entries satisfy this comparison and its result would be dense: compare "
            "`A.toarray()`, or use the complement of the opposite one as a mask, `~(A > B)`."
        )
    if not isinstance(other, Stored):
        op, scalar, static = bound(op, None, number, None, A)
        operands = operand("A", A), op, scalar
        return call(_true_entries, operands, Options(), static=static, format=format_of(A))
    return select(ewise_union(A, other, op), nonzero)


def _differs(A: Any, other: Any) -> Any:
    return _compare(A, other, operators.ne) if isinstance(other, COMPARABLE) else other is not A


def _true_entries(A, op, scalar, *, bind, weak) -> Any:
    e = entries_of(A)
    z = applied(op, scalar, e.values(1), e.keys, bind=bind, weak=weak)
    return keep(e.with_data(z), e.valid() & z)


def _diagonal(A: Any, k: int = 0) -> Array:
    k = _number_of_diagonal(k)
    length = min(A.shape[0] + min(k, 0), A.shape[1] - max(k, 0))
    if length > 0 and _has_kernels(A):
        row, col, values = base.entries_on_host(A)
        hit, found = np.flatnonzero(col - row == k), np.zeros(length, values.dtype)
        found[np.minimum(row, col)[hit]] = values[hit]
        return to_device(found, A.data)
    return _diagonal_program(A, k) if length > 0 else jnp.zeros(0, A.dtype)


_diagonal_program = jax.jit(lambda A, k: diag(A, k).todense(), static_argnums=1)


def _number_of_diagonal(k: Any) -> int:
    """`k` as Python's integer: one of NumPy wraps."""
    try:
        return operator.index(k)
    except TypeError:
        raise TypeError(f"`k` must be an integer; got {k!r}.") from None


def _setdiag(A: Any, values: Any, k: int = 0) -> Any:
    A, k = operand("A", A), _number_of_diagonal(k)
    (m, n), values = A.shape, jnp.asarray(fitting("values", values, A.dtype))
    length = min(m + min(k, 0), n - max(k, 0))
    if length <= 0:
        raise ValueError(f"`k` must be a diagonal of a matrix of shape {A.shape}; got {k}.")
    if values.ndim > 1:
        raise ValueError(f"`values` must be a scalar or a vector; got shape {values.shape}.")
    length = min(length, values.size) if values.ndim else length
    values = jnp.broadcast_to(values, length) if values.ndim == 0 else values[:length]
    row, col = (np.arange(length) + max(shift, 0) for shift in (-k, k))
    kept = select(A, elsewhere, np.array([k, length + max(-k, 0)], np.int32))
    new = from_edges(row, col, values, shape=A.shape)
    return ewise_add(kept, new).asformat(A.format)


def _fill(cls: type, **bodies: Callable[..., Any]) -> None:
    """Gives declared methods what they do; signature and docstring stay."""
    for name, body in bodies.items():
        setattr(cls, name, functools.wraps(getattr(cls, name))(body))


def install() -> None:
    """Sets on the classes what needs the operations above them."""
    _fill(Products, __matmul__=matmul, __rmatmul__=rmatmul)
    _fill(
        Arithmetic,
        __add__=added,
        __radd__=lambda A, B: added(B, A),
        __sub__=subtracted,
        __rsub__=lambda A, B: subtracted(B, A),
        __mul__=lambda A, B: scaled(A, B, operators.times),
        __rmul__=lambda A, B: scaled(B, A, operators.times),
        __truediv__=lambda A, B: scaled(A, B, operators.truediv),
        __neg__=lambda A: apply(A, operators.ainv),
        __getitem__=item,
    )
    _fill(
        SciPyMethods,
        sum=_sum,
        mean=_mean,
        min=lambda A, axis=None, out=None: _extreme(A, "min", axis, out),
        max=lambda A, axis=None, out=None: _extreme(A, "max", axis, out),
        dot=_dot,
        power=_power,
        __abs__=lambda A: apply(A, operators.absolute),
        nonzero=_nonzero,
        __lt__=lambda A, B: _compare(A, B, operators.lt),
        __le__=lambda A, B: _compare(A, B, operators.le),
        __gt__=lambda A, B: _compare(A, B, operators.gt),
        __ge__=lambda A, B: _compare(A, B, operators.ge),
        __ne__=_differs,
    )
    _fill(SciPyMatrixMethods, diagonal=_diagonal, setdiag=_setdiag)
    base.CONVERTERS = {
        "scipy.sparse": from_scipy,
        "jax.experimental.sparse.bcoo": from_bcoo,
        "jax.experimental.sparse.bcsr": from_bcsr,
        "igraph": from_igraph,
        "networkx": from_networkx,
    }
