"""TileBFS by one, two and three kernels, against the search over rows, and the times of levels.

The experiments of Ji et al., "TileSpMSpV", ICPP 2022, sections 4.3 to 4.5 (Figures 8 to 10). Source
0; `rows` is the search over the prepared CSR, `auto` what `bfs` takes of a graph prepared for both.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp
from jaxspv.formats import BitTiled
from pallas_kernels.bfs.tile import Search, Side, tile_bfs

from ..harness import Candidate, measure
from ..options import Options
from ..products.tiles import matrix
from ..suite import Workload

WAYS = {
    "Push-CSC": jsp.TileRule(("push_csc",)),
    "Push-CSC, Push-CSR": jsp.TileRule(("push_csc", "push_csr")),
    "three kernels": jsp.TileRule(),
}
TRACED = ("fem-263-6", "fem-257-9-9-3", "fem-388-6", "band-500k")  # times per level, Figure 10
TRACE_LEVELS = 2048


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    A = matrix(workload)
    tiles = BitTiled.from_csr(A, symmetric=True)
    head = {"n": A.shape[0], "entries": int(A.count)}
    return [{**head, **r} for r in _searches(workload.name, A, tiles, options)]


def _searches(name: str, A: jsp.CSR, B: jsp.BitTiled, options: Options) -> list[dict[str, Any]]:
    graph = jsp.prepare(A, for_=("bfs",), symmetric=True)
    both = jsp.prepare(graph, for_=("bittiled",))
    check = _check_levels(A)
    ways: dict[str, tuple[Callable[..., Any], Any]] = {
        label: (functools.partial(jsp.bfs, rule=rule), B) for label, rule in WAYS.items()
    }
    ways["rows"] = (functools.partial(jsp.bfs, format="csr"), graph)
    ways["auto"] = (jsp.bfs, both)
    repeats = max(options.repeats, 1)
    found = [
        Candidate(
            label,
            functools.partial(_search_chain(run, repeats), G, jnp.int32(0)),
            check,
            repeats,
            notes={"chosen": str(jsp.explain("bfs", G)).split("\n")[0]},
        )
        for label, (run, G) in ways.items()
    ]
    levels = np.asarray(found[0].call())
    records = measure(found, **options.timing())
    for record in records:
        record |= {
            "benchmark": "tiles: BFS",
            "case": name,
            "levels": int(levels.max()) + 1,
            "reached": int((levels >= 0).sum()),
        }
    if name in TRACED and jax.default_backend() == "gpu":
        records[2]["trace"] = _trace(B)
    return records


def _search_chain(run, repeats):
    inner = jax.jit(lambda G, source: run(G, source, parents=False).levels)

    def program(G, source):
        levels = inner(G, source)
        for _ in range(repeats - 1):
            source = source + levels[source]  # of level 0
            levels = inner(G, source)
        return levels

    return jax.jit(program)


def _check_levels(A: jsp.CSR):
    """Levels from vertex 0 by their equation: an edge spans one level at most, and each vertex but
    the source has a neighbour one level nearer (the matrix is symmetric)."""

    @jax.jit
    def wrong(A, levels):
        row, col = A.rowcol()
        n = A.shape[0]
        valid = row < n
        a, b = (levels.at[v].get(mode="fill", fill_value=-1) for v in (row, col))
        apart = valid & (((a < 0) != (b < 0)) | (jnp.abs(a - b) > 1))
        nearer = valid & (a >= 0) & (b == a - 1)
        parent = jnp.zeros(n, bool).at[jnp.where(nearer, row, n)].set(True, mode="drop")
        return (
            jnp.sum(apart)
            + jnp.sum((levels > 0) & ~parent)
            + jnp.sum((levels == 0) != (jnp.arange(n) == 0))
        )

    def check(levels):
        assert int(wrong(A, levels)) == 0, "these are no levels from vertex 0."

    return check


def _trace(B: jsp.BitTiled) -> list[list[int]]:
    """[level, vertices, way, clock cycles] of each level of the three kernels."""
    side = Side(*(getattr(B.by_row, field) for field in Side._fields))
    asked = Search(B.shape[0], B.nt, jsp.TileRule(), trace=TRACE_LEVELS)
    search = jax.jit(lambda s: tile_bfs(s, s, jnp.int32(0), asked)[3])
    jax.block_until_ready(search(side))
    rows = np.asarray(search(side))
    rows = rows[rows[:, 0] >= 0]
    clock = rows[:, 3].astype(np.uint32)
    rows[:, 3] = np.diff(clock, append=clock[-1:]).astype(np.int32)
    return rows.tolist()
