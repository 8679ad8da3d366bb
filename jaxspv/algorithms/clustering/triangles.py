"""Triangles of each vertex: C++ on a CPU, two launches on a GPU, else masked products."""

from __future__ import annotations

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.triangles.count import triangles_of_vertices as by_tables
from pallas_kernels.triangles.upward import upward

from ..._core.operation import Operation, typed
from ...algebra.masks import structure
from ...algebra.semirings import plus_pair
from ...formats import CSR
from ...graph import Graph
from ...native import bind
from ...ops.products.mxm.api import mxm
from ..triangles.api import not_in_kernels, upward_edges

of_vertices = Operation("triangles of vertices", types=lambda graph: typed(jnp.int32, graph.n))


@of_vertices.register("native", backend="cpu", refuse=bind.refused)
def _native(graph: Graph) -> Array:
    """Paths u -> v -> w of upward edges closed by u -> w, in C++."""
    count = jax.ShapeDtypeStruct((graph.n,), jnp.int32)
    return bind.call("triangles_of_vertices", count, graph.out.indptr, graph.out.indices)


@of_vertices.register("tables", backend="pallas", refuse=not_in_kernels)
def _by_tables(graph: Graph) -> Array:
    """The shorter row of each edge is looked up in a table of the longer one."""
    pattern = graph.out.indptr, graph.out.indices
    return by_tables(*pattern, upward(*pattern))


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
