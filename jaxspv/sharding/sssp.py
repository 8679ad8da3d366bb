"""Shortest paths on a sharded graph: who waits near the least length is relaxed, then told."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.derivatives.tangents import is_zero
from .._core.dispatch import overload
from .._core.platforms import using
from .._core.pytree import is_concrete
from ..algorithms.common.sources import check_source
from ..algorithms.common.status import finished
from ..algorithms.sssp.api import SSSP, UNTIL, sssp
from ..algorithms.sssp.forms import MOST_STEPS, width_over_mean
from ..algorithms.sssp.jvp import sum_to_root
from ..algorithms.sssp.lengths import extend, infinity, wraps
from ..monoids import min_, plus
from ..until import check_until, iteration_limit
from .bfs import NOBODY, least_tail, search, smallest_parents
from .exchange import Local, mine, on_mesh
from .frame import least_weight, mesh_op, told
from .graph import ShardedGraph
from .push import relaxed


class _State(NamedTuple):
    """Between steps, on each device: `length` and `waits` of its piece; the rest is common.

    Attributes:
        length: (r,) the best so far.
        waits: (r,) bool, shorter than when its edges were relaxed last.
        least: of the lengths of all that wait; infinity: nobody does.
        steps: int32.
        at: (targets,) lengths of the nodes that `until` waits for.
    """

    length: Array
    waits: Array
    least: Array
    steps: Array
    at: Array


def width_of(local: Local) -> tuple[Array, Array]:
    """The width of `delta_stepping`, by weights on all devices, and whether one is negative."""
    data = local.block.data
    top = infinity(data.dtype)
    there = jnp.arange(data.shape[0], dtype=jnp.int32) < local.block.indptr[-1]
    finite = jnp.where(there & (data < top), data, jnp.zeros((), data.dtype))
    sums = jnp.stack([jnp.sum(finite.astype(jnp.float32)), jnp.sum(there, dtype=jnp.float32)])
    total, count = local.total(sums)
    negative = local.total(jnp.any(finite < 0).astype(jnp.int32)) > 0
    count = jnp.maximum(count, 1)
    width = total / count * width_over_mean(local.part.n, count, jnp)
    if jnp.issubdtype(data.dtype, jnp.integer):
        width = jnp.maximum(width, 1)
    return width.astype(data.dtype), negative


def lengths_of(
    local: Local, source: Array, until: Any, delta: Any, most: Array
) -> tuple[_State, Array]:
    """Each step relaxes who waits within a bucket's width of the least; whether that was the end.

    Where weights are negative all that wait, n times at most: then a negative cycle is reached.
    """
    dtype = local.block.data.dtype
    top = infinity(dtype)
    width, negative = width_of(local)
    width = jnp.where(negative, top, width if delta is None else jnp.asarray(delta, dtype))
    most = jnp.where(negative, jnp.minimum(most, local.part.n), most)
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]

    def common(length, waits):
        """What all devices must agree on, in one minimum over them."""
        at = [jnp.min(jnp.where(mine(local, t), length, top)) for t in targets]
        least = jnp.min(jnp.where(waits, length, top))
        found = lax.pmin(jnp.stack([least, *at]), local.part.axes)
        return found[0], found[1:]

    def stopped(s: _State):
        if until is None:
            return jnp.asarray(False)
        reached = [(at < s.least) & ~negative for at in s.at]
        return jnp.asarray(
            until.holds(iteration=s.steps, reached=reached, unchanged=s.least == top)
        )

    def going(s: _State):
        return (s.least < top) & (s.steps < most) & ~stopped(s)

    def step(s: _State):
        active = s.waits & (s.length <= extend(s.least, width))
        lengths = local.along_rows(jnp.where(active, s.length, top))
        new = local.fold_cols(relaxed(local.block, lengths, top), min_)
        better = new < s.length
        length, waits = jnp.where(better, new, s.length), (s.waits & ~active) | better
        least, at = common(length, waits)
        return _State(length, waits, least, s.steps + 1, at)

    first = mine(local, source)
    length = jnp.where(first, jnp.zeros((), dtype), top)
    least, at = common(length, first)
    end = lax.while_loop(going, step, _State(length, first, least, jnp.int32(0), at))
    return end, (end.least == top) | stopped(end)


def _tight(local: Local, length: Array) -> tuple[Array, Array, Array]:
    """Per entry: lengths at its two ends, and whether the one makes the other."""
    row, col = local.block.rowcol()
    top = infinity(length.dtype)
    there = row < local.part.block_shape[0]
    before = jnp.where(there, jnp.take(local.along_rows(length), row, mode="clip"), top)
    after = jnp.where(there, jnp.take(local.along_cols(length), col, mode="clip"), top)
    return before, after, (after < top) & (extend(before, local.block.data) == after)


def _overflow(local: Local, length: Array) -> Array:
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.asarray(False)
    before, _, _ = _tight(local, length)
    wrapped = (before < infinity(length.dtype)) & wraps(before, local.block.data)
    return local.total(jnp.any(wrapped).astype(jnp.int32)) > 0


def tree_of(local: Local, length: Array, source: Array) -> Array:
    """A search along the tight entries: of fewest hops, then of smallest number."""
    tight = _tight(local, length)[2]
    levels, _ = search(local, source, counts=tight)
    return smallest_parents(local, levels, source, tight)


# ---- The derivative ----


def _carriers(local: Local, source: Array, distances: Array) -> Array:
    """(n,) the vertex before each on the path that carries its derivative, itself without one: of
    strictly nearer tight predecessors the smallest; where one has none, for all the tree."""
    length = local.piece(distances)
    before, after, tight = _tight(local, length)
    first = least_tail(local, tight & (before < after))
    wanted = (length < infinity(length.dtype)) & ~mine(local, source)
    orphans = local.total(jnp.sum(wanted & (first == NOBODY), dtype=jnp.int32))
    first = lax.cond(orphans > 0, lambda: tree_of(local, length, source), lambda: first)
    return local.everywhere(jnp.where(wanted & (first >= 0), first, local.order))


def _carried(local: Local, distances: Array, parents: Array, values: Array) -> Array:
    """(n,) of the values of the entries those of the entry that carries to each vertex."""
    row, col = local.block.rowcol()
    rows, cols = local.part.block_shape
    carries = _tight(local, local.piece(distances))[2]
    tail = local.along_rows(local.order).at[row].get(mode="clip")
    mother = local.along_cols(local.piece(parents)).at[col].get(mode="fill", fill_value=-1)
    head = local.along_cols(local.order).at[col].get(mode="clip")
    carries &= (row < rows) & (tail == mother) & (tail != head)
    values = jnp.where(carries, values, 0)
    sums = plus.segment_reduce(values, jnp.where(carries, col, cols), cols)
    return local.everywhere(local.fold_cols(sums, plus))


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
        return sum_to_root(steps, parents, source)

    distances = lax.stop_gradient(result.distances)
    if jnp.ndim(source) == 0:
        return SSSP(one(source, distances), *none)  # pyright: ignore
    each = [one(source[k], distances[k]) for k in range(source.shape[0])]
    return SSSP(jnp.stack(each), *none)  # pyright: ignore[reportArgumentType]


# ---- The operation ----

op = mesh_op("sssp", _tangent)


@op.register("collectives")
def _buckets(G, source, until, delta, most, *, parents):
    """One exchange of lengths and one minimum over the devices a step; sources in turn."""

    def body(local, source, until, delta, most):
        def one(s):
            end, done = lengths_of(local, s, until, delta, most)
            tree = local.everywhere(tree_of(local, end.length, s)) if parents else None
            over = _overflow(local, end.length)
            lengths = local.everywhere(end.length)
            if until is not None:
                top = infinity(lengths.dtype)
                lengths = jnp.where(lengths <= until.limit(lengths, top), lengths, top)
                tree = None if tree is None else jnp.where(lengths == top, -1, tree)
            return lengths, tree, end.steps, done, over, jnp.int32(0)

        return one(source) if jnp.ndim(source) == 0 else lax.map(one, source)

    return SSSP(*on_mesh(body, G, source, until, delta, most))


@overload(sssp, ShardedGraph)
def _sssp(
    G,
    source,
    *,
    until=None,
    parents=True,
    deterministic=False,
    delta=None,
    max_steps=None,
    backend=None,
    method=None,
):
    """Parents are those of `deterministic=True`, always."""
    del deterministic
    if G.dtype == bool:
        G = G.astype(jnp.int32)
    until = check_until(until, UNTIL, "sssp", G.n)
    source = check_source(source, G.n)
    if is_concrete(G.data):
        least = least_weight(G)
        if least != least:
            raise ValueError("weights must not be NaN.")
        if least < 0 and delta is not None:
            raise ValueError(f"`delta` needs weights >= 0; the least is {least}.")
    if delta is not None and is_concrete(delta) and not delta > 0:
        raise ValueError(f"`delta` must be positive; got {delta}.")
    most = MOST_STEPS if max_steps is None else iteration_limit("max_steps", max_steps)
    most = np.int32(most) if is_concrete(most) else most
    how = {"parents": parents, "backend": backend, "method": method}
    with using(backend):
        return finished(op(told(G), source, until, delta, most, **how), "sssp")
