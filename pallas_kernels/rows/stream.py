"""Rows of a CSR by streaming their entries: for rows shorter than a warp.

The entries of a block of rows are consecutive, so all lanes of the warp read them, whatever the
lengths of the rows; the next block is loaded before this one is used. Shared memory connects rows
and entries: first each lane writes the values of its row to the places of the row's entries, and
afterwards it sums the terms of these entries. That is the idea of CSR-Stream: Greathouse and Daga,
"Efficient sparse matrix-vector multiplication on GPUs using the CSR storage format", SC 2014.
"""

import dataclasses
from typing import Any

from ..simt.typed import Several, Value, one_by_one, together
from .merge_path import where, words

TURN = 4  # entries of a row that its lane reads or writes together in shared memory


@dataclasses.dataclass(frozen=True)
class Stream:
    """A shape of `merge_path.CsrRows`.

    rows: rows of each lane in a block; unroll: entries of each lane that are in flight together.
    """

    rows: int
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
        job, k, step = self.job, self.job.k, 32 * self.shape.rows
        near, far = (self._offsets(first + j * step, stop) for j in range(2))
        begins: Any = near[0]
        start = k.shfl(k.maximum(begins[0], job.low), 0)
        streams = self._fetch(start, k.minimum(near[-1], job.high))

        def block(base, start, *carry):
            near, far, streams = carry[:size], carry[size : 2 * size], carry[2 * size :]
            end, behind = (k.minimum(x[-1], job.high) for x in (near, far))
            later = self._offsets(base + 2 * step, stop)
            ahead = self._fetch(end, behind)
            self._rows(base, stop, start, end, near, streams)
            return end, *far, *later, *ahead

        size = len(near)
        k.for_(first, stop, step, block, start, *near, *far, *streams)

    def _spots(self, start: Value, end: Value) -> tuple[Several, Value]:
        places = Several(start + 32 * u + self.job.k.lane for u in range(self.shape.unroll))
        return places, places < end

    def _fetch(self, start: Value, end: Value) -> list[Value]:
        """The streams of the first entries of a block."""
        return self.job.fetch(*self._spots(start, end), "stream")

    def _places(self, base: Value, stop: Value) -> tuple[Several, Value]:
        at = Several(base + 32 * b + self.job.k.lane for b in range(self.shape.rows))
        return at, at < stop

    def _offsets(self, base: Value, stop: Value) -> tuple[Value, ...]:
        """Where the entries of the rows of a block begin, where they end, and where the last do."""
        k, indptr = self.job.k, self.job.indptr
        at, valid = self._places(base, stop)
        behind = k.minimum(base + 32 * self.shape.rows, stop)
        begin, end = (k.load(indptr, at + j, mask=valid, cache="nc") for j in range(2))
        return begin, end, k.load(indptr, behind, cache="nc")

    def _rows(
        self, base: Value, stop: Value, start: Value, end: Value, offsets: Any, streams: Any
    ) -> None:
        job, k = self.job, self.job.k
        at, valid = self._places(base, stop)
        row = job.row(at, valid)
        begins, ends = k.maximum(offsets[0], job.low), k.minimum(offsets[1], job.high)

        def entries(start, *ys, streams=None):
            spans = k.maximum(begins, start) - start, k.minimum(ends - start, self.slots)
            spots, owners = self._spots(start, end), lambda: self._owners(spans, row)
            streams = job.fetch(*spots, "stream") if streams is None else streams
            terms = job.terms(streams, *spots, owners)
            return self._combined(spans, terms, ys) if ys else ()

        ys = () if job.identity is None else words(job.identity)
        ys = entries(start, *(Several([y] * self.shape.rows) for y in ys), streams=streams)
        ys = k.for_(start + self.slots, end, self.slots, entries, *ys)
        for r, t, y in one_by_one(at, valid, ys):
            job.settle(r, (tuple(y) if len(y) > 1 else y[0]) if y else None, t)

    def _owners(self, spans: tuple[Value, Value], row: Any) -> tuple[Several, ...]:
        """What belongs to the rows of the entries of this lane."""
        k = self.job.k
        found = []
        for values in row:
            k.sync_warp()  # all lanes have read the previous values
            for begin, end, value in one_by_one(*spans, values):

                def some(i, value=value, end=end):
                    for j in range(TURN):
                        k.store(
                            self.buffer, self.at + i + j, k.bits(value, "i32"), mask=i + j < end
                        )

                k.for_(begin, end, TURN, some)
            k.sync_warp()
            at = Several(self.at + 32 * u + k.lane for u in range(self.shape.unroll))
            found.append(k.bits(k.load(self.buffer, at), values.kind))
        return tuple(found)

    def _combined(self, spans: tuple[Value, Value], terms: Any, ys: Any) -> tuple[Several, ...]:
        """The words of each y combined with the terms of its row, in their order."""
        job, k = self.job, self.job.k
        identity = words(job.identity)
        k.sync_warp()
        for u, term in enumerate(one_by_one(words(terms))):
            for buffer, word in zip(self.buffers, *term, strict=True):
                k.store(buffer, self.at + 32 * u + k.lane, k.bits(word, "i32"))
        k.sync_warp()
        found = []
        for begin, end, y in one_by_one(*spans, ys):

            def some(i, *y, end=end):
                valid = [i + j < end for j in range(TURN)]
                near = [
                    [k.load(buffer, self.at + i + j, mask=t) for buffer in self.buffers]
                    for j, t in enumerate(valid)
                ]
                for term, t in zip(near, valid, strict=True):
                    term = tuple(k.bits(w, v.kind) for w, v in zip(term, y, strict=True))
                    y = job.joined(y, where(k, t, term, identity))
                return y

            found.append(k.for_(begin, end, TURN, some, *y))
        return together(found)
