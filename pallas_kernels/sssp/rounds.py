"""Shortest paths in rounds: labels, queues and the loop of both kernels.

Method: label correcting with two queues (Davidson, Baxter, Garland, Owens 2014; Meyer and Sanders
2003). `near` holds the vertices whose label fell below the bound in the last round, `far` those
whose label fell but stayed at or above it. A round relaxes the edges of all near vertices; if there
is none, the bound rises to (least label put into far) + width, which skips empty buckets, and far
is split. Labels only fall, and a rounded sum is monotone: the fixpoint of d[v] = min(d[u] (+) w) is
unique, whatever the order of relaxations, so warps may run ahead of each other within a round.

A small round, one of few edges, is bound by latency. So a kernel that counts edges also splits far
before a small round, which joins rounds of two buckets; and the width, delta at first, doubles
after each small round while far is small, too. On a graph whose shortest paths have many edges,
this relaxes many vertices too early. So it ends after ROUNDS rounds, and the width stays at delta
doubled `later` times.

Labels are int32: the bits of a non-negative float32 (ordered as the numbers are) or the integer
itself; unreached is the bits of inf, or iinfo.max. Integer sums clamp there, which makes it
absorbing. A label falls by an atomic minimum, and the thread that lowered it queues the vertex.
marks[v] is the last round that queued v for the next one, so a queue holds a vertex at most once
and a capacity of n suffices. A vertex with a finite label at or above the bound is in far: it gets
there when its label becomes finite. With targets, or with labels given at the start, this rule does
not hold, and marks[n + v] is 1 if v is in far. The label of a vertex in far may fall below the
bound, which queues it in near; the split drops entries whose label is below the old bound.

Targets: `limit` is computed from the targets' labels at the start of a step. Labels above it are
neither stored nor relaxed, so the search ends once all labels up to the limit are final.
"""

import dataclasses
from typing import Any

# Groups of four control words, of which a turn t (a step of the loop) or a split p uses number
# t & 3 or p & 3:
FOUND = 40  # control words 40..43: length of the next near queue, by turn
FAR = 44  # control words 44..47: length of the far queue, by split
LEAST = 48  # control words 48..51: greatest (MAX - label) put into far, by split
EDGES = 52  # control words 52..55: edges of the next near queue, by turn
AWAY = 56  # control words 56..59: entries put into far, by turn
TAKEN = 60  # control words 60..63: entries of near that warps took, by turn
ORPHANS = 39  # control word: number of vertices without a recorded parent (`tree.py`)
DOUBLINGS = 60  # the width is doubled at most so often
ROUNDS = 16  # small rounds are joined among the first so many rounds
MAX = 0x7FFFFFFF
INFINITY = {True: 0x7F800000, False: MAX}


def most_rounds(n: int) -> int:
    """Rounds after which a search that extends labels by a user's function ends: some cycle
    improves them for ever, or until rounding or clamping holds them."""
    return max(1 << 17, 8 * n)


@dataclasses.dataclass
class State:
    """The carry of the loop, equal in all CTAs; far and least are set where a split comes next."""

    near: Any  # length of the near queue
    edges: Any  # edges of the near queue, 0 if not counted or before the first round
    carried: Any  # entries at the start of the near queue that a split leaves there
    away: Any  # entries of far, 0 if not counted
    doublings: Any  # of the width
    split: Any  # 1: the last step was a split
    far: Any  # length of the far queue
    least: Any  # least label put into far
    bound: Any  # labels below it are near
    cur: Any  # which of the two near queues is read
    pile: Any  # number of splits
    steps: Any  # number of rounds
    work: Any  # entries of near relaxed
    ok: Any  # 0: a barrier expired
    turn: Any  # steps of the loop

    @classmethod
    def of(cls, **named):
        """The named fields as given, all others 0."""
        return cls(**{field.name: 0 for field in dataclasses.fields(cls)} | named)

    def values(self):
        return tuple(getattr(self, field.name) for field in dataclasses.fields(self))


def branch(k, when, action, s):
    """The state after `action(s)` where `when` holds, else as it was."""

    def run():
        t = State(*s.values())
        action(t)
        return t.values()

    return State(*k.if_(when, run, *s.values()))


def body(k, c, graph, state, kind):
    """The search; returns (rounds, ok, splits, entries of near relaxed).

    kind: the module that expands near queues.
    """
    search = _Search(k, c, graph, state, kind)
    if c.extend is None:
        ok, near = _from_source(k, c, graph, state, kind)
    else:
        ok, near = _from_labels(k, c, graph, state, search.place)
    first = State.of(
        near=near, least=MAX, bound=k.maximum(clamped(k, c, k.const(0), search.delta), 1), ok=ok
    )

    def going_on(*carry):
        s = State(*carry)
        more = ((s.near > 0) | (s.far > 0)) & (s.ok == 1)
        return more if c.extend is None else more & (s.steps < most_rounds(c.n))

    last = State(*k.while_(going_on, search.step, *first.values()))
    ok = last.ok
    if c.parents:
        ok = ok & kind.tree(search, State(*last.values()))
    _write_results(k, c, graph, state)
    return last.steps, ok, last.pile, last.work


def _from_source(k, c, graph, state, kind):
    """Gives a label to the source alone; returns (ok, length of the near queue)."""
    source = k.load(graph.source, 0)
    valid = (source >= 0) & (source < c.n)
    if graph.rank is not None:
        source = k.load(graph.rank, k.where(valid, source, 0))
    _initialise(k, c, state, source, valid, kind)
    state.source = k.where(valid, source, -1)
    near = kind.first_queue(k, c, graph, state, source, valid)
    (ok,) = k.grid_barrier(state.control)
    return ok, near


def _from_labels(k, c, graph, state, place):
    """Takes labels from graph.start, in the caller's numbering; queues all vertices that have one.

    Returns (ok, length of the near queue).
    """
    # appends to the queue that turn 0 reads, counted by control words that turn 0 does not use
    first = State.of(cur=1, turn=3)

    def vertices(i):
        is_valid = i < c.n
        vertex = i if graph.order is None else k.load(graph.order, i, mask=is_valid, cache="nc")
        label = k.load(graph.start, vertex, mask=is_valid, other=MAX, cache="nc")
        k.store(state.labels, i, label, mask=is_valid)
        k.store(state.marks, i, 0, mask=is_valid)
        k.store(state.marks, c.n + i, 0, mask=is_valid)
        place.append(first, i, label < INFINITY[c.real])

    place.clear()
    k.spread_warps(c.n, vertices)
    adds = [(*word, state.control, at + 3) for at, word in place.counted]
    return k.grid_barrier(state.control, [(state.control, FOUND + 3)], adds)


class _Search:
    """The steps of the loop: a round or a split."""

    def __init__(self, k, c, graph, state, kind):
        self.k, self.c, self.graph, self.state, self.kind = k, c, graph, state, kind
        self.delta = k.load(graph.delta, 0)
        self.place = kind.Grid(k, c, graph, state)
        self.targets = [self._target(k.load(graph.targets, j)) for j in range(c.targets)]

    def _target(self, vertex):
        vertex = self.k.maximum(self.k.minimum(vertex, self.c.n - 1), 0)
        rank = self.graph.rank
        return vertex if rank is None else self.k.load(rank, vertex, cache="nc")

    def step(self, *carry):
        k = self.k
        s = State(*carry)
        self.state.limit = None
        if self.c.limit is not None:
            labels = [k.load(self.state.labels, t, cache="fresh") for t in self.targets]
            self.state.limit = k.const(self.c.limit(labels, MAX, k.minimum, k.maximum))
        self.begin(s)
        relaxing = s.near > 0
        if self.place.small_round:
            early = (s.split == 0) & (s.away > 0) & (s.edges < self.place.small_round)
            relaxing = relaxing & ~(early & (s.steps < ROUNDS))
        s = branch(k, relaxing, self.round, s)
        s = branch(k, ~relaxing, self.split, s)
        s.turn = s.turn + 1
        return s.values()

    def begin(self, s):
        """Clears the control words of turn + 2: they were last read before the previous barrier and
        are next written after the coming one."""
        mine = (self.k.cta == 0) & (self.k.thread == 0)
        for word in (FOUND, EDGES, AWAY, TAKEN):
            self.k.store(self.state.control, word + ((s.turn + 2) & 3), 0, mask=mine)

    def round(self, s):
        """Relaxes the near queue."""
        k = self.k
        s.work, s.steps, s.split = s.work + s.near, s.steps + 1, 0
        if self.place.small_round:
            more = k.minimum(s.doublings + 1, DOUBLINGS)
            s.doublings = k.where(s.edges < self.place.small_round, more, 0)
        least = self.kind.expand(self.k, self.c, self.graph, self.state, s, self.place)
        self.finish(s, least)

    def split(self, s):
        """Raises the bound and moves what is below it from far to near."""
        k, old = self.k, s.bound
        if self.place.small_round:
            now = k.where(s.away < self.place.small_far, s.doublings, 0)
            s.doublings = k.where(s.steps < ROUNDS, now, self.c.later)
        s.bound, s.pile = _next_bound(k, self.c, s, self.delta), s.pile + 1
        # near stays in place: the split appends to the queue that is read, behind its entries
        s.cur, s.carried, s.away, s.split = s.cur ^ 1, s.near, 0, 1
        mine = (k.cta == 0) & (k.thread == 0)
        for word in (
            FAR,
            LEAST,
        ):  # clear those of the next split: not in use before the next barrier
            k.store(self.state.control, word + ((s.pile + 1) & 3), 0, mask=mine)
        self.finish(s, _split(k, self.c, self.state, s, self.place, old))

    def finish(self, s, least):
        """Ends a step: adds up what all CTAs found."""
        self.place.least(s, least)
        far, least = self.barrier(s, FAR + (s.pile & 3), LEAST + (s.pile & 3))
        # while near is not 0, a CTA that runs ahead may already add to far: far is not used then
        s.far, s.least = far, MAX - least

    def barrier(self, s, *words):
        """A grid barrier: sets s.near to what all CTAs queued, returns control words `words`."""
        k, control, turn = self.k, self.state.control, s.turn & 3
        self.place.flush(s)
        counted = self.place.counted
        adds = [(*word, control, at + turn) for at, word in counted]
        counters = (FOUND + turn, *(at + turn for at, _ in counted))
        reads = [(control, w) for w in (*counters, *words)]
        s.ok, near, *words = k.grid_barrier(control, reads, adds)
        if counted:
            edges, away, *words = words
            s.edges, s.away = k.where(s.carried > 0, s.edges, 0) + edges, s.away + away
        s.near, s.carried, s.cur = s.carried + near, 0, s.cur ^ 1
        return words


def _initialise(k, c, state, source, valid, kind):
    def clear(i):
        k.store(state.labels, i, k.where((i == source) & valid, 0, INFINITY[c.real]))
        k.store(state.marks, i, 0)
        k.store(state.marks, c.n + i, 0)
        if c.parents:
            kind.note(k, state, i, c.n, 0, k.const(True, "i1"))

    k.spread(c.n, clear)


def _write_results(k, c, graph, state):
    """Labels and parents in the caller's numbering."""
    if graph.order is None:
        return

    def result(i):
        v = k.load(graph.order, i, cache="nc")
        k.store(state.distances, v, k.load(state.labels, i, cache="fresh"))
        if c.parents:
            parent = k.load(state.noted, i, cache="fresh")
            is_valid = k.below(parent, c.n)
            old = k.load(graph.order, parent, mask=is_valid, cache="nc")
            k.store(state.parents, v, k.where(is_valid, old, parent))

    k.spread(c.n, result)


def clamped(k, c, label, weight):
    """label (+) weight; the weight is a float32 or an int32 value."""
    if c.real:
        return k.bits(k.bits(label, "f32") + weight, "i32")
    total = label + weight
    return k.where(total < 0, MAX, total)


def extended(k, c, label, weight):
    """The label at the end of an edge: that of the caller's algebra, or a clamped sum."""
    return clamped(k, c, label, weight) if c.extend is None else c.extend(k, label, weight)


def within(label, limit):
    """Whether a label is at most the limit."""
    return label == label if limit is None else label <= limit


def tight(k, c, label, weight, other):
    """Whether an edge from a vertex of `label` may be the last one of a shortest path to one of
    label `other`: farther away, or as far if the weight is zero or absorbed."""
    extended = clamped(k, c, label, weight) == other
    return extended & (label <= other) & (other != INFINITY[c.real])


def _next_bound(k, c, s, delta):
    """The bound after a split: it rises beyond the least label of far even if delta is absorbed."""
    least = k.maximum(s.least, s.bound)
    return k.maximum(clamped(k, c, least, _width(k, c, s, delta)), k.minimum(least, MAX - 1) + 1)


def _width(k, c, s, delta):
    """delta * 2^s.doublings, at most MAX."""
    if c.real:
        return delta * k.bits((s.doublings + 127) << 23, "f32")
    doublings = k.minimum(s.doublings, 30)
    return k.where(delta > k.shr(k.const(MAX), doublings), MAX, delta << doublings)


def _split(k, c, state, s, place, old):
    """Moves far: to near below the new bound, out below the old one, else to the next far.

    Returns the lane's least label put there.
    """
    base = ((s.pile + 1) & 1) * c.n

    def entries(i0, least):
        i = i0 + k.lane
        v = k.load(state.far, base + i, mask=i < s.far, other=-1, cache="fresh")
        label = k.load(state.labels, v, mask=v >= 0, other=-1, cache="fresh")
        wanted = within(label, state.limit)
        stays = (label >= s.bound) & wanted
        if marked(c):
            k.store(state.marks, c.n + v, 0, mask=(v >= 0) & ~stays)
        place.put_near(s, [v], [(label >= old) & (label < s.bound) & wanted])
        place.put_far(s, [v], [stays])
        return k.where(stays, k.minimum(least, label), least)

    worker, workers = place.warps
    return k.for_(worker * 32, s.far, workers * 32, entries, MAX)[0]


def marked(c):
    """Whether far needs marks (known while tracing): with a limit, labels above it are dropped from
    far; labels given at the start are finite but not in far."""
    return c.limit is not None or c.extend is not None


def new_to_far(c, away, old):
    """Masks of vertices that may not be in far yet, among those (`away`) whose label fell from
    `old` to one at or above the bound."""
    if marked(c):
        return away
    return [w & (x == INFINITY[c.real]) for w, x in zip(away, old, strict=True)]


def put(k, vertices, won, allocate, store):
    """store(position, vertex, mask) for every vertex with `won`; allocate(total) gives the first
    position."""
    votes = [k.ballot(w) for w in won]
    total = sum((k.popc(b) for b in votes[1:]), k.popc(votes[0]))

    def some():
        base = allocate(total)
        for v, w, b in zip(vertices, won, votes, strict=True):
            store(base + k.lanes_below(b), v, w)
            base = base + k.popc(b)

    k.if_(total > 0, some)


def reserve(k, tail, word, total):
    """Position of the first of `total` entries of this warp, in every lane."""
    return k.shfl(k.atomic("add", tail, word, total, mask=k.lane == 0), 0)


def report_least(k, least, tail, word):
    """Maximises word `word` of `tail` by MAX - the least label of the warp."""

    def some():
        low = k.warp_fold(k.minimum, least)
        k.reduce("max", tail, word, MAX - low, mask=k.lane == 0)

    k.if_(k.any(least != MAX), some)
