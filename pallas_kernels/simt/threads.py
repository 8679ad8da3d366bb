"""Primitives of threads, warps and loops that are built on others, the same on the GPU and
interpreted."""

import functools
import operator
from collections.abc import Callable, Iterable
from typing import Any

from .typed import Array, Arrays, Body, Mask, Operand, Primitives, Value, each, flat, like, together

SINGLE = {  # primitives that take no `Several`
    *("const", "binary", "compare", "loop", "branch", "shared", "on", "either"),
    *("sync_warp", "sync", "sync_count", "fence", "clock"),
}


class Threads(Primitives):
    """Primitives that are built on the others."""

    device: Value  # set by `launch`

    def __init_subclass__(cls, **options: Any):
        super().__init_subclass__(**options)
        for name in vars(cls).keys() & vars(Primitives).keys() - SINGLE:
            if not name.startswith("_"):
                setattr(cls, name, each(vars(cls)[name]))

    @property
    def warps(self) -> tuple[Value, int]:
        """The number of this warp in the grid, and how many warps there are."""
        return self.warp * self.ctas + self.cta, self.ctas * self.threads // 32

    def as_tuple(self, x: Any) -> tuple[Operand, ...]:
        return () if x is None else x if isinstance(x, tuple) else (x,)

    def pair(self, a: Operand, b: Operand) -> tuple[Value, Value]:
        """Both as values of one kind: a Python number takes the kind of the other operand."""
        if isinstance(a, Value) and isinstance(b, Value):
            if a.kind != b.kind:
                raise TypeError(f"operands of kinds {a.kind} and {b.kind}: use k.cast")
            return a, b
        kind = a.kind if isinstance(a, Value) else b.kind if isinstance(b, Value) else "i32"
        return self.const(a, kind), self.const(b, kind)

    @each
    def operate(self, op: str, a: Operand, b: Operand) -> Value:
        return self.binary(op, *self.pair(a, b))

    @each
    def relate(self, op: str, a: Operand, b: Operand) -> Value:
        return self.compare(op, *self.pair(a, b))

    shr = functools.partialmethod(operate, "shr")
    minimum = functools.partialmethod(operate, "min")
    maximum = functools.partialmethod(operate, "max")
    below = functools.partialmethod(relate, "ltu")  # (v, n): 0 <= v < n, by one comparison

    def bit(self, i: Value) -> Value:
        """The word with bit i mod 32 set."""
        return self.const(1) << (i & 31)

    def unpack(self, word: Value, narrow: str) -> tuple[Value, ...]:
        """The two 16-bit floats of a word, the lower one first, as f32; narrow: "bf16", "f16"."""
        if narrow == "bf16":
            return self.bits(word << 16, "f32"), self.bits(word & -65536, "f32")
        return self.halves(word)

    def union(self, words: Any) -> Any:
        """The OR of some words, or of some masks."""
        return words if type(words) is Value else functools.reduce(operator.or_, words)

    def several(self, many: int, f: Callable[[int], Any]) -> Any:
        """f(0), f(1), ... side by side, of tuples each member; f(0) alone if `many` is 1."""
        return f(0) if many == 1 else together(map(f, range(many)))

    def total(self, values: Any, *start: Value) -> Any:
        """The sum of some values, from `start` on."""
        values = [values] if type(values) is Value else values
        return functools.reduce(operator.add, values, *start)

    def any(self, *masks: Operand) -> Value:
        """Whether one of the masks holds in one of the lanes."""
        return self.ballot(self.union(flat(masks))) != 0

    def all(self, b: Operand) -> Value:
        return self.ballot(b) == -1

    def lanes_below(self, word: Value) -> Value:
        """Number of set bits of a ballot below this lane: its rank among the voters."""
        return self.popc(word & ((self.const(1) << self.lane) - 1))

    def warp_scan(self, x: Value) -> tuple[Value, Value]:
        """Inclusive prefix sum over the warp of int32 x: (prefix at this lane, total)."""
        for d in (1, 2, 4, 8, 16):
            below = self.shfl_up(x, d)
            x = x + self.where(self.lane >= d, below, self.const(0, x.kind))
        return x, self.shfl(x, 31)

    def warp_fold(self, f: Callable[[Value, Value], Value], x: Value, lanes: int = 32) -> Value:
        """The x of all lanes combined by f, or of each group of `lanes`, in every lane."""
        while lanes := lanes // 2:
            x = f(x, self.shfl_xor(x, lanes))
        return x

    def warp_sum(self, x: Value) -> Value:
        return self.warp_fold(operator.add, x)

    @each
    def owner(self, before: Value, e: Operand) -> Value:
        """The last lane whose `before` is at most e, where these ascend with the lanes from 0."""
        lane = self.const(0)
        for d in (16, 8, 4, 2, 1):
            lane = self.where(self.shfl(before, lane + d) <= e, lane + d, lane)
        return lane

    def behind(self, x: Value, columns: Iterable[Value]) -> Value:
        """int32 x, made to depend on all of `columns`, values from -1 to 2^30 - 1.

        Short of registers, the compiler moves each load next to the use of its value. Then gathers
        at loaded indices run one after the other, each waiting for its own index. If x is a part of
        all their indices, they wait once, for all columns together.
        """
        word = self.union(columns)
        return self.where(word >= -(1 << 30), x, 0)

    def reserve(self, a: Array, i: Operand, total: Value) -> Value:
        """Position of the first of `total` entries of this warp, in every lane: word i of `a`
        counts the entries."""
        return self.shfl(self.atomic("add", a, i, total, mask=self.lane == 0), 0)

    def add_sum(self, a: Array, i: Operand, *each: Value) -> None:
        """Adds values of all lanes to words i, i + 1, ... of `a`, by an atomic where the sum is not
        0."""
        for j, total in enumerate([self.warp_sum(x) for x in each]):
            self.reduce("add", a, i + j, total, mask=(self.lane == 0) & (total != 0))

    def sum_words(self, a: Array, first: Operand, many: int) -> Value:
        """The sum of words first .. first + many - 1 of `a`, by a warp: all are loaded together."""
        at = [i + self.lane for i in range(0, many, 32)]
        words = [self.load(a, first + i, mask=i < many, cache="fresh") for i in at]
        return self.warp_sum(functools.reduce(operator.add, words))

    def results(self, memory: Arrays, **words: Operand) -> None:
        """Stores the numbers that a kernel returns, by name, by one thread of the grid."""
        for name, word in words.items():
            self.store(getattr(memory, name), 0, word, mask=(self.cta == 0) & (self.thread == 0))

    @each
    def row(self, indptr: Array, r: Value, mask: Mask = None) -> tuple[Value, Value]:
        """Where the entries of row r begin and end."""
        begin = self.load(indptr, r, mask=mask, cache="nc")
        return begin, self.load(indptr, r + 1, mask=mask, cache="nc")

    @each
    def search(self, array: Array, low: Value, high: Value, word: Value) -> Value:
        """The first place in low .. high - 1 of an ascending array that no thread writes whose word
        is `word` or more; high if there is none."""

        def halve(low, high):
            middle = low + self.shr(high - low, 1)
            left = self.load(array, middle, cache="nc") < word
            return self.where(left, middle + 1, low), self.where(left, high, middle)

        return self.while_(lambda low, high: low < high, halve, low, high)[0]

    def while_(self, cond: Callable[..., Operand], body: Body, *carry: Operand) -> tuple[Any, ...]:
        """carry after `while cond(*carry): carry = body(*carry)`."""

        def step(*values):
            return flat(self.as_tuple(body(*like(carry, values))))

        found = self.loop(lambda *values: cond(*like(carry, values)), step, *flat(carry))
        return like(carry, found)

    def if_(self, cond: Operand, then: Body, *default: Operand) -> tuple[Any, ...]:
        """then() where cond holds, else default."""
        found = self.branch(cond, lambda: flat(self.as_tuple(then())), *flat(default))
        return like(default, found)

    def for_(
        self, start: Operand, stop: Operand, step: Operand, body: Body, *carry: Operand
    ) -> tuple[Value, ...]:
        """carry after `for i in range(start, stop, step): carry = body(i, *carry)` (each thread its
        own range).
        """

        def step_once(i, *c):
            return (i + step, *self.as_tuple(body(i, *c)))

        return self.while_(lambda i, *c: i < stop, step_once, start, *carry)[1:]

    def each_bit(self, word: Operand, body: Body, *carry: Operand) -> tuple[Value, ...]:
        """carry = body(i, *carry) for the number i of each set bit of a word, from the lowest."""

        def one(left, *c):
            found = self.as_tuple(body(self.ctz(left), *c))
            return left & (left - 1), *found

        return self.while_(lambda left, *_: left != 0, one, word, *carry)[1:]

    def spread(self, size: Operand, f: Body, *carry: Operand) -> tuple[Value, ...]:
        """carry = f(i, *carry) for i = 0 .. size - 1 over all threads of all CTAs."""
        step = self.ctas * self.threads
        return self.for_(self.cta * self.threads + self.thread, size, step, f, *carry)

    def spread_warps(self, size: Operand, f: Body, *carry: Operand) -> tuple[Value, ...]:
        """`spread` with all lanes of a warp present: a warp gets 32 consecutive i, of which up to
        31 may be >= size.
        """

        def chunk(i0, *c):
            return f(i0 + self.lane, *c)

        return self.for_(self.warps[0] * 32, size, self.ctas * self.threads, chunk, *carry)

    def round_robin(self, count: Any, warps: tuple[Value, Any], f: Callable[..., Any]) -> None:
        """f(i, valid) for i = 0 .. count - 1, neighbours to different warps; all lanes call f.
        warps: as for `distribute`."""
        warp, many = warps

        def chunk(i0):
            i = (i0 + self.lane) * many + warp
            f(i, i < count)

        self.for_(0, (count + (many - 1)) // many, 32, chunk)

    def distribute(
        self, count: Any, warps: tuple[Value, Any], f: Body, *carry: Operand
    ) -> tuple[Value, ...]:
        """carry = f(i, valid, *carry) for i = 0 .. count - 1, distributed evenly over warps.

        warps: (number of this warp, number of warps). A warp gets up to 32 consecutive i in a step;
        f is called with all its lanes, `valid` for those that have an i.
        """
        warp, many = warps
        each = self.minimum(self.maximum((count + (many - 1)) // many, 1), 32)

        def chunk(i0, *c):
            valid = (self.lane < each) & (i0 + self.lane < count)
            return f(i0 + self.lane, valid, *c)

        return self.for_(warp * each, count, many * each, chunk, *carry)
