"""Triangles, of a graph and of its vertices: masked products of the edges to higher degrees."""

from __future__ import annotations

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.forms import overloadable
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from .._core.pytree import result_tuple
from .._core.reductions import exact_sum
from ..algebra.masks import structure
from ..algebra.monoids import plus
from ..algebra.semirings import plus_pair
from ..formats import CSR
from ..graph import Graph
from ..native import bind
from ..ops.products.mxm.api import mxm
from ..shapes import Bool, Int, Matrix
from ..sharding.exchange import Local, on_mesh
from ..sharding.operation import mesh_op
from .common.edges import kept, undirected


@result_tuple
class Triangles(NamedTuple):
    """The result of `triangle_count`.

    Attributes:
        count: int64, the number of triangles, also where x64 is not enabled: `int(count)` and
            `np.asarray(count)` are exact. Arithmetic of JAX without x64 makes an int32 of it, with
            a warning: say `count.astype(jnp.float32)` or `count.astype(jnp.int32)` before.
        overflow: bool, the pattern was found not to be symmetric while tracing; see
            `jaxspv.check`.
    """

    count: Int[Array, ""]
    overflow: Bool[Array, ""]


@overloadable
def triangle_count(
    G: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Triangles:
    """The number of triangles: the sum of `C<L> = L plus_pair L^T`, L the edges to higher rank.

    Ranks ascend by degree (then by number), so that no vertex has more than sqrt(2 m) edges in L
    and there are O(m^1.5) products at most. Self loops and values are ignored.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (in C++, on a CPU), "tables" (the row of one end of each edge is a table
            in shared memory, in two launches on a GPU), "dot" (the rows of both ends are
            intersected, elsewhere), or None for these.

    Returns:
        `Triangles(count, overflow)`.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
        NotImplementedError: the form asked for cannot run; says why.

    Source: Azad, Buluc, Gilbert, "Parallel triangle counting and enumeration using matrix algebra",
    IPDPSW 2015; the order by degree: Latapy, "Main-memory triangle computations for very large
    (sparse (power-law)) graphs", Theoretical Computer Science 407, 2008.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0], [1, 0, 2, 1, 0, 2], shape=(4, 4))
    >>> int(jsp.triangle_count(A).count)
    1
    """
    graph = undirected(G, "triangle_count")
    return op(graph, backend=backend, method=method)


op = Operation("triangle_count", types=lambda graph: Triangles(typed(jnp.int64), typed(jnp.bool_)))


def not_in_kernels(graph) -> str | None:
    if graph.n == 0 or graph.nse < 2:
        return "there is nothing to count"
    return None


@op.register("tables", backend="pallas", refuse=not_in_kernels)
def _by_tables(graph):
    """The shorter row of each edge is looked up in a table of the longer one."""
    from pallas_kernels.triangles.count import CARRY
    from pallas_kernels.triangles.count import triangles as by_tables
    from pallas_kernels.triangles.upward import EDGES, upward

    A = graph.out
    edges = upward(A.indptr, A.indices)
    counts = by_tables(A.indptr, A.indices, edges)
    over = A.overflow
    if A.unique:
        over = over | (edges.totals[EDGES] > A.nse // 2)
    with jax.enable_x64(True):
        low, high = (lax.convert_element_type(word, np.int64) for word in counts)
        of_threads = lax.add(low, lax.mul(high, np.int64(2**CARRY)))
    return Triangles(exact_sum(of_threads), over)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(graph):
    """Paths u -> v -> w of upward edges closed by u -> w, in C++."""
    with jax.enable_x64(True):
        results = jax.ShapeDtypeStruct((), np.int64), jax.ShapeDtypeStruct((), np.bool_)
        count, over = bind.call("triangles", results, graph.out.indptr, graph.out.indices)
    return Triangles(count, over | graph.out.overflow)


@op.register("dot")
def _dot(graph):
    """Edges u -> v of higher rank and the w that both have such edges to."""
    L = upward_edges(graph.out)
    C = mxm(L, L.T, plus_pair, mask=structure(L), nse=L.nse, method="dot")
    counts = jnp.where(jnp.arange(C.nse) < C.count, C.data, 0)
    return Triangles(exact_sum(counts), C.overflow)


def upward_edges(A: CSR) -> CSR:
    """The int32 CSR of the edges to a vertex of higher (degree, number), without self loops."""
    n, capacity = A.shape[0], A.nse // 2 if A.unique else A.nse
    row, col = A.rowcol()
    degree = jnp.diff(A.indptr)
    mine, other = (degree.at[v].get(mode="fill", fill_value=0) for v in (row, col))
    up = (row < n) & ((mine < other) | ((mine == other) & (row < col)))
    number = jnp.cumsum(up, dtype=jnp.int32)
    place = jnp.where(up, number - 1, capacity)
    indices = jnp.full(capacity, n, jnp.int32).at[place].set(col, mode="drop")
    before = jnp.append(jnp.int32(0), number)
    indptr = jnp.minimum(before[A.indptr], capacity)
    over = A.overflow | (before[-1] > capacity)
    ones = jnp.ones(capacity, jnp.int32)
    return CSR(ones, indices, indptr, over, A.shape, A.sorted, A.unique)


of_vertices = Operation("triangles of vertices", types=lambda graph: typed(jnp.int32, graph.n))


@of_vertices.register("native", backend="cpu", refuse=bind.refused)
def _native_of_vertices(graph: Graph) -> Array:
    """Paths u -> v -> w of upward edges closed by u -> w, in C++."""
    count = jax.ShapeDtypeStruct((graph.n,), jnp.int32)
    return bind.call("triangles_of_vertices", count, graph.out.indptr, graph.out.indices)


@of_vertices.register("tables", backend="pallas", refuse=not_in_kernels)
def _tables_of_vertices(graph: Graph) -> Array:
    """The shorter row of each edge is looked up in a table of the longer one."""
    from pallas_kernels.triangles.count import triangles_of_vertices as tables_of_vertices
    from pallas_kernels.triangles.upward import upward

    pattern = graph.out.indptr, graph.out.indices
    return tables_of_vertices(*pattern, upward(*pattern))


@of_vertices.register("products")
def _products(graph: Graph) -> Array:
    """`C<L> = L L^T` counts at the lower two vertices of a triangle, `C<L> = L L` at the upper."""
    L = upward_edges(graph.out)
    row, low, below = _counts(mxm(L, L.T, plus_pair, mask=structure(L), nse=L.nse, method="dot"))
    _, high, above = _counts(mxm(L, L, plus_pair, mask=structure(L), nse=L.nse, method="dot"))
    count = jnp.zeros(graph.n, jnp.int32)
    for place, counts in ((row, below), (low, below), (high, above)):
        count = count.at[place].add(counts, mode="drop")
    return count


def _counts(C: CSR) -> tuple[Array, Array, Array]:
    """Rows, columns and values, 0 in the padding."""
    row, col = C.rowcol()
    return row, col, jnp.where(jnp.arange(C.nse) < C.count, C.data, 0)


# ---- Of a sharded graph: the rows of each device visit all others, around a ring ----


def _upward_on_device(local: Local) -> CSR:
    """The entries of the block to a vertex of higher (degree, number), self loops left out."""
    rows, _ = local.part.block_shape
    row, col = local.block.rowcol()
    degree = jnp.diff(local.block.indptr)  # whole rows: that of the vertex
    others, numbers = local.cols.along(degree), local.cols.along(local.order)
    mine = [jnp.take(v, row, mode="clip") for v in (degree, local.order)]
    other = [jnp.take(v, col, mode="clip") for v in (others, numbers)]
    higher = (mine[0] < other[0]) | ((mine[0] == other[0]) & (mine[1] < other[1]))
    ones = jnp.ones(local.block.nse, jnp.int32)
    A = dataclasses.replace(local.block, data=ones, unique=True)
    return kept(A, (row < rows) & higher)


def _count_in_ring(local: Local) -> tuple[Array, Array]:
    """The number of triangles u -> v, u -> w, v -> w, and whether some in-degree differs from the
    out-degree. Step k takes the edges u -> v of this device whose v is on the k-th device before.
    """
    part = local.part
    devices, r = part.grid[0], part.places
    own = _upward_on_device(local)
    row, col = own.rowcol()
    me = lax.axis_index(part.row_axes)
    ring = [(k, (k + 1) % devices) for k in range(devices)]

    def visit(k, state):
        guest, count = state
        host = (me - k) % devices  # whose rows are here
        valid = (col >= host * r) & (col < (host + 1) * r)
        moved = dataclasses.replace(own, indices=col - host * r, shape=(own.shape[0], r))
        asked = kept(moved, (row < r) & valid)
        met = mxm(own, guest.T, plus_pair, mask=structure(asked), nse=own.nse, method="dot")
        counts = jnp.where(jnp.arange(own.nse) < met.count, met.data, 0)
        with jax.enable_x64(True):
            count = lax.add(count, exact_sum(counts))
        passed = (lax.ppermute(x, part.row_axes, ring) for x in (guest.indices, guest.indptr))
        indices, indptr = passed
        return dataclasses.replace(guest, indices=indices, indptr=indptr), count

    start = (own, exact_sum(jnp.zeros(1, jnp.int32)))
    _, count = lax.fori_loop(0, devices, visit, start)
    valid, cols = jnp.arange(local.block.nse) < local.block.indptr[-1], part.block_shape[1]
    at = jnp.where(valid, local.block.indices, cols)
    in_degrees = local.cols.fold(jnp.zeros(cols, jnp.int32).at[at].add(1, mode="drop"), plus)
    uneven = jnp.any(in_degrees != jnp.diff(local.block.indptr))
    return local.total(count), local.total(uneven.astype(jnp.int32)) > 0


on_mesh_op = mesh_op("triangle_count")


def _in_blocks(G) -> str | None:
    return None if G.part.grid[1] == 1 else "it needs whole rows: shard over rows alone"


@on_mesh_op.register("ring", refuse=_in_blocks)
def _ring(G):
    """As many steps as devices; in each the rows of one visit another.

    Whether the pattern is symmetric is not checked; where in- and out-degrees differ, `overflow`.
    """
    return Triangles(*on_mesh(_count_in_ring, G))


def sharded_triangle_count(G, *, backend=None, method=None):
    return on_mesh_op(G, backend=backend, method=method)
