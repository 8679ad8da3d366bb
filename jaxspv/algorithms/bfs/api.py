"""Breadth-first search: levels and parents from one source or several."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.layouts.adjacency import Adjacency, prepare_bfs

from ..._core.eager.arrays import on_gpu
from ..._core.forms import overloadable
from ..._core.indices import bucketed
from ..._core.loops import one_by_one
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...graph import Graph, as_graph, register_layout
from ...native import bind
from ...shapes import Count, Int, Matrix, Sources
from ...until import Until, check_until
from ..common.edges import beyond_places, no_edges, unprepared
from ..common.sources import check_source, over, path_to
from ..common.status import finished
from . import tiles as tiles
from .tiles import TileRule
from .xla import SOURCES, in_words, parents_of_each, search, search_sources, smallest_parents

UNTIL = ("reached", "unchanged", "max_iterations")
KINDS = (*UNTIL, "or", "and")  # by their numbers in `until.h`


@result_tuple
class BFS(NamedTuple):
    """The result of `bfs`; a leading axis for several sources.

    Attributes:
        levels: (n,) int32, hops from the source; -1 where unreached.
        parents: (n,) int32, the vertex before on a shortest path; the source is its own parent, -1
            where unreached. None if not asked for.
        num_levels: int32, levels that hold a vertex: the largest level + 1, or 0.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    levels: Int[Array, "*sources n"]
    parents: Int[Array, "*sources n"] | None
    num_levels: Int[Array, "*sources"]
    status: Int[Array, "*sources"]

    def path_to(self, target: Count) -> Int[np.ndarray, " k"]:
        """Vertices of the path from the source to `target`, both included; empty: unreached."""
        return path_to(self.parents, target)


@overloadable
def bfs(
    G: Matrix,
    source: Sources,
    *,
    until: Until | None = None,
    parents: bool = True,
    deterministic: bool = False,
    format: str = "auto",
    rule: TileRule = TileRule(),  # noqa: B008 - frozen
    backend: Backend | None = None,
    method: str | None = None,
) -> BFS:
    """Breadth-first search along the edges i -> j stored as A[i, j], whatever their values.

    `levels[v] = min over paths source -> v of the number of edges`.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")`, or a square sparse matrix; a `BitTiled` is
            searched by its words. Only a Graph whose in-edges are known is searched in both
            directions.
        source: vertex, or an array of vertices (a leading axis in the result). An array, like
            `vmap` over the source, is searched in one traversal, 32 sources a word: each edge is
            read once for all 32. With `until`, and under vmap over graphs, the sources are searched
            one after the other on the device.
        until: stop after the level in which it holds: `reached(node)`, `unchanged()`,
            `max_iterations(k)` (levels), joined by `|` and `&`; deeper vertices stay unreached.
            None: to the end.
        parents: whether to compute them.
        deterministic: of several possible parents take the smallest id, on every backend.
        format: "csr" (rows), "bittiled" (words of 64-by-64 tiles, made here unless prepared for
            "bittiled"), or "auto": tiles where they were prepared and `choose_format` prefers them.
        rule: which levels of TileBFS push, and which pull, on a GPU.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: name of an implementation, see `explain`.

    Returns:
        `BFS(levels, parents, num_levels, status)`.

    Raises:
        TypeError: G is no graph, `source` no integer.
        ValueError: a concrete source is out of range (under jit: everything unreached); `until`
            holds a condition without meaning here.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: O(n + edges) work in all; each level costs in proportion to the edges of its frontier, or
    of the unvisited vertices where that is less.

    Source: Beamer, Asanovic, Patterson, "Direction-optimizing breadth-first search", SC 2012;
    several sources: Then et al., "The more the merrier", VLDB 2014.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1], [1, 2, 3], shape=(5, 5))
    >>> bfs(A, 0).levels.tolist()
    [0, 1, 2, 2, -1]
    """
    words, rows = tiles.tiles_for(G, format)
    how: dict[str, Any] = {"parents": parents, "backend": backend, "method": method}
    if words is not None:
        until = check_until(until, UNTIL, "bfs", words.shape[0])
        how |= {"rule": rule, "bounds": () if until is None else until.bounds()}

        def by_tiles(s):
            return BFS(*tiles.op(words, rows, s, until, **how))

        source = check_source(source, words.shape[0])
        return finished(over(source, by_tiles)(source), "bfs")
    graph = as_graph(G, "bfs", ("bfs",))
    until = check_until(until, UNTIL, "bfs", graph.n)
    how |= {"deterministic": deterministic, "bounds": () if until is None else until.bounds()}
    source = check_source(source, graph.n)

    def by_rows(s):
        return op(graph, s, until, **how)

    return finished(over(source, by_rows)(source), "bfs")


@register_layout("bfs", numpy=True)
def _layout(graph: Graph) -> Any:
    """The kernel's layout, on a GPU only: the XLA forms need only the in-edges."""
    out, inn = graph.out, graph.inn
    assert inn is not None
    if not on_gpu(out.indices):
        return {}
    reverse = (None, None) if graph.symmetric else (inn.indptr, inn.indices)
    return {"pallas": prepare_bfs(out.indptr, out.indices, *reverse, rounded=bucketed)}


def _types(graph, source, until, *, parents, deterministic, bounds):
    vector, number = typed(jnp.int32, graph.n), typed(jnp.int32)
    return BFS(vector, vector if parents else None, number, number)


_advice = unprepared("bfs", "add the in-edges to pull from")
op = Operation("bfs", types=_types, advice=_advice)


def _not_persistent(graph, source, until, *, bounds, **_) -> str | None:
    """Why the kernel cannot run. It needs no layout, but is faster with one."""
    traced = "`max_iterations` of a traced number: the kernel wants a Python integer"
    return no_edges(graph) or beyond_places(graph) or (traced if None in bounds else None)


def _together(axis_size, in_batched, graph, source, until, *, bounds, **how):
    """vmap over the source alone: one traversal for all of them. Anything else: one by one."""
    if until is None and not any(jax.tree.leaves(in_batched[0])):
        return many(graph, source, **how)
    return one_by_one(op, axis_size, in_batched, graph, source, until, bounds=bounds, **how)


def _adjacency(graph: Graph) -> Adjacency:
    """The out-edges, and the in-edges unless the graph is symmetric."""
    inn = None if graph.symmetric else graph.inn
    rows = (graph.out,) if inn is None else (graph.out, inn)
    return Adjacency(*(x for csr in rows for x in (csr.indptr, csr.indices)))


@op.register("persistent", backend="pallas", refuse=_not_persistent, batched=_together)
def _persistent(graph, source, until, *, parents, deterministic, bounds):
    """The whole traversal in one launch, with grid barriers between its levels."""
    from pallas_kernels.bfs.api import bfs as bfs_kernel

    stop, targets = (None, None) if until is None else until.in_kernel(bounds)
    levels, tree, num_levels, status = bfs_kernel(
        _adjacency(graph),
        source,
        prepared=graph.layouts.get("bfs", {}).get("pallas"),
        symmetric=graph.symmetric,
        targets=targets,
        stop=stop,
        parents=parents and not deterministic,
    )
    if parents and deterministic:
        tree = smallest_parents(graph.out.indptr, graph.out.indices, source, levels)
    return BFS(levels, tree, num_levels, status)


@op.register("native", backend="cpu", refuse=bind.refused, batched=_together)
def _native(graph, source, until, *, parents, deterministic, bounds):
    """Direction-optimizing, in C++."""
    out, inn = graph.out, graph.out if graph.symmetric else graph.inn
    back = out if inn is None else inn
    numbers = typed(jnp.int32, graph.n)
    levels, tree, count = bind.call(
        "bfs",
        (numbers, numbers if parents else typed(jnp.int32, 0), typed(jnp.int32)),
        *(out.indptr, out.indices, back.indptr, back.indices),
        jnp.asarray(source, jnp.int32),
        _as_numbers(until),
        pulls=inn is not None,
        deterministic=deterministic,
    )
    return BFS(levels, tree if parents else None, count, jnp.int32(0))


def _as_numbers(until: Until | None) -> Array | np.ndarray:
    """(k, 2) int32: a condition in postfix order, as pairs of a kind and a value."""
    if until is None:
        return np.zeros((0, 2), np.int32)
    rows = [(KINDS.index(kind), 0 if v is None else v) for kind, v in until.postfix()]
    return jnp.stack([jnp.stack([jnp.asarray(v, jnp.int32) for v in row]) for row in rows])


@op.register("levels", batched=_together)
def _levels(graph, source, until, *, parents, deterministic, bounds):
    """One level after the other, the edges of its frontier in chunks."""
    del bounds  # the same numbers are leaves of `until`

    def holds(level, levels, size):
        reached = until.found_in(levels)
        return until.holds(iteration=level, reached=reached, unchanged=size == 0)

    how = {"parents": parents, "deterministic": deterministic}
    stop = None if until is None else holds
    return BFS(*search(_adjacency(graph), source, stop=stop, **how), jnp.int32(0))


@tiles.op.register("rows")
def _rows_of_tiles(A, rows, source, until, *, parents, bounds, rule):
    """As rows, made of the tiles if there are none: tile by tile XLA takes longer than that."""
    del rule
    graph = Graph(A.to_coo().asformat("csr"), symmetric=A.symmetric) if rows is None else rows
    return tuple(op(graph, source, until, parents=parents, deterministic=True, bounds=bounds))


def _types_of_many(graph, sources, *, parents, deterministic):
    count = sources.shape[0]
    levels, each = typed(jnp.int32, count, graph.n), typed(jnp.int32, count)
    return BFS(levels, levels if parents else None, each, each)


many = Operation("bfs from several sources", types=_types_of_many, advice=_advice)


def _sources_separately(axis_size, in_batched, graph, sources, **how):
    """vmap over arrays of sources: one array of all. Anything else: one by one."""
    if any(jax.tree.leaves(in_batched[0])):
        return one_by_one(many, axis_size, in_batched, graph, sources, **how)
    each = sources.shape[1]
    result = many(graph, sources.reshape(axis_size * each), **how)
    return jax.tree.map(lambda v: v.reshape(axis_size, each, *v.shape[1:]), result)


def _no_words(graph, sources, **_) -> str | None:
    together = min(sources.shape[0], SOURCES)
    if together * graph.n >= 1 << 31:
        return f"{together} levels of each of {graph.n} vertices exceed its int32 places"
    return no_edges(graph)


@many.register("persistent", backend="pallas", refuse=_no_words, batched=_sources_separately)
def _persistent_sources(graph, sources, *, parents, deterministic):
    """All levels of 32 sources in one launch; a launch for each 32 sources."""
    from pallas_kernels.bfs.multi_source import bfs_sources as bfs_sources_kernel

    def some(sources):
        return bfs_sources_kernel(
            _adjacency(graph),
            sources,
            symmetric=graph.symmetric,
            parents=parents and not deterministic,
        )

    levels, tree, status = in_words(some, sources, graph.n)
    if parents and deterministic:
        tree = parents_of_each(_adjacency(graph), sources, levels)
    return _of_levels(levels, tree)._replace(status=status)


@many.register("native", backend="cpu", refuse=bind.refused, batched=_sources_separately)
def _native_sources(graph, sources, *, parents, deterministic):
    """A bit a source, 64 sources a word, in C++."""
    out, rows = graph.out, typed(jnp.int32, sources.shape[0], graph.n)
    results = rows, rows if parents else typed(jnp.int32, 0, 0)
    operands = out.indptr, out.indices, sources.astype(jnp.int32)
    levels, tree = bind.call("bfs_sources", results, *operands, deterministic=deterministic)
    return _of_levels(levels, tree if parents else None)


@many.register("bitmask", batched=_sources_separately)
def _bitmask(graph, sources, *, parents, deterministic):
    """A bit a source, 32 sources a word; the parents are the smallest in any case."""
    del deterministic
    adjacency = _adjacency(graph).in_both_directions(graph.symmetric)
    return _of_levels(*search_sources(adjacency, sources, parents=parents))


def _of_levels(levels: Array, tree: Array | None) -> BFS:
    count = levels.shape[0]
    depth = jnp.max(levels, axis=1, initial=-1) + 1
    return BFS(levels, tree, depth.astype(jnp.int32), jnp.zeros(count, jnp.int32))
