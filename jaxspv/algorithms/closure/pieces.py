"""Acyclic graphs: their edges cut into pieces that run one after another, in parallel inside one.

A vertex is complete once the pieces of its level have run. Pieces have one static size, so that
their loop is one `lax.scan`.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import numpy as np

from ..._core.eager.arrays import known_while_tracing
from ..._core.eager.kept import kept
from ...formats.base import entries_on_host
from ...formats.tuples import Tuples
from ...ops.write_rule.index import is_listed
from ..paths.acyclic import topological_sort

WASTE = 2  # places per edge that rows may take
GROUP = 64  # places that take as long as one more group of rows
STEP = 256  # places that take as long as what else a step of the loop does


class Pieces(NamedTuple):
    """The plan of a graph: P pieces, in each C edges to at most W vertices in a row.

    Attributes:
        vertex: (P, W) the vertices of each piece, n where there are fewer; (n + W,) all vertices by
            level, and n, where `first` is given.
        source: (P, C) where the source of an edge is held; any place in padding. (P, D) where each
            vertex has D places and all W of a piece the same sources, None where these are the
            whole piece before.
        slot: (P, C) or (P, D, W) the slot of an edge, -1 in padding.
        segment: (P, C) which of the W vertices it leads to, or None where vertices have places.
        rows: (G, 2) groups of rows: how many rows, of how many places. The first row has a place
            for the first edge of each vertex, the next ones, which are no longer, for the second
            ones and so on. None where there are D rows of W.
        first: (P,) where the vertices of a piece are held, or None where every source is in the
            piece before: then only that one is held, and the first piece, which has no edges, is
            missing in `source` and `slot`.
        place: (n,) where each vertex is found in the end.
    """

    vertex: Any
    source: Any
    slot: Any
    segment: Any
    rows: Any
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
    """The pieces of a graph whose pattern is known, and how many levels; None: it has cycles.

    Kept for later eager calls on this pattern, of other values too.
    """
    if not T.in_order:
        return _planned(T)
    arrays = tuple(x for x in jax.tree.leaves(T.places) if x is not T.places.data)
    key = "pieces of closures", jax.tree.structure(T.places)
    return kept(arrays, key, functools.partial(_planned, T))


def _planned(T: Tuples) -> tuple[Pieces, int] | None:
    with known_while_tracing():
        order = topological_sort(T.places)
        if not bool(order.acyclic):
            return None
        level = np.asarray(order.generations).astype(np.int64)
    return cut(*entries(T), level), int(level.max(initial=0))


def cut(source: np.ndarray, target: np.ndarray, slot: np.ndarray, level: np.ndarray) -> Pieces:
    """The pieces of an acyclic graph; `level` (n,) is above that of all sources."""
    by_target = np.lexsort((source, target))
    source, target, slot = (v[by_target] for v in (source, target, slot))
    if (found := _cut_by_layers(source, target, slot, level)) is not None:
        return found
    if (found := _cut_by_rows(source, target, slot, level)) is not None:
        return found
    return _cut_by_edges(source, target, slot, level)


def _cut_by_layers(source, target, slot, level) -> Pieces | None:
    """Every level is a piece that holds the sources of the next one; None: it is not so."""
    if np.any(level[source] != level[target] - 1):
        return None
    n, order, sizes = level.size, np.argsort(level, kind="stable"), np.bincount(level)
    number = _numbers(target, n)
    P, width, deep = sizes.size, int(sizes.max(initial=0)), int(number.max(initial=0)) + 1
    if P * width * deep > WASTE * slot.size + 64:
        return None
    offset = np.empty(n, np.int64)
    offset[order] = np.arange(n) - (np.cumsum(sizes) - sizes)[level[order]]
    vertex = np.full((P, width), n)
    vertex[level, offset] = np.arange(n)
    sources, slots = np.zeros((P, deep, width), np.int64), np.full((P, deep, width), -1)
    at = level[target], number, offset[target]
    sources[at], slots[at] = offset[source], slot
    common = sources.max(2)
    if np.any((sources != common[..., None]) & (slots >= 0)):
        return None
    whole = deep == width and bool(np.all(common[1:] == np.arange(width)))
    place = level * width + offset
    return _narrow(
        Pieces(vertex, None if whole else common[1:], slots[1:], None, None, None, place)
    )


def _cut_by_rows(source, target, slot, level) -> Pieces | None:
    """Pieces with vertices of many edges first; None: too much padding in all widths."""
    n, number, sizes = level.size, _numbers(target, level.size), np.bincount(level)
    degree = np.bincount(target, minlength=n)
    deep, most = int(degree.max(initial=0)), WASTE * slot.size + 64
    order = np.lexsort((-degree, level))  # vertices without edges come first
    own = level[order]
    at = np.arange(n) - (np.cumsum(sizes) - sizes)[own]  # in the level
    best, most_wide = None, int(sizes[1:].max(initial=0))
    for width in dict.fromkeys(-(-most_wide >> k) for k in range(4) if most_wide):
        counts = -(-sizes // width)
        counts[0] = 0
        each = np.maximum(counts[own], 1)
        piece = np.where(own > 0, (np.cumsum(counts) - counts)[own] + at % each, -1)
        pieces = int(counts.sum())
        if pieces * deep > most:
            break
        ends = np.bincount(piece[sizes[0] :] * (deep + 1) + degree[order[sizes[0] :]])
        ends = np.pad(ends, (0, pieces * (deep + 1) - ends.size)).reshape(pieces, deep + 1)
        needed = ends[:, ::-1].cumsum(1)[:, -2::-1].max(0)  # with a first, second, ... edge
        rows = _grouped(needed)
        size = int(rows.prod(1).sum())
        cost = pieces * (size + STEP)
        if pieces * size <= most and (best is None or cost < best[0]):
            best = cost, width, pieces, piece, at // each, rows, size
    if best is None:
        return None
    _, width, pieces, piece, offset, rows, size = best
    by_piece = np.lexsort((offset, piece))
    order, piece, offset = (v[by_piece] for v in (order, piece, offset))
    rank = _inverse(order)
    sources, slots = np.zeros((pieces, size), np.int64), np.full((pieces, size), -1)
    each = np.repeat(rows[:, 1], rows[:, 0])  # places of a row
    to = rank[target]
    to = piece[to], (np.cumsum(each) - each)[number] + offset[to]
    sources[to], slots[to] = rank[source], slot
    first = np.searchsorted(piece, np.arange(pieces))
    by_rank = np.append(order, np.full(width, n))
    return _narrow(Pieces(by_rank, sources, slots, None, rows, first, rank))


def _inverse(order: np.ndarray) -> np.ndarray:
    rank = np.empty_like(order)
    rank[order] = np.arange(order.size)
    return rank


def _grouped(needed: np.ndarray) -> np.ndarray:
    """Groups of rows for falling numbers of places: the fewest places, and few groups.

    A group begins where the number changes: the square of how many numbers differ, which is below
    that of twice the edges.
    """
    ends = np.flatnonzero(np.diff(needed, prepend=-1, append=-1))
    best, then = np.zeros(ends.size, np.int64), np.zeros(ends.size, np.int64)
    for k in reversed(range(ends.size - 1)):
        costs = needed[ends[k]] * (ends[k + 1 :] - ends[k]) + GROUP + best[k + 1 :]
        then[k], best[k] = k + 1 + np.argmin(costs), costs.min()
    groups, k = [], 0
    while k < ends.size - 1:
        groups.append((ends[then[k]] - ends[k], needed[ends[k]]))
        k = then[k]
    return np.array(groups)


def _numbers(target: np.ndarray, n: int) -> np.ndarray:
    """The number of each edge among those of its vertex; they are sorted by target."""
    return np.arange(target.size) - np.searchsorted(target, np.arange(n))[target]


def _cut_by_edges(source, target, slot, level) -> Pieces:
    n, order = level.size, np.argsort(level, kind="stable")
    rank = _inverse(order)
    by_rank = np.argsort(rank[target], kind="stable")
    source, target, slot = (v[by_rank] for v in (source, target, slot))
    own = level[target]
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
    return _narrow(Pieces(by_rank, sources, slots, segments, None, first, rank))


def _narrow(pieces: Pieces) -> Pieces:
    return Pieces(*(None if v is None else v.astype(np.int32) for v in pieces))
