"""From and to igraph."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from ..construct.arguments import values_in
from ..construct.from_arrays import from_edges
from ..formats import SparseMatrix
from ..graph import Graph
from .labels import Labels, edges_of


def from_igraph(
    graph: Any,
    *,
    weight: str | None = "weight",
    dtype: Any = None,
    format: str = "csr",
    labels: bool = False,
) -> Any:
    """The adjacency matrix of an igraph graph: A[i, j] is the edge i -> j; parallel edges add up.

    Args:
        graph: `igraph.Graph`, directed or not.
        weight: edge attribute, ones where the graph has none of this name; None for ones.
        dtype: of the values; float32 by default.
        format: name of the format.
        labels: also give the `Labels` of the vertices: their attribute "name", else 0, 1, ...

    Returns:
        The matrix; or (matrix, `Labels`).

    Raises:
        TypeError: `graph` is no igraph graph.
        ValueError: an edge lacks the weight that others have, or one does not fit `dtype`.

    >>> import jaxspv as jsp
    >>> class Path:  # what is asked of an igraph graph
    ...     def get_edgelist(self): return [(0, 1), (1, 2)]
    ...     def is_directed(self): return False
    ...     def vcount(self): return 3
    ...     es = vs = type("", (), {"attributes": lambda self: []})()
    >>> jsp.io.from_igraph(Path()).todense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not hasattr(graph, "get_edgelist"):
        raise TypeError(f"`graph` must be an igraph graph; got {graph!r}.")
    row, col = np.array(graph.get_edgelist(), np.int32).reshape(-1, 2).T
    dtype = np.float32 if dtype is None else dtype
    values = np.ones(len(row), dtype)
    if weight is not None and weight in graph.es.attributes():
        found = graph.es[weight]
        if None in found:
            raise ValueError(f"edge {found.index(None)} of `graph` lacks the attribute {weight!r}.")
        values = values_in(dtype, found, f"{weight!r} holds")
    if not graph.is_directed():
        proper = row != col
        row, col = np.r_[row, col[proper]], np.r_[col, row[proper]]
        values = np.r_[values, values[proper]]
    n = graph.vcount()
    A = from_edges(row, col, values, shape=(n, n), format=format)
    if not labels:
        return A
    return A, Labels(graph.vs["name"] if "name" in graph.vs.attributes() else range(n))


def to_igraph(
    A: SparseMatrix | Graph,
    labels: Labels | None = None,
    *,
    weight: str | None = "weight",
    directed: bool = True,
) -> Any:
    """An igraph graph with the edge i -> j for every entry A[i, j], stored zeros included.

    Args:
        A: square matrix in any format, or a `Graph` (without its ghosts).
        labels: go into the vertex attribute "name"; None: there is none.
        weight: the edge attribute that takes the values; None: none does.
        directed: False: an undirected one, for a matrix that equals its transpose.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced or not square, `labels` are not as many as vertices, or
            `directed=False` and A differs from its transpose.
        ImportError: igraph is not installed.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    >>> jsp.io.to_igraph(A).get_edgelist()  # doctest: +SKIP
    [(0, 1), (1, 2)]
    """
    names, tails, heads, values = edges_of(A, labels, directed)
    igraph = importlib.import_module("igraph")
    graph = igraph.Graph(len(names), np.stack([tails, heads], 1).tolist(), directed=directed)
    if labels is not None:
        graph.vs["name"] = labels.names
    if weight is not None:
        graph.es[weight] = values.tolist()
    return graph
