"""Rows binned by width, so that a product needs no scatter: the layout, and how it is made.

Every row is cut into segments of at most `segment` entries. Segments of about equal length share a
*bin*, a dense block of `count` rows by `width` slots, and each block is reduced along its width by
elementwise code that XLA fuses with the gather of x. Rows of one segment are then done; the segment
results of longer rows are the entries of a next level, binned in the same way. `place` brings the
results back into the order of the rows with one gather.

Padding slots, 1.02 to 1.2 slots an entry in all, point at column `n_cols`; `spmv` is the
product. Blocks of rows of like length are the idea of sliced ELLPACK [Monakov et al., HiPEAC 2010]
and of the degree bins of graph engines.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from pallas_kernels.layouts.ragged import module_of, of_numbers, program

from .plan import GPU, Bin, Tuning, arranged, bins_of, blocks_of, column_order, levels_for, sizes

SKEWED_FROM = 2**17  # columns: an x of so many does not fit into an L1


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["columns", "starts", "folds", "place", "order"],
    meta_fields=["shape", "nse", "bins"],
)
@dataclasses.dataclass(frozen=True)
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
    shape: tuple[int, int]
    nse: int
    bins: tuple[tuple[Bin, ...], ...]

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
    rounded: bool = True,
) -> RowBins:
    """Arrange the pattern of a CSR matrix (shapes depend on values: not traceable).

    indptr: (n_rows + 1,) integers. indices: integers; those behind indptr[-1] are capacity and are
    left out. by_degree numbers the columns by falling degree; None: if a sixteenth of them holds
    half of the entries. rounded: whether bins hold spare segments, so that graphs of like lengths
    share programs. The host sees histograms of lengths alone. O(n_rows + n_cols + slots).
    """
    n_rows, n_cols = shape
    indptr, indices = of_numbers(indptr), of_numbers(indices)
    ask = by_degree is None and n_cols > SKEWED_FROM
    segment = tuning.segment
    levels = levels_for(indices.shape[0], segment)
    found = sizes(indptr, indices, segment=segment, levels=levels, n_cols=n_cols, skew=ask)
    counts, (top, entries) = jax.device_get(found)
    bins, own = bins_of(counts[0], None if counts[1].any() else n_rows, tuning, rounded)
    blocks = (bins, *(bins_of(c, None, tuning, rounded)[0] for c in counts[1:] if c.any()))
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


def spmv(
    layout: RowBins,
    values: Any,
    x: Any,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    reduce: Callable[[Any, int], Any] | None = None,
) -> Any:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]).

    values: (slots,) in the order of the layout (`RowBins.arrange`), or one scalar for all entries.
    x: (n_cols,), or (n_cols, B) for B vectors, or a pytree of such arrays, which `mul` gets
    gathered and `combine` gets as terms: (value, index) pairs find the winning column.
    identity: that of `combine` in the dtype `mul` returns, a pytree like the terms.
    reduce(terms, axis): the reduction of a block if the caller has a better one than `lax.reduce`.
    Returns (n_rows,), (n_rows, B), or a pytree of them. Traceable in values and x; O(slots).
    """
    n_cols = layout.shape[1]
    x = jax.tree.map(jnp.asarray, x)
    if layout.order is not None:
        x = _take(x, layout.order)
    batch = jax.tree.leaves(x)[0].shape[1:]
    values = jnp.asarray(values)

    def terms(position: slice, block: tuple[int, ...], full: bool) -> Any:
        columns = layout.columns[position].reshape(block)
        entry = values[position].reshape(block + values.shape[1:]) if values.ndim else values
        entry = entry.reshape(entry.shape + (1,) * (len(block + batch) - entry.ndim))
        entry = jnp.broadcast_to(entry, block + batch)
        operand = _take(x, columns if full else jnp.minimum(columns, n_cols - 1))
        product = jax.tree.map(lambda t: jnp.broadcast_to(t, block + batch), mul(entry, operand))
        if full:
            return product
        present = (columns < n_cols).reshape(block + (1,) * len(batch))
        return jax.tree.map(lambda t, i: jnp.where(present, t, _like(i, t)), product, identity)

    if reduce is None:
        reduce = functools.partial(_reduce, combine=combine, identity=identity)
    results = _fold(layout.bins[0], terms, combine, reduce)
    empty = _empty_result(mul, values, x, identity)
    finished = list(results)
    for inputs, bins in zip(layout.folds, layout.bins[1:], strict=True):
        below = _concatenate([*results, empty])

        def partial_results(position, block, full, inputs=inputs, below=below):
            return _take(below, inputs[position].reshape(block))

        results = _fold(bins, partial_results, combine, reduce)
        finished += results
    if layout.place is None:
        return _concatenate(finished) if finished else _take(empty, slice(0))
    return _take(_concatenate([*finished, empty]), layout.place)


def _fold(
    bins: tuple[Bin, ...],
    terms: Callable[[slice, tuple[int, ...], bool], Any],
    combine: Callable[[Any, Any], Any],
    reduce: Callable[[Any, int], Any],
) -> list[Any]:
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
            results.append(reduce(terms(block, (count, width), least == width), 1))
        begin += width * count
    return results


def _reduce(terms: Any, axis: int, *, combine: Callable, identity: Any) -> Any:
    return lax.reduce(terms, jax.tree.map(_like, identity, terms), combine, (axis,))


def _take(tree: Any, index: jax.Array | slice) -> Any:
    """Rows of every leaf; the index is in bounds by construction."""
    return jax.tree.map(lambda leaf: leaf.at[index].get(mode="promise_in_bounds"), tree)


def _concatenate(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _like(value: Any, term: jax.Array) -> jax.Array:
    return jnp.asarray(value, term.dtype)


def _empty_result(mul: Callable, values: jax.Array, x: Any, identity: Any) -> Any:
    """The identity as one more result, (1, ...) per leaf of the terms."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype), x)
    shape = jax.tree.leaves(one)[0].shape
    term = jax.eval_shape(mul, jax.ShapeDtypeStruct(shape, values.dtype), one)
    return jax.tree.map(lambda t, i: jnp.full(shape, i, t.dtype), term, identity)
