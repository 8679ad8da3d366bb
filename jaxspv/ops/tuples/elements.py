"""Tuples element by element: the write rule, element-wise operations, selection, reduction; and
moved by their places alone: transposes, extraction, assignment."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.derivatives import first_valid
from ..._core.tuples import choose, is_tuple, joined, ones_unless, take
from ...algebra.monoids import Monoid, as_monoid
from ...algebra.operators import IndexUnaryOp, UnaryOp, as_binary, first, second
from ...formats.stored import Stored
from ...formats.tuples import Tuples
from .. import apply as _apply
from .. import assign as _assign
from .. import ewise as _ewise
from .. import extract as _extract
from .. import structure as _structure
from ..products.common.product import entry_rows
from ..reduce import checked_axis
from ..write_rule.call import Options, call, format_of
from ..write_rule.entries import entries_of
from ..write_rule.write import as_accum
from .operations import as_tuples, is_sparse, on_tuples, present_elements, reduction


def write(T: Any, options: Options) -> Any:
    """The write rule `C<M, replace> = C accum T` of sparse tuples, or of what became numbers."""
    if not options.writes and options.nse is None:
        return T
    if not isinstance(T, Tuples):
        return call(entries_of, (T,), options, format=format_of(T))
    values, places, rest = T.values, T.places, dataclasses.replace(options, accum=None)
    if options.out is not None:
        C = as_tuples("out", options.out)
        if options.accum is not None:
            T = ewise_add(C, T, as_accum(options.accum))
        values, places = behind(C, T, "out")
        rest = dataclasses.replace(rest, out=C.places)
    return Tuples(call(entries_of, (places,), rest, format=format_of(places)), values)


def behind(C: Tuples, T: Tuples, name: str) -> tuple[Any, Any]:
    """The values of both, and the places of T with numbers behind those of C."""
    before = jax.tree.leaves(C.values)[0].shape[0]
    shapes = [jax.tree.map(lambda v: v.shape[1:], values) for values in (C.values, T.values)]
    if shapes[0] != shapes[1]:
        raise TypeError(f"values must be like those of `{name}`, {shapes[0]}; got {shapes[1]}.")
    both = jax.tree.map(lambda c, t: jnp.concatenate([c, t.astype(c.dtype)]), C.values, T.values)
    return both, dataclasses.replace(T.places, data=T.places.data + before)


def _numbers(A: Any, name: str) -> tuple[Any, Any]:
    """Places with numbers, and values: of a dense vector all of them."""
    if is_sparse(A) or hasattr(A, "unshard"):
        A = as_tuples(name, A)
        return A.places, A.values
    A = jax.tree.map(jnp.asarray, A)
    return jnp.arange(jax.tree.leaves(A)[0].shape[0], dtype=jnp.int32), A


def _joined(function, A, B, op, options: Options, default: Any = None, *defaults) -> Any:
    """What a function of places finds, and the op where both have an entry, or with defaults."""
    op = op.op if isinstance(op, Monoid) else as_binary(op)
    op = functools.partial(joined, f"`{op.name}`", op)
    (a, x), (b, y) = _numbers(A, "A"), _numbers(B, "B")
    left, right = (function(a, b, pick, *defaults) for pick in (first, second))
    sparse = isinstance(left, Stored)
    p, q = (v.data if sparse else v for v in (left, right))
    one, other = take(x, p), take(y, q)
    if default is not None:
        one, other = choose(p >= 0, one, default[0]), choose(q >= 0, other, default[1])
        z = op(one, other)
    else:
        both = (p >= 0) & (q >= 0)
        z = op(ones_unless(both, one), ones_unless(both, other))
        z = choose(both, z, choose(p >= 0, one, other)) if defaults else z
    if not sparse:
        return z
    deep = is_tuple(z) or jax.tree.leaves(z)[0].ndim > 1
    return write(Tuples.of(left, z) if deep else left.with_data(z), options)


@on_tuples
def ewise_add(A, B, op, **options):
    """`ewise_add` of tuples: `op` of two values, which gives one of the same kind."""
    return _joined(_ewise.ewise_union, A, B, op, Options(**options), None, -1, -1)


@on_tuples
def ewise_union(A, B, op, left_default, right_default, **options):
    """`ewise_union` of tuples; the defaults are values."""
    defaults = left_default, right_default
    return _joined(_ewise.ewise_union, A, B, op, Options(**options), defaults, -1, -1)


@on_tuples
def ewise_mult(A, B, op, **options):
    """`ewise_mult` of tuples: `op` of two values of any kinds."""
    return _joined(_ewise.ewise_mult, A, B, op, Options(**options))


@on_tuples
def kron(A, B, op, **options):
    """`kron` of tuples: `op` of two values of any kinds."""
    return _joined(_structure.kron, A, B, op, Options(**options))


def _keys(A: Tuples) -> tuple[Array, Array]:
    if A.places.ndim == 2:
        return A.places.rowcol()
    return A.places.indices, jnp.zeros_like(A.places.indices)


@on_tuples
def apply(A, op, *, left=None, right=None, thunk=0, **options):
    """`apply` to tuples: `op` of one value, of `left` and it, or of it, row, column and thunk.

    Where it gives numbers the result is a matrix of numbers.
    """
    A = as_tuples("A", A)
    full = ones_unless(A.valid(), A.data), _keys(A)
    values, keys = take(full, first_valid(A.valid()))
    if left is not None or right is not None:
        pair = as_binary(op)
        z = jax.vmap(lambda v: pair(left, v) if right is None else pair(v, right))(values)
    elif isinstance(op, IndexUnaryOp):
        z = jax.vmap(lambda v, i, j: op(v, i, j, thunk))(values, *keys)
    else:
        z = jax.vmap(op)(values)
    return write(A.with_data(z), Options(**options))


@on_tuples
def select(A, op, thunk=0, **options):
    """`select` of tuples: by a predicate of (value, row, column, thunk), or of the value alone."""
    A = as_tuples("A", A)
    values, (rows, cols) = ones_unless(A.valid(), A.data), _keys(A)
    asked = _apply._predicate(op)
    if isinstance(asked, UnaryOp):
        flags = jax.vmap(asked)(values)
    else:
        flags = jax.vmap(lambda v, i, j: asked(v, i, j, thunk))(values, rows, cols)
    numbered = A.with_data(jnp.arange(A.nse, dtype=jnp.int32))
    chosen = IndexUnaryOp(
        lambda number, i, j, thunk, flags: take(flags, number), "chosen", (flags,)
    )
    return write(Tuples(_apply.select(numbered, chosen, 0), A.data), Options(**options))


@on_tuples
def reduce(A, add, *, axis=None, **options):
    """`reduce` by a monoid of tuples, in the order of rows and columns; axis=None gives a value."""
    A, add = as_tuples("A", A), as_monoid(add)
    add.like(A.data)
    axis = checked_axis(axis, A.places.ndim)
    if axis is None and Options(**options).writes:
        raise TypeError("`reduce` of tuples to one takes no `mask`, `accum`, `out` or `replace`.")
    y = reduction(add, A, axis=axis)
    if axis is None:
        return y
    present = entry_rows(A.places if axis else A.places.T)
    return write(present_elements(y, present, A), Options(**options))


# ---- Places alone ----


@on_tuples
def transpose(A, **options):
    """`transpose` of tuples."""
    A = as_tuples("A", A)
    return write(A.T.asformat(A.format), Options(**options))


@on_tuples
def diag(A, k=0, *, format="csr", **options):
    """`diag` of tuples: of a vector the matrix, of a matrix the vector."""
    A = as_tuples("A", A)
    return write(Tuples(_structure.diag(A.places, k, format=format), A.values), Options(**options))


@on_tuples
def resize(A, *shape):
    """`resize` of tuples."""
    A = as_tuples("A", A)
    return Tuples(_structure.resize(A.places, *shape), A.values)


@on_tuples
def extract(A, i=None, j=None, **options):
    """`extract` from tuples: a submatrix or subvector."""
    A = as_tuples("A", A)
    found = _extract.extract(A.places, i, j)
    if not isinstance(found, Stored):
        raise ValueError("of tuples `extract` gives matrices and vectors: give a list of places.")
    return write(Tuples(found, A.values), Options(**options))


@on_tuples
def assign(C, value, i=None, j=None, *, accum=None, **options):
    """`assign` of tuples, without `accum`."""
    if accum is not None:
        raise ValueError("`assign` of tuples takes no `accum`.")
    C = as_tuples("C", C)
    both, places = behind(C, as_tuples("value", value), "C")
    return Tuples(_assign.assign(C.places, places, i, j, **options), both)
