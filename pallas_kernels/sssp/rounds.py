"""Shortest paths in rounds: labels, queues and the loop of both kernels.

Method: label correcting with two queues (Davidson, Baxter, Garland, Owens 2014; Meyer and Sanders
2003). `near` holds the vertices whose label fell below the bound in the last round, `far` those
whose label fell but stayed at or above it. A round relaxes the edges of all near vertices; if there
is none, the bound rises to (least label put into far) + width, which skips empty buckets, and far
is split. Labels only fall, and a rounded sum is monotone: the fixpoint of d[v] = min(d[u] (+) w) is
unique, whatever the order of relaxations, so warps may run ahead of each other within a round.

The last rounds of a bucket, of few vertices, are bound by latency. So the kernel of small degrees
splits far already while they are left, which joins them with the first rounds of the next bucket.

A small round, one of few edges, is bound by latency. So a kernel that counts edges also splits far
before a small round, which joins rounds of two buckets; and the width, delta at first, doubles
after each small round while far is small, too. On a graph whose shortest paths have many edges,
this relaxes many vertices too early. So it ends after ROUNDS rounds, and the width stays at delta
doubled `later` times.

A label (`problem.py`) falls by an atomic minimum, and the thread that lowered it queues the vertex.
marks[v] is the last round that queued v for the next one, so a queue holds a vertex at most once
and a capacity of n suffices. A vertex with a finite label at or above the bound is in far: it gets
there when its label becomes finite. With targets, or with labels given at the start, this rule does
not hold, and marks[n + v] is 1 if v is in far. The label of a vertex in far may fall below the
bound, which queues it in near; the split drops entries whose label is below the old bound.

Targets: `limit` is computed from the targets' labels at the start of a step. Labels above it are
neither stored nor relaxed, so the search ends once all labels up to the limit are final.
"""

import dataclasses
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

from ..frontier import Carry
from ..layouts.lengths import most_rounds
from ..simt.primitives import Simt
from ..simt.typed import Array, Arrays, Mask, Operand, Value, one_by_one
from .problem import MAX, Labels, Problem, Word

DOUBLINGS = 60  # the width is doubled at most so often
ROUNDS = 16  # small rounds are joined among the first so many rounds


@dataclasses.dataclass
class State(Carry):
    """The carry of the loop, equal in all CTAs; far and least are set where a split comes next."""

    near: Any  # length of the near queue
    edges: Any  # edges of the near queue, 0 if not counted or before the first round
    carried: Any  # entries at the start of the near queue that a split leaves there
    away: Any  # entries of far, 0 if not counted
    doublings: Any  # of the width
    longest: Any  # near queue since the last split
    split: Any  # 1: the last step was a split
    far: Any  # length of the far queue
    least: Any  # least label put into far
    bound: Any  # labels below it are near
    cur: Any  # which of the two near queues is read
    pile: Any  # number of splits
    steps: Any  # number of rounds
    ok: Any  # 0: a barrier expired
    turn: Any  # steps of the loop


class Search(Labels, ABC):
    """A search; its subclasses (`low_degree.py`, `any_degree.py`) have the queues and expand them.

    A round of fewer than `small_round` edges is bound by latency; far is small below `small_far`.
    counted: (group of control words, (shared array, word)) that a barrier adds up.
    """

    small_round, small_far = 0, 0
    tail = 0  # as in `Config`, where edges are not counted
    counted: Sequence[tuple[Word, tuple[Array, int]]] = ()
    state: type[State] = State
    source: Value

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        super().__init__(k, c, m)
        self.allocate()
        self.targets = [self._target(k.load(m.targets, j)) for j in range(c.targets)]

    @abstractmethod
    def allocate(self) -> None:
        """Takes the shared memory that the queues need."""

    @abstractmethod
    def first_queue(self, source: Value, valid: Value) -> Value:
        """Queues the source; returns the length of the queue."""

    def clear(self) -> None:
        """Empties the buffers of the CTA, if it has any."""

    def append(self, s: State, v: Value, mask: Value) -> None:
        """Queues the lanes' vertices for the next round."""
        self.put_near(s, v, mask)

    @abstractmethod
    def put_near(self, s: State, vertices: Value, won: Value) -> None:
        """Queues vertices, or buffers them until `flush`."""

    @abstractmethod
    def put_far(self, s: State, vertices: Value, won: Value) -> None:
        """Puts vertices into far, or buffers them until `flush`."""

    @abstractmethod
    def report_least(self, s: State, least: Value) -> None:
        """Reports the least label that this lane put into far."""

    def flush(self, s: State) -> None:
        """Appends what the CTA has buffered, if it has buffers."""

    @abstractmethod
    def expand(self, s: State) -> Value:
        """Relaxes the near queue; returns the least label that this lane put into far."""

    @abstractmethod
    def note(self, vertex: Operand, parent: Operand, label: Operand, mask: Mask) -> None:
        """Records who lowered a label, and to what where the form has use for it."""

    @abstractmethod
    def tree(self, s: State) -> Value:
        """Makes the parents; returns whether no barrier expired."""

    def run(self) -> tuple[Value, Value]:
        """The search; returns (rounds, ok)."""
        k, c = self.k, self.c
        ok, near = self._from_source() if c.rule.extend is None else self._from_labels()
        last = self.first_state(near, ok).loop(k, self.going_on, self.step)
        ok = last.ok
        if c.rule.parents:  # not after a barrier expired: queues may hold what no thread wrote
            (ok,) = k.if_(ok == 1, lambda: self.tree(self.state(*last.values())), 0)
        self._write_results()
        return last.steps, ok

    def first_state(self, near: Value, ok: Value) -> State:
        bound = self.k.maximum(self.clamped(self.k.const(0), self.delta), 1)
        return self.state.of(near=near, least=MAX, bound=bound, ok=ok)

    def going_on(self, s: State) -> Value:
        more = ((s.near > 0) | (s.far > 0)) & (s.ok == 1)
        return more if self.c.rule.extend is None else more & (s.steps < most_rounds(self.c.n))

    def _target(self, vertex: Value) -> Value:
        vertex = self.k.maximum(self.k.minimum(vertex, self.c.n - 1), 0)
        rank = self.m.rank
        return vertex if rank is None else self.k.load(rank, vertex, cache="nc")

    def _from_source(self) -> tuple[Value, Value]:
        """Gives a label to the source alone; returns (ok, length of the near queue)."""
        k, c, m = self.k, self.c, self.m
        source = k.load(m.source, 0)
        valid = (source >= 0) & (source < c.n)
        if m.rank is not None:
            source = k.load(m.rank, k.where(valid, source, 0))

        def clear(i):
            k.store(m.labels, i, k.where((i == source) & valid, 0, c.infinity))
            k.store(m.marks, i, 0)
            k.store(m.marks, c.n + i, 0)
            if c.rule.parents:
                self.note(i, c.n, 0, k.const(True, "i1"))

        k.spread(c.n, clear)
        self.source = k.where(valid, source, -1)
        near = self.first_queue(source, valid)
        (ok,) = k.grid_barrier(m.control)
        return ok, near

    def _from_labels(self) -> tuple[Value, ...]:
        """Takes labels from m.start, in the caller's numbering; queues all vertices that have one.

        Returns (ok, length of the near queue). It appends to the queue that turn 0 reads, counted
        by the control words of turn 3, which turn 0 does not use.
        """
        k, c, m = self.k, self.c, self.m
        first = State.of(cur=1, turn=3)

        def vertices(i):
            is_valid = i < c.n
            vertex = i if m.order is None else k.load(m.order, i, mask=is_valid, cache="nc")
            label = k.load(m.start, vertex, mask=is_valid, other=MAX, cache="nc")
            k.store(m.labels, i, label, mask=is_valid)
            k.store(m.marks, i, 0, mask=is_valid)
            k.store(m.marks, c.n + i, 0, mask=is_valid)
            self.append(first, i, label < c.infinity)

        self.clear()
        k.spread_warps(c.n, vertices)
        adds = [(*word, m.control, group.at(3)) for group, word in self.counted]
        return k.grid_barrier(m.control, [(m.control, Word.FOUND.at(3))], adds)

    def step(self, s: State) -> State:
        """A turn of the loop; its last barrier reads FAR and LEAST of split s.pile."""
        k, c = self.k, self.c
        if c.rule.limit is not None:
            labels = [k.load(self.m.labels, t, cache="fresh") for t in self.targets]
            self.limit = k.const(c.rule.limit(labels, MAX, k.minimum, k.maximum))
        self.begin(s)
        s = self.advance(s, k.const(True, "i1"))
        far, least = self.barrier(s, Word.FAR.at(s.pile), Word.LEAST.at(s.pile))
        # while near is not 0, a CTA that runs ahead may already add to far: far is not used then
        s.far, s.least, s.turn = far, MAX - least, s.turn + 1
        return s

    def advance(self, s: State, active: Value) -> State:
        """The work of a turn: a round or a split, where `active` holds."""
        relaxing = s.near > 0
        if self.small_round:
            early = (s.split == 0) & (s.away > 0) & (s.edges < self.small_round)
            relaxing = relaxing & ~(early & (s.steps < ROUNDS))
        if self.tail:
            relaxing = relaxing & ~((s.split == 0) & (s.near < s.longest // self.tail))
        splitting = active & ~relaxing
        return s.after(self.k, active & relaxing, self.round).after(self.k, splitting, self.split)

    def begin(self, s: State) -> None:
        """Clears the words of turn + 2 in the groups FOUND, EDGES, AWAY, TAKEN: they were last read
        before the previous barrier and are next written after the coming one."""
        mine = (self.k.cta == 0) & (self.k.thread == 0)
        for group in (Word.FOUND, Word.EDGES, Word.AWAY, Word.TAKEN):
            self.k.store(self.m.control, group.at(s.turn + 2), 0, mask=mine)

    def round(self, s: State) -> None:
        """Relaxes the near queue."""
        k = self.k
        s.steps, s.split = s.steps + 1, 0
        if self.tail:
            s.longest = k.maximum(s.longest, s.near)
        if self.small_round:
            more = k.minimum(s.doublings + 1, DOUBLINGS)
            s.doublings = k.where(s.edges < self.small_round, more, 0)
        self.report_least(s, self.expand(s))

    def split(self, s: State) -> None:
        """Raises the bound and moves what is below it from far to near.

        Reads the words of FAR and LEAST of split s.pile, clears those of the split after the next:
        not in use before the next barrier.
        """
        k, old = self.k, s.bound
        if self.small_round:
            now = k.where(s.away < self.small_far, s.doublings, 0)
            s.doublings = k.where(s.steps < ROUNDS, now, self.c.later)
        bound, s.pile = self._next_bound(s), s.pile + 1
        if self.tail:
            bound, s.longest = k.where(s.far > 0, bound, old), k.const(0)
        s.bound = bound
        # near stays in place: the split appends to the queue that is read, behind its entries
        s.cur, s.carried, s.away, s.split = s.cur ^ 1, s.near, 0, 1
        mine = (k.cta == 0) & (k.thread == 0)
        for group in (Word.FAR, Word.LEAST):
            k.store(self.m.control, group.at(s.pile + 1), 0, mask=mine)
        self.report_least(s, self._split(s, old))

    def barrier(self, s: State, *words: Operand) -> Sequence[Value]:
        """A grid barrier: sets s.near to what all CTAs queued, returns control words `words`.

        Adds the counts of the CTAs to the words of this turn in the groups of `counted`, and reads
        these and that of FOUND.
        """
        k, control = self.k, self.m.control
        self.flush(s)
        adds = [(*word, control, group.at(s.turn)) for group, word in self.counted]
        counters = (Word.FOUND.at(s.turn), *(group.at(s.turn) for group, _ in self.counted))
        reads = [(control, w) for w in (*counters, *words)]
        s.ok, near, *found = k.grid_barrier(control, reads, adds)
        if self.counted:
            edges, away, *found = found
            s.edges, s.away = k.where(s.carried > 0, s.edges, 0) + edges, s.away + away
        s.near, s.carried, s.cur = s.carried + near, 0, s.cur ^ 1
        return found

    def _write_results(self) -> None:
        """Labels and parents in the caller's numbering."""
        k, m = self.k, self.m
        if m.order is None:
            return

        def result(i):
            v = k.load(m.order, i, cache="nc")
            k.store(m.distances, v, k.load(m.labels, i, cache="fresh"))
            if self.c.rule.parents:
                parent = k.load(m.noted, i, cache="fresh")
                is_valid = k.below(parent, self.c.n)
                old = k.load(m.order, parent, mask=is_valid, cache="nc")
                k.store(m.parents, v, k.where(is_valid, old, parent))

        k.spread(self.c.n, result)

    def near_and_far(self, s: State, new: Value, old: Value, won: Value) -> tuple[Value, ...]:
        """Masks of lowered labels (`won`): new ones below the bound, those at or above it, and of
        the latter those whose vertices may not be in far yet."""
        close, away = won & (new < s.bound), won & (new >= s.bound)
        return close, away, away if self.c.marked else away & (old == self.c.infinity)

    def least_of(self, least: Value, new: Value, away: Value) -> Value:
        """The least of `least` and of the new labels put into far."""
        for x, w in one_by_one(new, away):
            least = self.k.where(w, self.k.minimum(least, x), least)
        return least

    def maximise_least(self, least: Value, tail: Array, word: Operand) -> None:
        """Maximises word `word` of `tail` by MAX - the least label of the warp."""
        k = self.k

        def some():
            low = k.warp_fold(k.minimum, least)
            k.reduce("max", tail, word, MAX - low, mask=k.lane == 0)

        k.if_(k.any(least != MAX), some)

    def _next_bound(self, s: State) -> Value:
        """The bound after a split: it rises beyond the least label of far even if delta is
        absorbed."""
        k = self.k
        least = k.maximum(s.least, s.bound)
        return k.maximum(self.clamped(least, self.bucket(s)), k.minimum(least, MAX - 1) + 1)

    def bucket(self, s: State) -> Value:
        """The width of the next bucket."""
        return self.width(s.doublings)

    def _split(self, s: State, old: Value) -> Value:
        """Moves far: to near below the new bound, out below the old one, else to the next far.

        Returns the lane's least label put there.
        """
        k, c, m = self.k, self.c, self.m

        def entries(i, least):
            base = ((s.pile + 1) & 1) * c.n
            v = k.load(m.far, base + i, mask=i < s.far, other=-1, cache="fresh")
            label = k.load(m.labels, v, mask=v >= 0, other=-1, cache="fresh")
            wanted = self.within(label)
            stays = (label >= s.bound) & wanted
            if c.marked:
                k.store(m.marks, c.n + v, 0, mask=(v >= 0) & ~stays)
            self.put_near(s, v, (label >= old) & (label < s.bound) & wanted)
            self.put_far(s, v, stays)
            return k.where(stays, k.minimum(least, label), least)

        return k.spread_warps(s.far, entries, MAX)[0]
