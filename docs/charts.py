"""Charts of the report, drawn from stored results; `python docs/figures.py` writes them."""

import functools
import json
import math
import pathlib
import statistics
from collections.abc import Mapping, Sequence

import figures as draw

RESULTS = pathlib.Path(__file__).parent.parent / "benchmarks/results/nvidia-h200"
COLORS = (draw.BLUE, draw.ORANGE, draw.GREEN, draw.MUTED)
LEFT, RIGHT, TOP, HEIGHT = 52, 340, 62, 180  # of the plotted area, in a picture 356 wide

# What the papers print, in milliseconds or microseconds; other GPUs, other years.
YANG_TABLE_IV = {  # million edges: no sort, radix sort, merge sort, SpMV (K40c)
    2.5: (1.37, 4.74, 3.81, 2.21),
    5.1: (1.71, 5.81, 5.35, 4.02),
    10.6: (2.85, 9.79, 11.37, 7.70),
    21.8: (6.79, 16.85, 22.31, 19.94),
    44.6: (21.08, 29.25, 43.13, 75.97),
    91.0: (68.09, 64.23, 105.92, 259.86),
}
GPU_REPORT_STEP_US = {  # rows: loop of launches, one launch; compute and launch together
    256: (20.665 + 2.865, 14.484 + 0.042),
    1024: (39.142 + 3.034, 33.928 + 0.388),
    4096: (931.075 + 3.745, 916.527 + 0.73),
}
YANG_METHODS = ("no sort", "radix sort", "merge sort", "SpMV")
DENSITIES = (0.1, 0.01, 0.001, 0.0001)
MATRIX = "fem-388-6"
TILE_FIGURE_6 = {  # speed of TileSpMSpV at the densities, section 4.2 (RTX 3090)
    "tiled SpMV": (1.10, 1.65, 2.20, 2.38),
    "cuSPARSE BSR": (7.58, 13.78, 22.43, 24.95),
    "bucket": (13.46, 14.85, 20.06, 20.43),
}
SHARP_MS = {"arc130": (346, 0.063)}  # tables 4 and 5: GraphBLAS-sharp, QuickGraph (GTX 970)
TYPES = ("random", "uniform", "diagonal", "power_law", "block", "arrow_head", "triangular")


@functools.cache
def medians(name: str, results: pathlib.Path = RESULTS) -> Mapping[tuple[str, str], float]:
    """The median of each case and program of a table, the newest where there are several."""
    records = json.loads((results / f"{name}.json").read_text())["records"]
    return {(r.get("case", r["graph"]), r["program"]): r["median_ms"] for r in records}


@functools.cache
def searches() -> Mapping[int, tuple[float, tuple[float, ...]]]:
    """For each R-MAT scale: million edges and the four medians over the sources."""
    records = json.loads((RESULTS / "yang2015.json").read_text())["records"]
    found = {}
    for scale in range(16, 22):
        of = [r for r in records if r["graph"] == f"rmat{scale}"]
        ms = []
        for method in YANG_METHODS:
            ms.append(statistics.median(r["median_ms"] for r in of if r["program"] == method))
        found[scale] = (of[0]["entries"] / 2e6, tuple(ms))
    return found


def lines(
    title: str,
    across: tuple[str, Sequence[float], Sequence[str]],
    down: tuple[str, Sequence[float]],
    series: Mapping[str, tuple[Sequence[float], Sequence[float]]],
) -> str:
    """Lines over logarithmic axes; the ticks' ends are the ends of the plotted area."""
    label, xs, names = across
    unit, ys = down
    x0, x1, y0, y1 = map(math.log, (min(xs), max(xs), min(ys), max(ys)))

    def place(x: float, y: float) -> tuple[float, float]:
        far, high = (math.log(x) - x0) / (x1 - x0), (math.log(y) - y0) / (y1 - y0)
        return round(LEFT + (RIGHT - LEFT) * far, 1), round(TOP + HEIGHT * (1 - high), 1)

    parts = [draw.text(16, 24, title, anchor="start", weight="bold")]
    parts.append(draw.text(16, 46, unit, anchor="start", fill=draw.MUTED, size=13))
    for y in ys:
        parts.append(_rule(LEFT, place(xs[0], y)[1], RIGHT, place(xs[0], y)[1]))
        at = place(xs[0], y)[1] + 5
        parts.append(draw.text(LEFT - 6, at, f"{y:g}", anchor="end", fill=draw.MUTED, size=13))
    for x, name in zip(xs, names, strict=True):
        parts.append(draw.text(place(x, ys[0])[0], TOP + HEIGHT + 18, name, size=13))
    parts.append(draw.text(196, TOP + HEIGHT + 38, label, fill=draw.MUTED, size=13))
    for k, (name, (px, py)) in enumerate(series.items()):
        color = COLORS[k]
        points = " ".join("{:g},{:g}".format(*place(x, y)) for x, y in zip(px, py, strict=True))
        parts.append(_path(points, color))
        at = TOP + HEIGHT + 62 + 20 * (k // 2)
        left = 16 + 172 * (k % 2)
        parts.append(_path(f"{left},{at - 5} {left + 28},{at - 5}", color))
        parts.append(draw.text(left + 34, at, name, anchor="start", size=13))
    return draw.page(356, TOP + HEIGHT + 56 + 20 * ((len(series) + 1) // 2), parts)


def bars(title: str, unit: str, rows: Mapping[str, float], mark: float = 1.0) -> str:
    """A bar a row with its number, and a line at `mark`."""
    widest = max(rows.values())
    parts = [draw.text(16, 24, title, anchor="start", weight="bold")]
    parts.append(draw.text(16, 46, unit, anchor="start", fill=draw.MUTED, size=13))
    at = round(126 + 160 * mark / widest, 1)
    parts.append(_rule(at, 54, at, 60 + 26 * len(rows), draw.INK))
    for k, (name, value) in enumerate(rows.items()):
        y, width = 60 + 26 * k, 160 * value / widest
        parts.append(draw.text(118, y + 14, name, anchor="end", size=13))
        fill = draw.BLUE if value >= mark else draw.ORANGE
        parts.append(draw.box(126, y, round(width, 1), 18, fill=fill, stroke=fill, rx=2))
        style = {"fill": draw.PAPER, "stroke": draw.PAPER}  # the line ends before the number
        parts.append(draw.box(round(130 + width, 1), y, 42, 18, **style))
        parts.append(draw.text(round(134 + width, 1), y + 14, f"{value:.3g}", anchor="start"))
    return draw.page(356, 74 + 26 * len(rows), parts)


def _rule(x1: float, y1: float, x2: float, y2: float, color: str = "#d8dee6") -> str:
    return f'<line x1="{x1:g}" y1="{y1:g}" x2="{x2:g}" y2="{y2:g}" stroke="{color}"/>'


def _path(points: str, color: str) -> str:
    return f'<polyline points="{points}" fill="none" stroke="{color}" stroke-width="2.2"/>'


def report_yang(whose: str) -> str:
    """Breadth-first search by the three SpMSpV and by SpMV: theirs and ours on one scale."""
    own = {edges: ms for edges, ms in searches().values()}
    table = YANG_TABLE_IV if whose == "paper" else own
    title = "BFS, Table IV on a K40c" if whose == "paper" else "BFS, the same on an H200"
    series = {
        method: (tuple(table), [ms[k] for ms in table.values()])
        for k, method in enumerate(YANG_METHODS)
    }
    ticks = (2, 10, 100)
    return lines(
        title,
        ("million edges", ticks, [str(t) for t in ticks]),
        ("ms a search", (0.1, 1, 10, 100, 1000)),
        series,
    )


def report_tiles() -> str:
    """One product with a sparse vector of four densities."""
    ms = medians("tiles")
    series = {
        name: (DENSITIES, [1000 * ms[f"{MATRIX} {d}", name] for d in DENSITIES])
        for name in ("columns", "TileSpMSpV", "cuSPARSE", "cuSPARSE BSR")
    }
    return lines(
        "SpMSpV, 48.6M entries, H200",
        ("share of x that is stored", DENSITIES, [f"{d:g}" for d in DENSITIES]),
        ("us a product", (10, 100, 1000)),
        series,
    )


def report_tile_bfs() -> str:
    """How much longer a search over rows takes than one over bitmask tiles."""
    ms = medians("tilebfs")
    graphs = dict.fromkeys(graph for graph, _ in ms)
    speeds = {g: ms[g, "rows"] / ms[g, "auto"] for g in graphs}
    speeds = dict(sorted(speeds.items(), key=lambda item: -item[1]))
    return bars("BFS over tiles, H200", "time over rows / time over tiles", speeds)


def report_launches() -> str:
    """A loop of launches over one launch: the report's and ours."""
    ms = medians("launches")
    rows = {}
    for n, (loop, one) in GPU_REPORT_STEP_US.items():
        rows[f"paper, {n}"] = loop / one
        ours = ms[f"dense{n}", "a launch a step"] / ms[f"dense{n}", "pallas/persistent"]
        rows[f"here, {n}"] = ours
    return bars("A loop of launches over one", "times as long a step, by number of rows", rows)


def report_formats() -> str:
    """CSR over SELL-32 at 4,096 rows, inside jit, for the seven types."""
    ms = medians("gpu_report")
    csr, sell = "CSR, inside jit", "SELL-32, inside jit"
    rows = {t: ms[f"{t}-4096", csr] / ms[f"{t}-4096", sell] for t in TYPES}
    return bars("CSR against SELL-32, H200", "time by CSR / time by SELL-32", rows)


def yang_table() -> str:
    """Their Table II and ours, as the stored page has it."""
    page = (RESULTS / "yang2015.md").read_text()
    return page.partition("Table II: ")[2].partition("\n\n")[2].partition("\n\n")[0]


def tiles_table() -> str:
    """Geometric means of the speed over the comparators: the paper's and ours."""
    ms, rows = medians("tiles"), []
    for other, theirs in TILE_FIGURE_6.items():
        for density, paper in zip(DENSITIES, theirs, strict=True):
            end, cells = f" {density:g}", [f"{density:g}", f"{paper:.3g}"]
            cases = [case for case, name in ms if name == other and case.endswith(end)]
            for ours in ("TileSpMSpV", "columns"):
                speeds = [ms[c, other] / ms[c, ours] for c in cases]
                cells.append(f"{statistics.geometric_mean(speeds):.3g}")
            rows.append((f"{other}, {len(cases)} matrices here", *cells))
    return _table(("speed over", "density", "paper: tiles", "tiles", "columns"), rows)


def launches_table() -> str:
    """Microseconds a step, by the report and here."""
    ms, rows = medians("launches"), []
    for n, (loop, one) in GPU_REPORT_STEP_US.items():
        ours = [ms[f"dense{n}", p] for p in ("a launch a step", "pallas/persistent", "xla/pull")]
        rows.append((f"{n:,}", f"{loop:.3g}", f"{one:.3g}", *(f"{us:.3g}" for us in ours)))
    heads = ("rows", "report, loop of launches", "report, one launch")
    return _table((*heads, "a launch a step", "one launch", "XLA's loop"), rows)


def sharp_table() -> str:
    """Breadth-first search: their table and ours, on the one matrix that is at hand."""
    ms = medians("graphblas_sharp")
    rows = []
    for graph, (sharp, quick) in SHARP_MS.items():
        ours = (ms[f"{graph} BFS", "jaxspv"], ms[f"{graph} BFS", "SciPy"])
        rows.append((graph, *(f"{t:.3g}" for t in (sharp, quick, *ours))))
    return _table(("BFS, ms", "GraphBLAS-sharp", "QuickGraph", "jaxspv", "SciPy"), rows)


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [heads, ("-", *["-:"] * (len(heads) - 1)), *rows]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in lines)


def write_tables(folder: pathlib.Path) -> None:
    """Writes the tables that the report includes."""
    for table in (yang_table, tiles_table, launches_table, sharp_table):
        (folder / f"report_{table.__name__.removesuffix('_table')}.md").write_text(table() + "\n")


CHARTS = {
    "report_yang_paper": functools.partial(report_yang, "paper"),
    "report_yang_here": functools.partial(report_yang, "here"),
    **{f.__name__: f for f in (report_tiles, report_tile_bfs, report_launches, report_formats)},
}
