"""Acyclic graphs: their edges cut into pieces that run one after another, in parallel inside one.

A vertex is complete once the pieces of its level have run. Pieces have one static size, so that
their loop is one `lax.scan`, which differentiates in both modes.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.derivatives.tangents import is_zero
from ..._core.operation import Operation, typed
from ..._core.operations.tuples import Each, choose, ones_unless, take

WASTE = 2  # places per edge that rows of one length may take


class Pieces(NamedTuple):
    """The plan of a graph: P pieces, in each C edges to at most W vertices in a row.

    Attributes:
        vertex: (P, W) the vertices of each piece, n where there are fewer.
        source: (P, C) where the source of an edge is held; any place in padding. (P, D) where all W
            vertices of a piece have the same sources.
        slot: (P, C) the slot of an edge, -1 in padding.
        segment: (P, C) which of the W vertices it leads to, or None where C = W D and each vertex
            has D places.
        first: (P,) where the vertices of a piece are held, or None where every source is in the
            piece before: then only that one is held.
        place: (n,) where each vertex is found in the end.
    """

    vertex: Any
    source: Any
    slot: Any
    segment: Any
    first: Any
    place: Any


def cut(source: np.ndarray, target: np.ndarray, slot: np.ndarray, level: np.ndarray) -> Pieces:
    """The pieces of an acyclic graph; `level` (n,) is above that of all sources."""
    n = level.size
    order = np.argsort(level, kind="stable")
    rank = np.empty(n, np.int64)
    rank[order] = np.arange(n)
    by_target = np.lexsort((source, rank[target]))
    source, target, slot = (v[by_target] for v in (source, target, slot))
    sizes = np.bincount(level)
    degree = np.bincount(rank[target], minlength=n)
    width, deep = int(np.ceil(sizes.mean())), int(max(degree.max(initial=1), 1))
    counts = -(-sizes // width)  # pieces of each level, if cut by vertices
    if counts.sum() * width * deep <= WASTE * slot.size + 64:
        return _cut_by_vertices(source, target, slot, level, rank, order, width, deep)
    return _cut_by_edges(source, target, slot, level, rank, order)


def _cut_by_vertices(source, target, slot, level, rank, order, width, deep) -> Pieces:
    n, sizes = level.size, np.bincount(level)
    before = np.cumsum(sizes) - sizes
    in_level = np.arange(n) - before[level[order]]  # by rank
    counts = -(-sizes // width)
    piece = (np.cumsum(counts) - counts)[level[order]] + in_level // width
    offset = in_level % width
    P = int(counts.sum())
    vertex = np.full((P, width), n)
    vertex[piece, offset] = order
    to = rank[target]
    ends = np.searchsorted(to, np.arange(n))
    at = piece[to], offset[to], np.arange(to.size) - ends[to]
    held = rank[source]
    first = np.full(P, n)
    np.minimum.at(first, piece, np.arange(n))
    near = bool(np.all(piece[held] == piece[to] - 1))
    sources, slots = np.zeros((P, width, deep), np.int64), np.full((P, width, deep), -1)
    sources[at], slots[at] = (offset[held] if near else held), slot
    place = (piece * width + offset)[rank] if near else rank
    common = sources.max(1)
    if np.all((sources == common[:, None]) | (slots < 0)):
        sources = common
    found = vertex, sources.reshape(P, -1), slots.reshape(P, -1), None
    return _narrow(Pieces(*found, None if near else first, place))


def _cut_by_edges(source, target, slot, level, rank, order) -> Pieces:
    n, own = level.size, level[target]
    edges = np.bincount(own, minlength=level.max() + 1)
    size = max(int(np.ceil(slot.size / max(np.count_nonzero(edges), 1))), 1)
    counts = -(-edges // size)
    number = np.arange(slot.size) - (np.cumsum(edges) - edges)[own]
    piece = (np.cumsum(counts) - counts)[own] + number // size
    P, offset = int(counts.sum()), number % size
    first = np.full(P, n)
    np.minimum.at(first, piece, rank[target])
    segment = rank[target] - first[piece]
    width = int(segment.max(initial=0)) + 1
    sources, slots = np.zeros((P, size), np.int64), np.full((P, size), -1)
    segments = np.full((P, size), width)
    sources[piece, offset], slots[piece, offset] = rank[source], slot
    segments[piece, offset] = segment
    vertex = np.append(order, np.full(width, n))  # all of them, by rank
    return _narrow(Pieces(vertex[None], sources, slots, segments, first, rank))


def _narrow(pieces: Pieces) -> Pieces:
    return Pieces(*(None if v is None else v.astype(np.int32) for v in pieces))


@functools.partial(jax.jit, static_argnames="width")
def evaluate(semiring: Any, values: Any, x0: Any, pieces: Pieces, *, width: int) -> Any:
    """The closure of x0 (n, ...): each vertex's own value joined with what its edges bring."""
    add, n = semiring.add, jax.tree.leaves(x0)[0].shape[0]
    zero = add.like(x0)
    pieces = lax.optimization_barrier(pieces)  # constants are not folded for seconds
    edges = ones_unless(pieces.slot >= 0, _in_pieces(values, pieces.slot))

    def brought(held, piece, edges):
        """What the edges of a piece bring to its vertices, (width, ...)."""
        valid = piece.slot >= 0
        x = take(held, piece.source)
        if piece.source.shape != valid.shape:
            times = valid.shape[0] // max(piece.source.shape[0], 1)
            x = jax.tree.map(lambda v: jnp.tile(v, (times, *(1,) * (v.ndim - 1))), x)
        x = ones_unless(valid, x)
        terms = Each(semiring.mul)(x, edges)
        terms = jax.tree.map(lambda t, v: t.astype(v.dtype), terms, x0)
        if piece.segment is not None:
            return add.segment_reduce(terms, piece.segment, width, sorted=True)
        terms = choose(valid, terms, zero)
        rows = jax.tree.map(lambda t: t.reshape(width, -1, *t.shape[1:]), terms)
        return jax.vmap(lambda t: add.reduce(t, 0))(rows)

    def own(vertex):
        return choose(vertex < n, take(x0, vertex), zero)

    def near(held, step):
        piece, edges = step
        found = Each(add.op)(own(piece.vertex), brought(held, piece, edges))
        return found, found

    def far(held, step):
        piece, edges = step
        window = jax.tree.map(lambda v: lax.dynamic_slice_in_dim(v, piece.first, width), held)
        found = Each(add.op)(window, brought(held, piece, edges))
        return jax.tree.map(
            lambda v, w: lax.dynamic_update_slice_in_dim(v, w, piece.first, 0), held, found
        ), None

    steps = pieces._replace(place=None)
    if pieces.first is None:
        blank = jax.tree.map(lambda z, v: jnp.full((width, *v.shape[1:]), z, v.dtype), zero, x0)
        _, found = lax.scan(near, blank, (steps, edges))
        found = jax.tree.map(lambda v: v.reshape(-1, *v.shape[2:]), found)
    else:
        order = _in_order(pieces, n, width)
        found, _ = lax.scan(far, own(order), (steps._replace(vertex=None), edges))
    return take(found, pieces.place)


def _in_pieces(values: Any, slot: Array) -> Any:
    """`values[slot]`; each slot comes at most once, so that the transpose is a gather too."""
    flat, count = slot.reshape(-1), jax.tree.leaves(values)[0].shape[0]
    where = jnp.full(count, slot.size, jnp.int32)
    where = where.at[jnp.where(flat < 0, count, flat)].set(
        jnp.arange(slot.size, dtype=jnp.int32), mode="drop"
    )
    return jax.tree.map(lambda v: moved(v, slot, where), values)


def _tangent(primals, tangents, result):
    dot = tangents[0]
    return jnp.zeros_like(result) if is_zero(dot) else moved(dot, *primals[1:])


def _transposed(cotangent, values, slot, where):
    flat = cotangent.reshape(-1, *cotangent.shape[slot.ndim :])
    return flat.at[where].get(mode="fill", fill_value=0), None, None


moved = Operation(
    "values in pieces",
    _tangent,
    transpose=_transposed,
    types=lambda v, slot, where: typed(v.dtype, *slot.shape, *v.shape[1:]),
    internal=True,
)


@moved.register("gather")
def _moved(values: Array, slot: Array, where: Array) -> Array:
    return take(values, slot)


def _in_order(pieces: Pieces, n: int, width: int) -> Array:
    """The vertices by rank, and n for a window beyond them."""
    by_rank = jnp.full(n + width, n, jnp.int32)
    return by_rank.at[pieces.place].set(jnp.arange(n, dtype=jnp.int32))


def width_of(pieces: Pieces) -> int:
    """The vertices of a piece."""
    if pieces.segment is None:
        return pieces.vertex.shape[1]
    return pieces.vertex.shape[1] - pieces.place.shape[0]
