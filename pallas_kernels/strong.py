"""Strongly connected components in one launch: signatures that spread both ways at once.

Method: first the component of a pivot, all that it reaches and that reaches it (Fleischer,
Hendrickson, Pinar 2000). Then, for all components at once, every vertex takes the least vertex that
reaches it and the least that it reaches, in an order without meaning (Alabandi, Sands, Biros,
Burtscher 2023): where both are the same that vertex names the component of all who have it so. The
others go on by themselves, along the edges between vertices whose two vertices are the same, as all
of one component have the same. What changed is listed and pushed along its edges in rounds between
grid barriers; while few are listed one CTA does the rounds alone.

Cost: a gather of 16 bytes for each edge, both ways, of each vertex in each round in which what it
pushes has changed, expected O(log n) rounds; a barrier a round; a pass over the vertices for each
generation of components, of which a graph has few. Each ends at least one component, so that the
launch ends.

Measured (H200): cnr-2000 4.2 ms (UNROLL 1: 6.0, 2: 4.8; 250 rounds, 22 million edges), cit-HepPh
0.70, wiki-Vote 0.21.
"""

import types

import jax
import jax.numpy as jnp

from .rows.dealt import LongRows, append, deal_rows
from .rows.flatten import flatten
from .simt.device import resident_ctas
from .simt.launch import launch

UNROLL = 4
SOLO = 128  # listed up to which one CTA goes on alone
# Control words, four in turns, one for each part between two barriers: entries listed. Then the
# part that the CTA alone came to, and what was listed.
WORDS = 40
THERE, LISTED = WORDS + 4, WORDS + 5
# The order of vertices: (v + 1) MIX mod 2^31, 0 for the pivot, FAR for none.
MIX, BACK, FAR = 0x1E3779B1, pow(0x1E3779B1, -1, 2**31), 2**31 - 1
DONE = -1  # the key of a vertex whose component is known
KEY, DOWN, UP = range(3)
STATE = 4  # words of a vertex, the last unused


def strong(
    indptr: jax.Array,
    indices: jax.Array,
    pivot: jax.Array,
    *,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array]:
    """(labels int32[n], status int32): the same vertex for all of a strong component, n for all of
    that of the pivot.

    indptr int32[2 n + 2], indices: where each of n rows of out-edges begins in `indices`, and where
    the last ends; then the same of n rows of in-edges, which follow; in any order. pivot: int32,
    best a vertex of the largest component. status 0: right; otherwise a grid barrier expired.
    """
    n = indptr.shape[0] // 2 - 1
    if n == 0:
        return jnp.zeros(0, jnp.int32), jnp.int32(0)
    c = types.SimpleNamespace(n=n)

    def kernel(k, m):
        ok = _body(k, c, m, m.control)
        k.tell(m.status, ok)

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "pivot": pivot.reshape(1)},
        # a queue of both ways of every vertex for each of two parts
        {"labels": n, "state": STATE * n, "marks": 2 * n, "queue": 4 * n, "status": 1},
        ctas=ctas or resident_ctas(),
        threads=threads,
        shared_words=LongRows.shared_words(2) + 4,
        name="strong",
        interpret=interpret,
    )
    return out["labels"], out["status"][0]


def _body(k, c, m, control):
    c.long = LongRows(k, payload=2)
    c.split = k.load(m.indptr, c.n + 1, cache="nc")  # where the in-edges begin
    _plant(k, c, m)
    (ok,) = k.grid_barrier(control)

    def round_(ok, part, count):
        few = count <= SOLO
        k.if_(few & (k.cta == 0), lambda: _alone(k, c, m, control, part, count))

        def together():
            _clear(k, control, part)
            _push(k, c, m, control, part, count)

        k.if_(~few, together)
        words = [(control, word) for word in (_word(part), THERE, LISTED)]
        ok, listed, there, left = k.grid_barrier(control, words)
        return ok, k.where(few, there, part + 1), k.where(few, left, listed)

    def generation(*state):
        going = lambda ok, part, count: (ok != 0) & (count > 0)  # noqa: E731
        ok, part, _ = k.while_(going, round_, *state)
        _clear(k, control, part)
        _name(k, c, m, control, part)
        ok, listed = k.grid_barrier(control, [(control, _word(part))])
        return ok, part + 1, listed

    return k.while_(
        lambda ok, part, count: (ok != 0) & (count > 0), generation, ok, k.const(1), k.const(2)
    )[0]


def _alone(k, c, m, control, part, count):
    """Rounds of this CTA while few are listed; the next part is not alone, or names components, so
    that all have read THERE and LISTED before they are written again.
    """

    def round_(part, count):
        _clear(k, control, part)
        _push(k, c, m, control, part, count, alone=True)
        k.sync()
        return part + 1, k.load(control, _word(part), cache="fresh")

    going = lambda part, count: (count > 0) & (count <= SOLO)  # noqa: E731
    part, count = k.while_(going, round_, part, count)
    for word, value in ((THERE, part), (LISTED, count)):
        k.store(control, word, value, mask=k.thread == 0)


def _word(part):
    return WORDS + (part & 3)


def _clear(k, control, part):
    """The word of the next part, which nobody reads or writes before the next barrier."""
    k.store(control, _word(part + 1), 0, mask=(k.cta == 0) & (k.thread == 0))


def _plant(k, c, m):
    """All vertices in one class, the pivot listed both ways."""
    n = c.n
    pivot = k.load(m.pivot, 0, cache="nc")

    def one(v):
        start = k.where(v == pivot, 0, FAR)
        k.store_vec(m.state, v * STATE, (k.const(0), start, start, k.const(0)))
        for way in (0, n):
            k.store(m.marks, v + way, 0)

    k.spread(n, one)
    first = (k.cta == 0) & (k.thread < 2)
    k.store(m.queue, 2 * n + k.thread, pivot + k.thread * n, mask=first)


def _push(k, c, m, control, part, count, alone=False):
    """What the vertices listed know goes along their edges; whose own falls by it is listed."""
    n, queue = c.n, (part & 1) * (2 * c.n)
    behind = 2 * n - queue

    def row(i, there):
        r = k.load(m.queue, queue + i, mask=there, cache="fresh")
        up = r >= n
        begin, end = k.row(m.indptr, k.where(up, r + 1, r), there)
        v = k.where(up, r - n, r)
        words = k.load_vec(m.state, v * STATE, STATE, mask=there, cache="fresh")
        value = k.where(up, words[UP], words[DOWN])
        return begin, k.where(there, end - begin, 0), value, words[KEY]

    def edges(places, payloads, there):
        heads = k.loads(m.indices, places, there, cache="nc")
        found = [
            k.load_vec(m.state, v * STATE, STATE, mask=mask, other=DONE, cache="fresh")
            for v, mask in zip(heads, there, strict=True)
        ]
        ups = [place >= c.split for place in places]
        better = []
        for words, (value, key), up in zip(found, payloads, ups, strict=True):
            # a masked load gives DONE, which is nobody's key
            better.append((words[KEY] == key) & (value < k.where(up, words[UP], words[DOWN])))
        at = [v * STATE + k.where(up, UP, DOWN) for v, up in zip(heads, ups, strict=True)]
        values = [value for value, _ in payloads]
        before = k.atomics("min", m.state, at, values, better)
        for v, up, old, value, mask in zip(heads, ups, before, values, better, strict=True):
            fell = mask & (old > value)
            k.if_(k.any(fell), lambda v=v, up=up, fell=fell: note(k.where(up, v + n, v), fell))

    def note(r, fell):
        seen = k.atomic("exch", m.marks, r, part + 1, mask=fell)
        append(k, m.queue, behind, control, _word(part), r, fell & (seen != part + 1))

    def listed(begin, size, *payload):
        size = c.long.without(begin, size, *payload)
        flatten(k, begin, size, payload, edges, unroll=UNROLL)

    deal_rows(k, count, row, listed, alone)
    c.long.run(edges, UNROLL)


def _name(k, c, m, control, part):
    """Those with the same vertex both ways are named by it; the others begin again, in classes."""
    n, behind = c.n, 2 * c.n - (part & 1) * (2 * c.n)

    def some(v):
        there = v < n
        words = k.load_vec(m.state, v * STATE, STATE, mask=there, other=DONE, cache="fresh")
        key, down, up = words[KEY], words[DOWN], words[UP]
        live = key != DONE
        done = live & (down == up) & (down != FAR)
        k.store(m.labels, v, k.where(down == 0, n, ((down * BACK) & FAR) - 1), mask=done)
        left = live & ~done
        # Two classes of one number lose nothing but time.
        mixed = (down * -1640531527) ^ (up * -2048144789)
        key = k.where(done, DONE, k.shr(mixed ^ k.shr(mixed, 15), 1))
        own = ((v + 1) * MIX) & FAR
        k.store_vec(m.state, v * STATE, (key, own, own, k.const(0)), mask=live)
        for way in (0, n):
            append(k, m.queue, behind, control, _word(part), v + way, left)

    k.spread_warps(n, some)
