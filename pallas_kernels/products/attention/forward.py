"""Attention over the rows of a CSR in one launch: scores, their softmax and the weighted sum.

    s[e, h] = scale <q[i, h], k[j, h]> + bias[e, h]     at every entry e = (i, j)
    y[i, h] = sum over e of exp(s[e, h] - log[i, h]) v[j, h],  log[i, h] = log sum exp s[e, h]

A `Score` puts a function of q[i, h], k[j, h], an edge's own and params[h] in place of the product.
Rows and entries are shared evenly by the warps (merge path). The lanes of a warp have the features
of all heads of one entry, 16 bytes a lane; if these need fewer than 32 lanes, each group of lanes
takes another entry. Columns and offsets are loaded one step ahead, q one row ahead, so that a short
row waits only for k and v. Each group has (largest score, sum, weighted rows of v) of a row in
registers, rescaled when the largest changes (Milakov, Gimelshein, 2018); groups are combined by
shuffles at the end of the row. If a row is cut between warps, the last of them to arrive combines
the parts, in the order of the pieces: no warp waits, and results do not change from run to run. No
array of the size of the entries is written.

Bytes, for nse entries, f features of all heads: 8 nse f of k and v out of the L2 cache, where they
fit it, else from memory; 4 nse of columns; q and y once: bound by L2 or memory.

Measured (H200), f = 128: coAuthorsDBLP 0.43 ms in float32, 4.7 TB/s, and 0.31 in bfloat16, 3.2
TB/s (L2 gives 4.8); rmat18 2.25 and 1.39, 8.9 and 7.2 TB/s, because hubs stay in L1.
"""

import functools
import operator

import jax
import jax.numpy as jnp

from ...rows.folds import LOG2E
from ...rows.merge_path import place, search
from ...simt.feature_jaxpr import Lanes
from ...simt.launch import launch
from ...simt.primitives import CONTROL_WORDS
from ...simt.typed import Several
from .job import SCHEDULE, Operands, Schedule, Score, job_of

LOWEST = float("-inf")


def csr_attention(
    given: Operands,
    *,
    scale: float,
    score: Score | None = None,
    thin: bool = False,
    schedule: Schedule = SCHEDULE,
) -> tuple[jax.Array, jax.Array]:
    """(y[n, heads, f], log[n, heads]). score: in place of the dot product. thin: y is rounded to
    the dtype of v, else it is float32, as log is.

    A row without entries, or with scores of -inf alone, gets 0 and -inf.
    """
    n, (_, heads, f) = given.q.shape[0], given.v.shape
    job = job_of(given, scale, score, schedule, thin)
    width, words = job.width, job.width // 2 if job.thin else job.width
    tiles, ctas, warps = -(-heads // job.together), job.ctas, schedule.threads // 32
    found = launch(
        lambda kernel, memory: Attention(kernel, memory, job).run(),
        {name: x.reshape(-1) for name, x in given.padded(width).items()},
        {
            "y": (n * heads * words, jnp.uint32 if job.thin else jnp.float32),
            "log": (n * heads, jnp.float32),
            "parts": (tiles * ctas * warps * 2 * 32 * (2 + job.each), jnp.float32),
        },
        **schedule.form(tiles, ctas),
        more_control=tiles * ctas * warps,
        name="csr_attention",
    )
    y = jax.lax.bitcast_convert_type(found["y"], given.v.dtype) if job.thin else found["y"]
    return y.reshape(n, heads, width)[:, :, :f], found["log"].reshape(n, heads)


class Attention:
    """One launch: the piece of the path that belongs to this warp."""

    def __init__(self, k, g, job):
        self.k, self.g, self.job = k, g, job
        warps, used = k.threads // 32, job.lanes * job.together
        tile = k.cta // job.ctas
        self.worker, self.workers = (k.cta - tile * job.ctas) * warps + k.warp, job.ctas * warps
        self.before = tile * self.workers  # warps of the tiles before
        self.groups, self.group = 32 // used, k.lane // used
        member = k.lane & (used - 1)
        self.head = tile * job.together + member // job.lanes
        self.feature = (member & (job.lanes - 1)) * job.each
        self.inside = self.head < job.heads
        self.nothing = [k.const(LOWEST, "f32"), *[k.const(0.0, "f32")] * (1 + job.each)]
        self.sums = []  # over all entries of the warp
        self.held, self.params = Lanes(k, job.lanes, job.each), []
        if job.score is not None:
            if 0 < job.score.features < job.width:
                real = [self.feature + j < job.score.features for j in range(job.each)]
                self.held = Lanes(k, job.lanes, job.each, real)
            fixed = list(enumerate(job.score.rows))[2 if g.edges is None else 3 :]
            params = (getattr(g, f"p{i}") for i in range(len(fixed)))
            pairs = zip(fixed, params, strict=True)
            self.params = [self._end(p, i, k.const(0), self.inside) for (i, _), p in pairs]

    def run(self):
        k, g, n = self.k, self.g, self.job.n
        self.count = k.load(g.indptr, n, cache="nc")
        total = self.count + n
        self.piece = (total + (self.workers - 1)) // self.workers
        ends = [k.minimum((self.worker + j) * self.piece, total) for j in range(2)]
        rows = search(k, g.indptr, n, ends)
        (first, low, begin), (last, high, opened) = (
            place(k, g.indptr, n, r, d) for r, d in zip(rows, ends, strict=True)
        )
        continued = low > begin
        reaches = high > opened  # the last row continues in the next piece
        through = continued & (first == last)

        def whole(r, start, end, *carry):
            ahead, sums = carry[:many], carry[many:]
            behind, later = self._end_of(r + 1), self._ahead(r + 1, end)
            state, sums = self._row(start, end, ahead, sums)
            part = continued & (r == first)
            self._store(r, state, ~part)
            self._store_part(0, r, state, part)
            return end, behind, *later, *sums

        ahead = self._ahead(first, low)
        many = len(ahead)
        start = low, self._end_of(first), *ahead, *self.sums
        _, _, *carry = k.for_(first, last, 1, whole, *start)
        ahead, sums = carry[:many], carry[many:]

        def rest():
            state, more = self._row(k.maximum(opened, low), high, ahead, sums)
            self._store_part(0, last, state, through)
            self._store_part(1, last, state, ~through)
            return tuple(more)

        sums = k.if_(reaches, rest, *sums)
        self._settle((first, continued), (last, reaches & ~through))
        self._finish(sums)

    def _end_of(self, r):
        """Where the entries of row r end; 0 beyond the last row."""
        return self.k.load(self.g.indptr, r + 1, mask=r < self.job.n, cache="nc")

    def _ahead(self, r, start):
        """What is loaded a row ahead: the first columns from entry `start` on, the operands of
        row r."""
        return self._columns(start), *self._of_row(r, self.inside & (r < self.job.n))

    def _of_row(self, r, mask):
        """What this lane has of row r: of q."""
        q = self._end(self.g.q, 0, r, mask)
        return q if isinstance(q, list) else [q]

    def _query(self, values):
        """q as `_of_row` gave it, a list of features or a number."""
        return values if self.job.score is None or self.job.score.rows[0] else values[0]

    def _places(self, base):
        return Several(base + u * self.groups + self.group for u in range(self.job.unroll))

    def _columns(self, base):
        """The columns of the next entries of this group, whichever rows these belong to."""
        at = self._places(base)
        return self.k.load(self.g.indices, at, mask=at < self.count, other=-1, cache="nc")

    def _row(self, start, end, ahead, sums):
        """(largest score, sum, weighted rows of v) of the entries start to end of a row."""
        k, job = self.k, self.job
        cols, q = ahead[0], self._query(list(ahead[1:]))
        step = self.groups * job.unroll

        def some(base, cols, *state):
            later = self._columns(base + step)
            places, valid, keys, values = self._met(base, end, cols)
            if job.score is None:
                scores = self._dots(q, keys)
            else:
                given = q, keys, *self._edges(places, valid), *self.params
                scores = self.held.evaluate(job.score.value, *given)[0]
            return later, *self._added(state, self._levels(scores, places, valid), values)

        state = k.for_(start, end, step, some, cols, *self.nothing)[1:]
        return self._of_groups(state), sums

    def _of_groups(self, state):
        """The states of the groups of a warp as one, in all of them."""
        d = 16
        while d >= 32 // self.groups:
            state = self._joined(state, [self.k.shfl_xor(v, d) for v in state])
            d //= 2
        return state

    def _met(self, base, end, cols):
        """The next entries of this group: places, which are of the row, their rows of k and v."""
        k, g, job = self.k, self.g, self.job
        places = self._places(base)
        valid = (places < end) & k.below(cols, job.columns)
        mask = valid & self.inside
        return places, valid, self._end(g.k, 1, cols, mask), self._features(g.v, cols, mask)

    def _features(self, a, place, mask):
        """This lane's part of a row of features: of v, of k, of what lies by rows."""
        k, g, job = self.k, self.g, self.job
        at, many = self._at(place), job.each
        by_products = a is g.k or (a is g.q and job.narrow_q)
        narrow = job.narrow if a is g.v or (by_products and not job.score) else None
        if narrow:
            at, many = at >> 1, many // 2
        words = [
            word
            for j in range(0, many, 4)
            for word in k.load_vec(a, at + j, min(many - j, 4), mask=mask, cache="nc")
        ]
        return [x for w in words for x in k.unpack(w, narrow)] if narrow else words

    def _stored(self, store, a, at, values, mask):
        """`store` of any number of words, 16 bytes at a time."""
        for j in range(0, len(values), 4):
            store(a, at + j, values[j : j + 4], mask=mask)

    def _end(self, a, number, place, mask):
        """What argument `number` of a score has in this lane: a list of features, or a number."""
        if self.job.score is None or self.job.score.rows[number]:
            return self._features(a, place, mask)
        at = place * self.job.heads + self.head
        return self.k.load(a, at, mask=mask, cache="nc")

    def _edges(self, places, valid):
        """One more argument of the score of some entries, or none."""
        edges = self.g.edges
        return () if edges is None else (self._end(edges, 2, places, valid & self.inside),)

    def _at(self, place):
        return (place * self.job.heads + self.head) * self.job.width + self.feature

    def _levels(self, scores, places, valid):
        """Scores with scale and bias in base 2; -inf for padding."""
        k, job = self.k, self.job
        scores = scores * (job.scale * LOG2E)
        if job.own:
            at = places * job.own + self.head if job.own > 1 else places
            own = k.load(self.g.bias, at, mask=valid & self.inside, cache="nc")
            scores = scores + own * LOG2E
        return k.where(valid, scores, LOWEST)

    def _dots(self, row, others):
        """The product of `row` with each of the others, by head, in all lanes of the head."""
        dots = self.k.total(a * b for a, b in zip(row, others, strict=True))
        return self.k.warp_fold(operator.add, dots, self.job.lanes)

    def _added(self, state, scores, values):
        """The state with some entries more."""
        k = self.k
        most, total, *acc = state
        new = functools.reduce(k.maximum, scores, most)
        shift = k.where(new > LOWEST, new, 0.0)
        rescale, p = k.exp2(most - shift), k.exp2(scores - shift)
        acc = [sum(p * v, a * rescale) for a, v in zip(acc, values, strict=True)]
        return new, sum(p, total * rescale), *acc

    def _joined(self, one, two):
        """The state of the entries of both."""
        k = self.k
        most = k.maximum(one[0], two[0])
        shift = k.where(most > LOWEST, most, 0.0)
        a, b = (k.exp2(s[0] - shift) for s in (one, two))
        return (most, *(x * a + y * b for x, y in zip(one[1:], two[1:], strict=True)))

    def _store(self, r, state, mask):
        k, g, job = self.k, self.g, self.job
        most, total, *acc = state
        some = total != 0.0  # NaN is some
        below = k.where(some, total, 1.0)
        mask = mask & self.inside & (self.group == 0)
        y, at = [k.where(some, a / below, 0.0) for a in acc], self._at(r)
        if job.thin:
            pairs = zip(y[::2], y[1::2], strict=True)
            y, at = [k.pack(low, high, job.narrow) for low, high in pairs], at >> 1
        self._stored(k.store_vec, g.y, at, y, mask)
        log = k.where(some, (most + k.log2(below)) * (1 / LOG2E), LOWEST)
        k.store(g.log, r * job.heads + self.head, log, mask=mask & (self.feature == 0))

    def _slot(self, worker, slot):
        """Index in `parts` of this lane's part of the first (slot 0) or the last row of a warp."""
        return (((self.before + worker) * 2 + slot) * 32 + self.k.lane) * (2 + self.job.each)

    def _store_part(self, slot, r, state, mask):
        at = self._slot(self.worker, slot)
        for j, v in enumerate(state):
            self.k.store(self.g.parts, at + j, v, mask=mask)

    def _load_part(self, worker, slot):
        at = self._slot(worker, slot)
        many = 2 + self.job.each
        return [self.k.load(self.g.parts, at + j, cache="fresh") for j in range(many)]

    def _finish(self, sums):
        """Takes the sums over all entries of the warp."""

    def _settle(self, *rows):
        """Combines the parts of cut rows; the last warp of a row to arrive does it."""
        k, g = self.k, self.g
        k.fence()
        k.sync_warp()
        for r, mask in rows:

            def one(r=r):
                begin, end = (k.load(g.indptr, r + j, cache="nc") for j in range(2))
                head, tail = (r + begin) // self.piece, (r + end - 1) // self.piece
                at = CONTROL_WORDS + self.before + head
                count = k.reserve(g.control, at, k.const(1))
                k.fence()

                def join():
                    more = lambda p, *s: self._joined(s, self._load_part(p, 0))  # noqa: E731
                    state = k.for_(head + 1, tail + 1, 1, more, *self._load_part(head, 1))
                    self._store(r, state, k.const(True, "i1"))

                k.if_(count == tail - head, join)

            k.if_(mask, one)
