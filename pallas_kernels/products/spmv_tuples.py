"""Sparse matrix times dense vector over a semiring of tuples, in one launch; all may be traced.

    y[i] = combine over the entries j of row i, in their order, of mul(A[i, j], x[j])

The values are tuples of words, as a distance with its parent: an array for each word of A and of y,
and one array of x in which the words of an element lie together, so that one access gathers it.
The walk is that of `rows/merge_path.py` by `rows/in_order.py`, cut rows are joined by
`rows/cut.py`.

Cost: 8 bytes and the words of A an entry, read once, and a gather.
"""

import math

import jax
import jax.numpy as jnp
from jax import lax

from ..rows.cut import WholeRows, shared_words, where
from ..rows.in_order import InOrder
from ..rows.merge_path import shape_for
from ..simt.device import DEFAULT_GRID, Grid, resident_ctas
from ..simt.launch import launch
from ..simt.scalar_jaxpr import TupleSemiring, evaluate_words, uses

SHAPES = (  # (largest mean length of a row, shape)
    (8.0, InOrder(2, 4)),
    (32.0, InOrder(8, 4)),
    (math.inf, InOrder(16, 4)),
)
MOST_WORDS = 4  # of a value; of an element of x with whether it is there


def csr_spmv_tuples(
    indptr: jax.Array,
    indices: jax.Array,
    numbers: jax.Array,
    values: tuple[jax.Array, ...],
    x: tuple[jax.Array, ...],
    *,
    semiring: TupleSemiring,
    hit: jax.Array | None = None,
    shape: InOrder | None = None,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, ...]:
    """The arrays of y[n] of a matrix with n > 0 rows, at least one slot and at least one column.

    indptr int32[n + 1], indices and numbers int32[nse]: a CSR; the value of entry e is that of
    number numbers[e] in `values`; slots from indptr[n] on are not read. values, x[columns], y:
    float32, int32 or bool, with at most MOST_WORDS arrays each. hit: bool[columns], which elements
    of x are there; None: all. n + nse < `merge_path.LIMIT`. Any number of CTAs is right.
    """
    n, columns = indptr.shape[0] - 1, x[0].shape[0]
    shape = shape or shape_for(n, indices.shape[0], SHAPES)
    ctas, threads = grid.ctas or resident_ctas(), grid.threads or 512
    packed, width = _packed((*x, hit) if hit is not None else x)
    a = [v.astype(jnp.int32) if v.dtype == jnp.bool_ else v for v in values]
    dtypes = [jnp.int32 if d == jnp.bool_ else d for d in semiring.dtypes]
    kinds = [v.dtype for v in x]

    def kernel(k, m):
        _Product(k, m, n, columns, width, shape, semiring, kinds, hit is not None).run()

    out = launch(
        kernel,
        {"indptr": indptr, "indices": indices, "numbers": numbers, "x": packed}
        | {f"a{i}": v for i, v in enumerate(a)},
        {f"y{i}": (n, d) for i, d in enumerate(dtypes)}
        | {"rows": ctas}
        | {f"part{i}": (ctas, d) for i, d in enumerate(dtypes)},
        ctas=ctas,
        threads=threads,
        shared_words=shared_words(len(dtypes)) + shape.shared_words(threads),
        name="csr_spmv_tuples",
        interpret=grid.interpret,
    )
    return tuple(out[f"y{i}"].astype(d) for i, d in enumerate(semiring.dtypes))


def _packed(arrays: tuple[jax.Array, ...]) -> tuple[jax.Array, int]:
    """The words of each element side by side, and how many words an element takes."""
    width = 1 << (len(arrays) - 1).bit_length()
    words = [
        lax.bitcast_convert_type(v, jnp.int32) if v.dtype == jnp.float32 else v.astype(jnp.int32)
        for v in arrays
    ]
    words += [jnp.zeros_like(words[0])] * (width - len(words))
    return jnp.stack(words, axis=1).reshape(-1), width


class _Product(WholeRows):
    """One launch."""

    def __init__(self, k, m, n, columns, width, shape, semiring, kinds, some):
        terms, mul = range(len(semiring.dtypes)), semiring.mul
        self.values = [getattr(m, f"a{i}") for i in range(len(mul.in_avals) - len(kinds))]
        self.reads = [uses(mul, i) for i in range(len(mul.in_avals))]
        self.reads_a = any(self.reads[: len(self.values)])
        streams = [m.indices, m.numbers] if self.reads_a else [m.indices]
        y, parts = ([getattr(m, f"{name}{i}") for i in terms] for name in ("y", "part"))
        super().__init__(k, m, n, streams, shape, semiring.neutral(k), y, parts)
        self.columns, self.width, self.semiring, self.some = columns, width, semiring, some
        self.kinds = ["f32" if d == jnp.float32 else "i32" for d in kinds]

    def terms(self, fetched, places, masks, owners):
        k, many = self.k, len(places)
        index, numbers = fetched if self.reads_a else (*fetched, [None] * many)
        valid = [k.below(j, self.columns) & t for j, t in zip(index, masks, strict=True)]
        a = [
            k.loads(array, numbers, valid, cache="nc") if read else [None] * many
            for array, read in zip(self.values, self.reads, strict=False)
        ]
        rows = zip(*a, strict=True) if a else [()] * many
        return [self._term(*each) for each in zip(rows, index, valid, strict=True)]

    def _term(self, a, j, valid):
        """The term of an entry with value a in column j."""
        k, width = self.k, self.width
        if width > 1:
            words = k.load_vec(self.m.x, j * width, width, mask=valid, cache="nc")
        else:
            words = [k.load(self.m.x, j, mask=valid, cache="nc")]
        valid = valid & (words[len(self.kinds)] != 0) if self.some else valid
        x = [k.bits(w, kind) for w, kind in zip(words, self.kinds, strict=False)]
        return where(k, valid, evaluate_words(k, self.semiring.mul, *a, *x), self.identity)

    def combine(self, a, b):
        return evaluate_words(self.k, self.semiring.combine, *a, *b)
