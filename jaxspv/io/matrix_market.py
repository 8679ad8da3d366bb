"""Matrix Market files: the header, and the lines of entries, which NumPy reads."""

from __future__ import annotations

import dataclasses
import pathlib
from typing import Any

import numpy as np
import scipy  # its modules are imported when they are first used

from .._core.indices import hypersparse
from .opening import BLOCK, BYTES, loaded

LONGEST_LINE = 1 << 16
INFLATES = 1032  # a byte of deflate stands for at most so many
FIELDS = {  # how NumPy reads values, and what they are called
    "pattern": ([], ""),
    "integer": ([("value", np.int64)], "integer of 64 bits"),
    "unsigned-integer": ([("value", np.uint64)], "unsigned integer of 64 bits"),
    "real": ([("value", np.float64)], "number"),
    "double": ([("value", np.float64)], "number"),
    "complex": ([("value", np.float64, (2,))], "real imaginary"),
}
SYMMETRIES = ("general", "symmetric", "skew-symmetric", "hermitian")
Columns = tuple[np.ndarray, np.ndarray, np.ndarray]  # rows, columns and values of entries


@dataclasses.dataclass(frozen=True)
class Header:
    """What the first lines of the file state.

    Attributes:
        layout: "coordinate" or "array".
        field, symmetry: as the banner has them.
        rows, cols, entries: those stored in the file.
        lines: how many lines the header has.
    """

    layout: str
    field: str
    symmetry: str
    rows: int
    cols: int
    entries: int
    lines: int

    def check(self, path: pathlib.Path, *, compressed: bool) -> None:
        """Refuses a file with fewer bytes than its entries need, or far fewer than its offsets."""
        size = path.stat().st_size * (INFLATES if path.name.endswith(".gz") else 1)
        least = 2 if self.layout == "array" else 4 if self.field == "pattern" else 6  # "1 1 1\n"
        if self.entries * least > size + 1:
            raise ValueError(
                f"it claims {self.entries} entries, which take {self.entries * least} bytes or "
                f"more; the file has {path.stat().st_size}"
            )
        longest = max(self.rows, self.cols)
        if compressed and hypersparse(longest, size / BYTES):
            raise ValueError(
                f"it claims {longest} rows or columns for {self.entries} entries: an offset for "
                "each would take too much memory; use format='coo'"
            )


def read_header(file: Any) -> Header:
    """The header of an opened file (bytes)."""
    words = file.readline(LONGEST_LINE).decode("latin-1").lower().split()
    if len(words) != 5 or words[0] != "%%matrixmarket" or words[1] != "matrix":
        raise ValueError("it lacks the banner `%%MatrixMarket matrix ...`")
    for word, known in zip(words[2:], (("coordinate", "array"), FIELDS, SYMMETRIES), strict=True):
        if word not in known:
            raise ValueError(f"its banner says {word!r}, known are {', '.join(known)}")
    _, _, layout, field, symmetry = words
    if (layout, field) == ("array", "pattern"):
        raise ValueError("its banner says `array pattern`: a pattern has coordinates")
    lines, line = 1, b"%"
    while not line.strip() or line.lstrip().startswith(b"%"):
        lines, line = lines + 1, file.readline(LONGEST_LINE)
        if not line:
            raise ValueError("it ends before the line of sizes")
    sizes = line.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(sizes) != wanted or not all(word.isdigit() and len(word) < 19 for word in sizes):
        raise ValueError(f"its line of sizes must be {wanted} numbers; it is {line[:80]!r}")
    rows, cols, *rest = (int(word) for word in sizes)
    if symmetry != "general" and rows != cols:
        raise ValueError(f"it is {symmetry} but of shape {(rows, cols)}")
    triangle = {"general": rows * cols, "skew-symmetric": rows * (rows - 1) // 2}
    entries = rest[0] if rest else triangle.get(symmetry, rows * (rows + 1) // 2)
    return Header(layout, field, symmetry, rows, cols, entries, lines)


def read_entries(file: Any, header: Header) -> Columns:
    """All entries of a file that was read up to its header, both triangles of a symmetric one."""
    parts, line = [parsed(b"", header, 0)], header.lines + 1
    while block := file.read(BLOCK):
        rest = file.readline(LONGEST_LINE)
        if len(rest) == LONGEST_LINE:
            raise ValueError(f"one of its lines is longer than {LONGEST_LINE} bytes")
        block += rest
        parts.append(parsed(block, header, line))
        line += block.count(b"\n")
    row, col, values = map(np.concatenate, zip(*parts, strict=True))
    if len(values) != header.entries:
        raise ValueError(f"it claims {header.entries} entries; it has {len(values)}")
    if header.layout == "array":
        if header.symmetry == "general":  # column by column
            col, row = np.divmod(np.arange(header.entries), max(header.rows, 1))
        else:  # the lower triangle
            col, row = np.triu_indices(header.rows, int(header.symmetry == "skew-symmetric"))
        row, col, values = (each[values != 0] for each in (row, col, values))
    return mirrored(row, col, values, header.symmetry)


def parsed(block: bytes, header: Header, line: int) -> Columns:
    """The entries of whole lines, as they are there; of an array just the values.

    Args:
        line: the number of the first one.

    Raises:
        ValueError: a line is wrong; the message has its number and what it is.
    """
    text = block.decode("ascii", "replace")  # NumPy refuses what replaces others
    lines = text.replace("D", "E").replace("d", "e").split("\n")  # Fortran's exponents
    try:
        return _columns(lines, header)
    except ValueError:
        k, reason = _first_wrong(lines, header) or (0, "")
        shown = text.split("\n")[k].rstrip("\r")[:80]
        raise ValueError(f"line {line + k} {reason}; it is {shown!r}") from None


def _first_wrong(lines: list[str], header: Header, before: int = 0) -> tuple[int, str] | None:
    """Which line is wrong, counted from `before`, and why; None: all are right."""
    try:
        _columns(lines, header)
    except ValueError as error:
        half = len(lines) // 2
        later = before + half
        parts = ((lines[:half], before), (lines[half:], later)) if half else ()
        found = (_first_wrong(part, header, first) for part, first in parts)
        return next(filter(None, found), (before, str(error)))
    return None


def _columns(lines: list[str], header: Header) -> Columns:
    """The entries of lines; ValueError says what a line must be."""
    kind, words = FIELDS[header.field]
    placed = header.layout == "coordinate"
    try:
        table = loaded(lines, np.dtype([("row", np.int64), ("col", np.int64)] * placed + kind))
    except ValueError:
        words = f"row column {words}".rstrip() if placed else words
        raise ValueError(f"must be `{words}`") from None
    values = np.ascontiguousarray(table["value"]) if kind else np.ones(len(table))
    if values.dtype == np.float64 and (infinite := np.count_nonzero(np.isinf(values))):
        if infinite != "\n".join(lines).lower().count("inf"):
            raise ValueError("has a value beyond float64; infinity is written `inf`")
    values = values.view(np.complex128)[:, 0] if header.field == "complex" else values
    row, col = (table["row"], table["col"]) if placed else np.zeros((2, 0), np.int64)
    for index, extent in ((row, header.rows), (col, header.cols)):
        if ((index < 1) | (index > extent)).any():
            raise ValueError(f"is out of a matrix of {header.rows} rows and {header.cols} columns")
    dtype = np.int32 if max(header.rows, header.cols) < 2**31 else np.int64
    return (row - 1).astype(dtype), (col - 1).astype(dtype), values


def mirrored(row: np.ndarray, col: np.ndarray, values: np.ndarray, symmetry: str) -> Columns:
    """The entries with those of the other triangle."""
    if symmetry == "general":
        return row, col, values
    off = np.flatnonzero(row != col)
    other = np.conj(values[off]) if symmetry == "hermitian" else values[off]
    if symmetry == "skew-symmetric":
        other = opposite(other)
    return np.r_[row, col[off]], np.r_[col, row[off]], np.r_[values, other]


def opposite(values: np.ndarray) -> np.ndarray:
    """`-values`; ValueError where integers have no opposite in their dtype."""
    if values.dtype.kind == "u" and values.any():
        raise ValueError("it is skew-symmetric, but unsigned integers above 0 have no opposite")
    if values.dtype.kind == "i" and (values == np.iinfo(values.dtype).min).any():
        raise ValueError("an integer that is opposite to one of its values needs more than 64 bits")
    return -values


def summed(
    row: np.ndarray, col: np.ndarray, values: np.ndarray, shape: tuple[int, int] | None, dtype: Any
) -> Columns:
    """The entries; those at one place added in 64 bits where integers may be too narrow for sums.

    Args:
        dtype: what the sums will be held in; None: what they need.

    Raises:
        ValueError: a sum needs more than 64 bits.
    """
    held: Any = np.float64 if dtype is None else dtype
    narrow = np.dtype(held).kind in "iu"
    most = np.iinfo(held if narrow else np.int32).max
    known = values.dtype.kind in ("iuf" if narrow else "iu")
    if not known or np.abs(values.astype(float)).sum() <= most:
        return row, col, values
    exact, near = (
        scipy.sparse.coo_array((values.astype(kind), (row, col)), shape)
        for kind in (f"{values.dtype.kind}8", float)
    )
    exact.sum_duplicates()
    near.sum_duplicates()
    if values.dtype.kind != "f" and (np.abs(near.data - exact.data) > 2.0**63).any():
        raise ValueError("a sum of its entries at one place needs more than 64 bits")
    return *exact.coords, exact.data
