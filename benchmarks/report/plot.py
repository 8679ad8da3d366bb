"""Plots of results: `python -m benchmarks.report.plot FILE.json [FILE.json ...] OUT.png`."""

from __future__ import annotations

import json
import pathlib
import sys
from typing import Any

import numpy as np

from ..traversal.yang2015 import METHODS, SORTS
from . import plot_tiles
from .stored import of_run


def save(document: dict[str, Any], path: str | pathlib.Path) -> None:
    """One picture of a document's benchmarks: bars of times, or the figures of Yang 2015."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    names = list(dict.fromkeys(r["benchmark"] for r in document["records"]))
    tiles = any(n.startswith("tiles") for n in names)
    plain = [n for n in names if n != "yang2015" and not n.startswith("tiles")]
    panels = len(plain) + 2 * ("yang2015" in names) + plot_tiles.PANELS * tiles
    if not panels:
        return
    figure, axes = pyplot.subplots(panels, 1, figsize=(10, 5 * panels), squeeze=False)
    axes = list(axes.flat)
    for name in plain:
        _bars(axes.pop(0), name, [r for r in document["records"] if r["benchmark"] == name])
    if tiles:
        plot_tiles.draw(axes[: plot_tiles.PANELS], document["records"])
        axes = axes[plot_tiles.PANELS :]
    if axes:
        records = [r for r in document["records"] if r["benchmark"] == "yang2015"]
        _workload_distribution(axes[0], records)
        _time_against_edges(axes[1], records)
    figure.suptitle(of_run(document)["runs"][0]["device"], fontsize=10)
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _bars(axis, name, records):
    programs = list(dict.fromkeys(r["program"] for r in records))
    cases = list(dict.fromkeys(r.get("case", r["graph"]) for r in records))
    place = {case: k for k, case in enumerate(cases)}
    width = 0.8 / len(programs)
    for k, program in enumerate(programs):
        rows = [r for r in records if r["program"] == program]
        x = [place[r.get("case", r["graph"])] + k * width for r in rows]
        axis.bar(x, [r["median_ms"] for r in rows], width, label=program)
    axis.set(yscale="log", ylabel="ms (median)", title=name)
    axis.set_xticks(np.arange(len(cases)) + 0.4 - width / 2, cases, rotation=60, ha="right")
    axis.legend(fontsize=7)


def _workload_distribution(axis, records):
    """Figure 1: shares of common, sort and scatter in the three SpMSpV."""
    graphs = list(dict.fromkeys(r["graph"] for r in records if r["parts_ms"]))
    colours = {"common": "tab:blue", "sort": "tab:orange", "scatter": "tab:green"}
    for g, graph in enumerate(graphs):
        for m, method in enumerate(SORTS):
            parts = next(
                r["parts_ms"] for r in records if r["graph"] == graph and r["method"] == method
            )
            shares = np.maximum([parts[p] for p in colours], 0)
            ends = np.cumsum(shares) / max(shares.sum(), 1e-12)
            for part, start, end in zip(colours, [0, *ends], ends, strict=False):
                label = part if g == m == 0 else None
                axis.bar(g + 0.28 * m, end - start, 0.25, start, color=colours[part], label=label)
    axis.set_xticks(np.arange(len(graphs)) + 0.28, graphs, rotation=60, ha="right")
    axis.set(xlim=(-0.3, len(graphs) + 1), ylabel="share", title="Figure 1: no, radix, merge sort")
    axis.legend()


def _time_against_edges(axis, records):
    """Figure 2: time against edges traversed on the R-MAT series, a point a source."""
    for method, label in METHODS.items():
        points = [
            point
            for r in records
            if r["method"] == method and r["graph"].startswith("rmat")
            for point in r["points"]
        ]
        if points:
            axis.scatter(*zip(*points, strict=True), s=14, label=label, alpha=0.7)
    axis.set(
        xscale="log",
        yscale="log",
        xlabel="undirected edges traversed",
        ylabel="ms",
        title="Figure 2: BFS on the R-MAT series",
    )
    axis.legend()


if __name__ == "__main__":
    documents = [json.loads(pathlib.Path(name).read_text()) for name in sys.argv[1:-1]]
    save(documents[0] | {"records": sum((d["records"] for d in documents), [])}, sys.argv[-1])
