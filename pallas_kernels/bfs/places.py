"""Where the frontier and the visited bits of `low_degree.py` lie, and how it is expanded there."""

from abc import ABC, abstractmethod
from typing import Any, NamedTuple

from ..frontier import put, store_each
from ..simt.primitives import COUNT_BITS, Simt
from ..simt.typed import Array, Arrays, Several, Value
from .problem import Problem


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
    is_valid, (word, bit) = k.below(near, c.n), place_of_bit(k, c, near)
    return is_valid & (k.atomic("or", bits, word, bit, mask=is_valid) & bit == 0)


def log_entry(k: Simt, c: Problem, m: Arrays, at: Value, entry: tuple, mask: Value) -> None:
    """Stores (vertex, level, parent) at place `at` of the log."""
    k.store_vec(m.log, at * c.entry, (*entry, 0) if c.parents else entry[:2], mask=mask)


class Frontier(NamedTuple):
    """Vertices of a level: entries start .. start + count - 1 of the log; those of the next level
    begin at `end`; `turn` selects the word that counts them."""

    level: Any
    start: Any
    count: Any
    end: Any
    turn: Any


class Place(ABC):
    """Where the bits and the frontier are."""

    bits: Array

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        self.k, self.c, self.m = k, c, m

    @abstractmethod
    def entry(self, f: Frontier, i: Value, is_valid: Value) -> Value:
        """The vertex of entry i of the frontier, -1 where not valid."""

    @abstractmethod
    def record(self, at: Value, vertex: Value, level: Any, mask: Value) -> None:
        """Logs a vertex that is expanded, if it was not logged when it was found."""

    @abstractmethod
    def append(self, f: Frontier, near: Any, won: Value, parent: Value) -> None:
        """Puts the vertices with `won` into the next frontier."""

    def row(self, quad: Value) -> Several:
        """The neighbours in a quad, -1: none."""
        k, a = self.k, self.m.adjacency
        return Several(k.load_vec(a, quad * 4, 4, mask=quad >= 0, other=self.c.n, cache="nc"))

    def expand(self, f: Frontier, over: tuple[Any, Any], held: tuple[Value, ...] = ()) -> None:
        """Expands a frontier, this warp the entries from over[0] on in strides of over[1]; held:
        what `hold` gave for the first of them."""
        k, c = self.k, self.c

        def visit(near, vertex):
            """Claims neighbours of a vertex; returns the quad that continues them."""
            self.append(f, near, claim(k, c, self.bits, near), vertex)
            return k.where(near[-1] < 0, ~near[-1], -1)

        def follow(quad, vertex):
            k.while_(
                lambda quad: k.any(quad >= 0), lambda quad: visit(self.row(quad), vertex), quad
            )

        def entries(i0):
            i = i0 + k.lane
            entry = i // c.quads
            vertex = self.entry(f, entry, entry < f.count)
            part = i - entry * c.quads
            quad = k.where(vertex >= 0, vertex * c.quads + part, -1)
            near = None if c.linked else self.row(quad)  # in flight while the vertex is logged
            self.record(f.start + entry, vertex, f.level, (vertex >= 0) & (part == 0))
            if near is None:
                follow(quad, vertex)
            else:
                visit(near, vertex)

        first, step = over
        if held:
            vertex, parent, *near = held
            entry = (first + k.lane) // c.quads
            is_first = (vertex >= 0) & (first + k.lane == entry * c.quads)
            log_entry(k, c, self.m, f.start + entry, (vertex, f.level, parent), is_first)
            last = visit(Several(near), vertex)
            if c.linked:
                follow(last, vertex)
            first = first + step
        k.for_(first, f.count * c.quads, step, entries)


class Grid(Place):
    """All CTAs: bits and frontier in global memory."""

    word: Any  # control word that counts the next frontier

    def __init__(self, k: Simt, c: Problem, m: Arrays):
        super().__init__(k, c, m)
        self.bits = m.visited

    def prefetch(self, v: Value, mask: Value) -> None:
        """Brings rows into L2, where they arrive during the barrier."""
        k, quads = self.k, self.c.quads
        k.prefetch(self.m.adjacency, v * (4 * quads), mask=mask)
        if quads > 2:
            k.prefetch(self.m.adjacency, v * (4 * quads) + 4 * quads - 1, mask=mask)

    def entry(self, f, i, is_valid):
        at = (f.start + i) * self.c.entry
        return self.k.load(self.m.log, at, mask=is_valid, other=-1, cache="fresh")

    def record(self, at, vertex, level, mask):
        pass  # `append` has logged the vertex

    def append(self, f, near, won, parent):
        """Adds to control word `word`."""
        k, c, m = self.k, self.c, self.m

        def store(at, v, mask):
            log_entry(k, c, m, f.end + at, (v, f.level + 1, parent), mask)
            self.prefetch(v, mask)

        put(k, won, (m.control, self.word), store, near)


class Queues(Place):
    """The frontier in shared memory: two queues by the parity of the level.

    A queue holds (vertex, parent) pairs, or only vertices if no parents are asked for. They are
    logged when they are expanded, while their row is in flight: one store for each vertex instead
    of one for each slot of the row that found it. Word turn & 3 of `tails` counts the next queue.
    """

    def __init__(self, k: Simt, c: Problem, m: Arrays, queues: Array, tails: Array):
        super().__init__(k, c, m)
        self.width, self.queues, self.tails = c.entry // 2, queues, tails
        self.warps = (k.warp * 32, k.threads)

    @abstractmethod
    def beyond(self, f: Frontier, first: Value, total: Value) -> Value:
        """Position in the log of queue entry 0, for the part of entries first .. first + total - 1
        that the queue has no place for."""

    def at(self, level, i):
        return ((level & 1) * self.c.queue + i) * self.width

    def entry(self, f, i, is_valid):
        vertex, *self.parent = self.k.load_vec(
            self.queues, self.at(f.level, i), self.width, mask=is_valid, other=-1
        )
        return vertex

    def record(self, at, vertex, level, mask):
        parent = self.parent[0] if self.parent else 0
        log_entry(self.k, self.c, self.m, at, (vertex, level, parent), mask)

    def append(self, f, near, won, parent):
        """Adds to word turn & 3 of `tails`."""
        k, c = self.k, self.c

        def queue(at, v, mask):
            k.store_vec(self.queues, self.at(f.level + 1, at), (v, parent)[: self.width], mask=mask)

        votes = k.ballot(won)
        total = k.total(k.popc(votes), k.const(0))

        def each(base, store):
            store_each(k, base, votes, store, near, won)

        def some():
            first = k.reserve(self.tails, f.turn & 3, total)
            full = first + total > c.queue

            def overflow():
                log = self.beyond(f, first, total)

                def either(at, v, mask):
                    queue(at, v, mask & (at < c.queue))
                    entry = v, f.level + 1, parent
                    log_entry(k, c, self.m, log + at, entry, mask & (at >= c.queue))

                each(first, either)

            k.if_(~full, lambda: each(first, queue))
            k.if_(full, overflow)

        k.if_(total > 0, some)

    def enter(self, level, start, count):
        """Copies the frontier, at most a queue, from the log."""
        k, c, m = self.k, self.c, self.m

        def copy(i):
            v, _, *parent = k.load_vec(m.log, (start + i) * c.entry, c.entry, cache="fresh")
            k.store_vec(self.queues, self.at(level, i), (v, *parent)[: self.width])

        k.for_(k.thread, count, k.threads, copy)
        k.store(self.tails, k.thread, 0, mask=k.thread < 4)
        k.sync()

    def leave(self, level, start, count):
        """Logs the frontier, which was not expanded."""
        k, c = self.k, self.c

        def log(i):
            entry = k.load_vec(self.queues, self.at(level, i), self.width)
            logged = entry[0], level, entry[-1]
            log_entry(k, c, self.m, start + i, logged, k.const(True, "i1"))

        k.for_(k.thread, k.minimum(count, c.queue), k.threads, log)


class LocalQueues(Queues):
    """Each CTA has a queue; the bits are in global memory."""

    word: Any  # control word of the counting barrier of this level

    def __init__(self, k: Simt, c: Problem, m: Arrays, queues: Array, tails: Array):
        super().__init__(k, c, m, queues, tails)
        self.bits = m.visited

    def beyond(self, f, first, total):
        """Adds to control word `word`."""
        k, queue = self.k, self.c.queue
        inside = k.minimum(k.maximum(queue - first, 0), total)
        at = k.reserve(self.m.control, self.word, total - inside) & ((1 << COUNT_BITS) - 1)
        return f.end + at - (first + inside)

    def hold(self, level: Any, count: Value) -> tuple[Value, ...]:
        """(vertex, parent, neighbours) of this lane's first part of the frontier, the neighbours in
        the quad that continues it, too."""
        k, c = self.k, self.c
        i = k.warp * 32 + k.lane
        entry = i // c.quads
        at = self.at(level, entry)
        found = k.load_vec(self.queues, at, self.width, mask=entry < count, other=-1)
        near = self.row(k.where(found[0] >= 0, found[0] * c.quads + (i - entry * c.quads), -1))
        if c.linked:
            near = (*near, *self.row(k.where(near[3] < 0, ~near[3], -1)))
        return found[0], found[-1], *near


class SingleCTA(Queues):
    """CTA 0 works alone: bits (if they fit) and frontier in shared memory."""

    def __init__(self, k: Simt, c: Problem, m: Arrays, queues: Array, tails: Array):
        super().__init__(k, c, m, queues, tails)
        self.bits = k.shared(c.words) if c.shared_bits else m.visited

    def beyond(self, f, first, total):
        return f.end

    def enter(self, level, start, count):
        """Copies the visited bits, too."""
        k, c = self.k, self.c
        if c.shared_bits:

            def copy(w):
                k.store_vec(self.bits, w, k.load_vec(self.m.visited, w, 4, cache="fresh"))

            k.for_(k.thread * 4, c.words, k.threads * 4, copy)
        super().enter(level, start, count)

    def leave(self, level, start, count):
        """Copies the visited bits back, too, if the search goes on."""
        k, c = self.k, self.c
        super().leave(level, start, count)

        def back(w):
            k.store_vec(self.m.visited, w, k.load_vec(self.bits, w, 4))

        if c.shared_bits:
            k.if_(count > 0, lambda: k.for_(k.thread * 4, c.words, k.threads * 4, back) and None)
