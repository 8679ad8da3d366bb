"""Data frames: pandas, polars, Arrow, or a dictionary of columns, there and back; Parquet."""

from __future__ import annotations

import collections
import importlib
import itertools
import os
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..._core.eager.arrays import unmasked
from ...algebra.monoids import Monoid, plus
from ...construct.edges import in_dtype
from ...construct.from_arrays import from_edges
from ...formats import SparseMatrix
from ...graph import Graph
from ...interop.labels import Labels, edges_of
from ...interop.optional import required
from ...shapes import Int, Shaped
from ..matrix_market import mirrored, summed

Numbers = dict[Hashable, int]  # of names


def new_numbers() -> Numbers:
    """Gives each name that it is asked for the first time the next number."""
    return collections.defaultdict(itertools.count().__next__)


def numbered(
    tails: Sequence[Hashable], heads: Sequence[Hashable], known: Numbers | Labels
) -> Int[np.ndarray, "2 edges"]:
    """The numbers of both columns; new names are added to a dictionary. ValueError: a name is not
    among the labels."""
    both = itertools.chain.from_iterable(zip(tails, heads, strict=True))
    if isinstance(known, Labels):
        found = known.vertices(both)
    else:
        found = np.fromiter(map(known.__getitem__, both), np.int32, 2 * len(tails))
    return found.reshape(-1, 2).T


def ends_of(
    tails: Shaped[np.ndarray, " edges"], heads: Shaped[np.ndarray, " edges"], labels: bool | Labels
) -> tuple[Int[np.ndarray, " edges"], Int[np.ndarray, " edges"], Labels | None]:
    """The vertices of both columns and the labels, which True finds and False does without."""
    if not isinstance(labels, bool | Labels):
        raise TypeError(f"`labels` must be True, False or Labels; got {labels!r}.")
    if labels is False:
        for name, side in zip(("source", "target"), (tails, heads), strict=True):
            if side.size and side.dtype.kind not in "iu":
                raise ValueError(
                    f"`{name}` holds {side.dtype}, no integers: labels=True takes names"
                )
            if side.size and (side.min() < 0 or side.max() >= 2**63 - 1):
                wrong = side.min() if side.min() < 0 else side.max()
                raise ValueError(f"`{name}` must hold vertices, integers from 0; got {wrong}")
        return tails.astype(np.int64), heads.astype(np.int64), None
    if labels is True and tails.dtype == heads.dtype and tails.dtype.kind in "iu":
        found, first, place = _distinct(np.stack([tails, heads], 1).ravel())
        order = np.argsort(first)
        numbers = np.empty(len(order), np.int32)
        numbers[order] = np.arange(len(order))
        row, col = numbers[place].reshape(-1, 2).T
        return row, col, Labels(found[order].tolist())
    names = tails.tolist(), heads.tolist()
    if isinstance(labels, Labels):
        return *numbered(*names, labels), labels
    known = new_numbers()
    row, col = numbered(*names, known)
    missing = {name for name in known if name is None or str(name == name) != "True"}  # pandas.NA
    for k, pair in enumerate(zip(*names, strict=True) if missing else ()):
        if not missing.isdisjoint(pair):
            raise ValueError(f"row {k} lacks the name of an end; it has {pair}.")
    return row, col, Labels(known)


def _distinct(names: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers without repetition, the first place of each, and which of them each was."""
    low, high = (int(names.min()), int(names.max())) if names.size else (0, names.size)
    if names.dtype.kind == "u" or high - low >= 4 * names.size:
        return np.unique(names, return_index=True, return_inverse=True)
    place = names.astype(np.int64) - low  # near each other: a table instead of a sort
    first = np.full(high - low + 1, -1)
    first[place[::-1]] = np.arange(names.size)[::-1]  # the last that is written stays
    met = first >= 0
    return np.flatnonzero(met) + low, first[met], (np.cumsum(met) - 1)[place]


def values_of(
    values: Shaped[np.ndarray, " edges"] | None, edges: int, dtype: Any
) -> Shaped[np.ndarray, " edges"]:
    """The values, or ones, in the dtype, by default float32. ValueError: they are no numbers, or
    the dtype does not hold one."""
    dtype = np.dtype(np.float32 if dtype is None else dtype)
    if values is None:
        return np.ones(edges, dtype)
    try:
        if values.dtype.kind not in "biufc":  # objects or text
            values = np.array(values.tolist())
            values = values.astype(np.float64) if values.dtype.kind not in "biufc" else values
    except (TypeError, ValueError, OverflowError) as error:
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
        row, col, values = mirrored(row, col, values, "symmetric")
    if dup is plus:
        row, col, sums = summed(row, col, values, shape, values.dtype)
        values = in_dtype("`weight` summed at one place holds", sums, values.dtype)
    # `return_slots` adds no spare slot, which only guards values in the order of the edges.
    kept: dict[str, Any] = {"shape": shape, "dup": dup, "format": format}
    return from_edges(row, col, values, **kept, return_slots=True)[0]


BY_NAME = ("pandas", "polars", "pyarrow")  # libraries whose tables give columns by name


def from_table(
    frame: Any,
    source: str = "source",
    target: str = "target",
    weight: str | None = None,
    *,
    labels: bool | Labels = True,
    shape: tuple[int, int] | None = None,
    directed: bool = True,
    dup: Monoid = plus,
    dtype: Any = None,
    format: str = "csr",
) -> Any:
    """A matrix and the labels of its vertices from a table with a row an edge.

    Args:
        frame: a data frame of pandas or polars, a table of Arrow, any mapping of names to columns
            (a dict of arrays); or what else has `__arrow_c_stream__` (DuckDB), by pyarrow.
        source, target: the columns of the ends: labels of any hashable kind.
        weight: the column of the values; None: ones.
        labels: as of `read_edgelist`. True: ends are names. `Labels`: ends are among their names,
            and their vertices are those of the matrix. False: ends are vertices, integers from 0.
        shape: of the matrix where `labels` is False; None: up to the largest vertex.
        directed: False: every row is an edge in both directions.
        dup: the monoid that combines equal pairs.
        dtype: of the values; float32 by default.
        format: name of the format.

    Returns:
        (matrix, `Labels`), vertices in the order in which the table meets them, row by row; for
        `labels=False` the matrix alone.

    Raises:
        ValueError: a column is not there, columns differ in length, a row lacks an end or has one
            that is not among `labels`, or both `labels` and `shape` are given.
        TypeError: `frame` is no table, or `labels` are none.
        ImportError: it needs pyarrow, which is not installed.

    >>> A, labels = from_table({"source": ["b", "b"], "target": ["a", "c"]}, directed=False)
    >>> labels.names, A.todense().tolist()
    (['b', 'a', 'c'], [[0.0, 1.0, 1.0], [1.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    """
    names = [source, target, *([] if weight is None else [weight])]
    tails, heads, *rest = columns = [column_of(frame, name) for name in names]
    for name, column in zip(names, columns, strict=True):
        if len(column) != len(tails):
            raise ValueError(f"{name!r} and {source!r} differ in length.")
    row, col, found = ends_of(tails, heads, labels)
    if found is not None:
        if shape is not None:
            raise ValueError("`shape` is that of `labels`: leave one of them out.")
        shape = len(found), len(found)
    values = values_of(rest[0] if rest else None, len(row), dtype)
    how: dict[str, Any] = {"directed": directed, "dup": dup, "format": format}
    A = matrix_of(row, col, values, shape=shape, **how)
    return A if found is None else (A, found)


def to_table(
    A: SparseMatrix | Graph,
    labels: Labels | None = None,
    *,
    source: str = "source",
    target: str = "target",
    weight: str | None = "weight",
) -> dict[str, Any]:
    """Columns with a row an entry, row by row of A, stored zeros too: for any kind of data frame.

    `pandas.DataFrame(table)`, `polars.DataFrame(table)` and `pyarrow.table(table)` take it.

    Args:
        A: matrix in any format, or a `Graph` (without its ghosts).
        labels: names of the vertices; None: 0, 1, ...
        source, target, weight: names of the columns; no `weight`: no column of values.

    Returns:
        Name -> column: the ends a list, the values an array.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced, `labels` are not one a vertex, or two columns have one name.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 1], [2.0, 3.0], shape=(2, 2))
    >>> jsp.io.to_table(A, jsp.Labels(["Rome", "Pisa"]), weight=None)
    {'source': ['Rome', 'Pisa'], 'target': ['Pisa', 'Pisa']}
    """
    if len({source, target, weight}) < 3:
        names = (source, target, weight)
        raise ValueError(f"`source`, `target` and `weight` must differ; got {names}.")
    names, *ends, values = edges_of(A, labels, square=False)
    tails, heads = (side.tolist() for side in ends)
    if labels is not None:
        tails, heads = ([names[v] for v in side] for side in (tails, heads))
    columns = {source: tails, target: heads}
    return columns if weight is None else columns | {weight: values}


def column_of(frame: Any, name: str) -> np.ndarray:
    """One column of a table as an array."""
    library = type(frame).__module__.partition(".")[0]
    if hasattr(frame, "__arrow_c_stream__") and library not in BY_NAME:
        frame = required("pyarrow", f"a table of {library}").table(frame)
    if not hasattr(frame, "__getitem__"):
        raise TypeError(f"`frame` must be a data frame or a dictionary of columns; got {frame!r}.")
    try:
        column = frame[name]
        pairs = isinstance(column, (list, tuple)) and any(isinstance(x, tuple) for x in column)
        array = np.fromiter(column, object, len(column)) if pairs else np.asarray(column)
    except Exception as error:  # KeyError, IndexError, polars' own: each library has another
        names = getattr(frame, "column_names", None) or getattr(frame, "columns", None)
        names = names if names is not None else getattr(frame, "keys", list)()
        known = [str(known) for known in names]
        if name in known:
            raise
        raise ValueError(f"`frame` has no column {name!r}; it has {known}.") from error
    unmasked(name, column)
    if array.ndim != 1:
        raise ValueError(f"column {name!r} must have one axis; got shape {array.shape}.")
    kind = "" if hasattr(column, "dtype") else array.dtype.kind  # of a list
    whole = (int, np.integer)
    rounded = kind == "f" and any(isinstance(x, whole) and abs(int(x)) > 2**53 for x in column)
    if rounded or kind in ("U", "S"):  # NumPy made text or floats of all
        array = np.fromiter(column, object, len(array))
    return array


def read_parquet(path: str | os.PathLike[str], columns: Sequence[str | int | None]) -> list[Any]:
    """The columns of a Parquet or Feather file, by name or number; None for None."""
    required("pyarrow", f"a file such as {os.path.basename(path)}")
    if str(path).endswith(".parquet"):
        kind = importlib.import_module("pyarrow.parquet")
        known = kind.read_schema(path).names
    else:
        kind = importlib.import_module("pyarrow.feather")
        known = kind.read_table(path, memory_map=True).column_names
    for column in columns:
        if isinstance(column, int) and column >= len(known):
            raise ValueError(f"it has no column number {column}; it has {known}")
        if isinstance(column, str) and column not in known:
            raise ValueError(f"it has no column {column!r}; it has {known}")
    names = [known[c] if isinstance(c, int) else c for c in columns]
    table = kind.read_table(path, columns=[name for name in names if name is not None])
    return [None if name is None else _with_tuples(table[name].to_numpy()) for name in names]


def _with_tuples(column: np.ndarray) -> np.ndarray:
    """A column whose lists, which Arrow gives as arrays, are the tuples that were written."""
    if column.dtype != object or not any(isinstance(x, np.ndarray) for x in column):
        return column
    names = (tuple(x.tolist()) if isinstance(x, np.ndarray) else x for x in column)
    return np.fromiter(names, object, len(column))
