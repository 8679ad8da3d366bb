"""TileBFS behind `bfs`: the rule that picks push or pull, the layout, both backends."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from pallas_kernels.bfs.tile import KERNELS, Search, Side, tile_bfs

from ..._core.compat import kernels_refused
from ..._core.operation import Operation, typed
from ..._core.pytree import pytree_dataclass, static
from ...formats import BitTiled
from ...formats.choose import choose_format
from ...graph import Graph, as_graph, register_layout
from .tiles_xla import tile_bfs_xla
from .xla import parents_by_entries

FORMATS = ("auto", "csr", "bittiled")


@dataclasses.dataclass(frozen=True)
class TileRule:
    """When a level of TileBFS goes which way.

    Pull-CSC where fewer than `pull_below` of the vertices are unvisited, else Push-CSR where the
    frontier holds at least `push_csr_above` of them, else Push-CSC.

    Attributes:
        kernels: the ways that may be taken; "push_csc" is always among them.
        push_csr_above: share of the vertices; 0.01 is the paper's.
        pull_below: share of the vertices.

    Source: Ji et al., "TileSpMSpV", ICPP 2022, section 3.4.

    >>> TileRule(kernels=("push_csc", "pull_csc")).pull_below
    0.01
    """

    kernels: tuple[str, ...] = KERNELS
    push_csr_above: float = 0.01
    pull_below: float = 0.01

    def __post_init__(self):
        if "push_csc" not in self.kernels or set(self.kernels) - set(KERNELS):
            raise ValueError(
                f"`kernels` must be among {KERNELS}, with push_csc; got {self.kernels}."
            )


@pytree_dataclass
class TileLayout:
    """The layout "bittiled" of `prepare`: the tiles, and whether they are dense enough to pay."""

    tiles: BitTiled
    format: str = static()
    reason: str = static()


@register_layout("bittiled")
def _layout(graph: Graph) -> TileLayout:
    tiles = BitTiled.from_csr(graph.out, symmetric=graph.symmetric)
    choice = choose_format(graph.out, "bfs")
    return TileLayout(tiles, choice.format, choice.reason)


def tiles_for(G: Any, format: str) -> tuple[BitTiled | None, str]:
    """(the bit tiles that `bfs` shall search, or None for rows; why).

    Raises:
        ValueError: `format` is unknown, or G is not square.
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}; got {format!r}.")
    if format == "csr":
        return None, "format='csr' was asked for"
    if isinstance(G, BitTiled):
        if G.shape[0] != G.shape[1]:
            raise ValueError(f"a graph needs a square matrix; got shape {G.shape}.")
        return G, "the matrix is a BitTiled"
    layout = G.layouts.get("bittiled") if isinstance(G, Graph) else None
    if format == "bittiled":
        graph = as_graph(G, "bfs")
        tiles = (
            layout.tiles
            if layout is not None
            else BitTiled.from_csr(graph.out, symmetric=True if graph.symmetric else None)
        )
        return tiles, "format='bittiled' was asked for"
    if layout is None:
        return None, "there are no bit tiles: `prepare(A, for_=('bfs', 'bittiled'))` makes them"
    if layout.format == "bittiled":
        return layout.tiles, f"tiles are faster: {layout.reason}"
    return None, f"rows are faster: {layout.reason}"


def _types(A, source, until, *, parents, bounds, rule):
    levels = typed(jnp.int32, A.shape[0])
    return levels, levels if parents else None, typed(jnp.int32), typed(jnp.int32)


op = Operation("bfs", types=_types)


def _no_kernel(A, source, until, *, bounds, **_) -> str | None:
    if reason := kernels_refused():
        return reason
    if A.shape[0] == 0:
        return "there is nothing to traverse"
    if A.nt == 16:
        return "its words are those of tiles of 32 or 64"
    if None in bounds:
        return "`max_iterations` of a traced number: the kernel wants a Python integer"
    return None


@op.register("tile", backend="pallas", refuse=_no_kernel, batched="map")
def _kernel(A, source, until, *, parents, bounds, rule):
    """TileBFS in one launch; parents are found from the levels by a pass over all entries."""
    stop, targets = (None, None) if until is None else until.in_kernel(bounds)
    out, inn = (
        Side(s.tile_ptr, s.tile_minor, s.words, s.rest_ptr, s.rest_minor)
        for s in (A.by_row, A.by_column)
    )
    levels, num_levels, status, _ = tile_bfs(
        out,
        inn,
        source,
        Search(A.shape[0], A.nt, rule.kernels, rule.push_csr_above, rule.pull_below, stop),
        targets=targets,
    )
    return levels, _tree(A, source, levels) if parents else None, num_levels, status


@op.register("tile", batched="map")
def _xla(A, source, until, *, parents, bounds, rule):
    """TileBFS as a device loop over the words."""
    del bounds  # the same numbers are leaves of `until`

    def stop(level, levels, frontier_size):
        reached = until.found_in(levels)
        return until.holds(iteration=level, reached=reached, unchanged=frontier_size == 0)

    levels, num_levels = tile_bfs_xla(
        A,
        source,
        kernels=rule.kernels,
        push_csr_above=rule.push_csr_above,
        pull_below=rule.pull_below,
        stop=None if until is None else stop,
    )
    return levels, _tree(A, source, levels) if parents else None, num_levels, jnp.int32(0)


def _tree(A: BitTiled, source: Array, levels: Array) -> Array:
    return parents_by_entries(*A.rowcol(), source, levels)
