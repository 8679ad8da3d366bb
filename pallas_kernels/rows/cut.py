"""Rows of a CSR whose terms are combined, also those that `merge_path.py` cut: `WholeRows`.

If a row is cut between warps, its parts are combined within the CTA after a CTA barrier, and
between CTAs by the last of them to finish, in the order of the entries: no CTA waits for another,
and results do not change from run to run.
"""

from collections.abc import Sequence
from typing import Any

from ..simt.primitives import ARRIVALS, Simt
from ..simt.typed import Array, Value
from .merge_path import CsrRows, where, words

AHEAD = 8  # CTAs whose parts of one row are loaded together


def shared_words(many: int) -> int:
    """Words of shared memory of a CTA, for results of some words."""
    return 32 * (1 + many) + 4  # a row and a result of each warp; whether this CTA is the last


class WholeRows(CsrRows):
    """Every row's terms in y, arrays with one word of each result each.

    `m` has `rows` and `control`; parts: as y, of one element a CTA. A kernel defines `terms` and
    `combine`, whose values are words, or tuples of words where there are several.
    """

    def __init__(self, k: Simt, m: Any, y: Sequence[Array], parts: Sequence[Array], *rows: Any):
        """rows: (n, streams, shape, identity), as for `CsrRows`."""
        super().__init__(k, m.indptr, *rows)
        self.m, self.y, self.parts = m, y, parts
        self.heads = [k.shared(32), *(k.shared(32, v.kind) for v in words(self.identity))]
        self.flag = k.shared(1)

    def settle(self, r, y, mask):
        k = self.k
        head = self.continued & (r == self.first)
        _store(k, self.y, r, words(y), mask & ~head)
        _store(k, self.heads[1:], k.warp, words(y), mask & head)

    def run(self) -> None:
        """The work of one thread."""
        k, m = self.k, self.m
        self.walk()
        k.store(self.heads[0], k.warp, k.where(self.continued, self.first, -1), mask=k.lane == 0)
        k.sync()
        k.if_(k.warp == 0, self._join_in_cta)
        k.sync()

        def arrive():
            k.fence()
            before = k.atomic("add", m.control, ARRIVALS, 1)
            k.fence()
            k.store(self.flag, 0, k.cast(before == k.ctas - 1, "i32"))

        k.if_(k.thread == 0, arrive)
        k.sync()
        last = k.load(self.flag, 0) == 1
        k.if_(last & (k.thread < k.ctas), self._join_ctas)

    def _join_in_cta(self) -> None:
        """By one warp: the parts of rows that began in an earlier warp.

        A row that begins in this CTA is completed in y. For a row that began in an earlier CTA,
        rows[cta] and parts[cta] get the part of this CTA; rows[cta] = -1: none.
        """
        k, m, heads = self.k, self.m, self.heads
        valid = k.lane < k.threads // 32
        row = k.load(heads[0], k.lane, mask=valid, other=-1)
        value = tuple(k.load(head, k.lane, mask=valid & (row >= 0)) for head in heads[1:])
        for d in (1, 2, 4, 8, 16):  # the first lane of a run of equal rows combines 2 d of them
            after, part = k.shfl(row, k.lane + d), tuple(k.shfl(v, k.lane + d) for v in value)
            same = (k.lane + d < 32) & (after == row)
            value = where(k, same, self.joined(value, part), value)
        before = k.shfl_up(row, 1)
        begins = (row >= 0) & ((k.lane == 0) | (before != row))
        mine = begins & (k.lane > 0)  # the row begins in this CTA: its first part is in y
        first = tuple(k.load(y, row, mask=mine, cache="fresh") for y in self.y)
        _store(k, self.y, row, self.joined(first, value), mine)
        k.store(m.rows, k.cta, row, mask=k.lane == 0)
        _store(k, self.parts, k.cta, value, k.lane == 0)

    def _join_ctas(self) -> None:
        """By the threads of the last CTA: the rows that several CTAs share."""
        k, rows = self.k, self.m.rows

        def look(p):
            row = k.load(rows, p, cache="fresh")
            before = k.load(rows, p - 1, mask=p > 0, other=-1, cache="fresh")

            def whole():
                def some(p, more, *value):
                    for j in range(AHEAD):
                        at = p + j
                        valid = k.below(at, k.ctas)
                        same = k.load(rows, at, mask=valid, other=-1, cache="fresh") == row
                        part = tuple(k.load(a, at, mask=same, cache="fresh") for a in self.parts)
                        value, more = where(k, same, self.joined(value, part), value), same
                    return p + AHEAD, more, *value

                start = [k.load(y, row, cache="fresh") for y in self.y]
                going = k.const(True, "i1")
                _, _, *value = k.while_(lambda p, more, *value: more, some, p, going, *start)
                _store(k, self.y, row, value)

            k.if_((row >= 0) & (before != row), whole)

        k.for_(k.thread, k.ctas, k.threads, look)


def _store(
    k: Simt, arrays: Sequence[Array], i: Value, values: Sequence[Value], mask: Value | None = None
) -> None:
    for array, value in zip(arrays, values, strict=True):
        k.store(array, i, value, mask=mask)
