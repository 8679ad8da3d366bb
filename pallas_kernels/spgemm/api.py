"""Sparse matrix times sparse matrix by rows (Gustavson, ACM TOMS 4 (3), 1978), in five launches.

    C[i, j] = combine_k mul(A[i, k], B[k, j])

1. The products of each row of A are counted (`products/spmv.py`).
2. Rows of few products are sorted by warps (`by_warps.py`); the others are listed by size.
3. The listed rows are marked and accumulated by CTAs, medium ones by small CTAs, large ones by
   large CTAs (`by_ctas.py`). Finished rows of C are appended to an array of its size, in any order.
4. Lengths are summed, and finished rows copied to their places.

So no row is computed twice to learn its length. The workspace is as large as C. There is no
synchronisation with the host. Rows binned by size after Nagasaka, Nukada, Matsuoka,
"High-performance and memory-saving sparse general matrix-matrix multiplication for NVIDIA Pascal
GPU", ICPP 2017; a method for each bin after Parger, Winter, Mlakar, Steinberger, "spECK", PPoPP
2020.

Cost: 8 bytes a product, along rows of B, and 24 bytes an entry of C; copies are 12% of the time.
Measured inside jit (H200), A A: grid1000 0.40 ms, delaunay18 0.40, coAuthorsDBLP 1.6, cnr-2000 3.0;
rmat16 80, that is 73 G products a second.
"""

import dataclasses
import functools
import typing

import jax
import jax.numpy as jnp

from ..products.sparse_result import fill
from ..products.spmv import csr_spmv
from ..rows.flatten import flatten
from ..simt.device import extent, target
from ..simt.launch import launch
from ..simt.scalar_jaxpr import ScalarSemiring
from ..simt.typed import one_by_one
from .by_ctas import GROUP, LISTED, Config, rows_by_ctas
from .by_warps import Warps, rows_by_warps
from .job import LARGE, LISTS, MEDIUM, MIDDLE, SATURATED, Algebra, Job, MaskRows

SHARE = 2048  # rows are cut into at least so many stretches, of eight rows or more
MARGIN = 8192  # bytes of shared memory that are left free


@dataclasses.dataclass(frozen=True)
class Tuning:
    """Sizes of the launches.

    few, middle: warps that take rows of few products together, and warps that take one or two rows
    of more products; their `ctas` are a multiprocessor. large: products from which on a
    row is large. most: no row has more products; launches for longer rows are left out, and need
    not be compiled. medium_threads, medium_capacity, large_threads, large_capacity: threads and
    accumulators of the CTAs (0: as many as fit). window: columns that have a bit in shared memory
    (0: all, if they fit).
    """

    few: Warps = Warps(4, 256, 32, 8, 16, 512)
    middle: Warps = Warps(4, 128, 2, 32, 512, 0)
    large: int = 16384
    most: int = SATURATED
    medium_threads: int = 512
    medium_capacity: int = 4096
    large_threads: int = 1024
    large_capacity: int = 0
    window: int = 0


class Rows(typing.NamedTuple):
    """The rows of C in any order.

    Attributes:
        out: the arrays that the launches made: see `rows_by_warps`.
        alone: int32[m], 1 for a row that is in none of the lists, else 0.
        indptr: int32[m + 1], offsets of C; rows beyond nse entries are empty.
        total: int32, the entries that C has, 2^31 - 1 for any larger number.
    """

    out: dict[str, jax.Array]
    alone: jax.Array
    indptr: jax.Array
    total: jax.Array


def spgemm_rows(
    a: tuple[jax.Array, jax.Array, jax.Array],
    b: tuple[jax.Array, jax.Array, jax.Array],
    *,
    columns: int,
    nse: int,
    algebra: Algebra,
    mask: MaskRows | None = None,
    tuning: Tuning = Tuning(),
) -> Rows:
    """The rows of C, in any order, up to nse entries: all launches except the last.

    a, b: (indptr, indices, data) of two CSR of float32 or int32, of m > 0 rows and of the inner
    extent; entries of one place may repeat.
    """
    complement = mask is not None and mask.complement
    job = Job(a[0].shape[0] - 1, columns, max(nse, 1), *algebra, complement)
    operands = dict(zip(("a_indptr", "a_indices", "a_data"), a, strict=True))
    operands |= dict(zip(("b_indptr", "b_indices", "b_data"), b, strict=True))
    if mask is not None:
        operands |= mask.operands()
    products, cores = _products(a, b[0]), extent()["ctas"]
    few, middle = (
        dataclasses.replace(warps, ctas=cores * warps.ctas) for warps in (tuning.few, tuning.middle)
    )
    stretch = max(min(few.stretch, job.rows // SHARE), 8)  # all warps have some
    few = dataclasses.replace(few, stretch=stretch)
    bounds = middle.most, max(tuning.large, few.most)
    run = functools.partial(rows_by_warps, job, operands, products)
    out = run(None, few, bounds=bounds)
    for listed, threads, capacity in (
        (LARGE, tuning.large_threads, tuning.large_capacity),
        (MEDIUM, tuning.medium_threads, tuning.medium_capacity),
    ):
        if tuning.most > bounds[listed == LARGE]:
            config = _config(columns, threads, capacity, tuning.window, cores)
            out = rows_by_ctas(job, operands, out, config, listed=listed)
    if tuning.most > few.most:
        out = run(out, middle, listed=MIDDLE)
    indptr, total = _offsets(out["count"], out["start"])
    del out["count"]
    return Rows(out, (products <= few.most).astype(jnp.int32), indptr, total)


def spgemm_assemble(rows: Rows, *, columns: int, nse: int) -> tuple[jax.Array, jax.Array]:
    """(indices int32[nse], data[nse]) of C in the order of its rows, where nse holds them; behind
    the last entry indices are `columns`."""
    ctas, many = 8 * extent()["ctas"], max(nse, 1)
    out, number = rows.out, rows.indptr.shape[0] - 1
    operands = {name: out[name] for name in ("start", "counters", *LISTS.values())}
    operands |= {"from_indices": out["indices"], "from_data": out["data"]}
    operands |= {"alone": rows.alone, "indptr": rows.indptr}

    def kernel(k, g):
        def copy(places, to, valid):
            found = k.load(g.from_indices, places, mask=valid, cache="nc")
            values = k.load(g.from_data, places, mask=valid, cache="nc")
            for at, column, value, t in one_by_one(to, found, values, valid):
                k.store(g.indices, at, column, mask=t)
                k.store(g.data, at, value, mask=t)

        def some(row):
            short = k.load(g.alone, row, mask=row < number, cache="nc") != 0  # in none of the lists
            begin, end = k.row(g.indptr, row, short)
            start = k.load(g.start, row, mask=short, cache="nc")
            moved = lambda places, valid, shift: copy(places, places + shift, valid)  # noqa: E731
            flatten(k, start, k.where(short, end - begin, 0), (begin - start,), moved)

        def whole(row, first, threads):
            begin, end = k.row(g.indptr, row)
            start = k.load(g.start, row, cache="nc")

            def stride(j):
                at = k.several(4, lambda u: j + u * threads)
                copy(start + at, begin + at, at < end - begin)

            k.for_(first, end - begin, 4 * threads, stride)

        k.spread_warps(number, some)
        for word, name in LISTS.items():

            def one(i, name=name, large=word == LARGE):
                row = k.load(getattr(g, name), i, cache="nc")
                whole(row, *((k.thread, k.threads) if large else (k.lane, 32)))

            mine, all_ = (k.cta, k.ctas) if word == LARGE else k.warps
            k.for_(mine, k.load(g.counters, word), all_, one)
        fill(k, g.indices, k.load(g.indptr, number), many, columns)

    done = launch(
        kernel,
        operands,
        {"indices": many, "data": (many, out["data"].dtype)},
        ctas=ctas,
        threads=256,
        name="spgemm_assemble",
    )
    return done["indices"][:nse], done["data"][:nse]


def _products(a, b_indptr):
    """The products of each row, up to SATURATED."""

    def joined(x, y):
        return jnp.minimum(x + y, SATURATED)

    lengths = jnp.minimum(jnp.diff(b_indptr), SATURATED)
    semiring = ScalarSemiring.of(lambda _, x: x, joined, 0, jnp.int32)
    pattern = a[1]  # stands for values, which are not read
    return csr_spmv(a[0], pattern, pattern, lengths, semiring=semiring)


def _config(columns, threads, capacity, window, cores):
    """The launch of rows by CTAs: as many of them a multiprocessor as its memory holds."""
    words = target().shared_bytes // 4 - MARGIN // 4
    whole = -(-columns // GROUP) * GROUP
    window = min(window or whole, whole, (words - 8192) * 20 // GROUP * GROUP)
    most = words - Config(1, threads, window, 0).words
    capacity = min(capacity or most, most, max(-(-columns // 4) * 4, LISTED)) // 4 * 4
    config = Config(1, threads, window, capacity)
    each = max(1, min(words // config.words, 2048 // threads))
    return dataclasses.replace(config, ctas=cores * each)


def _offsets(count, start):
    """Offsets of the rows that fit, and the number of entries of all rows."""
    about = jnp.sum(count.astype(jnp.float32))  # shows whether the exact sum has wrapped
    total = jnp.sum(count.astype(jnp.uint32))
    huge = (about > 3e9) | (total >= 2**31 - 1)
    kept = jnp.where((start >= 0) & ~huge, count, 0)
    ends = jnp.cumsum(kept, dtype=jnp.int32)
    indptr = jnp.append(jnp.int32(0), ends)
    return indptr, jnp.where(huge, 2**31 - 1, total.astype(jnp.int32))
