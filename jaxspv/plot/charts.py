"""Charts: what a matrix stores (entries, degrees, tiles), and the levels of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.pytree import is_concrete
from ..algorithms.bfs.api import bfs
from ..formats import SparseMatrix
from ..graph import Graph, prepare
from ..interop.optional import required

BLUE, ORANGE, GREY = "#2166ac", "#d95f0e", "#8a939d"


def axes_or_new(ax: Any) -> Any:
    """`ax`, or the axes of a new figure of pyplot."""
    if ax is not None:
        return ax
    pyplot = required("matplotlib.pyplot", "`jaxspv.plot`", "plot")
    return pyplot.subplots(layout="constrained")[1]


def titled(ax: Any, words: str) -> None:
    """A title that fits above narrow axes."""
    ax.set_title(words, fontsize="medium")


def legend_above(ax: Any) -> None:
    """A legend in one row over what is drawn: the axes grow upwards by as much as it needs."""
    ax.legend(frameon=False, loc="upper center", ncols=2, fontsize="medium", handlelength=1.2)
    low, high = ax.get_ylim()
    if ax.get_yscale() == "log":
        ax.set_ylim(low, high * (high / low) ** 0.16)
    else:
        ax.set_ylim(low, high + 0.16 * (high - low))


def entries_on_host(A: Any) -> tuple[np.ndarray, np.ndarray, tuple[int, int]]:
    """Rows and columns of the stored entries, and the shape."""
    A = A.out if isinstance(A, Graph) else A
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    row, col = A.rowcol()
    if not is_concrete(row, col):
        raise ValueError("`A` is traced; draw it outside of jit.")
    row, col = np.asarray(row), np.asarray(col)
    stored = (row < A.shape[0]) & (col < A.shape[1])
    return row[stored], col[stored], A.shape


def spy(A: Any, ax: Any = None, *, bins: int = 256, cmap: str = "Blues") -> Any:
    """Where the entries of a matrix are: each place for small ones, by density for large ones.

    Args:
        A: sparse matrix or Graph, concrete.
        ax: matplotlib axes; a new figure's by default.
        bins: the longer side is drawn in at most that many cells. A cell of several places is
            coloured by the entries in it, on a scale of logarithms.
        cmap: name of a colour map.

    Returns:
        The axes; `ax.images[0]` holds the entries a cell.

    Raises:
        ValueError: A is traced, `bins` is not positive.

    >>> import jaxspv as jsp
    >>> from matplotlib.figure import Figure
    >>> ax = jsp.plot.spy(jsp.generators.grid2d(None, 3), Figure().subplots())
    >>> ax.images[0].get_array().shape
    (9, 9)
    """
    if bins < 1:
        raise ValueError(f"`bins` must be positive; got {bins}.")
    row, col, (m, n) = entries_on_host(A)
    cell = max(1.0, max(m, n) / bins)
    counts = np.zeros((max(1, int(np.ceil(m / cell))), max(1, int(np.ceil(n / cell)))))
    np.add.at(counts, ((row / cell).astype(int), (col / cell).astype(int)), 1)
    ax = axes_or_new(ax)
    extent = (-0.5, max(n, 1) - 0.5, max(m, 1) - 0.5, -0.5)
    shown = np.log1p(counts)
    image = ax.imshow(shown, cmap=cmap, extent=extent, interpolation="nearest", vmin=0)
    if cell > 1:
        inset = ax.inset_axes((1.04, 0.1, 0.05, 0.8))  # relative to the picture, not to its axes
        bar = ax.figure.colorbar(image, cax=inset, label="entries a cell")
        most = int(counts.max(initial=0))
        ticks = [k for k in (0, 1, 10, 100, 1000, 10_000, 100_000) if k <= most]
        bar.set_ticks(np.log1p(ticks), labels=[f"{k:,}" for k in ticks])
    ax.set(xlabel="column", ylabel="row")
    titled(ax, f"{m:,} x {n:,}, {len(row):,} entries")
    return ax


def degree_distribution(A: Any, ax: Any = None, *, direction: str = "out") -> Any:
    """How many vertices have each degree, both on scales of logarithms.

    Args:
        A: sparse matrix or Graph, concrete.
        ax: matplotlib axes; a new figure's by default.
        direction: "out" (entries of a row) or "in" (of a column).

    Returns:
        The axes; `ax.lines[0]` has degrees and numbers of vertices. Vertices of degree 0 have no
        place on such a scale: the title counts them.

    Raises:
        ValueError: A is traced, `direction` is another word.

    >>> import jaxspv as jsp
    >>> from matplotlib.figure import Figure
    >>> ax = jsp.plot.degree_distribution(jsp.generators.grid2d(None, 3), Figure().subplots())
    >>> ax.lines[0].get_xdata().tolist(), ax.lines[0].get_ydata().tolist()
    ([2, 3, 4], [4, 4, 1])
    """
    if direction not in ("out", "in"):
        raise ValueError(f'`direction` must be "out" or "in"; got {direction!r}.')
    row, col, shape = entries_on_host(A)
    index, size = (row, shape[0]) if direction == "out" else (col, shape[1])
    count = np.bincount(np.bincount(index, minlength=size))
    degree = np.flatnonzero(count)
    alone = int(count[0]) if len(count) and size else 0
    degree = degree[degree > 0]
    ax = axes_or_new(ax)
    ax.plot(degree, count[degree], "o", color=BLUE, markersize=4, markeredgewidth=0)
    ax.set(xscale="log", yscale="log", xlabel=f"{direction}-degree", ylabel="vertices")
    mean = len(index) / max(size, 1)
    titled(ax, f"mean {mean:.3g}, largest {degree.max(initial=0):,}, {alone:,} of degree 0")
    return ax


def tiles(A: Any, ax: Any = None, *, nt: int = 64) -> Any:
    """How full the nt-by-nt tiles of a matrix are: what decides whether tiles pay.

    Args:
        A: sparse matrix or Graph, concrete.
        ax: matplotlib axes; a new figure's by default.
        nt: side of a tile.

    Returns:
        The axes: a bar for each power of two, of the non-empty tiles with that many entries. The
        title gives the share of non-empty tiles and their mean, which `choose_format` uses.

    Raises:
        ValueError: A is traced, `nt` is not positive.

    >>> import jaxspv as jsp
    >>> from matplotlib.figure import Figure
    >>> ax = jsp.plot.tiles(jsp.generators.grid2d(None, 12), Figure().subplots(), nt=16)
    >>> sum(int(bar.get_height()) for bar in ax.patches)
    25
    """
    if nt < 1:
        raise ValueError(f"`nt` must be positive; got {nt}.")
    row, col, (m, n) = entries_on_host(A)
    across = max(1, -(-n // nt))
    _, per_tile = np.unique((row // nt).astype(np.int64) * across + col // nt, return_counts=True)
    of = across * max(1, -(-m // nt))
    ax = axes_or_new(ax)
    power = np.bincount(np.log2(per_tile).astype(int)) if len(per_tile) else np.zeros(1, int)
    labels = ["1"] + [f"{1 << k}-{(2 << k) - 1}" for k in range(1, len(power))]
    ax.bar(range(len(power)), power, color=BLUE)
    ax.set_xticks(range(len(power)), labels, rotation=45, ha="right")
    mean = per_tile.mean() if len(per_tile) else 0.0
    ax.axvline(np.log2(mean) if mean else 0, color=ORANGE, linewidth=1.5, label=f"mean {mean:.3g}")
    ax.set(xlabel=f"entries in a tile of {nt} by {nt}", ylabel="tiles")
    legend_above(ax)
    titled(ax, f"{len(per_tile):,} of {of:,} tiles hold entries")
    return ax


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
