"""TileBFS: breadth-first levels over bitmask tiles, the whole search in one launch.

Three level kernels (Ji et al., "TileSpMSpV", ICPP 2022, section 3.4), all in `tile_levels.py`:
Push-CSC goes from the vertices of the frontier to the tiles of their rows and claims whole words of
targets by an atomic OR; Push-CSR goes over all tiles that have unvisited vertices and intersects
them with the frontier words; Pull-CSC goes from each unvisited vertex along its tiles and stops at
the first hit. The paper's rule chooses: Pull-CSC when few vertices are unvisited, else Push-CSR
when the frontier holds at least `push_csr_above` of the vertices, else Push-CSC. The entries of the
remainder are pushed edge by edge in the same level.

Traffic of a Push-CSC level: n / 8 bytes of frontier bits, then 8 bytes and one test for each pair
of a frontier vertex and a tile of its row, an atomic for each word with new vertices. Of a Push-CSR
level: 4 bytes for each tile with unvisited vertices, and the tile's words (512 bytes at nt = 64)
if its frontier words are not all zero. One grid barrier a level.

Measured (H200): 4.4 us a level with Push-CSC, 5.6 with Push-CSR (FEM-like, 388 x 388 x 6), of which
the barrier with its counters is 1.5 us; a lane has four tests, then four atomics, in flight (with
one pair after the other: 16 us). The limit is this chain of accesses, not bandwidth.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..frontier import Rotation
from ..simt.launch import launch
from ..simt.primitives import Simt
from ..simt.typed import Value
from .problem import Targets
from .tile_levels import LISTED, Level

SLOT = 40  # control words 40..43, in rotation: vertices found
TRACE_WORDS = 4


class Side(NamedTuple):
    """One axis of a bit-tiled matrix: the arrays of jaxspv's `Words`."""

    tile_ptr: jax.Array
    tile_minor: jax.Array
    words: jax.Array
    rest_ptr: jax.Array
    rest_minor: jax.Array


class Search(NamedTuple):
    """What is known while a search is traced; `tile_bfs` describes the fields."""

    n: int
    nt: int
    rule: Any
    stop: Callable[..., Any] | None = None
    trace: int = 0


class Problem(NamedTuple):
    """A search with its sizes."""

    search: Search
    n: int
    nt: int
    each: int  # words of a line of a tile
    tiles: int  # tiles of a side of the matrix
    words: int  # of a bitmap
    dense: int  # vertices from which a frontier is dense
    few: int  # so few unvisited vertices are pulled
    rest: int  # entries of the remainder
    targets: int


def tile_bfs(
    out: Side, inn: Side, source: jax.Array, search: Search, *, targets: jax.Array | None = None
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(levels int32[n], num_levels int32, status int32, trace int32[trace, 4]) from `source`.

    out: the tiles by row, edge u -> v being entry (u, v); inn: by column. search: nt is 32 or 64;
    rule: which way a level goes, by kernels (the ways that may be taken, "push_csc" among them),
    push_csr_above (a frontier of this share of the vertices or more is dense) and pull_below (if
    less than this share is unvisited, the level is pulled). targets, stop: as in `bfs`. trace:
    (level, vertices, kernel, clock) is returned for the first so many levels, -1 for levels that
    the search does not have.
    """
    n, nt, rule, _, trace = search
    if nt not in (32, 64):
        raise ValueError(f"`nt` must be 32 or 64; got {nt}.")
    targets = jnp.zeros(0, jnp.int32) if targets is None else jnp.atleast_1d(targets)
    tiles = -(-n // nt)
    c = Problem(
        search,
        n,
        nt,
        each=nt // 32,
        tiles=tiles,
        words=tiles * nt // 32,
        dense=math.ceil(rule.push_csr_above * n),
        few=int(rule.pull_below * n),
        rest=out.rest_minor.shape[0],
        targets=targets.shape[0],
    )
    operands = {
        "source": jnp.atleast_1d(source).astype(jnp.int32),
        "targets": targets.astype(jnp.int32),
        "out_ptr": out.tile_ptr,
        "out_minor": out.tile_minor,
        "out_words": out.words,
        "rest_ptr": out.rest_ptr,
        "rest_minor": out.rest_minor.astype(jnp.int32),
        "in_ptr": inn.tile_ptr,
        "in_minor": inn.tile_minor,
        "in_words": inn.words,
    }
    outputs = {
        "levels": n,
        "visited": c.words,
        "front": 3 * c.words,
        "trace": max(TRACE_WORDS * trace, 1),
        "num_levels": (),
        "status": (),
    }

    def kernel(k, g):
        g.sums, g.listed = k.shared(4), k.shared(LISTED + 1)
        levels, ok = _search(k, c, g)
        k.results(g, num_levels=levels)
        return ok

    found = launch(kernel, operands, outputs, shared_words=LISTED + 8, name="tile_bfs")
    trace_words = found["trace"][: TRACE_WORDS * trace].reshape(trace, TRACE_WORDS)
    return found["levels"], found["num_levels"], found["status"], trace_words


def _search(k: Simt, c: Problem, g: Any) -> tuple[Value, Value]:
    """The level loop; (number of levels, ok)."""
    source = k.load(g.source, 0)
    valid = k.below(source, c.n)
    _initialise(k, c, g, source, valid)
    (ok,) = k.grid_barrier(g.control)
    targets = Targets(k, c, g, c.search.stop, lambda t: (k.shr(t, 5), k.bit(t)))
    one, groups = k.cast(valid, "i32"), Rotation(k, g.control, SLOT, 1)
    # level, vertices of the frontier, vertices seen, current bitmap, done, ok
    first = (0, one, one, 0, targets.stopped(k.const(0), one, g.visited), ok)

    def going_on(level, count, seen, cur, done, ok):
        return (count > 0) & (done == 0) & (ok == 1)

    def step(level, count, seen, cur, done, ok):
        slot = groups.group(level)
        groups.clear(level)
        nxt = k.where(cur == 2, 0, cur + 1)
        last = k.where(cur == 0, 2, cur - 1)
        k.spread(c.words, lambda i: k.store(g.front, last * c.words + i, 0))
        chosen = _choose(k, c, count, seen)
        _trace(k, c, g, level, count, chosen)
        now = Level(k, c, g, level, cur, nxt)
        now.frontier(chosen == 0)
        if "push_csr" in c.search.rule.kernels:
            k.if_(chosen == 1, lambda: now.unvisited(now.push_csr))
        if "pull_csc" in c.search.rule.kernels:
            k.if_(chosen == 2, lambda: now.unvisited(now.pull_csc))
        ok, count = k.grid_barrier(g.control, [(g.control, slot)], [(g.sums, 0, g.control, slot)])
        done = targets.stopped(level + 1, count, g.visited)
        return level + 1, count, seen + count, nxt, done, ok

    level, count, _, cur, _, ok = k.while_(going_on, step, *first)
    # a search that was stopped has its last frontier without levels
    k.if_(count > 0, lambda: _last(k, c, g, level, cur))
    return level + k.cast(count > 0, "i32"), ok


def _initialise(k, c, g, source, valid):
    def bits(i):
        word = k.where(valid & (i == k.shr(source, 5)), k.bit(source), 0)
        k.store(g.visited, i, word)
        k.store(g.front, i, word)
        k.store(g.front, c.words + i, 0)

    k.spread(c.words, bits)
    k.spread(c.n, lambda i: k.store(g.levels, i, -1))
    k.store(g.sums, k.thread, 0, mask=k.thread < 4)


def _choose(k, c, count, seen):
    """0 Push-CSC, 1 Push-CSR, 2 Pull-CSC."""
    chosen = k.const(0)
    if "push_csr" in c.search.rule.kernels:
        chosen = k.where(count >= c.dense, 1, chosen)
    if "pull_csc" in c.search.rule.kernels:
        chosen = k.where(c.n - seen < c.few, 2, chosen)
    return chosen


def _last(k, c, g, level, cur):
    def word(i):
        bits = k.load(g.front, cur * c.words + i, cache="fresh")
        k.each_bit(bits, lambda j: k.store(g.levels, i * 32 + j, level))

    k.spread(c.words, word)


def _trace(k, c, g, level, count, chosen):
    if not c.search.trace:
        return
    mine = (k.cta == 0) & (k.thread == 0)
    for j, x in enumerate((level, count, chosen, k.clock())):
        k.store(g.trace, TRACE_WORDS * level + j, x, mask=mine & (level < c.search.trace))
    first, size = TRACE_WORDS + k.thread, TRACE_WORDS * c.search.trace
    rest = lambda: k.for_(first, size, k.threads, lambda i: k.store(g.trace, i, -1))  # noqa: E731
    k.if_((k.cta == 0) & (level == 0), rest)
