"""Breadth-first search of graphs of small degree (meshes, roads), whatever their diameter, in one launch.

State. visited: one bit a vertex, in shared memory while one program works alone, else in global memory (L2).
Frontier: a queue of vertices, in shared memory while alone, else global; two of them take turns.
Adjacency: fixed width w (4 or 8): row v holds the neighbours of v, padded with n; a last slot below 0 is
~(row that continues this one). So vertex -> neighbours is one access, without row offsets.

A level of at most `solo_out` vertices is expanded by program 0 alone: no grid barrier, one program barrier a
level. Chain of dependent accesses a level: queue (shared) -> row (L2, 200 ns) -> bit (shared atomic) -> place in
the queue (ballots, one shared atomic a warp) -> barrier. Wider levels are shared by all programs: the same chain
through L2 (atomics 300 ns) and a grid barrier (1.1 us, 1.5 us with the counter read back).

Traffic: 4 w bytes of adjacency and 4 bytes of level a vertex, one atomic a stored entry. The bit is claimed by
the atomic itself, so a vertex is queued once.
"""

TAIL = 40  # control words 40..43: lengths of the next queue, in rotation
RESULT = 44  # control words 44..47: what program 0 reports after working alone


def body(k, c, graph, state):
    """The search itself; returns (number of levels, ok). `c` is the Config, the rest arrays of the kernel."""
    n, words = c.n, c.words
    control = state.control
    bits, queues = k.shared(words if c.shared_bits else 4), k.shared(2 * c.queue)
    tails = k.shared(4)
    source = k.load(graph.source, 0)
    valid = (source >= 0) & (source < n)
    targets = [k.load(graph.targets, j) for j in range(c.targets)]
    known = [(t >= 0) & (t < n) for t in targets]
    targets = [k.where(ok, t, 0) for t, ok in zip(targets, known, strict=True)]
    if graph.rank is not None:
        source = k.load(graph.rank, k.where(valid, source, 0))
        targets = [k.load(graph.rank, t) for t in targets]
    _initialise(k, c, state, source, valid)
    (ok,) = k.grid_barrier(control)

    def stopped(level, count, array):
        if c.stop is None:
            return k.const(False, "i1")
        word = [k.load(array, k.shr(t, 5), cache="fresh") for t in targets]
        reached = tuple(
            (k.shr(w, t & 31) & 1 != 0) & there for w, t, there in zip(word, targets, known, strict=True)
        )
        return k.const(c.stop(level, reached, count == 0), "i1")

    def expand(count, cur, level, first, step, place):
        """Expands queue entries first, first + step, ... (each a warp's 32) of the current frontier."""

        def entries(i0):
            i = i0 + k.lane
            row = place.entry(cur, i, i < count)
            parent = row

            def one_row(row):
                near = _row(k, c, graph.adjacency, row)
                won = [place.claim(v) for v in near]
                place.append(cur, near, won, level, parent)
                last = near[-1]
                return k.where(last < 0, ~last, -1)

            if c.linked:
                k.while_(lambda row: k.any(row >= 0), one_row, row)
            else:
                one_row(row)

        k.for_(first, count, step, entries)

    alone = _Alone(k, c, state, bits, queues, tails)
    together = _Together(k, c, state)

    def solo(level, count, cur):
        """Program 0: level after level until the frontier outgrows it, is empty or the search may stop."""
        alone.enter(level, count, cur)

        def one_level(level, count, cur, turn, done):
            k.store(tails, (turn + 1) & 3, 0, mask=k.thread == 0)
            alone.turn = turn
            expand(count, cur, level, k.warp * 32, k.threads, alone)
            k.sync()
            count = k.load(tails, turn & 3)
            done = stopped(level + 1, count, alone.bits)
            return level + 1, count, cur ^ 1, turn + 1, k.cast(done, "i32")

        level, count, cur, _, done = k.while_(
            lambda level, count, cur, turn, done: (count > 0) & (count <= c.solo_out) & (done == 0),
            one_level, level, count, cur, 0, 0,
        )  # fmt: skip
        alone.leave(count, cur)
        for j, word in enumerate((level, count, cur, done)):
            k.store(control, RESULT + j, word, mask=k.thread == 0)

    def shared_level(level, count, cur, turn):
        together.turn = turn
        expand(count, cur, level, (k.warp * k.programs + k.program) * 32, k.threads * k.programs, together)
        ok, new = k.grid_barrier(control, [(control, TAIL + (turn & 3))])
        done = stopped(level + 1, new, state.visited)
        return level + 1, new, cur ^ 1, k.cast(done, "i32"), ok

    def step(level, count, cur, done, ok, turn):
        # nobody reads slot turn + 2 (last read before the previous barrier) or adds to it (after the next one)
        k.store(control, TAIL + ((turn + 2) & 3), 0, mask=(k.program == 0) & (k.thread == 0))

        def small():
            k.if_(k.program == 0, lambda: solo(level, count, cur))
            ok, *words = k.grid_barrier(control, [(control, RESULT + j) for j in range(4)])
            return *words, ok

        narrow = count <= c.solo_in
        out = k.if_(narrow, small, level, count, cur, done, ok)
        out = k.if_(~narrow, lambda: shared_level(level, count, cur, turn), *out)
        return *out, turn + 1

    count = k.cast(valid, "i32")
    done = k.cast(stopped(k.const(0), count, state.visited), "i32")
    level, count, _, _, ok, _ = k.while_(
        lambda level, count, cur, done, ok, turn: (count > 0) & (done == 0) & (ok == 1),
        step, 0, count, 0, done, ok, 0,
    )  # fmt: skip
    if graph.rank is not None:
        ok = _restore_order(k, c, graph, state, ok)
    return level + k.cast(count > 0, "i32"), ok


def _row(k, c, adjacency, row):
    """The w slots of `row` (rows below 0: all padding)."""
    near = []
    for j in range(0, c.width, 4):
        near += k.load_vec(adjacency, row * c.width + j, 4, mask=row >= 0, other=c.n, cache="nc")
    return near


def _spread(k, size, f, width=1):
    """f(i) for i = 0, width, ... < size over all threads of all programs."""
    k.for_((k.program * k.threads + k.thread) * width, size, k.programs * k.threads * width, f)


def _initialise(k, c, state, source, valid):
    def clear(i):
        k.store(state.levels, i, k.where((i == source) & valid, 0, -1))
        if c.parents:
            k.store(state.parents, i, k.where((i == source) & valid, source, -1))

    _spread(k, c.n, clear)
    first = k.where(valid, k.bit(source), 0)
    _spread(k, c.words, lambda w: k.store(state.visited, w, k.where(w == k.shr(source, 5), first, 0)))
    k.store(state.queue, 0, source, mask=(k.program == 0) & (k.thread == 0))


def _restore_order(k, c, graph, state, ok):
    """Levels and parents of the renumbered graph, back in the caller's numbering."""
    (fine,) = k.grid_barrier(state.control)

    def back(v):
        r = k.load(graph.rank, v, cache="nc")
        k.store(state.levels_out, v, k.load(state.levels, r, cache="fresh"))
        if c.parents:
            p = k.load(state.parents, r, cache="fresh")
            k.store(state.parents_out, v, k.load(graph.order, k.maximum(p, 0), mask=p >= 0, other=-1, cache="nc"))

    _spread(k, c.n, back)
    return ok & fine


def _claim(k, array, v, n):
    """Whether this thread set the bit of v (not for padding and links)."""
    there = k.below(v, n)
    old = k.atomic("or", array, k.shr(v, 5), k.bit(v), mask=there)
    return there & (old & k.bit(v) == 0)


def _found(k, c, state, v, won, level, parent):
    k.store(state.levels, v, level + 1, mask=won)
    if c.parents:
        k.store(state.parents, v, parent, mask=won)


class _Together:
    """Where all programs find the frontier and put the next one: global memory."""

    def __init__(self, k, c, state):
        self.k, self.c, self.state = k, c, state

    def entry(self, cur, i, there):
        return self.k.load(self.state.queue, cur * self.c.n + i, mask=there, other=-1, cache="fresh")

    def claim(self, v):
        return _claim(self.k, self.state.visited, v, self.c.n)

    def append(self, cur, near, won, level, parent):
        k, state = self.k, self.state
        votes = [k.ballot(w) for w in won]
        total = sum((k.popc(b) for b in votes[1:]), k.popc(votes[0]))

        def put():
            slot = TAIL + (self.turn & 3)
            base = k.shfl(k.atomic("add", state.control, slot, total, mask=k.lane == 0), 0)
            for v, w, b in zip(near, won, votes, strict=True):
                k.store(state.queue, (cur ^ 1) * self.c.n + base + k.lanes_below(b), v, mask=w)
                _found(k, self.c, state, v, w, level, parent)
                base = base + k.popc(b)

        k.if_(total > 0, put)


class _Alone:
    """Where program 0 keeps them while it works alone: shared memory (the queue's overflow in global memory)."""

    def __init__(self, k, c, state, bits, queues, tails):
        self.k, self.c, self.state, self.queues, self.tails = k, c, state, queues, tails
        self.bits = bits if c.shared_bits else state.visited

    def entry(self, cur, i, there):
        return self.k.load(self.queues, cur * self.c.queue + i, mask=there, other=-1)

    def claim(self, v):
        return _claim(self.k, self.bits, v, self.c.n)

    def append(self, cur, near, won, level, parent):
        k, c, state = self.k, self.c, self.state
        votes = [k.ballot(w) for w in won]
        total = sum((k.popc(b) for b in votes[1:]), k.popc(votes[0]))

        def put():
            base = k.shfl(k.atomic("add", self.tails, self.turn & 3, total, mask=k.lane == 0), 0)
            for v, w, b in zip(near, won, votes, strict=True):
                at = base + k.lanes_below(b)
                k.store(self.queues, (cur ^ 1) * c.queue + at, v, mask=w & (at < c.queue))
                k.store(state.queue, (cur ^ 1) * c.n + at, v, mask=w & (at >= c.queue))
                _found(k, c, state, v, w, level, parent)
                base = base + k.popc(b)

        k.if_(total > 0, put)

    def enter(self, level, count, cur):
        """Takes over visited bits and frontier from global memory."""
        k, c, state = self.k, self.c, self.state
        if c.shared_bits:

            def copy(w):
                four = k.load_vec(state.visited, w, 4, cache="fresh")
                k.store_vec(self.bits, w, four)

            k.for_(k.thread * 4, c.words, k.threads * 4, copy)
        k.for_(
            k.thread, count, k.threads,
            lambda i: k.store(self.queues, cur * c.queue + i, k.load(state.queue, cur * c.n + i, cache="fresh")),
        )  # fmt: skip
        k.store(self.tails, k.thread, 0, mask=k.thread < 4)
        k.sync()

    def leave(self, count, cur):
        """Hands visited bits and frontier back when other programs go on with them."""
        k, c, state = self.k, self.c, self.state

        def back():
            if c.shared_bits:
                k.for_(
                    k.thread * 4, c.words, k.threads * 4,
                    lambda w: k.store_vec(state.visited, w, k.load_vec(self.bits, w, 4)),
                )  # fmt: skip
            k.for_(
                k.thread, k.minimum(count, c.queue), k.threads,
                lambda i: k.store(state.queue, cur * c.n + i, k.load(self.queues, cur * c.queue + i)),
            )  # fmt: skip

        k.if_(count > 0, back)
