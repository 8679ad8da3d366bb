"""Rows binned by width, so that a product needs no scatter: the layout, and how it is made.

Every row is cut into segments of at most `segment` entries. Segments of about equal length share a
*bin*, a dense block of `count` rows by `width` slots, and each block is reduced along its width by
elementwise code that XLA fuses with the gather of x. Rows of one segment are then done; the segment
results of longer rows are the entries of a next level, binned in the same way. `place` brings the
results back into the order of the rows with one gather.

Padding slots, 1.02 to 1.2 slots an entry in all, point at column `n_cols`; `binned.spmv` is the
product. Blocks of rows of like length are the idea of sliced ELLPACK [Monakov et al., HiPEAC 2010]
and of the degree bins of graph engines.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ...._core.compilation import to_device
from . import device
from .plan import (
    TUNING,
    Bin,
    Plan,
    Tuning,
    bins_of,
    blocks_of,
    columns_of,
    filled,
    plan_bins,
    slots_of,
)

SKEWED_FROM = 2**17  # columns: an x of so many does not fit into an L1


@functools.partial(
    jax.tree_util.register_dataclass,
    data_fields=["columns", "starts", "folds", "place", "order"],
    meta_fields=["shape", "nse", "bins"],
)
@dataclasses.dataclass(frozen=True)
class RowBins:
    """The pattern of a CSR matrix arranged for `binned.spmv`; values are separate, by `arrange`.

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

    def arrange(self, data: jax.Array | np.ndarray) -> jax.Array:
        """(nse, ...) values in the order of the CSR -> (slots, ...) in the order of `columns`.

        Traceable in `data`; a NumPy array is arranged on the host. What padding slots receive is
        arbitrary (some other entry's value).
        """
        if isinstance(data, np.ndarray):
            return jnp.asarray(_read(data, np.asarray(self.starts), self.bins[0], np))
        return _read_jit(data, self.starts, self.bins[0], jnp)


def build(
    indptr: Any,
    indices: Any,
    shape: tuple[int, int],
    *,
    platform: str = "cpu",
    tuning: Tuning | None = None,
    by_degree: bool | None = None,
    on_device: bool | None = None,
    rounded: bool = True,
) -> RowBins:
    """Arrange the pattern of a CSR matrix (shapes depend on values: not traceable).

    indptr: (n_rows + 1,) integers. indices: integers; those behind indptr[-1] are capacity and are
    left out. platform ("cpu" or "gpu") picks `TUNING`: on the other platform the layout is right,
    only slower. by_degree numbers the columns by falling degree; None: on a GPU, if `_is_skewed`.
    on_device: by programs where `indices` are, or with NumPy; None: there for JAX arrays on "gpu".
    rounded: whether bins hold spare segments, so that graphs of like lengths share programs.
    O(n_rows + n_cols + slots).
    """
    tuning = TUNING[platform] if tuning is None else tuning
    if on_device is None:
        on_device = platform == "gpu" and isinstance(indices, jax.Array)
    if on_device:
        wanted = False if by_degree is None and platform == "cpu" else by_degree
        return _build_on_device(indptr, indices, shape, tuning, wanted, rounded)
    indptr, indices = np.asarray(indptr).astype(np.int64), np.asarray(indices)
    n_rows, n_cols = shape
    rows = np.arange(n_rows)
    place = np.full(n_rows, -1, np.int64)
    plan = bottom = plan_bins(indptr[:-1], np.diff(indptr), tuning, rounded=rounded)
    bins, folds, results = [plan.bins], [], 0
    while True:
        done, longer = plan.pieces == 1, plan.pieces > 1
        place[rows[done]] = results + plan.position[plan.first[done]]
        results += plan.starts.size
        if not longer.any():
            break
        below, rows = plan, rows[longer]
        plan = plan_bins(
            below.first[longer], below.pieces[longer], tuning, may_own=False, rounded=rounded
        )
        slots = slots_of(plan.starts, plan.bins, np)
        inputs = np.append(below.position, 0)[np.minimum(slots, below.position.size)]
        present = filled(plan.lengths, plan.bins, np)
        folds.append(np.where(present, inputs, below.starts.size).astype(np.int32))
        bins.append(plan.bins)
    place[place < 0] = results
    order = _column_order(indices[: indptr[-1]], n_cols, platform, by_degree)
    columns = _columns(indices, bottom, order, n_cols)

    def index(x):
        host = isinstance(x, np.ndarray)
        return to_device(x.astype(np.int32, copy=False)) if host else jnp.asarray(x, jnp.int32)

    return RowBins(
        columns=index(columns),
        starts=index(bottom.starts),
        folds=tuple(index(fold) for fold in folds),
        place=None if bottom.own else index(place),
        order=None if order is None else index(order),
        shape=(n_rows, n_cols),
        nse=int(indices.shape[0]),
        bins=tuple(bins),
    )


def _build_on_device(
    indptr: Any,
    indices: jax.Array,
    shape: tuple[int, int],
    tuning: Tuning,
    by_degree: bool | None,
    rounded: bool,
) -> RowBins:
    """`build` where the arrays are: the host sees histograms of lengths."""
    n_rows, n_cols = shape
    indptr = jnp.asarray(indptr, jnp.int32)
    ask = by_degree is None and n_cols > SKEWED_FROM
    segment = tuning.segment
    levels = device.levels_for(indices.shape[0], segment)
    found = device.sizes(indptr, indices, segment=segment, levels=levels, n_cols=n_cols, skew=ask)
    counts, (top, entries) = jax.device_get(found)
    bins, own = bins_of(counts[0], None if counts[1].any() else n_rows, tuning, rounded)
    blocks = (bins, *(bins_of(c, None, tuning, rounded)[0] for c in counts[1:] if c.any()))
    order = None
    if counts[0].any() and (by_degree or (ask and 2 * int(top) > int(entries))):
        order = device.column_order(indptr, indices, n_cols=n_cols)
    columns, starts, folds, place = device.arranged(
        indptr, indices, order, blocks=blocks, own=own, segment=segment, n_cols=n_cols
    )
    return RowBins(columns, starts, folds, place, order, shape, indices.shape[0], blocks)


def _column_order(
    indices: np.ndarray, n_cols: int, platform: str, by_degree: bool | None
) -> np.ndarray | None:
    """Columns by falling number of entries if that is asked for or promises to pay, else None."""
    if by_degree is False or (by_degree is None and platform == "cpu") or indices.shape[0] == 0:
        return None
    degree = np.bincount(indices, minlength=n_cols)
    if by_degree is None and not _is_skewed(degree):
        return None
    return np.argsort(-degree, kind="stable")


def _is_skewed(degree: np.ndarray) -> bool:
    """Whether a sixteenth of the columns holds half of the entries, of an x too long for an L1."""
    many = max(degree.size // 16, 1)
    top = np.partition(degree, degree.size - many)[-many:]
    return degree.size > SKEWED_FROM and 2 * int(top.sum()) > int(degree.sum())


def _columns(indices: np.ndarray, plan: Plan, order: np.ndarray | None, n_cols: int) -> np.ndarray:
    """(slots,) number of each slot's column, n_cols in padding."""
    number = None
    if order is not None:
        number = np.empty(n_cols, np.int32)
        number[order] = np.arange(n_cols, dtype=np.int32)
    return columns_of(indices, plan.starts, plan.lengths, number, plan.bins, n_cols, np)


def _read(data, starts, bins, xp):
    if not bins:
        return data[:0]
    # A gather a bin, so that XLA can fuse each into the reduction of its bin.
    last = data.shape[0] - 1
    return blocks_of(starts, bins, lambda start, slot: data[xp.minimum(start + slot, last)], xp)


_read_jit = jax.jit(_read, static_argnames=("bins", "xp"))
