"""The write rule of the GraphBLAS C API 2.1, C<M, replace> = C accum T, in one place.

Z = T where there is no `accum`; else Z has the entries of C and of T, `accum(c, t)` where both have
one. Where the mask allows, the result is Z; elsewhere it is C, or nothing with `replace`.
Without `out`, C has no entries.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.indices import checked_count
from ...algebra.masks import Mask, check_mask
from ...algebra.monoids import Monoid
from ...algebra.operators import BinaryOp, as_binary
from ...formats import SparseMatrix
from ...formats.stored import Stored
from .entries import (
    PLAIN,
    Entries,
    Keys,
    Union,
    both,
    entries_of,
    find,
    fitted,
    is_plain,
    keep,
    spread,
    stored,
    take,
    union,
)


def as_accum(accum: Any) -> BinaryOp | None:
    """`accum=` as a `BinaryOp`: an operator, a monoid, or a function of two arrays. Raises
    TypeError: it is none of these, or positional."""
    if accum is None:
        return None
    op = accum.op if isinstance(accum, Monoid) else as_binary(accum, "accum")
    if op.position is not None:
        raise TypeError(f"`accum` must not be positional; got {op!r}.")
    return op


@dataclasses.dataclass(frozen=True)
class Options:
    """The options of every operation; see docs/graphblas.md.

    Attributes:
        mask: boolean array or sparse object (by value), `structure(m)`, `~` of these.
        accum: BinaryOp, monoid or function.
        out: C, which gives the result its dtype and format. None: nothing is stored in C.
        replace: delete the entries of C that the mask does not allow.
        nse: capacity of a sparse result; a bound no result exceeds by default. Under jit more
            entries set `overflow`.
    """

    mask: Any = None
    accum: Any = None
    out: Any = None
    replace: bool = False
    nse: int | None = None

    def __post_init__(self):
        if not isinstance(self.replace, (bool, np.bool_)):
            raise TypeError(f"`replace` must be True or False; got {self.replace!r}.")
        checked_count("nse", self.nse, 0)

    @property
    def writes(self) -> bool:
        """Whether the result is combined with a mask or with `out`."""
        given = (self.mask, self.accum, self.out)
        return bool(self.replace) or any(x is not None for x in given)


def write_matrix(T: Any, options: Options, format: str | None = None) -> SparseMatrix:
    """C<M, replace> = C accum T for matrices; traceable, differentiable in both modes.

    Args:
        T: the computed matrix, a sparse matrix or `Entries`.
        format: of the result where `out` is None; that of T by default.
    """
    out = options.out
    format = format or getattr(T if out is None else out, "format", "csr")
    if out is options.mask is options.nse is None and is_plain(T) and T.format == format:
        return T  # there is nothing to join, and its places are known
    return stored(_written(T, options), format if format in PLAIN else "csr")


def write_vector(T: Any, options: Options, fill: Any = 0, present: Array | None = None) -> Any:
    """w<m, replace> = w accum t for vectors, sparse and dense; as `write_matrix`.

    Args:
        T: SparseVector or `Entries`; or a dense (n,) array whose entries are where `present`, (n,)
            bool, is True (everywhere by default).
        options: a dense `out` has all entries, and gives a dense result in which `fill` stands
            where GraphBLAS would have none. None: a result of the kind of T.
        fill: the identity of the monoid for products, 0 by default.
    """
    dense = not isinstance(T, (Stored, Entries))
    T = jnp.asarray(T) if dense else T
    if not (dense if options.out is None else not isinstance(options.out, Stored)):
        e = entries_of(T)
        return stored(_written(e if present is None else keep(e, present), options), "")
    values, is_valid = spread(T)
    return _write_dense(values, is_valid if present is None else present, options, fill)


def _write_dense(values: Array, is_valid: Array, options: Options, fill: Any) -> Array:
    out = None if options.out is None else jnp.asarray(options.out)
    dtype = values.dtype if out is None else out.dtype
    nothing = jnp.asarray(fill, dtype)
    checked, accum = check_mask(options.mask, values.shape), as_accum(options.accum)
    _check_out(out, values.shape)
    Z = jnp.where(is_valid, values.astype(dtype), nothing)
    if accum is not None and out is not None:
        Z = jnp.where(is_valid, accumulated(accum, out, values, is_valid), out)
    if checked is None:
        return Z
    return jnp.where(checked.allowed(), Z, nothing if out is None or options.replace else out)


def _check_out(out: Any, shape: tuple[int, ...]) -> None:
    if out is not None and tuple(out.shape) != tuple(shape):
        raise ValueError(
            f"`out` must have the shape {tuple(shape)} of the result; got {tuple(out.shape)}."
        )


def _written(T: Any, options: Options) -> Entries:
    """The entries of the result, in its dtype."""
    checked, accum, out = check_mask(options.mask, T.shape), as_accum(options.accum), options.out
    _check_out(out, T.shape)
    C, T, allowed = None if out is None else entries_of(out), entries_of(T), None
    dtype = T.data.dtype if out is None else out.dtype
    if checked is not None:
        overflow = T.overflow | getattr(checked.source, "overflow", False)
        T = dataclasses.replace(T, overflow=overflow)
        allowed = functools.partial(allowed_at, checked)
    return cast(merge(C, T, allowed, accum, options.replace, options.nse), dtype)


def merge(
    C: Entries | None,
    T: Entries,
    allowed: Callable[[Keys], Array] | None,
    accum: BinaryOp | None,
    replace: bool,
    nse: int | None,
    region: Callable[[Keys], Array] | None = None,
    scope: Callable[[Keys], Array] | None = None,
) -> Entries:
    """The write rule on entries.

    Args:
        C, T: what was there (None: nothing), what was computed.
        allowed: keys -> bool, what the mask allows; None: everything.
        accum, replace, nse: as in `Options`.
        region: keys -> bool, the places that an assignment is about: elsewhere Z is C. T has
            entries there alone. None: everywhere.
        scope: keys -> bool, the places that mask and `replace` are about: the region for
            GxB_subassign, a row or column for GrB_Row_assign. Elsewhere Z is C. None: everywhere.
    """
    alone = allowed is None or (replace and scope is None)  # nothing of C stays
    if C is None or (accum is None and region is None and alone):
        if allowed is None:
            return fitted(T, nse)
        if C is not None and nse is None:
            nse = min(C.nse + T.nse, math.prod(T.shape))  # as of a union: the bound under jit
        return keep(T, T.valid() & allowed(T.keys), nse)
    U = union(C, T)
    places, valid = U.places, U.places.valid()
    inside = valid if region is None else valid & region(places.keys)
    of_z = U.in_right | (U.in_left & (~inside if accum is None else True))
    stays, from_t, present = U.in_left & (not replace), U.in_right, of_z
    if allowed is not None:
        open_ = allowed(places.keys)
        if scope is not None:
            beyond = ~scope(places.keys)
            open_, stays = open_ | beyond, stays | (U.in_left & beyond)
        present, from_t = jnp.where(open_, of_z, stays), from_t & open_
    return keep(places.with_data(_values(U, C, T, accum, from_t)), present, nse)


def _values(U: Union, C: Entries, T: Entries, accum: BinaryOp | None, from_t: Array) -> Array:
    c, t = take(C.data, U.left), take(T.data, U.right)
    c = jnp.where(U.in_left, c, jnp.zeros((), c.dtype))
    t = jnp.where(U.in_right, t, jnp.zeros((), t.dtype))
    z = _as(t, c.dtype)
    if accum is not None:
        z = jnp.where(U.in_left, accumulated(accum, c, t, U.in_left & U.in_right), z)
    return jnp.where(from_t, z, c)


def accumulated(accum: BinaryOp, c: Array, t: Array, where: Array) -> Array:
    """`accum(c, t)` in the dtype of c, where both are there.

    Where c is an integer and t a float, both are taken in float64: float32 rounds from 2^24 on.
    """
    common = common_dtype(c, t)
    if jnp.issubdtype(c.dtype, jnp.integer) and jnp.issubdtype(common, jnp.floating):
        with jax.enable_x64(True):
            x, y = (lax.convert_element_type(v, np.float64) for v in (c, t))
            return lax.convert_element_type(both(accum, x, y, where), c.dtype)
    return _as(both(accum, c.astype(common), t.astype(common), where), c.dtype)


def common_dtype(c: Array, t: Array) -> Any:
    """The dtype that `accum` takes c and t in: JAX's, but integers never become floats.

    JAX makes a float of uint64 and a signed integer, which would round beyond 2^53: of two integers
    that it does so with, t is taken in the dtype of c.
    """
    common = jnp.result_type(c, t)
    whole = all(jnp.issubdtype(v.dtype, jnp.integer) for v in (c, t))
    return c.dtype if whole and not jnp.issubdtype(common, jnp.integer) else common


def _as(values: Array, dtype: Any) -> Array:
    return values if values.dtype == dtype else values.astype(dtype)


def cast(e: Entries, dtype: Any) -> Entries:
    """The entries with values of `dtype`."""
    return e.with_data(_as(e.data, dtype))


def allowed_at(mask: Mask, keys: Keys) -> Array:
    """Whether the mask allows each key; any answer in padding."""
    source = mask.source
    if isinstance(source, SparseMatrix) or hasattr(source, "indices"):
        e = entries_of(source)
        slot, inside = find(e, keys)
        if not mask.structural:
            inside &= take(e.data, slot).astype(bool)
    else:
        known = isinstance(source, Array)
        dense = source.astype(bool) if known else Mask(source, mask.structural).allowed()
        if dense.size == 0:
            return jnp.zeros(keys[0].shape, bool)
        index = tuple(jnp.minimum(k, n - 1) for k, n in zip(keys, dense.shape, strict=True))
        inside = dense[index]
    return ~inside if mask.complement else inside
