"""A user's loop of products and element-wise updates in one launch: pull, one grid barrier a step.

    y[j] = join over the in-edges i -> j of mul(x[i], a);  x[j] <- update(x[j], y[j], ...)

Rows lie as `prepare_pagerank` puts them: short ones a thread each, long ones a warp each, the
longest in segments whose last one to finish joins the partial results in their order. x has two
copies, read and written in turn: the one that is read is not written before the next barrier. Named
sums, the L1 change and the number of changed elements are added up per program and, after the
barrier, by every program in the same order: all agree when to stop, and results do not change from
run to run. `mul`, `join`, `update` and the functions under the sums are jaxprs of scalars
(`_scalar.py`).

Cost of a step: a gather, 4 bytes of number and 4 of value an entry, 12 bytes a row and 4 for each
operand, one grid barrier.
"""

import functools
import operator
import types

import jax
import jax.numpy as jnp

from pallas_kernels._launch import launch, programs_for
from pallas_kernels._scalar import KINDS, evaluate

BATCH, UNROLL = 2, 8  # rows of a thread, and entries of each, that are under way together
WARPS_MOST = 32
CHANGE, CHANGED = 0, 1  # the first two totals; the named sums follow


def fixpoint_dense(
    x0: jax.Array,
    vectors: tuple[jax.Array, ...],
    scalars: tuple[jax.Array, ...],
    *,
    prepared: dict[str, jax.Array],
    mul,
    join,
    identity,
    update,
    sums: tuple = (),
    targets: jax.Array | None = None,
    stop,
    programs: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(x[n], iterations int32, flag int32, status int32) of a loop of steps over all elements.

    x0 (n,), vectors (n,) each and scalars () each are float32 or int32. prepared: the in-edges and
    their values by `prepare_pagerank`. mul(x, a) -> term, join(term, term) -> term with its
    identity, update(x, y, step, *vectors, *scalars, *sums) -> x, and each of sums(x, *vectors,
    *scalars) are closed jaxprs of scalars. targets int32[2 k]: (vertex, its number) of those that
    are watched. stop(step, reached, unchanged, change, scalars) -> (leave, flag) as kernel values:
    reached is a tuple of k booleans, x[target] differs from x0; change is the L1 change of the last
    step, inf before the first; flag is returned as it is at the end. status 0: right.
    """
    n = x0.shape[0]
    targets = jnp.zeros(0, jnp.int32) if targets is None else targets
    c = types.SimpleNamespace(
        n=n, items=prepared["items"].shape[0], positions=prepared["numbers"].shape[0],
        slices=prepared["starts"].shape[0] - 1, splits=prepared["splits"].shape[0],
        kind=KINDS[x0.dtype.name], y_kind=KINDS[join.out_avals[0].dtype.name],
        identity=identity, vectors=len(vectors), scalars=len(scalars), targets=targets.shape[0],
        mul=mul, join=join, update=update, sums=sums, stop=stop,
        kinds=("f32", "i32", *(KINDS[s.out_avals[0].dtype.name] for s in sums)),
    )  # fmt: skip
    c.base = c.positions - 32 * c.slices
    names = ("numbers", "vertices", "entries", "items", "splits", "starts", "values")
    operands = {name: _filled(prepared[name]) for name in names}
    operands |= {"x0": x0, "targets": _filled(targets)}
    operands |= {f"vector{j}": v for j, v in enumerate(vectors)}
    operands |= {f"scalar{j}": jnp.atleast_1d(v) for j, v in enumerate(scalars)}
    programs = programs or programs_for()
    y_type = jnp.float32 if c.y_kind == "f32" else jnp.int32
    outputs = {
        "x": (n, x0.dtype), "summary": (3, jnp.int32), "copies": (2 * n, x0.dtype),
        "totals": (2 * len(c.kinds) * programs, jnp.int32),
        "partial": (max(1, c.items), y_type), "arrived": (max(1, c.splits), jnp.int32),
    }  # fmt: skip
    outputs |= {f"own{j}": (c.positions, v.dtype) for j, v in enumerate(vectors)}
    keys = [*operands, *outputs, "control"]

    def kernel(k, *arrays):
        _Loop(k, c, types.SimpleNamespace(**dict(zip(keys, arrays, strict=True)))).run()

    shapes = [jax.ShapeDtypeStruct((size,), dtype) for size, dtype in outputs.values()]
    words = (WARPS_MOST + 1) * len(c.kinds)
    x, summary, *_ = launch(
        kernel, list(operands.values()), shapes, programs=programs, threads=threads,
        shared_words=-(-words // 4) * 4 + 4, name="fixpoint_dense", interpret=interpret,
    )  # fmt: skip
    return x, summary[0], summary[1], summary[2]


def _filled(x):
    return x if x.size else jnp.zeros(4, x.dtype)


class _Loop:
    """One launch: start, steps, result."""

    def __init__(self, k, c, memory):
        self.k, self.c, self.m = k, c, memory
        self.within = k.shared((WARPS_MOST + 1) * len(c.kinds))  # totals of warps, then of all
        self.worker = k.warp * k.programs + k.program
        self.workers = k.threads // 32 * k.programs
        self.scalars = [k.load(getattr(memory, f"scalar{j}"), 0) for j in range(c.scalars)]

    def run(self):
        k, c, m = self.k, self.c, self.m
        totals = self._totals(0, self._start())
        ok, sums = totals[0], totals[3:]

        def leave(i, change, unchanged):
            return c.stop(i, self._reached(i & 1), unchanged, change, self.scalars)

        infinity = k.bits(k.const(0x7F800000), "f32")
        out, flag = leave(k.const(0), infinity, k.const(False, "i1"))
        state = (k.const(0), k.cast(out, "i32"), k.cast(flag, "i32"), ok, *sums)

        def step(i, out, flag, ok, *sums):
            ok, change, changed, *sums = self._totals((i + 1) & 1, self._step(i, sums))
            out, flag = leave(i + 1, change, changed == 0)
            return i + 1, k.cast(out, "i32"), k.cast(flag, "i32"), ok, *sums

        steps, _, flag, ok, *_ = k.while_(
            lambda i, out, flag, ok, *sums: (out == 0) & (ok == 1), step, *state
        )
        read = (steps & 1) * c.n

        def row(p):
            vertex = k.load(m.vertices, p, cache="nc")
            number = k.load(m.numbers, p, cache="nc")
            there = vertex < c.n
            value = k.load(m.copies, read + number, mask=there, cache="fresh")
            k.store(m.x, vertex, value, mask=there)

        k.spread(c.positions, row)
        mine = (k.program == 0) & (k.thread == 0)
        for j, word in enumerate((steps, flag, 1 - ok)):
            k.store(m.summary, j, word, mask=mine)

    def _reached(self, copy):
        """Whether x differs from x0 at each target (its number and its vertex are given)."""
        k, c, m = self.k, self.c, self.m
        found = []
        for j in range(c.targets // 2):
            vertex, number = k.load(m.targets, 2 * j), k.load(m.targets, 2 * j + 1)
            there = k.below(vertex, c.n)
            now = k.load(m.copies, copy * c.n + number, mask=there, cache="fresh")
            found.append(there & _differs(now, k.load(m.x0, vertex, mask=there)))
        return tuple(found)

    def _zero(self):
        return [self.k.const(0, kind) for kind in self.c.kinds]

    def _start(self):
        """x = x0 and the operands of each row at its position; the thread's parts of the sums."""
        k, c, m = self.k, self.c, self.m
        k.spread(c.splits, lambda i: k.store(m.arrived, i, 0))

        def row(p, *totals):
            vertex = k.load(m.vertices, p, cache="nc")
            there = vertex < c.n
            x = k.load(m.x0, vertex, mask=there, cache="nc")
            k.store(m.copies, k.load(m.numbers, p, cache="nc"), x, mask=there)
            own = []
            for j in range(c.vectors):
                own.append(k.load(getattr(m, f"vector{j}"), vertex, mask=there, cache="nc"))
                k.store(getattr(m, f"own{j}"), p, own[-1])
            return self._counted(totals, x, x, own, there)

        return k.spread(c.positions, row, *self._zero())

    def _counted(self, totals, old, new, own, mask):
        """The totals with those of one element."""
        k, c = self.k, self.c
        moved = _differs(new, old)
        wide = k.cast(new, "f32") - k.cast(old, "f32")
        parts = [k.where(moved, k.maximum(wide, -wide), 0.0), k.cast(moved, "i32")]
        parts += [evaluate(k, s, new, *own, *self.scalars) for s in c.sums]
        zero = self._zero()
        return tuple(
            t + k.where(mask, part, z) for t, part, z in zip(totals, parts, zero, strict=True)
        )

    def _step(self, i, sums):
        """New x; returns the thread's parts of the totals."""
        k, c, m = self.k, self.c, self.m
        read, write = (i & 1) * c.n, (1 - (i & 1)) * c.n

        def settle(row, y, mask, totals):
            number, old, own = row
            mask = mask & (number < c.n)
            new = evaluate(k, c.update, old, y, i, *own, *self.scalars, *sums)
            k.store(m.copies, write + number, new, mask=mask)
            return self._counted(totals, old, new, own, mask)

        def slices(s0, *totals):
            at = [s0 + b * self.workers for b in range(BATCH)]
            there = [s < c.slices for s in at]
            rows = [
                self._row(c.base + 32 * s + k.lane, read, t) for s, t in zip(at, there, strict=True)
            ]
            spans = []
            for s, t in zip(at, there, strict=True):
                start, end = (k.load(m.starts, s + j, mask=t, cache="nc") for j in range(2))
                spans.append((start + k.lane, end))
            for row, y, t in zip(rows, self._gather(read, spans), there, strict=True):
                totals = settle(row, y, t, totals)
            return totals

        def items(i0, *totals):
            at = [i0 + b * self.workers for b in range(BATCH)]
            there = [j < c.items for j in at]
            words = [
                k.load_vec(m.items, 4 * j, 4, mask=t, cache="nc")
                for j, t in zip(at, there, strict=True)
            ]
            rows = [self._row(word[2], read, t) for word, t in zip(words, there, strict=True)]
            ys = self._gather(read, [(word[0] + k.lane, word[1]) for word in words])
            for j, t, word, row, y in zip(at, there, words, rows, ys, strict=True):
                y, split = self._warp(y), word[3]
                last, y = k.if_(
                    t & (split >= 0), functools.partial(self._join, j, split, y), 1, y
                )
                totals = settle(row, y, t & (k.lane == 0) & (last == 1), totals)
            return totals

        turn = self.workers * BATCH
        totals = k.for_(self.worker, c.items, turn, items, *self._zero())
        # the workers that got no item of the last turn take the first slices
        first = (self.worker + (self.workers - c.items % self.workers)) % self.workers
        return k.for_(first, c.slices, turn, slices, *totals)

    def _row(self, position, read, mask):
        """(number, old x, operands) of the row at a position."""
        k, c, m = self.k, self.c, self.m
        number = k.load(m.numbers, position, mask=mask, other=c.n, cache="nc")
        # another warp may have written x, and another program the operands
        old = k.load(m.copies, read + number, mask=number < c.n, cache="fresh")
        own = [
            k.load(getattr(m, f"own{j}"), position, mask=mask, cache="fresh")
            for j in range(c.vectors)
        ]
        return number, old, own

    def _joined(self, a, b):
        return evaluate(self.k, self.c.join, a, b)

    def _gather(self, read, spans):
        """The lane's join of the terms of entries first, first + 32, ... below end, for each span
        (first, end); all of them are under way at the same time."""
        k, c, m = self.k, self.c, self.m
        ends = [end for _, end in spans for _ in range(UNROLL)]
        identity = k.const(c.identity, c.y_kind)

        def some(*carry):
            at, ys = carry[:BATCH], carry[BATCH:]
            places = [a + 32 * u for a in at for u in range(UNROLL)]
            masks = [p < end for p, end in zip(places, ends, strict=True)]
            index = [
                k.load(m.entries, p, mask=t, other=c.n, cache="stream")
                for p, t in zip(places, masks, strict=True)
            ]
            value = [
                k.load(m.values, p, mask=t, cache="stream")
                for p, t in zip(places, masks, strict=True)
            ]
            there = [j < c.n for j in index]
            x = [k.load(m.copies, read + j, mask=t) for j, t in zip(index, there, strict=True)]
            terms = [
                k.where(t, evaluate(k, c.mul, v, a), identity)
                for v, a, t in zip(x, value, there, strict=True)
            ]
            parts = [terms[j : j + UNROLL] for j in range(0, len(terms), UNROLL)]
            ys = [
                functools.reduce(self._joined, part, y) for part, y in zip(parts, ys, strict=True)
            ]
            return *(a + 32 * UNROLL for a in at), *ys

        def left(*carry):
            more = [a < end for a, (_, end) in zip(carry, spans, strict=False)]
            return functools.reduce(operator.or_, more)

        start = [identity] * BATCH
        return k.while_(left, some, *(first for first, _ in spans), *start)[BATCH:]

    def _warp(self, y):
        for d in (16, 8, 4, 2, 1):
            y = self._joined(y, self.k.shfl_xor(y, d))
        return y

    def _join(self, i, split, y):
        """(1, y of the whole row) for the warp that finishes the last of its segments."""
        k, c, m = self.k, self.c, self.m
        first, count = k.load_vec(m.splits, 2 * split, 2, cache="nc")
        mine = k.lane == 0
        k.store(m.partial, i, y, mask=mine)
        k.fence()
        before = k.shfl(k.atomic("add", m.arrived, split, 1, mask=mine), 0)
        k.fence()

        def whole():
            def part(j, total):
                return self._joined(total, k.load(m.partial, first + j, cache="fresh"))

            k.store(m.arrived, split, 0, mask=mine)  # for the next step
            start = k.const(c.identity, c.y_kind)
            return 1, self._warp(k.for_(k.lane, count, 32, part, start)[0])

        return k.if_(before == count - 1, whole, 0, y)

    def _totals(self, copy, parts):
        """Ends a step: (ok, *totals) of all programs, in all threads."""
        k, c, m = self.k, self.c, self.m
        many = len(c.kinds)
        for j, x in enumerate(parts):
            word = WARPS_MOST * j + k.warp
            k.store(self.within, word, k.bits(k.warp_sum(x), "i32"), mask=k.lane == 0)
        k.sync()
        there = k.lane < k.threads // 32

        def program():
            for j, kind in enumerate(c.kinds):
                x = k.bits(k.load(self.within, WARPS_MOST * j + k.lane, mask=there), kind)
                word = (many * copy + j) * k.programs + k.program
                k.store(m.totals, word, k.bits(k.warp_sum(x), "i32"), mask=k.lane == 0)

        k.if_(k.warp == 0, program)
        (ok,) = k.grid_barrier(m.control)

        def all_programs():
            for j, kind in enumerate(c.kinds):
                loaded = []  # all loads are under way together
                for i in range(0, k.programs, 32):
                    at = i + k.lane
                    word = (many * copy + j) * k.programs + at
                    loaded.append(k.load(m.totals, word, mask=at < k.programs, cache="fresh"))
                total = functools.reduce(operator.add, [k.bits(x, kind) for x in loaded])
                total = k.bits(k.warp_sum(total), "i32")
                k.store(self.within, WARPS_MOST * many + j, total, mask=k.lane == 0)

        k.if_(k.warp == 0, all_programs)
        k.sync()
        totals = [k.bits(k.load(self.within, WARPS_MOST * many + j), kind)
                  for j, kind in enumerate(c.kinds)]  # fmt: skip
        return ok, *totals


def _differs(new, old):
    """Where two values differ; NaN is equal to NaN."""
    return (new != old) & ((new == new) | (old == old))
