"""Pictures of `python -m benchmarks tiles`, like Figures 6 to 11 of Ji et al., ICPP 2022."""

from __future__ import annotations

from typing import Any

import numpy as np

Record = dict[str, Any]
PANELS = 4 + 1 + 1 + 1  # SpMSpV at four densities, BFS, levels, conversion
BEFORE = ("TileSpMSpV", "columns", "auto", "tiled SpMV", "bucket", "cuSPARSE")
WAYS = ("Push-CSC", "Push-CSR", "Pull-CSC")


def _legend(axis):
    """A legend, where a series was drawn: without a GPU there may be none."""
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=7)


def draw(axes: list[Any], records: list[Record]) -> None:
    """All panels of one document."""
    products = [r for r in records if r["benchmark"] == "tiles: SpMSpV"]
    searches = [r for r in records if r["benchmark"] == "tiles: BFS"]
    costs = [r for r in records if r["benchmark"] == "tiles: conversion"]
    densities = sorted({r["density"] for r in products}, reverse=True)
    for axis, density in zip(axes[:4], densities, strict=False):
        _products(axis, density, [r for r in products if r["density"] == density])
    _searches(axes[4], searches)
    _levels(axes[5], searches)
    _conversion(axes[6], costs, searches, products)


def _products(axis, density, records):
    """Figure 6: performance against the size of the matrix."""
    for program in BEFORE:
        points = [(r["entries"], r["gflops"]) for r in records if r["program"] == program]
        if points:
            axis.scatter(*zip(*points, strict=True), s=18, label=program, alpha=0.8)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="entries",
        ylabel="GFlop/s of useful products",
        title=f"Figure 6: SpMSpV, density {density:g}",
    )
    _legend(axis)


def _searches(axis, records):
    """Figures 8 and 9: one, two, three kernels, and the search over rows."""
    programs = list(dict.fromkeys(r["program"] for r in records))
    graphs = list(dict.fromkeys(r["graph"] for r in records))
    width = 0.8 / max(len(programs), 1)
    for k, program in enumerate(programs):
        rows = [r for r in records if r["program"] == program]
        x = [graphs.index(r["graph"]) + k * width for r in rows]
        axis.bar(x, [r["median_ms"] for r in rows], width, label=program)
    axis.set_xticks(np.arange(len(graphs)) + 0.4, graphs, rotation=40, ha="right", fontsize=7)
    axis.set(yscale="log", ylabel="ms", title="Figures 8, 9: BFS by one, two, three kernels")
    _legend(axis)


def _levels(axis, records):
    """Figure 10: microseconds of each level, by the share of the clock's cycles."""
    for record in (r for r in records if r.get("trace")):
        rows = np.array(record["trace"])
        cycles = np.maximum(rows[:, 3], 0)
        us = 1e3 * record["median_ms"] * cycles / max(cycles.sum(), 1)
        axis.plot(rows[:-1, 0], us[:-1], label=record["graph"], linewidth=0.8)
    axis.set(yscale="log", xlabel="level", ylabel="us", title="Figure 10: time of each level")
    if axis.lines:
        _legend(axis)


def _conversion(axis, costs, searches, products):
    """Figure 11: conversion beside one search and one cuSPARSE SpMV."""
    graphs = [r["graph"] for r in costs]
    bars = {
        "to Tiled": {r["graph"]: r["tiled_ms"] for r in costs},
        "to BitTiled": {r["graph"]: r["bittiled_ms"] for r in costs},
        "one BFS": _of(searches, "three kernels"),
        "one SpMV (cuSPARSE)": _of(products, "cuSPARSE"),
    }
    for k, (label, values) in enumerate(bars.items()):
        x = [i + 0.2 * k for i, g in enumerate(graphs) if g in values]
        axis.bar(x, [values[g] for g in graphs if g in values], 0.2, label=label)
    axis.set_xticks(np.arange(len(graphs)) + 0.3, graphs, rotation=40, ha="right", fontsize=7)
    axis.set(yscale="log", ylabel="ms", title="Figure 11: conversion from CSR")
    _legend(axis)


def _of(records, program):
    return {r["graph"]: r["median_ms"] for r in records if r["program"] == program}
