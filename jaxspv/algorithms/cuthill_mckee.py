"""Reverse Cuthill-McKee: an order of the vertices in which neighbours are near each other."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from .._core.loops import while_going
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from ..algebra.semirings import min_plus
from ..graph import Graph
from ..native import bind
from ..shapes import Int, Matrix
from .common.edges import degrees_without_loops, endpoints_of, undirected
from .components import connected_components
from .fixpoint.api import fixpoint


def reverse_cuthill_mckee(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Int[Array, " n"]:
    """An order of the vertices in which `max |order^-1(i) - order^-1(j)|` over edges is small.

    Breadth-first search from a root of each component, neighbours in order of degree, and the
    result reversed: `jsp.extract(A, order, order)` has its entries near the diagonal. The root is a
    pseudo-peripheral vertex (George and Liu): a search starts from the last level's vertex of least
    degree, as long as it finds more levels. The level of v is its distance from the root. Within a
    level vertices are sorted by their first neighbour in the level before, then by degree, then by
    number.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern; values and self loops do
            not matter.
        backend: "cpu", "xla" or None.
        method: "native" (C++, on a CPU), "levels" (a sort of the vertices for each level,
            elsewhere), or None for these. Both give the same order.

    Returns:
        (n,) int32: `order[k]` is the vertex in place k. Components follow each other, the one of
        the smallest vertex last. Ghosts of `pad` are left out, and n stands in the last places.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: some searches of each component; "native" O(n log n + edges) each, "levels" searches all
    components together, with a pass over the edges and a sort of the vertices a level.

    Source: Cuthill, McKee, "Reducing the bandwidth of sparse symmetric matrices", ACM National
    Conference 1969; George, Liu, "An implementation of a pseudoperipheral node finder", ACM TOMS 5,
    1979; level by level: Azad, Jacquelin, Buluc, Ng, "The reverse Cuthill-McKee algorithm in
    distributed-memory", IPDPS 2017.

    >>> import jaxspv as jsp
    >>> path = jsp.from_edges([0, 2, 2, 1, 1, 3], [2, 0, 1, 2, 3, 1], shape=(4, 4))
    >>> jsp.reverse_cuthill_mckee(path).tolist()
    [3, 1, 2, 0]
    """
    return op(undirected(G, "reverse_cuthill_mckee"), backend=backend, method=method)


op = Operation("reverse_cuthill_mckee", types=lambda graph: typed(jnp.int32, graph.n))


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph: Graph) -> Array:
    """A component after the other, in C++."""
    exists = jnp.zeros(0, bool) if graph.exists is None else graph.exists
    operands = graph.out.indptr, graph.out.indices, exists
    return bind.call("reverse_cuthill_mckee", typed(jnp.int32, graph.n), *operands)


@op.register("levels")
def _backwards(graph: Graph) -> Array:
    """A level of all components after the other, and that order reversed."""
    n = graph.n
    if n == 0:
        return jnp.zeros(0, jnp.int32)
    degree, labels = degrees_without_loops(graph), connected_components(graph).labels
    labels = jnp.where(labels < 0, n, labels)
    order = _levels(graph, _ends(graph, degree, labels), degree, labels)
    place = jnp.sum(order < n, dtype=jnp.int32) - 1 - jnp.arange(n, dtype=jnp.int32)
    return jnp.where(place >= 0, order[place], n)


def _ends(graph: Graph, degree: Array, labels: Array) -> Array:
    """(n,) a vertex far from others of each component, by its smallest; n where none is that."""
    n, vertex = graph.n, jnp.arange(graph.n, dtype=jnp.int32)
    hops = graph.with_data(jnp.ones(graph.nse, jnp.int32))

    def least(chosen: Array) -> Array:
        """Of the chosen vertices of each component the one of least degree, then number."""
        place = jnp.where(chosen, labels, n)
        low = jnp.full(n, n, jnp.int32).at[place].min(degree, mode="drop")
        lowest = degree == low.at[place].get(mode="fill", fill_value=-1)
        return jnp.full(n, n, jnp.int32).at[jnp.where(lowest, place, n)].min(vertex, mode="drop")

    def search(roots: Array) -> tuple[Array, Array]:
        """Hops from the roots, and the most of them in each component."""
        start = jnp.full(n, jnp.iinfo(jnp.int32).max, jnp.int32).at[roots].set(0, mode="drop")
        levels = fixpoint(hops, start, min_plus, monotone=True).x
        return levels, jnp.full(n, -1, jnp.int32).at[labels].max(levels, mode="drop")

    def further(state):
        roots, levels, depth, _ = state
        new_roots = least(levels == depth.at[labels].get(mode="fill", fill_value=-1))
        new_levels, new_depth = search(new_roots)
        better = new_depth > depth
        mine = better.at[labels].get(mode="fill", fill_value=False)
        return (
            jnp.where(better, new_roots, roots),
            jnp.where(mine, new_levels, levels),
            jnp.where(better, new_depth, depth),
            jnp.any(better),
        )

    roots = least(labels < n)
    return while_going(further, (roots, *search(roots), jnp.bool_(True)), together=True)[0]


def _levels(graph: Graph, roots: Array, degree: Array, labels: Array) -> Array:
    """All components together: `first = places (min.first) A`, then a sort by (first, degree)."""
    n, (tail, head) = graph.n, endpoints_of(graph)
    vertex = jnp.arange(n, dtype=jnp.int32)

    def level(state):
        place, done, _ = state
        before = place.at[tail].get(mode="fill", fill_value=n)
        first = jnp.full(n, n, jnp.int32).at[head].min(before, mode="drop")
        new = (place == n) & (first < n)
        *_, order = lax.sort((jnp.where(new, first, n), degree, vertex), num_keys=3)
        count = jnp.sum(new, dtype=jnp.int32)
        place = place.at[jnp.where(vertex < count, order, n)].set(done + vertex, mode="drop")
        return place, done + count, count > 0

    count = jnp.sum(roots < n, dtype=jnp.int32)
    number = jnp.cumsum(roots < n, dtype=jnp.int32) - 1
    place = jnp.full(n, n, jnp.int32).at[roots].set(number, mode="drop")
    place, count, _ = while_going(level, (place, count, count > 0), together=True)
    *_, order = lax.sort((labels, place, vertex), num_keys=2)
    return jnp.where(vertex < count, order, n)
