"""Lines of text with an edge each, read in blocks so that the memory beyond the edges is bounded.

NumPy reads a block. One that it refuses or might misread is read line by line, so that the error
names the first line that is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from ...interop.labels import Labels
from ..opening import loaded, opened
from .frames import Numbers, new_numbers, numbered

SEPARATORS = "\t,;|"
COMMENTS = ("#", "%")
INTEGER = re.compile(r"\s*[-+]?[0-9]{1,99}\s*", re.ASCII)
NUMBER = (
    re.compile(  # as NumPy reads it; Python's float also takes `1_0` and digits of other scripts
        r"\s*[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf(?:inity)?|nan)\s*",
        re.ASCII | re.IGNORECASE,
    )
)
NUMBER_BEGINS = re.compile(r"[-+.]*\d")
PLAIN = re.compile(r"\w(?:[\w .-]*\w)?")  # names that need no quotes


def fields_of(line: str, mark: str | None, number: int) -> list[str]:
    """The fields of a line between marks (None: white space, without quotes).

    Blanks at the ends of a field are left out, those within quotes are kept.

    Raises:
        ValueError: a quote does not end on its line, or is followed by more than blanks.
    """
    if mark is None:
        return line.split()
    if '"' not in line:
        return [field.strip() for field in line.split(mark)]
    found: list[str] = []
    at, field = 0, _field(mark)
    while match := field.match(line, at):
        plain, quoted, end = match.groups()
        found.append(plain.strip() if quoted is None else quoted.replace('""', '"'))
        if not end:
            return found
        at = match.end()
    raise ValueError(
        f"line {number}: a quote must end before the next {mark!r} or the end of the line; got "
        f"{line[at : at + 80]!r}"
    )


@functools.cache
def _field(mark: str) -> re.Pattern[str]:
    """A field without quotes or with them, and the mark behind it."""
    mark = re.escape(mark)
    blanks = rf"[^\S{mark}]*+"
    quoted = rf'"((?:[^"]++|"")*+)"{blanks}'
    return re.compile(rf'{blanks}(?:((?!")[^{mark}]*+)|{quoted})({mark}|\Z)')


def written(name: str, mark: str) -> str | None:
    """A name as a line with this mark must hold it to be read again, in quotes where it needs them.

    None: no line gives it back, as it is empty, has line ends, or (the mark is a blank) blanks.
    """
    if PLAIN.fullmatch(name) and mark not in name:
        return name
    if not name or re.search("[\n\r\ud800-\udfff]", name):
        return None
    ways = (mark,) if mark in SEPARATORS or not mark.isspace() else (mark, None)
    for text in (name, '"' + name.replace('"', '""') + '"'):
        with contextlib.suppress(ValueError):
            read = [fields_of(f"{text}{mark}{text}", way, 1) for way in ways]
            if not text.startswith(COMMENTS) and all(fields == [name, name] for fields in read):
                return text
    return None


def check_delimiter(mark: str | None) -> None:
    """ValueError unless it is None or one character that no number holds."""
    if mark is not None and not (
        isinstance(mark, str) and len(mark) == 1 and not mark.isalnum() and mark not in '"\r\n+-._'
    ):
        raise ValueError(
            "`delimiter` must be one character, not alphanumeric, no quote or line end, and "
            f"none of '+-._'; got {mark!r}."
        )


def is_integer(text: str) -> bool:
    return bool(INTEGER.fullmatch(text)) and abs(int(text)) < 2**63


BLOCK = 1 << 22  # characters


@dataclasses.dataclass
class Text:
    """How the lines of one file are read; what is None is found out from its first line.

    Attributes:
        columns: of source, target and weight.
        labels: False, True, or those that names are of.
        shape: what ends must be less than, or None.
        delimiter, header: as in `read_edgelist`.
        kind: dtype in which weights are read: that of integers of 64 bits, else float64.
        names: those that were read, for `labels=True`.
    """

    columns: Sequence[Any]
    labels: bool | Labels
    shape: tuple[int, int] | None
    delimiter: str | None
    header: bool | None
    kind: Any = np.float64
    names: Numbers = dataclasses.field(default_factory=new_numbers)

    def read(self, path: pathlib.Path, comments: str, progress: bool) -> Any:
        """Both ends of all edges, their values or None, and the `Labels` or None."""
        parts: list[list[np.ndarray]] = []
        with opened(path, progress) as file:
            raw: Any = file
            text = io.TextIOWrapper(raw, encoding="utf-8-sig")
            for number, block in blocks(text):
                numbers, lines = kept(number, block, comments)
                if lines:
                    skip = 0 if parts else self.look(lines[0], numbers[0])
                    parts.append(self.edges(numbers[skip:], lines[skip:]))
        columns = [np.concatenate(c) for c in zip(*parts, strict=True)]
        row, col = columns[:2] if columns else np.zeros((2, 0), np.int64)
        values = None if self.columns[2] is None else columns[2] if columns else np.zeros(0)
        return row, col, values, Labels(self.names) if self.labels is True else self.labels or None

    def look(self, line: str, number: int) -> int:
        """Sets what was not given by the first line; returns the number of header lines."""
        if self.delimiter is None:
            self.delimiter = next((mark for mark in SEPARATORS if mark in line), None)
        fields = fields_of(line, self.delimiter, number)
        named = any(isinstance(column, str) for column in self.columns)
        if self.header is None:
            self.header = named or self._is_header(number, fields)
        if named and not self.header:
            raise ValueError("columns are asked for by name, and `header` is False")
        for column in self.columns:
            if isinstance(column, str) and column not in fields:
                raise ValueError(f"line {number}: the header {fields} has no column {column!r}")
        self.columns = [fields.index(c) if isinstance(c, str) else c for c in self.columns]
        return int(self.header)

    def _is_header(self, number: int, fields: list[str]) -> bool:
        """Whether the first line names columns: of numbers where it holds words alone. Refuses what
        is neither that nor an edge."""
        ends = [fields[k] for k in self.columns[:2] if k < len(fields)]
        if self.labels is not False:
            return ends == ["source", "target"]  # as `write_edgelist` writes
        if all(map(is_integer, ends)):
            return False
        if any(NUMBER.fullmatch(text) or NUMBER_BEGINS.match(text) for text in fields):
            try:
                self._check(number, fields)
            except ValueError as error:
                raise ValueError(f"{error}; header=True takes the line for a header") from error
        if len(ends) < 2 or not all(ends):
            raise ValueError(f"line {number}: {fields} is neither an edge nor a header")
        return True

    def edges(self, numbers: Sequence[int], lines: list[str]) -> list[np.ndarray]:
        """The columns of lines with these numbers: source, target and, if it is read, weight."""
        try:
            return self._columns(self._by_numpy(lines))
        except ValueError:
            return self._columns(self._by_line(numbers, lines))

    def _by_numpy(self, lines: list[str]) -> np.ndarray:
        """The used fields of each line; ValueError where NumPy might misread one."""
        mark, used, dtype = self.delimiter, *self._used
        how: dict[str, Any] = {"delimiter": mark, "usecols": used}
        if mark is not None:
            if not _plainly_quoted("\n".join(lines), mark):
                raise ValueError("NumPy takes blanks and more next to quotes for parts of a name")
            how["quotechar"] = '"'
            how["converters"] = {} if self.labels is False else dict.fromkeys(used[:2], str.strip)
        table = loaded(lines, dtype, **how)
        if len(table) != len(lines) or len(used) == 3 and np.isinf(table["weight"]).any():
            raise ValueError("a line is no edge, or a number is infinite: inf or 1e400")
        return table

    def _by_line(self, numbers: Sequence[int], lines: list[str]) -> np.ndarray:
        """The used fields of each line; ValueError with the first line that is wrong."""
        rows, (used, dtype) = [], self._used
        for number, line in zip(numbers, lines, strict=True):
            fields = fields_of(line, self.delimiter, number)
            self._check(number, fields)
            rows.append(tuple(fields[k] for k in used))
        return np.array(rows, dtype)

    @property
    def _used(self) -> tuple[list[int], np.dtype]:
        """The columns that are used, and the dtype of their fields."""
        end = np.int64 if self.labels is False else object
        kinds = {"source": end, "target": end, "weight": self.kind}
        used = [k for k in self.columns if k is not None]
        return used, np.dtype(list(kinds.items())[: len(used)])

    def _columns(self, table: np.ndarray) -> list[np.ndarray]:
        """The columns with ends as vertices; ValueError where one is none."""
        tails, heads, *weights = (table[name].copy() for name in table.dtype.names or ())
        if self.labels is False:
            most = self.shape or (2**63 - 1,) * 2
            good = all(
                ((0 <= end) & (end < extent)).all()
                for end, extent in zip((tails, heads), most, strict=True)
            )
        else:
            known = self.labels if isinstance(self.labels, Labels) else self.names
            tails, heads = numbered(tails.tolist(), heads.tolist(), known)
            good = "" not in known
        if not good:
            raise ValueError("an end is no vertex, or has no name")
        return [tails, heads, *weights]

    def _check(self, number: int, fields: list[str]) -> None:
        """Raises if a line does not have the expected fields."""
        extents = *(self.shape or (2**63 - 1,) * 2), 0
        for what, k, extent in zip(
            ("source", "target", "weight"), self.columns, extents, strict=True
        ):
            if k is None:
                continue
            if k >= len(fields):
                wrong = f"it has {len(fields)} columns, and `{what}` is column {k}"
            elif what == "weight":
                kind = "a number" if self.kind is np.float64 else "an integer"
                wrong = not self._is_weight(fields[k]) and (
                    f"`weight` must be {kind}; got {fields[k]!r}"
                )
            else:
                wrong = self._wrong_end(what, fields[k], extent)
            if wrong:
                raise ValueError(f"line {number}: {wrong}")

    def _wrong_end(self, what: str, text: str, extent: int) -> str | None:
        """What is wrong with an end; None: nothing."""
        if not text:
            return "an end has no name"
        if isinstance(self.labels, Labels):
            try:
                self.labels.vertex(text)
            except ValueError as error:
                return str(error)
        elif self.labels is False and not is_integer(text):
            return f"`{what}` must be an integer; got {text!r} (labels=True takes names)"
        elif self.labels is False and not 0 <= int(text) < extent:
            most = f"in [0, {extent})" if self.shape else ">= 0"
            return f"a vertex must be {most}; got {int(text)}"
        return None

    def _is_weight(self, text: str) -> bool:
        if self.kind is np.float64:
            found = bool(NUMBER.fullmatch(text))
            return found and (not np.isinf(float(text)) or "n" in text.lower())
        info = np.iinfo(self.kind)
        return bool(INTEGER.fullmatch(text)) and info.min <= int(text) <= info.max


def _plainly_quoted(text: str, mark: str) -> bool:
    """Whether all quotes are about whole fields, without quotes or blanks next to them inside."""
    if '"' not in text:
        return True
    mark = re.escape(mark)
    fields = re.compile(rf'(?:^|{mark})"(?!\s)[^"\n]*+(?<!\s)"(?={mark}|$)', re.MULTILINE)
    return 2 * len(fields.findall(text)) == text.count('"')


def weight_kind(dtype: Any) -> Any:
    """In which dtype weights are read: floats of 64 bits do not hold all integers of 64 bits."""
    wide = dtype is not None and np.dtype(dtype) in (np.int64, np.uint64)
    return np.dtype(dtype).type if wide else np.float64


def blocks(file: TextIO) -> Iterator[tuple[int, str]]:
    """The text in blocks of whole lines, each with the number of its first line."""
    number, rest = 1, ""
    while block := file.read(BLOCK):
        whole, end, rest = (rest + block).rpartition("\n")
        if len(rest) > BLOCK:
            raise ValueError(f"line {number} is longer than {BLOCK} characters")
        if end:
            yield number, whole
            number += whole.count("\n") + 1
    yield number, rest


def kept(number: int, text: str, comments: str) -> tuple[Sequence[int], list[str]]:
    """The lines of a text that hold edges, or the header, and their numbers, from `number` on."""
    lines, skipped = text.split("\n"), {"", *comments}
    found = [k for k, line in enumerate(lines) if line.lstrip()[:1] not in skipped]
    return [number + k for k in found], [lines[k] for k in found]
