"""Files opened: found, decompressed, headers checked, one kind of error for all; written whole."""

from __future__ import annotations

import contextlib
import dataclasses
import gzip
import io
import os
import pathlib
import re
import shutil
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy

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


BLOCK = 1 << 20  # bytes of one read, after which the progress bar moves
SMALL = 1 << 20  # bytes of text that `small` reads


def existing(path: str | os.PathLike[str]) -> pathlib.Path:
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, not a file.")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name of a file to write, which takes the place of `path` once it is complete.

    A process that ends meanwhile, or an error, leaves what was at `path` before. The name has the
    suffixes of `path`. Where no file can be added to the folder, and for what is no regular file
    or may not be written, such as `/dev/stdout`, it is `path` itself.
    """
    name = os.path.realpath(path)
    folder, base = os.path.split(name)
    old = os.path.exists(name)
    direct = old and not (os.path.isfile(name) and os.access(name, os.W_OK))
    if direct or not os.access(folder, os.W_OK):
        yield os.fspath(path)
        return
    part = os.path.join(folder, f".{os.getpid()}-{base}")
    try:
        yield part
        if old:
            shutil.copymode(name, part)
        os.replace(part, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


@contextlib.contextmanager
def refusing(
    path: pathlib.Path, what: str, more: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """What a broken file raises, `more` too, becomes a ValueError with its name and the reason."""
    broken = (ValueError, OverflowError, EOFError, OSError, KeyError, zlib.error, *more)
    broken += MemoryError, NotImplementedError, zipfile.BadZipFile
    try:
        yield
    except broken as error:
        message = isinstance(error, (ValueError, OSError)) and str(error)
        reason = message or f"{type(error).__name__} {error}"
        raise ValueError(f"{path} is no readable {what}: {reason}") from error


class Forwards:
    """A Matrix Market file that is read forwards only; its lines are checked while they are read.

    SciPy's parser takes the first part of a number that it understands and leaves out the rest of
    the line: `1_0` would be 1. So each line after the header must match `Header.lines`; the first
    that does not is stored in `wrong`. Exponents of Fortran (`1.5D+02`) become `1.5E+02`.

    The parser also seeks back to where it stopped. If a broken number makes that position negative,
    the error ends the process, as it is thrown by a destructor in C++. After a number the parser
    looks for the end of the line, beyond the text if there is none: so the last line gets one, and
    bytes of 0, which end a text there, are replaced and counted in `zeros`.
    """

    def __init__(self, file: Any, header: Header, start: int):
        self.file, self.header, self.start = file, header, start
        self.last, self.zeros, self.rest, self.line = b"\n", 0, b"", 1
        self.wrong: str | None = None
        self.infinity = False  # whether a value reads `inf`

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; nothing at the end."""
        text = self.file.read(size)
        if not text and self.last != b"\n":
            text = b"\n"
        self.last = text[-1:] or b"\n"
        self.zeros += text.count(0)
        text = text.replace(b"\0", b"?")
        head, body = text[: self.start], text[self.start :]
        self.start -= len(head)
        self.line += head.count(b"\n")
        body = body.replace(b"D", b"E").replace(b"d", b"e")
        if body and self.wrong is None:
            self._check(body)
        return head + body

    def _check(self, text: bytes) -> None:
        whole, end, self.rest = (self.rest + text).rpartition(b"\n")
        lines = whole + end
        good = self.header.lines.match(lines).end()  # pyright: ignore[reportOptionalMemberAccess]
        self.line += lines.count(b"\n", 0, good)
        self.infinity |= b"i" in lines or b"I" in lines
        if good < len(lines) or len(self.rest) > LONGEST_LINE:
            line = (lines[good:] or self.rest).partition(b"\n")[0][:80].decode(errors="replace")
            self.wrong = f"line {self.line} must be {self.header.wanted}; it is {line!r}"


Entries = tuple[np.ndarray, tuple[np.ndarray, np.ndarray], tuple[int, int]]


def small(text: bytes, header: Header) -> Entries | None:
    """Values, coordinates and shape of a small file whose text after the header is `text`.

    None: SciPy's parser reads it, and says what is wrong. Importing that takes longer than this.
    """
    numbers = {"pattern": 2, "integer": 3, "real": 3}.get(header.field, 0)
    plain = numbers and header.layout == "coordinate" and header.entries is not None
    if not plain or header.symmetry not in ("general", "symmetric"):
        return None
    if max(header.rows, header.cols) >= 2**31:
        return None
    text += b"\n"
    found = header.lines.match(text)
    if found is None or found.end() < len(text) or b"n" in text.lower():  # `inf` and `nan`
        return None
    table = np.array(text.split(), np.float64)
    if table.size != header.entries * numbers or not (np.abs(table) < 2**53).all():
        return None
    table = table.reshape(header.entries, numbers)
    shape = header.rows, header.cols
    if not ((table[:, :2] >= 1) & (table[:, :2] <= shape)).all():
        return None
    row, col = table[:, :2].T.astype(np.int32) - 1
    values = np.ones(len(row)) if numbers == 2 else table[:, 2]
    values = values.astype(np.int64) if header.field == "integer" else values
    if header.symmetry == "symmetric":
        other = np.flatnonzero(row != col)
        values = np.concatenate([values, values[other]])
        row, col = np.concatenate([row, col[other]]), np.concatenate([col, row[other]])
    return values, (row, col), shape


def parsed(file: Any, header: Header, start: int) -> Any:
    """SciPy's matrix of an opened Matrix Market file, whose header ends at byte `start`.

    Raises:
        ValueError: it is broken, or some of its bytes are 0; the message has the first wrong line.
    """
    text = Forwards(file, header, start)
    try:
        matrix = scipy.io.mmread(text, spmatrix=False)
    except ValueError as error:
        raise ValueError(text.wrong or error) from error
    if text.zeros:
        raise ValueError(f"it is no text: {text.zeros} of its bytes are 0")
    if text.wrong:
        raise ValueError(text.wrong)
    values: Any = matrix if isinstance(matrix, np.ndarray) else matrix.data
    if values.dtype.kind in "fc" and not text.infinity and np.isinf(values).any():
        raise ValueError("one of its values is beyond float64; infinity is written `inf`")
    return matrix


class _Counted(io.FileIO):
    """Bytes that move a bar, whichever way they are read."""

    def __init__(self, path: pathlib.Path, bar: Any):
        super().__init__(path)
        self.bar = bar

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.bar.update(count)
        return count


@contextlib.contextmanager
def opened(path: pathlib.Path, progress: bool) -> Iterator[io.BufferedIOBase | Any]:
    """The file's bytes, decompressed; the bar counts those on the disk."""
    with contextlib.ExitStack() as stack:
        if progress:
            from tqdm import tqdm

            how: dict[str, Any] = {"unit": "B", "unit_scale": True, "leave": False}
            bar = tqdm(total=path.stat().st_size, desc=path.name, **how)
            raw = io.BufferedReader(_Counted(path, stack.enter_context(bar)), BLOCK)
            file: Any = stack.enter_context(raw)
        else:
            file = stack.enter_context(path.open("rb"))
        if path.name.endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        yield file
