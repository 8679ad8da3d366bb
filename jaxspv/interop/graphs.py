"""From and to NetworkX and igraph."""

from __future__ import annotations

import importlib
import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ..construct.edges import values_in
from ..construct.from_arrays import from_edges
from ..formats import SparseMatrix
from ..graph import Graph
from .labels import Labels, edges_of
from .optional import required


def from_networkx(
    graph: Any,
    *,
    weight: str | None = "weight",
    nodelist: Sequence | None = None,
    dtype: Any = None,
    format: str = "csr",
    labels: bool = False,
) -> Any:
    """The adjacency matrix of a NetworkX graph: A[i, j] is the edge nodelist[i] -> nodelist[j].

    Args:
        graph: Graph, DiGraph, or a multigraph (parallel edges add up).
        weight: edge attribute, 1 where an edge lacks it; None for ones.
        nodelist: order of the vertices, of which it may leave some out; the graph's by default.
        dtype: of the values; float32 by default.
        format: name of the format.
        labels: also give the `Labels` of the vertices.

    Returns:
        The matrix; or (matrix, `Labels`).

    Raises:
        TypeError: `graph` is no NetworkX graph.
        ValueError: `nodelist` holds a node twice, or one that is not in the graph; a weight does
            not fit `dtype`.

    >>> import networkx as nx
    >>> from_networkx(nx.path_graph(3)).todense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not hasattr(graph, "adjacency"):
        raise TypeError(f"`graph` must be a NetworkX graph; got {graph!r}.")
    nodes, row, col, data = adjacency(graph)
    values = np.ones(len(row)) if weight is None else [d.get(weight, 1) for d in flat(data)]
    values = values_in(np.float32 if dtype is None else dtype, values, f"{weight!r} holds")
    if nodelist is not None:
        places = {node: k for k, node in enumerate(nodelist)}
        if len(places) != len(nodelist):
            twice = next(node for k, node in enumerate(nodelist) if places[node] != k)
            raise ValueError(f"`nodelist` must not hold a node twice; got {twice!r} twice.")
        if strange := [node for node in nodelist if node not in graph]:
            raise ValueError(f"`nodelist` must hold nodes of the graph; got {strange[0]!r}.")
        place = np.array([places.get(node, -1) for node in nodes], np.int32)
        nodes, row, col = list(nodelist), place[row], place[col]
        kept = (row >= 0) & (col >= 0)
        row, col, values = row[kept], col[kept], values[kept]
    A = from_edges(row, col, values, shape=(len(nodes), len(nodes)), format=format)
    return (A, Labels(nodes)) if labels else A


flat = itertools.chain.from_iterable
_values = operator.methodcaller("values")  # of dictionaries, and of the views of subgraphs


def adjacency(graph: Any) -> tuple[list, np.ndarray, np.ndarray, list[Iterable[dict]]]:
    """Nodes, ends and attributes of the adjacency of a NetworkX graph, in its own order.

    An undirected edge is there twice, a self loop once, parallel edges each on their own. `flat`
    goes through the attributes edge by edge, as often as one likes.
    """
    near = dict(graph.adjacency())  # what a class of the user's own may have changed
    if not all(type(neighbors) is dict for neighbors in near.values()):  # views: their len may lie
        near = {  # some classes of NetworkX's own yield bare sets of neighbours
            node: dict((found if hasattr(found, "items") else graph[node]).items())
            for node, found in near.items()
        }
    nodes = list(near)
    degrees = np.fromiter(map(len, near.values()), np.int64, len(nodes))
    index = dict(zip(nodes, range(len(nodes)), strict=True))
    heads: Iterable = flat(near.values())
    if list(index) != list(range(len(nodes))):
        heads = map(index.__getitem__, heads)
    col = np.fromiter(heads, np.int32, int(degrees.sum()))
    row = np.repeat(np.arange(len(nodes), dtype=np.int32), degrees)
    data = list(map(_values, near.values()))
    if graph.is_multigraph():
        bundles = list(flat(data))
        parallel = np.fromiter(map(len, bundles), np.int64, len(bundles))
        row, col = np.repeat(row, parallel), np.repeat(col, parallel)
        data = list(map(_values, bundles))
    return nodes, row, col, data


def to_networkx(
    A: SparseMatrix | Graph,
    labels: Labels | None = None,
    *,
    weight: str | None = "weight",
    directed: bool = True,
) -> Any:
    """A NetworkX graph with the edge i -> j for every entry A[i, j], stored zeros included.

    Args:
        A: square matrix in any format, or a `Graph` (without its ghosts).
        labels: names of the nodes; None: 0, 1, ...
        weight: the edge attribute that takes the values; None: none does.
        directed: False: a `Graph`, for a matrix that equals its transpose.

    Returns:
        A `DiGraph`, or a `Graph`.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced or not square, `labels` are not as many as vertices, or
            `directed=False` and A differs from its transpose.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 2], [2.0, 3.0], shape=(3, 3))
    >>> list(jsp.to_networkx(A, jsp.Labels("abc")).edges(data="weight"))
    [('a', 'b', 2.0), ('b', 'c', 3.0)]
    """
    nx = required("networkx", "`to_networkx`", "networkx")
    names, tails, heads, values = edges_of(A, labels, directed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    ends = [[names[v] for v in side.tolist()] for side in (tails, heads)]
    if weight is None:
        graph.add_edges_from(zip(*ends, strict=True))
    else:
        graph.add_weighted_edges_from(zip(*ends, values.tolist(), strict=True), weight=weight)
    return graph


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
