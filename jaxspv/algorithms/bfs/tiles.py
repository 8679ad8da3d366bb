"""TileBFS behind `bfs`: the rule that picks push or pull, the layout, the kernel."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp

from ..._core.operation import Operation, typed
from ..._core.pytree import pytree_dataclass, static
from ...formats import BitTiled
from ...formats.choose import choose_format
from ...graph import Graph, as_graph, register_layout
from .xla import parents_by_entries

KERNELS = ("push_csc", "push_csr", "pull_csc")


@dataclasses.dataclass(frozen=True)
class TileRule:
    """When a level of TileBFS goes which way, on a GPU: without its kernel rows are searched.

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


FORMATS = ("auto", "csr", "bittiled")


@pytree_dataclass
class TileLayout:
    """The layout "bittiled" of `prepare`: the tiles, and whether they are dense enough to pay."""

    tiles: BitTiled
    faster: bool = static()


@register_layout("bittiled")
def _layout(graph: Graph) -> TileLayout:
    tiles = BitTiled.from_csr(graph.out, symmetric=graph.symmetric)
    return TileLayout(tiles, choose_format(graph.out, "bfs").format == "bittiled")


def tiles_for(G: Any, format: str) -> tuple[BitTiled | None, Graph | None]:
    """The bit tiles that `bfs` shall search, or None; its rows, None where there are only tiles.

    Raises:
        ValueError: `format` is unknown, or G is not square.
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}; got {format!r}.")
    if format == "csr":
        return None, None
    if isinstance(G, BitTiled):
        if G.shape[0] != G.shape[1]:
            raise ValueError(f"a graph needs a square matrix; got shape {G.shape}.")
        return G, None
    layout = G.layouts.get("bittiled") if isinstance(G, Graph) else None
    if layout is not None:
        return layout.tiles if format == "bittiled" or layout.faster else None, G
    if format == "auto":
        return None, None
    graph = as_graph(G, "bfs")
    return BitTiled.from_csr(graph.out, symmetric=True if graph.symmetric else None), graph


def _types(A, rows, source, until, *, parents, bounds, rule):
    levels = typed(jnp.int32, A.shape[0])
    return levels, levels if parents else None, typed(jnp.int32), typed(jnp.int32)


op = Operation("bfs", types=_types)


def _no_kernel(A, rows, source, until, *, bounds, **_) -> str | None:
    if A.shape[0] == 0:
        return "there is nothing to traverse"
    if A.nt == 16:
        return "its words are those of tiles of 32 or 64"
    if None in bounds:
        return "`max_iterations` of a traced number: the kernel wants a Python integer"
    return None


@op.register("tile", backend="pallas", refuse=_no_kernel, batched="map")
def _kernel(A: BitTiled, rows, source, until, *, parents, bounds, rule):
    """TileBFS in one launch; parents are found from the levels by a pass over all entries."""
    from pallas_kernels.bfs.tile import Search, Side, tile_bfs

    stop, targets = (None, None) if until is None else until.in_kernel(bounds)
    out, inn = (
        Side(s.tile_ptr, s.tile_minor, s.words, s.rest_ptr, s.rest_minor)
        for s in (A.by_row, A.by_column)
    )
    levels, num_levels, status, _ = tile_bfs(
        out, inn, source, Search(A.shape[0], A.nt, rule, stop), targets=targets
    )
    tree = parents_by_entries(*A.rowcol(), source, levels) if parents else None
    return levels, tree, num_levels, status
