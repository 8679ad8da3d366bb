"""Pictures of runs: the frontier of a search level by level."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..algorithms.bfs.api import bfs
from ..graph import Graph, prepare
from .axes import BLUE, ORANGE, axes_or_new, legend_above, titled


def directions(G: Graph, levels: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each level its vertices, and whether the step out of it pulls on a CPU."""
    size = np.bincount(levels[levels >= 0], minlength=1)
    degree = np.diff(np.asarray(G.out.indptr))
    edges = np.bincount(levels[levels >= 0], degree[levels >= 0], minlength=1)
    if G.inn is None:
        return size, np.zeros(len(size), bool)
    n, m = G.n, G.nse
    looks = np.minimum(m / (edges + 1), m / max(n, 1))  # as `native/bfs.h` compares the two
    pull = 14 * edges > 0.2 * n + (n - np.cumsum(size)) * (4 + 8 * looks)
    return size, pull & (size >= max(1, n // 64))


def frontier(G: Any, source: int, ax: Any = None) -> Any:
    """The vertices that each level of a breadth-first search finds, and the direction it takes.

    Args:
        G: a `Graph` from `prepare(A, for_="bfs")`, or a square sparse matrix, which is prepared.
        source: vertex.
        ax: matplotlib axes; a new figure's by default.

    Returns:
        The axes: a bar a level, blue where the search pushes from it and orange where it pulls. The
        direction is that of the CPU's and XLA's rule; the GPU's kernel has constants of its own.

    Raises:
        ValueError, TypeError: as `bfs`.

    >>> import jaxspv as jsp
    >>> from matplotlib.figure import Figure
    >>> ax = jsp.plot.frontier(jsp.generators.grid2d(None, 3), 0, Figure().subplots())
    >>> [int(bar.get_height()) for bar in ax.patches]
    [1, 2, 3, 2, 1]
    """
    G = G if isinstance(G, Graph) else prepare(G, for_="bfs")
    levels = np.asarray(bfs(G, source, parents=False).levels)
    if levels.ndim != 1:
        raise ValueError("`source` must be one vertex.")
    size, pull = directions(G, levels)
    ax = axes_or_new(ax)
    colors = np.where(pull, ORANGE, BLUE)
    ax.bar(range(len(size)), size, color=colors, width=0.9)
    shown = [(BLUE, "pushes to the next"), (ORANGE, "the next pulls")]
    for color, words in shown if pull.any() else shown[:1]:
        ax.plot([], [], "s", color=color, label=words)
    ax.set(xlabel="level", ylabel="vertices")
    if size.max() > 500:  # the source's level has one vertex
        ax.set_yscale("log")
    legend_above(ax)
    titled(ax, f"{len(size)} levels reach {int(size.sum()):,} of {G.n:,} vertices")
    return ax
