"""Lines of text with an edge each, read in blocks so that the memory beyond the edges is bounded.

Numbers are read by NumPy; if it refuses a block, the error names the first line that is wrong.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import io
import itertools
import pathlib
import re
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from ...interop.labels import Labels
from ..files import opened
from .columns import columns_of, numbers_of
from .names import Names

SEPARATORS = "\t,;|"
COMMENTS = ("#", "%")
INTEGER = re.compile(r"\s*[+-]?[0-9]{1,99}\s*", re.ASCII)
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
    if not name or "\n" in name or "\r" in name or not _is_unicode(name):
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


def is_number(text: str) -> bool:
    """Whether NumPy reads it, too: Python alone takes `1_0` and digits of other scripts."""
    return text.isascii() and "_" not in text and _is_float(text)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


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
    """

    columns: Sequence[Any]
    labels: bool | Labels
    shape: tuple[int, int] | None
    delimiter: str | None
    header: bool | None
    kind: Any = np.float64

    def read(self, path: pathlib.Path, comments: str, progress: bool) -> Any:
        """Both ends of all edges, their values or None, and the `Labels` or None."""
        parts, names, skip = [], Names(), None
        self._vertices = np.zeros(0, np.int32)  # of `names`, where labels are given
        with opened(path, progress) as file:
            raw: Any = file
            text = io.TextIOWrapper(raw, encoding="utf-8-sig")
            for number, block in blocks(text):
                if skip is None:  # no line was there yet
                    numbers, lines = kept(number, block, comments)
                    skip = self.look(lines[0], numbers[0]) if lines else None
                    if skip is None:
                        continue
                parts.append(self._part(number, block, comments, skip, names))
                skip = 0
        columns = [np.concatenate(c) for c in zip(*parts, strict=True)]
        row, col = columns[:2] if columns else np.zeros((2, 0), np.int64)
        values = None if self.columns[2] is None else columns[2] if columns else np.zeros(0)
        found = Labels(names.since(0)) if self.labels is True else self.labels or None
        return row, col, values, found

    def _part(
        self, number: int, block: str, comments: str, skip: int, names: Names
    ) -> list[np.ndarray]:
        """The columns of a block whose first line has this number, but for `skip` lines."""
        found = None if self.labels is False else self._plain(block, comments, skip, names)
        if found is None:
            numbers, lines = kept(number, block, comments)
            read = self.numbers if self.labels is False else self._names
            found = read(numbers[skip:], lines[skip:], names)
        return found

    def look(self, line: str, number: int) -> int:
        """Sets what was not given by the first line; returns the number of header lines."""
        if self.delimiter is None:
            self.delimiter = next((mark for mark in SEPARATORS if mark in line), None)
        fields = self._split(number, line)
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
        """Whether the first line names columns: of numbers where it holds words alone.

        Raises:
            ValueError: it is neither that nor an edge.
        """
        ends = [fields[k] for k in self.columns[:2] if k < len(fields)]
        if self.labels is not False:
            return ends == ["source", "target"]  # as `write_edgelist` writes
        if all(map(is_integer, ends)):
            return False
        if any(is_number(field) or NUMBER_BEGINS.match(field) for field in fields):
            try:
                self._check(number, fields)
            except ValueError as error:
                raise ValueError(f"{error}; header=True takes the line for a header") from error
        if len(ends) < 2 or not all(ends):
            raise ValueError(f"line {number}: {fields} is neither an edge nor a header")
        return True

    def _split(self, number: int, line: str) -> list[str]:
        return fields_of(line, self.delimiter, number)

    def numbers(self, numbers: Sequence[int], lines: list[str], _: Any) -> list[np.ndarray]:
        """The columns of lines that hold numbers alone."""
        used = [k for k in self.columns if k is not None]
        kinds = [("row", np.int64), ("col", np.int64), ("value", self.kind)][: len(used)]
        if not lines:
            return [np.zeros(0, kind) for _, kind in kinds]
        try:
            table = np.loadtxt(
                lines,
                np.dtype(kinds),
                comments=None,
                delimiter=self.delimiter,
                usecols=used,
                ndmin=1,
                quotechar='"',
            )
            if len(table) != len(lines):  # a quote went on in the next line
                raise ValueError(f"{len(lines)} lines hold {len(table)} edges")
        except ValueError as error:
            for number, line in zip(numbers, lines, strict=True):
                self._check(number, self._split(number, line))
            raise ValueError(f"lines {numbers[0]} to {numbers[-1]}: {error}") from error
        for name, extent in zip(("row", "col"), self.shape or (2**63 - 1,) * 2, strict=True):
            wrong = np.flatnonzero((table[name] < 0) | (table[name] >= extent))
            if wrong.size:
                k = wrong[0]
                most = f"in [0, {extent})" if self.shape else ">= 0"
                raise ValueError(
                    f"line {numbers[k]}: a vertex must be {most}; got {table[name][k]}"
                )
        if len(used) == 3:
            self._check_infinite(numbers, lines, table["value"])
        return [table[name].copy() for name, _ in kinds]

    def _check_infinite(self, numbers: Sequence[int], lines: list[str], values: Any) -> None:
        """Raises where a weight is infinite and its text is a number: `1e400`."""
        for k in np.flatnonzero(np.isinf(values)).tolist():
            self._check(numbers[k], self._split(numbers[k], lines[k]))

    def _check(self, number: int, fields: list[str]) -> None:
        """Raises if a line does not have the expected fields."""
        for what, k in zip(("source", "target", "weight"), self.columns, strict=True):
            if k is None:
                continue
            if k >= len(fields):
                raise ValueError(
                    f"line {number}: it has {len(fields)} columns, and `{what}` is column {k}"
                )
            if what != "weight" and not fields[k]:
                raise ValueError(f"line {number}: an end has no name")
            if what == "weight" and not self._is_weight(fields[k]):
                kind = "a number" if self.kind is np.float64 else "an integer"
                raise ValueError(f"line {number}: `weight` must be {kind}; got {fields[k]!r}")
            if what != "weight" and self.labels is False and not is_integer(fields[k]):
                raise ValueError(
                    f"line {number}: `{what}` must be an integer; got {fields[k]!r} "
                    "(labels=True takes names)"
                )
            if what != "weight" and isinstance(self.labels, Labels):
                try:
                    self.labels.vertex(fields[k])
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error

    def _is_weight(self, text: str) -> bool:
        if self.kind is np.float64:
            return is_number(text) and (not np.isinf(float(text)) or "n" in text.lower())
        info = np.iinfo(self.kind)
        return bool(INTEGER.fullmatch(text)) and info.min <= int(text) <= info.max

    def _weights(self, column: list[str]) -> np.ndarray:
        """Fields as numbers; ValueError or OverflowError where one is none."""
        made = np.array(list(map(float if self.kind is np.float64 else int, column)), self.kind)
        text = "".join(column)
        odd = "_" in text or not text.isascii() or np.isinf(made).any()
        if odd and not all(map(self._is_weight, column)):
            raise ValueError("a weight is no number")
        return made

    def _plain(self, block: str, comments: str, skip: int, names: Names) -> list[np.ndarray] | None:
        """What `_names` gives for the lines of a block; None where that must look at each line."""
        used = [k for k in self.columns if k is not None]
        found = columns_of(block, self.delimiter, comments, skip, used)
        if found is None:
            return None
        data, (tails, heads, *more) = found
        read = (numbers_of(data, places, self.kind) for places in more)
        values = [column for column in read if column is not None]
        if len(values) < len(more):
            return None
        starts, stops = (np.stack(side, 1).ravel() for side in zip(tails, heads, strict=True))
        try:
            return [*self._ends(names.numbers(data, starts, stops), names), *values]
        except ValueError:  # not among the labels
            return None

    def _ends(self, ends: np.ndarray, names: Names) -> list[np.ndarray]:
        """The vertices of names, source and target of each edge, by their numbers.

        Raises:
            ValueError: a name is not among the labels that are given.
        """
        if isinstance(self.labels, Labels):
            known = self.labels.vertices(names.since(len(self._vertices)))
            self._vertices = np.append(self._vertices, known)
            ends = self._vertices[ends]
        return list(ends.reshape(-1, 2).T)

    def _names(self, numbers: Sequence[int], lines: list[str], names: Names) -> list[np.ndarray]:
        """The columns of lines whose endpoints are names; new names are added to `names`."""
        try:
            tails, heads, *values = self._columns(lines)
            values = [self._weights(column) for column in values]
            if not (all(tails) and all(heads)):
                raise ValueError("an end has no name")
            found = names.of_texts(list(itertools.chain(*zip(tails, heads, strict=True))))
            assert found is not None  # no line has a line end
            ends = self._ends(found, names)
        except (IndexError, ValueError, OverflowError):
            for number, line in zip(numbers, lines, strict=True):
                self._check(number, self._split(number, line))
            raise
        return [*ends, *values]

    def _columns(self, lines: list[str]) -> list[list[str]]:
        """The fields of each column that is asked for; IndexError where a line is too short."""
        used, mark = [k for k in self.columns if k is not None], self.delimiter
        widths = set() if mark is None else {line.count(mark) + 1 for line in lines}
        if mark is not None and len(widths) == 1 and (width := widths.pop()) > max(used):
            whole = mark.join(lines)
            if '"' not in whole:  # no list a line: collecting garbage would take most of the time
                fields = whole.split(mark)
                return [list(map(str.strip, fields[k::width])) for k in used]
        rows = [fields_of(line, mark, 0) for line in lines]
        return [[row[k] for row in rows] for k in used]


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
    lines, skipped = text.split("\n"), tuple(comments)
    numbers: Sequence[int] = range(number, number + len(lines))
    ended = f"\n{text}\n"
    if any(mark in ended for mark in (*skipped, "\n\n", " \n", "\t\n")):  # perhaps
        kept = [k for k, line in enumerate(lines) if line and not line.isspace()]
        kept = [k for k in kept if not lines[k].lstrip().startswith(skipped)] if skipped else kept
        numbers, lines = [numbers[k] for k in kept], [lines[k] for k in kept]
    return numbers, lines
