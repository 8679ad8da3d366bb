"""TileBFS behind `bfs`: the rule that picks push or pull, the layout, both backends."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import batch_any
from ..._core.operation import Operation, typed
from ..._core.pytree import pytree_dataclass, static
from ...formats import BitTiled
from ...formats.choose import choose_format
from ...formats.tiled.bit_tiled import Words
from ...formats.vector import compact
from ...graph import Graph, as_graph, register_layout
from ...ops.products.common.expand import edge_slots, select_runs
from ...until import Until
from .xla import Stop, parents_by_entries

KERNELS = ("push_csc", "push_csr", "pull_csc")
CHUNK = 1 << 10  # pairs of a vertex and a tile a step looks at


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


def stop_by(until: Until) -> Stop:
    """`stop` of a search that ends where a condition holds."""

    def stop(level, levels, frontier_size):
        reached = until.found_in(levels)
        return until.holds(iteration=level, reached=reached, unchanged=frontier_size == 0)

    return stop


def tile_bfs_xla(
    A: BitTiled, source: Array, rule: TileRule, stop: Stop | None = None
) -> tuple[Array, Array]:
    """(levels int32[n], num_levels int32) along the entries (u, v) of A as edges u -> v.

    Args:
        A: n-by-n.
        source: int32; out of range: nothing is reached.
        rule: which way a level goes.
        stop: `stop(level, levels, frontier_size)`, asked after every level, the source's first.
    """
    n = A.shape[0]
    dense, rare = rule.push_csr_above * n, int(rule.pull_below * n)
    start = jnp.arange(n, dtype=jnp.int32) == source
    levels = jnp.where(start, 0, -1).astype(jnp.int32)
    if n == 0:
        return levels, jnp.int32(0)
    count = jnp.sum(start, dtype=jnp.int32)

    def stopped(level, levels, count):
        return jnp.asarray(False) if stop is None else jnp.asarray(stop(level, levels, count))

    def level_(state):
        level, levels, frontier, count, seen, _ = state
        way = jnp.where(count >= dense, 1, 0) if "push_csr" in rule.kernels else jnp.int32(0)
        if "pull_csc" in rule.kernels:
            way = jnp.where(n - seen < rare, 2, way)
        ways = (_push_csc, _push_csr, _pull_csc)
        found = lax.switch(
            way, [lambda f, s, go=go: go(A, f, s) for go in ways], frontier, levels >= 0
        )
        found = _push_rest(A, frontier, found) & (levels < 0)
        levels = jnp.where(found, level + 1, levels)
        count = jnp.sum(found, dtype=jnp.int32)
        return level + 1, levels, found, count, seen + count, stopped(level + 1, levels, count)

    state = (jnp.int32(0), levels, start, count, count, stopped(jnp.int32(0), levels, count))
    level, levels, _, count, _, _ = lax.while_loop(
        lambda s: batch_any((s[3] > 0) & ~s[5]), level_, state
    )
    return levels, level + (count > 0).astype(jnp.int32)


def _tile_words(A: BitTiled, flags: Array) -> Array:
    """(tiles, nt / 32) words of (n,) flags."""
    nt, each = A.nt, max(A.nt // 32, 1)
    spread = jnp.pad(flags, (0, -flags.shape[0] % nt)).reshape(-1, each, nt // each)
    shift = jnp.arange(nt // each, dtype=jnp.uint32)
    return jnp.sum(spread.astype(jnp.uint32) << shift, axis=2, dtype=jnp.uint32)


def _bits(A: BitTiled, words: Array) -> Array:
    """(..., nt) flags of (..., nt / 32) words."""
    width = min(A.nt, 32)
    shift = jnp.arange(width, dtype=jnp.uint32)
    flags = (words[..., None] >> shift) & 1
    return (flags == 1).reshape(*words.shape[:-1], A.nt)


def _pairs(side: Words, A: BitTiled, vertices: Array, body):
    """body(carry, tile, line, valid) for chunks of the pairs of a vertex and a tile of its line."""
    places, count = compact(vertices, vertices.shape[0])
    padded = jnp.minimum(places // A.nt, max(side.tile_ptr.shape[0] - 2, 0))
    runs = select_runs(side.tile_ptr, padded, count)

    def loop(carry):
        def step(state):
            first, carry = state
            tile, owner, valid = edge_slots(runs, first, CHUNK)
            tile = jnp.clip(tile, 0, side.tile_minor.shape[0] - 1)
            return first + CHUNK, body(carry, tile, places[owner], valid)

        going = lambda s: batch_any(s[0] < runs.total)  # noqa: E731
        return lax.while_loop(going, step, (jnp.int32(0), carry))[1]

    return loop


def _push_csc(A: BitTiled, frontier: Array, seen: Array) -> Array:
    """Vector-driven: the words of the frontier's vertices, bit by bit."""
    n, side = A.shape[0], A.by_row
    inner = jnp.arange(A.nt, dtype=jnp.int32)

    def claim(found, tile, vertex, valid):
        targets = _bits(A, side.words[tile, vertex % A.nt]) & valid[:, None]
        place = jnp.where(targets, side.tile_minor[tile][:, None] * A.nt + inner, n)
        return found.at[place].set(True, mode="drop")

    return _pairs(side, A, frontier, claim)(jnp.zeros(n, bool))


def _push_csr(A: BitTiled, frontier: Array, seen: Array) -> Array:
    """Matrix-driven: every row of every tile against the frontier's word for its columns."""
    n, side = A.shape[0], A.by_column
    words = _tile_words(A, frontier)
    tiles = side.tile_minor.shape[0]
    overlaps = words.at[side.tile_minor].get(mode="fill", fill_value=0)
    hit = jnp.any((side.words & overlaps[:, None, :]) != 0, axis=2)
    down = jnp.searchsorted(side.tile_ptr[1:], jnp.arange(tiles, dtype=jnp.int32), side="right")
    place = down[:, None].astype(jnp.int32) * A.nt + jnp.arange(A.nt, dtype=jnp.int32)
    place = jnp.where(hit, place, n)
    return jnp.zeros(n, bool).at[place].set(True, mode="drop")


def _pull_csc(A: BitTiled, frontier: Array, seen: Array) -> Array:
    """Unvisited-driven: the words of the unvisited vertices against the frontier words."""
    n, side = A.shape[0], A.by_column
    words = _tile_words(A, frontier)

    def look(found, tile, vertex, valid):
        overlaps = words.at[side.tile_minor[tile]].get(mode="fill", fill_value=0)
        hit = jnp.any((side.words[tile, vertex % A.nt] & overlaps) != 0, axis=1) & valid
        return found.at[jnp.where(hit, vertex, n)].set(True, mode="drop")

    return _pairs(side, A, ~seen, look)(jnp.zeros(n, bool))


def _push_rest(A: BitTiled, frontier: Array, found: Array) -> Array:
    """The edges of the remainder that leave the frontier."""
    side, n = A.by_row, A.shape[0]
    if side.rest_minor.shape[0] == 0:
        return found
    places, count = compact(frontier, n)
    runs = select_runs(side.rest_ptr, places, count)

    def step(state):
        first, found = state
        slot, _, valid = edge_slots(runs, first, CHUNK)
        target = jnp.where(valid, side.rest_minor.at[slot].get(mode="fill", fill_value=n), n)
        return first + CHUNK, found.at[target].set(True, mode="drop")

    going = lambda s: batch_any(s[0] < runs.total)  # noqa: E731
    return lax.while_loop(going, step, (jnp.int32(0), found))[1]


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


def tiles_for(G: Any, format: str) -> BitTiled | None:
    """The bit tiles that `bfs` shall search, or None for rows.

    Raises:
        ValueError: `format` is unknown, or G is not square.
    """
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {FORMATS}; got {format!r}.")
    if format == "csr":
        return None
    if isinstance(G, BitTiled):
        if G.shape[0] != G.shape[1]:
            raise ValueError(f"a graph needs a square matrix; got shape {G.shape}.")
        return G
    layout = G.layouts.get("bittiled") if isinstance(G, Graph) else None
    if layout is not None:
        return layout.tiles if format == "bittiled" or layout.faster else None
    if format == "auto":
        return None
    graph = as_graph(G, "bfs")
    return BitTiled.from_csr(graph.out, symmetric=True if graph.symmetric else None)


def _types(A, source, until, *, parents, bounds, rule):
    levels = typed(jnp.int32, A.shape[0])
    return levels, levels if parents else None, typed(jnp.int32), typed(jnp.int32)


op = Operation("bfs", types=_types)


def _no_kernel(A, source, until, *, bounds, **_) -> str | None:
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
    from pallas_kernels.bfs.tile import Search, Side, tile_bfs

    stop, targets = (None, None) if until is None else until.in_kernel(bounds)
    out, inn = (
        Side(s.tile_ptr, s.tile_minor, s.words, s.rest_ptr, s.rest_minor)
        for s in (A.by_row, A.by_column)
    )
    levels, num_levels, status, _ = tile_bfs(
        out, inn, source, Search(A.shape[0], A.nt, rule, stop), targets=targets
    )
    return levels, _tree(A, source, levels) if parents else None, num_levels, status


@op.register("tile", batched="map")
def _xla(A, source, until, *, parents, bounds, rule):
    """TileBFS as a device loop over the words."""
    del bounds  # the same numbers are leaves of `until`
    stop = None if until is None else stop_by(until)
    levels, num_levels = tile_bfs_xla(A, source, rule, stop)
    return levels, _tree(A, source, levels) if parents else None, num_levels, jnp.int32(0)


def _tree(A: BitTiled, source: Array, levels: Array) -> Array:
    return parents_by_entries(*A.rowcol(), source, levels)
