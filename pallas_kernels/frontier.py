"""What traversals share: appends to queues, the state of a loop, control words that rotate."""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, Self

from .simt.device import Extent, resident_ctas
from .simt.primitives import Simt
from .simt.typed import Array, Body, Operand, Value, one_by_one

LANE_RANGES = 4  # ranges of a row that its lane stores; the warp stores the others
GROUPS = 4  # of control words that rotate, a power of two


def put(
    k: Simt, won: Value, counter: tuple[Array, Operand], store: Callable[..., None], *values: Value
) -> None:
    """store(position, *values, mask) where `won` holds, for one or several a lane; counter: the
    array and the word that count them."""
    votes = k.ballot(won)
    total = k.total(k.popc(votes), k.const(0))

    def some():
        store_each(k, k.reserve(*counter, total), votes, store, *values, won)

    k.if_(total > 0, some)


def put_words(
    k: Simt, won: Value, counter: tuple[Array, Operand], into: tuple[Array, Operand], *values: Value
) -> None:
    """`put` of entries of one or several words; into: the array, and the entries before the first
    that the counter counts."""
    array, first = into

    def store(at, *entry):
        *words, mask = entry
        k.store_vec(array, (first + at) * len(words), words, mask=mask)

    put(k, won, counter, store, *values)


def store_each(
    k: Simt, base: Value, votes: Value, store: Callable[..., Any], *values: Value
) -> Value:
    """store(position, *value) for several values a lane, from position `base` on; votes: ballots of
    the lanes that have them. Returns the position behind the last."""
    for vote, *one in one_by_one(votes, *values):
        store(base + k.lanes_below(vote), *one)
        base = base + k.popc(vote)
    return base


def nth(k: Simt, given: Sequence[tuple[Value, ...]], j: Value) -> tuple[Value, ...]:
    """given[j]; so a loop over j has the code of its body once, where unrolling would repeat it."""
    found = given[0]
    for i, one in enumerate(given[1:], 1):
        found = tuple(k.where(j == i, new, old) for new, old in zip(one, found, strict=True))
    return found


def take_shares(
    k: Simt,
    size: Value,
    most: Operand,
    warps: tuple[Value, Any],
    counter: tuple[Array, Operand],
    chunk: Body,
    *carry: Operand,
) -> tuple[Value, ...]:
    """carry = chunk(i, valid, *carry) for the entries i of a queue.

    Each warp, of (its number, how many there are), first takes an equal share, `most` at most; then
    warps take as many more by the word `counter`, zero before, until none is left.
    """
    worker, workers = warps
    each = k.minimum((size + (workers - 1)) // workers, most)
    shared_out = each * workers
    more = (k.lane == 0) & (size > shared_out)

    def some(at, *carry):
        after = k.atomic("add", *counter, each, mask=more)
        i = at + k.lane
        carry = chunk(i, (k.lane < each) & (i < size), *carry)
        return shared_out + k.shfl(after, 0), *k.as_tuple(carry)

    return k.while_(lambda at, *carry: at < size, some, worker * each, *carry)[1:]


def range_count(span: int, start: Value, end: Value) -> Value:
    """Ranges of at most `span` edges that start .. end is cut into."""
    return (end - start + (span - 1)) // span


def write_row(k: Simt, queue: Array, span: int, row: tuple[Value, Value, Value]) -> None:
    """Puts the ranges (start, end, vertex, 0) of one row at the beginning of a queue."""
    start, end, vertex = row

    def item(i):
        at = start + i * span
        k.store_vec(queue, i * 4, (at, k.minimum(at + span, end), vertex, 0))

    k.spread(range_count(span, start, end), item)


def write_ranges(k: Simt, parts: Value, row: Sequence[Value], store: Callable[..., None]) -> None:
    """store(j, *row) for j = 0 .. parts - 1 of each lane; all lanes store those of long rows."""
    k.for_(0, k.minimum(parts, LANE_RANGES), 1, lambda j: store(j, *row))

    def long(lane):
        count, *of_lane = (k.shfl(x, lane) for x in (parts, *row))
        k.for_(k.lane + LANE_RANGES, count, 32, lambda j: store(j, *of_lane))

    k.each_bit(k.ballot(parts > LANE_RANGES), long)


@dataclasses.dataclass
class Carry:
    """Base of the states that loops carry: dataclasses whose fields are kernel values, equal in all
    CTAs, or tuples of values."""

    @classmethod
    def of(cls, **named: Operand) -> Self:
        """The named fields as given, all others 0."""
        return cls(**{field.name: 0 for field in dataclasses.fields(cls)} | named)

    def values(self) -> tuple[Any, ...]:
        """The values of all fields in their order."""
        found: list[Any] = []
        for field in dataclasses.fields(self):
            value = getattr(self, field.name)
            found += value if isinstance(value, tuple) else (value,)
        return tuple(found)

    def like(self, *values: Any) -> Self:
        """A state of these values, with tuples where this one has them."""
        left, fields = iter(values), []
        for field in dataclasses.fields(self):
            old = getattr(self, field.name)
            fields.append(tuple(next(left) for _ in old) if isinstance(old, tuple) else next(left))
        return type(self)(*fields)

    def after(self, k: Simt, when: Operand, action: Callable[[Self], object]) -> Self:
        """The state after `action` changed a copy of it where `when` holds, else as it was."""

        def run():
            new = self.like(*self.values())
            action(new)
            return new.values()

        return self.like(*k.if_(when, run, *self.values()))

    def loop(
        self, k: Simt, going: Callable[[Self], Operand], step: Callable[[Self], Self | None]
    ) -> Self:
        """The state after `while going(s): step(s)`; a step changes it or returns another."""

        def body(*carry):
            s = self.like(*carry)
            return (step(s) or s).values()

        return self.like(*k.while_(lambda *c: going(self.like(*c)), body, *self.values()))


class Rotation:
    """GROUPS groups of `words` control words from `first` on; turn t uses group t mod GROUPS.

    A turn ends with a grid barrier. All CTAs read its group at this barrier, and may still read it
    until they arrive at the next one. So turn t clears the group of turn t + 2: it was last read
    before the barrier that began turn t, and is next written after the one that ends turn t + 1.
    """

    def __init__(self, k: Simt, control: Array, first: int, words: int):
        self.k, self.control, self.first, self.words = k, control, first, words

    def group(self, turn: Value) -> Value:
        """Index of the first control word of a turn."""
        return self.first + (turn & (GROUPS - 1)) * self.words

    def clear(self, turn: Value) -> None:
        """Clears the group of turn + 2: called by all threads, at turn `turn`."""
        k = self.k
        mine = (k.cta == 0) & (k.thread < self.words)
        k.store(self.control, self.group(turn + 2) + k.thread, 0, mask=mine)


def report(k: Simt, control: Array, first: int, words: tuple[Operand, ...]) -> None:
    """What a CTA that worked alone reports to all: control words from `first` on."""
    for j, word in enumerate(words):
        k.store(control, first + j, word, mask=k.thread == 0)


@dataclasses.dataclass(frozen=True)
class Spread:
    """How a traversal is spread over the GPU: base of the configurations."""

    ctas: int = 0  # 0: as many as are resident
    threads: int = 1024
    interpret: bool = False  # on the host, over NumPy arrays

    def form(self) -> Extent:
        """Arguments of `launch`."""
        ctas = self.ctas or resident_ctas()
        return {"ctas": ctas, "threads": self.threads, "interpret": self.interpret}


@dataclasses.dataclass(frozen=True)
class Sizes:
    """Sizes of a graph, known while a kernel is traced."""

    n: Any = 0  # an int; in the pull of a mesh, a value
    targets: int = 0  # vertices at which a search may stop
    quads: int = 0  # low_degree: groups of four places in a row
    linked: bool = False  # low_degree: rows may continue elsewhere
