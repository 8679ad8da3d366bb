"""Files with an edge a line: text (CSV, TSV, SNAP's), Parquet; reading and writing."""

from __future__ import annotations

import csv
import gzip
import os
import pathlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ...formats import SparseMatrix
from ...graph import Graph
from ...monoids import Monoid, plus
from ..arguments import check_shape
from ..labeled.labels import Labels
from ..mtx_header import OFFSETS_ANYWAY, ROWS_A_BYTE
from ..opening import existing, refusing
from .columns import entries_named, matrix_of, numbered, values_of
from .frames import read_parquet, required
from .lines import Text

if TYPE_CHECKING:
    from jaxtyping import Int

LINES = 1 << 16  # written at once
TABLES = (".parquet", ".feather", ".arrow")
Column = int | str


def read_edges(
    path: str | os.PathLike[str],
    *,
    source: Column = 0,
    target: Column = 1,
    weight: Column | None = None,
    labels: bool | Labels = False,
    directed: bool = True,
    shape: tuple[int, int] | None = None,
    delimiter: str | None = None,
    header: bool | None = None,
    comments: str = "#%",
    dup: Monoid = plus,
    dtype: Any = None,
    format: str = "csr",
    progress: bool = False,
) -> Any:
    """A matrix from a file with an edge a line: text (`.gz` or not), `.parquet`, `.feather`.

    Args:
        path: the file; its suffix tells the kind, and what is no table is text in UTF-8.
        source, target: the columns of the ends, by number or by the name in the header.
        weight: the column of the values; None: ones.
        labels: False: ends are vertices, integers from 0. True: they are names of any kind, and the
            `Labels` are given too. `Labels`: they are names of these.
        directed: False: every line is an edge in both directions.
        shape: (m, n); None: the smallest square that holds the vertices.
        delimiter: between columns of a text; None: a tab, `,`, `;`, `|`, what comes first of these
            in the first line, else white space.
        header: whether the first line of a text names the columns; None: it does where a column is
            asked for by name, or where ends should be integers and are none.
        comments: a line of a text that starts with one of these characters is left out, as is an
            empty one.
        dup: the monoid that combines equal pairs.
        dtype: of the values; float32 by default.
        format: name of the format.
        progress: shows a bar on stderr.

    Returns:
        The matrix; or (matrix, `Labels`) where `labels` are asked for: names as text (of Parquet:
        as they are), in the order in which the lines meet them.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        ValueError: a line is wrong, it tells which and why; or `shape` does not hold a vertex.
        ImportError: Parquet needs pyarrow, which is not installed.

    Cost: O(edges); 20 bytes an edge and a block of the text while it is read.

    >>> import pathlib, tempfile
    >>> import jaxspv as jsp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "roads.csv"
    ...     _ = path.write_text("from,to,km\\nRome,Pisa,3\\nPisa,Lucca,2\\n")
    ...     A, labels = jsp.read_edges(path, weight="km", labels=True)
    >>> labels.names, A.todense()[0].tolist()
    (['Rome', 'Pisa', 'Lucca'], [0.0, 3.0, 0.0])
    """
    path, columns = existing(path), (source, target, weight)
    shape = _checked(columns, labels, shape, directed)
    with refusing(path, "list of edges"):
        if str(path).endswith(TABLES):
            row, col, values, found = _of_table(path, columns, labels)
        else:
            text = Text(columns, labels, shape, delimiter, header)
            row, col, values, found = text.read(path, comments, progress)
        shape = _shape(path, row, col, found, shape, format)
        values = values_of(values, len(row), dtype)
    how: dict[str, Any] = {"directed": directed, "dup": dup, "format": format}
    A = matrix_of(row, col, values, shape=shape, **how)
    return A if found is None else (A, found)


def write_edges(
    path: str | os.PathLike[str],
    A: SparseMatrix | Graph,
    labels: Labels | None = None,
    *,
    weight: str | None = "weight",
    delimiter: str | None = None,
) -> None:
    """Writes a line an entry, row by row of A, under a header `source,target,weight`.

    `read_edges(path, weight="weight")` reads it back, values to the last bit; with names of
    vertices, `labels=True`.

    Args:
        path: `.parquet` (needs pyarrow), else text, compressed where it ends in `.gz`.
        A: matrix in any format, or a `Graph` (without its ghosts).
        labels: names of the vertices; None: 0, 1, ...
        weight: name of the column of values; None: there is none.
        delimiter: None: a comma where `path` ends in `.csv` or `.csv.gz`, else a tab.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced, or `labels` are not one a vertex.
        ImportError: Parquet needs pyarrow, which is not installed.

    >>> import pathlib, tempfile
    >>> import jaxspv as jsp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     jsp.write_edges(path, jsp.from_edges([0, 1], [1, 1], [2.0, 0.5]))
    ...     path.read_text().split()
    ['source,target,weight', '0,1,2.0', '1,1,0.5']
    """
    name = os.fspath(path)
    tails, heads, values = entries_named(A, labels)
    if name.endswith(".parquet"):
        arrow = required("pyarrow", "a file of Parquet")
        columns: dict[str, Any] = {"source": tails, "target": heads}
        table = arrow.table(columns if weight is None else columns | {weight: values})
        required("pyarrow.parquet", "a file of Parquet").write_table(table, name)
        return
    if delimiter is None:
        delimiter = "," if name.removesuffix(".gz").endswith(".csv") else "\t"
    columns = {"source": tails, "target": heads}
    if weight is not None:
        columns[weight] = values.astype(np.int8) if values.dtype == bool else values
    open_text = gzip.open if name.endswith(".gz") else open
    with open_text(name, "wt", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator="\n")
        writer.writerow(columns)
        for start in range(0, len(tails), LINES):
            part = [np.asarray(c[start : start + LINES]).astype(str) for c in columns.values()]
            writer.writerows(zip(*part, strict=True))


def _checked(
    columns: Sequence[Any], labels: Any, shape: Any, directed: bool
) -> tuple[int, int] | None:
    """The shape, where it was given; arguments that cannot be meant are refused."""
    for name, column in zip(("source", "target", "weight"), columns, strict=True):
        number = isinstance(column, int) and not isinstance(column, bool) and column >= 0
        if not (number or isinstance(column, str) or (column is None and name == "weight")):
            raise ValueError(f"`{name}` must be the name or number of a column; got {column!r}.")
    if not isinstance(labels, bool | Labels):
        raise TypeError(f"`labels` must be True, False or Labels; got {labels!r}.")
    if shape is None:
        return None
    if labels is not False:
        raise ValueError("`shape` is that of `labels`: leave one of them out.")
    shape = check_shape(shape)
    if not directed and shape[0] != shape[1]:
        raise ValueError(f"`shape` must be square for `directed=False`; got {shape}.")
    return shape


def _of_table(path: pathlib.Path, columns: Sequence[Column | None], labels: bool | Labels) -> Any:
    tails, heads, values = read_parquet(path, columns)
    if isinstance(labels, Labels):
        row, col = (labels.vertices(side.tolist()) for side in (tails, heads))
        return row, col, values, labels
    if labels:
        found, row, col = numbered(tails, heads)
        return row, col, values, found
    for name, side in zip(("source", "target"), (tails, heads), strict=True):
        if side.dtype.kind not in "iu":
            raise ValueError(f"`{name}` holds {side.dtype}, no integers: labels=True takes names")
    return tails.astype(np.int64), heads.astype(np.int64), values, None


def _shape(
    path: pathlib.Path,
    row: Int[np.ndarray, " edges"],
    col: Int[np.ndarray, " edges"],
    labels: Labels | None,
    shape: tuple[int, int] | None,
    format: str,
) -> tuple[int, int] | None:
    """The shape of the matrix; refused where offsets for it are out of proportion to the file."""
    if labels is not None:
        return len(labels), len(labels)
    if shape is not None or not len(row):
        return shape
    n = int(max(row.max(), col.max())) + 1
    if format != "coo" and n > OFFSETS_ANYWAY + ROWS_A_BYTE * path.stat().st_size:
        raise ValueError(
            f"its largest vertex is {n - 1}, and an offset for each would take too much memory: "
            "labels=True numbers those that there are, format='coo' has no offsets"
        )
    return n, n
