"""Direction-optimising breadth-first search of any graph, in one launch.

State. visited: one bit a vertex, two copies. A push level claims bits in the current copy by atomic OR; a pull level
reads the current copy, which nobody writes meanwhile, writes the other and they swap. A pull needs no bitmap of
the frontier: the visited neighbours of an unvisited vertex can only be in the newest level.
Frontier of a push level: a queue of edge ranges (start, end, vertex, -), at most `span` edges each, so no hub
binds one warp; two queues take turns. A warp takes up to 32 ranges and walks their edges 32 at a time.

Direction (Beamer, Asanovic, Patterson 2012): pull when frontier edges * alpha > edges of the unvisited vertices (taken as
nnz * unvisited / n), push again when the frontier has fewer than n / beta vertices; its queue is then
collected from the two copies of the bitmap. Pull work is split by degree: every unvisited vertex probes its
first 4 neighbours (one 16-byte load from `first` when prepared, most find their parent there), then each lane up to 32 more,
8 at a time, then the warp together takes the vertices that are left, 128 neighbours at a time.
Frontiers of at most `solo_edges` edges are pushed by program 0 alone, level after level, without grid barriers.

Traffic of a pull level: n / 4 bytes of bits, 16 bytes of `first` and 1 to 4 bit tests from L1/L2 for an unvisited vertex,
4 bytes of level for a found one, no atomics. Of a push level: 4 bytes and one bit test an edge, one atomic and
16 bytes of queue a new vertex. A grid barrier with its counters: 1.5 us.
"""

SLOT = 40  # control words 40..55: 4 rotating groups of (ranges, vertices, edges, -) of the next frontier
RESULT = 56  # control words 56..61: what program 0 reports after working alone
UNROLL = 4  # bitmap words a warp pulls for at once
LANE_PROBES, TOGETHER = 32, 4  # neighbours a lane probes alone; so many lanes left: the warp helps


def body(k, c, graph, state):
    """The search; returns (number of levels, ok)."""
    n, control = c.n, state.control
    sums = k.shared(16)  # 4 rotating groups of (ranges, vertices, edges, -)
    source = k.load(graph.source, 0)
    valid = (source >= 0) & (source < n)
    targets = [k.load(graph.targets, j) for j in range(c.targets)]
    known = [(t >= 0) & (t < n) for t in targets]
    targets = [k.where(ok, t, 0) for t, ok in zip(targets, known, strict=True)]
    start = k.load(graph.indptr, source, mask=valid)
    end = k.load(graph.indptr, source + 1, mask=valid)
    _initialise(k, c, graph, state, source, valid, start, end)
    k.store(sums, k.thread, 0, mask=k.thread < 16)
    (ok,) = k.grid_barrier(control)
    workers = k.programs * k.threads // 32
    worker = k.warp * k.programs + k.program

    def stopped(level, vertices, half):
        if c.stop is None:
            return k.const(0)
        word = [k.load(state.visited, half * c.words + k.shr(t, 5), cache="fresh") for t in targets]
        reached = tuple(
            (k.shr(w, t & 31) & 1 != 0) & there for w, t, there in zip(word, targets, known, strict=True)
        )
        return k.cast(k.const(c.stop(level, reached, vertices == 0), "i1"), "i32")

    def push_level(level, ranges, vertices, edges, seen, pulling, half, cur, done, ok, turn):
        slot = SLOT + 4 * (turn & 3)
        _push(k, c, graph, state, (level, ranges, half, cur), (worker, workers), (control, slot), sums)
        ok, ranges, vertices, edges = k.grid_barrier(
            control, [(control, slot), (control, slot + 1), (control, slot + 2)],
            [(sums, 1, control, slot + 1), (sums, 2, control, slot + 2)],
        )  # fmt: skip
        done = stopped(level + 1, vertices, half)
        return level + 1, ranges, vertices, edges, seen + vertices, 0, half, cur ^ 1, done, ok

    def solo_levels(level, ranges, vertices, edges, seen, pulling, half, cur, done, ok, turn):
        def one(level, ranges, vertices, edges, seen, cur, done, turn):
            now, after = 4 * (turn & 3), 4 * ((turn + 1) & 3)
            k.store(sums, after + k.thread, 0, mask=k.thread < 4)
            job = (level, ranges, half, cur)
            _push(k, c, graph, state, job, (k.warp, k.threads // 32), (sums, now), sums, now)
            k.sync()
            ranges, vertices, edges = (k.load(sums, now + j) for j in range(3))
            done = stopped(level + 1, vertices, half)
            return level + 1, ranges, vertices, edges, seen + vertices, cur ^ 1, done, turn + 1

        def alone():
            out = k.while_(
                lambda level, ranges, vertices, edges, *rest: (
                    (vertices > 0) & (edges <= c.solo_edges) & (rest[2] == 0)
                ),
                one, level, ranges, vertices, edges, seen, cur, 0, 0,
            )  # fmt: skip
            for j, word in enumerate(out[:-1]):
                k.store(control, RESULT + j, word, mask=k.thread == 0)
            k.sync()
            k.store(sums, k.thread, 0, mask=k.thread < 16)

        k.if_(k.program == 0, alone)
        words = k.grid_barrier(control, [(control, RESULT + j) for j in range(7)])
        ok, level, ranges, vertices, edges, seen, cur, done = words
        return level, ranges, vertices, edges, seen, 0, half, cur, done, ok

    def pull_level(level, ranges, vertices, edges, seen, pulling, half, cur, done, ok, turn):
        slot = SLOT + 4 * (turn & 3)
        _pull(k, c, graph, state, level, half, (worker, workers), sums)
        ok, vertices = k.grid_barrier(
            control, [(control, slot + 1)], [(sums, 1, control, slot + 1)]
        )  # fmt: skip
        half = half ^ 1
        done = stopped(level + 1, vertices, half)

        def collect():
            _collect(k, c, graph, state, half, cur ^ 1, (worker, workers), (control, slot), sums)
            ok, ranges, edges = k.grid_barrier(
                control, [(control, slot), (control, slot + 2)], [(sums, 2, control, slot + 2)]
            )
            return ranges, edges, 0, ok

        few = (vertices > 0) & (vertices * c.beta < n) & (done == 0)
        ranges, edges, pulling, ok = k.if_(few, collect, 0, c.solo_edges + 1, 1, ok)
        return level + 1, ranges, vertices, edges, seen + vertices, pulling, half, cur ^ 1, done, ok

    def step(*carry):
        *carry, turn = carry
        # nobody reads group turn + 2 (last read before the previous barrier) or adds to it (after the next one)
        k.store(control, SLOT + 4 * ((turn + 2) & 3) + k.thread, 0, mask=(k.program == 0) & (k.thread < 4))
        ranges, vertices, edges, seen, pulling = carry[1:6]
        if c.pull:
            unvisited = k.cast(n - seen, "f32") * (c.nnz / n)
            pulling = (pulling == 1) | (k.cast(edges, "f32") * c.alpha > unvisited) & (edges > c.solo_edges)
        else:
            pulling = k.const(False, "i1")
        small = ~pulling & (edges <= c.solo_edges)
        out = tuple(carry)
        if c.pull:
            out = k.if_(pulling, lambda: pull_level(*carry, turn), *out)
        out = k.if_(small, lambda: solo_levels(*carry, turn), *out)
        out = k.if_(~pulling & ~small, lambda: push_level(*carry, turn), *out)
        return *out, turn + 1

    one = k.cast(valid, "i32")
    ranges = (end - start + (c.span - 1)) // c.span
    out = k.while_(
        lambda *carry: (carry[2] > 0) & (carry[8] == 0) & (carry[9] == 1),
        step, 0, ranges, one, end - start, one, 0, 0, 0, stopped(k.const(0), one, k.const(0)), ok, 0,
    )  # fmt: skip
    return out[0] + k.cast(out[2] > 0, "i32"), out[9]


def _spread(k, size, f):
    """f(i) for i = 0 .. size - 1 over all threads of all programs."""
    k.for_(k.program * k.threads + k.thread, size, k.programs * k.threads, f)


def _initialise(k, c, graph, state, source, valid, start, end):
    def clear(i):
        k.store(state.levels, i, k.where((i == source) & valid, 0, -1))
        if c.parents:
            k.store(state.parents, i, k.where((i == source) & valid, source, -1))

    def bits(w):
        skip = 0 if graph.isolated is None else k.load(graph.isolated, w, cache="nc")
        mine = k.where(valid & (w == k.shr(source, 5)), k.bit(source), 0)
        k.store(state.visited, w, mine | skip)

    def item(i):
        at = start + i * c.span
        k.store_vec(state.queue, i * 4, (at, k.minimum(at + c.span, end), source, 0))

    _spread(k, c.n, clear)
    _spread(k, c.words, bits)
    _spread(k, (end - start + (c.span - 1)) // c.span, item)


def _append(k, c, state, cur, tail, won, start, end, vertex):
    """Puts the edge ranges of the vertices that won into the next queue; all lanes of the warp take part."""
    parts = k.where(won, (end - start + (c.span - 1)) // c.span, 0)
    upto, total = k.warp_scan(parts)

    def put():
        base = k.shfl(k.atomic("add", *tail, total, mask=k.lane == 0), 0)
        at = (cur ^ 1) * c.capacity + base + upto - parts
        first = (start, k.minimum(end, start + c.span), vertex, 0)
        k.store_vec(state.queue, at * 4, first, mask=parts > 0)

        def long(left):
            lane = k.ctz(left)
            count, s, e, v, o = (k.shfl(x, lane) for x in (parts, start, end, vertex, at))

            def one(j):
                b = s + j * c.span
                k.store_vec(state.queue, (o + j) * 4, (b, k.minimum(e, b + c.span), v, 0))

            k.for_(k.lane + 1, count, 32, one)
            return left & (left - 1)

        k.while_(lambda left: left != 0, long, k.ballot(parts > 1))

    k.if_(total > 0, put)


def _push(k, c, graph, state, job, crew, tail, sums, group=0):
    """Expands the ranges of the current queue; claims, levels, parents, and the next queue."""
    level, ranges, half, cur = job
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
            _append(k, c, state, cur, tail, new, s, t, v)
            return found + k.cast(new, "i32"), edges + k.where(new, t - s, 0)

        return k.for_(0, total, 32, stride, found, edges)

    found, edges = k.for_(worker * each, ranges, workers * each, chunk, 0, 0)
    found, edges = k.warp_sum(found), k.warp_sum(edges)
    k.reduce("add", sums, group + 1, found, mask=(k.lane == 0) & (found != 0))
    k.reduce("add", sums, group + 2, edges, mask=(k.lane == 0) & (edges != 0))


def _collect(k, c, graph, state, half, into, crew, tail, sums):
    """Makes the queue of the vertices that the last pull level found: new bits = current copy without the other."""
    worker, workers = crew

    def word(w, edges):
        new = k.load(state.visited, half * c.words + w) & ~k.load(state.visited, (half ^ 1) * c.words + w)

        def some():
            v, mine = w * 32 + k.lane, k.shr(new, k.lane) & 1 != 0
            s = k.load(graph.indptr, v, mask=mine, cache="nc")
            t = k.load(graph.indptr, v + 1, mask=mine, cache="nc")
            _append(k, c, state, into ^ 1, tail, mine, s, t, v)
            return (edges + t - s,)

        return k.if_(new != 0, some, edges)

    (edges,) = k.for_(worker, c.words, workers, word, 0)
    edges = k.warp_sum(edges)
    k.reduce("add", sums, 2, edges, mask=(k.lane == 0) & (edges != 0))


def _pull(k, c, graph, state, level, half, crew, sums):
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

    def words(w0, count):
        groups = []
        for u in range(UNROLL):
            w = w0 + u
            old = k.load(state.visited, here + w, mask=w < c.words, other=-1)
            v = w * 32 + k.lane
            groups.append((w, old, v, (k.shr(old, k.lane) & 1 == 0) & k.below(v, c.n)))
        near = [first_four(v, need) for _, _, v, need in groups]
        hits = [[visited(x) for x in four] for four in near]
        for (w, old, v, need), four, hit in zip(groups, near, hits, strict=True):
            found, parent = hit[0] | hit[1] | hit[2] | hit[3], four[3]
            for j in (2, 1, 0):
                parent = k.where(hit[j], four[j], parent)
            rest = need & ~found & k.below(four[3], c.n)
            found, parent = k.if_(
                k.any(rest),
                lambda v=v, rest=rest, found=found, parent=parent: _pull_rest(
                    k, c, graph, visited, v, rest, found, parent
                ),
                found, parent,
            )  # fmt: skip
            new = k.ballot(found)
            k.store(state.visited, there + w, old | new, mask=(k.lane == 0) & (w < c.words))
            k.store(state.levels, v, level + 1, mask=found)
            if c.parents:
                k.store(state.parents, v, parent, mask=found)
            count = count + k.popc(new)
        return (count,)

    (count,) = k.for_(worker * UNROLL, c.words, workers * UNROLL, words, 0)
    k.reduce("add", sums, 1, count, mask=(k.lane == 0) & (count != 0))


def _pull_rest(k, c, graph, visited, v, rest, found, parent):
    """The neighbours after the fourth: by lanes while many vertices are left, then by the warp, one vertex at a time."""
    begin = k.load(graph.in_indptr, v, mask=rest, cache="nc") + 4
    end = k.load(graph.in_indptr, v + 1, mask=rest, cache="nc")

    def searching(p, found):
        return k.ballot(rest & ~found & (p < end))

    def probe(p, found, parent, tries):
        mask = rest & ~found
        near = [
            k.load(graph.in_indices, p + j, mask=mask & (p + j < end), other=c.n, cache="nc") for j in range(8)
        ]
        for x in near:
            hit = visited(x)
            parent = k.where(hit & ~found, x, parent)
            found = found | hit
        return p + 8, found, parent, tries + 8

    p, found, parent, _ = k.while_(
        lambda p, found, parent, tries: (k.popc(searching(p, found)) > TOGETHER) & (tries < LANE_PROBES),
        probe, begin, found, parent, 0,
    )  # fmt: skip

    def one_vertex(left, found, parent):
        lane = k.ctz(left)
        at, stop = k.shfl(p, lane), k.shfl(end, lane)

        def stretch(at, who):
            near = [k.load(graph.in_indices, at + 32 * j + k.lane, mask=at + 32 * j + k.lane < stop,
                           other=c.n, cache="nc") for j in range(4)]  # fmt: skip
            for x in near:
                hits = k.ballot(visited(x))
                who = k.where((who < 0) & (hits != 0), k.shfl(x, k.ctz(hits | (1 << 31))), who)
            return at + 128, who

        _, who = k.while_(lambda at, who: (at < stop) & (who < 0), stretch, at, -1)
        mine = (k.lane == lane) & (who >= 0)
        return left & (left - 1), found | mine, k.where(mine, who, parent)

    _, found, parent = k.while_(
        lambda left, found, parent: left != 0, one_vertex, searching(p, found), found, parent
    )
    return found, parent
