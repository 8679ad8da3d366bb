"""Device graphs of a converted graph, bucketed by `pad` so that graphs share compiled programs."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np

from .._core.indices import bucketed
from ..construct.from_arrays import from_edges
from ..construct.padding import pad
from ..formats import CSR
from ..graph import Graph, prepare
from .graph import ConvertedGraph

FEWEST_VERTICES, FEWEST_ENTRIES = 64, 256  # of a bucket: tiny graphs share one


def pattern(G: ConvertedGraph, *, both: bool = False) -> Graph:
    """Edges of value 1, or both directions of them, prepared for BFS; parallel edges as one."""
    return weighted(G, None, parallel=np.maximum, both=both, purpose=("bfs",))


def simple_pattern(G: ConvertedGraph) -> Graph:
    """Edges of value 1 in both directions without self loops."""
    return weighted(G, None, parallel=np.maximum, both=True, loops=False)


def weighted(
    G: ConvertedGraph,
    attribute: str | None,
    *,
    parallel: Any,
    both: bool = False,
    purpose: tuple[str, ...] = (),
    loops: bool = True,
) -> Graph:
    """The values of an attribute, parallel edges joined by a NumPy ufunc; both: of each edge in
    both directions."""
    both = both and G.is_directed()
    key = ("weighted", attribute, parallel.__name__, both, purpose, loops, _dtype())

    def make() -> Graph:
        row, col, values = G.row, G.col, G.weights(attribute).astype(np.float64)
        if both:
            row, col, values = np.r_[row, col], np.r_[col, row], np.r_[values, values]
        if not loops:
            row, col, values = (v[row != col] for v in (row, col, values))
        if G.is_multigraph() or both:
            row, col, values = joined(len(G), row, col, values, parallel)
        graph = on_device(len(G), row, col, values.astype(_dtype()))
        return prepare(graph, for_=purpose, symmetric=both or not G.is_directed())

    return G.once(key, make)


def on_device(n: int, row: np.ndarray, col: np.ndarray, values: np.ndarray) -> Graph:
    """The graph of distinct edges, in the bucket of its sizes."""
    A: CSR = from_edges(row, col, values, shape=(n, n))
    rows, slots = max(FEWEST_VERTICES, bucketed(n)), max(FEWEST_ENTRIES, bucketed(len(row)))
    return pad(A, n=rows, nse=slots)


def joined(
    n: int, row: np.ndarray, col: np.ndarray, values: np.ndarray, parallel: Any
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Edges sorted by row, then column; those of equal ends joined by a NumPy ufunc."""
    keys = row.astype(np.int64) * n + col
    order = np.argsort(keys, kind="stable")
    keys = keys[order]
    first = np.flatnonzero(np.append(True, keys[1:] != keys[:-1])) if len(keys) else order
    row, col, values = row[order], col[order], values[order]
    if len(first) == len(keys):
        return row, col, values
    return row[first], col[first], parallel.reduceat(values, first)


def _dtype() -> np.dtype:
    """float64 within the precision of the backend, float32 where that is single."""
    return jax.dtypes.canonicalize_dtype(np.float64)
