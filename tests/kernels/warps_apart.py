"""Kernels interpreted with a thread of the host for each warp, which run apart: waiting is real.

The interpreter takes all threads of a launch through every step together, so that no warp is ever
ahead of what it waits for. Here the host's scheduler decides.
"""

import sys
import threading

import numpy as np

from pallas_kernels.simt import interpret


class Launch:
    """What the warps of a launch share: a lock for atomics, barriers and memory of each CTA."""

    def __init__(self, ctas, threads, shared_words):
        self.ctas, self.threads, self.shared_words = ctas, threads, shared_words
        self.lock = threading.Lock()
        self.barriers = [threading.Barrier(threads // 32, timeout=60) for _ in range(ctas)]
        self.shared = [[] for _ in range(ctas)]


class Warp(interpret.Lockstep):
    """The 32 lanes of one warp in lock step."""

    def __init__(self, launch, cta, warp):
        self.launch, self.made, self.number = launch, 0, cta
        super().__init__(1, 1, 32, launch.shared_words)
        self.ctas, self.threads = launch.ctas, launch.threads
        self.thread = self.const(np.int32(32 * warp)) + self.lane
        self.warp, self.cta = self.const(warp), self.const(cta)

    def shared(self, words, kind="i32"):
        with self.launch.lock:
            given, self.made = self.launch.shared[self.number], self.made + 1
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

    def _atomic(self, a, i, mask, f):
        with self.launch.lock:
            return super()._atomic(a, i, mask, f)

    def store_pair(self, a, i, x, y, mask=None):
        with self.launch.lock:
            super().store_pair(a, i, x, y, mask)

    def load_pair(self, a, i, mask=None, acquire=True):
        with self.launch.lock:
            return super().load_pair(a, i, mask, acquire)

    def least_pair(self, a, i, x, y, mask=None):
        with self.launch.lock:
            super().least_pair(a, i, x, y, mask)

    def sync(self):
        self._groups(32, "a CTA barrier")
        self.launch.barriers[self.number].wait()


def run(job, devices):
    """`interpret.run` of one device, each warp in a thread of its own."""
    assert devices == 1
    launch, failed = Launch(job.ctas, job.threads, job.shared_words), []

    def all_warps(lockstep, *memories):
        del lockstep

        def one(cta, warp):
            try:
                job.kernel(Warp(launch, cta, warp), *memories)
            except BaseException as error:
                failed.append(error)
                for barrier in launch.barriers:
                    barrier.abort()

        warps = [(cta, warp) for cta in range(job.ctas) for warp in range(job.threads // 32)]
        hosts = [threading.Thread(target=one, args=place) for place in warps]
        before = sys.getswitchinterval()
        sys.setswitchinterval(1e-5)
        for host in hosts:
            host.start()
        for host in hosts:
            host.join()
        sys.setswitchinterval(before)
        if failed:
            raise failed[0]

    return LOCKSTEP(job._replace(kernel=all_warps), 1)


LOCKSTEP = interpret.run
