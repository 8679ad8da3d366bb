"""What the launches of one product share: its parameters, its terms and its mask."""

import dataclasses
from typing import NamedTuple

import jax

from ..products.sparse_result import ATOMIC, SparseResult
from ..simt.scalar_jaxpr import ScalarSemiring, evaluate, uses

# Words of the array of counters that the launches pass on.
ALLOCATED, MIDDLE, MEDIUM, LARGE, COUNTERS = 0, 1, 2, 3, 8
LISTS = {MIDDLE: "middle", MEDIUM: "medium", LARGE: "large"}  # of rows, by their counter
OUT = ("start", "count", "indices", "data", "counters")  # what the launches add rows to
SATURATED = 1 << 29  # products of a row are counted up to here
TRIES = 1 << 20  # compare-and-swaps of a word; one fails only if another thread's came first


class Algebra(NamedTuple):
    """What a product computes with.

    Attributes:
        semiring: `mul` takes scalars (a, b, i, k, j); the identity of `combine` counts only in rows
            of many products.
        add: the atomic ("add", "min", "max") that combines terms, or None.
    """

    semiring: ScalarSemiring
    add: str | None = None


class MaskRows(NamedTuple):
    """The places of C that are allowed, or not allowed.

    Attributes:
        indptr, indices: of a CSR of the extents of C, columns of a row ascending.
        data: int32, which of its entries count; None: all.
        complement: whether it lists the places that are not allowed.
    """

    indptr: jax.Array
    indices: jax.Array
    data: jax.Array | None
    complement: bool = False

    def operands(self) -> dict[str, jax.Array]:
        """Its arrays under the names that kernels use."""
        given = {"m_indptr": self.indptr, "m_indices": self.indices, "m_data": self.data}
        return {name: x for name, x in given.items() if x is not None}


@dataclasses.dataclass(frozen=True)
class Job:
    """C (rows, columns), with capacity for `nse` entries; semiring, add: as in `Algebra`.

    complement: of the mask, whether it lists the places that are not allowed.
    """

    rows: int
    columns: int
    nse: int
    semiring: ScalarSemiring
    add: str | None
    complement: bool

    @property
    def kind(self):
        """The kind of the terms in a kernel."""
        return "f32" if self.semiring.dtype.name == "float32" else "i32"


def stretches(k, queue, step, stop, f):
    """f(first) by warps for stretches of `step` numbers below `stop`; queue: the array and the word
    that count those taken."""

    def some(first):
        f(first)
        return k.reserve(*queue, k.const(step))

    k.while_(lambda first: first < stop, some, k.reserve(*queue, k.const(step)))


class Terms:
    """The products of rows in one launch."""

    def __init__(self, k, g, job):
        self.k, self.g, self.job = k, g, job
        self.used = [uses(job.semiring.mul, j) for j in range(5)]
        self.masked = g.m_indptr is not None

    def entry(self, j, valid):
        """For entries j of A: (begin, size) of the row of B, and the payload for `values`."""
        k, g = self.k, self.g
        inner = k.load(g.a_indices, j, mask=valid, cache="nc")
        start, end = k.row(g.b_indptr, inner, valid)
        payload = []
        if self.used[0]:
            payload.append(k.bits(k.load(g.a_data, j, mask=valid, cache="nc"), "i32"))
        if self.used[3]:
            payload.append(inner)
        return start, k.where(valid, end - start, 0), tuple(payload)

    def columns(self, places, valid):
        """Columns of the products at some places of B."""
        return self.k.load(self.g.b_indices, places, mask=valid, cache="nc")

    def unpack(self, payload, row):
        """(first word, bounds of the mask, row, payload for `values`) of a payload."""
        first, *payload = payload
        bounds = [payload.pop(0) for _ in range(2 if self.masked else 0)]
        return first, bounds, payload.pop(0) if self.used[2] else row, payload

    def values(self, row, places, payload, columns, valid):
        """The values of the products at several places."""
        k, g, payload = self.k, self.g, list(payload)
        b = k.const(0, g.b_data.kind)
        if self.used[1]:
            b = k.load(g.b_data, places, mask=valid, cache="nc")
        a = payload.pop(0) if self.used[0] else k.const(0)
        inner = payload.pop(0) if self.used[3] else k.const(0)
        a = k.bits(a, g.a_data.kind)
        return evaluate(k, self.job.semiring.mul, a, b, row, inner, columns)

    def combine(self, x, y):
        return evaluate(self.k, self.job.semiring.combine, x, y)

    def bounds_of_mask(self, row, valid=None):
        """(begin, end) of the row of the mask; () without a mask."""
        return self.k.row(self.g.m_indptr, row, valid) if self.masked else ()

    def allowed(self, bounds, columns, valid):
        """`valid`, and whether the mask allows these columns; bounds: of their rows in the mask."""
        if not self.masked:
            return valid
        k, g, (begin, end) = self.k, self.g, bounds
        low = k.search(g.m_indices, begin, k.where(valid, end, begin), columns)
        inside = valid & (low < end)
        found = inside & (k.load(g.m_indices, low, mask=inside, cache="nc") == columns)
        if g.m_data is not None:
            found = found & (k.load(g.m_data, low, mask=found, cache="nc") != 0)
        return valid & (found ^ self.job.complement)


class Sums:
    """Terms combined in words of shared memory: by an atomic, or by compare-and-swap."""

    def __init__(self, k, job, size):
        self.k, self.job = k, job
        self.atomic = job.add if job.add in ATOMIC else None
        self.codec = SparseResult(k, job.columns, self.atomic or "add", job.kind, None, None)
        self.words = k.shared(size, self.codec.word_kind() if self.atomic else "i32")

    def clear(self, i):
        """Sets word i to the identity."""
        k = self.k
        if self.atomic:
            k.store(self.words, i, self.codec.identity())
        else:
            k.store(self.words, i, k.bits(self.job.semiring.neutral(k), "i32"))

    def read(self, i):
        word = self.k.load(self.words, i)
        return self.codec.decode(word) if self.atomic else self.k.bits(word, self.job.kind)

    def combine(self, i, term, mask):
        k = self.k
        if self.atomic:
            k.reduce(self.atomic, self.words, i, self.codec.encode(term), mask=mask)
            return

        def attempt(n, left):
            old = k.load(self.words, i, mask=left)
            new = evaluate(k, self.job.semiring.combine, k.bits(old, self.job.kind), term)
            seen = k.atomic_cas(self.words, i, old, k.bits(new, "i32"), mask=left)
            return n + 1, left & (seen != old)

        k.while_(lambda n, left: left & (n < TRIES), attempt, 0, mask)
