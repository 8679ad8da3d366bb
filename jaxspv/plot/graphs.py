"""Small graphs drawn as points and lines, by given places or by forces between vertices."""

from __future__ import annotations

from typing import Any

import numpy as np

from .charts import BLUE, GREY, axes_or_new, entries_on_host

MOST = 2000  # vertices that forces are computed for, each pair in every step
GAP = 0.055  # between two points that forces place, of the side of the picture


def layout(row: np.ndarray, col: np.ndarray, n: int, *, seed: int = 0, steps: int = 80):
    """Places (n, 2) by springs along edges and repulsion between all vertices.

    Source: Fruchterman, Reingold, "Graph drawing by force-directed placement", 1991.
    """
    place = np.random.default_rng(seed).uniform(-1, 1, (n, 2))
    ideal = 1 / np.sqrt(max(n, 1))
    for step in range(steps):
        offset = place[:, None] - place[None]
        distance = np.maximum(np.sqrt((offset**2).sum(-1)), 1e-3 * ideal)
        push = (offset * (ideal**2 / distance**2)[..., None]).sum(1)
        spring = place[row] - place[col]
        pull = spring * np.sqrt((spring**2).sum(1, keepdims=True)) / ideal
        np.add.at(push, row, -pull)
        np.add.at(push, col, pull)
        length = np.maximum(np.sqrt((push**2).sum(1, keepdims=True)), 1e-12)
        place += push / length * np.minimum(length, 0.2 * (1 - step / steps))
    gap = min(GAP, 0.5 / np.sqrt(max(n, 1))) * np.ptp(place, axis=0).max() if n else 0.0
    return separated(place, gap)


def separated(place: np.ndarray, gap: float) -> np.ndarray:
    """The same places; pairs nearer than `gap` are moved away from each other, to be visible."""
    other = ~np.eye(len(place), dtype=bool)
    for _ in range(20):
        way = place[:, None] - place[None]
        distance = np.sqrt((way**2).sum(-1))
        near = (distance < gap) & other
        if not near.any():
            break
        share = np.where(near, (gap - distance) / np.maximum(distance, 1e-12), 0)
        place = place + 0.5 * (way * share[..., None]).sum(1) / near.sum(1, keepdims=True).clip(1)
    return place


def draw(
    A: Any,
    ax: Any = None,
    *,
    pos: Any = None,
    values: Any = None,
    edge_values: Any = None,
    labels: Any = None,
    node_size: float = 60.0,
    cmap: str = "viridis",
    seed: int = 0,
) -> Any:
    """A small graph: vertices as points, edges as lines, as arrows where only one direction is.

    Args:
        A: square sparse matrix or Graph, concrete.
        ax: matplotlib axes; a new figure's by default.
        pos: places (n, 2) of the vertices; by forces (at most 2,000 vertices) if None.
        values: (n,) numbers that colour the vertices, infinite and NaN ones grey.
        edge_values: (entries,) numbers in slot order that make lines thicker, from 0 up.
        labels: (n,) words; True for the numbers of the vertices.
        node_size: area of a point in points squared.
        cmap: name of a colour map.
        seed: of the forces' first places.

    Returns:
        The axes; `ax.collections` has the lines, then the points.

    Raises:
        ValueError: A is not square or traced, an array has another length, the graph is too large
            to be laid out.

    >>> import jaxspv as jsp
    >>> from matplotlib.figure import Figure
    >>> ax = jsp.plot.draw(jsp.generators.grid2d(None, 3), Figure().subplots(), values=range(9))
    >>> len(ax.collections[-1].get_offsets())
    9
    """
    row, col, (m, n) = entries_on_host(A)
    if m != n:
        raise ValueError(f"`A` must be square; got shape {(m, n)}.")
    if pos is None and n > MOST:
        raise ValueError(f"`pos` must be given beyond {MOST} vertices; this graph has {n}.")
    pos = layout(row, col, n, seed=seed) if pos is None else _checked("pos", pos, (n, 2))
    ax = axes_or_new(ax)
    from matplotlib.collections import LineCollection

    width = np.full(len(row), 0.8)
    if edge_values is not None:
        edge_values = _checked("edge_values", edge_values, (len(row),))
        width = 0.3 + 4 * edge_values / max(edge_values.max(initial=0), 1e-30)
    single = ~np.isin(col.astype(np.int64) * n + row, row.astype(np.int64) * n + col)
    ends = np.stack([pos[row], pos[col]], axis=1)
    ax.add_collection(LineCollection(list(ends), linewidths=width, colors=GREY, zorder=1))
    if single.any() and n <= 200:
        tail, way = ends[single, 0], ends[single, 1] - ends[single, 0]
        heads = {"angles": "xy", "scale_units": "xy", "scale": 1, "width": 0.003}
        ax.quiver(*(tail + 0.55 * way).T, *(0.02 * way).T, color=GREY, headwidth=8, **heads)
    points = _points(ax, pos, values, node_size, cmap, n)
    if labels is not None and labels is not False:
        words = range(n) if labels is True else labels
        style = {"ha": "center", "va": "center", "fontsize": 7, "zorder": 4}
        for (x, y), word, ink in zip(pos, words, _inks(points, n), strict=True):
            ax.annotate(str(word), (x, y), color=ink, **style)
    ax.set_aspect("equal")
    ax.autoscale()
    ax.axis("off")
    return ax


def _points(ax: Any, pos: np.ndarray, values: Any, size: float, cmap: str, n: int) -> Any:
    edge = 0.6 if size >= 30 else 0.0  # a rim would cover small points
    style: dict[str, Any] = {"s": size, "edgecolors": GREY, "linewidths": edge, "zorder": 3}
    if values is None:
        return ax.scatter(*pos.T, color=BLUE, **style)
    values = _checked("values", values, (n,))
    from matplotlib import colormaps

    shown = np.ma.masked_where(~np.isfinite(values), values)
    colors = colormaps[cmap].with_extremes(bad=GREY)
    return ax.scatter(*pos.T, c=shown, cmap=colors, plotnonfinite=True, **style)


def _inks(points: Any, n: int) -> list[str]:
    """Black on light vertices, white on dark ones."""
    points.update_scalarmappable()
    colors = np.broadcast_to(points.get_facecolor(), (n, 4))
    return ["black" if c[:3] @ (0.299, 0.587, 0.114) > 0.45 else "white" for c in colors]


def _checked(name: str, array: Any, shape: tuple[int, ...]) -> np.ndarray:
    array = np.asarray(list(array) if isinstance(array, range) else array, np.float64)
    if array.shape != shape:
        raise ValueError(f"`{name}` must have shape {shape}; got {array.shape}.")
    return array
