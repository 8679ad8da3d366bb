"""Louvain: communities of large modularity, by moves of vertices and then of communities."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import single_numbers
from ..._core.eager.programs import one_program
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend, reaching
from ..._core.pytree import result_tuple
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Float, Int, Matrix, Real
from ..common.derivatives import constant
from ..common.edges import endpoints_of, undirected, without_ghosts
from ..common.status import finished
from ..common.weights import check_weights, with_real_weights
from .modularity import edge_weights, modularity

SWEEPS, LEVELS = 64, 32
# a level ends after PATIENCE sweeps in a row that raise the modularity by at most ENOUGH
PATIENCE = 2
ENOUGH = 1e-4
LEAST = 1e-6  # the levels end with one that raises the modularity by at most this
SHARES = (4, 32)  # arrays shrink once edges are at most a fourth, then a thirty-second
MIN_CAPACITY = 2**16  # with fewer edges, arrays never shrink
MOST = 2**30  # the sum of all weights, as integers


@result_tuple
class Communities(NamedTuple):
    """The result of `louvain`.

    Attributes:
        labels: (n,) int32, the smallest vertex of the community of each; -1 for ghosts of `pad`.
        count: int32, the number of communities.
        modularity: of the labels.
        levels: int32, how often communities were joined.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    labels: Int[Array, " n"]
    count: Int[Array, ""]
    modularity: Float[Array, ""]
    levels: Int[Array, ""]
    status: Int[Array, ""]


@reaching
def louvain(
    G: Matrix,
    *,
    resolution: Real = 1.0,
    weighted: bool = True,
    backend: Backend | None = None,
    method: str | None = None,
) -> Communities:
    """Communities of an undirected graph, of large modularity.

    A vertex moves to the community of a neighbour where `w(v, c) - resolution k(v) k(c) / 2m` is
    largest, k the sums of weights, until none moves. Then each community becomes one vertex, edges
    between two communities are summed, and the moves start again, until no communities are joined.
    On a CPU vertices move one after the other. Elsewhere many move in the same step, so that the
    communities may differ; their modularity is similar.

    Args:
        G: a `Graph` or a symmetric sparse matrix of weights >= 0.
        resolution: larger ones favour smaller communities.
        weighted: whether values are weights; otherwise each entry counts 1.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "in_kernels" (a launch a level on a GPU),
            "vectorised" (elsewhere), or None to choose so.

    Returns:
        `Communities(labels, count, modularity, levels, status)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or where it is concrete its pattern or its weights are not
            symmetric, or a weight is negative, infinite or NaN (traced: `modularity` is NaN).
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a pass over the edges for each sweep, at most 64 sweeps a level and 32 levels;
    "vectorised" sorts the edges in each sweep.

    Source: Blondel, Guillaume, Lambiotte, Lefebvre, "Fast unfolding of communities in large
    networks", Journal of Statistical Mechanics, 2008; parallel: Lu, Halappanavar, Kalyanaraman,
    "Parallel heuristics for scalable community detection", Parallel Computing 47, 2015.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 2, 3], [1, 0, 3, 2], shape=(4, 4))
    >>> jsp.louvain(A).labels.tolist()
    [0, 0, 2, 2]
    """
    graph = as_graph(G, "louvain", ())
    if weighted:
        check_weights(with_real_weights(graph, "louvain"))
    elif jnp.issubdtype(graph.dtype, jnp.complexfloating):
        graph = graph.with_data(jnp.ones(graph.nse, jnp.float32))
    undirected(graph, "louvain", values=weighted)
    single_numbers(resolution=resolution)
    how = {"weighted": weighted, "backend": backend, "method": method}
    found = one_program(_louvain, graph, jnp.asarray(resolution, jnp.float32), **how)
    return finished(found, "louvain")


def _louvain(graph: Graph, resolution: Array, *, weighted, backend, method) -> Communities:
    how = {"weighted": weighted, "backend": backend, "method": method}
    labels, count, levels, status = op(graph, resolution, **how)
    quality = modularity(graph, labels, resolution=resolution, weighted=weighted, directed=False)
    return Communities(labels, count, quality, levels, status)


def _types(graph, resolution, *, weighted):
    return typed(jnp.int32, graph.n), typed(jnp.int32), typed(jnp.int32), typed(jnp.int32)


op = Operation("louvain", constant, types=_types)


def _named(moved):
    """Communities by their least vertices, of weights in float32; -1 for ghosts of `pad`."""

    def run(graph, resolution, *, weighted):
        vertex = jnp.arange(graph.n, dtype=jnp.int32)
        labels, levels, status = vertex, jnp.int32(0), jnp.int32(0)
        if graph.n and graph.nse:
            weights = edge_weights(graph, weighted=weighted, directed=False).astype(jnp.float32)
            found, levels, status = moved(graph, weights, resolution)
            labels = jnp.full(graph.n, graph.n, jnp.int32).at[found].min(vertex)[found]
        labels = without_ghosts(graph, labels, -1)
        return labels, jnp.sum(labels == vertex, dtype=jnp.int32), levels, status

    return run


def _not_in_kernels(graph, resolution, *, weighted) -> str | None:
    if graph.n == 0 or graph.nse == 0:
        return "there are no edges"
    if graph.nse > MOST:
        return f"{graph.nse} entries exceed the {MOST} that its sums of int32 allow"
    return None


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph, resolution, *, weighted):
    """One vertex after the other, in C++."""
    out, results = graph.out, _types(graph, resolution, weighted=weighted)[:3]
    weights = edge_weights(graph, weighted=weighted, directed=True)  # loops double in C++
    operands = out.indptr, out.indices, weights.astype(jnp.float32), resolution
    labels, levels, count = bind.call("louvain", results, *operands)
    if graph.exists is not None:
        labels = jnp.where(graph.exists, labels, -1)
        count = jnp.sum(labels == jnp.arange(graph.n), dtype=jnp.int32)
    return labels, count, levels, jnp.int32(0)


# ---- Half of the vertices move at a time: in one launch a level, or by sorts ----


class Edges(NamedTuple):
    """Edges between the communities of the last level; one of its vertices names a community."""

    tail: Array
    head: Array
    weight: Array


def vectorised(
    graph: Graph, weights: Array, resolution: Array, moved: Callable | None = None
) -> tuple[Array, Array, Array]:
    """(n,) the community of each vertex, named by one of its vertices; number of levels; a status.

    After each level, parallel edges between two communities become one; once few edges are left,
    later levels run in smaller arrays. `moved(n, edges, k, per, factor)`: (n,) the communities of a
    level, a status; k: (n,) the sums of weights of vertices, per: 1 over that of all, factor: the
    resolution over it.
    """
    moved = moved or _moved
    n, nse = graph.n, graph.nse
    edges = Edges(*endpoints_of(graph), weights)
    capacities = [nse, *(nse // share for share in SHARES)] if nse >= MIN_CAPACITY else [nse]
    vertex = jnp.arange(n, dtype=jnp.int32)
    k, total = _sums_of_rows(n, graph.out.indptr, edges), jnp.sum(weights)
    per = jnp.where(total > 0, 1 / jnp.where(total > 0, total, 1), 0).astype(jnp.float32)
    factor = resolution * per
    state = vertex, jnp.float32(-np.inf), jnp.int32(0), jnp.bool_(True), jnp.int32(nse)
    state = *state, jnp.int32(0), k
    for capacity, less in zip(capacities, [*capacities[1:], -1], strict=True):
        edges = Edges(edges.tail[:capacity], edges.head[:capacity], edges.weight[:capacity])

        def level(carry):
            (member, quality, number, _, _, _, k), edges = carry
            group, status = moved(n, edges, k, per, factor)
            edges, count = _joined(n, edges, group)
            k = _sums(k, group)
            best = _quality(edges, k, per, factor)
            better = best > quality + LEAST
            member = jnp.where(better, group.at[member].get(mode="clip"), member)
            return (member, best, number + better, better, count, status, k), edges

        def going(carry, less=less):
            _, _, number, better, count, status, _ = carry[0]
            return better & (status == 0) & (number < LEVELS) & (count > less)

        state, edges = lax.while_loop(going, level, (state, edges))
    return state[0], state[2], state[5]


def _sums_of_rows(n: int, indptr: Array, edges: Edges) -> Array:
    """(n,) the sum of the weights of each row. Of integers, which are exact, as differences of sums
    up to a place: scatters to sorted places are slow on a GPU."""
    if jnp.issubdtype(edges.weight.dtype, jnp.integer):
        return jnp.diff(_sums_before(edges.weight)[indptr])
    return jnp.zeros(n, edges.weight.dtype).at[edges.tail].add(edges.weight, mode="drop")


def _sums_before(weight: Array) -> Array:
    """The sum before each place, and that of all."""
    return jnp.append(jnp.zeros(1, weight.dtype), jnp.cumsum(weight, dtype=weight.dtype))


def _sums(k: Array, group: Array) -> Array:
    """(n,) the sum of k over each community."""
    return jnp.zeros_like(k).at[group].add(k)


def _between(n: int, edges: Edges, group: Array) -> Edges:
    """The edges between the groups of their vertices."""
    tail, head = (group.at[v].get(mode="fill", fill_value=n) for v in edges[:2])
    return Edges(tail, head, edges.weight)


def _joined(n: int, edges: Edges, group: Array) -> tuple[Edges, Array]:
    """The edges between groups, one for each pair, at the front of the arrays; their number."""
    tail, head, weight = _by_vertex_and_group(n, _between(n, edges, group))
    nse = tail.shape[0]
    new = jnp.append(True, (tail[1:] != tail[:-1]) | (head[1:] != head[:-1])) & (tail < n)
    run = jnp.cumsum(new, dtype=jnp.int32)
    place, slot = jnp.where(new, run - 1, nse), jnp.arange(nse, dtype=jnp.int32)
    first = jnp.full(nse, nse, jnp.int32).at[place].set(slot, mode="drop")
    if jnp.issubdtype(weight.dtype, jnp.integer):
        weight = jnp.diff(_sums_before(weight)[jnp.append(first, nse)])
    else:
        weight = jnp.zeros_like(weight).at[run - 1].add(weight)  # that of padding is 0
    tail, head = (v.at[first].get(mode="fill", fill_value=n) for v in (tail, head))
    return Edges(tail, head, weight), run[-1]


def _quality(edges: Edges, sums: Array, per: Array, factor: Array) -> Array:
    """The modularity of communities: of the edges between them and their sums of weights."""
    inside = jnp.sum(jnp.where(edges.tail == edges.head, edges.weight, 0))
    return inside * per - factor * jnp.sum(sums * (sums * per))


def _moved(n: int, edges: Edges, k: Array, per: Array, factor: Array) -> tuple[Array, Array]:
    """(n,) the best communities that the sweeps found, named by a vertex; 0."""
    vertex = jnp.arange(n, dtype=jnp.int32)

    def sweep(state):
        group, best, most, number, idle = state
        sums = _sums(k, group)
        size = jnp.zeros(n, jnp.int32).at[group].add(jnp.where(k > 0, 1, 0))
        gain, target = _best_moves(n, edges, group, sums, k, factor)
        # Two vertices, each alone in its community, would swap communities forever.
        lone = (size[group] == 1) & (size.at[target].get(mode="clip") == 1)
        mixed = vertex * np.int32(-1640531535) + number * np.int32(40503)  # int32 under x64, too
        chance = ((mixed ^ (mixed >> 15)) * np.int32(-2048144777)) >> 31
        wants = (gain > 0) & ~(lone & (target > group))
        moves = wants & (chance == 0)
        group = jnp.where(moves, target, group)
        now = _quality(_between(n, edges, group), _sums(k, group), per, factor)
        best = jnp.where(now > most, group, best)
        waits = jnp.any(wants) & ~jnp.any(moves)  # all that would move were left out by chance
        idle = jnp.where(now > most + ENOUGH, 0, idle + ~waits)
        return group, best, jnp.maximum(most, now), number + 1, idle

    first = (vertex, vertex, _quality(edges, k, per, factor), jnp.int32(0), jnp.int32(0))
    going = lambda s: (s[3] < SWEEPS) & (s[4] < PATIENCE)  # noqa: E731
    return lax.while_loop(going, sweep, first)[1], jnp.int32(0)


def _best_moves(n, edges: Edges, group, sums, k, factor) -> tuple[Array, Array]:
    """(n,) the gain of the best move of each vertex over staying; the community that it moves
    to."""
    to = group.at[edges.head].get(mode="fill", fill_value=n)
    weight = jnp.where(edges.tail == edges.head, 0, edges.weight)
    v, c, w = _by_vertex_and_group(n, Edges(edges.tail, to, weight))
    new = jnp.append(True, (v[1:] != v[:-1]) | (c[1:] != c[:-1]))
    run = jnp.cumsum(new, dtype=jnp.int32) - 1
    weight_to = jnp.zeros(v.shape[0], jnp.float32).at[run].add(w)[run]
    mine = k.at[v].get(mode="fill", fill_value=0)
    own = group.at[v].get(mode="fill", fill_value=n)
    others = sums.at[c].get(mode="fill", fill_value=0) - jnp.where(c == own, mine, 0)
    value = jnp.where(v < n, weight_to - factor * mine * others, -jnp.inf)
    stay = -factor * k * (sums[group] - k)  # if no neighbour is in the same community
    stay = stay.at[jnp.where(c == own, v, n)].max(value, mode="drop")
    most = jnp.full(n, -jnp.inf, jnp.float32)
    most = most.at[jnp.where(c != own, v, n)].max(value, mode="drop")
    wins = (c != own) & (value == most.at[v].get(mode="fill", fill_value=jnp.inf))
    target = jnp.full(n, n, jnp.int32).at[jnp.where(wins, v, n)].min(c, mode="drop")
    return jnp.where(target < n, most - stay, -jnp.inf), target


def _by_vertex_and_group(n: int, edges: Edges) -> Edges:
    """The edges sorted by (tail, head): two stable sorts by one key, which are fastest on a GPU.

    Keys of 16 bits: XLA calls CUB for them, and compiles sorts of few keys of 32 bits.
    """
    tail, head, weight = edges
    key = jnp.uint16 if n < 2**16 else jnp.uint32
    slot = jnp.arange(tail.shape[0], dtype=jnp.int32)
    sort = functools.partial(lax.sort, num_keys=1, is_stable=True)
    slot = sort((head.astype(key), slot))[1]
    tail, slot = sort((tail[slot].astype(key), slot))
    return Edges(tail.astype(jnp.int32), head[slot], weight[slot])


def in_kernels(graph: Graph, weights: Array, resolution: Array) -> tuple[Array, Array, Array]:
    """As `vectorised`; weights become integers, so that the order of additions does not matter."""
    return vectorised(graph, _integers(weights), resolution, _moved_in_kernel)


def _integers(weights: Array) -> Array:
    """int32 in proportion to float32 weights: themselves if they are integers of a small sum."""
    total = jnp.sum(weights)
    whole = jnp.all(weights == jnp.round(weights)) & (total < MOST)
    scale = jnp.where(whole | (total == 0), 1, MOST / jnp.where(total == 0, 1, total))
    return jnp.round(weights * scale).astype(jnp.int32)


def _moved_in_kernel(
    n: int, edges: Edges, k: Array, per: Array, factor: Array
) -> tuple[Array, Array]:
    """(n,) communities, each named by a vertex; the status of the kernel."""
    from pallas_kernels.communities.louvain import moves

    del per
    bounds = jnp.arange(n + 1, dtype=jnp.int32)
    indptr = jnp.searchsorted(edges.tail, bounds, method="scan_unrolled")
    return moves(indptr, edges.head, edges.weight, k, factor)


op.register("in_kernels", backend="pallas", refuse=_not_in_kernels)(_named(in_kernels))
op.register("vectorised")(_named(vectorised))
