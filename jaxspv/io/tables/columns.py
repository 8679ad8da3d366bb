"""Columns of a text with an edge a line, found by NumPy in its bytes, without an object a line."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .names import LINE_END, PADDING, words

QUOTE = ord('"')
BEYOND_ASCII = [c for c in map(chr, range(0x80, 0x3001)) if c.isspace()]
_BLANK = np.array([k < 0x80 and chr(k).isspace() for k in range(256)])
_BLANKED = bytes(ord(" ") if blank else k for k, blank in enumerate(_BLANK))
LONGEST = 64  # bytes of a number

Places = tuple[np.ndarray, np.ndarray]  # where fields start and end


def columns_of(
    text: str, mark: str | None, comments: str, skip: int, used: Sequence[int]
) -> tuple[np.ndarray, list[Places]] | None:
    """The bytes of a text, and where the fields of each used column are.

    Args:
        mark: between columns; None: white space.
        comments: lines that start with one of these are left out, as are empty ones.
        skip: so many of the other lines, the first ones, are left out too.

    Returns:
        None where only a reader line by line can say what lines mean, or what is wrong with them:
        some lack a column or a name, fields in quotes hold marks or quotes, blanks beyond ASCII.
    """
    if not f"{mark or ''}{comments}".isascii() or "\0" in text:
        return None
    if not text.isascii() and any(blank in text for blank in BEYOND_ASCII):
        return None
    raw = text.encode() + b"\n"
    data = np.frombuffer(raw + bytes(PADDING), np.uint8)
    held = data[: len(raw)]
    if mark is None:
        blank = np.frombuffer(raw.translate(_BLANKED), np.uint8) == ord(" ")
        edges = np.flatnonzero(np.append(not blank[0], blank[1:] != blank[:-1]))
        starts, ends, line_ends = edges[::2], edges[1::2], np.flatnonzero(held == LINE_END)
        lines = np.append(0, line_ends[:-1] + 1)
        first = np.searchsorted(starts, lines)
    else:
        ends = np.flatnonzero((held == LINE_END) | (held == ord(mark)))
        starts = np.append(0, ends[:-1] + 1)
        last = np.flatnonzero(held[ends] == LINE_END)
        first = np.append(0, last[:-1] + 1)
        lines, line_ends = starts[first], ends[last]
        if '"' in text:
            quoted = (held[starts] == QUOTE) & (held[ends - 1] == QUOTE) & (ends - starts > 1)
            if 2 * np.count_nonzero(quoted) != np.count_nonzero(held == QUOTE):
                return None
    fields = np.diff(first, append=len(starts))
    begin, _ = _stripped(raw, lines, line_ends)
    kept = (begin < line_ends) & ~np.isin(held[begin], np.frombuffer(comments.encode(), np.uint8))
    first, fields = first[kept][skip:], fields[kept][skip:]
    if (fields <= max(used)).any():
        return None
    places = [(starts[first + k], ends[first + k]) for k in used]
    if mark is not None:
        places = [_stripped(raw, *place) for place in places]
        if '"' in text:
            quoted = [held[start] == QUOTE for start, _ in places]
            places = [(s + q, e - q) for (s, e), q in zip(places, quoted, strict=True)]
    return None if any((s >= e).any() for s, e in places) else (data, places)


def _stripped(raw: bytes, starts: np.ndarray, ends: np.ndarray) -> Places:
    """The same fields without blanks at their ends; an empty one starts where it ends."""
    held = np.frombuffer(raw, np.uint8)
    if not (_BLANK[held[starts]].any() or _BLANK[held[ends - 1]].any()):
        return starts, ends
    full = np.flatnonzero(np.frombuffer(raw.translate(_BLANKED), np.uint8) != ord(" "))
    full = np.concatenate([[-1], full, [len(raw)]])
    starts = np.minimum(full[np.searchsorted(full, starts)], ends)
    return starts, np.maximum(full[np.searchsorted(full, ends) - 1] + 1, starts)


def numbers_of(data: np.ndarray, places: Places, kind: Any) -> np.ndarray | None:
    """The fields at these places as numbers; None where one may be none, or is infinite."""
    starts, lengths = places[0], places[1] - places[0]
    longest = int(lengths.max(initial=1))
    if longest > LONGEST:
        return None
    made = np.zeros((len(starts), -(-longest // 8)), "<u8")
    for k, which, part in words(data, starts, lengths):
        made[which, k // 8] = part
    held = made.view(np.uint8)
    if ((held == ord("_")) | (held > 0x7F)).any():
        return None
    texts = made.view(f"S{held.shape[1]}").ravel().tolist()
    try:
        found = np.array(list(map(float if kind is np.float64 else int, texts)), kind)
    except (ValueError, OverflowError):
        return None
    return None if np.isinf(found).any() else found
