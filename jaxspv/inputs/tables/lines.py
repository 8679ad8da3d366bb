"""Lines of text with an edge each, read in blocks so that what is held beside the edges is bounded.

Numbers are read by NumPy; where it refuses a block, the first line that is wrong is looked for and
named.
"""

from __future__ import annotations

import csv
import dataclasses
import io
import itertools
import pathlib
from collections.abc import Iterator, Sequence
from typing import Any, TextIO

import numpy as np

from ..files import opened
from ..labeled.labels import Labels

BLOCK = 1 << 22  # characters
SEPARATORS = "\t,;|"


@dataclasses.dataclass
class Text:
    """How the lines of one file are read; what is None is found out from its first line.

    Attributes:
        columns: of source, target and weight.
        labels: False, True, or those that names are of.
        shape: what ends must be less than, or None.
        delimiter, header: as in `read_edges`.
    """

    columns: Sequence[Any]
    labels: bool | Labels
    shape: tuple[int, int] | None
    delimiter: str | None
    header: bool | None

    def read(self, path: pathlib.Path, comments: str, progress: bool) -> Any:
        """Both ends of all edges, their values or None, and the `Labels` or None."""
        parts, ids = [], {}
        with opened(path, progress) as file:
            raw: Any = file
            text = io.TextIOWrapper(raw, encoding="utf-8-sig")
            for numbers, lines in blocks(text, comments):
                if not parts and (skip := self.look(lines[0], numbers[0])):
                    numbers, lines = numbers[skip:], lines[skip:]
                read = self.numbers if self.labels is False else self._names
                parts.append(read(numbers, lines, ids))
        columns = [np.concatenate(c) for c in zip(*parts, strict=True)]
        row, col = columns[:2] if columns else np.zeros((2, 0), np.int64)
        values = None if self.columns[2] is None else columns[2] if columns else np.zeros(0)
        found = Labels(ids) if self.labels is True else self.labels or None
        return row, col, values, found

    def look(self, line: str, number: int) -> int:
        """Finds out what is not told from the first line; how many lines are the header."""
        if self.delimiter is None:
            self.delimiter = next((mark for mark in SEPARATORS if mark in line), None)
        fields = self._split(number, line)
        named = any(isinstance(column, str) for column in self.columns)
        if self.header is None:
            ends = [fields[k] for k in self.columns[:2] if isinstance(k, int) and k < len(fields)]
            self.header = named or (self.labels is False and not all(map(_is_integer, ends)))
        if named and not self.header:
            raise ValueError("columns are asked for by name, and `header` is False")
        for column in self.columns:
            if isinstance(column, str) and column not in fields:
                raise ValueError(f"line {number}: the header {fields} has no column {column!r}")
        self.columns = [fields.index(c) if isinstance(c, str) else c for c in self.columns]
        return int(self.header)

    def _split(self, number: int, line: str) -> list[str]:
        if self.delimiter is None:
            return line.split()
        try:
            (fields,) = csv.reader([line], delimiter=self.delimiter, strict=True)
        except csv.Error as error:
            raise ValueError(f"line {number}: {error}") from error
        return [field.strip() for field in fields]

    def numbers(self, numbers: Sequence[int], lines: list[str], _: Any) -> list[np.ndarray]:
        """The columns of lines that hold numbers alone."""
        used = [k for k in self.columns if k is not None]
        kinds = [("row", np.int64), ("col", np.int64), ("value", np.float64)][: len(used)]
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
        return [table[name].copy() for name, _ in kinds]

    def _check(self, number: int, fields: list[str]) -> None:
        """Raises where a line is not what it should be."""
        for what, k in zip(("source", "target", "weight"), self.columns, strict=True):
            if k is None:
                continue
            if k >= len(fields):
                raise ValueError(
                    f"line {number}: it has {len(fields)} columns, and `{what}` is column {k}"
                )
            if what != "weight" and not fields[k]:
                raise ValueError(f"line {number}: an end has no name")
            if what == "weight" and not _is_number(fields[k]):
                raise ValueError(f"line {number}: `weight` must be a number; got {fields[k]!r}")
            if what != "weight" and self.labels is False and not _is_integer(fields[k]):
                raise ValueError(
                    f"line {number}: `{what}` must be an integer; got {fields[k]!r} "
                    "(labels=True takes names)"
                )
            if what != "weight" and isinstance(self.labels, Labels):
                try:
                    self.labels.vertex(fields[k])
                except ValueError as error:
                    raise ValueError(f"line {number}: {error}") from error

    def _names(
        self, numbers: Sequence[int], lines: list[str], ids: dict[str, int]
    ) -> list[np.ndarray]:
        """The columns of lines whose ends are names; `ids` collects those that are new."""
        rows = self._rows(numbers, lines)
        try:
            tails, heads, *values = (
                [row[k] for row in rows] for k in self.columns if k is not None
            )
            values = [np.array(list(map(float, column)), np.float64) for column in values]
            if not (all(tails) and all(heads)):
                raise ValueError("an end has no name")
            if not isinstance(self.labels, Labels):
                for name in dict.fromkeys(itertools.chain(*zip(tails, heads, strict=True))):
                    ids.setdefault(name, len(ids))
                ends = [list(map(ids.__getitem__, side)) for side in (tails, heads)]
            else:
                ends = [self.labels.vertices(side) for side in (tails, heads)]
        except (IndexError, ValueError):
            for number, fields in zip(numbers, rows, strict=True):
                self._check(number, fields)
            raise
        return [*(np.array(side, np.int32) for side in ends), *values]

    def _rows(self, numbers: Sequence[int], lines: list[str]) -> list[list[str]]:
        """The fields of each line."""
        mark = self.delimiter
        if mark is None:
            return [line.split() for line in lines]
        if any('"' in line for line in lines):
            return [self._split(*pair) for pair in zip(numbers, lines, strict=True)]
        return [[field.strip() for field in line.split(mark)] for line in lines]


def blocks(file: TextIO, comments: str) -> Iterator[tuple[Sequence[int], list[str]]]:
    """The lines that hold edges, or the header, with their numbers, in blocks."""
    skipped, number, rest = tuple(comments), 1, ""
    while block := file.read(BLOCK):
        whole, end, rest = (rest + block).rpartition("\n")
        if len(rest) > BLOCK:
            raise ValueError(f"line {number} is longer than {BLOCK} characters")
        if end:
            yield from kept(number, whole, skipped)
            number += whole.count("\n") + 1
    yield from kept(number, rest, skipped)


def kept(
    number: int, text: str, skipped: tuple[str, ...]
) -> Iterator[tuple[Sequence[int], list[str]]]:
    """The lines of a text, without comments and empty ones, and their numbers; or nothing."""
    lines = text.split("\n")
    numbers: Sequence[int] = range(number, number + len(lines))
    ended = f"\n{text}\n"
    if any(mark in ended for mark in (*skipped, "\n\n", " \n", "\t\n")):  # perhaps
        kept = [k for k, line in enumerate(lines) if line and not line.isspace()]
        kept = [k for k in kept if not lines[k].lstrip().startswith(skipped)] if skipped else kept
        numbers, lines = [numbers[k] for k in kept], [lines[k] for k in kept]
    if lines:
        yield numbers, lines


def _is_integer(text: str) -> bool:
    return text.strip().lstrip("+-").isdecimal() and abs(int(text)) < 2**63


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
