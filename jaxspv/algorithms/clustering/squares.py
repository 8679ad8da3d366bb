"""Square clustering and triangle centrality: what lies around a vertex two steps away."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.programs import one_program
from ..._core.native_loops import each, once, read, write
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend, reaching
from ..._core.reductions import rounded, sum_in_double
from ...algebra.monoids import plus
from ...graph import Graph
from ...ops.write_rule.slots import chosen_slots
from ...shapes import Float, Matrix
from ..common.derivatives import constant
from ..common.edges import degrees_without_loops, endpoints_of, undirected
from ..triangles import of_vertices
from .trusses import k_truss

TOGETHER = 32  # vertices of a batch


@reaching
def square_clustering(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Float[Array, " n"]:
    """`C4(v)`: squares through v among those that its pairs of neighbours could close.

    With q(v) the squares through v, d degrees, t triangles: `C4 = q / ((d - 1) (sum of the
    neighbours' d - d) - q - 2 t)`. Self loops are ignored.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        backend: "cpu", "xla" or None.
        method: "paths" (native loops over paths of two edges, on a CPU), "columns" (products with
            32 columns, elsewhere), or None to choose so.

    Returns:
        (n,) float32; 0 where no square is possible, for ghosts of `pad` too.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: the paths of two edges; "columns" n / 32 passes over the edges for 32 columns.

    Source: Lind, Gonzalez, Herrmann, "Cycles and clustering in bipartite networks", Physical Review
    E 72, 2005; Zhang et al., "Clustering coefficient and community structure of bipartite
    networks", Physica A 387, 2008.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 3, 3, 0], [1, 0, 2, 1, 3, 2, 0, 3], shape=(4, 4))
    >>> jsp.square_clustering(A).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    graph = undirected(G, "square_clustering")
    return one_program(_square_clustering, graph, backend=backend, method=method)


def _square_clustering(graph: Graph, *, backend, method) -> Array:
    squares = squares_of(graph, backend=backend, method=method)
    degree = degrees_without_loops(graph).astype(jnp.float32)
    triangles = of_vertices(graph).astype(jnp.float32)
    around = _sums(graph, degree)
    possible = (degree - 1) * (around - degree) - squares - 2 * triangles
    return jnp.where(possible > 0, squares / jnp.where(possible > 0, possible, 1), 0)


def triangle_centrality(G: Matrix) -> Float[Array, " n"]:
    """The share of all triangles that lie at a vertex or at its neighbours.

    `(3 A y - 2 T y + y) / sum(y)` with y the triangles of each vertex and T the edges that lie in
    one: those of neighbours that share a triangle with the vertex count a third.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern; self loops are ignored.

    Returns:
        (n,) float32; 0 without any triangle, and for ghosts of `pad`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.

    Cost: that of `clustering` and of `k_truss(G, 3)`.

    Source: Burkhardt, "Triangle centrality", arXiv 2105.00110, 2021.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> jsp.triangle_centrality(A).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    return one_program(_triangle_centrality, undirected(G, "triangle_centrality"))


def _triangle_centrality(graph: Graph) -> Array:
    n = graph.n
    if graph.nse == 0:
        return jnp.zeros(n, jnp.float32)
    y = of_vertices(graph).astype(jnp.float32)
    row, col = k_truss(graph, 3).rowcol()  # the edges that lie in a triangle
    near = sum_in_double(y.at[col].get(mode="fill", fill_value=0), row, n)
    total = jnp.sum(y)
    score = 3 * _sums(graph, y) - 2 * near + y
    return score / jnp.where(total > 0, total, 1)


def _sums(graph: Graph, x: Array) -> Array:
    """(n,) the sums of x over the neighbours of each vertex."""
    tail, head = endpoints_of(graph, loops=False)
    return sum_in_double(x.at[head].get(mode="fill", fill_value=0), tail, graph.n)


squares_of = Operation(
    "squares of vertices", constant, types=lambda graph: typed(jnp.float32, graph.n)
)


@squares_of.register("paths", backend="cpu")
def _paths(graph: Graph) -> Array:
    """Each square is found at its vertex v of most neighbours (of these, the largest number).

    With c(x) the paths v - u - x over vertices below v, each of them closes c(x) - 1 squares at u,
    and half of these at v and at x. `count` holds c; it is 0 between vertices. Chiba, Nishizeki,
    SIAM J. Computing 14 (1), 1985: at most O(edges^1.5) steps.
    """
    n, indptr, indices = graph.n, graph.out.indptr, graph.out.indices
    if n == 0 or graph.nse == 0:
        return jnp.zeros(n, jnp.float32)
    wide, joined = plus.one_by_one(jnp.float32)  # above 2^24 squares float32 is not exact
    degree = jnp.diff(indptr)

    def row(u):
        return read(indptr, u), read(indptr, u + 1)

    def paths(v, visit, finish, *state):
        """visit(x, *state) for all paths v - u - x; finish(u, *state) after those of each u."""
        most = read(degree, v)

        def below(u):
            d = read(degree, u)
            return (d < most) | ((d == most) & (u < v))

        def middle(e, *state):
            u = read(indices, e)

            def end(f, *state):
                x = read(indices, f)
                return once(below(x) & (x != u), lambda *s: visit(x, *s), *state)

            return once(below(u), lambda *s: finish(u, *each(*row(u), end, *s)), *state)

        return each(*row(v), middle, *state)

    def vertex(k, squares, count):
        v = read(order, k)

        def add(x, count):
            return (write(count, x, read(count, x) + 1),)

        def close(x, at_v, at_u, squares, count):
            closed = read(count, x) - 1
            squares = write(squares, x, joined(read(squares, x), closed / 2))
            return joined(at_v, closed / 2), joined(at_u, closed), squares, count

        def at_middle(u, at_v, at_u, squares, count):
            return at_v, zero, write(squares, u, joined(read(squares, u), at_u)), count

        def forget(x, count):
            return (write(count, x, rounded(at_v, count.dtype) * 0),)  # after all reads: in place

        (count,) = paths(v, add, lambda u, count: (count,), count)
        at_v, _, squares, count = paths(v, close, at_middle, zero, zero, squares, count)
        (count,) = paths(v, forget, lambda u, count: (count,), count)
        return write(squares, v, joined(read(squares, v), at_v)), count

    nothing, zero = jnp.zeros(n, jnp.float32), rounded(jnp.float32(0), wide)
    order, size = chosen_slots(degree > 1, capacity=n, dtype=jnp.int32)  # not those without squares
    squares, _ = each(0, size, vertex, rounded(nothing, wide), nothing)
    return rounded(squares, nothing.dtype)


@squares_of.register("columns")
def _columns(graph: Graph) -> Array:
    """Columns of A A, 32 at a time: p paths of two edges to a vertex are p (p - 1) / 2 squares."""
    n = graph.n
    tail, head = endpoints_of(graph, loops=False)
    rounds = -(-n // TOGETHER)
    first = np.arange(rounds, dtype=np.int32) * TOGETHER

    def some(first):
        mine = jnp.where((tail >= first) & (tail < first + TOGETHER), tail - first, TOGETHER)
        X = jnp.zeros((n, TOGETHER), jnp.float32).at[head, mine].set(1, mode="drop")
        P = jnp.zeros_like(X).at[tail].add(X.at[head].get(mode="fill", fill_value=0), mode="drop")
        vertex = jnp.arange(n, dtype=jnp.int32)[:, None]
        other = vertex != first + jnp.arange(TOGETHER, dtype=jnp.int32)
        return jnp.sum(jnp.where(other, P * (P - 1) / 2, 0), axis=0)

    return lax.map(some, jnp.asarray(first)).reshape(-1)[:n]
