"""Acyclic graphs: their edges cut into pieces that run one after another, in parallel inside one.

A vertex is complete once the pieces of its level have run. Pieces have one static size, so that
their loop is one `lax.scan`, which differentiates in both modes.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import known_while_tracing
from ..._core.loops import scan
from ..._core.operation import Operation, typed
from ..._core.pytree import is_concrete
from ..._core.tuples import Each, choose, ones_unless, take
from ...formats.base import entries_on_host
from ...formats.tuples import Tuples
from ...ops.write_rule.on_host import is_listed
from ..paths.acyclic import topological_sort

WASTE = 2  # places per edge that rows of one length may take


class Pieces(NamedTuple):
    """The plan of a graph: P pieces, in each C edges to at most W vertices in a row.

    Attributes:
        vertex: (P, W) the vertices of each piece, n where there are fewer; (n + W,) all vertices by
            level, and n, where `first` is given.
        source: (P, C) where the source of an edge is held; any place in padding. (P, D, W) where
            each vertex has D places, (P, D) where all W vertices of a piece have the same sources,
            None where these are the whole piece before.
        slot: (P, C) or (P, D, W) the slot of an edge, -1 in padding.
        segment: (P, C) which of the W vertices it leads to, or None where each has D places.
        first: (P,) where the vertices of a piece are held, or None where every source is in the
            piece before: then only that one is held, and the first piece, which has no edges, is
            missing in `source` and `slot`.
        place: (n,) where each vertex is found in the end.
    """

    vertex: Any
    source: Any
    slot: Any
    segment: Any
    first: Any
    place: Any


def entries(T: Tuples) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The sources and targets of the edges of a known pattern, and their slots in its values."""
    with known_while_tracing():
        if is_listed(T.places):
            row, col, number = entries_on_host(T.places)
        else:
            row, col, number = (np.asarray(v) for v in (*T.places.rowcol(), T.places.data))
    valid = row < T.shape[0]
    source, target, slot = (v[valid].astype(np.int64) for v in (row, col, number))
    return source, target, slot


def plan(T: Tuples) -> tuple[Pieces, int] | None:
    """The pieces of a graph whose pattern is known, and how many levels; None: it has cycles."""
    with known_while_tracing():
        order = topological_sort(T.places)
        if not bool(order.acyclic):
            return None
        level = np.asarray(order.generations).astype(np.int64)
    return cut(*entries(T), level), int(level.max(initial=0))


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
    at = piece[to], np.arange(to.size) - ends[to], offset[to]
    held = rank[source]
    first = np.full(P, n)
    np.minimum.at(first, piece, np.arange(n))
    near = bool(np.all(piece[held] == piece[to] - 1))
    sources, slots = np.zeros((P, deep, width), np.int64), np.full((P, deep, width), -1)
    sources[at], slots[at] = (offset[held] if near else held), slot
    place = (piece * width + offset)[rank] if near else rank
    common = sources.max(2)
    if np.all((sources == common[..., None]) | (slots < 0)):
        sources = common
    if near:
        whole = sources.shape == (P, width) and np.all(sources[1:] == np.arange(width))
        sources = None if whole else sources[1:]
        return _narrow(Pieces(vertex, sources, slots[1:], None, None, place))
    by_rank = np.append(order, np.full(width, n))
    return _narrow(Pieces(by_rank, sources, slots, None, first, place))


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
    by_rank = np.append(order, np.full(width, n))
    return _narrow(Pieces(by_rank, sources, slots, segments, first, rank))


def _narrow(pieces: Pieces) -> Pieces:
    return Pieces(*(None if v is None else v.astype(np.int32) for v in pieces))


class Known(NamedTuple):
    """What is known of a plan when it is compiled.

    Attributes:
        width: the vertices of a piece.
        full: no place is padding.
        run: the slot of the first place, if those of all places follow one another, else None.
        at_first: x0 is zero beyond the first piece.
    """

    width: int
    full: bool
    run: int | None
    at_first: bool


def evaluate(semiring: Any, values: Any, x0: Any, pieces: Pieces) -> Any:
    """The closure of x0 (n, ...): each vertex's own value joined with what its edges bring."""
    near = pieces.first is None
    width = pieces.vertex.shape[1] if near else pieces.vertex.size - pieces.place.size
    slot = pieces.slot.reshape(-1)
    full = bool((slot >= 0).all())
    run = int(slot[0]) if full and slot.size and bool((np.diff(slot) == 1).all()) else None
    at_first = near and _is_zero(semiring, x0, pieces.vertex[1:])
    where = None
    if run is None:
        where = np.full(jax.tree.leaves(values)[0].shape[0], slot.size, np.int32)
        where[slot[slot >= 0]] = np.flatnonzero(slot >= 0)
    known = Known(width, full, run, at_first)
    return _evaluated(semiring, values, x0, pieces, where, known=known)


def _is_zero(semiring: Any, x0: Any, vertex: np.ndarray) -> bool:
    """Whether x0 is known to be the zero of the semiring at these vertices, n for none."""
    if not is_concrete(x0):
        return False
    at = vertex[vertex < jax.tree.leaves(x0)[0].shape[0]]
    same = jax.tree.map(
        lambda v, z: bool((np.asarray(v)[at] == z).all()), x0, semiring.add.like(x0)
    )
    return all(jax.tree.leaves(same))


@functools.partial(jax.jit, static_argnames="known")
def _evaluated(semiring, values, x0, pieces, where, *, known):
    """`evaluate`; where: (slots,) the place of each slot in the pieces, None if they are a run."""
    add, n, width = semiring.add, jax.tree.leaves(x0)[0].shape[0], known.width
    zero = add.like(x0)
    pieces, where = lax.optimization_barrier((pieces, where))  # constants are not folded
    edges = jax.tree.map(lambda v: _in_pieces(v, pieces.slot, where, known.run), values)
    edges = edges if known.full else ones_unless(pieces.slot >= 0, edges)
    by_row = pieces.segment is None
    mul = Each(Each(semiring.mul)) if by_row else Each(semiring.mul)

    def brought(held, piece, edges):
        """What the edges of a piece bring to its vertices, (width, ...)."""
        valid, at = piece.slot >= 0, piece.source
        x = held if at is None else take(held, at)
        if at is None or at.ndim < valid.ndim:
            x = jax.tree.map(lambda v: jnp.repeat(v[:, None], width, 1), x)
        terms = mul(x if known.full else ones_unless(valid, x), edges)
        terms = jax.tree.map(lambda t, v: t.astype(v.dtype), terms, x0)
        if not by_row:
            return add.segment_reduce(terms, piece.segment, width, sorted=True)
        terms = terms if known.full else choose(valid, terms, zero)
        return jax.vmap(add.reduce, (1, None))(terms, 0) if add.of_tuples else add.reduce(terms, 0)

    def near(held, step):
        own, piece, edges = step
        found = brought(held, piece, edges)
        found = found if own is None else Each(add.op)(own, found)
        return found, found

    def far(held, step):
        piece, edges = step
        window = jax.tree.map(lambda v: lax.dynamic_slice_in_dim(v, piece.first, width), held)
        found = Each(add.op)(window, brought(held, piece, edges))
        return jax.tree.map(
            lambda v, w: lax.dynamic_update_slice_in_dim(v, w, piece.first, 0), held, found
        ), None

    own = choose(pieces.vertex < n, take(x0, pieces.vertex), zero)
    steps = pieces._replace(place=None, vertex=None)
    if pieces.first is not None:
        return take(scan(far, own, (steps, edges))[0], pieces.place)
    start, rest = (jax.tree.map(lambda v, at=at: v[at], own) for at in (0, slice(1, None)))
    _, found = scan(near, start, (None if known.at_first else rest, steps, edges))
    found = jax.tree.map(
        lambda v, f: jnp.concatenate([v[None], f]).reshape(-1, *v.shape[1:]), start, found
    )
    return take(found, pieces.place)


def _in_pieces(values: Array, slot: Array, where: Array | None, run: int | None) -> Array:
    """`values[slot]`; each slot comes at most once, so that the transpose is a gather too."""
    return moved(values, slot, where) if run is None else in_run(values, slot, first=run)


def _transposed(cotangent, values, slot, where):
    flat = cotangent.reshape(-1, *cotangent.shape[slot.ndim :])
    return flat.at[where].get(mode="fill", fill_value=0), None, None


moved = Operation(
    "values in pieces",
    "linear",
    transpose=_transposed,
    types=lambda v, slot, where: typed(v.dtype, *slot.shape, *v.shape[1:]),
    internal=True,
)


@moved.register("gather")
def _moved(values: Array, slot: Array, where: Array) -> Array:
    return take(values, slot)


def _run_transposed(cotangent, values, slot, *, first):
    flat = cotangent.reshape(-1, *cotangent.shape[slot.ndim :])
    before_after = first, values.shape[0] - first - slot.size
    return jnp.pad(flat, [before_after, *[(0, 0)] * (flat.ndim - 1)]), None


in_run = Operation(
    "values of a run in pieces",
    "linear",
    transpose=_run_transposed,
    types=lambda v, slot, first: typed(v.dtype, *slot.shape, *v.shape[1:]),
    internal=True,
)


@in_run.register("slice")
def _run(values: Array, slot: Array, *, first: int) -> Array:
    found = lax.slice_in_dim(values, first, first + slot.size)
    return found.reshape(*slot.shape, *values.shape[1:])


def _run_batched(size, in_batched, values, slot, *, first):
    """Piece by piece: XLA on a CPU copies the lanes of a slice twice on the way into a loop."""
    if size == 1:
        return _run(values[0], slot, first=first)[None]
    each = math.prod(slot.shape[1:])

    def piece(k):
        found = lax.dynamic_slice_in_dim(values, first + k * each, each, 1)
        return found.reshape(size, *slot.shape[1:], *values.shape[2:])

    return jnp.moveaxis(lax.map(piece, jnp.arange(slot.shape[0])), 1, 0)


in_run.register("slice", backend="cpu", batched=_run_batched)(_run)
