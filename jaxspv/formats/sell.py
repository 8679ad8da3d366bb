"""SELL: slices of C rows, each as wide as its longest row, rows sorted by length within windows."""

from __future__ import annotations

import functools
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
from jax import Array, lax

from .._core.indices import narrowed, with_pattern
from .._core.pytree import describe, is_concrete, pytree_dataclass, static, transient
from ..shapes import Bool, Int, Shaped
from .base import SparseMatrix, register
from .coo import COO
from .ell import PaddedRows, check_padding
from .invariants import Promises, check, check_places, length, pointer
from .offsets import compress, search_rows
from .stored import Edges

SLICE = 32  # rows a slice: the lanes of a warp
WINDOW = 1 << 14  # rows sorted together: of a length each, and near enough to read near columns


@register
@pytree_dataclass
class SELL(PaddedRows):
    """SELL-C-sigma: slice s holds the rows `order[C s : C (s + 1)]` in lanes, position by position.

    Slot `k = slice_ptr[s] + C p + l` is position p of row `order[C s + l]`: entry
    `(order[C s + l], indices[k], data[k])`. A slice is as wide as its longest row; rows of a window
    of sigma are sorted by descending length, so that those of a slice are about equally long.
    Padding has column n, padding lanes (m is no multiple of C) row m.

    Attributes:
        data: (nse,) values.
        indices: (nse,) int32 columns, ascending along a row.
        slice_ptr: (ceil(m / C) + 1,) int32 first slot of each slice, multiples of C.
        order: (C ceil(m / C),) int32, a permutation of the rows, then m.
        overflow: bool scalar; some operation dropped entries for want of capacity.
        shape: (m, n), static.
        C: rows a slice, static.
        transposed: the arrays describe the transpose, static.
        unique: no index pair twice, static.
        edges: what it was made of, for `with_edge_data(values)`; not part of the pytree.

    Source: Kreutzer, Hager, Wellein, Fehske, Bishop, "A unified sparse matrix data format for
    efficient general sparse matrix-vector multiplication on modern processors with wide SIMD
    units", SIAM J. Sci. Comput. 36(5), 2014.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 2, 2], [1, 0, 2], shape=(3, 3))
    >>> S = jsp.SELL.from_matrix(A, C=2)
    >>> S, S.order.tolist(), S.slice_ptr.tolist(), S.indices.tolist()
    (SELL(float32[4], shape=(3, 3), C=2), [2, 0, 1, 3], [0, 4, 4], [0, 1, 2, 3])
    """

    format: ClassVar[str] = "sell"
    data: Shaped[Array, " nse"]
    indices: Int[Array, " nse"]
    slice_ptr: Int[Array, " slice_offsets"]
    order: Int[Array, " lanes"]
    overflow: Bool[Array, ""]
    shape: tuple[int, int] = static()
    C: int = static(default=SLICE)
    transposed: bool = static(default=False)
    unique: bool = static(default=True)
    edges: Edges | None = transient(default=None)

    def check_invariants(self) -> SELL:
        return check_places(check(self, ("indices", "slice_ptr", "order"), _promises))

    def slices(self) -> Int[Array, " groups"]:
        """(nse / C,) int32: the slice of each group of C slots; the number of slices past them."""
        return search_rows(self.slice_ptr // self.C, self.nse // self.C)

    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        m, n = self.stored_shape
        if self.nse == 0:
            return self.indices, self.indices
        lanes = self.slices()[:, None] * self.C + jnp.arange(self.C, dtype=jnp.int32)[None]
        order = jnp.asarray(with_pattern(self).order)
        row = order.at[lanes.reshape(-1)].get(mode="fill", fill_value=m)
        row = jnp.where(self.indices < n, row, m)
        return (self.indices, row) if self.transposed else (row, self.indices)

    def in_capacity(self, nse: int) -> SELL:
        return type(self).from_coo(self.to_coo().in_capacity(nse), C=self.C)

    @classmethod
    def from_coo(cls, coo: COO, *, C: int = SLICE, sigma: int | None = None) -> SELL:
        """The rows of a sorted COO in slices.

        Args:
            C: rows a slice, positive.
            sigma: rows of a window, within which they are sorted by length; 1: as they come; None:
                16,384, or all of them under jit.

        Raises:
            ValueError: C or sigma is not positive, or the slots would be mostly padding.
        """
        (coo,) = narrowed("a format of slices", coo)
        (m, n), concrete = coo.shape, is_concrete(coo.row, coo.col)
        if sigma is None:
            sigma = WINDOW if concrete else max(m, 1)
        for name, value in (("C", C), ("sigma", sigma)):
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise ValueError(f"`{name}` must be a positive integer; got {value!r}.")
        order, first, slice_ptr = _arranged(coo.row, m, C, sigma)
        if concrete:
            slots = int(slice_ptr[-1])
        else:  # a sorted window wastes at most one slice as wide as its longest row
            windows = -(-m // sigma)
            slots = C * -(-(coo.nse + windows * C * min(n, coo.nse)) // C) if m else 0
        check_padding("SELL", slots, coo.nse, "a larger `sigma` or a smaller `C` pad less")
        return _filled(coo, order, first, slice_ptr, slots, C)

    @classmethod
    def from_matrix(cls, A: SparseMatrix, *, C: int = SLICE, sigma: int | None = None) -> SELL:
        """`A` in this format: see `from_coo`."""
        return cls.from_coo(A.to_coo(), C=C, sigma=sigma)

    def __repr__(self) -> str:
        return f"SELL({describe(self.data)}, shape={self.shape}, C={self.C})"


@functools.partial(jax.jit, static_argnums=(1, 2, 3))
def _arranged(row: Array, m: int, C: int, sigma: int) -> tuple[Array, Array, Array]:
    """`order`, the first slot of each row's entries in the COO, `slice_ptr`."""
    first = compress(row, m).astype(jnp.int32)
    size = first[1:] - first[:-1]
    rows = jnp.arange(m, dtype=jnp.int32)
    if sigma > 1:
        _, size, order = lax.sort((rows // sigma, -size, rows), num_keys=2, is_stable=True)
        size = -size
    else:  # sorted by row already; on a GPU, XLA gets a sort whose key is its payload wrong
        order = rows
    lanes = -(-m // C) * C
    order = jnp.pad(order, (0, lanes - m), constant_values=m)
    widths = jnp.pad(size, (0, lanes - m)).reshape(-1, C).max(1, initial=0)
    return order, first, jnp.pad(jnp.cumsum(widths * C, dtype=jnp.int32), (1, 0))


@functools.partial(jax.jit, static_argnums=(4, 5))
def _filled(coo: COO, order: Array, first: Array, slice_ptr: Array, slots: int, C: int) -> SELL:
    (m, n), rows = coo.shape, order.shape[0]
    if 0 in (m, coo.nse):
        nothing = jnp.zeros(0, coo.dtype), jnp.zeros(0, coo.col.dtype)
        return SELL(*nothing, slice_ptr, order, coo.overflow, coo.shape, C, False, coo.unique)
    lane = jnp.zeros(m, jnp.int32).at[order].set(jnp.arange(rows, dtype=jnp.int32), mode="drop")
    at = lane.at[coo.row].get(mode="clip")
    position = jnp.arange(coo.nse, dtype=jnp.int32) - first.at[coo.row].get(mode="clip")
    place = slice_ptr.at[at // C].get(mode="clip") + position * C + at % C
    place = jnp.where(coo.row < m, place, slots)
    data = jnp.zeros(slots, coo.dtype).at[place].set(coo.data, mode="drop")
    indices = jnp.full(slots, n, coo.col.dtype).at[place].set(coo.col, mode="drop")
    return SELL(data, indices, slice_ptr, order, coo.overflow, coo.shape, C, False, coo.unique)


def _promises(x: Any, xp: Any) -> Promises:
    m, n = x.shape[::-1] if x.transposed else x.shape
    slices = -(-m // x.C)
    lanes = xp.sort(x.order)
    rows = xp.minimum(xp.arange(slices * x.C), m)
    return [
        *length("indices", x.indices, x.nse),
        *length("slice_ptr", x.slice_ptr, slices + 1),
        *length("order", x.order, slices * x.C),
        *pointer("slice_ptr", x.slice_ptr, x.nse, xp),
        (f"`slice_ptr` must hold multiples of {x.C}", xp.any(x.slice_ptr % x.C != 0)),
        (f"`order` must be a permutation of {m} rows, then {m}", xp.any(lanes != rows)),
        (f"`indices` must lie in [0, {n}]", xp.any((x.indices < 0) | (x.indices > n))),
    ]
