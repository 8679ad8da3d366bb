"""Graphs of different sizes padded to one size, so that they share compiled programs."""

from __future__ import annotations

import dataclasses
import re
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import on_gpu, to_device
from .._core.indices import LIMIT, bucketed, checked_count
from .._core.pytree import is_concrete
from ..formats import CSR, SparseMatrix
from ..formats.stored import Stored
from ..graph import Graph, as_graph

_Result = TypeVar("_Result")

LISTS = ("order", "vertices", "tails", "heads", "nodes")  # fields of results that list vertices
AXES = {"n": 0, "m": 0, "k": 0, "edges": 1}  # axes over the vertices, or over one less: a forest
WHOLE = (Stored, Graph)


def pad(A: SparseMatrix | Graph, *, n: int | None = None, nse: int | None = None) -> Graph:
    """The graph with ghost vertices up to `n` and padding up to `nse` slots.

    Programs are compiled for shapes: graphs padded to equal sizes share them. A ghost has no edges,
    and algorithms leave it out: it has no mass in `pagerank` and is no component. The vertices from
    `num_vertices` on are ghosts. Their level is -1, their distance infinite, their label -1, their
    score 0. Call `prepare` after `pad`, not before.

    Args:
        A: a square sparse matrix in any format, A[i, j] the edge i -> j, or a Graph not yet
            prepared.
        n: vertices, ghosts included; None: the next of 4, 5, 6, 7 times a power of two.
        nse: slots; None: likewise. Under jit it must be given; entries that do not fit set
            `overflow`.

    Returns:
        A `Graph` of `num_vertices` vertices among `n`, `unpad` cuts results for it.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: A is padded or prepared already, not square, or does not fit; `nse` is missing
            under jit.

    Cost: a copy of the arrays.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    >>> G = jsp.pad(A, n=5, nse=8)
    >>> G, jsp.bfs(G, 0).levels.tolist()
    (Graph(CSR(float32[8], shape=(5, 5)), directed, prepared for nothing), [0, 1, 2, -1, -1])
    >>> jsp.unpad(jsp.pagerank(G), G).scores.shape
    (3,)
    """
    graph = as_graph(A, "`pad`")
    traced = not is_concrete(graph)
    if traced and nse is None:
        raise ValueError("`nse` must be given under jit: the number of entries is unknown.")
    if graph.layouts or graph.transposed is not None or graph.num_vertices is not None:
        raise ValueError("`pad` takes a graph before it is padded or prepared.")
    out, count = graph.out, 0 if traced else int(np.asarray(graph.out.indptr)[-1])
    n, nse = checked_count("n", n, 0), checked_count("nse", nse, 0)
    n = bucketed(graph.n) if n is None else n
    nse = bucketed(count) if nse is None else nse
    for name, size, least in (("n", n, graph.n), ("nse", nse, count)):
        if not least <= size < LIMIT:
            raise ValueError(f"`{name}` must be from {least} to {LIMIT - 1}; got {size}.")
    slots, rows, overflow = nse - out.nse, n - graph.n, out.overflow
    arrays = out.data, out.indices, out.indptr
    if traced:
        overflow = overflow | (out.indptr[-1] > nse)
        arrays = out.data, out.indices, jnp.minimum(out.indptr, nse)
    xp: Any = jnp if traced or on_gpu(out.indices) else np
    data, indices, indptr = map(xp.asarray, arrays)
    arrays = _padded(data, indices, indptr, slots, rows, xp)
    data, indices, indptr, count = to_device((*arrays, np.asarray(graph.n, np.int32)), out.indices)
    padded = CSR(data, indices, indptr, overflow, (n, n), out.sorted, out.unique)
    return dataclasses.replace(graph, out=padded, num_vertices=count)


def _padded(data: Any, indices: Any, indptr: Any, slots: int, rows: int, xp: Any) -> tuple:
    """The arrays of a CSR with another capacity (only padding is cut) and more empty rows."""
    size, n = indices.shape[0] + slots, indptr.shape[0] - 1 + rows
    more = max(slots, 0)
    data = xp.pad(data, [(0, more)] + [(0, 0)] * (data.ndim - 1))[:size]
    indices = xp.where(xp.arange(size) < indptr[-1], xp.pad(indices, (0, more))[:size], xp.int32(n))
    return data, indices, xp.pad(indptr, (0, rows), mode="edge")


def unpad(result: _Result, G: Graph) -> _Result:
    """What an algorithm found on a graph of `pad`, without the ghosts; eager.

    Args:
        result: any pytree of results of algorithms, whose fields over vertices are cut and whose
            lists of vertices end with the number of vertices as they do without `pad`; of matrices
            of the graph's shape; and of arrays whose last axis is over the vertices. Others stay.
        G: the graph it was found on; one without ghosts leaves the result as it is.

    Raises:
        TypeError: G is no Graph.
        ValueError: G is traced.

    >>> import jaxspv as jsp
    >>> G = jsp.pad(jsp.from_edges([0], [1], shape=(3, 3)), n=6)
    >>> jsp.unpad(jsp.connected_components(G), G).labels.tolist()
    [0, 0, 2]
    """
    if not isinstance(G, Graph):
        raise TypeError(f"`G` must be the Graph that `pad` gave; got {type(G).__name__}.")
    if G.num_vertices is None:
        return result
    if not is_concrete(G.num_vertices):
        raise ValueError("`unpad` needs a concrete graph: call it outside of jit.")
    count = int(G.num_vertices)

    def cut(leaf: Any, axes: list[str], lists: bool = False) -> Any:
        sizes = zip(reversed(axes), reversed(np.shape(leaf)), strict=False)
        less = [AXES[axis] if AXES.get(axis) == G.n - size else None for axis, size in sizes]
        kept = [slice(None if k is None else max(count - k, 0)) for k in reversed(less)]
        if not lists and all(k is None for k in less):
            return leaf
        xp: Any = jnp if on_gpu(leaf) else np
        part = xp.array(xp.asarray(leaf)[(..., *kept)])
        return to_device(xp.where(part == G.n, xp.int32(count), part) if lists else part, leaf)

    def field(name: str, value: Any, kind: str) -> Any:
        if axes := re.search("Array, '(.*?)'", kind):
            return jax.tree.map(lambda leaf: cut(leaf, axes[1].split(), name in LISTS), value)
        return unpad(value, G)

    def one(found: Any) -> Any:
        if isinstance(found, SparseMatrix) and found.shape == (G.n, G.n):
            return _first(found, count)
        if isinstance(found, WHOLE):
            return found
        if not hasattr(found, "_fields"):
            return cut(found, ["n"])
        kinds = getattr(type(found), "__annotations__", {})
        fields = zip(found._fields, found, strict=True)
        return type(found)(*(field(name, value, str(kinds.get(name))) for name, value in fields))

    return jax.tree.map(
        one, result, is_leaf=lambda x: isinstance(x, WHOLE) or hasattr(x, "_fields")
    )


def _first(A: SparseMatrix, count: int) -> SparseMatrix:
    """The entries among the first `count` rows and columns."""
    csr = A.asformat("csr")
    row, col = map(np.asarray, csr.rowcol())
    kept = np.flatnonzero((row < count) & (col < count))
    indptr = np.searchsorted(row[kept], np.arange(count + 1)).astype(csr.index_dtype)
    data = jax.tree.map(lambda x: np.asarray(x)[kept], csr.data)
    data, indices, indptr = to_device((data, col[kept], indptr), csr.indices)
    shape = count, count
    return CSR(data, indices, indptr, csr.overflow, shape, csr.sorted, csr.unique).asformat(
        A.format
    )
