"""`mxv`, `vxm` and `mxm` over semirings of tuples."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ..._core.eager.arrays import is_eager
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete
from ..._core.tuples import Each, choose, multiplied, ones_unless, take
from ...algebra.masks import check_mask
from ...formats import COO
from ...formats.tuples import Tuples
from ..products.common.expand import edge_slots, select_runs
from ..products.common.product import entry_rows
from ..write_rule.call import Options
from ..write_rule.write import as_accum
from . import operations as _cpu  # noqa: F401  registers its form
from .elements import write
from .operations import as_tuples, is_sparse, on_tuples, present_elements, product

MOST_PRODUCTS = 1 << 26  # of a product of two traced matrices


def _dense(x: Any, n: int, name: str) -> Any:
    x = jax.tree.map(jnp.asarray, x)
    if wrong := [v.shape for v in jax.tree.leaves(x) if v.shape[:1] != (n,)]:
        raise ValueError(f"`{name}` must have leaves of shape ({n}, ...); got {wrong}.")
    return x


def _multiply(A, x, semiring, options: Options, *, flip: bool, backend: Backend | None) -> Any:
    A = as_tuples("A", A)
    A = A.T if flip else A
    m, n = A.shape
    how = {"flip": flip, "in_order": A.in_order, "backend": backend}
    if not is_sparse(x):
        y = product(semiring, A, _dense(x, n, "x"), None, **how)
        return _written_dense(y, A, semiring.add.like(y), options)
    x = as_tuples("x", x)
    if x.shape != (n,):
        raise ValueError(f"`x` must have shape ({n},); got {x.shape}.")
    hit = x.places.structure()
    y = product(semiring, A, take(x.values, x.places.todense(0)), hit, **how)
    rows, cols = A.places.rowcol()
    present = jnp.zeros(m, bool).at[jnp.where(take(hit, cols), rows, m)].set(True, mode="drop")
    return write(present_elements(y, present, x), options)


@on_tuples
def mxv(A, x, semiring, *, method="auto", backend=None, **options):
    """`mxv` over a semiring of tuples: x a pytree of arrays (n, ...), or a sparse vector."""
    return _multiply(A, x, semiring, Options(**options), flip=False, backend=backend)


@on_tuples
def vxm(x, A, semiring, *, method="auto", backend=None, **options):
    """`vxm` over a semiring of tuples."""
    return _multiply(A, x, semiring, Options(**options), flip=True, backend=backend)


@on_tuples
def mxm(A, B, semiring, *, method="auto", chunk=None, backend=None, nse=None, **options):
    """`mxm` over a semiring of tuples; `chunk` is the capacity for products of traced patterns."""
    if not (is_sparse(A) and is_sparse(B)):
        return _with_columns(A, B, semiring, Options(**options), backend)
    A, B = as_tuples("A", A), as_tuples("B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(f"shapes {A.shape} and {B.shape} do not match.")
    a, b = A.places.to_coo(), B.places.asformat("csr")
    if is_concrete(a, b):
        with jax.ensure_compile_time_eval():
            runs = select_runs(b.indptr, a.col, a.count)
            size = int(runs.total) if chunk is None else chunk
    else:
        size = min(a.nse * B.shape[1], a.nse * b.nse) if chunk is None else chunk
        if size > MOST_PRODUCTS:
            raise ValueError("patterns are traced: give `chunk`, a bound on the products.")
    A, B = Tuples(a, A.values), Tuples(b, B.values)
    C = _expanded(semiring, A, B, size=max(size, 1))
    C = C.trim() if is_eager(C) and nse is None else C
    return write(C.asformat("csr"), Options(nse=nse, **options))


@functools.partial(jax.jit, static_argnames="size")
def _expanded(semiring: Any, A: Tuples, B: Tuples, *, size: int) -> Tuples:
    """The product as a COO: all pairs, sorted by place, k ascending in each, and reduced."""
    a, b = A.places, B.places
    m, n = a.shape[0], b.shape[1]
    runs = select_runs(b.indptr, a.col, a.count)
    slot, entry, valid = edge_slots(runs, jnp.int32(0), size)
    row = jnp.where(valid, take(a.row, entry), m)
    col = jnp.where(valid, take(b.indices, slot), n)
    row, col, order = lax.sort((row, col, jnp.arange(size)), num_keys=2, is_stable=True)
    valid, entry, slot = valid[order], entry[order], slot[order]
    x = take(A.values, take(a.data, entry))
    y = take(B.values, take(b.data, slot))
    terms = multiplied(semiring, ones_unless(valid, x), ones_unless(valid, y))
    new = jnp.append(True, (row[1:] != row[:-1]) | (col[1:] != col[:-1])) & valid
    group = jnp.where(valid, jnp.cumsum(new, dtype=jnp.int32) - 1, size)
    values = semiring.add.segment_reduce(terms, group, size, sorted=True)
    at = jnp.where(new, group, size)
    rows = jnp.full(size, m, jnp.int32).at[at].set(row, mode="drop")
    cols = jnp.full(size, n, jnp.int32).at[at].set(col, mode="drop")
    numbers = jnp.arange(size, dtype=jnp.int32)
    overflow = jnp.asarray(a.overflow) | b.overflow | (runs.total > size)
    return Tuples(COO(numbers, rows, cols, overflow, (m, n)), values)


def _with_columns(A, B, semiring, options: Options, backend: Backend | None) -> Any:
    flip = not is_sparse(A)
    M = as_tuples("A", B if flip else A)
    M, X = (M.T, A) if flip else (M, B)
    axis = 0 if flip else 1
    X = jax.tree.map(lambda v: jnp.moveaxis(jnp.asarray(v), axis, 0), X)
    how = {"flip": flip, "in_order": M.in_order, "backend": backend}
    Y = jax.vmap(lambda x: product(semiring, M, _dense(x, M.shape[1], "B"), None, **how))(X)
    if options.mask is not None or options.out is not None:
        Y = jax.vmap(lambda y: _written_dense(y, M, semiring.add.like(y), options))(Y)
    return jax.tree.map(lambda v: jnp.moveaxis(v, 0, axis), Y)


def _written_dense(y: Any, A: Tuples, fill: Any, options: Options) -> Any:
    mask, accum, out = check_mask(options.mask, A.shape[:1]), options.accum, options.out
    if out is not None and accum is not None:
        y = choose(entry_rows(A.places), Each(as_accum(accum))(out, y), out)
    if mask is None:
        return y
    return choose(mask.allowed(), y, fill if out is None or options.replace else out)
