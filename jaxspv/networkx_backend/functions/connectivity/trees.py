"""Minimum and maximum spanning trees: those that Kruskal's algorithm takes, ties in its order."""

from __future__ import annotations

import networkx as nx
import numpy as np

from ....algorithms.trees.forest import minimum_spanning_forest
from ...graph import ConvertedGraph, convert_to_nx
from ...registry import implements
from ...results import labels
from ...views import on_device


def _edges(G: ConvertedGraph, weight: str, ignore_nan: bool, *, most: bool) -> np.ndarray:
    """The entries of the forest by weight: of equal ones that come first in `G.edges`.

    The ranks of the edges, which all differ, are the weights that the forest is taken by.
    """
    if G.is_directed():
        raise nx.NetworkXNotImplemented("not implemented for directed type")
    entries = np.flatnonzero(G.row < G.col)
    values = G.weights(weight).astype(float)
    if np.isnan(values).any() and not ignore_nan:
        raise NotImplementedError(f"a weight under {weight!r} is NaN")
    entries = entries[~np.isnan(values[entries])]
    values = values[entries]
    entries = entries[np.argsort(-values if most else values, kind="stable")]
    ranks = np.arange(len(entries), dtype=np.float64)
    found = minimum_spanning_forest(on_device(len(G), G.row[entries], G.col[entries], ranks))
    chosen = np.asarray(found.weights)[: int(found.count)].astype(np.int64)
    return entries[np.sort(chosen)]


def _listed(G: ConvertedGraph, entries: np.ndarray, data: bool):
    ends = [labels(G, side[entries]) for side in (G.row, G.col)]
    if not data:
        return zip(*ends, strict=True)
    if G.edge_data is None:
        raise NotImplementedError("the conversion left out the attributes of edges")
    return zip(*ends, [G.edge_data[e] for e in entries.tolist()], strict=True)


def _tree(G: ConvertedGraph, entries: np.ndarray):
    """The nodes of the graph with these edges in both directions."""
    n = len(G)
    low, high = np.minimum(G.row, G.col), np.maximum(G.row, G.col)
    keys = low.astype(np.int64) * n + high
    return convert_to_nx(G.induced(np.ones(n, bool), np.isin(keys, keys[entries])))


@implements
def minimum_spanning_edges(
    G, algorithm="kruskal", weight="weight", keys=True, data=True, ignore_nan=False
):
    """The edges of a minimum spanning forest by weight."""
    return _listed(G, _edges(G, weight, ignore_nan, most=False), data)


@implements
def maximum_spanning_edges(
    G, algorithm="kruskal", weight="weight", keys=True, data=True, ignore_nan=False
):
    """The edges of a maximum spanning forest by weight."""
    return _listed(G, _edges(G, weight, ignore_nan, most=True), data)


@implements
def minimum_spanning_tree(G, weight="weight", algorithm="kruskal", ignore_nan=False):
    """A minimum spanning forest with all attributes."""
    return _tree(G, _edges(G, weight, ignore_nan, most=False))


@implements
def maximum_spanning_tree(G, weight="weight", algorithm="kruskal", ignore_nan=False):
    """A maximum spanning forest with all attributes."""
    return _tree(G, _edges(G, weight, ignore_nan, most=True))
