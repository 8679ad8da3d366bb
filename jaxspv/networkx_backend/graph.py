"""A NetworkX graph as arrays: adjacency in NetworkX's order, and labels; both conversions."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from ..interop.graphs import adjacency, flat

EXACT = 2**53  # float64 holds all integers up to it
LEAST, MOST = 1e-150, 1e150  # products of two stay normal numbers: XLA takes subnormal ones for 0


class ConvertedGraph:
    """What NetworkX hands to the functions of this backend.

    Attributes:
        nodes: labels in the order of the graph; vertex i of every array is `nodes[i]`.
        row, col: (entries,) int32, every adjacency entry in NetworkX's order: an undirected edge
            twice, a self loop once, parallel edges each on its own.
        values: attribute -> (entries,) bool, int64 or float64, defaults filled in.
        edge_data: the attribute dictionaries of the entries, where all attributes were asked for.
        node_data: those of the nodes, likewise.
        keys: keys of parallel edges, where all attributes were asked for.
        graph: attributes of the graph.
        memo: what `once` has computed: device graphs, degrees.
    """

    __networkx_backend__ = "jaxspv"

    def __init__(self, nodes: list, row: np.ndarray, col: np.ndarray, *, directed, multigraph):
        self.nodes, self.row, self.col = nodes, row, col
        self.values: dict[str, np.ndarray] = {}
        self.edge_data: list[dict] | None = None
        self.node_data: list[dict] | None = None
        self.keys: list | None = None
        self.graph: dict = {}
        self.memo: dict[Hashable, Any] = {}
        self.__networkx_cache__: dict = {}
        self._directed, self._multigraph = directed, multigraph

    def is_directed(self) -> bool:
        """Whether edges have a direction."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Whether edges may be parallel."""
        return self._multigraph

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator:
        return iter(self.nodes)

    def __contains__(self, node: Any) -> bool:
        try:
            return node in self.index
        except TypeError:  # not hashable
            return False

    @functools.cached_property
    def index(self) -> dict:
        """Label -> vertex."""
        return dict(zip(self.nodes, range(len(self.nodes)), strict=True))

    def number_of_nodes(self) -> int:
        """The number of vertices."""
        return len(self.nodes)

    order = number_of_nodes

    @functools.cached_property
    def loops(self) -> int:
        """The number of self loops, parallel ones each."""
        return int(np.count_nonzero(self.row == self.col))

    @property
    def _adj(self) -> dict:
        return self.index

    nbunch_iter = nx.Graph.nbunch_iter  # which asks for `_adj` alone

    def number_of_edges(self) -> int:
        """The number of edges, parallel ones each."""
        entries = len(self.row)
        return entries if self._directed else (entries + self.loops) // 2

    @functools.cached_property
    def degrees(self) -> np.ndarray:
        """(n,) degrees as NetworkX counts them: in and out, an undirected loop twice."""
        others = self.col if self._directed else self.row[self.row == self.col]
        return np.bincount(self.row, minlength=len(self)) + np.bincount(others, minlength=len(self))

    def once(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What `make` gives, computed at the first call with this key."""
        if key not in self.memo:
            self.memo[key] = make()
        return self.memo[key]

    def own(self, array: Any) -> np.ndarray:
        """An array over the vertices of a device graph, without those that only pad it."""
        return np.asarray(array)[: len(self)]

    def weights(self, attribute: str | None, default: Any = 1) -> np.ndarray:
        """(entries,) the numbers under an attribute, None for ones. NotImplementedError where some
        value is no number that float64 holds."""
        if attribute is None:
            return np.ones(len(self.row), np.int64)
        if attribute not in self.values:
            if self.edge_data is None:
                raise NotImplementedError(f"the conversion left out the attribute {attribute!r}")
            self.values[attribute] = _numbers(
                attribute, [self.edge_data], len(self.edge_data), default
            )
        return self.values[attribute]

    def induced(self, nodes: np.ndarray, entries: np.ndarray | None = None) -> ConvertedGraph:
        """The subgraph of vertices (n,) bool, and entries (entries,) bool between them."""
        kept = nodes[self.row] & nodes[self.col]
        where = np.flatnonzero(kept if entries is None else kept & entries)
        place = np.cumsum(nodes, dtype=np.int32) - 1
        found = np.flatnonzero(nodes).tolist()
        part = self._of(where, place[self.row], place[self.col], [self.nodes[v] for v in found])
        if self.node_data is not None:
            part.node_data = [self.node_data[v] for v in found]
        return part

    def reverse(self, copy: bool = True) -> ConvertedGraph:
        """The graph with all edges the other way, made once; an undirected one is its own."""
        if not self._directed:
            return self

        def make() -> ConvertedGraph:
            order = np.argsort(self.col, kind="stable")
            made = self._of(order, self.col, self.row, self.nodes)
            made.node_data = self.node_data
            return made

        return self.once("reverse", make)

    def _of(
        self, entries: np.ndarray, row: np.ndarray, col: np.ndarray, nodes: list
    ) -> ConvertedGraph:
        """A graph of some entries, in this order, with other ends and nodes."""
        kind = {"directed": self._directed, "multigraph": self._multigraph}
        part = ConvertedGraph(nodes, row[entries], col[entries], **kind)
        part.values = {name: values[entries] for name, values in self.values.items()}
        part.graph = self.graph
        if self.edge_data is not None:
            part.edge_data = [self.edge_data[e] for e in entries.tolist()]
        if self.keys is not None:
            part.keys = [self.keys[e] for e in entries.tolist()]
        return part


def convert_from_nx(
    graph: Any,
    *,
    edge_attrs: dict[str, Any] | None = None,
    node_attrs: dict[str, Any] | None = None,
    preserve_edge_attrs: bool = False,
    preserve_node_attrs: bool = False,
    preserve_graph_attrs: bool = False,
    name: str | None = None,
    graph_name: str | None = None,
) -> ConvertedGraph:
    """A `ConvertedGraph` of a NetworkX graph; arguments as NetworkX's dispatcher gives them.

    A view of another graph is converted in every call: NetworkX clears the conversions that it
    keeps with a graph when that graph changes, but not those of its views.

    Raises:
        NotImplementedError: a value of `edge_attrs` is no number, or an undirected view of a
            directed graph has two for an edge: NetworkX then runs the call.
    """
    del name, graph_name
    if hasattr(graph, "_graph"):
        graph.__networkx_cache__ = None
    nodes, row, col, data = adjacency(graph)
    made = ConvertedGraph(
        nodes, row, col, directed=graph.is_directed(), multigraph=graph.is_multigraph()
    )
    if preserve_edge_attrs:
        made.edge_data = list(flat(data))
        if made.is_multigraph():
            made.keys = [
                key for _, near in graph.adjacency() for keys in near.values() for key in keys
            ]
    elif edge_attrs:
        for attribute, default in edge_attrs.items():
            made.values[attribute] = _numbers(attribute, data, len(row), default)
            if hasattr(graph, "_graph") and not made.is_directed():
                values, real = made.values[attribute], made.values[attribute].dtype.kind == "f"
                one, other = np.lexsort((values, col, row)), np.lexsort((values, row, col))
                if not np.array_equal(values[one], values[other], equal_nan=real):
                    text = f"an undirected edge has two values under {attribute!r}"
                    raise NotImplementedError(text)
    if preserve_node_attrs or node_attrs:
        made.node_data = [dict(graph.nodes[node]) for node in nodes]
    if preserve_graph_attrs:
        made.graph = dict(graph.graph)
    return made


def _numbers(
    attribute: str, data: Iterable[Iterable[dict]], count: int, default: Any
) -> np.ndarray:
    """(count,) the numbers under an attribute; fast where all edges have it, or none has."""
    first = next(flat(data), None)
    none_has = (
        first is not None
        and attribute not in first
        and not any(map(operator.contains, flat(data), itertools.repeat(attribute)))
    )
    try:
        values = [default] if none_has else list(map(operator.itemgetter(attribute), flat(data)))
    except KeyError:
        values = [d.get(attribute, default) for d in flat(data)]
    try:
        numbers = np.array(values) if values else np.zeros(0, np.int64)
        numbers = np.repeat(numbers, count) if none_has else numbers
    except (ValueError, OverflowError):  # ragged, or an integer of more than 64 bits
        numbers = np.empty(1, object)
    if numbers.dtype.kind not in "biuf" or numbers.ndim != 1:
        raise NotImplementedError(f"a value of the edge attribute {attribute!r} is no number")
    sizes = np.abs(numbers.astype(np.float64))
    real = numbers.dtype.kind == "f"  # of all, if one value is a float
    if not sizes.sum() <= EXACT:  # it may be NaN
        integers = (abs(int(v)) for v in values if isinstance(v, (int, np.integer)))
        if not real or sum(integers) > EXACT:
            raise NotImplementedError(f"sums of integers under {attribute!r} do not fit float64")
    if real and ((sizes > 0) & (sizes < LEAST) | (sizes > MOST) & (sizes < np.inf)).any():
        raise NotImplementedError(
            f"a value under {attribute!r} is so small or large that results may leave float64"
        )
    return numbers if numbers.dtype.kind in "bi" else numbers.astype(np.float64)


def convert_to_nx(result: Any, *, name: str | None = None) -> Any:
    """The NetworkX graph of a `ConvertedGraph`; anything else as it is."""
    del name
    if not isinstance(result, ConvertedGraph):
        return result
    kind = "Multi" * result.is_multigraph() + "Di" * result.is_directed() + "Graph"
    graph = getattr(nx, kind)(**result.graph)
    nodes = result.nodes
    graph.add_nodes_from(zip(nodes, result.node_data, strict=True) if result.node_data else nodes)
    kept = np.arange(len(result.row))
    if not result.is_directed():  # an undirected edge once, in the order of `G.edges`
        kept = np.flatnonzero(result.row <= result.col)
    tails, heads = ([nodes[i] for i in side[kept].tolist()] for side in (result.row, result.col))
    data = [_edge_data(result, e) for e in kept.tolist()]
    if result.keys is None:
        graph.add_edges_from(zip(tails, heads, data, strict=True))
    else:
        keys = [result.keys[e] for e in kept.tolist()]
        graph.add_edges_from(zip(tails, heads, keys, data, strict=True))
    return graph


def _edge_data(G: ConvertedGraph, entry: int) -> dict:
    if G.edge_data is not None:
        return dict(G.edge_data[entry])
    return {name: values[entry].item() for name, values in G.values.items()}
