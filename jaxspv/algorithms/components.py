"""Connected components, each named by its smallest vertex; bipartitions, found by components."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from .._core.eager.programs import one_program
from .._core.forms import overloadable
from .._core.loops import while_going
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from .._core.pytree import result_tuple
from ..formats import CSR
from ..graph import Graph, as_graph
from ..native import bind
from ..shapes import Bool, Int, Matrix
from ..sharding.exchange import Local, on_mesh
from ..sharding.operation import mesh_op, one_kernel_refused
from .common.edges import by_vertex, endpoints_of, no_edges, without_ghosts
from .common.status import finished


@result_tuple
class Components(NamedTuple):
    """The result of `connected_components`.

    Attributes:
        labels: (n,) int32, the smallest vertex of the component of each vertex.
        count: int32, the number of components.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    labels: Int[Array, " n"]
    count: Int[Array, ""]
    status: Int[Array, ""]


@overloadable
def connected_components(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Components:
    """The weak components: u and v share one if edges, taken in either direction, join them.

    Args:
        G: a `Graph` (which knows whether it is symmetric) or a square sparse matrix; values do not
            matter.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: name of an implementation, see `explain`.

    Returns:
        `Components(labels, count, status)`; `labels[v]` is the smallest vertex that v is joined to.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a pass over the edges per round, O(log n) rounds on most graphs; on a CPU one pass.

    Source: Zhang, Azad, Hu, "FastSV: a distributed-memory connected component algorithm with fast
    convergence", SIAM PP 2020; Sutton, Ben-Nun, Barak, "Optimizing parallel graph connectivity
    computation via subgraph sampling" (Afforest), IPDPS 2018; Tarjan, van Leeuwen, "Worst-case
    analysis of set union algorithms", J. ACM 1984.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([4, 1], [1, 2], shape=(5, 5))
    >>> connected_components(A).labels.tolist()
    [0, 1, 1, 3, 1]
    """
    graph = as_graph(G, "connected_components", ())
    return finished(op(graph, backend=backend, method=method), "connected_components")


op = Operation("connected_components", types=by_vertex(Components, *[jnp.int32] * 3))


@op.register("afforest", backend="pallas", refuse=no_edges)
def _afforest(graph):
    """Hooking of a few sampled edges, compression, then the rest, in one launch."""
    from pallas_kernels.components.one_gpu import components as components_kernel

    out = graph.out
    labels, status, count = components_kernel(out.indptr, out.indices, symmetric=graph.symmetric)
    return named_components(labels, graph, status, count)


def hooked(labels: Array, tail: Array, head: Array) -> tuple[Array, Array]:
    """(labels, whether any changed) after one round: the lower label of an edge goes to its ends
    and to what their labels name, then labels jump to the labels of their labels.

    tail, head: ends of the edges; both n, the number of labels, where there is none.
    """
    n = labels.shape[0]
    if n == 0:
        return labels, jnp.asarray(False)
    ends = [jnp.take(labels, v, mode="clip") for v in (tail, head)]
    low = jnp.minimum(*ends)
    new = labels
    for place in (tail, head, *(jnp.where(tail < n, end, n) for end in ends)):
        new = new.at[place].min(low, mode="drop")
    new = jnp.minimum(new, new[new])
    return new, jnp.any(new != labels)


@op.register("native", backend="cpu", refuse=bind.refused, batched="vmap")
def _native(graph):
    """Afforest in C++."""
    out, results = graph.out, (typed(jnp.int32, graph.n), typed(jnp.int32))
    symmetric = graph.symmetric
    labels, count = bind.call("components", results, out.indptr, out.indices, symmetric=symmetric)
    return named_components(labels, graph, jnp.int32(0), count)


@op.register("fastsv")
def _fastsv(graph):
    """Each round hooks the larger label of an edge's endpoints to the smaller and halves the paths.

    Labels only fall, and `labels[v]` is always a vertex of the component of v that is <= v; where a
    round changes nothing both ends of every edge agree, hence on the smallest vertex.
    """
    n = graph.n
    tail, head = endpoints_of(graph)

    def round_(state):
        return hooked(state[0], tail, head)

    start = (jnp.arange(n, dtype=jnp.int32), jnp.asarray(n > 0))
    labels, _ = while_going(round_, start, together=True)
    return named_components(labels, graph, jnp.int32(0))


def named_components(
    labels: Array, graph: Graph, status: Array, count: Array | None = None
) -> Components:
    """The result of labels that are the least vertices of their components; ghosts have -1.

    count: how many there are with the ghosts, if known: a sum takes 0.1 s to compile.
    """
    named = without_ghosts(graph, labels, -1)
    if count is None:
        return counted(named, status)
    if graph.num_vertices is not None:
        count = count - (graph.n - graph.num_vertices)  # each ghost is a component
    return Components(named, count, status)


def counted(labels: Array, status: Array) -> Components:
    """The result of labels that are the least vertices of their components."""
    own = labels == jnp.arange(labels.shape[0], dtype=jnp.int32)
    return Components(labels, jnp.sum(own, dtype=jnp.int32), status)


# ---- Bipartitions ----


@result_tuple
class Bipartition(NamedTuple):
    """The result of `bipartition`.

    Attributes:
        bipartite: bool, whether every edge joins the two sides.
        sides: (n,) int32, 0 for the smallest vertex of each component and for all at an even
            distance, 1 for the rest; -1 in components with a cycle of odd length, and for ghosts.
    """

    bipartite: Bool[Array, ""]
    sides: Int[Array, " n"]


def bipartition(G: Matrix) -> Bipartition:
    """The two sides of each component, edges taken in either direction.

    Taken are two copies v, v' of every vertex, and edges u - v' and u' - v for each edge u - v. A
    component with a cycle of odd length stays one component there. Any other falls into two, each
    of one side v and the copies v' of the other side.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.

    Returns:
        `Bipartition(bipartite, sides)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square.

    Cost: that of `connected_components` of a graph of twice the size.

    Source: the bipartite double cover, e.g. Brouwer, Haemers, "Spectra of graphs", 2012, section
    1.4.6.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 3], [1, 2, 3], shape=(4, 4))
    >>> jsp.bipartition(A).sides.tolist()
    [0, 1, 0, -1]
    """
    return one_program(_bipartition, as_graph(G, "bipartition", ()))


def is_bipartite(G: Matrix) -> Bool[Array, ""]:
    """Whether the vertices fall into two sides such that every edge joins both.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.

    Returns:
        A bool scalar.

    Raises:
        TypeError, ValueError: as `bipartition`.

    >>> import jaxspv as jsp
    >>> bool(jsp.is_bipartite(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3))))
    False
    """
    return bipartition(G).bipartite


def _bipartition(graph: Graph) -> Bipartition:
    n, A = graph.n, graph.out
    labels = connected_components(_double_cover(A)).labels
    mine, copy = labels[:n], labels[n:]
    sides = jnp.where(mine == copy, -1, (copy < mine).astype(jnp.int32))
    odd = without_ghosts(graph, mine == copy, False)
    return Bipartition(~jnp.any(odd), without_ghosts(graph, sides, -1))


def _double_cover(A: CSR) -> CSR:
    """Edges u -> v + n and u + n -> v, the second half behind the first without a gap."""
    n, nse, count = A.shape[0], A.nse, A.count
    slot = jnp.arange(nse, dtype=jnp.int32)
    valid = slot < count
    indices = jnp.full(2 * nse, 2 * n, jnp.int32)
    for place, column in ((slot, A.indices + n), (slot + count, A.indices)):
        indices = indices.at[jnp.where(valid, place, 2 * nse)].set(column, mode="drop")
    indptr = jnp.concatenate([A.indptr[:-1], A.indptr + count])
    ones = jnp.ones(2 * nse, bool)
    return CSR(ones, indices, indptr, A.overflow, (2 * n, 2 * n), A.sorted, A.unique)


# ---- Of a sharded graph ----


def _labels(local: Local) -> Array:
    """(n,) labels, replicated: each device hooks along its entries until nothing changes, then the
    minimum over the devices is taken, until that changes nothing either.

    Labels only fall, and the label of v is a vertex of its component. At the end the two endpoints
    of every entry have one label, hence that of the smallest vertex.
    """
    n = local.part.n
    tail, head = local.endpoints()

    def own_round(state):
        return hooked(state[0], tail, head)

    def common_round(state):
        before, _ = state
        own, _ = while_going(own_round, (before, jnp.asarray(True)))
        new = lax.pmin(own, local.part.axes)
        return new, jnp.any(new != before)

    start = (jnp.arange(n, dtype=jnp.int32), jnp.asarray(n > 0))
    return while_going(common_round, start)[0]


on_mesh_op = mesh_op("connected_components")


@on_mesh_op.register("collectives")
def _rounds(G):
    """A round is a minimum of n labels over devices; few rounds, as each is locally complete."""
    return counted(on_mesh(_labels, G), jnp.int32(0))


def sharded_connected_components(G, *, backend=None, method=None):
    return finished(on_mesh_op(G, backend=backend, method=method), "connected_components")


@on_mesh_op.register("one_launch", backend="pallas", refuse=one_kernel_refused)
def one_launch(G):
    """Forests of all devices are joined inside the kernel."""
    from pallas_kernels.components.mesh import components as kernel

    def body(local: Local):
        part, block = local.part, local.block
        graph = block.indptr, block.indices, local.positions
        return kernel(*graph, axes=part.axes, symmetric=G.symmetric)

    return counted(*on_mesh(body, G))
