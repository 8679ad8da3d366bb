"""What a graph of another library is made of: names, ends and values of a matrix' edges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .._core.pytree import is_concrete
from ..formats import SparseMatrix
from ..graph import Graph
from .labels import Labels


def edges_of(
    A: SparseMatrix | Graph, labels: Labels | None, directed: bool
) -> tuple[Sequence, np.ndarray, np.ndarray, np.ndarray]:
    """Names of the vertices, both ends of the edges and their values; undirected ones once.

    Raises:
        TypeError, ValueError: as `to_networkx`.
    """
    if not isinstance(A, (SparseMatrix, Graph)):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    if not is_concrete(A):
        raise ValueError("`A` must be concrete: call this outside of jit.")
    n = A.shape[0]
    if isinstance(A, Graph):
        n, A = n if A.num_vertices is None else int(A.num_vertices), A.out
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"`A` must be square; got shape {A.shape}.")
    if labels is not None and len(labels) != n:
        raise ValueError(f"`labels` must be {n}, one a vertex; got {len(labels)}.")
    matrix = A.to_scipy().tocsr()
    if not directed and not _symmetric(matrix):
        raise ValueError("`A` must equal its transpose for `directed=False`.")
    coo = matrix.tocoo()
    kept = slice(None) if directed else coo.row <= coo.col
    names: Sequence = range(n) if labels is None else labels.names
    return names, coo.row[kept], coo.col[kept], coo.data[kept]


def _symmetric(matrix: Any) -> bool:
    """Pattern and values equal those of the transpose."""
    other = matrix.T.tocsr()
    matrix.sort_indices()
    other.sort_indices()
    fields = ("indptr", "indices", "data")
    return all(np.array_equal(getattr(matrix, f), getattr(other, f)) for f in fields)
