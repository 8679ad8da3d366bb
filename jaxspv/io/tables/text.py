"""Files with an edge a line: text (CSV, TSV, SNAP's), Parquet; reading and writing."""

from __future__ import annotations

import gzip
import os
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..._core.indices import hypersparse
from ...algebra.monoids import Monoid, plus
from ...construct.edges import check_shape
from ...formats import SparseMatrix
from ...graph import Graph
from ...interop.labels import Labels
from ...interop.optional import required
from ...shapes import Int
from ..opening import BYTES, existing, refusing, written_whole
from .frames import ends_of, matrix_of, read_parquet, to_table, values_of
from .lines import SEPARATORS, Text, check_delimiter, weight_kind, written

LINES = 1 << 16  # of one write
TABLES = (".parquet", ".feather", ".arrow")
Column = int | str


def read_edgelist(
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
        path: the file; its suffix gives the kind, any other than a table's is text in UTF-8.
        source, target: the columns of the ends, by number or by the name in the header.
        weight: the column of the values; None: ones.
        labels: False: ends are vertices, integers from 0. True: they are names of any kind, and the
            `Labels` are given too. `Labels`: they are names of these.
        directed: False: every line is an edge in both directions.
        shape: (m, n); None: the smallest square that holds the vertices.
        delimiter: between columns of a text; None: a tab, `,`, `;`, `|`, what comes first of these
            in the first line, else white space. Fields may be in quotes, but for white space;
            blanks at the ends of a field are left out, those within quotes are kept.
        header: whether the first line of a text names the columns; None: it does where a column is
            asked for by name, where ends should be integers and the line holds words alone, and
            where its ends read `source` and `target`.
        comments: a line of a text that starts with one of these characters is left out, as is an
            empty one.
        dup: the monoid that combines equal pairs.
        dtype: of the values; float32 by default.
        format: name of the format.
        progress: shows a bar on stderr.

    Returns:
        The matrix; or (matrix, `Labels`) where `labels` are asked for: names as text (of Parquet:
        as they are), in the order in which they first occur.

    Raises:
        FileNotFoundError, IsADirectoryError: there is no such file.
        ValueError: a line is wrong (the message has the line and why), or `shape` lacks a vertex.
        ImportError: Parquet needs pyarrow, which is not installed.

    Cost: O(edges); 20 bytes an edge and a block of the text while it is read.

    >>> import pathlib, tempfile
    >>> import jaxspv as jsp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "roads.csv"
    ...     _ = path.write_text("from,to,km\\nRome,Pisa,3\\nPisa,Lucca,2\\n")
    ...     A, labels = jsp.read_edgelist(path, weight="km", labels=True)
    >>> labels.names, A.todense()[0].tolist()
    (['Rome', 'Pisa', 'Lucca'], [0.0, 3.0, 0.0])
    """
    path, columns = existing(path), (source, target, weight)
    check_delimiter(delimiter)
    shape = _checked(columns, labels, shape, directed)
    with refusing(path, "list of edges"):
        if str(path).endswith(TABLES):
            tails, heads, values = read_parquet(path, columns)
            row, col, found = ends_of(tails, heads, labels)
        else:
            text = Text(columns, labels, shape, delimiter, header, weight_kind(dtype))
            row, col, values, found = text.read(path, comments, progress)
        shape = _shape(path, row, col, found, shape, format)
        values = values_of(values, len(row), dtype)
    how: dict[str, Any] = {"directed": directed, "dup": dup, "format": format}
    A = matrix_of(row, col, values, shape=shape, **how)
    return A if found is None else (A, found)


def write_edgelist(
    path: str | os.PathLike[str],
    A: SparseMatrix | Graph,
    labels: Labels | None = None,
    *,
    weight: str | None = "weight",
    delimiter: str | None = None,
) -> None:
    """Writes a line an entry, row by row of A, under a header `source,target,weight`.

    `read_edgelist(path, weight="weight", dtype=A.dtype)` reads it back, values to the last bit;
    with names of vertices, `labels=True`: as text, to the last character. Vertices without an entry
    are not written.

    Args:
        path: `.parquet`, `.feather`, `.arrow` (these need pyarrow), else text, compressed where it
            ends in `.gz`.
        A: matrix in any format, or a `Graph` (without its ghosts).
        labels: names of the vertices, of text those that need it in quotes; None: 0, 1, ...
        weight: name of the column of values; None: there is none.
        delimiter: None: a comma where `path` ends in `.csv` or `.csv.gz`, else a tab.
            `read_edgelist` finds out a tab, `,`, `;`, `|` and a blank by itself.

    Raises:
        TypeError: A is no sparse matrix or Graph.
        ValueError: it is traced or complex, `labels` are not one a vertex, or the file cannot hold
            a name: one that is empty, has line ends, or reads as another does.
        ImportError: Parquet needs pyarrow, which is not installed.

    >>> import pathlib, tempfile
    >>> import jaxspv as jsp
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder) / "a.csv"
    ...     jsp.write_edgelist(path, jsp.from_edges([0, 1], [1, 1], [2.0, 0.5]))
    ...     path.read_text().split()
    ['source,target,weight', '0,1,2.0', '1,1,0.5']
    """
    name = os.fspath(path)
    check_delimiter(delimiter)
    if weight in ("source", "target") or not isinstance(weight, str | None):
        raise ValueError(f"`weight` must be a name other than source and target; got {weight!r}.")
    mark = delimiter or ("," if name.removesuffix(".gz").endswith(".csv") else "\t")
    if not name.endswith(TABLES):
        if weight is not None and (
            written(weight, mark) != weight or set(weight) & set(SEPARATORS)
        ):
            raise ValueError(f"`weight` must be a word without marks and quotes; got {weight!r}.")
        labels = None if labels is None else Labels(_written(labels.names, mark))
    columns = to_table(A, labels, weight=weight)
    kind = "" if weight is None else columns[weight].dtype.kind
    if kind == "c":
        raise ValueError(
            f"`A` must hold real values in a list of edges; got {A.dtype}: write_mtx and save_npz "
            "take them."
        )
    if name.endswith(TABLES):
        return _write_table(name, columns)
    if kind == "b":
        columns[str(weight)] = columns[str(weight)].astype(np.int8)
    open_text = gzip.open if name.endswith(".gz") else open
    with written_whole(name) as part, open_text(part, "wt", encoding="utf-8", newline="") as file:
        file.write(mark.join(columns) + "\n")
        for start in range(0, len(columns["source"]), LINES):
            parts = (c[start : start + LINES] for c in columns.values())
            texts = (p.astype(str) if isinstance(p, np.ndarray) else map(str, p) for p in parts)
            file.writelines(f"{mark.join(row)}\n" for row in zip(*texts, strict=True))


def _written(names: Sequence[Any], mark: str) -> list[str]:
    """Names as lines hold them. Refuses what is neither text nor a number, what a line cannot hold,
    and two names that read alike."""
    found: dict[str, Any] = {}
    for name in names:
        if not isinstance(name, str | int | float):
            raise ValueError(f"`labels` must be text or numbers in a text file; got {name!r}.")
        text = written(str(name), mark)
        if text is None:
            raise ValueError(
                f"`labels` holds {name!r}, which a line with {mark!r} between its columns cannot "
                "hold: a .parquet file can."
            )
        if text in found:
            raise ValueError(
                f"`labels` holds {found[text]!r} and {name!r}, which are one name in a text."
            )
        found[text] = name
    return list(found)


def _write_table(name: str, columns: dict[str, Any]) -> None:
    """Columns as Parquet, or Feather where the name does not end in `.parquet`."""
    arrow = required("pyarrow", f"a file such as {os.path.basename(name)}")
    if any(end is None or end != end for side in ("source", "target") for end in columns[side]):
        raise ValueError("`labels` must not hold None or NaN: a table has no name there.")
    try:
        table = arrow.table(columns)
    except (arrow.ArrowInvalid, arrow.ArrowTypeError) as error:
        raise ValueError(f"`labels` must be names of one kind in a table; {error}") from error
    with written_whole(name) as part:
        if name.endswith(".parquet"):
            required("pyarrow.parquet", "a file of Parquet").write_table(table, part)
        else:
            required("pyarrow.feather", "a file of Feather").write_feather(table, part)


def _checked(
    columns: Sequence[Any], labels: Any, shape: Any, directed: bool
) -> tuple[int, int] | None:
    """The given shape or None; refuses contradictory arguments."""
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
    if format != "coo" and hypersparse(n, path.stat().st_size / BYTES):
        raise ValueError(
            f"its largest vertex is {n - 1}, and an offset for each would take too much memory: "
            "labels=True numbers those that there are, format='coo' has no offsets"
        )
    return n, n
