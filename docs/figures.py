"""Draws the figures of the pages as SVG: `python docs/figures.py`; a test holds them equal.

None is wider than a telephone, so that its text can be read there; what belongs side by side on
a wide screen is several figures.
"""

import functools
import pathlib
from collections.abc import Callable, Iterable

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
        if item:
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
        f'width="{width}" height="{height}" '
        f'font-family="system-ui, sans-serif"><defs>{heads}</defs>'
        f'<rect width="{width}" height="{height}" rx="10" fill="{PAPER}"/>'
        + "\n".join(parts)
        + "</svg>\n"
    )


SEMIRINGS = {  # name: the two vertices, the two edges, what arrives, what it answers
    "plus_times": ("23", "41", "2 x 4 + 3 x 1 = 11", "how much arrives", BLUE),
    "min_plus": ("23", "41", "min(2 + 4, 3 + 1) = 4", "how short is the way", ORANGE),
    "max_min": ("23", "41", "max(min(2, 4), min(3, 1)) = 2", "how wide is the way", GREEN),
    "or_and": ("10", "11", "(1 and 1) or (0 and 1) = 1", "is there a way", BLUE),
    "any_secondi": ("ab", "41", "a or b, the sender", "from where", ORANGE),
    "log_plus": ("23", "41", "log(exp(2 + 4) + exp(3 + 1))", "all ways, the best most", GREEN),
}


def semiring(name: str) -> str:
    """One step from the two vertices on the left, over one semiring."""
    (a, b), (u, v), result, answer, color = SEMIRINGS[name]
    return page(
        235,
        204,
        (
            text(117, 28, name, weight="bold", fill=color),
            arrow(61, 70, 163, 94, color),
            arrow(61, 132, 163, 108, color),
            text(113, 68, u, fill=MUTED),
            text(113, 142, v, fill=MUTED),
            vertex(43, 66, a, color),
            vertex(43, 136, b, color),
            vertex(183, 101, "?", color, PALE),
            text(117, 174, result, size=13),
            text(117, 192, answer, size=13, fill=MUTED),
        ),
    )


def capacity() -> str:
    """The arrays of a sparse vector of capacity four."""
    parts = [
        text(24, 45, "indices", anchor="start", fill=MUTED),
        text(24, 85, "data", anchor="start", fill=MUTED),
        cells(95, 26, ("1", "4"), BLUE, fill="#ffffff", stroke=BLUE),
        cells(171, 26, ("6", "6"), MUTED, fill=PALE, dash="4 3"),
        cells(95, 66, ("10", "40"), BLUE, fill="#ffffff", stroke=BLUE),
        cells(171, 66, ("?", "?"), MUTED, fill=PALE, dash="4 3"),
        text(133, 116, "count 2", fill=BLUE),
        text(209, 116, "padding", fill=MUTED),
        text(256, 45, "6: no place", anchor="start", fill=MUTED),
        text(256, 85, "never read", anchor="start", fill=MUTED),
        text(171, 142, "capacity nse = 4, static"),
    ]
    return page(350, 158, parts)


def csr() -> str:
    """A matrix of four rows, and its three arrays."""
    rows = (("", "2", "7", ""), ("", "", "3", ""), ("", "", "", "1"), ("", "", "", ""))
    parts = [text(52, 102, "A =", weight="bold")]
    for i, row in enumerate(rows):
        parts.append(cells(84, 24 + 28 * i, row, BLUE, fill="#ffffff"))
    for y, name, items, color in (
        (154, "indptr", ("0", "2", "3", "4", "4"), ORANGE),
        (192, "indices", ("1", "2", "2", "3"), GREEN),
        (230, "data", ("2", "7", "3", "1"), BLUE),
    ):
        parts.append(text(74, y + 19, name, anchor="end", fill=MUTED))
        parts.append(cells(84, y, items, color, fill="#ffffff"))
    parts.append(text(170, 282, "row i: slots indptr[i] to indptr[i+1]", size=13))
    return page(340, 298, parts)


def direction(title: str) -> str:
    """Pushing along out-edges of the frontier, or pulling along in-edges of what is unseen."""
    color, first, second = {
        "push": (BLUE, "few in the frontier:", "walk their out-edges"),
        "pull": (ORANGE, "many: each unseen vertex", "asks its in-edges"),
    }[title]
    left, right = [(75, 72), (75, 137)], [(265, 62), (265, 105), (265, 148)]
    parts = [text(170, 30, title, weight="bold", fill=color)]
    for a, b in ((0, 0), (0, 1), (1, 1), (1, 2)):
        (x1, y1), (x2, y2) = left[a], right[b]
        if title == "push":
            parts.append(arrow(x1 + 20, y1, x2 - 21, y2, color))
        else:
            parts.append(arrow(x2 - 20, y2, x1 + 21, y1, color))
    parts += [vertex(*place, name, INK, PALE) for place, name in zip(left, "ab", strict=True)]
    parts += [vertex(*place, name) for place, name in zip(right, "cde", strict=True)]
    parts += [text(75, 178, "frontier", size=13, fill=MUTED)]
    parts += [text(265, 186, "unseen", size=13, fill=MUTED)]
    parts += [text(170, 212, first, size=13), text(170, 230, second, size=13)]
    return page(340, 246, parts)


def launches() -> str:
    """A loop of launches: the host between the levels."""
    parts = [text(18, 30, "a loop of launches", anchor="start", weight="bold")]
    for k in range(3):
        x = 18 + 115 * k
        parts += [box(x, 62, 66, 36, fill=PALE, stroke=BLUE), text(x + 33, 85, f"level {k}")]
        if k < 2:
            parts += [arrow(x + 68, 80, x + 113, 80), text(x + 90, 54, "host", fill=MUTED)]
    return page(332, 116, parts)


def persistent() -> str:
    """One launch with barriers inside."""
    parts = [text(18, 30, "one launch", anchor="start", weight="bold")]
    parts += [box(12, 44, 308, 54, stroke=ORANGE, dash="5 4")]
    for k in range(3):
        x = 20 + 113 * k
        parts += [box(x, 53, 66, 36, fill=PALE, stroke=ORANGE), text(x + 33, 76, f"level {k}")]
        if k < 2:
            parts.append(f'<rect x="{x + 86}" y="49" width="6" height="44" fill="{ORANGE}"/>')
    parts.append(text(166, 122, "bars: grid barriers, no host between", size=13))
    return page(332, 138, parts)


def merge_path() -> str:
    """Rows of very different lengths, cut into pieces of equal work."""
    lengths, parts = (2, 9, 1, 0, 4), [text(18, 30, "rows", anchor="start", weight="bold")]
    colors, done = (BLUE, ORANGE, GREEN, MUTED), 0
    for i, length in enumerate(lengths):
        parts.append(text(26, 62 + 30 * i, str(i), fill=MUTED))
        for k in range(length):
            share = done // 4
            parts.append(
                box(44 + 30 * k, 44 + 30 * i, 26, 24, fill=colors[share], stroke="#ffffff")
            )
            done += 1
    parts.append(text(18, 220, "four lanes, four entries each", anchor="start", weight="bold"))
    for k, color in enumerate(colors):
        parts.append(text(26, 252 + 30 * k, f"{k}", fill=MUTED))
        parts += [
            box(44 + 30 * j, 234 + 30 * k, 26, 24, fill=color, stroke="#ffffff") for j in range(4)
        ]
    parts.append(text(180, 264, "a row cut in two", anchor="start", size=13))
    parts.append(text(180, 282, "is joined at the end", anchor="start", size=13))
    return page(340, 366, parts)


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
    parts.append(text(222, 34, "tile (0, 0): a word", anchor="start", size=13))
    parts.append(text(222, 52, "a row, a bit a place", anchor="start", size=13))
    for i, word in enumerate(("0100", "1001", "0010", "0000")):
        parts.append(text(222, 82 + 24 * i, word, anchor="start", fill=BLUE, size=16))
        parts.append(text(276, 82 + 24 * i, f"row {i}", anchor="start", fill=MUTED, size=13))
    parts.append(text(20, 224, "white tiles are empty: not stored.", anchor="start", size=13))
    parts.append(text(20, 242, "Tiles really are 32 or 64 wide.", anchor="start", size=13))
    return page(356, 258, parts)


def path_in_matrix() -> str:
    """A graph of four towns and its matrix; the shortest path from 0 to 3 in both."""
    places = {"0": (40, 60), "1": (120, 60), "2": (120, 140), "3": (40, 140)}
    entries = {(0, 1): "2", (0, 2): "7", (1, 2): "3", (2, 3): "1"}
    path = {(0, 1), (1, 2), (2, 3)}
    parts = [
        text(80, 26, "a graph", fill=MUTED),
        text(273, 26, "its matrix", fill=MUTED),
        arrow(59, 60, 99, 60, ORANGE),
        text(79, 52, "2", fill=ORANGE),
        arrow(54, 74, 105, 125),
        text(72, 112, "7", fill=MUTED),
        arrow(120, 79, 120, 119, ORANGE),
        text(132, 104, "3", fill=ORANGE),
        arrow(101, 140, 61, 140, ORANGE),
        text(81, 158, "1", fill=ORANGE),
    ]
    parts += [vertex(x, y, name, ORANGE) for name, (x, y) in places.items()]
    for i in range(4):
        parts.append(text(196, 74 + 32 * i, str(i), fill=MUTED))
        parts.append(text(225 + 32 * i, 48, str(i), fill=MUTED))
        for j in range(4):
            color = ORANGE if (i, j) in path else INK
            fill = PALE if (i, j) in path else "#ffffff"
            parts.append(box(210 + 32 * j, 54 + 32 * i, 30, 30, fill=fill, rx=3))
            if (i, j) in entries:
                parts.append(text(225 + 32 * j, 74 + 32 * i, entries[i, j], fill=color))
    parts.append(text(175, 208, "shortest path 0 to 3: 2 + 3 + 1 = 6", fill=ORANGE))
    return page(350, 222, parts)


def favicon() -> str:
    """The sign in the browser's tab: a small sparse matrix."""
    places = {(0, 0), (0, 2), (1, 1), (2, 0), (2, 2), (1, 3), (3, 1), (3, 3)}
    parts = [box(1, 1, 30, 30, fill="#ffffff", stroke=BLUE, rx=5)]
    for i, j in sorted(places):
        parts.append(box(4 + 6 * j, 4 + 6 * i, 5, 5, fill=ORANGE if i == j else BLUE, rx=1))
    return page(32, 32, parts)


FIGURES: dict[str, Callable[[], str]] = {
    **{f"semiring_{name}": functools.partial(semiring, name) for name in SEMIRINGS},
    **{name: functools.partial(direction, name) for name in ("push", "pull")},
    **{f.__name__: f for f in (capacity, csr, launches, persistent, merge_path, tiles, favicon)},
    "path_in_matrix": path_in_matrix,
}


if __name__ == "__main__":
    import charts

    for name, figure in (FIGURES | charts.CHARTS).items():
        (HERE / f"{name}.svg").write_text(figure())
        print(f"_static/{name}.svg")
