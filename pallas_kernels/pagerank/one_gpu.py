"""PageRank by power iteration, all iterations in one launch: pull, one grid barrier an iteration.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

Every row of A transposed gathers z = x / out-strength from one array of n words; its thread then
writes the new x and z and adds to two sums, the L1 change and the mass on vertices without
out-edges. The loop over rows is that of `rows/sliced.py`.

Cost of an iteration: a gather and 4 bytes an entry (8 with weights), 28 bytes a row, one grid
barrier and two reductions over a CTA (2.5 us together). No atomics but those that order the
segments of split rows.

Measured (H200): rmat18 90 us an iteration, 210 to 240 G gathers/s, above the 150 of a permuted
graph from L2: with vertices by falling degree 68% of them hit in the L1 cache (2.7 TB/s from L2,
0.8 from memory). rmat21 690 us: 240 G/s. delaunay 2^21 55 us: 110 MB at 2 TB/s of the 4.3 of a
copy. luxembourg_osm 4.6 us: barrier, reductions and one chain of accesses.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from ..rows.sliced import PullRows, operands_of, shared_words, sizes, workspace
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.typed import Body, Value
from ..tuning import constants

LEAST = 48  # mean entries from which `Increments` may be faster, see `Constants.increments_from`


class Limits(NamedTuple):
    """damping: d. Iterates while the L1 change of the last step is above tol or fewer than
    min_iterations were made, at most max_iterations times."""

    damping: ArrayLike
    tol: ArrayLike
    max_iterations: ArrayLike
    min_iterations: ArrayLike

    def operands(self) -> dict[str, jax.Array]:
        """As operands of a launch: knobs float32[2], limits int32[2]."""
        knobs = [jnp.asarray(x, jnp.float32) for x in self[:2]]
        limits = [jnp.asarray(x, jnp.int32) for x in self[2:]]
        return {"knobs": jnp.stack(knobs), "limits": jnp.stack(limits)}


def pagerank(
    strength: jax.Array,
    personalization: jax.Array,
    limits: Limits,
    *,
    prepared: dict[str, jax.Array],
    increments: bool | None = None,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """(scores float32[n], iterations int32, change float32, status int32).

    strength float32[n]: row sums of A; personalization float32[n]: p, of sum 1, also the start.
    prepared: the in-edges by `prepare_pagerank`. change is that of the last step (inf before the
    first). increments: whether changes in 16 bits are gathered (`Increments`); None:
    where gathers of many vertices take most of the time.
    """
    n = strength.shape[0]
    if increments is None:
        many = n >= constants().increments_from
        increments = many and prepared["entries"].shape[0] >= LEAST * n
    kind = Increments if increments else Iteration
    c = sizes(prepared, n)
    f32 = jnp.float32
    operands = operands_of(prepared, *(["values"] if "values" in prepared else []))
    operands |= {
        "strength": strength.astype(f32),
        "personalization": personalization.astype(f32),
        **limits.operands(),
    }
    form = extent()
    outputs = {
        "scores": (n, f32),
        "steps": (),
        "status": (),
        "change": (1, f32),
        "share": (2 * (n + 1), f32),
        **dict.fromkeys(("rank", "inverse", "teleport"), (c.positions, f32)),
        **workspace(c, len(kind.KINDS), form["ctas"], f32),
        **kind.more(c),
    }
    out = launch(
        lambda k, m: kind(k, c, m, kind.KINDS).run(),
        operands,
        outputs,
        shared_words=shared_words(len(kind.KINDS)),
        name="pagerank",
    )
    return out["scores"], out["steps"], out["change"][0], out["status"]


class Iteration(PullRows):
    """One launch over whole scores: start, steps, result."""

    KINDS = ("f32", "f32")  # of the sums: the L1 change, the mass on vertices without out-edges

    @staticmethod
    def more(c: Any) -> dict[str, int | tuple]:
        """Additional outputs of this form."""
        return {}

    def run(self) -> Value:
        k, m = self.k, self.m
        damping, tol = (k.load(m.knobs, j) for j in range(2))
        most, least = (k.load(m.limits, j) for j in range(2))
        more = [k.const(0.0, "f32") for _ in self.kinds[2:]]
        ok, _, lost, *more = self.total(0, (k.const(0.0, "f32"), self._start(), *more))

        def going(step, ok, change, *_):
            return ((change > tol) | (step < least)) & (step < most) & (ok == 1)

        def step(i, ok, change, lost, *more):
            jumps = self._jumps(1.0 - damping, *more)
            ok, *sums = self.total((i + 1) & 1, self._step(i & 1, damping, damping * lost + jumps))
            return i + 1, ok, *sums

        infinity = k.bits(k.const(0x7F800000), "f32")
        start = self._before(going, step, (k.const(0), ok, infinity, lost, *more))
        steps, ok, change, *_ = k.while_(going, step, *start)
        self._finish()
        k.results(m, steps=steps, change=change)
        return ok

    def _before(self, going: Body, step: Body, state: tuple[Value, ...]) -> tuple[Value, ...]:
        """The state (step, ok, *sums) in which the loop begins."""
        return state

    def _jumps(self, jumps: Value, *more: Value) -> Value:
        """What jumps add in a step, over p; more: the further sums."""
        return jumps

    def _start(self) -> Value:
        """Computes x = p and its z; returns this thread's part of the dangling mass."""
        k, c, m = self.k, self.c, self.m
        self.clear()
        for word in (c.n, 2 * c.n + 1):  # the share that padding entries gather
            k.store(m.share, word, 0.0, mask=(k.cta == 0) & (k.thread == 0))

        def row(i, lost):
            vertex = k.load(m.vertices, i, cache="nc")
            valid = vertex < c.n
            strength = k.load(m.strength, vertex, mask=valid, cache="nc")
            rank = k.load(m.personalization, vertex, mask=valid, cache="nc")
            weighs = strength > 0.0
            inverse = k.where(weighs, k.const(1.0, "f32") / k.where(weighs, strength, 1.0), 0.0)
            k.store(m.rank, i, rank)
            k.store(m.teleport, i, rank)
            k.store(m.inverse, i, inverse)
            number = k.load(m.numbers, i, cache="nc")
            k.store(m.share, number, rank * inverse, mask=valid)
            return lost + k.where(weighs, 0.0, rank)

        return k.spread(c.positions, row, k.const(0.0, "f32"))[0]

    def _step(self, copy: Any, damping: Value, teleport: Value) -> tuple[Value, ...]:
        """Computes the new x and z; returns this thread's parts of the L1 change and of the
        dangling mass."""
        k, c, m = self.k, self.c, self.m
        read, write = copy * (c.n + 1), (1 - copy) * (c.n + 1)

        def settle(row, flow, mask, totals):
            position, number, old, inverse, p = row
            moved, lost = totals
            new = damping * flow + teleport * p
            k.store(m.rank, position, new, mask=mask)
            k.store(m.share, write + number, new * inverse, mask=mask & (number < c.n))
            moved = moved + k.where(mask, k.maximum(new - old, old - new), 0.0)
            return moved, lost + k.where(mask & (inverse == 0.0), new, 0.0)

        return self.sweep(read, settle)

    def row(self, position: Value, mask: Value) -> tuple[Any, ...]:
        k, m = self.k, self.m
        number = k.load(m.numbers, position, mask=mask, cache="nc")
        # another warp may settle a split row in each step: so not from L1
        rest = [
            k.load(a, position, mask=mask, cache="fresh") for a in (m.rank, m.inverse, m.teleport)
        ]
        return position, number, *rest

    def terms(self, read: Value, index: Value, places: Value, masks: Value) -> Value:
        k, m = self.k, self.m
        if not m.values:
            return self.shares(read, index)
        weights = k.load(m.values, places, mask=masks, cache="stream")
        return self.shares(read, index) * weights

    def shares(self, read: Value, index: Value) -> Value:
        """The shares at these indices, in the copy that begins at `read`; that of padding is 0."""
        return self.k.load(self.m.share, read + index)

    def combine(self, a: Value, b: Value) -> Value:
        return a + b

    def _finish(self) -> None:
        """Writes the scores in the caller's numbering."""
        k, c, m = self.k, self.c, self.m

        def row(i):
            vertex = k.load(m.vertices, i, cache="nc")
            k.store(m.scores, vertex, self.score(i), mask=vertex < c.n)

        k.spread(c.positions, row)

    def score(self, position: Value) -> Value:
        """The score of the row at this position."""
        return self.k.load(self.m.rank, position, cache="fresh")


class Increments(Iteration):
    """PageRank by increments, gathered in 16 bits: half of the bytes, with a bounded error.

        r = F(x) - x                 F: the right side, an affine map with the linear part L
        x <- x + q,  r <- (r - q) + L q     q: r with its shares r / strength rounded to bfloat16

    The rounding error of q stays in r and is propagated in the next step. So r is always the change
    that a step of power iteration from x makes, whatever q is. The loop ends by the norm of r, and
    the scores are x + r = F(x). The first step gathers float32 shares of the start. Scores after a
    bounded number of steps differ from those of power iteration, by about 2^-9 of the last change.

    Rounding may change the mass of x. This error shrinks by the factor d a step, more slowly than
    the others (rmat21: 20 steps instead of 13), and not at all if d is 1. So each step scales x to
    mass 1, by c = 1 / sum x: x <- c x, r <- c r + (1 - c) (1 - d) p.

    Source: Gleich, "PageRank beyond the Web", SIAM Review 2015, for residuals; error feedback
    as in Seide et al., "1-bit stochastic gradient descent", Interspeech 2014.
    """

    KINDS = ("f32", "f32", "f32")  # as in `Iteration`, and the mass of x
    first = True  # while the first step is traced
    scale: Any = None  # of x and r, before a step

    @staticmethod
    def more(c: Any) -> dict[str, Any]:
        return {"change_of": (c.positions, "float32"), "halves": (c.n + 2, "uint32")}

    def _before(self, going: Body, step: Body, state: tuple[Value, ...]) -> tuple[Value, ...]:
        state = *state[:-1], self.k.const(1.0, "f32")
        state = self.k.if_(going(*state), lambda: step(*state), *state)
        self.first = False
        return state

    def _jumps(self, jumps: Value, *more: Value) -> Value:
        self.scale = self.k.const(1.0, "f32") / more[0]
        return jumps if self.first else jumps * (1.0 - self.scale)

    def _start(self) -> Value:
        k, m = self.k, self.m
        for half in (self.c.n, 2 * self.c.n + 1):  # what padding entries gather
            k.store_half(m.halves, half, k.const(0), (k.cta == 0) & (k.thread == 0))
        k.spread(self.c.positions, lambda i: k.store(m.change_of, i, 0.0))
        return super()._start()

    def _step(self, copy: Any, damping: Value, teleport: Value) -> tuple[Value, ...]:
        k, c, m = self.k, self.c, self.m
        read, write = copy * (c.n + 1), (1 - copy) * (c.n + 1)

        def settle(row, flow, mask, totals):
            position, number, x, inverse, p, r = row
            moved, lost, mass = totals
            dangles = inverse == 0.0
            new = damping * flow + teleport * p
            if self.first:
                new, later = new - x, x
            else:
                share = self._widened(self._rounded(r * inverse))
                q = k.where(dangles, r, share / k.where(dangles, 1.0, inverse))
                new, later = (self.scale * r - q) + new, self.scale * x + q
                k.store(m.rank, position, later, mask=mask)
            k.store(m.change_of, position, new, mask=mask)
            half = self._rounded(new * inverse)
            k.store_half(m.halves, write + number, half, mask & (number < c.n))
            moved = moved + k.where(mask, k.maximum(new, 0.0 - new), 0.0)
            lost = lost + k.where(mask & dangles, new, 0.0)
            return moved, lost, mass + k.where(mask, later, 0.0)

        return self.sweep(read, settle)

    def _rounded(self, x: Value) -> Value:
        """x as a bfloat16 in the low half of a word."""
        return self.k.pack(x, self.k.const(0.0, "f32"), "bf16") & 0xFFFF

    def _widened(self, half: Value) -> Value:
        return self.k.bits(half << 16, "f32")

    def row(self, position: Value, mask: Value) -> tuple[Any, ...]:
        change = self.k.load(self.m.change_of, position, mask=mask, cache="fresh")
        return *super().row(position, mask), change

    def shares(self, read: Value, index: Value) -> Value:
        if self.first:
            return super().shares(read, index)
        return self._widened(self.k.load_half(self.m.halves, read + index))

    def score(self, position: Value) -> Value:
        return super().score(position) + self.k.load(self.m.change_of, position, cache="fresh")
