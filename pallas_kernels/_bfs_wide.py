"""Direction-optimising breadth-first search of any graph, in one launch.

State. visited: one bit a vertex, two copies. A push level claims bits in the current copy by atomic OR; a pull level
reads the current copy, which nobody writes meanwhile, writes the other and they swap. A pull needs no bitmap of
the frontier: the visited neighbours of an unvisited vertex can only be in the newest level.
Frontier of a push level: a queue of edge ranges (start, end, vertex, -), at most `span` edges each, so no hub
binds one warp; two queues take turns. A warp takes up to 32 ranges and walks their edges 32 at a time.

Direction (Beamer, Asanovic, Patterson 2012): pull when frontier edges * alpha > edges of the unvisited vertices (taken as
nnz * unvisited / n) and enough of them, push again when the frontier has fewer than n / beta vertices and fewer than an
eighth of the unvisited ones. A push level makes the next queue unless a pull is likely to follow (frontier edges times
the mean degree decide); a queue that is missing is collected from the levels. Pull work is split by degree: every unvisited vertex probes its
first 4 neighbours (one 16-byte load from `first` when prepared, most find their parent there), then each lane up to
`lane_probes` more, 4 at a time; what is left goes to a list in shared memory, in stretches of at most 1024 neighbours that the
warps of the program share, 128 neighbours at a time.
Frontiers of at most `solo_edges` edges are pushed by program 0 alone, level after level, without grid barriers.

Traffic of a pull level: n / 4 bytes of bits, 16 bytes of `first` and 1 to 4 bit tests from L1/L2 for an unvisited vertex,
4 bytes of level for a found one, no atomics. Of a push level: 4 bytes and one bit test an edge, one atomic and
16 bytes of queue a new vertex. A grid barrier with its counters: 1.5 us.
"""

import functools
import operator

SLOT = 40  # control words 40..55: 4 rotating groups of (ranges, vertices, edges, -) of the next frontier
ISOLATED = 63  # control word: number of vertices without incoming edge
RESULT = 56  # control words 56..61: what program 0 reports after working alone
STRETCH = 1024  # neighbours of a vertex that one warp searches
FEW_LEFT = 8  # stay with pull while the unvisited vertices are at most so many times the frontier
OWN_RANGES = 4  # ranges of a vertex its lane queues itself, the others are queued by the warp


def body(k, c, graph, state):
    """The search; returns (number of levels, ok)."""
    n, control = c.n, state.control
    state.sums = k.shared(16)  # 4 rotating groups of (ranges, vertices, edges, -)
    state.buffer = k.shared(4 * c.buffer)
    source = k.load(graph.source, 0)
    valid = (source >= 0) & (source < n)
    targets = [k.load(graph.targets, j) for j in range(c.targets)]
    known = [(t >= 0) & (t < n) for t in targets]
    targets = [k.where(ok, t, 0) for t, ok in zip(targets, known, strict=True)]
    start = k.load(graph.indptr, source, mask=valid)
    end = k.load(graph.indptr, source + 1, mask=valid)
    if c.trace:
        state.started = k.clock()
        k.store(state.summary, 2 + k.thread, -1, mask=(k.program == 0) & (k.thread < 8 * c.trace))
    _initialise(k, c, graph, state, source, valid, start, end)
    ok, isolated = k.grid_barrier(control, [(control, ISOLATED)], [(state.sums, 1, control, ISOLATED)])
    crew = (k.warp * k.programs + k.program, k.programs * k.threads // 32)

    def stopped(level, vertices, half):
        if c.stop is None:
            return k.const(0)
        word = [k.load(state.visited, half * c.words + k.shr(t, 5), cache="fresh") for t in targets]
        reached = tuple(
            (k.shr(w, t & 31) & 1 != 0) & there for w, t, there in zip(word, targets, known, strict=True)
        )
        return k.cast(k.const(c.stop(level, reached, vertices == 0), "i1"), "i32")

    def barrier(slot):
        """(ok, ranges, vertices, edges) that all programs found together."""
        adds = [(state.sums, j, control, slot + j) for j in (1, 2)]
        return k.grid_barrier(control, [(control, slot + j) for j in range(3)], adds)

    def push_level(s, slot):
        # the queue is only made if the next level is likely to be pushed too
        growth = max(c.nnz / n, 1.0)
        queue = ~_prefer_pull(k, c, s.edges, s.seen, growth) if c.pull else k.const(True, "i1")
        tail = _Tail(k, c, state, s.cur ^ 1, slot)
        _push(k, c, graph, state, s, crew, tail, queue)
        tail.flush()
        s.ok, s.ranges, s.vertices, s.edges = barrier(slot)
        s.queued, s.cur = k.cast(queue, "i32"), s.cur ^ 1

    def pull_level(s, slot):
        _pull(k, c, graph, state, s.level, s.half, crew)
        s.ok, _, s.vertices, _ = barrier(slot)
        unvisited = n - s.seen - s.vertices
        stay = (s.vertices * c.beta >= n) | (unvisited <= s.vertices * FEW_LEFT)
        s.half, s.edges, s.queued, s.pulling = s.half ^ 1, 0, 0, k.cast(stay, "i32")

    def solo_levels(s, slot):
        def one(level, ranges, vertices, edges, seen, cur, done, turn):
            now, after = 4 * (turn & 3), 4 * ((turn + 1) & 3)
            k.store(state.sums, after + k.thread, 0, mask=k.thread < 4)
            t = _State(level=level, ranges=ranges, half=s.half, cur=cur)
            _push(k, c, graph, state, t, (k.warp, k.threads // 32), _SoloTail(k, c, state, cur ^ 1, now), True, now)
            k.sync()
            ranges, vertices, edges = (k.load(state.sums, now + j) for j in range(3))
            done = stopped(level + 1, vertices, s.half)
            return level + 1, ranges, vertices, edges, seen + vertices, cur ^ 1, done, turn + 1

        def alone():
            out = k.while_(
                lambda level, ranges, vertices, edges, seen, cur, done, turn: (
                    (vertices > 0) & (edges <= c.solo_edges) & (done == 0)
                ),
                one, s.level, s.ranges, s.vertices, s.edges, s.seen, s.cur, 0, 0,
            )  # fmt: skip
            for j, word in enumerate(out[:-1]):
                k.store(control, RESULT + j, word, mask=k.thread == 0)
            k.sync()
            k.store(state.sums, k.thread, 0, mask=k.thread < 16)

        k.if_(k.program == 0, alone)
        words = k.grid_barrier(control, [(control, RESULT + j) for j in range(7)])
        s.ok, s.level, s.ranges, s.vertices, s.edges, s.seen, s.cur, s.done = words

    def collect(s, slot):
        tail = _Tail(k, c, state, s.cur, slot)
        _collect(k, c, graph, state, s.level, crew, tail)
        tail.flush()
        s.ok, s.ranges, _, s.edges = barrier(slot)
        s.queued = 1

    def counted(level):
        """A level of all programs, with what follows every one of them."""

        def run(s, slot):
            level(s, slot)
            s.level, s.seen = s.level + 1, s.seen + s.vertices
            s.done = stopped(s.level, s.vertices, s.half)

        return run

    def step(*carry):
        s = _State(**dict(zip(_State.names, carry, strict=True)))
        slot = SLOT + 4 * (s.turn & 3)
        # nobody reads group turn + 2 (last read before the previous barrier) or adds to it (after the next one)
        k.store(control, SLOT + 4 * ((s.turn + 2) & 3) + k.thread, 0, mask=(k.program == 0) & (k.thread < 4))
        if c.trace:
            _trace(k, c, state, s)
        pulling = k.const(False, "i1")
        if c.pull:
            pulling = (s.pulling == 1) | _prefer_pull(k, c, s.edges, s.seen)
        gather = ~pulling & (s.queued == 0)
        small = ~pulling & ~gather & (s.edges <= c.solo_edges)
        actions = [(small, solo_levels), (~pulling & ~gather & ~small, counted(push_level))]
        if c.pull:
            actions += [(pulling, counted(pull_level)), (gather, collect)]
        for when, action in actions:
            s = _branch(k, when, action, s, slot)
        return tuple(s.values()[:-1]) + (s.turn + 1,)

    one = k.cast(valid, "i32")
    ranges = (end - start + (c.span - 1)) // c.span
    first = _State(
        level=0, ranges=ranges, vertices=one, edges=end - start, seen=one + isolated, pulling=0, queued=1, half=0, cur=0,
        done=stopped(k.const(0), one, k.const(0)), ok=ok, turn=0,
    )  # fmt: skip
    names = _State.names
    out = k.while_(
        lambda *s: (s[names.index("vertices")] > 0) & (s[names.index("done")] == 0) & (s[names.index("ok")] == 1),
        step, *first.values(),
    )  # fmt: skip
    last = _State(**dict(zip(names, out, strict=True)))
    return last.level + k.cast(last.vertices > 0, "i32"), last.ok


class _State:
    """What the level loop carries, the same in all programs; edges is 0 (unknown) after a pull."""

    names = ("level", "ranges", "vertices", "edges", "seen", "pulling", "queued", "half", "cur", "done", "ok", "turn")

    def __init__(self, **values):
        self.__dict__.update(values)

    def values(self):
        return [getattr(self, name) for name in self.names]


def _branch(k, when, action, s, slot):
    """The state after `action` where `when` holds, else as it was."""

    def run():
        t = _State(**s.__dict__)
        action(t, slot)
        return tuple(t.values())

    return _State(**dict(zip(_State.names, k.if_(when, run, *s.values()), strict=True)))


def _prefer_pull(k, c, edges, seen, growth=1.0):
    """Whether a frontier of edges * growth edges is better pulled for."""
    edges = k.cast(edges, "f32") * growth
    return (edges > float(c.pull_edges)) & (edges * c.alpha > k.cast(c.n - seen, "f32") * (c.nnz / c.n))


def _trace(k, c, state, s):
    """Clock and state at the start of a step, for tuning."""
    here = (k.program == 0) & (k.thread == 0) & (s.turn < c.trace)
    row = (s.level, s.ranges, s.vertices, s.edges, s.pulling, s.queued, k.clock(), state.started)
    for j, x in enumerate(row):
        k.store(state.summary, 2 + 8 * s.turn + j, x, mask=here)


def _spread(k, size, f, *carry):
    """carry = f(i, *carry) for i = 0 .. size - 1 over all threads of all programs."""
    return k.for_(k.program * k.threads + k.thread, size, k.programs * k.threads, f, *carry)


def _initialise(k, c, graph, state, source, valid, start, end):
    def clear(i):
        k.store(state.levels, i, k.where((i == source) & valid, 0, -1))
        if c.parents:
            k.store(state.parents, i, k.where((i == source) & valid, source, -1))

    def bits(w, count):
        skip = 0 if graph.isolated is None else k.load(graph.isolated, w, cache="nc")
        mine = k.where(valid & (w == k.shr(source, 5)), k.bit(source), 0)
        k.store(state.visited, w, mine | skip)
        return count if graph.isolated is None else count + k.popc(skip)

    def item(i):
        at = start + i * c.span
        k.store_vec(state.queue, i * 4, (at, k.minimum(at + c.span, end), source, 0))

    _spread(k, c.n, clear)
    _spread(k, (end - start + (c.span - 1)) // c.span, item)
    k.store(state.sums, k.thread, 0, mask=k.thread < 16)
    k.sync()
    (count,) = _spread(k, c.words, bits, 0)
    k.reduce("add", state.sums, 1, count, mask=count != 0)


class _SoloTail:
    """Where one program alone puts edge ranges: the queue in global memory, its length in shared memory."""

    def __init__(self, k, c, state, into, word):
        self.k, self.c, self.state, self.word = k, c, state, word
        self.base = into * c.capacity

    def reserve(self, total):
        """Position of the first of `total` ranges of this warp (valid in every lane)."""
        k = self.k
        return k.shfl(k.atomic("add", self.state.sums, self.word, total, mask=k.lane == 0), 0)

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.state.queue, (self.base + at) * 4, entry, mask=mask)


class _Tail(_SoloTail):
    """Where all programs do: each buffers its ranges in shared memory and appends them at the end of the level.

    One atomic a program on the queue's length instead of one a warp: atomics on one word take 1/1.7 ns each.
    Positions beyond the buffer are given out from the queue's length at once (negative until `store` decodes them).
    """

    def __init__(self, k, c, state, into, slot):
        super().__init__(k, c, state, into, 0)
        self.slot = slot

    def reserve(self, total):
        k, c, state = self.k, self.c, self.state
        at = super().reserve(total)

        def beyond():
            # the rest of the buffer stays empty: ranges of no edges
            def blank(i):
                k.store_vec(state.buffer, i * 4, (0, 0, 0, 0))

            k.for_(at + k.lane, c.buffer, 32, blank)
            return ~k.shfl(k.atomic("add", state.control, self.slot, total, mask=k.lane == 0), 0)

        return k.if_(at + total > c.buffer, beyond, at)[0]

    def store(self, at, entry, mask=None):
        k = self.k
        mask = k.const(True, "i1") if mask is None else mask
        k.store_vec(self.state.buffer, at * 4, entry, mask=mask & (at >= 0))
        k.store_vec(self.state.queue, (self.base + ~at) * 4, entry, mask=mask & (at < 0))

    def flush(self):
        k, c, state = self.k, self.c, self.state
        k.sync()
        count = k.minimum(k.load(state.sums, 0), c.buffer)

        def copy():
            mine = k.thread == 0
            base = k.atomic("add", state.control, self.slot, count, mask=mine)
            k.store(state.sums, 3, base, mask=mine)
            k.sync()
            k.store(state.sums, 0, 0, mask=mine)
            base = self.base + k.load(state.sums, 3)
            k.for_(
                k.thread, count, k.threads,
                lambda i: k.store_vec(state.queue, (base + i) * 4, k.load_vec(state.buffer, i * 4, 4)),
            )  # fmt: skip

        k.if_(count > 0, copy)


def _parts(span, start, end):
    return (end - start + (span - 1)) // span


def _append(k, span, tail, won, start, end, vertex):
    """Cuts start .. end of the lanes that won into ranges for `tail`; all lanes of the warp take part."""
    parts = k.where(won, _parts(span, start, end), 0)
    upto, total = k.warp_scan(parts)
    k.if_(total > 0, lambda: _write(k, span, tail, tail.reserve(total), parts, upto - parts, start, end, vertex))


def _write(k, span, tail, base, parts, before, start, end, vertex):
    """Stores the ranges of every lane at base + before ...; negative bases (beyond the buffer) run downwards."""

    def store(j, s, e, v, offset, mask=None):
        at, b = k.where(base < 0, base - offset - j, base + offset + j), s + j * span
        tail.store(at, (b, k.minimum(e, b + span), v, 0), mask)

    k.for_(0, k.minimum(parts, OWN_RANGES), 1, lambda j: store(j, start, end, vertex, before))

    def long(left):
        lane = k.ctz(left)
        count, s, e, v, offset = (k.shfl(x, lane) for x in (parts, start, end, vertex, before))
        k.for_(k.lane + OWN_RANGES, count, 32, lambda j: store(j, s, e, v, offset))
        return left & (left - 1)

    k.while_(lambda left: left != 0, long, k.ballot(parts > OWN_RANGES))


def _push(k, c, graph, state, s, crew, tail, queue, group=0):
    """Expands the ranges of the current queue; claims, levels, parents, and (where `queue`) the next queue."""
    level, ranges, half, cur, sums = s.level, s.ranges, s.half, s.cur, state.sums
    worker, workers = crew
    each = k.minimum(k.maximum((ranges + (workers - 1)) // workers, 1), 32)

    def chunk(i0, found, edges):
        mine = (k.lane < each) & (i0 + k.lane < ranges)
        start, end, vertex, _ = k.load_vec(
            state.queue, (cur * c.capacity + i0 + k.lane) * 4, 4, mask=mine, cache="fresh"
        )
        upto, total = k.warp_scan(end - start)
        before = upto - (end - start)

        def stride(e0, found, edges):
            e = e0 + k.lane
            owner = k.const(0)
            for d in (16, 8, 4, 2, 1):
                owner = k.where(k.shfl(before, owner + d) <= e, owner + d, owner)
            at, parent = k.shfl(start - before, owner) + e, k.shfl(vertex, owner)
            v = k.load(graph.indices, at, mask=e < total, other=c.n, cache="nc")
            there = k.below(v, c.n)
            word = half * c.words + k.shr(v, 5)
            new = there & (k.load(state.visited, word, mask=there, other=-1) & k.bit(v) == 0)
            s = k.load(graph.indptr, v, mask=new, cache="nc")
            t = k.load(graph.indptr, v + 1, mask=new, cache="nc")
            new = new & (k.atomic("or", state.visited, word, k.bit(v), mask=new) & k.bit(v) == 0)
            k.store(state.levels, v, level + 1, mask=new)
            if c.parents:
                k.store(state.parents, v, parent, mask=new)
            k.if_(queue, lambda: _append(k, c.span, tail, new, s, t, v))
            return found + k.cast(new, "i32"), edges + k.where(new, t - s, 0)

        return k.for_(0, total, 32, stride, found, edges)

    found, edges = k.for_(worker * each, ranges, workers * each, chunk, 0, 0)
    found, edges = k.warp_sum(found), k.warp_sum(edges)
    k.reduce("add", sums, group + 1, found, mask=(k.lane == 0) & (found != 0))
    k.reduce("add", sums, group + 2, edges, mask=(k.lane == 0) & (edges != 0))


def _collect(k, c, graph, state, level, crew, tail):
    """Makes the queue of the vertices of `level` from the levels: after a pull, or a push that made none."""
    worker, workers = crew

    def stretch(v0, edges):
        v = [v0 + 32 * j + k.lane for j in range(4)]
        mine = [k.load(state.levels, x, mask=k.below(x, c.n), other=-1) == level for x in v]

        def some():
            start = [k.load(graph.indptr, x, mask=m, cache="nc") for x, m in zip(v, mine, strict=True)]
            end = [k.load(graph.indptr, x + 1, mask=m, cache="nc") for x, m in zip(v, mine, strict=True)]
            for x, m, s, t in zip(v, mine, start, end, strict=True):
                k.if_(k.any(m), lambda x=x, m=m, s=s, t=t: _append(k, c.span, tail, m, s, t, x))
            return sum((t - s for s, t in zip(start, end, strict=True)), edges)

        return k.if_(k.any(functools.reduce(operator.or_, mine)), some, edges)

    (edges,) = k.for_(worker * 128, c.n, workers * 128, stretch, 0)
    edges = k.warp_sum(edges)
    k.reduce("add", state.sums, 2, edges, mask=(k.lane == 0) & (edges != 0))


def _pull(k, c, graph, state, level, half, crew):
    """Every unvisited vertex looks for a visited neighbour; found ones get their bit in the other copy."""
    worker, workers = crew
    here, there = half * c.words, (half ^ 1) * c.words

    def visited(v, mask=None):
        inside = k.below(v, c.n) if mask is None else mask & k.below(v, c.n)
        return inside & (k.shr(k.load(state.visited, here + k.shr(v, 5), mask=inside), v & 31) & 1 != 0)

    def first_four(v, need):
        if graph.first is not None:
            return k.load_vec(graph.first, v * 4, 4, mask=need, other=c.n, cache="nc")
        s = k.load(graph.in_indptr, v, mask=need, cache="nc")
        e = k.load(graph.in_indptr, v + 1, mask=need, cache="nc")
        return [k.load(graph.in_indices, s + j, mask=need & (s + j < e), other=c.n, cache="nc") for j in range(4)]

    tail = _Leftovers(k, c, graph, state, visited, there, level)

    def words(w0, count):
        """One round of the program; all its warps take part, with words beyond the last masked out."""
        groups = []
        for u in range(c.unroll):
            w = w0 + u
            old = k.load(state.visited, here + w, mask=w < c.words, other=-1)
            v = w * 32 + k.lane
            groups.append((w, old, v, (k.shr(old, k.lane) & 1 == 0) & k.below(v, c.n)))
        near = [first_four(v, need) for _, _, v, need in groups]
        hits = [[visited(x) for x in four] for four in near]
        found, parent, rest = [], [], []
        for (_, _, _, need), four, hit in zip(groups, near, hits, strict=True):
            found.append(hit[0] | hit[1] | hit[2] | hit[3])
            parent.append(k.where(hit[0], four[0], k.where(hit[1], four[1], k.where(hit[2], four[2], four[3]))))
            rest.append(need & ~found[-1] & k.below(four[3], c.n))
        out = k.if_(
            k.any(functools.reduce(operator.or_, rest)),
            lambda: _pull_rest(k, c, graph, visited, tail, [g[2] for g in groups], rest, found, parent),
            *found, *parent,
        )  # fmt: skip
        for (w, old, v, _), found, parent in zip(groups, out[: c.unroll], out[c.unroll :], strict=True):
            new = k.ballot(found)
            k.store(state.visited, there + w, old | new, mask=(k.lane == 0) & (w < c.words))
            k.store(state.levels, v, level + 1, mask=found)
            if c.parents:
                k.store(state.parents, v, parent, mask=found)
            count = count + k.where(k.lane == 0, k.popc(new), 0)
        return count + tail.search()

    rounds = -(-c.words // (workers * c.unroll))
    (count,) = k.for_(0, rounds, 1, lambda r, count: words((r * workers + worker) * c.unroll, count), 0)
    k.reduce("add", state.sums, 1, count, mask=(k.lane == 0) & (count != 0))


def _pull_rest(k, c, graph, visited, tail, v, rest, found, parent):
    """The neighbours after the fourth of `unroll` vertices a lane: some by the lane, the others left to the program."""
    begin = [k.load(graph.in_indptr, x, mask=r, cache="nc") + 4 for x, r in zip(v, rest, strict=True)]
    end = [k.load(graph.in_indptr, x + 1, mask=r, other=-1, cache="nc") for x, r in zip(v, rest, strict=True)]

    def searching(tries, found):
        return [~f & (b + tries < e) for b, e, f in zip(begin, end, found, strict=True)]

    def probe(tries, *state):
        found, parent = list(state[: c.unroll]), list(state[c.unroll :])
        mask = searching(tries, found)
        near = [
            [k.load(graph.in_indices, begin[u] + tries + j, mask=mask[u] & (begin[u] + tries + j < end[u]),
                    other=c.n, cache="nc") for j in range(4)]
            for u in range(c.unroll)
        ]  # fmt: skip
        hits = [[visited(x) for x in four] for four in near]
        for u in range(c.unroll):
            for x, hit in zip(near[u], hits[u], strict=True):
                parent[u] = k.where(hit & ~found[u], x, parent[u])
                found[u] = found[u] | hit
        return tries + 4, *found, *parent

    def unfinished(tries, *state):
        return k.any(functools.reduce(operator.or_, searching(tries, state[: c.unroll])))

    tries, *out = k.while_(
        lambda tries, *state: (tries < c.lane_probes) & unfinished(tries, *state), probe, 0, *found, *parent
    )

    def leave():
        left = searching(tries, out[: c.unroll])
        parts = [
            k.where(m, _parts(STRETCH, b + tries, e), 0) for m, b, e in zip(left, begin, end, strict=True)
        ]
        scans = [k.warp_scan(p) for p in parts]
        total = sum((t for _, t in scans[1:]), scans[0][1])
        base = tail.reserve(total)
        room = base + total <= c.buffer

        def list_them():
            at = base
            for x, p, (upto, count), b, e in zip(v, parts, scans, begin, end, strict=True):
                k.if_(
                    count > 0,
                    lambda x=x, p=p, upto=upto, at=at, b=b, e=e: _write(
                        k, STRETCH, tail, at, p, upto - p, b + tries, e, x
                    ),
                )  # fmt: skip
                at = at + count

        def search_them():
            tail.blank(base)
            return k.while_(unfinished, probe, tries, *out)[1:]

        k.if_(room, list_them)
        return k.if_(~room, search_them, *out)

    return k.if_(unfinished(tries, *out), leave, *out)


class _Leftovers:
    """Stretches of neighbours that a pull level leaves to all warps of the program: (begin, end, vertex, -) in the buffer.

    So a vertex of many neighbours does not hold up one warp. Stretches that find no room are searched by their lanes.
    """

    def __init__(self, k, c, graph, state, visited, there, level):
        self.k, self.c, self.graph, self.state = k, c, graph, state
        self.visited, self.there, self.level = visited, there, level

    def reserve(self, total):
        return self.k.shfl(self.k.atomic("add", self.state.sums, 0, total, mask=self.k.lane == 0), 0)

    def store(self, at, entry, mask=None):
        self.k.store_vec(self.state.buffer, at * 4, entry, mask=mask)

    def blank(self, at):
        """Empties the list from `at` on, for a warp whose stretches found no room."""
        entry = (0, 0, 0, 0)
        self.k.for_(at + self.k.lane, self.c.buffer, 32, lambda i: self.store(i, entry))

    def claim(self, v, parent, mask):
        """Sets the bit of v in the next copy; its other stretches may have done so."""
        k = self.k
        word = self.there + k.shr(v, 5)
        won = mask & (k.atomic("or", self.state.visited, word, k.bit(v), mask=mask) & k.bit(v) == 0)
        k.store(self.state.levels, v, self.level + 1, mask=won)
        if self.c.parents:
            k.store(self.state.parents, v, parent, mask=won)
        return won

    def search(self):
        """All warps search what was left so far, 128 neighbours at a time; how many vertices this lane found."""
        k, c, state = self.k, self.c, self.state
        k.sync()
        total = k.minimum(k.load(state.sums, 0), c.buffer)

        def one(i, count):
            begin, end, v, _ = k.load_vec(state.buffer, i * 4, 4)
            word = k.load(state.visited, self.there + k.shr(v, 5), cache="fresh")
            begin = k.where(word & k.bit(v) == 0, begin, end)

            def stretch(at, who):
                here = [at + 32 * j + k.lane for j in range(4)]
                near = [k.load(self.graph.in_indices, x, mask=x < end, other=c.n, cache="nc") for x in here]
                for x, hit in zip(near, [self.visited(x) for x in near], strict=True):
                    hits = k.ballot(hit)
                    who = k.where((who < 0) & (hits != 0), k.shfl(x, k.ctz(hits | (1 << 31))), who)
                return at + 128, who

            _, who = k.while_(lambda at, who: (at < end) & (who < 0), stretch, begin, -1)
            return count + k.cast(self.claim(v, who, (k.lane == 0) & (who >= 0)), "i32")

        def some():
            (count,) = k.for_(k.warp, total, k.threads // 32, one, 0)
            k.sync()
            k.store(state.sums, 0, 0, mask=k.thread == 0)
            k.sync()
            return count

        return k.if_(total > 0, some, 0)[0]
