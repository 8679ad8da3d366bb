"""HTML representations for notebooks: a table of facts and a picture of the pattern."""

from __future__ import annotations

import html
from collections.abc import Mapping
from typing import Any

import numpy as np

CELLS = 24  # of the longer side of a picture


def card(title: str, rows: Mapping[str, Any], picture: str = "") -> str:
    """HTML of a title, a table of names and values, and a picture to its right."""
    cells = "".join(
        f"<tr><td style='text-align:left;padding:0 1em 0 0;opacity:.7'>{html.escape(name)}</td>"
        f"<td style='text-align:left;padding:0'>{html.escape(str(value))}</td></tr>"
        for name, value in rows.items()
    )
    words = f"<div><b>{html.escape(title)}</b><table style='margin:0'>{cells}</table></div>"
    return f"<div style='display:flex;gap:1.5em;align-items:center'>{picture}{words}</div>"


def pattern(row: Any, col: Any, shape: tuple[int, int]) -> str:
    """An SVG of where the entries at concrete indices are, darker where they are many."""
    m, n = shape
    if not m or not n:
        return ""
    row, col = np.asarray(row), np.asarray(col)
    stored = (row < m) & (col < n)
    cell = max(1.0, max(m, n) / CELLS)
    high, wide = int(np.ceil(m / cell)), int(np.ceil(n / cell))
    flat = (row[stored] / cell).astype(int) * wide + (col[stored] / cell).astype(int)
    counts = np.bincount(flat, minlength=high * wide)
    shade = np.log1p(counts) / max(np.log1p(counts.max(initial=0)), 1e-9)
    squares = "".join(
        f"<rect x='{k % wide}' y='{k // wide}' width='1' height='1' opacity='{shade[k]:.2f}'/>"
        for k in np.flatnonzero(counts)
    )
    scale = 96 / max(high, wide)
    return (
        f"<svg width='{wide * scale:.0f}' height='{high * scale:.0f}' "
        f"viewBox='0 0 {wide} {high}' fill='#2166ac' style='border:1px solid #8a939d'>"
        f"{squares}</svg>"
    )
