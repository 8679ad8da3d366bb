"""Times of other GPU programs on one NVIDIA H200 (November 2026), to stand beside ours there.

Milliseconds, median of 10, graph on the device, preprocessing left out, each program at its best
setting; an absolute time on this GPU only. BLEST (2026), doubleGraph (2026), ADDS (asynchronous
delta-stepping) and GSWITCH; the fastest of those that ran.
"""

from __future__ import annotations

from typing import Any

DEVICE = "H200"
BEST_MS = {
    "bfs": {
        "rmat18": ("doubleGraph", 0.218),
        "rmat21": ("BLEST", 0.233),
        "delaunay21": ("BLEST", 3.54),
        "grid1000": ("BLEST", 10.46),
        "coAuthorsDBLP": ("BLEST", 0.278),
        "luxembourg_osm": ("BLEST", 4.61),
        "moscow-roads": ("BLEST", 3.66),
    },
    "sssp": {
        "rmat18": ("GSWITCH", 1.47),
        "rmat21": ("GSWITCH", 4.62),
        "delaunay21": ("ADDS", 7.58),
        "grid1000": ("ADDS", 13.8),
        "coAuthorsDBLP": ("doubleGraph", 1.30),
        "luxembourg_osm": ("ADDS", 6.24),
        "moscow-roads": ("ADDS", 4.56),
    },
    "pagerank": {
        "rmat18": ("doubleGraph", 26.1),
        "rmat21": ("doubleGraph", 126.0),
        "delaunay21": ("doubleGraph", 3.33),
        "grid1000": ("doubleGraph", 2.05),
        "coAuthorsDBLP": ("doubleGraph", 1.76),
        "luxembourg_osm": ("doubleGraph", 1.72),
        "moscow-roads": ("doubleGraph", 2.05),
    },
}


def beside(benchmark: str, environment: dict[str, Any]) -> dict[str, tuple[str, float]]:
    """Graph -> (program, ms) where the device is the one these were measured on."""
    return BEST_MS.get(benchmark, {}) if DEVICE in environment["device"] else {}
