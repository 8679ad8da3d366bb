"""Graphs that must be undirected, and whether one is: patterns that equal their transpose."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from ..._core.eager.arrays import by_numpy, known_while_tracing
from ..._core.eager.kept import kept
from ..._core.pytree import is_concrete
from ...formats.csr import PATTERN, ROUNDED, canonical, known_symmetric
from ...graph import Graph, as_graph


def undirected(G: Any, algorithm: str, *, values: bool = False) -> Graph:
    """`G` as a Graph; its pattern is symmetric, or traced and so taken at its word.

    Args:
        values: whether its values must be symmetric too, but for rounding.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern or values, where they are concrete, are not
            symmetric.
    """
    graph = as_graph(G, algorithm, ())
    if is_undirected(graph, values=values) is not False:
        return graph
    if not values or is_undirected(graph) is False:
        raise ValueError(
            f"`G` must have a symmetric pattern: {algorithm} is of undirected graphs. "
            'Join A and its transpose first: `jsp.ewise_add(A, A.T, "max")`.'
        )
    raise ValueError(
        f"weights must be symmetric: {algorithm} is of undirected graphs, and some edge weighs "
        "more in one direction. `A + A.T` is symmetric."
    )


def is_undirected(graph: Graph, *, values: bool = False) -> bool | None:
    """Whether the pattern equals its transpose; None: it is traced and not declared.

    Args:
        values: whether the values are compared too, but for rounding.
    """
    if graph.symmetric:
        return True
    A = graph.out
    if not is_concrete(A.indices, A.indptr, A.data if values else ()):
        return None

    def compare():
        B = A
        if not values and (by_numpy(A.indices) or not is_concrete(A.data)):
            B = dataclasses.replace(A, data=np.zeros(A.nse, bool), overflow=np.zeros((), bool))
        with known_while_tracing():
            B = B if B.sorted and B.unique else canonical(B)
            return bool(known_symmetric(B, ROUNDED if values else PATTERN))

    arrays = (A.indptr, A.indices, A.data) if values else (A.indptr, A.indices)
    return kept(arrays, ("symmetric", values), compare)
