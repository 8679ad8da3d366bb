"""The header of a Matrix Market file, checked against the file before anything is allocated."""

from __future__ import annotations

import dataclasses
import pathlib
import re
from typing import Any

LONGEST_LINE = 1 << 16
MOST_COMMENTS = 1 << 20  # lines
INFLATES = 1032  # a byte of deflate stands for at most so many
OFFSETS_ANYWAY = 1 << 24  # rows whose offsets may take memory whatever the size of the file
ROWS_A_BYTE = 16
_REAL = rb"-?+(?:(?:[0-9]++\.?+[0-9]*+|\.[0-9]++)(?:[eE][+-]?+[0-9]++)?+|(?i:inf(?:inity)?+|nan))"
VALUES = {  # of a field: how they are written, and what they are called
    "pattern": ([], ""),
    "integer": ([rb"-?+[0-9]++"], "integer"),
    "unsigned-integer": ([rb"[0-9]++"], "unsigned integer"),
    "complex": ([_REAL, _REAL], "real imaginary"),
}


@dataclasses.dataclass(frozen=True)
class Header:
    """The sizes that the first lines of the file state.

    Attributes:
        layout: "coordinate" or "array".
        field, symmetry: as the banner has them.
        rows, cols, entries: those stored in the file.
    """

    layout: str
    field: str
    symmetry: str
    rows: int
    cols: int
    entries: int

    @property
    def lines(self) -> re.Pattern[bytes]:
        """Any number of lines with an entry each; a match ends where the first wrong line begins.

        No quantifier gives back what it took: a line is read once.
        """
        index = [] if self.layout == "array" else [rb"[0-9]++"] * 2
        line = rb"[ \t\r]++".join(index + VALUES.get(self.field, ([_REAL], ""))[0])
        return re.compile(rb"[ \t\r\n]*+(?:" + line + rb"[ \t\r]*+\n[ \t\r\n]*+)*+")

    @property
    def wanted(self) -> str:
        """What a line must be, in words."""
        value = VALUES.get(self.field, ([], "number"))[1]
        return f"`{value if self.layout == 'array' else f'row column {value}'.rstrip()}`"

    def check(self, path: pathlib.Path, *, compressed: bool) -> None:
        """Nothing, if the file at `path` is long enough for what it claims.

        Args:
            path: the file, `.gz` where it is compressed.
            compressed: the matrix will have an offset a row or column.

        Raises:
            ValueError: there are fewer bytes than entries need, or so many rows that their offsets
                would take far more memory than the file has bytes.
        """
        size = path.stat().st_size * (INFLATES if path.name.endswith(".gz") else 1)
        least = 2 if self.layout == "array" else 4 if self.field == "pattern" else 6  # "1 1 1\n"
        if self.entries * least > size + 1:
            raise ValueError(
                f"it claims {self.entries} entries, which take {self.entries * least} bytes or "
                f"more; the file has {path.stat().st_size}"
            )
        longest = max(self.rows, self.cols)
        if compressed and longest > OFFSETS_ANYWAY + ROWS_A_BYTE * size:
            raise ValueError(
                f"it claims {longest} rows or columns for {self.entries} entries: an offset for "
                "each would take too much memory; use format='coo'"
            )


def read_header(file: Any) -> Header:
    """The header of an opened file (bytes).

    Raises:
        ValueError: it is no Matrix Market file of a matrix, or the line of sizes is broken.
    """
    words = file.readline(LONGEST_LINE).decode("latin-1").lower().split()
    if len(words) != 5 or not words[0].startswith("%%matrixmarket"):
        raise ValueError("it lacks the banner `%%MatrixMarket matrix ...`")
    _, _, layout, field, symmetry = words
    if layout not in ("coordinate", "array"):
        raise ValueError(f"its banner says {layout!r}, known are coordinate and array")
    for _ in range(MOST_COMMENTS):
        line = file.readline(LONGEST_LINE)
        if line.strip() and not line.lstrip().startswith(b"%"):
            break
        if not line:
            raise ValueError("it ends before the line of sizes")
    else:
        raise ValueError(f"its header has more than {MOST_COMMENTS} lines")
    sizes = line.split()
    wanted = 3 if layout == "coordinate" else 2
    if len(sizes) != wanted or not all(word.isdigit() and len(word) < 19 for word in sizes):
        raise ValueError(f"its line of sizes must be {wanted} numbers; it is {line[:80]!r}")
    rows, cols, *rest = (int(word) for word in sizes)
    if layout == "coordinate":
        return Header(layout, field, symmetry, rows, cols, rest[0])
    triangle = {"general": rows * cols, "skew-symmetric": rows * (rows - 1) // 2}
    stored = triangle.get(symmetry, rows * (rows + 1) // 2)
    return Header(layout, field, symmetry, rows, cols, stored)
