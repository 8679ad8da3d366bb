"""Breadth-first search of graphs of small degree (meshes, roads), whatever their diameter, in one
launch.

State. log: every reached vertex as (vertex, level, parent, -), in the order of discovery; the
frontier is its stretch start .. start + count - 1. visited: one bit a vertex. While one CTA works
alone, bits and frontier are in its shared memory and the log is only written; otherwise both are in
global memory (L2). At the end all CTAs write levels and parents from the log, which also undoes a
renumbering. A scattered store would cost a CTA that works alone as much as the rest of an
expansion; the coalesced stores of the log cost next to nothing. Adjacency: rows of `quads` times 4
slots: row v holds the neighbours of v, padded with n; a last slot below 0 is ~(quad that continues
this one), counted from the start of the table. A lane takes one quad of one vertex: 16 bytes in one
access, without row offsets.

A level of at most `solo_out` vertices is expanded by CTA 0 alone: no grid barrier, one CTA
barrier a level. Chain of dependent accesses a level: queue (shared) -> row (L2, 200 ns) -> bit
(shared atomic) -> place in the queue (ballots, one shared atomic a warp) -> barrier. Wider levels
are shared by all CTAs: the same chain through L2 (atomics 300 ns) and a grid barrier (1.1 us,
1.5 us with the counter read back).

Traffic: 4 w bytes of adjacency, 16 bytes of log written and read and 8 of results a vertex, one
atomic a stored entry. The bit is claimed by the atomic itself, so a vertex is logged once.

Measured (H200): a level of one CTA 0.84 us (luxembourg_osm, 120 vertices a level) to 1.17 us
(grid 1000x1000, 500), of which about 0.26 us is the row from L2 and 0.06 the barrier; the chain
above is 0.57 us, the rest is issuing its instructions from one warp. Wide frontiers of one CTA
are bound by the misses one multiprocessor can have in flight (0.8 rows/ns), hence small queues:
what shared memory leaves is L1. A level of all CTAs takes 3.4 us (delaunay 2^21), 1.5 of it the
barrier.
"""

# The primitives are methods of two subclasses, MLIR's dialects are generated: no static types.
# pyright: reportAttributeAccessIssue=false, reportCallIssue=false, reportArgumentType=false

TAIL = 40  # control words 40..43: lengths of the next frontier, in rotation
RESULT = 44  # control words 44..47: what CTA 0 reports after working alone


def body(k, c, graph, state):
    """The search itself; returns (number of levels, ok). `c` is the Config, the rest arrays of the
    kernel.
    """
    n, control = c.n, state.control
    source = k.load(graph.source, 0)
    valid = (source >= 0) & (source < n)
    targets = [k.load(graph.targets, j) for j in range(c.targets)]
    known = [(t >= 0) & (t < n) for t in targets]
    targets = [k.where(ok, t, 0) for t, ok in zip(targets, known, strict=True)]
    if graph.rank is not None:
        source = k.load(graph.rank, k.where(valid, source, 0))
        targets = [k.load(graph.rank, t) for t in targets]
    single, grid = SingleCTA(k, c, state), Grid(k, c, state)
    _initialise(k, c, state, source, valid)
    (ok,) = k.grid_barrier(control)

    def stopped(level, count, bits):
        if c.stop is None:
            return k.const(0)
        places = [place_of_bit(k, c, t) for t in targets]
        words = [k.load(bits, word, cache="fresh") for word, _ in places]
        reached = tuple(
            (word & bit != 0) & is_valid
            for word, (_, bit), is_valid in zip(words, places, known, strict=True)
        )
        return k.cast(k.const(c.stop(level, reached, count == 0), "i1"), "i32")

    def solo(level, start, count):
        """CTA 0: level after level until the frontier outgrows it, is empty or the search may
        stop.
        """
        single.enter(level, start, count)

        def one_level(level, start, count, done, turn):
            k.store(single.tails, (turn + 1) & 3, 0, mask=k.thread == 0)
            expand(k, c, graph, single, level, start, count, turn, (k.warp * 32, k.threads))
            k.sync()
            new = k.load(single.tails, turn & 3)
            return level + 1, start + count, new, stopped(level + 1, new, single.bits), turn + 1

        *out, _ = k.while_(
            lambda _, start, count, done, turn: (count > 0) & (count <= c.solo_out) & (done == 0),
            one_level,
            level,
            start,
            count,
            0,
            0,
        )
        single.leave(*out[:3])
        for j, word in enumerate(out):
            k.store(control, RESULT + j, word, mask=k.thread == 0)

    def step(level, start, count, done, ok, turn):
        # control word TAIL + (turn + 2) is free: it was last read before the previous barrier, and
        # is next written after the coming one
        k.store(control, TAIL + ((turn + 2) & 3), 0, mask=(k.cta == 0) & (k.thread == 0))

        def small():
            k.if_(k.cta == 0, lambda: solo(level, start, count))
            ok, *words = k.grid_barrier(control, [(control, RESULT + j) for j in range(4)])
            return *words, ok

        def large():
            first, stride = (k.warp * k.ctas + k.cta) * 32, k.threads * k.ctas
            expand(k, c, graph, grid, level, start, count, turn, (first, stride))
            ok, new = k.grid_barrier(control, [(control, TAIL + (turn & 3))])
            return level + 1, start + count, new, stopped(level + 1, new, state.visited), ok

        is_small = count <= c.solo_in
        out = k.if_(is_small, small, level, start, count, done, ok)
        out = k.if_(~is_small, large, *out)
        return *out, turn + 1

    count = k.cast(valid, "i32")
    level, start, count, _, ok, _ = k.while_(
        lambda level, start, count, done, ok, turn: (count > 0) & (done == 0) & (ok == 1),
        step,
        0,
        0,
        count,
        stopped(k.const(0), count, state.visited),
        ok,
        0,
    )
    _write_results(k, c, graph, state, start + count)
    return level + k.cast(count > 0, "i32"), ok


def expand(k, c, graph, place, level, start, count, turn, over):
    """Expands a frontier of `count` entries, this warp those from over[0] on in strides of over[1].

    place: where bits and frontier are, a `Grid` or a `SingleCTA`. turn selects the word that counts
    the next frontier.
    """

    def entries(i0):
        i = i0 + k.lane
        entry = i // c.quads
        vertex = place.entry(level, start, entry, entry < count)

        def one_quad(quad, meanwhile=lambda: None):
            near = k.load_vec(graph.adjacency, quad * 4, 4, mask=quad >= 0, other=c.n, cache="nc")
            meanwhile()
            won = claim(k, c, place.bits, near)
            place.append(near, won, level, start + count, vertex, turn)
            return k.where(near[3] < 0, ~near[3], -1)

        part = i - entry * c.quads
        quad = k.where(vertex >= 0, vertex * c.quads + part, -1)

        def record():
            place.record(start + entry, vertex, level, (vertex >= 0) & (part == 0))

        if c.linked:
            record()
            k.while_(lambda quad: k.any(quad >= 0), one_quad, quad)
        else:
            one_quad(quad, record)

    k.for_(over[0], count * c.quads, over[1], entries)


def place_of_bit(k, c, v):
    """(index of the word, mask) of the bit of v. In shared memory neighbouring vertices have
    neighbouring words, to avoid bank conflicts.
    """
    if c.shared_bits:
        bit = v // c.words
        return v - bit * c.words, k.const(1) << bit
    return k.shr(v, 5), k.bit(v)


def claim(k, c, bits, near):
    """For each of `near`: whether this thread set its bit (never for padding and links)."""
    is_valid = [k.below(v, c.n) for v in near]
    places = [place_of_bit(k, c, v) for v in near]
    if bits.space == "global" and c.pretest:
        olds = [
            k.load(bits, w, mask=t, other=-1, cache="fresh")
            for (w, _), t in zip(places, is_valid, strict=True)
        ]
        is_valid = [
            t & (old & bit == 0) for t, old, (_, bit) in zip(is_valid, olds, places, strict=True)
        ]
    olds = [
        k.atomic("or", bits, w, bit, mask=t) for (w, bit), t in zip(places, is_valid, strict=True)
    ]
    return [t & (old & bit == 0) for t, old, (_, bit) in zip(is_valid, olds, places, strict=True)]


def log_entry(k, c, state, at, v, level, parent, mask):
    entry = (v, level, parent, 0) if c.parents else (v, level)
    k.store_vec(state.log, at * c.entry, entry, mask=mask)


def _initialise(k, c, state, source, valid):
    def clear(i):
        k.store(state.levels, i, -1)
        if c.parents:
            k.store(state.parents, i, -1)

    word, bit = place_of_bit(k, c, source)
    k.spread(c.n, clear)
    k.spread(c.words, lambda w: k.store(state.visited, w, k.where(valid & (w == word), bit, 0)))
    log_entry(k, c, state, k.const(0), source, 0, source, (k.cta == 0) & (k.thread == 0))


def _write_results(k, c, graph, state, reached):
    """Levels and parents of all logged vertices, in the caller's numbering."""

    def old(v):
        return v if graph.order is None else k.load(graph.order, v, cache="nc")

    def result(i):
        v, level, *parent = k.load_vec(state.log, i * c.entry, c.entry, cache="fresh")
        v = old(v)
        k.store(state.levels, v, level)
        if c.parents:
            k.store(state.parents, v, old(parent[0]))

    k.spread(reached, result)


def _reserve(k, won, tail, slot):
    """(votes, total, base): ballots of `won` for each neighbour, their number of bits, and
    `base()`, which reserves so many places by word `slot` of `tail` and returns the first.
    """
    votes = [k.ballot(w) for w in won]
    total = sum((k.popc(b) for b in votes[1:]), k.popc(votes[0]))
    return votes, total, lambda: k.shfl(k.atomic("add", tail, slot, total, mask=k.lane == 0), 0)


def _each(k, near, won, votes, base, store):
    """store(position, vertex, mask) for every vertex with `won`."""
    for v, w, b in zip(near, won, votes, strict=True):
        store(base + k.lanes_below(b), v, w)
        base = base + k.popc(b)


class Grid:
    """All CTAs: bits and frontier in global memory."""

    def __init__(self, k, c, state):
        self.k, self.c, self.state, self.bits = k, c, state, state.visited

    def entry(self, level, start, i, is_valid):
        return self.k.load(
            self.state.log, (start + i) * self.c.entry, mask=is_valid, other=-1, cache="fresh"
        )

    def record(self, at, vertex, level, mask):
        """Nothing to do: `append` has logged the vertex."""

    def append(self, near, won, level, after, parent, turn):
        k, c, state = self.k, self.c, self.state

        def store(at, v, mask):
            log_entry(k, c, state, after + at, v, level + 1, parent, mask)
            k.prefetch(
                state.adjacency, v * (4 * c.quads), mask=mask
            )  # it arrives in L2 during the barrier
            if c.quads > 2:
                k.prefetch(state.adjacency, v * (4 * c.quads) + 4 * c.quads - 1, mask=mask)

        votes, total, base = _reserve(k, won, state.control, TAIL + (turn & 3))
        k.if_(total > 0, lambda: _each(k, near, won, votes, base(), store))


class SingleCTA:
    """CTA 0 works alone: bits (if they fit) and frontier in shared memory, two queues by the parity
    of the level.

    A queue holds (vertex, parent) pairs, or only vertices if no parents are asked for. They are
    logged when they are expanded, while their row is in flight: one store for each vertex instead
    of one for each slot of the row that found it. Word turn & 3 of `tails` counts the next queue.
    """

    def __init__(self, k, c, state):
        self.k, self.c, self.state = k, c, state
        self.width = 2 if c.parents else 1
        self.queues, self.tails = k.shared(2 * self.width * c.queue), k.shared(4)
        self.bits = k.shared(c.words) if c.shared_bits else state.visited

    def at(self, level, i):
        return ((level & 1) * self.c.queue + i) * self.width

    def entry(self, level, start, i, is_valid):
        vertex, *self.parent = self.k.load_vec(
            self.queues, self.at(level, i), self.width, mask=is_valid, other=-1
        )
        return vertex

    def record(self, at, vertex, level, mask):
        log_entry(self.k, self.c, self.state, at, vertex, level, *(self.parent or [0]), mask)

    def append(self, near, won, level, after, parent, turn):
        k, c = self.k, self.c

        def queue(at, v, mask):
            k.store_vec(self.queues, self.at(level + 1, at), (v, parent)[: self.width], mask=mask)

        def log(at, v, mask):
            queue(at, v, mask & (at < c.queue))
            log_entry(k, c, self.state, after + at, v, level + 1, parent, mask & (at >= c.queue))

        votes, total, base = _reserve(k, won, self.tails, turn & 3)

        def put():
            first = base()
            full = first + total > c.queue
            k.if_(~full, lambda: _each(k, near, won, votes, first, queue))
            k.if_(full, lambda: _each(k, near, won, votes, first, log))

        k.if_(total > 0, put)

    def enter(self, level, start, count):
        """Copies visited bits and frontier from global to shared memory."""
        k, c, state = self.k, self.c, self.state
        if c.shared_bits:
            k.for_(
                k.thread * 4,
                c.words,
                k.threads * 4,
                lambda w: k.store_vec(self.bits, w, k.load_vec(state.visited, w, 4, cache="fresh")),
            )

        def copy(i):
            v, _, *parent = k.load_vec(state.log, (start + i) * c.entry, c.entry, cache="fresh")
            k.store_vec(self.queues, self.at(level, i), (v, *parent)[: self.width])

        k.for_(k.thread, count, k.threads, copy)
        k.store(self.tails, k.thread, 0, mask=k.thread < 4)
        k.sync()

    def leave(self, level, start, count):
        """Logs the frontier, which was not expanded; copies the visited bits back to global memory
        if the search goes on.
        """
        k, c = self.k, self.c

        def log(i):
            entry = k.load_vec(self.queues, self.at(level, i), self.width)
            log_entry(k, c, self.state, start + i, entry[0], level, entry[-1], k.const(True, "i1"))

        def back(w):
            k.store_vec(self.state.visited, w, k.load_vec(self.bits, w, 4))

        k.for_(k.thread, k.minimum(count, c.queue), k.threads, log)
        if c.shared_bits:
            k.if_(count > 0, lambda: k.for_(k.thread * 4, c.words, k.threads * 4, back) and None)
