"""The fields of a line of text: between marks, within quotes, as numbers; there and back."""

from __future__ import annotations

import contextlib
import functools
import re

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
