"""Draws the figures of the pages as SVG: `python docs/figures.py`; a test holds them equal."""

import pathlib
from collections.abc import Iterable

HERE = pathlib.Path(__file__).parent / "_static"
INK, MUTED, LINE, PAPER = "#1f2933", "#66727f", "#9aa5b1", "#fbfbf9"
BLUE, ORANGE, GREEN, PALE = "#2166ac", "#c4561a", "#2d7d46", "#e9eef4"


def text(x: float, y: float, words: str, **more: object) -> str:
    """Words centred at a place."""
    style = {"fill": INK, "size": 14, "anchor": "middle", "weight": "normal"} | more
    return (
        f'<text x="{x:g}" y="{y:g}" fill="{style["fill"]}" font-size="{style["size"]}" '
        f'text-anchor="{style["anchor"]}" font-weight="{style["weight"]}">{words}</text>'
    )


def box(x: float, y: float, w: float, h: float, **more: object) -> str:
    """A rectangle with rounded corners."""
    style = {"fill": "none", "stroke": LINE, "rx": 4, "width": 1.2, "dash": ""} | more
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{w:g}" height="{h:g}" rx="{style["rx"]}" '
        f'fill="{style["fill"]}" stroke="{style["stroke"]}" stroke-width="{style["width"]}" '
        f'stroke-dasharray="{style["dash"]}"/>'
    )


def arrow(x1: float, y1: float, x2: float, y2: float, color: str = MUTED) -> str:
    """A line with a head at its end."""
    return (
        f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}" '
        f'stroke-width="1.6" marker-end="url(#{color[1:]})"/>'
    )


def vertex(x: float, y: float, label: str, color: str = INK, fill: str = "#ffffff") -> str:
    """A circle with a label in it."""
    circle = f'<circle cx="{x:g}" cy="{y:g}" r="19" fill="{fill}" stroke="{color}" '
    return circle + 'stroke-width="1.8"/>' + text(x, y + 5, label, fill=color)


def cells(x: float, y: float, items: Iterable[str], color: str = INK, **more: object) -> str:
    """A row of boxes 38 wide with a word in each."""
    drawn = []
    for k, item in enumerate(items):
        drawn.append(box(x + 38 * k, y, 38, 28, **more))
        drawn.append(text(x + 38 * k + 19, y + 19, item, fill=color))
    return "".join(drawn)


def page(width: int, height: int, parts: Iterable[str]) -> str:
    """A whole picture on its own paper, readable on light and dark pages."""
    heads = "".join(
        f'<marker id="{c[1:]}" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" '
        f'markerHeight="7" orient="auto"><path d="M0 0L10 5L0 10z" fill="{c}"/></marker>'
        for c in (MUTED, BLUE, ORANGE, GREEN)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'font-family="system-ui, sans-serif"><defs>{heads}</defs>'
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


def semirings() -> str:
    """One step from the two vertices on the left, over three semirings."""
    parts = []
    columns = (
        ("plus_times", "2", "3", "4", "1", "2x4 + 3x1 = 11", BLUE),
        ("min_plus", "2", "3", "4", "1", "min(2+4, 3+1) = 4", ORANGE),
        ("or_and", "1", "1", "1", "1", "(1 and 1) or (1 and 1) = 1", GREEN),
    )
    for k, (name, a, b, u, v, result, color) in enumerate(columns):
        x = 20 + 250 * k
        parts += [
            box(x, 20, 230, 190, fill="#ffffff", stroke=PALE),
            text(x + 115, 46, name, weight="bold", fill=color),
            arrow(x + 60, 92, x + 162, 116, color),
            arrow(x + 60, 154, x + 162, 130, color),
            text(x + 112, 90, u, fill=MUTED),
            text(x + 112, 164, v, fill=MUTED),
            vertex(x + 42, 88, a, color),
            vertex(x + 42, 158, b, color),
            vertex(x + 182, 123, "?", color, PALE),
            text(x + 115, 198, result, size=13),
        ]
    return page(770, 230, parts)


def capacity() -> str:
    """The arrays of a sparse vector with room for four entries."""
    parts = [
        text(24, 45, "indices", anchor="start", fill=MUTED),
        text(24, 85, "data", anchor="start", fill=MUTED),
        cells(110, 26, ("1", "4"), BLUE, fill="#ffffff", stroke=BLUE),
        cells(186, 26, ("6", "6"), MUTED, fill=PALE, dash="4 3"),
        cells(110, 66, ("10", "40"), BLUE, fill="#ffffff", stroke=BLUE),
        cells(186, 66, ("?", "?"), MUTED, fill=PALE, dash="4 3"),
        text(148, 122, "count = 2", fill=BLUE),
        text(224, 122, "padding", fill=MUTED),
        text(285, 45, "an index of 6 is the length: no place", anchor="start", fill=MUTED),
        text(285, 85, "whatever stands there reaches nothing", anchor="start", fill=MUTED),
        text(285, 122, "capacity nse = 4, static", anchor="start"),
    ]
    return page(570, 145, parts)


def csr() -> str:
    """A matrix of four rows, and its three arrays."""
    rows = (("", "2", "7", ""), ("", "", "3", ""), ("", "", "", "1"), ("", "", "", ""))
    parts = [text(96, 30, "A", weight="bold")]
    for i, row in enumerate(rows):
        parts.append(cells(20, 42 + 28 * i, row, BLUE, fill="#ffffff"))
    for y, name, items, color in (
        (42, "indptr", ("0", "2", "3", "4", "4"), ORANGE),
        (88, "indices", ("1", "2", "2", "3"), GREEN),
        (134, "data", ("2", "7", "3", "1"), BLUE),
    ):
        parts.append(text(285, y + 19, name, anchor="end", fill=MUTED))
        parts.append(cells(300, y, items, color, fill="#ffffff"))
    parts.append(text(300, 182, "row i: slots indptr[i] to indptr[i+1]", anchor="start", size=13))
    return page(580, 200, parts)


def directions() -> str:
    """Pushing along out-edges of the frontier, pulling along in-edges of what is unseen."""
    parts = []
    for x, title, color, note in (
        (20, "push", BLUE, "few in the frontier: look at their out-edges"),
        (390, "pull", ORANGE, "many: each unseen vertex asks its in-edges"),
    ):
        parts += [box(x, 20, 350, 200, fill="#ffffff", stroke=PALE)]
        parts += [text(x + 175, 46, title, weight="bold", fill=color)]
        parts += [text(x + 175, 206, note, size=13)]
        left = [(x + 75, 85), (x + 75, 150)]
        right = [(x + 275, 75), (x + 275, 118), (x + 275, 161)]
        for a, b in ((0, 0), (0, 1), (1, 1), (1, 2)):
            (x1, y1), (x2, y2) = left[a], right[b]
            if title == "push":
                parts.append(arrow(x1 + 20, y1, x2 - 21, y2, color))
            else:
                parts.append(arrow(x2 - 20, y2, x1 + 21, y1, color))
        parts += [vertex(*place, name, INK, PALE) for place, name in zip(left, "ab", strict=True)]
        parts += [vertex(*place, name) for place, name in zip(right, "cde", strict=True)]
        parts += [text(x + 75, 188, "frontier", size=12, fill=MUTED)]
    return page(760, 235, parts)


def persistent() -> str:
    """A loop of launches against one launch with barriers inside."""
    parts = [text(20, 38, "a loop of launches", anchor="start", weight="bold")]
    for k in range(4):
        x = 20 + 175 * k
        parts += [box(x, 52, 85, 36, fill=PALE, stroke=BLUE), text(x + 42, 75, f"level {k}")]
        if k < 3:
            parts += [arrow(x + 88, 70, x + 172, 70), text(x + 130, 61, "host", fill=MUTED)]
    parts += [text(20, 132, "one launch", anchor="start", weight="bold")]
    parts += [box(12, 144, 452, 56, stroke=ORANGE, dash="5 4")]
    for k in range(4):
        x = 20 + 112 * k
        parts += [box(x, 154, 85, 36, fill=PALE, stroke=ORANGE), text(x + 42, 177, f"level {k}")]
        if k < 3:
            parts.append(f'<rect x="{x + 94}" y="150" width="6" height="44" fill="{ORANGE}"/>')
    parts.append(text(480, 177, "| grid barrier: no host between levels", anchor="start", size=13))
    return page(740, 215, parts)


def merge_path() -> str:
    """Rows of very different lengths, cut into pieces of equal work."""
    lengths, parts = (2, 9, 1, 0, 4), [text(20, 34, "rows", anchor="start", weight="bold")]
    colors, done = (BLUE, ORANGE, GREEN, MUTED), 0
    for i, length in enumerate(lengths):
        parts.append(text(36, 68 + 30 * i, str(i), fill=MUTED))
        for k in range(length):
            share = done // 4
            parts.append(
                box(56 + 30 * k, 50 + 30 * i, 26, 24, fill=colors[share], stroke="#ffffff")
            )
            done += 1
    parts.append(text(370, 34, "four lanes, four entries each", anchor="start", weight="bold"))
    for k, color in enumerate(colors):
        parts.append(text(385, 68 + 30 * k, f"{k}", fill=MUTED))
        parts += [
            box(405 + 30 * j, 50 + 30 * k, 26, 24, fill=color, stroke="#ffffff") for j in range(4)
        ]
    parts.append(text(370, 190, "a row cut in two is joined at the end", anchor="start", size=13))
    return page(640, 212, parts)


def tiles() -> str:
    """A matrix in tiles of 4 by 4: a word of bits a row of a tile, empty tiles left out."""
    places = {(0, 1), (1, 0), (1, 3), (2, 2), (4, 9), (5, 8), (6, 11), (9, 4), (9, 5), (10, 10)}
    parts = []
    for i in range(12):
        for j in range(12):
            here = (i, j) in places
            full = any((i // 4, j // 4) == (a // 4, b // 4) for a, b in places)
            fill = BLUE if here else PALE if full else "#ffffff"
            parts.append(box(20 + 15 * j, 20 + 15 * i, 15, 15, fill=fill, stroke="#d8dee6", rx=0))
    for k in range(4):
        at = 20 + 60 * k
        for x1, y1, x2, y2 in ((at, 20, at, 200), (20, at, 200, at)):
            parts.append(
                f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{INK}" stroke-width="1.4"/>'
            )
    parts.append(text(240, 40, "tile (0, 0) as words, a bit an entry", anchor="start"))
    for i, word in enumerate(("0100", "1001", "0010", "0000")):
        parts.append(text(240, 66 + 24 * i, word, anchor="start", fill=BLUE, size=16))
        parts.append(text(300, 66 + 24 * i, f"row {i}", anchor="start", fill=MUTED, size=13))
    parts.append(text(240, 172, "empty tiles (white) are not stored;", anchor="start", size=13))
    parts.append(text(240, 192, "tiles here are 32 or 64 wide", anchor="start", size=13))
    return page(520, 220, parts)


FIGURES = (semirings, capacity, csr, directions, persistent, merge_path, tiles)


if __name__ == "__main__":
    for figure in FIGURES:
        (HERE / f"{figure.__name__}.svg").write_text(figure())
        print(f"_static/{figure.__name__}.svg")
