"""Tables of `road`: eager programs beside python-graphblas, first calls, fresh processes."""

from __future__ import annotations

from typing import Any

Record = dict[str, Any]
Table = tuple[list[str], list[list[Any]]]


def programs(records: list[Record]) -> Table:
    """A row a graph and program: later calls of both libraries, their ratio, first calls."""
    headers = ["graph", "program", "ms", "python-graphblas", "ratio", "first s", "python-graphblas"]
    found: dict[tuple[str, str], dict[str, Record]] = {}
    for record in records:
        library, _, name = record["program"].partition(", ")
        if name and library in ("jaxspv", "python-graphblas"):
            found.setdefault((record["graph"], name), {})[library] = record
    rows = []
    for (graph, name), both in found.items():
        one, other = both.get("jaxspv"), both.get("python-graphblas")
        times = [r and r[key] for key in ("median_ms", "first_s") for r in (one, other)]
        ratio = times[0] / times[1] if times[0] and times[1] else None
        rows.append([graph, name, *times[:2], ratio, *times[2:]])
    return headers, rows


def processes(records: list[Record]) -> Table:
    """A row a sequence: its first time, later ones, and what was counted."""
    headers = ["", "first s", "then s", "CPU s of the first", "programs", "on another graph", "MB"]
    keys = ("cpu_s", "programs", "programs_next_graph", "memory_mb")
    rows = [
        [r["program"], r["first_s"], r["median_ms"] / 1e3, *(r.get(key) for key in keys)]
        for r in records
        if r["graph"] == "sizes"
    ]
    return headers, rows


def tables(records: list[Record]) -> list[Table]:
    """Those with rows."""
    return [t for t in (programs(records), processes(records)) if t[1]]
