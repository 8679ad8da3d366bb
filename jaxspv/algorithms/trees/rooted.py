"""A spanning tree of what a root is joined to, where it need not be one of shortest paths."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.operation import Operation
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...graph import as_graph
from ...native import bind
from ..bfs.api import op as bfs_op
from ..common.edges import by_vertex
from ..common.sources import check_source, over, path_to
from ..common.status import finished

if TYPE_CHECKING:
    from ...shapes import Count, Int, Matrix, Sources


@result_tuple
class SpanningTree(NamedTuple):
    """The result of `spanning_tree`; a leading axis for several roots.

    Attributes:
        parents: (n,) int32, the next vertex on the way to the root; the root is its own parent, -1
            where the root does not reach.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    parents: Int[Array, "*roots n"]
    status: Int[Array, "*roots"]

    def path_to(self, target: Count) -> Int[np.ndarray, " k"]:
        """Vertices of the path from the root to `target`, both included; empty: unreached."""
        return path_to(self.parents, target)


def spanning_tree(
    G: Matrix, root: Sources, *, backend: Backend | None = None, method: str | None = None
) -> SpanningTree:
    """A tree of the vertices that `root` reaches along edges i -> j stored as A[i, j].

    `A[parents[v], v]` is stored for every v but the root, and `parents[...parents[v]] = root`.

    Which of the trees it is differs from backend to backend, and on a GPU from run to run. On a GPU
    the tree of a deep graph (roads, meshes) takes a fraction of a breadth-first search, whose
    levels come one after the other.

    Args:
        G: a `Graph` from `prepare(A)`, which knows whether it is symmetric, or a square sparse
            matrix; values do not matter.
        root: vertex, or an array of vertices (a leading axis in the result).
        backend: "pallas", "cpu", "xla" or None.
        method: "clusters" (one launch on a GPU, of a `Graph` known to be symmetric, of six entries
            a row in the mean or fewer), "bfs" (the parents of `bfs`, elsewhere), or None.

    Returns:
        `SpanningTree(parents, status)`.

    Raises:
        TypeError: G is no graph, `root` no integer.
        ValueError: G is not square; a concrete root is out of range (under jit: nothing is
            reached).
        NotImplementedError: the form asked for cannot run; says why.

    Cost: O(n + edges); "clusters" has as many steps whatever the diameter, and "bfs" one a level.

    Source: clusters that grow together: Miller, Peng, Xu, "Parallel graph decompositions using
    random shifts", SPAA 2013; Shun, Dhulipala, Blelloch, "A simple and practical linear-work
    parallel algorithm for connectivity", SPAA 2014; the root of their tree: Tarjan, Vishkin, "An
    efficient parallel biconnectivity algorithm", SIAM J. Computing 14, 1985.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(4, 4))
    >>> jsp.spanning_tree(jsp.prepare(A), 2).parents.tolist()
    [1, 2, 2, -1]
    """
    graph = as_graph(G, "spanning_tree", ("bfs",))
    root = check_source(root, graph.n, "root")

    def one(v):
        return op(graph, v, backend=backend, method=method)

    return finished(over(root, one)(root), "spanning_tree")


op = Operation("spanning_tree", types=by_vertex(SpanningTree, jnp.int32, jnp.int32))
THIN = 6  # mean entries of a row of a graph that may be deep


def _not_in_clusters(graph, root) -> str | None:
    from pallas_kernels.trees.rooted import MOST

    del root
    if graph.n == 0 or graph.nse == 0:
        return "there is nothing to join"
    if not graph.symmetric:
        return "the graph is not known to have both directions of every edge"
    if graph.nse > THIN * graph.n:
        return f"it has more than {THIN} entries a vertex, and so few levels: BFS is faster"
    if graph.n > MOST:
        return f"{graph.n} vertices exceed the {MOST} that its int32 places allow"
    return None


@op.register("clusters", backend="pallas", refuse=_not_in_clusters)
def _clusters(graph, root):
    """Clusters that grow together, joined to a tree that is rooted last, in one launch."""
    from pallas_kernels.trees.rooted import spanning_tree as kernel

    parents, status, _ = kernel(graph.out.indptr, graph.out.indices, root)
    return SpanningTree(parents, status)


@op.register("bfs")
@op.register("bfs", backend="cpu", refuse=bind.refused)
@op.register("bfs", backend="pallas")
def _bfs(graph, root):
    """The parents of a breadth-first search."""
    found = bfs_op(graph, root, None, parents=True, deterministic=False, bounds=())
    return SpanningTree(found.parents, found.status)
