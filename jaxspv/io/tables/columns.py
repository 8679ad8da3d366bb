"""What tables of edges share: names made numbers, both directions, the columns of a matrix."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.pytree import is_concrete
from ...algebra.monoids import Monoid
from ...construct.arguments import in_dtype
from ...construct.from_arrays import from_edges
from ...formats import SparseMatrix
from ...graph import Graph
from ...interop.labels import Labels

if TYPE_CHECKING:
    from ...shapes import Int, Shaped


def numbered(
    tails: Shaped[np.ndarray, " edges"], heads: Shaped[np.ndarray, " edges"]
) -> tuple[Labels, Int[np.ndarray, " edges"], Int[np.ndarray, " edges"]]:
    """Labels by first occurrence in the rows, source first, and the vertices of both columns.

    Raises:
        ValueError: a name is missing (None, NaN); the message has the row.
    """
    if tails.dtype == heads.dtype and tails.dtype.kind in "iu":
        both = np.stack([tails, heads], 1).ravel()
        names, first, place = np.unique(both, return_index=True, return_inverse=True)
        order = np.argsort(first)
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        row, col = rank[place].reshape(-1, 2).T
        return Labels(names[order].tolist()), row, col
    ends = [tails.tolist(), heads.tolist()]
    for k, pair in enumerate(zip(*ends, strict=True)):
        if any(name is None or name != name for name in pair):
            raise ValueError(f"row {k} lacks the name of an end; it has {pair}.")
    labels = Labels(dict.fromkeys(itertools.chain.from_iterable(zip(*ends, strict=True))))
    row, col = (labels.vertices(side) for side in ends)
    return labels, row, col


def values_of(
    values: Shaped[np.ndarray, " edges"] | None, edges: int, dtype: Any
) -> Shaped[np.ndarray, " edges"]:
    """The values in their dtype, float32 for None; ones for None.

    Raises:
        ValueError: they are no numbers, or the dtype does not hold one: see `in_dtype`.
    """
    dtype = np.dtype(np.float32 if dtype is None else dtype)
    if values is None:
        return np.ones(edges, dtype)
    try:
        if values.dtype.kind not in "biufc":  # objects or text
            values = np.array(values.tolist())
            values = values.astype(np.float64) if values.dtype.kind not in "biufc" else values
    except (TypeError, ValueError) as error:
        raise ValueError(f"`weight` must hold numbers; {error}") from error
    return in_dtype("`weight` holds", values, dtype)


def matrix_of(
    row: Int[np.ndarray, " edges"],
    col: Int[np.ndarray, " edges"],
    values: Shaped[np.ndarray, " edges"],
    *,
    shape: tuple[int, int] | None,
    directed: bool,
    dup: Monoid,
    format: str,
) -> SparseMatrix:
    """The matrix of the edges, in both directions unless directed; loops once."""
    if not directed:
        proper = row != col
        row, col = np.r_[row, col[proper]], np.r_[col, row[proper]]
        values = np.r_[values, values[proper]]
    # `return_slots` adds no spare slot, which only guards values in the order of the edges.
    kept: dict[str, Any] = {"shape": shape, "dup": dup, "format": format}
    return from_edges(row, col, values, **kept, return_slots=True)[0]


def entries_named(
    A: SparseMatrix | Graph, labels: Labels | None
) -> tuple[list[Any], list[Any], Shaped[np.ndarray, " nse"]]:
    """The names of both ends of every entry, row by row, and the values.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced; or `labels` are not as many as rows and columns.
    """
    if not isinstance(A, (SparseMatrix, Graph)):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    if not is_concrete(A):
        raise ValueError("`A` must be concrete: call this outside of jit.")
    coo = (A.out if isinstance(A, Graph) else A).to_scipy().tocsr().tocoo()
    n = coo.shape[0]
    if isinstance(A, Graph) and A.num_vertices is not None:
        n = int(A.num_vertices)
    if labels is None:
        return coo.row.tolist(), coo.col.tolist(), coo.data
    if len(labels) != n or coo.shape[0] != coo.shape[1]:
        raise ValueError(
            f"`labels` must be {n}, one a vertex of a square matrix; got {len(labels)} for shape "
            f"{coo.shape}."
        )
    tails, heads = ([labels.names[v] for v in side.tolist()] for side in (coo.row, coo.col))
    return tails, heads, coo.data
