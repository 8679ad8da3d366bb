"""The sums over paths of an acyclic graph, level by level: one `lax.scan` over its `Pieces`."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.loops import lanes_second, scan, vmapped
from ..._core.operation import Operation, typed
from ..._core.platforms import situation
from ..._core.pytree import is_concrete
from ..._core.reductions import log_sum_by
from ..._core.tuples import Each, choose, ones_unless, take
from .pieces import Pieces


class Known(NamedTuple):
    """What is known of a plan when it is compiled.

    Attributes:
        width: the vertices of a piece.
        rows: of `Pieces`.
        full: no place is padding.
        run: the slot of the first place, if those of all places follow one another, else None.
        at_first: x0 is zero beyond the vertices without edges.
    """

    width: int
    rows: tuple[tuple[int, int], ...] | None
    full: bool
    run: int | None
    at_first: bool


def evaluate(semiring: Any, values: Any, x0: Any, pieces: Pieces) -> Any:
    """The closure of x0 (n, ...): each vertex's own value joined with what its edges bring."""
    near, n = pieces.first is None, pieces.place.size
    width = pieces.vertex.shape[1] if near else pieces.vertex.size - n
    later = pieces.vertex[1:] if near else pieces.vertex[min(pieces.first, default=n) :]
    slot = pieces.slot.reshape(-1)
    full = bool((slot >= 0).all())
    run = int(slot[0]) if full and slot.size and bool((np.diff(slot) == 1).all()) else None
    rows = None if pieces.rows is None else tuple((int(a), int(b)) for a, b in pieces.rows)
    once = pieces.segment is None  # else edges of a vertex may be in several pieces
    known = Known(width, rows, full, run, once and _is_zero(semiring, x0, later))
    where = None
    if run is None:
        where = np.full(jax.tree.leaves(values)[0].shape[0], slot.size, np.int32)
        where[slot[slot >= 0]] = np.flatnonzero(slot >= 0)
    return sums(semiring, values, x0, pieces._replace(rows=None), where, known=known)


def _is_zero(semiring: Any, x0: Any, vertex: np.ndarray) -> bool:
    """Whether x0 is known to be the zero of the semiring at these vertices, n for none."""
    if not is_concrete(x0):
        return False
    at = vertex[vertex < jax.tree.leaves(x0)[0].shape[0]]
    same = jax.tree.map(
        lambda v, z: bool((np.asarray(v)[at] == z).all()), x0, semiring.add.like(x0)
    )
    return all(jax.tree.leaves(same))


sums = Operation(
    "sums by levels",
    "definition",
    types=lambda semiring, values, x0, *_, known: jax.tree.map(
        lambda v: typed(v.dtype, *v.shape), x0
    ),
    internal=True,
)
sums.gpu_forms_in(f"{__package__}.gpu")


def _in_lanes(size, in_batched, semiring, values, x0, pieces, where, *, known):
    """All lanes of a place follow one another: a gather reads them in one stretch."""
    marks, operands = jax.tree.leaves(in_batched[0]), (semiring, values, x0, pieces, where)
    if size == 1:  # without scatters, which JAX makes of updates of slices under vmap
        single = jax.tree.map(lambda on, v: v[0] if on else v, tuple(in_batched), operands)
        return jax.tree.map(lambda v: v[None], _sums(*single, known=known))
    if known.rows is None or any(marks):
        return vmapped(_sums, size, in_batched, *operands, known=known)
    values, x0 = (
        jax.tree.unflatten(
            jax.tree.structure(v), lanes_second(size, jax.tree.leaves(v), jax.tree.leaves(m))
        )
        for v, m in ((values, in_batched[1]), (x0, in_batched[2]))
    )
    x = _sums(semiring, values, x0, pieces, where, known=known, axes=2)
    return jax.tree.map(lambda v: jnp.moveaxis(v, 1, 0), x)


@sums.register("scan", batched=_in_lanes)
def _sums(semiring, values, x0, pieces, where, *, known, axes=1):
    """`evaluate`.

    Args:
        where: (slots,) the place of each slot in the pieces, None if they are a run.
        axes: 2: all values have lanes in their second axis.
    """
    add, n, width = semiring.add, jax.tree.leaves(x0)[0].shape[0], known.width
    lanes = axes - 1
    on_cpu = situation().platforms == {"cpu"}
    in_place = bool(lanes) and on_cpu
    zero = add.like(jax.tree.map(lambda v: jax.ShapeDtypeStruct((n, *v.shape[axes:]), v.dtype), x0))
    pieces, where = lax.optimization_barrier((pieces, where))  # constants are not folded
    edges = None
    if not lanes:
        edges = jax.tree.map(lambda v: in_pieces(v, pieces.slot, where, first=known.run), values)
        edges = edges if known.full else ones_unless(pieces.slot >= 0, edges)
    mul, joined, reduce = semiring.mul, add.op, add.reduce
    for _ in range(pieces.slot.ndim - 1 + lanes):
        mul = Each(mul)
    for _ in range(axes):
        joined = Each(joined)
        reduce = jax.vmap(reduce, (1, None)) if add.of_tuples else reduce

    def brought(held, piece, edges):
        """What the edges of a piece bring to its vertices, (width, ...)."""
        valid, at = piece.slot >= 0, piece.source
        x = held if at is None else take(held, at)
        if at is None or at.ndim < valid.ndim:
            x = jax.tree.map(lambda v: jnp.repeat(v[:, None], width, 1), x)
        x = x if known.full or lanes else ones_unless(valid, x)
        terms = jax.tree.map(lambda t, v: t.astype(v.dtype), mul(x, edges), x0)
        if pieces.segment is not None:
            return add.segment_reduce(terms, piece.segment, width, sorted=True)
        terms = terms if known.full else choose(valid, terms, zero)
        if known.rows is None:
            return reduce(terms, 0)
        if on_cpu and not lanes and add.by_segments is not None:
            columns = [np.tile(np.arange(many), count) for count, many in known.rows]
            return add.segment_reduce(terms, np.concatenate(columns).astype(np.int32), width)
        parts = _in_rows(known.rows, terms)
        if not add.sums_exponentials:
            return _by_rows(parts, joined, reduce, in_place)

        def total(shift):
            each = [jnp.exp(v - shift[: v.shape[1]]) for v in parts]
            return _by_rows(each, jnp.add, jnp.sum, in_place)

        def most(hold):
            return _by_rows(list(map(hold, parts)), jnp.maximum, jnp.max, in_place)

        return log_sum_by(zero, most, total)

    def near(held, step):
        own, piece, edges = step
        found = brought(held, piece, edges)
        found = found if own is None else joined(own, found)
        return found, found

    def far(held, step):
        piece, edges = step
        if lanes:
            edges = take(values, piece.slot)
        found = brought(held, piece, edges)
        if not known.at_first:
            window = jax.tree.map(lambda v: lax.dynamic_slice_in_dim(v, piece.first, width), held)
            found = joined(window, found)
        return jax.tree.map(
            lambda v, w: lax.dynamic_update_slice_in_dim(v, w, piece.first, 0), held, found
        ), None

    own = choose(pieces.vertex < n, take(x0, pieces.vertex), zero)
    steps = pieces._replace(place=None, vertex=None)
    if pieces.first is not None:
        return take(scan(far, own, (steps, None if lanes else edges))[0], pieces.place)
    start, rest = (jax.tree.map(lambda v, at=at: v[at], own) for at in (0, slice(1, None)))
    _, found = scan(near, start, (None if known.at_first else rest, steps, edges))
    found = jax.tree.map(
        lambda v, f: jnp.concatenate([v[None], f]).reshape(-1, *v.shape[1:]), start, found
    )
    return take(found, pieces.place)


def _in_rows(rows: Sequence[tuple[int, int]], terms: Any) -> list[Any]:
    """The terms of each group of rows, (count, width, ...)."""
    ends = np.cumsum([count * width for count, width in rows])

    def part(v, end, count, width):
        return v[end - count * width : end].reshape(count, width, *v.shape[1:])

    return [
        jax.tree.map(functools.partial(part, end=end, count=count, width=width), terms)
        for end, (count, width) in zip(ends, rows, strict=True)
    ]


def _by_rows(parts: Sequence[Any], joined: Any, reduce: Any, in_place: bool) -> Any:
    """The terms in each column of groups of rows, joined in their order.

    Args:
        in_place: the first row is updated by each group, which XLA on a CPU vectorises if values
            have lanes. Else from the last group on, which a GPU joins in few kernels.
    """
    counts = [jax.tree.leaves(part)[0].shape[0] for part in parts]
    sums = [
        reduce(part, 0) if count > 1 or in_place else jax.tree.map(lambda v: v[0], part)
        for part, count in zip(parts, counts, strict=True)
    ]
    widths = [jax.tree.leaves(v)[0].shape[0] for v in sums]
    if in_place:
        found = sums[0]
        for part, width in zip(sums[1:], widths[1:], strict=True):
            head = joined(jax.tree.map(lambda v, w=width: v[:w], found), part)
            found = jax.tree.map(lambda v, h: v.at[: len(h)].set(h.astype(v.dtype)), found, head)
        return found
    found = sums[-1]
    for part, width in zip(sums[-2::-1], widths[:0:-1], strict=True):
        head, tail = (
            jax.tree.map(lambda v, at=at: v[at], part) for at in (slice(width), slice(width, None))
        )
        found = jax.tree.map(
            lambda h, t: jnp.concatenate([h.astype(t.dtype), t]), joined(head, found), tail
        )
    return found


def _transposed(cotangent, values, slot, where, *, first):
    """Each slot comes at most once, so that this is a gather too."""
    flat = cotangent.reshape(-1, *cotangent.shape[slot.ndim :])
    if first is None:
        return flat.at[where].get(mode="fill", fill_value=0), None, None
    before_after = first, values.shape[0] - first - slot.size
    return jnp.pad(flat, [before_after, *[(0, 0)] * (flat.ndim - 1)]), None, None


# `values[slot]`. first: the first slot where they follow one another, else None.
in_pieces = Operation(
    "values in pieces",
    "linear",
    transpose=_transposed,
    types=lambda v, slot, where, first: typed(v.dtype, *slot.shape, *v.shape[1:]),
    internal=True,
)


@in_pieces.register("gather")
def _in_pieces(values: Array, slot: Array, where: Any, *, first: int | None) -> Array:
    if first is None:
        return take(values, slot)
    found = lax.slice_in_dim(values, first, first + slot.size)
    return found.reshape(*slot.shape, *values.shape[1:])


def _lanes_in_pieces(size, in_batched, values, slot, where, *, first):
    """Piece by piece: XLA on a CPU copies the lanes of a slice twice on the way into a loop."""
    if first is None or size == 1:
        return vmapped(_in_pieces, size, in_batched, values, slot, where, first=first)
    each = math.prod(slot.shape[1:])

    def piece(k):
        found = lax.dynamic_slice_in_dim(values, first + k * each, each, 1)
        return found.reshape(size, *slot.shape[1:], *values.shape[2:])

    return jnp.moveaxis(lax.map(piece, jnp.arange(slot.shape[0])), 1, 0)


in_pieces.register("gather", backend="cpu", batched=_lanes_in_pieces)(_in_pieces)
