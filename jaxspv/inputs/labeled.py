"""Graphs whose vertices have names: from and to NetworkX and igraph; results by name."""

from __future__ import annotations

import importlib
import itertools
import operator
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .._core.pytree import is_concrete
from ..formats import SparseMatrix
from ..formats.foreign import CONVERTERS
from ..graph import Graph
from .construct import from_edges

if TYPE_CHECKING:
    from jaxtyping import Int

VERTICES = ("parents", "labels")  # fields of results that hold vertices


class Labels:
    """Names of vertices, and the way from one to the other.

    Attributes:
        names: the name of each vertex.

    >>> import jaxspv as jsp
    >>> A, labels = jsp.from_pandas({"from": ["Rome", "Pisa"], "to": ["Pisa", "Lucca"]},
    ...                             "from", "to")
    >>> found = labels.named(jsp.bfs(A, labels.vertex("Rome")))
    >>> found.levels, found.parents["Lucca"]
    ({'Rome': 0, 'Pisa': 1, 'Lucca': 2}, 'Pisa')
    """

    def __init__(self, names: Iterable):
        self.names = list(names)
        self._vertices = dict(zip(self.names, range(len(self.names)), strict=True))
        if len(self._vertices) != len(self.names):
            raise ValueError("`names` must not hold a name twice.")

    def __len__(self) -> int:
        return len(self.names)

    def __repr__(self) -> str:
        return f"Labels of {len(self)} vertices"

    def vertex(self, name: Any) -> int:
        """The vertex of a name.

        Raises:
            ValueError: there is none.
        """
        try:
            return self._vertices[name]
        except (KeyError, TypeError):
            raise ValueError(f"`name` must be that of a vertex; got {name!r}.") from None

    def vertices(self, names: Iterable) -> Int[np.ndarray, " k"]:
        """(k,) int32, the vertices of several names.

        Raises:
            ValueError: one is not there.
        """
        return np.array([self.vertex(name) for name in names], np.int32)

    def named(self, result: Any) -> Any:
        """A result with dictionaries by name in place of arrays over the vertices.

        Args:
            result: an array whose last axis is over the vertices (or longer: ghosts of `pad` are
                cut off), or a named tuple of an algorithm, whose other fields become Python
                numbers or stay. Vertices in it (`parents`, `labels`) become names, None for -1.

        Returns:
            name -> value, a list of such dictionaries for a leading axis, or the named tuple.

        Raises:
            ValueError: `result` is traced, or no array over the vertices.
        """
        if not is_concrete(result):
            raise ValueError("`named` needs concrete values: call it outside of jit.")
        if not hasattr(result, "_fields"):
            return self._by_name(np.asarray(result), False)
        fields = zip(result._fields, result, strict=True)
        return type(result)(*(self._field(name, value) for name, value in fields))

    def _field(self, name: str, value: Any) -> Any:
        if value is None or isinstance(value, SparseMatrix):
            return value
        array = np.asarray(value)
        if array.ndim and array.shape[-1] >= len(self):
            return self._by_name(array, name in VERTICES)
        return array.tolist()

    def _by_name(self, array: np.ndarray, vertices: bool) -> Any:
        if array.ndim == 0 or array.shape[-1] < len(self):
            raise ValueError(
                f"`result` must have {len(self)} places or more in its last axis; "
                f"got shape {array.shape}."
            )
        if array.ndim > 1:
            return [self._by_name(row, vertices) for row in array]
        values = array[: len(self)].tolist()
        if vertices:
            values = [self.names[v] if v >= 0 else None for v in values]
        return dict(zip(self.names, values, strict=True))


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
        nodelist: order of the vertices; the graph's by default.
        dtype: of the values; float32 by default.
        format: name of the format.
        labels: also give the `Labels` of the vertices.

    Returns:
        The matrix; or (matrix, `Labels`).

    Raises:
        TypeError: `graph` is no NetworkX graph.
        ValueError: `nodelist` holds a node twice.

    >>> import networkx as nx
    >>> from_networkx(nx.path_graph(3)).todense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not hasattr(graph, "adjacency"):
        raise TypeError(f"`graph` must be a NetworkX graph; got {graph!r}.")
    nodes, row, col, data = adjacency(graph)
    values = np.ones(len(row)) if weight is None else [d.get(weight, 1) for d in flat(data)]
    values = np.asarray(values, np.float32 if dtype is None else dtype)
    if nodelist is not None:
        places = {node: k for k, node in enumerate(nodelist)}
        if len(places) != len(nodelist):
            raise ValueError("`nodelist` must not hold a node twice.")
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
        near = {node: dict(_mapping(graph, node, found).items()) for node, found in near.items()}
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


def _mapping(graph: Any, node: Any, neighbors: Any) -> Any:
    """Neighbours with attributes; some classes of NetworkX's own yield bare sets of them."""
    return neighbors if hasattr(neighbors, "items") else graph[node]


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
    import networkx as nx

    names, tails, heads, values = _edges_of(A, labels, directed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(names)
    ends = [[names[v] for v in side.tolist()] for side in (tails, heads)]
    if weight is None:
        graph.add_edges_from(zip(*ends, strict=True))
    else:
        graph.add_weighted_edges_from(zip(*ends, values.tolist(), strict=True), weight=weight)
    return graph


def _edges_of(
    A: SparseMatrix | Graph, labels: Labels | None, directed: bool
) -> tuple[Sequence, np.ndarray, np.ndarray, np.ndarray]:
    """Names of the vertices, both ends of the edges and their values; undirected ones once.

    Raises:
        TypeError, ValueError: as `to_networkx`.
    """
    if not isinstance(A, (SparseMatrix, Graph)):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    if not is_concrete(A):
        raise ValueError("`A` must be concrete: call this outside of jit.")
    n = A.shape[0]
    if isinstance(A, Graph):
        n, A = n if A.num_vertices is None else int(A.num_vertices), A.out
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"`A` must be square; got shape {A.shape}.")
    if labels is not None and len(labels) != n:
        raise ValueError(f"`labels` must be {n}, one a vertex; got {len(labels)}.")
    matrix = A.to_scipy().tocsr()
    if not directed and not _symmetric(matrix):
        raise ValueError("`A` must equal its transpose for `directed=False`.")
    coo = matrix.tocoo()
    kept = slice(None) if directed else coo.row <= coo.col
    names: Sequence = range(n) if labels is None else labels.names
    return names, coo.row[kept], coo.col[kept], coo.data[kept]


def _symmetric(matrix: Any) -> bool:
    """Pattern and values equal those of the transpose."""
    other = matrix.T.tocsr()
    matrix.sort_indices()
    other.sort_indices()
    fields = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(matrix, f), getattr(other, f)) for f in fields)


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
        ValueError: an edge lacks the weight that others have.

    >>> import jaxspv as jsp
    >>> class Path:  # what is asked of an igraph graph
    ...     def get_edgelist(self): return [(0, 1), (1, 2)]
    ...     def is_directed(self): return False
    ...     def vcount(self): return 3
    ...     es = vs = type("", (), {"attributes": lambda self: []})()
    >>> jsp.from_igraph(Path()).todense().tolist()
    [[0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]
    """
    if not hasattr(graph, "get_edgelist"):
        raise TypeError(f"`graph` must be an igraph graph; got {graph!r}.")
    row, col = np.array(graph.get_edgelist(), np.int32).reshape(-1, 2).T
    values = np.ones(len(row), np.float32 if dtype is None else dtype)
    if weight is not None and weight in graph.es.attributes():
        found = graph.es[weight]
        if None in found:
            raise ValueError(f"edge {found.index(None)} of `graph` lacks the attribute {weight!r}.")
        values = np.asarray(found, values.dtype)
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
    >>> jsp.to_igraph(A).get_edgelist()  # doctest: +SKIP
    [(0, 1), (1, 2)]
    """
    names, tails, heads, values = _edges_of(A, labels, directed)
    igraph = importlib.import_module("igraph")
    graph = igraph.Graph(len(names), np.stack([tails, heads], 1).tolist(), directed=directed)
    if labels is not None:
        graph.vs["name"] = labels.names
    if weight is not None:
        graph.es[weight] = values.tolist()
    return graph


CONVERTERS["networkx"] = from_networkx
CONVERTERS["igraph"] = from_igraph
