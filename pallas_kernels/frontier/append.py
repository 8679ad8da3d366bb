"""How the lanes of a warp append to a queue, by one atomic for all of them, and take from one."""

from collections.abc import Callable, Sequence
from typing import Any

from ..simt.primitives import Simt
from ..simt.typed import Array, Body, Operand, Value, one_by_one

LANE_RANGES = 4  # ranges of a row that its lane stores; the warp stores the others


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
