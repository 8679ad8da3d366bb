"""Kernels interpreted warp by warp, in an order drawn from a seed, over memory as a GPU shows it.

The interpreter takes all threads of a launch through every step together: no warp is ever ahead of
what it waits for, and every store is seen at once. Here each warp is a thread of the host, one of
which runs at a time; any access may hand over to another. A store reaches memory later, at the next
barrier of its CTA at the latest. A plain load reads the L1 of the CTA, whose sectors are as they
were when first loaded until the CTA acquires; a load by "nc" reads what no barrier refreshes.

`gridded`: launches on a grid that a test chooses, in the interpreter or on a GPU.
"""

import random
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from pallas_kernels.simt import interpret
from pallas_kernels.simt.device import Grid, launching

DEFAULT_GRID = Grid()

SECTOR = 8  # words of an L1 that are loaded together


class Launch:
    """What the warps of a launch share: memory of each CTA, and which warp runs."""

    def __init__(self, job, memories, seed):
        self.job, self.memories, self.random = job, memories, random.Random(seed)
        places = [(cta, warp) for cta in range(job.ctas) for warp in range(job.threads // 32)]
        self.shared: list[list] = [[] for _ in range(job.ctas)]
        self.l1, self.nc = ([{} for _ in range(job.ctas)] for _ in range(2))
        self.warps = [Warp(self, *place) for place in places]
        self.slow = self.random.sample(self.warps, len(self.warps) // 3)
        self.hand, self.reach = (self.random.choice((0.02, 0.1, 0.4)) for _ in range(2))
        self.ready, self.failed, self.ended = list(self.warps), None, threading.Event()

    def run(self):
        for warp in self.warps:
            warp.host.start()
        self.next().turn.release()
        self.ended.wait()
        if self.failed:
            raise self.failed

    def next(self):
        """The warp that runs next: rarely a slow one, nor one that polls while others do not."""
        if not self.ready:
            raise RuntimeError("the warps wait for each other")
        lively = [w for w in self.ready if not w.polls] or self.ready
        fast = [w for w in lively if w not in self.slow] or lively
        return self.random.choice(fast if self.random.random() < 0.95 else self.ready)

    def end(self, warp, error):
        """A warp has ended; after an error of one none goes on."""
        self.failed = self.failed or error
        self.ready = [w for w in self.ready if w is not warp]
        if not self.ready and any(w.waits for w in self.warps):
            self.failed = self.failed or RuntimeError("warps wait for one that has ended")
        if self.failed or not self.ready:
            self.ended.set()
        else:
            self.next().turn.release()


class Warp(interpret.Lockstep):
    """The 32 lanes of one warp in lock step."""

    def __init__(self, launch, cta, warp):
        self.launch, self.place, self.made = launch, (cta, warp), 0
        self.polls = self.waits = False
        self.spot = None  # the last load from global memory
        self.late, self.words = [], set()  # stores that have not reached memory, and their words
        self.turn = threading.Semaphore(0)
        self.host = threading.Thread(target=self._host, daemon=True)

    def _host(self):
        job, (cta, warp), error = self.launch.job, self.place, None
        self.turn.acquire()
        try:
            super().__init__(1, 1, 32, job.shared_words)
            self.ctas, self.threads = job.ctas, job.threads
            self.thread = self.lane + 32 * warp
            self.warp, self.cta = self.const(warp), self.const(cta)
            job.kernel(self, *self.launch.memories)
            self._reach_memory()
        except BaseException as raised:
            error = raised
        self.launch.end(self, error)

    def _hand_over(self, surely=False):
        launch = self.launch
        if self.late and launch.random.random() < launch.reach:
            self._reach_memory(launch.random.randrange(len(self.late)))
        if surely or launch.random.random() < launch.hand:
            other = launch.next()
            if other is not self:
                other.turn.release()
                self.turn.acquire()
        self.polls = False

    def _reach_memory(self, which=None):
        """One late store reaches memory, or all do."""
        chosen = range(len(self.late)) if which is None else [which]
        for data, at, values in [self.late[j] for j in chosen]:
            data.reshape(-1)[at] = values
            self._leave_l1(data, at)
        self.late = [] if which is None else self.late[:which] + self.late[which + 1 :]
        self.words = {word for data, at, _ in self.late for word in self._named(data, at)}

    def _leave_l1(self, data, at):
        for word in at:
            self.launch.l1[self.place[0]].pop((id(data), word // SECTOR), None)

    @staticmethod
    def _named(data, at):
        return {(id(data), int(word)) for word in at}

    def _own_stores_first(self, a, at, width=1):
        """A thread sees what it wrote itself."""
        if self.words & {(id(a.data), int(p) + j) for p in at for j in range(width)}:
            self._reach_memory()

    def shared(self, words, kind="i32"):
        given, self.made = self.launch.shared[self.place[0]], self.made + 1
        if len(given) < self.made:
            given.append(super().shared(words, kind))
        return given[self.made - 1]

    def _where(self, a, i, mask, width=1):
        # all memory is the launch's or this CTA's: no offset by the place of a lane
        apart, self.threads = self.threads, 32
        self.ctas, ctas = 1, self.ctas
        try:
            return super()._where(a, i, mask, width)
        finally:
            self.threads, self.ctas = apart, ctas

    def load(self, a, i, mask=None, other=0, cache=None):
        return self.load_vec(a, i, 1, mask, other, cache)[0]

    def load_vec(self, a, i, width, mask=None, other=0, cache=None):
        if isinstance(a, interpret._Either) or a.space == "shared":
            self._hand_over()
            return super().load_vec(a, i, width, mask, other)
        lanes, at = self._where(a, i, mask, width)
        before, self.spot = self.spot, (cache, id(a.data), at.tobytes())
        self.polls = len(at) > 0 and cache in ("fresh", "acquire") and self.spot == before
        self._hand_over(self.polls)
        self._own_stores_first(a, at, width)
        cta, flat = self.place[0], a.data.reshape(-1)
        if cache == "acquire":
            self.launch.l1[cta].clear()
        if cache in ("fresh", "acquire"):
            return super().load_vec(a, i, width, mask, other)
        cached = (self.launch.nc if cache else self.launch.l1)[cta]
        found = [self.const(other, a.kind).v.copy() for _ in range(width)]
        for lane, first in zip(lanes, at, strict=True):
            for j, word in enumerate(range(first, first + width)):
                sector, place = divmod(word, SECTOR)
                if (id(a.data), sector) not in cached:
                    begin = sector * SECTOR
                    cached[id(a.data), sector] = flat[begin : begin + SECTOR].copy()
                found[j][lane] = cached[id(a.data), sector][place]
        return tuple(interpret.Value(self, x, a.kind) for x in found)

    def store_vec(self, a, i, values, mask=None):
        self._hand_over()
        if a.space == "shared":
            super().store_vec(a, i, values, mask)
            return
        lanes, at = self._where(a, i, mask, len(values))
        columns = [self.const(v, a.kind).v for v in values]
        stores = list(zip(lanes, at, strict=True))
        self.launch.random.shuffle(stores)  # which lane's store to a word stays is open
        for lane, first in stores:
            words = first + np.arange(len(values))
            self._own_stores_first(a, words)
            self.late.append((a.data, words, np.array([x[lane] for x in columns])))
            self.words |= self._named(a.data, words)

    def _atomic(self, a, i, mask, f):
        self._hand_over()
        _, at = self._where(a, i, mask)
        if a.space != "shared":
            self._own_stores_first(a, at)
            self._leave_l1(a.data, at)
        return super()._atomic(a, i, mask, f)

    def atomic(self, op, a, i, v, mask=None, order="relaxed"):
        if order == "acq_rel":
            self._reach_memory()
        before = super().atomic(op, a, i, v, mask)
        if order == "acq_rel":
            self.launch.l1[self.place[0]].clear()
        return before

    reduce = atomic

    def least_pair(self, a, i, x, y, mask=None):
        self._hand_over()
        lanes_at = self._where(a, i, mask, 2)[1]
        self._own_stores_first(a, lanes_at, 2)
        super().least_pair(a, i, x, y, mask)

    def load_pair(self, a, i, mask=None, acquire=True):
        return self.load_vec(a, i, 2, mask, cache="acquire" if acquire else "fresh")

    def fence(self, scope="gpu"):
        self._reach_memory()
        self.launch.l1[self.place[0]].clear()

    def sync(self):
        self._groups(32, "a CTA barrier")
        self._reach_memory()
        launch, self.waits = self.launch, True
        mine = [w for w in launch.warps if w.place[0] == self.place[0]]
        launch.ready.remove(self)
        if all(w.waits for w in mine):
            launch.ready += mine
            for warp in mine:
                warp.waits = False
        self._hand_over(surely=True)


def seeded(seed):
    """`interpret.run` of one device, its warps in an order drawn from a seed."""

    def run(job, devices):
        assert devices == 1

        def all_warps(lockstep, *memories):
            del lockstep
            Launch(job, memories, seed).run()

        return LOCKSTEP(job._replace(kernel=all_warps), 1)

    return run


run = seeded(0)
LOCKSTEP = interpret.run


def gridded(f: Callable[..., Any]) -> Callable[..., Any]:
    """`f` with an argument more: the grid on which its kernels are launched."""

    def run(*args, grid=DEFAULT_GRID, **options):
        with launching(grid):
            return f(*args, **options)

    run.__name__ = f.__name__
    return run
