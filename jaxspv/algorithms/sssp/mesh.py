"""Shortest paths on a sharded graph: delta-stepping, parents, and sums along the paths."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.sssp.mesh import sssp as kernel

from ..._core.derivatives import is_zero
from ..._core.native_loops import computed_once
from ..._core.pytree import is_concrete
from ..._core.reductions import is_narrow
from ...algebra.monoids import min_, plus
from ...formats import CSR
from ...sharding.exchange import Local, mine, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.operation import extreme_weights, mesh_op
from ...until import check_until, iteration_limit
from ..bfs.mesh import NO_VERTEX, least_tail, not_in_one_launch, over_rows, search, smallest_parents
from ..common.frontier import Edges
from ..common.sources import check_source
from ..common.status import finished, without_negative_cycle
from .api import SSSP, UNTIL
from .layout import width_over_mean
from .tree import sum_to_root
from .xla import MOST_STEPS, extend, infinity, spoiled


class State(NamedTuple):
    """Between steps, on each device: `length` and `pending` of its vertices; the rest is common.

    Attributes:
        length: (r,) the best so far.
        pending: (r,) bool: has edges, and is shorter than when these were last relaxed.
        least: of the lengths of all pending vertices; infinity: none is pending.
        steps: int32.
        at: (targets,) lengths of the target nodes of `until`.
    """

    length: Array
    pending: Array
    least: Array
    steps: Array
    at: Array


def width_of(local: Local) -> tuple[Array, Array]:
    """The width of `delta_stepping`, by weights on all devices, and whether one is negative."""
    data = local.block.data
    top = infinity(data.dtype)
    valid = jnp.arange(data.shape[0], dtype=jnp.int32) < local.block.indptr[-1]
    finite = jnp.where(valid & (data < top), data, jnp.zeros((), data.dtype))
    stored = local.block.indptr[-1].astype(jnp.float32)
    below = jnp.any(finite < 0).astype(jnp.float32)
    total, count, negative = local.total(
        jnp.stack([jnp.sum(finite.astype(jnp.float32)), stored, below])
    )
    count = jnp.maximum(count, 1)
    width = total / count * width_over_mean(local.part.n, count, jnp)
    if jnp.issubdtype(data.dtype, jnp.integer):
        width = jnp.maximum(width, 1)
    return width.astype(data.dtype), negative > 0


def relaxed(block: CSR, lengths: Array, top: Array, low_memory: bool = False) -> Array:
    """(columns,) least `lengths[row] + value` over the entries of the rows below `top`.

    low_memory: process the entries in chunks.
    """
    extent = block.shape[1]

    def relax(best, edges: Edges):
        v = block.indices.at[edges.slot].get(mode="clip")
        value = extend(lengths[edges.tail], block.data.at[edges.slot].get(mode="clip"))
        return best.at[jnp.where(edges.valid, v, extent)].min(value, mode="drop")

    return over_rows(block, lengths < top, jnp.full(extent, top), relax, low_memory)


def lengths_of(
    local: Local, source: Array, until: Any, delta: Any, most: Array, low_memory: bool = False
) -> tuple[State, Array]:
    """Runs delta-stepping; returns the state and whether it converged.

    A step relaxes the pending vertices within a bucket's width of the least length. If a weight is
    negative it relaxes all pending ones, n times at most: after that there is a negative cycle.
    low_memory: process the entries in chunks.
    """
    dtype = local.block.data.dtype
    top = infinity(dtype)
    width, negative = width_of(local)
    width = jnp.where(negative, top, width if delta is None else jnp.asarray(delta, dtype))
    most = jnp.where(negative, jnp.minimum(most, local.part.n), most)
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]
    degrees = local.rows.fold(jnp.diff(local.block.indptr), plus)

    def stopped(s: State):
        if until is None:
            return jnp.asarray(False)
        reached = [(at < s.least) & ~negative for at in s.at]
        return jnp.asarray(
            until.holds(iteration=s.steps, reached=reached, unchanged=s.least == top)
        )

    def going(s: State):
        return (s.least < top) & (s.steps < most) & ~stopped(s)

    def entered(s: State, length, pending):
        """The state after a step; what all devices must agree on, in one exchange."""
        pending &= degrees > 0
        least = jnp.min(jnp.where(pending, length, top))
        at = [jnp.min(jnp.where(mine(local, t), length, top)) for t in targets]
        found = jnp.min(lax.all_gather(jnp.stack([least, *at]), local.part.axes), axis=0)
        return State(length, pending, found[0], s.steps + 1, found[1:])

    def step(s: State):
        active = s.pending & (s.length <= extend(s.least, width))
        lengths = local.rows.along(jnp.where(active, s.length, top))
        new = local.cols.fold(relaxed(local.block, lengths, top, low_memory), min_)
        better = new < s.length
        length, pending = jnp.where(better, new, s.length), (s.pending & ~active) | better
        return entered(s, length, pending)

    first = mine(local, source)
    length = jnp.where(first, jnp.zeros((), dtype), top)
    nothing = State(length, first, top, jnp.int32(-1), jnp.zeros(0, dtype))
    end = lax.while_loop(going, step, entered(nothing, length, first))
    return end, (end.least == top) | stopped(end)


def _tight(local: Local, length: Array) -> tuple[Array, Array, Array]:
    """Per entry: the lengths of its tail and head, and whether the edge is tight."""
    row, col = local.block.rowcol()
    top = infinity(length.dtype)
    valid = row < local.part.block_shape[0]
    before = jnp.where(valid, jnp.take(local.rows.along(length), row, mode="clip"), top)
    after = jnp.where(valid, jnp.take(local.cols.along(length), col, mode="clip"), top)
    weights = computed_once(local.block.data)
    return before, after, (after < top) & (extend(before, weights) == after)


def _overflow(local: Local, length: Array) -> Array:
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.asarray(False)
    before, after, _ = _tight(local, length)
    wrong = jnp.any(spoiled(before, local.block.data, after))
    return local.total(wrong.astype(jnp.int32)) > 0


def tree_of(local: Local, length: Array, source: Array) -> Array:
    """Parents by a search along tight edges: fewest hops, then the smallest number."""
    tight = _tight(local, length)[2]
    levels, _ = search(local, source, counts=tight)
    return smallest_parents(local, levels, source, tight)


# ---- The derivative ----


def _carriers(local: Local, source: Array, distances: Array) -> Array:
    """(n,) the predecessor of each vertex on the path of its derivative, itself if it has none: the
    smallest strictly nearer tight one; if a vertex has none of these, the tree of a search."""
    length = local.piece(distances)
    before, after, tight = _tight(local, length)
    first = least_tail(local, tight & (before < after))
    wanted = (length < infinity(length.dtype)) & ~mine(local, source)
    orphans = local.total(jnp.sum(wanted & (first == NO_VERTEX), dtype=jnp.int32))
    first = lax.cond(orphans > 0, lambda: tree_of(local, length, source), lambda: first)
    return local.everywhere(jnp.where(wanted & (first >= 0), first, local.order))


def _carried(local: Local, distances: Array, parents: Array, values: Array) -> Array:
    """(n,) the value of the tree's entry into each vertex, 0 without one."""
    row, col = local.block.rowcol()
    rows, cols = local.part.block_shape
    carries = _tight(local, local.piece(distances))[2]
    tail, head = local.endpoints()
    mother = local.cols.along(local.piece(parents)).at[col].get(mode="fill", fill_value=-1)
    carries &= (row < rows) & (tail == mother) & (tail != head)
    values = jnp.where(carries, values, 0)
    sums = plus.segment_reduce(values, jnp.where(carries, col, cols), cols)
    return local.everywhere(local.cols.fold(sums, plus))


def _tangent(primals, tangents, result, **static):
    """`d'[v] = sum of A'[u, w] over the path source -> v` of the tree that carries it."""
    del static
    G, source, *_ = primals
    none = [None] * (len(result) - 1)
    if is_zero(tangents[0].data):
        return SSSP(jnp.zeros_like(result.distances), *none)  # pyright: ignore
    graph = G.with_data(lax.stop_gradient(G.data))  # the tree is locally constant

    def one(source, distances):
        parents = on_mesh(_carriers, graph, source, distances)
        steps = on_mesh(_carried, graph, distances, parents, values=tangents[0].data)
        # by jit: on explicit axes JAX transposes it on the mesh of auto_axes
        return jax.jit(sum_to_root)(steps, parents, source)

    distances = lax.stop_gradient(result.distances)
    if jnp.ndim(source) == 0:
        return SSSP(one(source, distances), *none)  # pyright: ignore
    each = [one(source[k], distances[k]) for k in range(source.shape[0])]
    return SSSP(jnp.stack(each), *none)  # pyright: ignore[reportArgumentType]


# ---- The operation ----

op = mesh_op("sssp", _tangent)


@op.register("collectives")
def _buckets(G, source, until, delta, most, *, parents):
    """A step is one exchange of lengths and one minimum over devices; sources are sequential."""

    def body(local, source, until, delta, most):
        def one(s):
            end, done = lengths_of(local, s, until, delta, most)
            tree = local.everywhere(tree_of(local, end.length, s)) if parents else None
            over = _overflow(local, end.length)
            lengths = local.everywhere(end.length)
            if until is not None:
                top = infinity(lengths.dtype)
                limit = jnp.where(width_of(local)[1], top, until.limit(lengths, top))
                lengths = jnp.where(lengths <= limit, lengths, top)
                tree = None if tree is None else jnp.where(lengths == top, -1, tree)
            return lengths, tree, end.steps, done, over, jnp.int32(0)

        return one(source) if jnp.ndim(source) == 0 else lax.map(one, source)

    return SSSP(*on_mesh(body, G, source, until, delta, most))


def sharded_sssp(
    G, source, *, until=None, parents=True, deterministic=False, delta=None, max_steps=None, **where
):
    """Parents are those of `deterministic=True`, always."""
    del deterministic
    if G.dtype == bool:
        G = G.astype(jnp.int32)
    given = G.dtype
    if is_narrow(given):  # as on one device
        G = G.astype(jnp.float32)
    until = check_until(until, UNTIL, "sssp", G.n)
    source = check_source(source, G.n)
    negative = False
    if is_concrete(G.data):
        least, _ = extreme_weights(G)
        negative = least < 0
        if least != least:
            raise ValueError("weights must not be NaN.")
        if least < 0 and delta is not None:
            raise ValueError(f"`delta` needs weights >= 0; the least is {least}.")
    if delta is not None and is_concrete(delta) and not np.asarray(delta) > 0:
        raise ValueError(f"`delta` must be positive; got {delta}.")
    most = MOST_STEPS if max_steps is None else iteration_limit("max_steps", max_steps)
    most = np.int32(most) if is_concrete(most) else most
    found = op(G, source, until, delta, most, parents=parents, **where)
    if is_narrow(given):
        found = found._replace(distances=found.distances.astype(given))
    found = finished(found, "sssp")
    return without_negative_cycle(found, "sssp") if negative and max_steps is None else found


def _not_in_one_launch(G, *search, parents) -> str | None:
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return not_in_one_launch(G, *search, parents=parents)


@op.register("one_launch", backend="pallas", refuse=_not_in_one_launch)
def one_launch(G: ShardedGraph, source, until, delta, most, *, parents):
    """Lengths go into the other devices' memory inside the kernel; where one falls below 0, or a
    negative cycle goes round, as the other form; parents by a search after it."""

    def body(local: Local, source, delta, most):
        part, block = local.part, local.block
        graph = block.indptr, block.indices, block.data, local.positions
        width = jnp.float32(0) if delta is None else jnp.asarray(delta, jnp.float32)
        how = {"axes": part.axes, "n": part.n}
        # without negative weights every other round at least settles a vertex
        limit = jnp.minimum(most, 2 * part.n + 2)
        whole, own, rounds, ended, status, below = kernel(graph, source, width, limit, **how)
        refused = (below > 0) | ((ended == 0) & (status == 0) & (rounds < most) & (rounds >= limit))

        def by_collectives():
            end, done = lengths_of(local, source, None, delta, most, low_memory=True)
            return local.everywhere(end.length), end.length, end.steps, done, jnp.int32(0)

        def together():
            return whole, own, rounds, ended > 0, status

        lengths, own, rounds, done, status = lax.cond(refused, by_collectives, together)
        tree = local.everywhere(tree_of(local, own, source)) if parents else None
        return lengths, tree, rounds, done, jnp.asarray(False), status

    del until
    return SSSP(*on_mesh(body, G, source, delta, most))
