"""Betweenness centrality: the share of shortest paths that pass a vertex."""

from __future__ import annotations

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.programs import one_program
from ..._core.native_loops import each, read, write
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ..._core.reductions import is_narrow
from ...formats import CSR
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Float, Indices, Matrix
from ..common.derivatives import constant
from ..common.edges import endpoints_of, is_undirected, vertices_of
from ..common.sources import check_source
from ..common.weights import refused, with_real_weights
from ..sssp.api import sssp
from ..sssp.xla import infinity
from .betweenness_xla import by_levels, by_tight_edges


def by_distance(
    A: CSR, far: Array, source: Array, endpoints: bool, dtype: Any
) -> tuple[Array, Array]:
    """(n,) what passes each vertex on paths of least weight, `far` the distances from the source;
    whether counts overflowed.

    In order of distance an edge u -> v of weight w > 0 is on a shortest path where
    `far[u] + w == far[v]`, exactly: distances are sums from the source on.
    """
    n, indptr, indices, weights = far.shape[0], A.indptr, A.indices, A.data.astype(far.dtype)
    largest = infinity(far.dtype)
    at = jnp.where((source >= 0) & (source < n), source, n)
    order = jnp.argsort(far).astype(jnp.int32)
    tail = jnp.sum(far < largest, dtype=jnp.int32)

    def is_tight(v, w, e):
        start, end = read(far, v), read(far, w)
        return (start + read(weights, e) == end) & (start <= end)  # an unsigned sum may wrap

    def vertex(i, paths):
        u = read(order, i)
        mine = read(paths, u)

        def edge(e, paths):
            v = read(indices, e)
            return (write(paths, v, read(paths, v) + jnp.where(is_tight(u, v, e), mine, 0)),)

        return each(read(indptr, u), read(indptr, u + 1), edge, paths)

    paths = jnp.zeros(n, dtype).at[at].set(1, mode="drop")
    (paths,) = each(0, tail, vertex, paths)
    passed = _back(indptr, indices, order, tail, paths, is_tight)
    if endpoints:  # a path counts for its first and last vertex too
        passed, own = passed + (far < largest), (tail - 1).astype(dtype)
    else:
        own = jnp.zeros((), dtype)
    return passed.at[at].set(own, mode="drop"), jnp.any(~jnp.isfinite(paths))


def _back(indptr, indices, order, tail, paths, is_tight) -> Array:
    """(n,) `paths[v] * sum over tight v -> w of c[w]`, c = 1 / paths + the sum; last ones first."""

    def vertex(i, share, passed):
        v = read(order, tail - 1 - i)

        def edge(e, total):
            w = read(indices, e)
            return (total + jnp.where(is_tight(v, w, e), read(share, w), 0),)

        (total,) = each(read(indptr, v), read(indptr, v + 1), edge, jnp.zeros((), paths.dtype))
        count = read(paths, v)
        return write(share, v, 1 / count + total), write(passed, v, count * total)

    nothing = jnp.zeros_like(paths)
    return each(0, tail, vertex, nothing, nothing)[1]


@result_tuple
class Betweenness(NamedTuple):
    """The result of `betweenness_centrality`.

    Attributes:
        scores: (n,) float32, or the wider dtype of the weights.
        overflow: bool, shortest paths were too many for their dtype (2^128 for float32), distances
            too long, or a weight too small for a sum; see `jaxspv.check`.
    """

    scores: Float[Array, " n"]
    overflow: Bool[Array, ""]


def betweenness_centrality(
    G: Matrix,
    sources: Indices | None = None,
    *,
    normalized: bool = True,
    endpoints: bool = False,
    weighted: bool = False,
    directed: bool | None = None,
    backend: Backend | None = None,
    method: str | None = None,
) -> Betweenness:
    """`scores[v] = sum over s, t of paths(s, t | v) / paths(s, t)`, over shortest paths.

    `paths(s, t)` is the number of shortest paths, `paths(s, t | v)` that of those through v, which
    is neither s nor t. Scaled as in NetworkX.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j.
        sources: (k,) vertices s to sum over, for an estimate; None: all.
        normalized: divide by the number of pairs (s, t) there are; otherwise an undirected graph
            counts each pair once.
        endpoints: whether s and t count as passed.
        weighted: paths are shortest by their sum of weights, all > 0, instead of by edges.
        directed: whether (s, t) and (t, s) are two pairs; None: unless the pattern is symmetric
            (of a traced matrix that is not known, and so directed).
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (one source after the other in C++, on a CPU; "brandes", in native loops,
            where `weighted`), "blocks" (one launch on a GPU,
            each thread block takes one source after the other; for graphs with few edges a vertex),
            "batches" (64 sources or more together, elsewhere), or None to choose so.

    Returns:
        `Betweenness(scores, overflow)`.

    Raises:
        TypeError: G is no graph, `sources` are no integers.
        ValueError: G is not square, a concrete source is out of range, a concrete weight is not
            finite and > 0 (traced: scores are NaN).
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a search and two passes over the edges a source; "blocks" 28 bytes of memory a vertex and
    block, and some microseconds a level; "batches" two products of the pattern
    with an (n, 64) array for each level, weighted two passes over the edges of 32 sources.

    Source: Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical
    Sociology 25, 2001; samples: Brandes, Pich, "Centrality estimation in large networks",
    International Journal of Bifurcation and Chaos 17, 2007.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> jsp.betweenness_centrality(A).scores.tolist()
    [0.0, 1.0, 0.0]
    """
    graph = as_graph(G, "betweenness_centrality", ("bfs", "sssp"))
    n = graph.n
    if weighted:
        with_real_weights(graph, "betweenness_centrality")
        if is_narrow(graph.dtype):  # a path is shortest in float32: rounded sums are not equal
            graph = graph.with_data(graph.data.astype(jnp.float32))
    elif jnp.issubdtype(graph.dtype, jnp.complexfloating):
        graph = graph.with_data(jnp.ones(graph.nse, jnp.float32))
    if directed is None:
        directed = not is_undirected(graph)
        if not (directed or weighted):  # the pattern alone counts: no transpose is computed
            graph = dataclasses.replace(graph, symmetric=True)
    known = is_concrete(graph.data, graph.out.indptr)
    if weighted and known:
        _check_positive(graph)
    every = sources is None
    chosen = np.arange(n, dtype=np.int32) if every else check_source(sources, n, "sources")
    if chosen.ndim != 1:
        raise ValueError(f"`sources` must be a 1-D array of vertices; got shape {chosen.shape}.")
    kind = normalized, directed
    how = {"weighted": weighted, "endpoints": endpoints, "backend": backend, "method": method}
    found = one_program(_scaled, graph, chosen, every=every, kind=kind, **how)
    if not weighted or known:
        return found
    bad = refused(jnp.where(graph.data == 0, -1, graph.data), graph.out.indptr)
    return found._replace(scores=jnp.where(bad, jnp.nan, found.scores))


def _scaled(graph: Graph, sources: Array, *, every: bool, kind: Any, endpoints: bool, **how):
    found = op(graph, sources, endpoints=endpoints, **how)
    given = vertices_of(graph), None if every else sources, graph.n
    factor = _scale(*given, *kind, endpoints=endpoints, dtype=found.scores.dtype)
    return found._replace(scores=found.scores * factor)


def _scale(count, sources, n: int, normalized: bool, directed: bool, *, endpoints: bool, dtype):
    """Number or (n,): what sums over sources are multiplied by; without division by zero.

    The pairs (s, t) that may pass v: N (N - 1) of N = n vertices, or N = n - 1 without v itself.
    Of k sampled sources only k - 1 can pass a source, where its own paths do not count.
    """
    xp = jnp if isinstance(count, Array) else np  # what is known costs no operations
    total = xp.asarray(count, dtype) - (0 if endpoints else 1)
    both = 1 if directed else 2

    def over(taken):
        pairs = taken * (total - 1) if normalized else taken * both
        factor = (1 if normalized else total) / xp.maximum(pairs, 1)
        return xp.where(total < 2, 1, factor).astype(dtype)

    if sources is None:
        return over(total)
    k = xp.asarray(len(sources), dtype)
    if endpoints:
        return over(k)
    sampled = jnp.zeros(n, bool).at[jnp.asarray(sources)].set(True, mode="drop")
    at_sources = xp.where((k > 1) | (total < 2), over(k - 1), np.nan).astype(dtype)
    factor = jnp.where(sampled, at_sources, over(k))
    if xp is np and k != count:
        return factor
    whole = (k == xp.asarray(count, dtype)) & (jnp.sum(sampled) == k)
    return jnp.where(whole, over(total), factor)


def _check_positive(graph: Graph) -> None:
    weights = np.asarray(graph.data)[: int(np.asarray(graph.out.indptr)[-1])]
    wrong = np.flatnonzero(~((weights > 0) & (weights < np.inf)))
    if len(wrong):
        raise ValueError(
            f"weights must be finite and > 0 where paths are counted; slot {wrong[0]} holds "
            f"{weights[wrong[0]]}."
        )


def _types(graph, sources, *, weighted, endpoints):
    return Betweenness(typed(_dtype(graph), graph.n), typed(jnp.bool_))


op = Operation("betweenness_centrality", constant, types=_types)


def _dtype(graph: Graph) -> Any:
    floats = jnp.issubdtype(graph.dtype, jnp.floating)
    return jnp.promote_types(graph.dtype, jnp.float32) if floats else jnp.dtype(jnp.float32)


MOST_EDGES = 6  # a vertex, as planar graphs have; of more edges, searches have few levels
MOST_VERTICES = 2**26  # four words of each


def _not_by_blocks(graph, sources, *, weighted, **_) -> str | None:
    if weighted:
        return "paths of least weight are counted in XLA"
    if _dtype(graph) != jnp.float32:
        return f"paths are counted in float32, not {_dtype(graph)}"
    if graph.nse == 0 or graph.n > MOST_VERTICES:
        return f"{graph.n} vertices and {graph.nse} edges are nothing, or too many for a block"
    if graph.nse > MOST_EDGES * graph.n:
        return f"more than {MOST_EDGES} edges a vertex: its few levels are faster as products"
    return None


@op.register("blocks", backend="pallas", refuse=_not_by_blocks)
def _blocks(graph, sources, *, weighted, endpoints):
    """Each thread block searches and accumulates for one source after the other; one launch."""
    from pallas_kernels.betweenness import betweenness as betweenness_kernel

    del weighted
    out, inn = graph.out, graph.out
    if not graph.symmetric:
        inn = out.T.asformat("csr") if graph.inn is None else graph.inn
    ends = out.indptr, out.indices, inn.indptr, inn.indices
    return Betweenness(*betweenness_kernel(*ends, sources, endpoints=endpoints))


def _not_compiled(graph, sources, *, weighted, **_) -> str | None:
    return "paths of least weight are counted by loops" if weighted else bind.refused()


@op.register("native", backend="cpu", refuse=_not_compiled)
def _native(graph, sources, *, weighted, endpoints):
    """One source after the other, in C++."""
    del weighted
    scores = jax.ShapeDtypeStruct((graph.n,), _dtype(graph))
    results = scores, jax.ShapeDtypeStruct((), jnp.bool_)
    operands = graph.out.indptr, graph.out.indices, sources
    return Betweenness(*bind.call("betweenness", results, *operands, endpoints=int(endpoints)))


def _not_weighted(graph, sources, *, weighted, endpoints) -> str | None:
    return None if weighted else "paths of fewest edges are counted in C++, or in batches"


@op.register("brandes", backend="cpu", refuse=_not_weighted, batched="map")
def _brandes(graph, sources, *, weighted, endpoints):
    """One source after the other, in native loops."""
    dtype, (tail, head) = _dtype(graph), endpoints_of(graph)
    nothing = Betweenness(jnp.zeros(graph.n, dtype), jnp.bool_(False))
    if graph.n == 0 or graph.nse == 0:
        return nothing
    weights = jnp.where(tail < graph.n, graph.data, graph.data.max())
    least, most = jnp.min(weights), jnp.max(weights)

    def ends(far):
        return (far.at[v].get(mode="fill", fill_value=jnp.inf) for v in (tail, head))

    def beyond(far):  # the largest float
        start, end = ends(far)
        return jnp.any((start < jnp.inf) & (end == jnp.inf) & (weights < jnp.inf))

    def vanishing(far):
        start, end = ends(far)
        return jnp.any((start < jnp.inf) & (start == end) & (start + weights == end))

    def add(total, source):
        far, *_, lost, _ = sssp(graph, source, parents=False)
        some, over = by_distance(graph.out, far, source, endpoints, dtype)
        if jnp.issubdtype(far.dtype, jnp.inexact):  # a weight may vanish in a sum
            last = jnp.max(far, initial=0, where=jnp.isfinite(far))
            lost |= lax.cond(last + least == last, vanishing, lambda far: jnp.bool_(False), far)
            lost |= lax.cond(last + most < jnp.inf, lambda far: jnp.bool_(False), beyond, far)
        return Betweenness(total.scores + some, total.overflow | over | lost), None

    return lax.scan(add, nothing, sources)[0]


@op.register("batches")
def _batches(graph, sources, *, weighted, endpoints):
    """A column for each source of a batch, all edges in every step."""
    dtype = _dtype(graph)
    if graph.n == 0 or graph.nse == 0:
        return Betweenness(jnp.zeros(graph.n, dtype), jnp.bool_(False))
    form = by_tight_edges if weighted else by_levels
    return Betweenness(*form(graph, sources, endpoints, dtype))
