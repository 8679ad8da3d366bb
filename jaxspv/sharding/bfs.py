"""Breadth-first search on a sharded graph: frontiers as words of bits, parents by one more pass."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.dispatch import overload
from .._core.platforms import using
from ..algorithms.bfs.api import BFS, UNTIL, bfs
from ..algorithms.common.sources import check_source
from ..algorithms.common.status import finished
from ..monoids import min_
from ..until import check_until
from .exchange import Local, mine, on_mesh
from .frame import mesh_op, refused, told
from .graph import ShardedGraph
from .push import reached_by

NOBODY = np.int32(np.iinfo(np.int32).max)


class _State(NamedTuple):
    """Between levels, on each device: `new` and `levels` of its piece; the rest is common.

    Attributes:
        new: (r,) bool, the vertices of level `depth`.
        levels: (r,) int32, -1 where unreached.
        depth: int32.
        size: int32, vertices of level `depth` on all devices.
        found: (targets,) bool, of the nodes that `until` waits for.
    """

    new: Array
    levels: Array
    depth: Array
    size: Array
    found: Array


def search(
    local: Local, source: Array, until: Any = None, counts: Array | None = None
) -> tuple[Array, Array]:
    """(r,) levels of a piece, and how many levels there are; by the entries that count (all)."""
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]
    counted = jnp.int32

    def common(new, levels):
        """The size of a level and which targets have one, in one sum over the devices."""
        has = [jnp.any(mine(local, t) & (levels >= 0)) for t in targets]
        counts = local.total(jnp.stack([jnp.sum(new, dtype=counted), *map(counted, has)]))
        return counts[0], counts[1:] > 0

    def going(s: _State):
        if until is None:
            return s.size > 0
        stop = until.holds(iteration=s.depth, reached=list(s.found), unchanged=s.size == 0)
        return (s.size > 0) & ~jnp.asarray(stop)

    def level(s: _State):
        reached = reached_by(local.block, local.bits_along_rows(s.new), counts)
        new = local.fold_cols_of_bits(reached) & (s.levels < 0)
        levels = jnp.where(new, s.depth + 1, s.levels)
        return _State(new, levels, s.depth + 1, *common(new, levels))

    first = mine(local, source)
    levels = jnp.where(first, 0, -1).astype(jnp.int32)
    start = _State(first, levels, jnp.int32(0), *common(first, levels))
    end = lax.while_loop(going, level, start)
    return end.levels, (end.depth + (end.size > 0)).astype(jnp.int32)


def smallest_parents(
    local: Local, levels: Array, source: Array, counts: Array | bool = True
) -> Array:
    """(r,) of the in-neighbours one level nearer to the source the one of smallest number."""
    row, col = local.block.rowcol()
    above = local.along_rows(levels).at[row].get(mode="fill", fill_value=-1)
    below = local.along_cols(levels).at[col].get(mode="fill", fill_value=-1)
    best = least_tail(local, counts & (above >= 0) & (below == above + 1))
    best = jnp.where(levels == 0, source, best)
    return jnp.where(levels >= 0, best, -1).astype(jnp.int32)


def least_tail(local: Local, counts: Array) -> Array:
    """(r,) the smallest vertex that an entry that counts comes from; NOBODY: there is none."""
    row, col = local.block.rowcol()
    extent = local.part.block_shape[1]
    tail = local.along_rows(local.order).at[row].get(mode="clip")
    at = jnp.where(counts & (row < local.part.block_shape[0]), col, extent)
    return local.fold_cols(jnp.full(extent, NOBODY).at[at].min(tail, mode="drop"), min_)


op = mesh_op("bfs")


@op.register("collectives")
def _bitmaps(G, source, until, *, parents):
    """Push on each device, a union of bitmaps after each level; several sources in turn."""

    def body(local, source, until):
        def one(s):
            levels, deep = search(local, s, until)
            tree = smallest_parents(local, levels, s) if parents else None
            found = [None if v is None else local.everywhere(v) for v in (levels, tree)]
            return *found, deep, jnp.int32(0)

        return one(source) if source.ndim == 0 else lax.map(one, source)

    return BFS(*on_mesh(body, G, source, until))


@overload(bfs, ShardedGraph)
def _bfs(G, source, *, until=None, parents=True, deterministic=False, format="auto", **options):
    """Parents are those of `deterministic=True`, always."""
    del deterministic
    options.pop("rule", None)
    if format not in ("auto", "csr"):
        raise NotImplementedError(f"`format` of bfs is 'csr' for a ShardedGraph; got {format!r}.")
    how = {k: options.pop(k, None) for k in ("backend", "method")}
    refused("bfs", options)
    until = check_until(until, UNTIL, "bfs", G.n)
    source = check_source(source, G.n)
    with using(how["backend"]):
        return finished(op(told(G), source, until, parents=parents, **how), "bfs")
