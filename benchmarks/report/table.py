"""Tables of results in Markdown: `python -m benchmarks.report.table FILE.json ...`."""

from __future__ import annotations

import json
import math
import pathlib
import sys
from collections.abc import Callable, Sequence
from typing import Any

from ..harness import geometric_mean
from ..traversal import yang2015
from . import peers, stored, table_road, table_tiles

Record = dict[str, Any]


def number(value: Any) -> str:
    """Three significant digits; an empty cell for None."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    if isinstance(value, float):
        digits = 0 if value == 0 else max(0, 2 - math.floor(math.log10(abs(value))))
        return f"{value:,.{min(digits, 6)}f}"
    return f"{value:,}" if isinstance(value, int) else str(value)


def markdown(headers: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """A Markdown table, aligned for reading as text: the first column left, the rest right."""
    cells = [[str(h) for h in headers], *([number(v) for v in row] for row in rows)]
    width = [max(len(row[k]) for row in cells) for k in range(len(headers))]

    def line(row):
        aligned = [
            c.ljust(w) if k == 0 else c.rjust(w)
            for k, (c, w) in enumerate(zip(row, width, strict=True))
        ]
        return "| " + " | ".join(aligned) + " |"

    rule = ["-" * w if k == 0 else "-" * (w - 1) + ":" for k, w in enumerate(width)]
    return "\n".join([line(cells[0]), "| " + " | ".join(rule) + " |", *map(line, cells[1:])])


def render(document: dict[str, Any]) -> str:
    """The tables of a run or of a stored document, then its runs: commands, versions, commits."""
    document = stored.of_run(document)
    runs, parts = document["runs"], []
    newest = sorted(document["records"], key=lambda r: -r["run"])
    for name in sorted({r["benchmark"] for r in newest}, key=_order(document["records"])):
        records = [r for r in newest if r["benchmark"] == name]
        form = FORMS.get(name)
        body = form(records) if form else _general(name, records, runs)
        if name == "tiles: conversion":
            body = [markdown(*table_tiles.conversion(records))]
        elif name == "tiles: SpMSpV":
            for key, heading in table_tiles.CLOCKS.items():
                if any(key in r for r in records):
                    body += [heading, markdown(*table_tiles.summary(records, key))]
        parts += [f"## {name}", *body]
    failures = [f"- {f['benchmark']} {f['graph']}: {f['error']}" for f in document["failures"]]
    if failures:
        parts += ["## Not measured", "\n".join(failures)]
    return "\n\n".join([*parts, "## How this was measured", *_runs(document)]) + "\n"


def _runs(document: dict[str, Any]) -> list[str]:
    """What the times are, and a line for each run."""
    several = len(document["runs"]) > 1
    checked = all(map(_is_verified, document["records"]))
    return [
        "Times are medians in milliseconds by the host's clock unless a heading says otherwise. "
        "Every result was verified before it was timed"
        + ("" if checked else ', except those called "unchecked"')
        + ". `*`: a single run, because ten would have taken too long."
        + (" The column `runs` names the runs of a row." if several else ""),
        *(
            (f"Run {k}: " if several else "") + _run(environment)
            for k, environment in enumerate(document["runs"], 1)
        ),
    ]


def _is_verified(record: Record) -> bool:
    return record.get("verified", True)


def _order(records: list[Record]) -> Callable[[str], int]:
    return list(dict.fromkeys(r["benchmark"] for r in records)).index


def _run(environment: dict[str, Any]) -> str:
    versions = ", ".join(f"{k} {v}" for k, v in environment["versions"].items())
    return (
        f"`{environment['command']}` on {environment['device']} ({environment['platform']}), load "
        f"of the host at the start {environment['load'][0]:.1f}. {versions}. Commit "
        f"{environment['commit']}, {environment['date']}."
    )


def cell(record: Record | None, key: str = "median_ms") -> str:
    """A median with its mark; empty for no record."""
    if record is None or record.get(key) is None:
        return ""
    return number(record[key]) + ("*" if record["runs"] == 1 else "")


def _general(name: str, records: list[Record], runs: list[dict[str, Any]]) -> list[str]:
    programs = list(dict.fromkeys(r["program"] for r in records))
    table: dict[str, dict[str, Record]] = {}
    for record in records:
        table.setdefault(record.get("case", record["graph"]), {})[record["program"]] = record
    beside = peers.beside(name, runs[-1])
    headers = ["graph", "entries", *programs]
    rows = []
    for case, row in table.items():
        entries = next(iter(row.values()))["entries"]
        rows.append([case, entries, *(cell(row.get(p)) for p in programs)])
    if beside:
        headers.append("fastest peer")
        for row in rows:
            row.append(" ".join(map(str, beside[row[0]])) if row[0] in beside else "")
    if len(runs) > 1:
        headers.append("runs")
        for row in rows:
            numbers = sorted({r["run"] + 1 for r in table[row[0]].values()})
            row.append(", ".join(map(str, numbers)))
    blocks = ["Time (ms)", markdown(headers, rows)]
    return blocks + _speed(table, programs) + _costs(table, programs)


BASES = ("SciPy", "cuSPARSE", "torch.sparse", "torch.sparse (unchecked)")
BASES += ("NetworkX", "PyG (unchecked)")


def _speed(table: dict[str, dict[str, Record]], programs: list[str]) -> list[str]:
    """Speed of every program relative to the baseline, and its geometric mean."""
    held = {p: sum(p in row for row in table.values()) for p in BASES}
    base = max(held, key=lambda p: held[p]) if any(held.values()) else None
    others = [p for p in programs if p != base]
    if base is None or not others:
        return []
    rows = [[case, *(_ratio(row, base, p) for p in others)] for case, row in table.items()]
    columns = [[v for row in rows if (v := row[k]) is not None] for k in range(1, len(others) + 1)]
    least = [
        [v for row in table.values() if (v := _ratio(row, base, p, "min_ms")) is not None]
        for p in others
    ]
    summary = [
        ["**geometric mean**", *map(geometric_mean, columns)],
        ["**of the fastest runs**", *map(geometric_mean, least)],
        ["**smallest**", *(min(column, default=math.nan) for column in columns)],
    ]
    title = f"Speed relative to {base} (larger is faster; medians, and the geometric mean of the "
    return [title + "fastest runs too)", markdown(["graph", *others], rows + summary)]


def _ratio(row: dict[str, Record], base: str, program: str, key: str = "median_ms") -> float | None:
    return row[base][key] / row[program][key] if program in row and base in row else None


def _costs(table: dict[str, dict[str, Record]], programs: list[str]) -> list[str]:
    """What is paid once, and the spread, of the first program."""
    first = programs[0]
    keys = (
        "method",
        "convert_s",
        "prepare_s",
        "compile_s",
        "bytes_over_csr",
        "spread",
        "gteps",
        "launches",
    )
    rows, used = [], [k for k in keys if any(k in row.get(first, {}) for row in table.values())]
    for case, row in table.items():
        rows.append([case, *(row.get(first, {}).get(k) for k in used)])
    title = f"{first}: seconds paid once, bytes over those of the CSR, spread (IQR / median)"
    return [title, markdown(["graph", *used], rows)]


def _yang(records: list[Record]) -> list[str]:
    graphs = dict.fromkeys(r["graph"] for r in records)
    by = {g: {r["method"]: r for r in records if r["graph"] == g} for g in graphs}
    one = {g: next(iter(row.values())) for g, row in by.items()}
    labels = list(yang2015.METHODS.values())
    table1 = [
        [
            g,
            one[g]["stands_for"],
            one[g]["n"],
            one[g]["entries"] // 2,
            one[g]["max_degree"],
            one[g]["levels"],
        ]
        for g in graphs
    ]
    table2, table3, table4 = [], [], []
    for g, row in by.items():
        best = min((row[m] for m in yang2015.SORTS), key=lambda r: r["median_ms"])
        paper = yang2015.PUBLISHED_MS.get(one[g]["stands_for"], (None, None))
        dense = row["dense"]
        table2.append(
            [
                g,
                cell(best),
                best["program"],
                cell(dense),
                dense["median_ms"] / best["median_ms"],
                *paper,
            ]
        )
        parts = [row[m]["parts_ms"] for m in yang2015.SORTS]
        if all(parts):
            table3.append([g, *(p[k] for p in parts for k in ("common", "scatter", "sort"))])
        table4.append(
            [
                g,
                *(cell(row[m]) for m in yang2015.METHODS),
                *(row[m]["mteps"] for m in yang2015.METHODS),
            ]
        )
    sorts = [yang2015.METHODS[m] for m in yang2015.SORTS]
    heads3 = [f"{s}: {k}" for s in sorts for k in ("common", "scatter", "sort")]
    return [
        "Table I: the graphs (undirected edges; levels from the vertex of largest degree)",
        markdown(["graph", "stands for", "vertices", "edges", "max degree", "levels"], table1),
        "Table II: SpMSpV by its fastest method against SpMV (ms), and the paper's on a K40c",
        markdown(
            ["graph", "SpMSpV", "method", "SpMV", "speed-up", "paper SpMSpV", "paper SpMV"], table2
        ),
        "Table III: the parts of the three SpMSpV (ms, source of largest degree)",
        markdown(["graph", *heads3], table3),
        "Table IV: median over the sources (ms), and MTEPS",
        markdown(["graph", *labels, *(f"MTEPS {x}" for x in labels)], table4),
    ]


def _loops(records: list[Record]) -> list[str]:
    """One line a program: what a step of its loop takes and how often it goes to the host."""
    keys = ("steps", "us_per_step", "events_per_step", "host_copies_per_step")
    rows = [[r["graph"], r["program"], cell(r), *(r.get(k) for k in keys)] for r in records]
    headers = [
        "graph",
        "program",
        "ms",
        "steps",
        "us a step",
        "kernels and copies a step",
        "copies to the host a step",
    ]
    return [markdown(headers, rows)]


def _road(records: list[Record]) -> list[str]:
    return [markdown(*table) for table in table_road.tables(records)]


def _accuracy(records: list[Record]) -> list[str]:
    """What is learnt, and in which time."""
    headers = ["graph", "program", "seeds", "accuracy", "deviation", "median_ms", "first_s"]
    rows = [[r["case"], *(r[key] for key in headers[1:])] for r in records]
    return [markdown(headers, rows)]


def _compiled(records: list[Record]) -> list[str]:
    """Ours eagerly and inside jit beside each library, and the fastest library's time over ours."""
    ours, graphs = ("jaxspv", "jaxspv, inside jit"), {}
    for r in records:
        graphs.setdefault((r["graph"], r["case"]), {})[r["program"]] = r
    libraries = sorted({r["program"] for r in records} - set(ours))
    rows = []
    for (_, case), row in sorted(graphs.items()):
        same = [p for p in libraries if p in row and "," not in p]  # not a part of the work
        best = min((row[p]["median_ms"] for p in same), default=None)
        mine = row.get(ours[1], {}).get("median_ms")
        ratio = best / mine if best and mine else None
        rows.append([case, *(cell(row.get(p)) for p in (*ours, *libraries)), ratio])
    return [markdown(["graph and algorithm", *ours, *libraries, "times as fast"], rows)]


def gpu_programs(records: list[Record]) -> tuple[tuple[list[str], list[list[Any]]], ...]:
    """Tables of cases and of means: sums of kernel times beside the fastest program.

    And its answer where that is another.
    """
    ours, cases = ("jaxspv", "jaxspv, call"), {}
    for r in records:
        cases.setdefault(r["case"], {}).setdefault(r["program"], r)
    rows, ratios = [], {}
    for case, row in sorted(cases.items(), key=lambda item: item[0].split()[::-1]):
        mine, theirs = row.get(ours[0]), [r for p, r in row.items() if p not in ours]
        best = min(theirs, key=lambda r: r["median_ms"], default=None)
        ratio = best["median_ms"] / mine["median_ms"] if best and mine else None
        if ratio is not None:
            ratios.setdefault(case.split(maxsplit=1)[1], []).append(ratio)
        said = [
            f"{key} {mine[key]:.6g} / {best[key]:.6g}"
            for key in ("modularity", "size", "colors")
            if mine and best and mine.get(key) != best.get(key)
        ]
        name = best["program"] if best else None
        rows.append([case, *(cell(row.get(p)) for p in ours), name, cell(best), ratio, *said[:1]])
        rows[-1] += [None] * (7 - len(rows[-1]))
    headers = ["graph and algorithm", "kernels", "call", "program", "its kernels", "times as fast"]
    means = [[a, geometric_mean(r), min(r)] for a, r in sorted(ratios.items())]
    return (
        ([*headers, "answers where they differ"], rows),
        (["algorithm", "times as fast, geometric mean", "least"], means),
    )


def _gpu_programs(records: list[Record]) -> list[str]:
    title = "Sums of kernel times in a profile (ms); a call from Python by the host's clock"
    return [title, *(markdown(*table) for table in gpu_programs(records))]


def over_scipy(records: list[Record]) -> dict[str, dict[str, list[float]]]:
    """Operation -> program -> speed over SciPy on each graph, by medians."""
    cases: dict[str, dict[str, Record]] = {}
    for r in records:
        cases.setdefault(r["case"], {}).setdefault(r["program"], r)
    found: dict[str, dict[str, list[float]]] = {}
    for case, row in cases.items():
        speeds = found.setdefault(case.partition(" ")[2], {})
        for program in row:
            if program != "SciPy":
                speeds.setdefault(program, []).append(_ratio(row, "SciPy", program) or math.nan)
    return found


def over_scipy_means(records: list[Record]) -> tuple[list[str], list[list[Any]]]:
    """The table of geometric means, with the least of jaxspv inside jit or called."""
    programs = list(dict.fromkeys(r["program"] for r in records if r["program"] != "SciPy"))
    rows = []
    for operation, speeds in over_scipy(records).items():
        ours = speeds.get("jaxspv, inside jit", speeds["jaxspv"])
        means = [geometric_mean(speeds[p]) if p in speeds else None for p in programs]
        rows.append([operation, *means, min(ours), len(ours)])
    return ["operation", *programs, "least of ours", "graphs"], rows


def _over_scipy(records: list[Record]) -> list[str]:
    """Geometric means of speeds over SciPy's, then those of each graph."""
    cases: dict[str, dict[str, Record]] = {}
    for r in records:
        cases.setdefault(r["case"], {}).setdefault(r["program"], r)
    programs = list(dict.fromkeys(r["program"] for r in records if r["program"] != "SciPy"))
    rows = [
        [case, row["SciPy"]["entries"], cell(row["SciPy"])]
        + [_ratio(row, "SciPy", program) for program in programs]
        for case, row in cases.items()
    ]
    return [
        "Speed over SciPy on one thread (larger is faster), geometric means",
        markdown(*over_scipy_means(records)),
        "By graph",
        markdown(["graph and operation", "entries", "SciPy (ms)", *programs], rows),
    ]


# The others share one form.
FORMS = {
    "accuracy": _accuracy,
    "compiled": _compiled,
    "gpu_programs": _gpu_programs,
    "over_scipy": _over_scipy,
    "yang2015": _yang,
    "loops": _loops,
    "road": _road,
}


def main(paths: Sequence[str]) -> None:
    """Prints the tables of the given JSON files."""
    for path in paths:
        print(render(json.loads(pathlib.Path(path).read_text())))


if __name__ == "__main__":
    main(sys.argv[1:])
