"""Shortest paths on a sharded graph: delta-stepping, parents, and sums along the paths."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.derivatives.tangents import is_zero
from ..._core.platforms import using
from ..._core.pytree import is_concrete
from ...algebra.monoids import plus
from ...sharding.exchange import Local, mine, on_mesh
from ...sharding.operation import least_weight, mesh_op
from ...until import check_until, iteration_limit
from ..bfs.mesh import NO_VERTEX, least_tail, search, smallest_parents
from ..common.sources import check_source
from ..common.status import finished, without_negative_cycle
from .api import SSSP, UNTIL
from .forms import MOST_STEPS
from .mesh_rounds import lengths_of
from .tree.jvp import sum_to_root
from .xla import extend, infinity, wraps


def _tight(local: Local, length: Array) -> tuple[Array, Array, Array]:
    """Per entry: the lengths of its tail and head, and whether the edge is tight."""
    row, col = local.block.rowcol()
    top = infinity(length.dtype)
    valid = row < local.part.block_shape[0]
    before = jnp.where(valid, jnp.take(local.along_rows(length), row, mode="clip"), top)
    after = jnp.where(valid, jnp.take(local.along_cols(length), col, mode="clip"), top)
    return before, after, (after < top) & (extend(before, local.block.data) == after)


def _overflow(local: Local, length: Array) -> Array:
    if jnp.issubdtype(length.dtype, jnp.floating):
        return jnp.asarray(False)
    before, _, _ = _tight(local, length)
    wrapped = (before < infinity(length.dtype)) & wraps(before, local.block.data)
    return local.total(jnp.any(wrapped).astype(jnp.int32)) > 0


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
    """A step is one exchange of lengths and one minimum over devices; sources are sequential."""

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


def sharded_sssp(
    G, source, *, until=None, parents=True, deterministic=False, delta=None, max_steps=None, **where
):
    """Parents are those of `deterministic=True`, always."""
    del deterministic
    if G.dtype == bool:
        G = G.astype(jnp.int32)
    until = check_until(until, UNTIL, "sssp", G.n)
    source = check_source(source, G.n)
    negative = False
    if is_concrete(G.data):
        least = least_weight(G)
        negative = least < 0
        if least != least:
            raise ValueError("weights must not be NaN.")
        if least < 0 and delta is not None:
            raise ValueError(f"`delta` needs weights >= 0; the least is {least}.")
    if delta is not None and is_concrete(delta) and not np.asarray(delta) > 0:
        raise ValueError(f"`delta` must be positive; got {delta}.")
    most = MOST_STEPS if max_steps is None else iteration_limit("max_steps", max_steps)
    most = np.int32(most) if is_concrete(most) else most
    with using(where.get("backend")):
        found = finished(op(G, source, until, delta, most, parents=parents, **where), "sssp")
    return without_negative_cycle(found, "sssp") if negative and max_steps is None else found
