"""Tables of `python -m benchmarks tiles` beyond times: summaries by density, conversion, memory."""

from __future__ import annotations

import math
from typing import Any

from ..harness import geometric_mean

Record = dict[str, Any]
METHODS = ("TileSpMSpV", "columns", "XLA columns", "tiled SpMV")  # that `auto` may take
OVER = "Speed over cuSPARSE CSR, geometric means (1 is equal), "
CLOCKS = {
    "median_ms": OVER + "by the host's clock: a call of several products over their number",
    "step_ms": OVER + "of one more product inside a program (start to start, by a profile)",
    "device_ms": OVER + "of the kernels alone (by a profile)",
}
LARGE = 20_000_000  # entries from which a matrix counts in the summary
COLUMNS = (
    "nt",
    "tiles",
    "remainder",
    "tiled_bytes_over_csr",
    "tiled_ms",
    "tiled_device_ms",
    "tiled_over_spmv",
    "bit_nt",
    "bit_tiles",
    "bit_remainder",
    "bittiled_bytes_over_csr",
    "bittiled_ms",
    "bittiled_device_ms",
    "bittiled_over_spmv",
    "share",
    "per_tile",
    "format",
)


def summary(records: list[Record], key: str = "median_ms") -> tuple[list[str], list[list[Any]]]:
    """Speed over cuSPARSE CSR by density, and of `auto` over the best single method.

    `key` may be "step_ms", a product inside a program without what a call costs once, or
    "device_ms", its kernel alone, where a profile has them.
    """
    records = [r for r in records if key in r]
    programs = list(dict.fromkeys(r["program"] for r in records))
    by: dict[tuple[float, str], dict[str, float]] = {}
    large = {}
    for r in records:
        by.setdefault((r["density"], r["graph"]), {})[r["program"]] = r[key]
        large[r["graph"]] = r["entries"] >= LARGE
    rows = []
    for density in sorted({d for d, _ in by}, reverse=True):
        for label, kept in (("20M entries and more", [True]), ("all", [True, False])):
            cases = [v for (d, g), v in by.items() if d == density and large[g] in kept]
            means = [
                geometric_mean(v["cuSPARSE"] / v[p] for v in cases if {p, "cuSPARSE"} <= {*v})
                for p in programs
            ]
            single = [
                min(t for p, t in v.items() if p in METHODS) / v["auto"]
                for v in cases
                if "auto" in v and set(v) & set(METHODS)
            ]
            rows.append([f"{density:g}, {label}", *means, min(single, default=math.nan)])
    return ["density", *programs, "auto: least share of the best"], rows


def conversion(records: list[Record]) -> tuple[list[str], list[list[Any]]]:
    """Tiles, bytes over those of the CSR (for bits: of its structure), milliseconds, the choice."""
    return ["graph", "entries", *COLUMNS], [
        [r["graph"], r["entries"], *(r.get(c) for c in COLUMNS)] for r in records
    ]
