"""Breadth-first search on a sharded graph: frontiers as bits, parents by one more pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from pallas_kernels.bfs.api import BFSConfig
from pallas_kernels.bfs.mesh.api import bfs as kernel

from ...algebra.monoids import min_, plus
from ...formats import CSR
from ...formats.csr import sort_by
from ...sharding.exchange import Local, mine, on_mesh
from ...sharding.operation import mesh_op, one_kernel_refused, refused, spread
from ...until import check_until
from ..common.frontier import Edges, Queue, append, for_edges
from ..common.sources import check_source
from ..common.status import finished
from .api import BFS, UNTIL
from .xla import in_words, joined_words, word_levels

THIN = 8  # entries a vertex: such graphs (grids, roads) have many levels of few edges
NO_VERTEX = np.int32(np.iinfo(np.int32).max)
VERTICES, EDGES = 2**14, 2**16  # the most of one chunk
MOST_LONGER = 16  # the most times that a chunk may be longer with `low_memory`
MANY = 8  # if more than one of so many entries is in the rows, all entries are visited in order


class _State(NamedTuple):
    """Between levels, on each device: `levels` of its piece; the rest is common.

    Attributes:
        levels: (r,) int32, -1 where unreached; the vertices of level `depth` are new.
        depth: int32.
        size: float32, vertices of level `depth` on all devices, approximate; 0: none.
        edges: float32, edges that leave them, approximate.
        left: float32, edges that leave vertices without a level, approximate.
        found: (targets,) bool: which target nodes of `until` are reached.
    """

    levels: Array
    depth: Array
    size: Array
    edges: Array
    left: Array
    found: Array


def reached_by(block: CSR, rows: Array, counts: Array | None = None) -> Array:
    """(columns,) bool: where an entry of the rows (bool) lies, of those that count (all)."""
    extent = block.shape[1]

    def mark(reached, edges: Edges):
        valid = edges.valid
        if counts is not None:
            valid &= counts.at[edges.slot].get(mode="clip")
        v = block.indices.at[edges.slot].get(mode="clip")
        return reached.at[jnp.where(valid, v, extent)].set(True, mode="drop")

    return over_rows(block, rows, jnp.zeros(extent, bool), mark)


def pulled_by(block: CSR, rows: Array, sought: Array) -> Array:
    """(rows,) bool: which of the rows (bool) have an entry in a column that is sought (bool)."""
    extent = block.shape[0]

    def mark(found, edges: Edges):
        v = block.indices.at[edges.slot].get(mode="clip")
        hit = edges.valid & sought.at[v].get(mode="fill", fill_value=False)
        return found.at[jnp.where(hit, edges.tail, extent)].set(True, mode="drop")

    return over_rows(block, rows, jnp.zeros(extent, bool), mark)


def over_rows(
    block: CSR,
    rows: Array,
    carry: Any,
    visit: Callable[[Any, Edges], Any],
    low_memory: bool = False,
) -> Any:
    """`visit` over the entries of the rows in chunks, or vectorised over all where they are many.

    Cost: O(rows + entries of the rows), or O(nse) with some 16 bytes of memory an entry.
    low_memory: always in chunks, and longer ones.
    """
    m, nse = block.shape[0], block.nse

    def vectorised(carry):
        row, _ = block.rowcol()
        is_valid = rows.at[row].get(mode="fill", fill_value=False)
        slot = jnp.arange(nse, dtype=jnp.int32)
        return visit(carry, Edges(slot, jnp.minimum(row, m - 1), is_valid))

    if nse <= EDGES:  # nothing to save
        return vectorised(carry)
    degrees = jnp.diff(block.indptr)
    longer = max(min(nse // (32 * EDGES), MOST_LONGER), 1) if low_memory else 1
    entries = jnp.sum(jnp.where(rows, degrees, 0).astype(jnp.float32))

    def in_chunks(carry):
        empty = Queue(jnp.zeros(m, jnp.int32), jnp.int32(0), jnp.int32(0))
        queue = append(empty, jnp.arange(m, dtype=jnp.int32), rows & (degrees > 0))
        many, size = VERTICES * longer, EDGES * longer
        return for_edges(block.indptr, nse, queue, carry, visit, together=(many, size))

    if low_memory:
        return in_chunks(carry)
    return lax.cond(entries * MANY > nse, vectorised, in_chunks, carry)


def search(
    local: Local, source: Array, until: Any = None, counts: Array | None = None
) -> tuple[Array, Array]:
    """(r,) levels of this device's vertices, and the number of levels.

    A level is exchanged as bitmaps: it is pulled if the graph is symmetric and the vertices without
    a level have fewer edges than the frontier, else pushed.
    counts: which entries are edges; None: all.
    """
    targets = [] if until is None else [jnp.asarray(t, jnp.int32) for t in until.targets()]
    degrees = local.rows.fold(jnp.diff(local.block.indptr), plus)

    def after(s: _State, levels, size, edges):
        """The state after a level, of which a device knows its own part; one sum over them all."""
        has = [jnp.any(mine(local, t) & (levels >= 0)) for t in targets]
        own = [jnp.sum(x.astype(jnp.float32)) for x in (size, edges, *has)]
        size, edges, *has = local.total(jnp.stack(own))
        found = jnp.stack(has) > 0 if has else jnp.zeros(0, bool)
        return _State(levels, s.depth + 1, size, edges, s.left - edges, found)

    def going(s: _State):
        if until is None:
            return s.size > 0
        stop = until.holds(iteration=s.depth, reached=list(s.found), unchanged=s.size == 0)
        return (s.size > 0) & ~jnp.asarray(stop)

    def entered(s: _State, new):
        new &= s.levels < 0
        levels = jnp.where(new, s.depth + 1, s.levels)
        return after(s, levels, new, jnp.where(new, degrees, 0))

    def push(s: _State):
        rows = local.rows.bits_along(s.levels == s.depth)
        return entered(s, local.cols.fold_bits(reached_by(local.block, rows, counts)))

    def pull(s: _State):
        sought = local.cols.bits_along(s.levels == s.depth)
        rows = local.rows.bits_along(s.levels < 0)
        return entered(s, local.rows.fold_bits(pulled_by(local.block, rows, sought)))

    pulls = local.symmetric and counts is None

    def level(s: _State):
        return lax.cond(s.left < s.edges, pull, push, s) if pulls else push(s)

    first = mine(local, source)
    start = jnp.full(local.part.places, -1, jnp.int32)
    zero = jnp.float32(0)
    nothing = _State(start, jnp.int32(-1), zero, zero, zero, jnp.zeros(0, bool))
    every = local.total(jnp.sum(degrees.astype(jnp.float32)))
    start = entered(nothing._replace(left=every), first)
    end = lax.while_loop(going, level, start)
    return end.levels, (end.depth + (end.size > 0)).astype(jnp.int32)


def smallest_parents(
    local: Local, levels: Array, source: Array, counts: Array | bool = True
) -> Array:
    """(r,) of the in-neighbours one level nearer to the source the one of smallest number."""
    row, col = local.block.rowcol()
    above = local.rows.along(levels).at[row].get(mode="fill", fill_value=-1)
    below = local.cols.along(levels).at[col].get(mode="fill", fill_value=-1)
    best = least_tail(local, counts & (above >= 0) & (below == above + 1))
    best = jnp.where(levels == 0, source, best)
    return jnp.where(levels >= 0, best, -1).astype(jnp.int32)


def least_tail(local: Local, counts: Array) -> Array:
    """(r,) the smallest tail of the entries that count towards each vertex; `NO_VERTEX`: none."""
    row, col = local.block.rowcol()
    extent = local.part.block_shape[1]
    tail = local.rows.along(local.order).at[row].get(mode="clip")
    at = jnp.where(counts & (row < local.part.block_shape[0]), col, extent)
    return local.cols.fold(jnp.full(extent, NO_VERTEX).at[at].min(tail, mode="drop"), min_)


def _advice(G, *operands, **static) -> list[str]:
    thin = G.data.size <= THIN * G.n
    one = ["few entries a vertex: one GPU is faster than several, `bfs(G.unshard(), source)`"]
    return spread(G, *operands, **static) + (one if thin and G.part.mesh.size > 1 else [])


op = mesh_op("bfs", advice=_advice)


@op.register("collectives")
def _levels(G, source, until, *, parents):
    """Levels by bitmaps or, of several sources, words; then one pass for the parents."""

    def body(local, source, until):
        def with_parents(levels, s):
            tree = smallest_parents(local, levels, s) if parents else None
            return [None if v is None else local.everywhere(v) for v in (levels, tree)]

        def one(s):
            levels, deep = search(local, s, until)
            return *with_parents(levels, s), deep, jnp.int32(0)

        def word(sources):
            return lax.map(lambda c: with_parents(*c), (search_words(local, sources), sources))

        if source.ndim == 0:
            return one(source)
        if until is not None or source.shape[0] < 2:  # each source stops on its own
            return lax.map(one, source)
        levels, tree = in_words(word, source, G.n)
        deep = jnp.max(levels, axis=1, initial=-1) + 1
        return levels, tree, deep, jnp.zeros(source.shape, jnp.int32)

    return BFS(*on_mesh(body, G, source, until))


def sharded_bfs(
    G, source, *, until=None, parents=True, deterministic=False, format="auto", **options
):
    """Parents are those of `deterministic=True`, always."""
    del deterministic
    options.pop("rule", None)
    if format not in ("auto", "csr"):
        raise NotImplementedError(f"`format` of bfs is 'csr' for a ShardedGraph; got {format!r}.")
    how = {k: options.pop(k, None) for k in ("backend", "method")}
    refused("bfs", options)
    until = check_until(until, UNTIL, "bfs", G.n)
    source = check_source(source, G.n)
    return finished(op(G, source, until, parents=parents, **how), "bfs")


def search_words(local: Local, sources: Array) -> Array:
    """(count, r) levels of a piece from every source; one traversal, in which a word travels where
    for one source it is a bit.

    Each level joins the words of all in-neighbours by `or`: along the rows where the pattern is
    symmetric, else along columns, sorted once.
    """

    def some(words):
        return local.total(jnp.any(words != 0).astype(jnp.int32)) > 0

    at_source = jnp.stack([mine(local, source) for source in sources])
    return word_levels(_joined(local), at_source, some)


def _joined(local: Local) -> Callable[[Array], Array]:
    """The union of the in-neighbours' words, for each vertex of this device."""
    block = local.block
    if local.symmetric:
        return lambda words: local.rows.fold_words(
            joined_words(block.indptr, block.indices, local.cols.along(words))
        )
    row, col = block.rowcol()
    rows, cols = local.part.block_shape
    ends, slots = sort_by(jnp.where(row < rows, col, cols), cols)
    return lambda words: local.cols.fold_words(
        joined_words(ends, row[slots], local.rows.along(words))
    )


def not_in_one_launch(G, source, until, *_, parents) -> str | None:
    """Why one kernel cannot search the whole graph, or None."""
    del parents
    if until is not None:
        return "it goes to the end: `until` stops the other form"
    if jnp.ndim(source) > 0:
        return "it takes one source"
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=not_in_one_launch)
def one_launch(G, source, until, *, parents, config: BFSConfig | None = None):
    """Frontiers are exchanged inside the kernel; parents by one pass over the edges after it."""
    del until

    def body(local: Local, source):
        levels, own, deep, status = kernel(
            (local.block.indptr, local.block.indices, local.positions),
            source,
            axes=local.part.axes,
            n=local.part.n,
            symmetric=G.symmetric,
            local_levels=parents,
            config=config,
        )
        tree = local.everywhere(smallest_parents(local, own, source)) if own is not None else None
        return levels, tree, deep, status

    return BFS(*on_mesh(body, G, source))
