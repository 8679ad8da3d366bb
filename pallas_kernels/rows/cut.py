"""Rows that `merge_path.py` cut: parts joined within a CTA, then between CTAs, in one order."""

from collections.abc import Callable, Sequence

from ..simt.primitives import Simt
from ..simt.typed import Array, Body, Operand, Value

AHEAD = 8  # CTAs whose parts of one row are loaded together


def join_in_cta(
    k: Simt,
    heads: Sequence[Array],
    combine: Callable[..., Value],
    y: Array,
    rows: Array,
    parts: Array,
) -> None:
    """Combines, within a CTA, the parts of rows that began in an earlier warp; called by one warp.

    heads: shared arrays with row and value of the first part of each warp, row -1 if the first row
    of the warp begins there. A row that begins in this CTA is completed in y. For a row that began
    in an earlier CTA, rows[cta] and parts[cta] get the part of this CTA; rows[cta] = -1: none.
    """
    valid = k.lane < k.threads // 32
    row = k.load(heads[0], k.lane, mask=valid, other=-1)
    value = k.load(heads[1], k.lane, mask=valid & (row >= 0))
    for d in (1, 2, 4, 8, 16):  # the first lane of a run of equal rows combines 2 d of them
        after, part = k.shfl(row, k.lane + d), k.shfl(value, k.lane + d)
        same = (k.lane + d < 32) & (after == row)
        value = k.where(same, combine(value, part), value)
    before = k.shfl_up(row, 1)
    begins = (row >= 0) & ((k.lane == 0) | (before != row))
    mine = begins & (k.lane > 0)  # the row begins in this CTA: its first part is in y
    k.store(y, row, combine(k.load(y, row, mask=mine, cache="fresh"), value), mask=mine)
    k.store(rows, k.cta, row, mask=k.lane == 0)
    k.store(parts, k.cta, value, mask=k.lane == 0)


def each_cut_row(
    k: Simt,
    y: Array,
    rows: Array,
    parts: Array,
    combine: Callable[..., Value],
    f: Body,
    *carry: Operand,
) -> tuple[Value, ...]:
    """carry = f(row, its whole y, *carry) for the rows that several CTAs share; called by the
    threads of one CTA after all CTAs have called `join_in_cta`."""

    def look(p, *carry):
        row = k.load(rows, p, cache="fresh")
        before = k.load(rows, p - 1, mask=p > 0, other=-1, cache="fresh")

        def whole():
            def some(p, value, more):
                for j in range(AHEAD):
                    at = p + j
                    valid = k.below(at, k.ctas)
                    same = k.load(rows, at, mask=valid, other=-1, cache="fresh") == row
                    part = k.load(parts, at, mask=same, cache="fresh")
                    value, more = k.where(same, combine(value, part), value), same
                return p + AHEAD, value, more

            start = k.load(y, row, cache="fresh")
            going = k.const(True, "i1")
            _, value, _ = k.while_(lambda p, value, more: more, some, p, start, going)
            return f(row, value, *carry)

        return k.if_((row >= 0) & (before != row), whole, *carry)

    return k.for_(k.thread, k.ctas, k.threads, look, *carry)
