"""How many vertices have which degree."""

from __future__ import annotations

from typing import Literal

import jax.numpy as jnp
from jax import Array

from .._core.eager.programs import one_program
from .._core.indices import LIMIT
from ..graph import Graph, as_graph
from ..shapes import Int, Matrix
from .common.edges import without_ghosts

SIDES = ("out", "in", "both")


def degree_histogram(
    G: Matrix, size: int | None = None, *, side: Literal["out", "in", "both"] = "out"
) -> Int[Array, " size"]:
    """`count[d]`: how many vertices have degree d.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j; values do not matter, a
            self loop counts once a side.
        size: the length of the result; its last element counts degrees >= `size - 1`. None:
            n + 1, for "both" 2 n + 1, which is all of them unless entries repeat.
        side: whose edges count: "out", "in" or "both". Of a symmetric matrix "out" is the degree of
            its undirected graph.

    Returns:
        (size,) int32 of sum n; ghosts of `pad` are left out.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, `size` is no positive integer or needs 64 bits, or `side` is
            another word.

    Cost: O(n + size); "in" and "both" a pass over the edges where in-edges are not prepared.

    Source: NetworkX's `degree_histogram`, which ends at the largest degree.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1], [1, 2, 2], shape=(4, 4))
    >>> jsp.degree_histogram(A).tolist(), jsp.degree_histogram(A, 2, side="in").tolist()
    ([2, 1, 1, 0, 0], [2, 2])
    """
    graph = as_graph(G, "degree_histogram", ())
    if side not in SIDES:
        raise ValueError(f"`side` must be one of {SIDES}; got {side!r}.")
    if size is None:
        size = (2 if side == "both" else 1) * graph.n + 1
    if not isinstance(size, int) or size < 1:
        raise ValueError(f"`size` must be a positive integer; got {size!r}.")
    if size > LIMIT:
        raise ValueError(f"`size` must be at most {LIMIT}; got {size}.")
    return one_program(_histogram, graph, size=size, side=side)


def _histogram(graph: Graph, *, size: int, side: str) -> Array:
    degrees = jnp.zeros(graph.n, jnp.int32)
    if side != "in":
        degrees += graph.out_degrees
    if side != "out":
        degrees += graph.in_degrees
    place = jnp.minimum(degrees, size - 1)
    place = without_ghosts(graph, place, size)
    return jnp.zeros(size, jnp.int32).at[place].add(1, mode="drop")
