"""PageRank by power iteration, all iterations in one launch: pull, one grid barrier an iteration.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

Every row of A transposed gathers z = x / out-strength from one array of n words; its thread then
writes the new x and z and adds to two sums, the L1 change and the mass on vertices without
out-edges. z has two copies, read and written in turn: the one that is read is not written before
the next barrier, so its lines may stay in the L1 cache. Rows are balanced beforehand
(`pagerank_prepare.py`): short ones a thread each, long ones a warp each, the longest in segments of
equal size, whose last one to finish adds the partial sums in their order. The two sums of a program
go to its own words, and after the barrier every program adds those of all programs in the same
order: so all agree when to stop, and the result does not change from run to run.

Cost of an iteration: a gather and 4 bytes an entry (8 with weights), 28 bytes a row, one grid
barrier and two reductions over a program (2.5 us together).
"""

import functools
import operator
import types

import jax
import jax.numpy as jnp

from pallas_kernels._launch import launch, programs_for

BATCH, UNROLL = 2, 8  # rows of a thread, and entries of each, that are under way together
WARPS_MOST = 32


def pagerank(
    strength: jax.Array,
    personalization: jax.Array,
    damping: jax.Array,
    tol: jax.Array,
    max_iterations: jax.Array,
    min_iterations: jax.Array,
    *,
    prepared: dict[str, jax.Array],
    programs: int | None = None,
    threads: int = 1024,
    batch: int = BATCH,
    unroll: int = UNROLL,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(scores float32[n], iterations int32, change float32, status int32).

    strength float32[n]: row sums of A; personalization float32[n]: p, of sum 1, also the start.
    prepared: the in-edges by `prepare_pagerank`. Iterates while the L1 change of the last step is
    above tol or fewer than min_iterations were made, at most max_iterations times. change is that
    of the last step (inf before the first). status 0: right; otherwise a grid barrier expired.
    """
    n = strength.shape[0]
    names = ("numbers", "vertices", "entries", "items", "splits", "starts")
    weighted = "values" in prepared
    c = types.SimpleNamespace(
        n=n, items=prepared["items"].shape[0], positions=prepared["numbers"].shape[0],
        slices=prepared["starts"].shape[0] - 1, weighted=weighted,
    )  # fmt: skip
    c.base = c.positions - 32 * c.slices
    splits = prepared["splits"].shape[0]
    f32, i32 = jnp.float32, jnp.int32
    operands = {name: _filled(prepared[name]) for name in names}
    if weighted:
        operands["values"] = prepared["values"]
    operands |= {
        "strength": strength.astype(f32),
        "personalization": personalization.astype(f32),
        "knobs": jnp.stack([jnp.asarray(damping, f32), jnp.asarray(tol, f32)]),
        "limits": jnp.stack([jnp.asarray(max_iterations, i32), jnp.asarray(min_iterations, i32)]),
    }
    programs = programs or programs_for()
    outputs = {
        "scores": (n, f32), "summary": (2, i32), "change": (1, f32), "share": (2 * (n + 1), f32),
        "rank": (c.positions, f32), "inverse": (c.positions, f32), "teleport": (c.positions, f32),
        "sums": (4 * programs, f32), "partial": (max(1, c.items), f32),
        "arrived": (max(1, splits), i32),
    }  # fmt: skip
    keys = [*operands, *outputs, "control"]

    def kernel(k, *arrays):
        memory = types.SimpleNamespace(**dict(zip(keys, arrays, strict=True)))
        _Iteration(k, c, memory, batch, unroll).run(splits)

    shapes = [jax.ShapeDtypeStruct((size,), dtype) for size, dtype in outputs.values()]
    out = launch(kernel, list(operands.values()), shapes, programs=programs, threads=threads,
                 shared_words=2 * WARPS_MOST + 4, name="pagerank", interpret=interpret)  # fmt: skip
    scores, summary, change = out[:3]
    return scores, summary[0], change[0], summary[1]


def _filled(x):
    return x if x.size else jnp.zeros(4, x.dtype)


class _Iteration:
    """One launch: start, steps, result."""

    def __init__(self, k, c, memory, batch, unroll):
        self.k, self.c, self.m, self.batch, self.unroll = k, c, memory, batch, unroll
        self.within = k.shared(2 * WARPS_MOST + 4, "f32")  # sums of warps, then the two of all
        self.worker = k.warp * k.programs + k.program
        self.workers = k.threads // 32 * k.programs

    def run(self, splits):
        k, m = self.k, self.m
        damping, tol = (k.load(m.knobs, j) for j in range(2))
        most, least = (k.load(m.limits, j) for j in range(2))
        lost = self._start(splits)
        ok, _, lost = self._totals(0, k.const(0.0, "f32"), lost)

        def going(step, change, lost, ok):
            return ((change > tol) | (step < least)) & (step < most) & (ok == 1)

        def step(i, change, lost, ok):
            moved, lost = self._step(i & 1, damping, damping * lost + (1.0 - damping))
            ok, change, lost = self._totals((i + 1) & 1, moved, lost)
            return i + 1, change, lost, ok

        infinity = k.bits(k.const(0x7F800000), "f32")
        steps, change, _, ok = k.while_(going, step, 0, infinity, lost, ok)
        self._finish()
        mine = (k.program == 0) & (k.thread == 0)
        k.store(m.summary, 0, steps, mask=mine)
        k.store(m.summary, 1, 1 - ok, mask=mine)
        k.store(m.change, 0, change, mask=mine)

    def _start(self, splits):
        """x = p and z of it; returns the thread's part of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        k.spread(splits, lambda i: k.store(m.arrived, i, 0))
        for word in (c.n, 2 * c.n + 1):  # the share that padding entries gather
            k.store(m.share, word, 0.0, mask=(k.program == 0) & (k.thread == 0))

        def row(i, lost):
            vertex = k.load(m.vertices, i, cache="nc")
            there = vertex < c.n
            strength = k.load(m.strength, vertex, mask=there, cache="nc")
            rank = k.load(m.personalization, vertex, mask=there, cache="nc")
            weighs = strength > 0.0
            inverse = k.where(weighs, k.const(1.0, "f32") / k.where(weighs, strength, 1.0), 0.0)
            k.store(m.rank, i, rank)
            k.store(m.teleport, i, rank)
            k.store(m.inverse, i, inverse)
            number = k.load(m.numbers, i, cache="nc")
            k.store(m.share, number, rank * inverse, mask=there)
            return lost + k.where(weighs, 0.0, rank)

        return k.spread(c.positions, row, k.const(0.0, "f32"))[0]

    def _step(self, copy, damping, teleport):
        """New x and z; returns the thread's parts of the L1 change and of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        read, write = copy * (c.n + 1), (1 - copy) * (c.n + 1)
        zero = k.const(0.0, "f32")

        def settle(row, flow, mask, moved, lost):
            position, number, old, inverse, p = row
            new = damping * flow + teleport * p
            k.store(m.rank, position, new, mask=mask)
            k.store(m.share, write + number, new * inverse, mask=mask & (number < c.n))
            change = k.maximum(new - old, old - new)
            moved = moved + k.where(mask, change, 0.0)
            return moved, lost + k.where(mask & (inverse == 0.0), new, 0.0)

        def slices(s0, moved, lost):
            at = [s0 + b * self.workers for b in range(self.batch)]
            there = [s < c.slices for s in at]
            rows = [self._row(c.base + 32 * s + k.lane, t) for s, t in zip(at, there, strict=True)]
            spans = []
            for s, t in zip(at, there, strict=True):
                start, end = (k.load(m.starts, s + j, mask=t, cache="nc") for j in range(2))
                spans.append((start + k.lane, end))
            for row, flow, t in zip(rows, self._gather(read, spans), there, strict=True):
                moved, lost = settle(row, flow, t, moved, lost)
            return moved, lost

        def items(i0, moved, lost):
            at = [i0 + b * self.workers for b in range(self.batch)]
            there = [i < c.items for i in at]
            words = [
                k.load_vec(m.items, 4 * i, 4, mask=t, cache="nc")
                for i, t in zip(at, there, strict=True)
            ]
            rows = [self._row(word[2], t) for word, t in zip(words, there, strict=True)]
            flows = self._gather(read, [(word[0] + k.lane, word[1]) for word in words])
            for i, t, word, row, flow in zip(at, there, words, rows, flows, strict=True):
                flow, split = k.warp_sum(flow), word[3]
                last, flow = k.if_(
                    t & (split >= 0), functools.partial(self._join, i, split, flow), 1, flow
                )
                mine = t & (k.lane == 0) & (last == 1)
                moved, lost = settle(row, flow, mine, moved, lost)
            return moved, lost

        step = self.workers * self.batch
        sums = k.for_(self.worker, c.items, step, items, zero, zero)
        # the workers that got no item of the last turn take the first slices
        first = (self.worker + (self.workers - c.items % self.workers)) % self.workers
        return k.for_(first, c.slices, step, slices, *sums)

    def _row(self, position, mask):
        """What belongs to the row at a position; loaded before its entries to overlap."""
        k, m = self.k, self.m
        number = k.load(m.numbers, position, mask=mask, cache="nc")
        # a split row is settled by another warp every time: not from L1
        rest = [
            k.load(a, position, mask=mask, cache="fresh") for a in (m.rank, m.inverse, m.teleport)
        ]
        return position, number, *rest

    def _gather(self, read, spans):
        """The lane's sums of z (times the value) over entries first, first + 32, ... below end, for
        each (first, end); all of them are under way at the same time."""
        k, c, m = self.k, self.c, self.m
        ends = [end for _, end in spans for _ in range(self.unroll)]

        def some(*carry):
            at, flows = carry[: self.batch], carry[self.batch :]
            places = [a + 32 * u for a in at for u in range(self.unroll)]
            masks = [p < end for p, end in zip(places, ends, strict=True)]

            def entries(array, other):
                return [
                    k.load(array, p, mask=t, other=other, cache="stream")
                    for p, t in zip(places, masks, strict=True)
                ]

            share = [k.load(m.share, read + v) for v in entries(m.entries, c.n)]
            if c.weighted:
                share = [z * w for z, w in zip(share, entries(m.values, 0.0), strict=True)]
            parts = [share[i : i + self.unroll] for i in range(0, len(share), self.unroll)]
            flows = [
                x + functools.reduce(operator.add, y) for x, y in zip(flows, parts, strict=True)
            ]
            return *(a + 32 * self.unroll for a in at), *flows

        def left(*carry):
            more = [a < end for a, (_, end) in zip(carry, spans, strict=False)]
            return functools.reduce(operator.or_, more)

        zeros = [k.const(0.0, "f32")] * self.batch
        return k.while_(left, some, *(first for first, _ in spans), *zeros)[self.batch :]

    def _join(self, i, split, flow):
        """(1, sum of the whole row) for the warp that finishes the last of its segments."""
        k, m = self.k, self.m
        first, count = k.load_vec(m.splits, 2 * split, 2, cache="nc")
        mine = k.lane == 0
        k.store(m.partial, i, flow, mask=mine)
        k.fence()
        before = k.shfl(k.atomic("add", m.arrived, split, 1, mask=mine), 0)
        k.fence()

        def whole():
            def part(j, total):
                return total + k.load(m.partial, first + j, cache="fresh")

            k.store(m.arrived, split, 0, mask=mine)  # for the next step
            return 1, k.warp_sum(k.for_(k.lane, count, 32, part, k.const(0.0, "f32"))[0])

        return k.if_(before == count - 1, whole, 0, flow)

    def _totals(self, copy, moved, lost):
        """Ends a step: (ok, L1 change, dangling mass) of all programs, in all threads."""
        k, m = self.k, self.m
        moved, lost = k.warp_sum(moved), k.warp_sum(lost)
        for j, x in enumerate((moved, lost)):
            k.store(self.within, WARPS_MOST * j + k.warp, x, mask=k.lane == 0)
        k.sync()
        there = k.lane < k.threads // 32

        def program():
            for j in range(2):
                x = k.load(self.within, WARPS_MOST * j + k.lane, mask=there)
                word = (2 * copy + j) * k.programs + k.program
                k.store(m.sums, word, k.warp_sum(x), mask=k.lane == 0)

        k.if_(k.warp == 0, program)
        (ok,) = k.grid_barrier(m.control)

        def all_programs():
            loaded = []  # all loads are under way together
            for j in range(2):
                for i in range(0, k.programs, 32):
                    at, word = i + k.lane, (2 * copy + j) * k.programs + i + k.lane
                    loaded.append(k.load(m.sums, word, mask=at < k.programs, cache="fresh"))
            half = len(loaded) // 2
            for j, parts in enumerate((loaded[:half], loaded[half:])):
                total = k.warp_sum(functools.reduce(operator.add, parts))
                k.store(self.within, 2 * WARPS_MOST + j, total, mask=k.lane == 0)

        k.if_(k.warp == 0, all_programs)
        k.sync()
        return ok, *(k.load(self.within, 2 * WARPS_MOST + j) for j in range(2))

    def _finish(self):
        """Scores in the caller's numbering; a row may have been settled by any program."""
        k, c, m = self.k, self.c, self.m

        def row(i):
            vertex = k.load(m.vertices, i, cache="nc")
            rank = k.load(m.rank, i, cache="fresh")
            k.store(m.scores, vertex, rank, mask=vertex < c.n)

        k.spread(c.positions, row)
