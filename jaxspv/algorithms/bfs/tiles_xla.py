"""TileBFS on the XLA backend: the three ways through a level on bitmask words, a device loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import batch_any
from ...formats import BitTiled
from ...formats.tiled.bit_tiled import Words
from ...formats.vector import compact
from ...ops.products.common.expand import edge_slots, select_runs

CHUNK = 1 << 10  # pairs of a vertex and a tile a step looks at

Stop = Callable[[Array, Array, Array], Any]


def tile_bfs_xla(
    A: BitTiled,
    source: Array,
    *,
    kernels: tuple[str, ...],
    push_csr_above: float,
    pull_below: float,
    stop: Stop | None = None,
) -> tuple[Array, Array]:
    """(levels int32[n], num_levels int32) along the entries (u, v) of A as edges u -> v.

    Args:
        A: n-by-n.
        source: int32; out of range: nothing is reached.
        kernels, push_csr_above, pull_below: the ways through a level and when each is taken, see
            `TileRule`.
        stop: `stop(level, levels, frontier_size)`, asked after every level, the source's first.
    """
    n = A.shape[0]
    dense, rare = push_csr_above * n, int(pull_below * n)
    start = jnp.arange(n, dtype=jnp.int32) == source
    levels = jnp.where(start, 0, -1).astype(jnp.int32)
    if n == 0:
        return levels, jnp.int32(0)
    count = jnp.sum(start, dtype=jnp.int32)

    def stopped(level, levels, count):
        return jnp.asarray(False) if stop is None else jnp.asarray(stop(level, levels, count))

    def level_(state):
        level, levels, frontier, count, seen, _ = state
        way = jnp.where(count >= dense, 1, 0) if "push_csr" in kernels else jnp.int32(0)
        if "pull_csc" in kernels:
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
