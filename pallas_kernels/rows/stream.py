"""Rows of a CSR by streaming their entries: for rows shorter than a warp.

The entries of a block of rows are consecutive, so all lanes of the warp read them, whatever the
lengths of the rows; the next block is loaded before this one is used. Shared memory connects rows
and entries: first each lane writes the values of its row to the places of the row's entries, and
afterwards it sums the terms of these entries. That is the idea of CSR-Stream: Greathouse and Daga,
"Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format", SC 2014.
"""

import dataclasses
from typing import Any

from ..simt.typed import Several, Value, one_by_one
from .merge_path import where, words

TURN = 4  # entries of a row that its lane reads or writes together in shared memory


@dataclasses.dataclass(frozen=True)
class Stream:
    """A shape of `merge_path.CsrRows`: blocks of 32 rows.

    unroll: entries of each lane that are in flight together.
    """

    unroll: int

    def shared_words(self, threads: int, words: int = 1) -> int:
        return threads * self.unroll * words

    def walk_of(self, job: Any) -> Any:
        return _Streamed(job, self).walk


class _Streamed:
    """The walk of one warp."""

    def __init__(self, job: Any, shape: Any):
        k = job.k
        self.job, self.shape, self.slots = job, shape, 32 * shape.unroll
        many = 1 if job.identity is None else len(words(job.identity))
        self.buffers = [k.shared(k.threads * shape.unroll) for _ in range(many)]
        self.buffer, self.at = self.buffers[0], k.warp * self.slots

    def walk(self, first: Value, stop: Value) -> None:
        job, k = self.job, self.job.k
        near, far = (self._offsets(first + j * 32, stop) for j in range(2))
        start = k.shfl(k.maximum(near[0], job.low), 0)
        streams = self._fetch(start, k.minimum(near[-1], job.high))

        def block(base, start, *carry):
            near, far, streams = carry[:size], carry[size : 2 * size], carry[2 * size :]
            end, behind = (k.minimum(x[-1], job.high) for x in (near, far))
            later = self._offsets(base + 64, stop)
            ahead = self._fetch(end, behind)
            self._rows(base, stop, start, end, near, streams)
            return end, *far, *later, *ahead

        size = len(near)
        k.for_(first, stop, 32, block, start, *near, *far, *streams)

    def _spots(self, start: Value, end: Value) -> tuple[Several, Value]:
        places = Several(start + 32 * u + self.job.k.lane for u in range(self.shape.unroll))
        return places, places < end

    def _fetch(self, start: Value, end: Value) -> list[Value]:
        """The streams of the first entries of a block."""
        return self.job.fetch(*self._spots(start, end), "stream")

    def _offsets(self, base: Value, stop: Value) -> tuple[Value, ...]:
        """Where the entries of the rows of a block begin, where they end, and where the last do."""
        k, indptr, r = self.job.k, self.job.indptr, base + self.job.k.lane
        begin, end = k.row(indptr, r, r < stop)
        return begin, end, k.load(indptr, k.minimum(base + 32, stop), cache="nc")

    def _rows(
        self, base: Value, stop: Value, start: Value, end: Value, offsets: Any, streams: Any
    ) -> None:
        job, k, r = self.job, self.job.k, base + self.job.k.lane
        row = job.row(r, r < stop)
        first, last = k.maximum(offsets[0], job.low), k.minimum(offsets[1], job.high)

        def entries(start, *y, streams=None):
            span = k.maximum(first, start) - start, k.minimum(last - start, self.slots)
            spots, owners = self._spots(start, end), lambda: self._owners(span, row)
            streams = job.fetch(*spots, "stream") if streams is None else streams
            terms = job.terms(streams, *spots, owners)
            return self._combined(span, terms, y) if y else ()

        y = () if job.identity is None else words(job.identity)
        y = k.for_(
            start + self.slots, end, self.slots, entries, *entries(start, *y, streams=streams)
        )
        job.settle(r, (y if len(y) > 1 else y[0]) if y else None, r < stop)

    def _owners(self, span: tuple[Value, Value], row: Any) -> tuple[Value, ...]:
        """What belongs to the rows of the entries of this lane."""
        k, (begin, end) = self.job.k, span
        found = []
        for value in row:

            def some(i, value=value):
                for j in range(TURN):
                    word = k.bits(value, "i32")
                    k.store(self.buffer, self.at + i + j, word, mask=i + j < end)

            k.sync_warp()  # all lanes have read the previous values
            k.for_(begin, end, TURN, some)
            k.sync_warp()
            at = Several(self.at + 32 * u + k.lane for u in range(self.shape.unroll))
            found.append(k.bits(k.load(self.buffer, at), value.kind))
        return tuple(found)

    def _combined(self, span: tuple[Value, Value], terms: Any, y: Any) -> tuple[Value, ...]:
        """The words of y combined with the terms of its row, in their order."""
        job, k, (begin, end) = self.job, self.job.k, span
        identity = words(job.identity)
        k.sync_warp()
        for u, term in enumerate(one_by_one(words(terms))):
            for buffer, word in zip(self.buffers, *term, strict=True):
                k.store(buffer, self.at + 32 * u + k.lane, k.bits(word, "i32"))
        k.sync_warp()

        def some(i, *y):
            valid = [i + j < end for j in range(TURN)]
            near = [
                [k.load(buffer, self.at + i + j, mask=t) for buffer in self.buffers]
                for j, t in enumerate(valid)
            ]
            for term, t in zip(near, valid, strict=True):
                term = tuple(k.bits(w, v.kind) for w, v in zip(term, y, strict=True))
                y = job.joined(y, where(k, t, term, identity))
            return y

        return k.for_(begin, end, TURN, some, *y)
