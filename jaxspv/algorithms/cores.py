"""Core numbers and k-cores of undirected graphs."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from .._core.eager.arrays import single_numbers
from .._core.eager.programs import one_program
from .._core.operation import Operation, typed
from .._core.platforms import Backend, reaching
from .._core.pytree import result_tuple
from ..formats import CSR
from ..graph import Graph
from ..native import bind
from ..shapes import Count, Int, Matrix
from ..until import iteration_limit
from .common.edges import by_vertex, degrees_without_loops, endpoints_of, kept, no_edges, undirected
from .common.status import finished


@result_tuple
class CoreNumbers(NamedTuple):
    """The result of `core_number`.

    Attributes:
        cores: (n,) int32, the largest k such that the vertex is in the k-core.
        degeneracy: int32, the largest of them.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    cores: Int[Array, " n"]
    degeneracy: Int[Array, ""]
    status: Int[Array, ""]


def core_number(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> CoreNumbers:
    """`cores[v] = max k`: v lies in a subgraph whose vertices all have degree >= k in it.

    Self loops and values are ignored; a vertex without edges, a ghost of `pad` too, has 0.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (vertices in order of degree in C++, on a CPU), "peeling" (rounds over all
            edges, elsewhere), "levels" (one launch on a GPU), or None for the fastest.

    Returns:
        `CoreNumbers(cores, degeneracy, status)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: "native" and "levels" O(n + edges), a pass over the vertices a level more; "peeling" a
    pass over the edges a round, at most n + degeneracy rounds and few on graphs with skewed
    degrees.

    Source: Batagelj, Zaversnik, "An O(m) algorithm for cores decomposition of networks", 2003;
    Seidman, "Network structure and minimum degree", Social Networks 5, 1983.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> jsp.core_number(A).cores.tolist()
    [2, 2, 2, 1]
    """
    graph = undirected(G, "core_number")
    return finished(op(graph, backend=backend, method=method), "core_number")


@reaching
def k_core(
    G: Matrix, k: Count | None = None, *, backend: Backend | None = None, method: str | None = None
) -> CSR:
    """The largest subgraph whose vertices all have degree >= k in it, as a matrix of n vertices.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        k: the least degree; None: the degeneracy, which gives the innermost core.
        backend, method: as for `core_number`.

    Returns:
        A CSR of the entries between vertices of core number >= k, in the capacity of G.

    Raises:
        TypeError: G is no graph, or k no integer.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric; a
            concrete k is negative.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: that of `core_number` and a pass over the entries.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> int(jsp.k_core(A, 2).count)
    6
    """
    graph = undirected(G, "k_core")
    single_numbers(k=0 if k is None else k)
    k = None if k is None else iteration_limit("k", k)  # beyond int32: more than any degree
    inside, found = one_program(_k_core, graph, k, backend=backend, method=method)
    finished(found, "k_core")
    return inside


def _k_core(graph: Graph, k: Count | None, **how: Any) -> tuple[CSR, CoreNumbers]:
    found = op(graph, **how)
    inside = found.cores >= (found.degeneracy if k is None else k)
    tail, head = endpoints_of(graph)
    both = [inside.at[end].get(mode="fill", fill_value=False) for end in (tail, head)]
    return kept(graph.out, both[0] & both[1]), found


op = Operation("core_number", types=by_vertex(CoreNumbers, *[jnp.int32] * 3))


@op.register("levels", backend="pallas", refuse=no_edges)
def _in_one_launch(graph):
    """Levels and rounds of one launch."""
    from pallas_kernels.cores import cores as cores_kernel

    return CoreNumbers(*cores_kernel(graph.out.indptr, graph.out.indices))


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph):
    """Vertices in order of degree, in C++."""
    results = typed(jnp.int32, graph.n), typed(jnp.int32)
    cores, largest = bind.call("cores", results, graph.out.indptr, graph.out.indices)
    return CoreNumbers(cores, largest, jnp.int32(0))


@op.register("peeling")
def _peeling(graph):
    """Each round removes all vertices of degree <= k; if there are none, k rises to the least."""
    n = graph.n
    tail, head = endpoints_of(graph, loops=False)

    def round_(state):
        cores, degree, left, k = state
        k = jnp.maximum(k, jnp.min(jnp.where(left, degree, n), initial=n))
        gone = left & (degree <= k)
        lost = gone.at[tail].get(mode="fill", fill_value=False).astype(jnp.int32)
        degree = degree.at[head].add(-lost, mode="drop")
        return jnp.where(gone, k, cores), degree, left & ~gone, k

    start = (jnp.zeros(n, jnp.int32), degrees_without_loops(graph), jnp.ones(n, bool), jnp.int32(0))
    cores = lax.while_loop(lambda s: jnp.any(s[2]), round_, start)[0]
    return CoreNumbers(cores, jnp.max(cores, initial=0), jnp.int32(0))
