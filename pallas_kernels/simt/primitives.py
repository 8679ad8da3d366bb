"""All primitives of a kernel: those of `threads.py`, and the barriers of a grid."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .threads import Threads
from .typed import Array, Body, Operand, Value

# Words of the control array that every kernel with a grid barrier gets, zero at the start of the
# launch.
CONTROL_WORDS = 64
ARRIVALS, ABORT = 0, 32  # on different 128-byte lines, so that polling one does not delay the other
SPIN_LIMIT = 1 << 21  # polls before a barrier gives up: about a second
EXPIRED = 1 << 30  # in ARRIVALS: a barrier gave up
COUNT_BITS, MOST_COUNTING = 23, 254  # of `counting_barrier`: bits of its sum, CTAs


class Simt(Threads):
    """What kernels are written with."""

    def grid_barrier(
        self,
        control: Array,
        reads: Sequence[tuple[Array, Operand]] = (),
        adds: Iterable[tuple[Array, int, Array, Operand]] = (),
        ctas: int | None = None,
        limit: int = SPIN_LIMIT,
        meanwhile: Body | None = None,
    ) -> tuple[Value, ...]:
        """Waits for all CTAs; then each CTA reads the words `reads`, a list of (array, index), for
        all its threads.

        adds: (shared array, j, array, i): before the wait, the CTA's shared word j is added to
        array[i] and zeroed. meanwhile(): what all warps but the first do while it waits, ordered as
        if it came after the barrier. Returns (ok, *words). ok is 0 if some CTA polled `limit` times
        without success (a CTA was not resident or `ctas` is too large): then control word ABORT is
        set, every later barrier fails immediately, and the kernel must leave. Everything written
        before the barrier is seen by "fresh" loads and atomics after it. Cost: one fence, one
        atomic, polling by one thread a CTA but the last, two CTA barriers: about 1.2 us.
        """
        ctas = self.ctas if ctas is None else ctas
        self.sync()

        def arrive():
            self.hand_over(adds)
            before = self.atomic("add", control, ARRIVALS, 1, order="acq_rel")
            target = (before // ctas + 1) * ctas
            arrived = lambda seen: (seen >= target) & (seen < EXPIRED)  # noqa: E731
            ok, _ = self._poll((control, ARRIVALS, before + 1), arrived, EXPIRED, limit)
            words = [self.load(a, i, cache="fresh") for a, i in reads]
            for j, w in enumerate([ok, *words]):
                self.store(self._slot, j, w)

        self.if_(self.thread == 0, arrive)
        if meanwhile is not None:
            self.if_(self.warp > 0, meanwhile)
        self.sync()
        return tuple(self.load(self._slot, j) for j in range(1 + len(reads)))

    def hand_over(self, adds: Iterable[tuple[Array, int, Array, Operand]]) -> None:
        """Adds words of the CTA to others and zeroes them: `adds` of a barrier, by one thread."""
        for source, j, a, i in adds:
            amount = self.load(source, j)
            self.reduce("add", a, i, amount, mask=amount != 0)
            self.store(source, j, 0)

    def _poll(
        self,
        word: tuple[Array, Operand, Value],
        arrived: Callable[[Value], Value],
        expired: int,
        limit: int,
    ) -> tuple[Value, Value]:
        """Polls a control word until arrived(its value): called by one thread. Returns (ok, value),
        ok as for `grid_barrier`.

        word: control, index, and the value after this thread's own atomic: the last CTA to arrive
        need not poll. Who gives up sets the bits `expired` of the word, with which `arrived` is
        false: so no thread passes this barrier any more.
        """
        control, i, start = word

        def again(n, seen, abort):
            abort = self.if_(
                (n & 63) == 63, lambda: self.load(control, ABORT, cache="fresh"), abort
            )[0]
            return n + 1, self.load(control, i, cache="acquire"), abort

        _, seen, _ = self.while_(
            lambda n, seen, abort: ~arrived(seen) & (n < limit) & (abort == 0), again, 0, start, 0
        )
        failed = ~arrived(seen)
        self.reduce("or", control, i, expired, mask=failed)
        self.give_up(control, failed)
        return self.cast(~failed, "i32"), seen

    def give_up(self, control: Array, mask: Value) -> None:
        """Makes every later barrier fail."""
        self.reduce("or", control, ARRIVALS, EXPIRED, mask=mask)
        self.store(control, ABORT, 1, mask=mask)

    def counting_barrier(
        self,
        control: Array,
        at: Operand,
        amount: Callable[[], Value],
        meanwhile: Callable[[], Any] = lambda: None,
        limit: int = SPIN_LIMIT,
    ) -> tuple[Value, Value, Value, Value, Any]:
        """A grid barrier of at most MOST_COUNTING CTAs that adds up `amount()` of each CTA, called
        by one thread. Returns (ok, the sum of the CTAs before, the sum of all, flag, meanwhile()).

        Word `at` of control is 0 before: it holds arrivals and sum together, so no counter is read
        back. The sum is below 2^COUNT_BITS; flag is whether the sign bit was set by an atomic.
        meanwhile(): what all threads do after their CTA arrived, not ordered with other CTAs. A
        thread of the last warp waits, so that the loads of the first ones do not delay it.
        """
        waits = self.thread == self.threads - 32
        self.sync()

        def arrive():
            total = amount() + (1 << COUNT_BITS)
            before = self.atomic("add", control, at, total, order="acq_rel")
            return before, before + total

        before, after = self.if_(waits, arrive, 0, 0)
        found, every = meanwhile(), MOST_COUNTING + 1

        def wait():
            arrived = lambda word: (self.shr(word, COUNT_BITS) & every) == self.ctas  # noqa: E731
            ok, seen = self._poll((control, at, after), arrived, every << COUNT_BITS, limit)
            for j, word in enumerate((ok, before, seen)):
                self.store(self._slot, j, word)

        self.if_(waits, wait)
        self.sync()
        ok, before, seen = (self.load(self._slot, j) for j in range(3))
        below = (1 << COUNT_BITS) - 1
        return ok, before & below, seen & below, self.shr(seen, 31), found

    def sums_of_ctas(
        self,
        control: Array,
        at: Operand,
        amount: Value,
        shared: Array,
        meanwhile: Body | None = None,
    ) -> tuple[Value, Value, Value]:
        """(ok, sum of `amount` over the CTAs before, over all): one int32 >= 0 a CTA.

        Words at .. at + CTAs - 1 of control are zero at the start and serve once; three words of
        shared. meanwhile(): what all threads do while the words are in flight. ok is 0 if the word
        of a CTA did not come in SPIN_LIMIT polls; then control word ABORT is set. It orders no
        other access: cheaper than a grid barrier by a fence and an atomic.
        """
        self.reduce("add", control, at + self.cta, amount + 1, mask=self.thread == 0)
        self.sync()
        self.store(shared, self.thread, 0, mask=self.thread < 3)
        if meanwhile is not None:
            meanwhile()
        self.sync()

        def cta(p):
            def poll(n, word):
                return n + 1, self.load(control, at + p, cache="fresh")

            _, word = self.while_(lambda n, word: (word == 0) & (n < SPIN_LIMIT), poll, 0, 0)
            self.atomic("add", shared, 0, word - 1, mask=p < self.cta)
            self.atomic("add", shared, 1, word - 1)
            self.atomic("or", shared, 2, 1, mask=word == 0)

        self.for_(self.thread, self.ctas, self.threads, cta)
        self.sync()
        before, total, late = (self.load(shared, j) for j in range(3))
        self.give_up(control, (late != 0) & (self.thread == 0))
        return self.cast(late == 0, "i32"), before, total
