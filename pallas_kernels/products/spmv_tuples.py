"""Sparse matrix times dense vector over a semiring of tuples, in one launch; all may be traced.

    y[i] = combine over the entries j of row i, in their order, of mul(A[i, j], x[j])

The values are tuples of words, as a distance with its parent, an array for each word. The words of
an element of x are put side by side first, so that one access gathers them. The walk is that of
`rows/merge_path.py`, by `rows/stream.py` or `rows/lanes.py`; cut rows are joined there.

Cost: 4 bytes, the words of A, and 4 bytes more where these are numbered, an entry, read once; and a
gather. H100, microseconds with x put side by side, distances with ids and (scalar) `min_plus`:
rmat18 215 (176), delaunay21 158 (124), grid2000 139 (73; 116 with two gathers in the place of one,
320 MB at 2.8 TB/s); values numbered 252, 172, 165. With two gathers: rmat18 348, delaunay21 234.
XLA's form takes 4,300, 1,044, 1,018.
"""

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax

from ..rows.lanes import InOrder
from ..rows.merge_path import Shape, WholeRows, shape_for, shared_words, where
from ..rows.stream import Stream
from ..simt.device import extent
from ..simt.launch import launch
from ..simt.scalar_jaxpr import TupleSemiring, evaluate_words, uses

SHAPES = ((12.0, Stream(4)), (math.inf, InOrder(2, 4)))  # largest mean length of a row, shape
MOST_WORDS = 4  # of a value; of an element of x with whether it is there


def csr_spmv_tuples(
    indptr: jax.Array,
    indices: jax.Array,
    numbers: jax.Array | None,
    values: tuple[jax.Array, ...],
    x: tuple[jax.Array, ...],
    *,
    semiring: TupleSemiring,
    hit: jax.Array | None = None,
    shape: Shape | None = None,
) -> tuple[jax.Array, ...]:
    """The arrays of y[n] of a matrix with n > 0 rows, at least one slot and at least one column.

    indptr int32[n + 1], indices int32[nse]: a CSR; slots from indptr[n] on are not read. The value
    of entry e is that of number numbers[e] in `values`, int32[nse], or of number e if that is None.
    values, x[columns], y: float32, int32 or bool, with at most MOST_WORDS arrays each. hit:
    bool[columns], which elements of x are there; None: all. n + nse < `merge_path.LIMIT`. Any
    number of CTAs is right.
    """
    n, columns = indptr.shape[0] - 1, x[0].shape[0]
    shape = shape or shape_for(n, indices.shape[0], SHAPES)
    form = extent()
    ctas, threads = form["ctas"], form["threads"]
    kinds = ["f32" if v.dtype == jnp.float32 else "i32" for v in x]
    x = (*x, hit) if hit is not None else x
    inputs = {"indptr": indptr, "indices": indices} | _named("a", map(_words, values))
    inputs |= {} if numbers is None else {"numbers": numbers}
    inputs["x"] = _side_by_side(x)
    dtypes = [jnp.int32 if d == jnp.bool_ else d for d in semiring.dtypes]
    sizes = _named("y", ((n, d) for d in dtypes)) | _named("part", ((ctas, d) for d in dtypes))
    job = Job(columns, kinds, hit is not None, semiring)
    out = launch(
        lambda k, m: _Product(k, m, n, shape, job).run(),
        inputs,
        sizes | {"rows": ctas},
        shared_words=shared_words(len(dtypes)) + shape.shared_words(threads, len(dtypes)),
        name="csr_spmv_tuples",
    )
    return tuple(out[f"y{i}"].astype(d) for i, d in enumerate(semiring.dtypes))


def _named(name: str, values: Iterable[Any]) -> dict[str, Any]:
    return {f"{name}{i}": v for i, v in enumerate(values)}


def _listed(m: Any, name: str) -> list[Any]:
    """The arrays of a launch called so and numbered."""
    found = (getattr(m, f"{name}{i}") for i in range(MOST_WORDS))
    return [a for a in found if a is not None]


def _words(v: jax.Array) -> jax.Array:
    return v.astype(jnp.int32) if v.dtype == jnp.bool_ else v


def _width(many: int) -> int:
    """Words of an element of so many words side by side: a power of two."""
    return 1 << (many - 1).bit_length()


def _side_by_side(x: Sequence[jax.Array]) -> jax.Array:
    words = [lax.bitcast_convert_type(_words(v), jnp.int32) for v in x]
    words += [jnp.zeros_like(words[0])] * (_width(len(words)) - len(words))
    return jnp.stack(words, axis=1).reshape(-1)


class Job(NamedTuple):
    """What is known of a launch.

    columns: of the matrix; kinds: of the words of x; some: whether another word says which elements
    of x are there.
    """

    columns: int
    kinds: list[str]
    some: bool
    semiring: TupleSemiring


class _Product(WholeRows):
    """One launch."""

    def __init__(self, k, m, n, shape, job):
        mul = job.semiring.mul
        self.job, self.x = job, m.x
        self.reads = [uses(mul, i) for i in range(len(mul.in_avals))]
        values = _listed(m, "a")
        self.values = [v for v, read in zip(values, self.reads, strict=False) if read]
        self.direct = m.numbers is None
        streams = self.values if self.direct else [m.numbers] if self.values else []
        rows = n, [m.indices, *streams], shape, job.semiring.neutral(k)
        super().__init__(k, m, _listed(m, "y"), _listed(m, "part"), *rows)

    def terms(self, fetched, places, masks, owners):
        k, job, (index, *values) = self.k, self.job, fetched
        valid = k.below(index, job.columns) & masks
        if values and not self.direct:
            values = [k.load(a, values[0], mask=valid, cache="nc") for a in self.values]
        width = _width(len(job.kinds) + job.some)
        x = k.load_vec(self.x, index * width, width, mask=valid, cache="nc")
        if job.some:
            valid = valid & (x[len(job.kinds)] != 0)
        read = iter(values)
        words = [next(read) if reads else None for reads in self.reads[: -len(job.kinds)]]
        words += [k.bits(w, kind) for w, kind in zip(x, job.kinds, strict=False)]
        return where(k, valid, evaluate_words(k, job.semiring.mul, *words), self.identity)

    def combine(self, a, b):
        return evaluate_words(self.k, self.job.semiring.combine, *a, *b)

    joined = combine  # a result of one word is a tuple too
