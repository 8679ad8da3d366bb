"""Names of vertices: `Labels`, and results by name."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from .._core.indices import hypersparse
from .._core.pytree import is_concrete
from ..construct.padding import LISTS
from ..formats import SparseMatrix
from ..formats.base import ours
from ..graph import Graph
from ..shapes import Int

VERTICES = ("parents", "labels")  # fields of results that hold a vertex for each


class Labels:
    """Names of vertices, and the way from one to the other.

    Attributes:
        names: the name of each vertex.

    >>> import jaxspv as jsp
    >>> A, labels = jsp.io.from_table({"from": ["Rome", "Pisa"], "to": ["Pisa", "Lucca"]},
    ...                             "from", "to")
    >>> found = labels.named(jsp.bfs(A, labels.vertex("Rome")))
    >>> found.levels, found.parents["Lucca"]
    ({'Rome': 0, 'Pisa': 1, 'Lucca': 2}, 'Pisa')
    """

    def __init__(self, names: Iterable):
        self.names = list(names)
        self._vertices = dict(zip(self.names, range(len(self.names)), strict=True))
        if len(self._vertices) != len(self.names):
            raise ValueError("`names` must not hold a name twice.")

    def __len__(self) -> int:
        return len(self.names)

    def __contains__(self, name: Any) -> bool:
        return name in self._vertices

    def __repr__(self) -> str:
        return f"Labels of {len(self)} vertices"

    def vertex(self, name: Any) -> int:
        """The vertex of a name.

        Raises:
            ValueError: there is none.
        """
        try:
            return self._vertices[name]
        except (KeyError, TypeError):
            raise ValueError(f"`name` must be that of a vertex; got {name!r}.") from None

    def vertices(self, names: Iterable) -> Int[np.ndarray, " k"]:
        """(k,) int32, the vertices of several names.

        Raises:
            ValueError: one is not there.
        """
        names = list(names)
        try:
            return np.fromiter(map(self._vertices.__getitem__, names), np.int32, len(names))
        except (KeyError, TypeError):
            return np.array([self.vertex(name) for name in names], np.int32)

    def named(self, result: Any) -> Any:
        """A result with dictionaries by name in place of arrays over the vertices.

        Args:
            result: an array whose last axis is over the vertices (or longer: ghosts of `pad` are
                cut off), or a named tuple of an algorithm, whose other fields become Python
                numbers or stay. Vertices in it (`parents`, `labels`, and the lists `order`,
                `vertices`, `tails`, `heads`, `nodes`) become names, None where there is none.

        Returns:
            name -> value, a list of such dictionaries for a leading axis, or the named tuple.

        Raises:
            ValueError: `result` is traced, or no array over the vertices.
        """
        if not is_concrete(result):
            raise ValueError("`named` needs concrete values: call it outside of jit.")
        if not hasattr(result, "_fields"):
            return self._by_name(np.asarray(result), False)
        kinds = getattr(type(result), "__annotations__", {})
        fields = zip(result._fields, result, strict=True)
        return type(result)(*(self._field(k, v, str(kinds.get(k))) for k, v in fields))

    def _field(self, name: str, value: Any, kind: str) -> Any:
        if value is None or isinstance(value, SparseMatrix):
            return value
        if isinstance(value, tuple):
            return tuple(self._field(name, part, kind) for part in value)
        array = np.asarray(value)
        if name in LISTS:
            return self._listed(array.tolist())
        over_vertices = "Array, '" not in kind or "n']" in kind  # (k,) and (edges,) are not
        if over_vertices and array.ndim and array.shape[-1] >= len(self):
            return self._by_name(array, name in VERTICES)
        return array.tolist()

    def _listed(self, vertices: Any) -> Any:
        if isinstance(vertices, list):
            return [self._listed(v) for v in vertices]
        return self.names[vertices] if 0 <= vertices < len(self) else None

    def _by_name(self, array: np.ndarray, vertices: bool) -> Any:
        if array.ndim == 0 or array.shape[-1] < len(self):
            raise ValueError(
                f"`result` must have {len(self)} places or more in its last axis; "
                f"got shape {array.shape}."
            )
        if array.ndim > 1:
            return [self._by_name(row, vertices) for row in array]
        values = array[: len(self)].tolist()
        if vertices:
            values = [self.names[v] if v >= 0 else None for v in values]
        return dict(zip(self.names, values, strict=True))


def edges_of(
    A: SparseMatrix | Graph, labels: Labels | None, directed: bool = True, *, square: bool = True
) -> tuple[Sequence, np.ndarray, np.ndarray, np.ndarray]:
    """Names of the vertices, both ends of the edges and their values; undirected ones once.

    Args:
        square: whether A must be square without labels too.

    Raises:
        TypeError, ValueError: as `to_networkx`.
    """
    A = A if isinstance(A, Graph) else ours(A)
    if not isinstance(A, (SparseMatrix, Graph)):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    if not is_concrete(A):
        raise ValueError("`A` must be concrete: call this outside of jit.")
    n = A.shape[0]
    if isinstance(A, Graph):
        n, A = n if A.num_vertices is None else int(A.num_vertices), A.out
    if A.shape[0] != A.shape[1] and (square or labels is not None):
        raise ValueError(f"`A` must be square; got shape {A.shape}.")
    if labels is not None and not isinstance(labels, Labels):
        raise TypeError(f"`labels` must be `Labels(names)`; got {type(labels).__name__}.")
    if labels is not None and len(labels) != n:
        raise ValueError(f"`labels` must be {n}, one a vertex; got {len(labels)}.")
    names: Sequence = range(n) if labels is None else labels.names
    if directed and hypersparse(max(A.shape), A.nse):
        coo = A.to_scipy().tocoo()
        coo.sum_duplicates()
        kept: Any = np.lexsort((coo.col, coo.row))
        return names, coo.row[kept], coo.col[kept], coo.data[kept]
    matrix = A.to_scipy().tocsr()
    if not directed and not all(symmetry(matrix)):
        raise ValueError("`A` must equal its transpose for `directed=False`.")
    coo = matrix.tocoo()
    kept = slice(None) if directed else coo.row <= coo.col
    return names, coo.row[kept], coo.col[kept], coo.data[kept]


def symmetry(matrix: Any) -> tuple[bool, bool]:
    """Whether the pattern, and whether the values too, of SciPy's CSR equal those of the transpose.

    NaN equals NaN. Sorts its rows.
    """
    other = matrix.T.tocsr()
    matrix.sort_indices()
    other.sort_indices()
    fields = ("indptr", "indices")
    pattern = all(np.array_equal(getattr(matrix, f), getattr(other, f)) for f in fields)
    return pattern, pattern and np.array_equal(matrix.data, other.data, equal_nan=True)
