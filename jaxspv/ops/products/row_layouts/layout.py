"""The layouts "mxv", "vxm" of `prepare`: A, or its transpose, by rows in bins or by diagonals.

Blocks of an even side, as several unknowns a point make them, have their entries in aligned pairs
or fours of columns. A kernel then reads 4 bytes of index, and the values and x in one access each,
for a group; the values stay where the CSR has them.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.eager.arrays import on_gpu
from ...._core.pytree import is_concrete, pytree_dataclass, static, transient
from ....formats import CSR
from ....formats.offsets import search_rows
from ....graph import Graph, register_layout
from ..spmv.jvp import serves
from .bins import RowBins, build
from .diagonals import Diagonals, by_diagonals

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
