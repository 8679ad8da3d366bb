"""The layouts "mxv", "vxm" of `prepare`: A, or its transpose, by diagonals or by rows in bins.

Row bins need no scatter. Every row is cut into segments of at most `segment` entries. Segments of
about equal length share a *bin*, a dense block of `count` rows by `width` slots, and each block is
reduced along its width by elementwise code that XLA fuses with the gather of x. Rows of one segment
are then done; the segment results of longer rows are the entries of a next level, binned in the
same way. `place` brings the results back into the order of the rows with one gather. Padding slots,
1.02 to 1.2 slots an entry in all, point at column `n_cols`. `spmv` is the product. Blocks of rows
of like length are the idea of sliced ELLPACK [Monakov et al., HiPEAC 2010] and of the degree bins
of graph engines.

Blocks of an even side, as several unknowns a point make them, have their entries in aligned pairs
or fours of columns. A kernel then reads 4 bytes of index, and the values and x in one access each,
for a group; the values stay where the CSR has them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.layouts.ragged import module_of, of_numbers, program

from ...._core.eager.arrays import on_gpu
from ...._core.pytree import is_concrete, pytree_dataclass, static, transient
from ....formats import CSR
from ....formats.offsets import search_rows
from ....graph import Graph, register_layout
from ..common.product import Fold
from ..spmv.jvp import serves
from .diagonals import Diagonals, by_diagonals
from .plan import GPU, Bin, Tuning, arranged, bins_of, blocks_of, column_order, levels_for, sizes

SKEWED_FROM = 2**17  # columns: an x of so many does not fit into an L1


@pytree_dataclass
class RowBins:
    """The pattern of a CSR matrix arranged for `spmv`; values are separate, by `arrange`.

    columns: (slots,) int32, bin after bin, numbered by `order`; padding slots hold shape[1].
    starts:  (segments,) int32, where each segment begins in `indices` and `data`, in bin order.
    folds:   per further level, (slots,) int32 positions in the results of the level before; padding
             slots hold the number of those results.
    place:   (shape[0],) int32, position of each row in the results of all levels laid end to end;
             the position after the last stands for an empty row. None: row i is result i.
    order:   (shape[1],) int32, column order[k] of the matrix has number k in `columns`; None: its
             own number. Numbers by falling degree keep the much used part of x in the caches.
    bins:    per level the static shapes of its blocks.
    """

    columns: jax.Array
    starts: jax.Array
    folds: tuple[jax.Array, ...]
    place: jax.Array | None
    order: jax.Array | None
    shape: tuple[int, int] = static()
    nse: int = static()
    bins: tuple[tuple[Bin, ...], ...] = static()

    @property
    def slots(self) -> int:
        """Number of slots of the first level, padding included."""
        return sum(b.width * b.count for b in self.bins[0])

    def arrange(self, data: jax.Array) -> jax.Array:
        """(nse, ...) values in the order of the CSR -> (slots, ...) in the order of `columns`.

        Traceable in `data`. What padding slots receive is arbitrary (some other entry's value).
        """
        return _read(data, self.starts, self.bins[0])


def build(
    indptr: Any,
    indices: Any,
    shape: tuple[int, int],
    *,
    tuning: Tuning = GPU,
    by_degree: bool | None = None,
) -> RowBins:
    """Arrange the pattern of a CSR matrix (shapes depend on values: not traceable).

    indptr: (n_rows + 1,) integers. indices: integers; those behind indptr[-1] are capacity and are
    left out. by_degree numbers the columns by falling degree; None: if a sixteenth of them holds
    half of the entries. Bins hold spare segments, so that graphs of like lengths share programs.
    The host sees histograms of lengths alone. O(n_rows + n_cols + slots).
    """
    n_rows, n_cols = shape
    indptr, indices = of_numbers(indptr), of_numbers(indices)
    ask = by_degree is None and n_cols > SKEWED_FROM
    segment = tuning.segment
    levels = levels_for(indices.shape[0], segment)
    found = sizes(indptr, indices, segment=segment, levels=levels, n_cols=n_cols, skew=ask)
    counts, (top, entries) = jax.device_get(found)
    bins, own = bins_of(counts[0], None if counts[1].any() else n_rows, tuning)
    blocks = (bins, *(bins_of(c, None, tuning)[0] for c in counts[1:] if c.any()))
    order = None
    if counts[0].any() and (by_degree or (ask and 2 * int(top) > int(entries))):
        order = column_order(indptr, indices, n_cols=n_cols)
    columns, starts, folds, place = arranged(
        indptr, indices, order, blocks=blocks, own=own, segment=segment, n_cols=n_cols
    )
    return RowBins(columns, starts, folds, place, order, shape, indices.shape[0], blocks)


@program(static=("bins",))
def _read(data, starts, bins):
    if not bins:
        return data[:0]
    # A gather a bin, so that XLA can fuse each into the reduction of its bin.
    last, xp = data.shape[0] - 1, module_of(data, starts)
    return blocks_of(starts, bins, lambda start, slot: data[xp.minimum(start + slot, last)])


def spmv(layout: RowBins, values: jax.Array, x: jax.Array, fold: Fold) -> jax.Array:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]).

    values: (slots,) in the order of the layout (`RowBins.arrange`). x: (n_cols,). Returns
    (n_rows,). Traceable in values and x; O(slots).
    """
    n_cols = layout.shape[1]
    if layout.order is not None:
        x = take_inside(x, layout.order)
    one = jax.eval_shape(fold.mul, *(jax.ShapeDtypeStruct((1,), v.dtype) for v in (values, x)))
    identity = jnp.asarray(fold.identity, one.dtype)

    def terms(position: slice, block: tuple[int, ...], full: bool) -> jax.Array:
        columns = layout.columns[position].reshape(block)
        read = take_inside(x, columns if full else jnp.minimum(columns, n_cols - 1))
        product = jnp.broadcast_to(fold.mul(values[position].reshape(block), read), block)
        return product if full else jnp.where(columns < n_cols, product, identity)

    results = _fold(layout.bins[0], terms, fold.combine, identity)
    empty = identity.reshape(1)
    finished = list(results)
    for inputs, bins in zip(layout.folds, layout.bins[1:], strict=True):
        below = jnp.concatenate([*results, empty])

        def partial_results(position, block, full, inputs=inputs, below=below):
            return take_inside(below, inputs[position].reshape(block))

        results = _fold(bins, partial_results, fold.combine, identity)
        finished += results
    if layout.place is None:
        return jnp.concatenate(finished) if finished else empty[:0]
    return take_inside(jnp.concatenate([*finished, empty]), layout.place)


def _fold(
    bins: tuple[Bin, ...],
    terms: Callable[[slice, tuple[int, ...], bool], jax.Array],
    combine: Callable[[Any, Any], Any],
    identity: jax.Array,
) -> list[jax.Array]:
    """The results of each block; `terms(slice of the slots, shape, full)` yields what to fold."""
    results, begin = [], 0
    for width, count, least, by_column in bins:
        if by_column:
            columns = [
                terms(slice(begin + k * count, begin + (k + 1) * count), (count,), k < least)
                for k in range(width)
            ]
            results.append(functools.reduce(combine, columns))
        else:
            block = slice(begin, begin + width * count)
            rows = terms(block, (count, width), least == width)
            results.append(lax.reduce(rows, identity, combine, (1,)))
        begin += width * count
    return results


def take_inside(array: jax.Array, index: jax.Array) -> jax.Array:
    """The index is in bounds by construction."""
    return array.at[index].get(mode="promise_in_bounds")


WIDTHS = (4, 2)


@pytree_dataclass
class Groups:
    """Groups of `width` entries of a CSR, side by side in its row and in its columns.

    Attributes:
        indptr: (m + 1,) where the groups of each row begin.
        indices: (nse // width,) the first column of each group, a multiple of `width`.
        width: entries of a group.
    """

    indptr: Array
    indices: Array
    width: int = static()


def grouped(A: CSR) -> Groups | None:
    """The groups of A, the widest that all entries come in; eager."""
    for width in WIDTHS:
        if A.nse and bool(_in_groups(A.indptr, A.indices, width)):
            indptr, indices = _groups(A.indptr, A.indices, width)
            return Groups(indptr, indices, width)
    return None


@functools.partial(jax.jit, static_argnums=2)
def _in_groups(indptr: Array, indices: Array, width: int) -> Array:
    groups = indices.shape[0] // width
    each = indices[: groups * width].reshape(groups, width)
    valid = jnp.arange(groups) < indptr[-1] // width
    right = (each[:, 0] % width == 0) & jnp.all(jnp.diff(each, axis=1) == 1, axis=1)
    return jnp.all(indptr % width == 0) & jnp.all(right | ~valid)


@functools.partial(jax.jit, static_argnums=2)
def _groups(indptr: Array, indices: Array, width: int) -> tuple[Array, Array]:
    groups = indices.shape[0] // width
    return indptr // width, indices[: groups * width : width]


LEAST = 1 << 15  # entries from which on diagonals are looked for


@pytree_dataclass
class Rows:
    """Row bins of a CSR and its values in their order.

    Attributes:
        bins: the pattern.
        values: (slots,) values in the order of the bins; what padding slots hold is arbitrary.
        owners: (nse,) int32, the row of every entry of the CSR, for derivatives by its values on a
            GPU, where finding it takes as long as the product; None on a CPU and where a kernel
            computes them.
        ranks: (nse,) int32, the number by `bins.order` of the column of every entry of the CSR, for
            kernels: the much used part of x, and of sums by column, has the smallest numbers. None
            where columns keep their numbers and where no kernel reads them.
        groups: the entries of the CSR in groups, for a kernel, where all of them come in groups.
        direct: whether a kernel that reads the CSR does better than the bins, because entries side
            by side lie all over x (`_sectors`) or because the values are `perturbed`.
        perturbed: whether the values were put into the bins in this very trace (`revalued`), which
            costs more than a product that reads the CSR instead. Flattening the pytree, as between
            two steps of a scan, resets it: there the values exist already.
    """

    bins: RowBins
    values: Array
    owners: Array | None = None
    ranks: Array | None = None
    groups: Groups | None = None
    direct: bool = static(default=False)
    perturbed: bool = transient(default=False)

    def in_products(self) -> Rows:
        """These rows as an operand of a product of this trace."""
        return dataclasses.replace(self, direct=self.direct or self.perturbed)

    def revalued(self, A: CSR) -> Rows:
        """The same rows with the values of A."""
        values = self.bins.arrange(A.data[: self.bins.nse])
        return dataclasses.replace(self, values=values, perturbed=not is_concrete(values))


Arranged = Rows | Diagonals  # what `prepare` makes of the rows of a matrix


def arrange(A: CSR) -> Rows | None:
    """The rows of A in bins, on a GPU; None elsewhere; eager."""
    if not on_gpu(A.indices):
        return None
    bins = build(A.indptr, A.indices, A.shape)
    values = bins.arrange(A.data)
    if not serves(A.dtype, A.indptr, A.indices):
        return Rows(bins, values, search_rows(A.indptr, A.nse))
    ranks = None if bins.order is None else _ranks(bins.order, A.indices)
    scattered = A.shape[1] > 2**16 and float(_sectors(A.indices, A.indptr[-1])) > 24
    return Rows(bins, values, None, ranks, grouped(A), scattered)


@jax.jit
def _sectors(indices: Array, count: Array) -> Array:
    """The typical number of 32-byte sectors of x that 32 adjacent entries read, by 4,096 samples.
    If it is nearly 32 and x exceeds the L1 cache, these gathers decide the time of a product in any
    layout, and bins gain nothing."""
    groups = indices.shape[0] // 32
    if groups == 0:
        return jnp.float32(0)
    near = indices[: 32 * groups].reshape(groups, 32)[:: -(-groups // 4096)]
    valid = jnp.arange(near.shape[0]) * -(-groups // 4096) < count // 32
    sectors = jnp.sort(near >> 3, axis=1)
    each = 1 + jnp.sum(sectors[:, 1:] != sectors[:, :-1], axis=1)
    return jnp.sum(jnp.where(valid, each, 0)) / jnp.maximum(jnp.sum(valid), 1)


@jax.jit
def _ranks(order: Array, indices: Array) -> Array:
    n = order.shape[0]
    number = jnp.zeros(n, jnp.int32).at[order].set(jnp.arange(n, dtype=jnp.int32))
    return number.at[indices].get(mode="fill", fill_value=n)


def _prepared(A: CSR) -> Arranged | None:
    return (by_diagonals(A) if A.nse >= LEAST else None) or arrange(A)


@register_layout("mxv", revalue=lambda rows, g: rows and rows.revalued(g.out), needs_inn=False)
def _mxv(graph: Graph) -> Arranged | None:
    return _prepared(graph.out)


@register_layout(
    "vxm", revalue=lambda rows, g: rows and rows.revalued(g.out if g.inn is None else g.inn)
)
def _vxm(graph: Graph) -> Arranged | None:
    assert graph.inn is not None
    return _prepared(graph.inn)
