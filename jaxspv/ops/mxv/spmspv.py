"""Sparse matrix times sparse vector: the methods of Yang 2015 and GraphBLAS-sharp, and the choice.

Every method gives the same `SparseVector`: the rows that hold at least one product, ascending.
`A` maps `inner` (its columns) to `out` (its rows); a CSC of A lists the entries of a column, which
is what the push methods need.
"""

from __future__ import annotations

import functools
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.batching import batch_any, batch_max
from ..._core.compilation import on_accelerator
from ..._core.dispatch import Op
from ..._core.indices import SMALL, eager_capacity
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete
from ...formats import SparseMatrix, Tiled
from ...formats.base import serves
from ...formats.tiles.vector import TiledVector
from ...formats.vector import SparseVector, from_present
from ...masks import Mask
from ...semirings import Semiring
from ..frame.entries import by_platform
from ..frame.expand import capacities, edge_slots, select_runs
from ..frame.product import Pairs, joined_tangent, product, safe, take
from .merge import merge_rows
from .spmspv_cpu import columns_in_turn, rows_in_turn

CHUNKS = (1 << 14, 1 << 19)  # edges a step of the scatter method, for small and large frontiers
METHODS = ("auto", "scatter", "sort", "merge", "row", "dense", "tile")


def multiply_sparse(
    A: SparseMatrix,
    x: SparseVector,
    semiring: Semiring,
    mask: Mask | None,
    *,
    nse: int | None,
    method: str,
    backend: Backend | None,
    flip: bool,
) -> SparseVector:
    """`y = A x` for checked operands; see `mxv`."""
    x = x.canonical()  # methods search in x, or let one entry stand for its place
    capacity = _capacity(A, x, nse)
    allowed = None if mask is None else mask.allowed()
    y = op(
        semiring, A, x, allowed, backend=backend, method=_method(method), flip=flip, nse=capacity
    )
    if nse is not None and is_concrete(y.overflow, x.overflow) and y.overflow and not x.overflow:
        needed = int(_whole(A, x, semiring, allowed, flip).count)
        raise ValueError(f"`nse` must be at least {needed} to hold the result; got {nse}.")
    return y


def _method(method: str) -> str | None:
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}; got {method!r}.")
    return None if method == "auto" else method


def _capacity(A: Any, x: SparseVector, nse: int | None) -> int:
    """`nse`, or a bound no result exceeds: rows of A, stored entries, edges of concrete columns."""
    if nse is not None:
        return nse
    if A.compressed == 1 and is_concrete(A.indptr, x.indices, x.count):
        return bound_of(A, x)
    return min(A.shape[0], A.nse)


def bound_of(A: Any, x: Any) -> int:
    """The bucket of a bound on the entries of an eager `y = A x`, without a wait for a device.

    On a host the edges that x selects bound it where fewer than the rows do.
    """
    (m, _), most = A.shape, min(A.shape[0], A.nse)
    if most > SMALL and A.compressed == 1 and not on_accelerator(A.indptr, x.indices):
        indptr = np.asarray(A.indptr)
        chosen = np.asarray(x.indices)[: int(x.count)]
        most = min(most, int((indptr[chosen + 1] - indptr[chosen]).sum(dtype=np.int64)))
    return eager_capacity(most, m)


def _whole(A, x, semiring, allowed, flip):
    return op(semiring, A, x, allowed, flip=flip, nse=min(A.shape[0], A.nse))


# ---- What every method shares ----


def needs_columns(semiring, A, x, allowed, **_) -> str | None:
    if A.compressed == 1:
        return None
    return f"it reads columns, and {type(A).__name__} lists rows (use a CSC, or vxm with a CSR)"


def _needs_sorted_columns(semiring, A: Any, x, allowed, **_) -> str | None:
    if A.compressed == 1 and not A.sorted:
        return "it merges columns in order, and those of A are not sorted"
    return needs_columns(semiring, A, x, allowed)


def _needs_scatter(semiring, A, x, allowed, **_) -> str | None:
    if not semiring.add.scatters:
        return f"the monoid `{semiring.add.name}` has no scatter"
    return needs_columns(semiring, A, x, allowed)


def _edge_terms(semiring, A, x, allowed, runs, first, size, flip):
    """(out, term, term overflow) of `size` edges from `first` on; `out` is m where none is."""
    slot, owner, valid = edge_slots(runs, first, size)
    out = jnp.where(valid, take(A.indices, slot), A.shape[0])
    if allowed is not None:
        out = jnp.where(allowed.at[out].get(mode="fill", fill_value=False), out, A.shape[0])
    valid = out < A.shape[0]
    data = safe(take(A.data, slot), valid)
    inner = take(x.indices, owner)
    values = safe(take(x.data, owner), valid)
    term = product(semiring, data, out, inner, values, flip=flip)
    return out, term, _overflow(semiring, data, values, valid, flip)


def _overflow(semiring, data, values, valid, flip) -> Array:
    overflow = semiring.mul.overflow
    if overflow is None:
        return jnp.asarray(False)
    return jnp.any(valid & (overflow(values, data) if flip else overflow(data, values)))


def _empty(semiring, A, x, nse, flip) -> SparseVector:
    zero = jnp.zeros(1, jnp.int32)
    one = product(semiring, jnp.zeros(1, A.dtype), zero, zero, jnp.zeros(1, x.dtype), flip=flip)
    data = jnp.zeros(nse, semiring.add.admit(one).dtype)
    m = A.shape[0]
    return SparseVector(
        data, jnp.full(nse, m, jnp.int32), jnp.int32(0), A.overflow | x.overflow, (m,)
    )


def _seal(y: SparseVector, *flags: Array) -> SparseVector:
    overflow = y.overflow
    for flag in flags:
        overflow = overflow | flag
    return SparseVector(y.data, y.indices, y.count, overflow, y.shape)


def _nothing(A, x) -> bool:
    return A.nse == 0 or x.nse == 0 or 0 in A.shape


def _join_sorted(semiring, A, out, terms, nse) -> SparseVector:
    """Products sorted by `out` (m in padding, at the end): flags, then segmented reduction."""
    m, edges = A.shape[0], out.shape[0]
    starts = jnp.append(True, out[1:] != out[:-1]) & (out < m)
    group = jnp.where(out < m, jnp.cumsum(starts, dtype=jnp.int32) - 1, edges)
    values = semiring.add.segment_reduce(terms, group, min(nse, edges), sorted=True)
    indices = (
        jnp.full(min(nse, edges), m, jnp.int32)
        .at[jnp.where(starts, group, edges)]
        .set(out, mode="drop")
    )
    count = jnp.sum(starts, dtype=jnp.int32)
    pad = nse - indices.shape[0]
    return SparseVector(
        jnp.pad(values, (0, pad)),
        jnp.pad(indices, (0, pad), constant_values=m),
        jnp.minimum(count, nse),
        count > nse,
        (m,),
    )


# ---- The methods ----


def _tangent(primals, tangents, y, *, flip, nse):
    """The tangent lives on the pattern of y: each product is led to its place there."""
    semiring, A, x, allowed = primals
    semiring_dot, A_dot, x_dot, _ = tangents
    out, inner = A.rowcol()
    place_of = jnp.full(A.shape[1] + 1, x.nse, jnp.int32)
    place_of = place_of.at[jnp.where(x.valid(), x.indices, A.shape[1])].set(
        jnp.arange(x.nse, dtype=jnp.int32)
    )
    place_of = place_of.at[A.shape[1]].set(x.nse)
    owner = place_of[inner]
    valid = (out < A.shape[0]) & (owner < x.nse)
    if allowed is not None:
        valid &= allowed.at[out].get(mode="fill", fill_value=False)
    target = jnp.searchsorted(y.indices, out).astype(jnp.int32)
    target = jnp.where(valid & (take(y.indices, target) == out), target, nse)

    pairs = Pairs(A.data, out, inner, x.data, owner, valid)
    data = joined_tangent(
        semiring, semiring_dot, pairs, A_dot.data, x_dot.data, target, y.data, flip=flip
    )
    return SparseVector(data, None, None, None, y.shape)  # pyright: ignore[reportArgumentType]


op = Op("spmspv", _tangent)


@op.register("auto", refuse=needs_columns)
def _auto(semiring, A, x, allowed, *, flip, nse):
    """Few edges: "sort" in a small buffer. Many: "scatter", or "sort" where there is no scatter.

    On a CPU a native loop over the edges.
    """
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    native = functools.partial(columns_in_turn, flip=flip, nse=nse)
    default = functools.partial(_few_or_many, flip=flip, nse=nse)
    return by_platform("products", native, default, semiring, A, x, allowed)


def _few_or_many(semiring, A, x, allowed, *, flip, nse):
    many = _sort if _needs_scatter(semiring, A, x, allowed) else _scatter
    small = 1024
    if A.nse <= small:
        return _sort(semiring, A, x, allowed, flip=flip, nse=nse)
    runs = select_runs(A.indptr, x.indices, x.count)

    def few(_):
        return _sort_buffer(semiring, A, x, allowed, runs, small, flip, nse)

    def rest(_):
        return many(semiring, A, x, allowed, flip=flip, nse=nse)

    return lax.cond(batch_max(runs.total) <= small, few, rest, None)


@op.register("scatter", refuse=_needs_scatter)
def _scatter(semiring, A, x, allowed, *, flip, nse):
    """No sort: products go to a dense accumulator as they come, chunk by chunk. O(edges + m)."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    runs = select_runs(A.indptr, x.indices, x.count)
    sizes = [min(c, A.nse) for c in CHUNKS]

    def run(size):
        return lambda _: _scatter_chunks(semiring, A, x, allowed, runs, size, flip)

    if sizes[0] == sizes[1]:
        total, present, flag = run(sizes[0])(None)
    else:
        small = batch_max(runs.total) <= sizes[0]
        total, present, flag = lax.cond(small, run(sizes[0]), run(sizes[1]), None)
    return _seal(from_present(total, present, nse), flag, A.overflow, x.overflow)


def _scatter_chunks(semiring, A, x, allowed, runs, size, flip):
    add, m = semiring.add, A.shape[0]
    dtype = _empty(semiring, A, x, 1, flip).dtype
    start = jnp.full(m, add.identity_of(dtype)[()], dtype)

    def step(state):
        first, total, present, flag = state
        out, terms, over = _edge_terms(semiring, A, x, allowed, runs, first, size, flip)
        return first + size, *add.accumulate(total, present, out, add.admit(terms)), flag | over

    state = (jnp.int32(0), start, jnp.zeros(m, bool), jnp.asarray(False))
    state = lax.while_loop(lambda s: batch_any(s[0] < runs.total), step, state)
    return state[1:]


@op.register("sort", refuse=needs_columns)
def _sort(semiring, A, x, allowed, *, flip, nse):
    """Radix sort of the products by row, then segmented reduction, in the smallest buffer."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    runs = select_runs(A.indptr, x.indices, x.count)
    sizes = capacities(A.nse)
    branch = jnp.searchsorted(jnp.asarray(sizes, jnp.int32), batch_max(runs.total))
    return lax.switch(
        branch,
        [
            lambda _, size=size: _sort_buffer(semiring, A, x, allowed, runs, size, flip, nse)
            for size in sizes
        ],
        None,
    )


def _sort_buffer(semiring, A, x, allowed, runs, size, flip, nse):
    edges = jnp.arange(size, dtype=jnp.int32)
    out, terms, over = _edge_terms(semiring, A, x, allowed, runs, jnp.int32(0), size, flip)
    out, order = lax.sort((out, edges), num_keys=1, is_stable=True)
    y = _join_sorted(semiring, A, out, terms[order], nse)
    return _seal(y, over, A.overflow, x.overflow)


@op.register("merge", refuse=_needs_sorted_columns)
def _merge(semiring, A, x, allowed, *, flip, nse):
    """k-way merge of the selected columns, each sorted already, then segmented reduction."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    runs = select_runs(A.indptr, x.indices, x.count)
    sizes = capacities(A.nse)

    def buffer(size):
        out, terms, over = _edge_terms(semiring, A, x, None, runs, jnp.int32(0), size, flip)
        out, order = merge_rows(out, runs)
        if allowed is not None:
            keep = allowed.at[out].get(mode="fill", fill_value=False)
            out, order = lax.sort((jnp.where(keep, out, A.shape[0]), order), num_keys=1)
        y = _join_sorted(semiring, A, out, terms[order], nse)
        return _seal(y, over, A.overflow, x.overflow)

    branch = jnp.searchsorted(jnp.asarray(sizes, jnp.int32), batch_max(runs.total))
    return lax.switch(branch, [lambda _, size=size: buffer(size) for size in sizes], None)


@op.register("tile", refuse=serves(Tiled, reads="tiles"))
def _tile(semiring, A, x, allowed, *, flip, nse):
    """Each entry looks into the tile of x that its own tile meets, empty ones skipped. O(nse)."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    out, inner = A.rowcol()
    values, found = TiledVector.from_sparse(x, A.nt).lookup(inner)
    found &= out < A.shape[0]
    return _join_rows(semiring, A, x, allowed, out, inner, values, found, flip, nse)


@op.register("row")
def _row(semiring, A, x, allowed, *, flip, nse):
    """Every entry searches its column in x, rows are joined, prefix sums compact. O(nse log k)."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    default = functools.partial(_search_columns, flip=flip, nse=nse)
    if A.compressed != 0:
        return default(semiring, A, x, allowed)
    native = functools.partial(rows_in_turn, flip=flip, nse=nse)
    return by_platform("products", native, default, semiring, A, x, allowed)


def _search_columns(semiring, A, x, allowed, *, flip, nse):
    out, inner = A.rowcol()
    indices = jnp.where(x.valid(), x.indices, x.shape[0])
    owner = jnp.minimum(jnp.searchsorted(indices, inner).astype(jnp.int32), x.nse - 1)
    found = (indices[owner] == inner) & (out < A.shape[0])
    return _join_rows(semiring, A, x, allowed, out, inner, take(x.data, owner), found, flip, nse)


@op.register("dense")
def _dense(semiring, A, x, allowed, *, flip, nse):
    """SpMV on x made dense, its structure kept beside it. O(nse)."""
    if _nothing(A, x):
        return _empty(semiring, A, x, nse, flip)
    out, inner = A.rowcol()
    here = x.structure().at[inner].get(mode="fill", fill_value=False)
    found = here & (out < A.shape[0])
    values = take(x.todense(), inner)
    return _join_rows(semiring, A, x, allowed, out, inner, values, found, flip, nse)


def _join_rows(semiring, A, x, allowed, out, inner, values, found, flip, nse):
    if allowed is not None:
        found &= allowed.at[out].get(mode="fill", fill_value=False)
    m = A.shape[0]
    data, values = safe(A.data, found), safe(values, found)
    terms = product(semiring, data, out, inner, values, flip=flip)
    target = jnp.where(found, out, m)
    total = semiring.add.segment_reduce(terms, target, m)
    present = jnp.zeros(m, bool).at[target].set(True, mode="drop")
    over = _overflow(semiring, data, values, found, flip)
    return _seal(from_present(total, present, nse), over, A.overflow, x.overflow)
