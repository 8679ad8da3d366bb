"""Helpers of the pictures: axes, entries on the host, colours."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._core.pytree import is_concrete
from ..formats import SparseMatrix
from ..graph import Graph

BLUE, ORANGE, GREY = "#2166ac", "#d95f0e", "#8a939d"


def axes_or_new(ax: Any) -> Any:
    """`ax`, or the axes of a new figure of pyplot."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError(
            "`jaxspv.plot` needs matplotlib: python -m pip install 'jaxspv[plot]'"
        ) from error
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
