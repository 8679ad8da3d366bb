"""Communication between devices inside of a `shard_map`, and `on_mesh`, which runs one.

A vector is cut like the vertices: each device holds the elements of its vertices, its piece. Before
a product it gathers the elements of its rows or columns (`rows.along`, `cols.along`: an
all-gather). After it the partial results of several devices are joined and each keeps its piece
(`rows.fold`, `cols.fold`: an all-to-all and a sum over what arrived, for any monoid and in one
order). Elements may be tuples, as pytrees of vectors. Sets of vertices are sent as bitmaps of
32-bit words.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.sharding import PartitionSpec

from .._core.platforms import using
from ..algebra.monoids import Monoid
from ..formats import CSR
from .partition import Partition


class Side(NamedTuple):
    """The rows, or the columns, of the blocks of devices that share them: a piece of each.

    Attributes:
        axes: those of the mesh along which the devices lie.
        parts: how many devices there are.
    """

    axes: tuple[str, ...]
    parts: int

    def along(self, piece: Any) -> Any:
        """(lines, ...) of all lines, from a piece (r, ...)."""
        if not self.axes:
            return piece
        return jax.tree.map(lambda v: lax.all_gather(v, self.axes, tiled=True), piece)

    def bits_along(self, piece: Array) -> Array:
        """`along` of a set of places, 8 a byte."""
        return self._as_bytes(piece, self.along)

    def fold(self, partial: Any, add: Monoid) -> Any:
        """A piece, from partial results (lines, ...) of all devices."""
        if self.parts == 1:
            return partial
        arrived = jax.tree.map(self._arrived, partial)
        if add.of_tuples:
            return jax.vmap(add.reduce, in_axes=1)(arrived)
        return add.reduce(arrived, axis=0).astype(partial.dtype)

    def fold_bits(self, partial: Array) -> Array:
        """`fold` of a set of lines by union, 8 places a byte."""
        return self._as_bytes(partial, self.fold_words)

    def fold_words(self, partial: Array) -> Array:
        """`fold` of words by `or`."""
        if not self.axes:
            return partial
        arrived = self._arrived(partial)
        return lax.reduce(arrived, arrived.dtype.type(0), lax.bitwise_or, (0,))

    def _arrived(self, v: Array) -> Array:
        each = v.reshape(self.parts, v.shape[0] // self.parts, *v.shape[1:])
        return lax.all_to_all(each, self.axes, 0, 0)

    def _as_bytes(self, bits: Array, send: Callable[[Array], Array]) -> Array:
        return jnp.unpackbits(send(jnp.packbits(bits))).astype(bool) if self.axes else bits


class Local(NamedTuple):
    """The part of a sharded graph on one device.

    Attributes:
        block: CSR of its entries, with local rows and columns: places in the concatenated pieces
            that `rows.along` and `cols.along` gather.
        order: (r,) int32, the vertex at each place of its piece; n: none.
        everyone: (R C r,) int32, `order` of all devices, concatenated.
        positions: (n,) int32, the place of each vertex in `everyone`.
        part: the partition.
        symmetric: the pattern of the whole matrix is symmetric, known or declared.
    """

    block: CSR
    order: Array
    everyone: Array
    positions: Array
    part: Partition
    symmetric: bool = False

    def piece(self, x: Any, fill: Any = 0) -> Any:
        """(r, ...) the rows for this device's vertices, of an array (n, ...) over all vertices."""
        return filled(x, self.order, fill)

    # All rows, or all columns, of the block, as the devices that share them exchange them.
    rows = property(lambda self: Side(self.part.col_axes, self.part.grid[1]))
    cols = property(lambda self: Side(self.part.row_axes, self.part.grid[0]))

    def endpoints(self) -> tuple[Array, Array]:
        """(nse,) the vertices that each entry comes from and goes to; n: padding."""
        row, col = self.block.rowcol()
        n, valid = self.part.n, row < self.part.block_shape[0]
        pairs = ((self.rows.along(self.order), row), (self.cols.along(self.order), col))
        tail, head = (order.at[at].get(mode="clip") for order, at in pairs)
        return jnp.where(valid, tail, n), jnp.where(valid, head, n)

    def total(self, x: Array) -> Array:
        """The sum over all devices."""
        return lax.psum(x, self.part.axes)

    def vertices_along_cols(self) -> Array:
        """(columns,) the vertex of each column of the block; n: none."""
        return self.everyone if self.part.grid[1] == 1 else self.cols.along(self.order)

    def by_vertices(self) -> CSR:
        """The block with vertices for columns, to multiply a replicated array."""
        n, block = self.part.n, self.block
        columns = self.vertices_along_cols().at[block.indices].get(mode="fill", fill_value=n)
        shape = block.shape[0], n
        return CSR(block.data, columns, block.indptr, block.overflow, shape, False, block.unique)

    def everywhere(self, piece: Any) -> Any:
        """(n, ...) over all vertices, in the order of their numbers, on every device."""
        values = Side(self.part.axes, math.prod(self.part.grid)).along(piece)
        return jax.tree.map(lambda v: v.at[self.positions].get(mode="promise_in_bounds"), values)


def on_mesh(
    body: Callable[..., Any],
    G: Any,
    *operands: Any,
    values: Any = None,
    whole: bool = True,
    kernels: bool = False,
) -> Any:
    """`body(local, *operands)` on every device of the mesh of a sharded graph.

    Operands and results are replicated. `values` are arrays that begin with (R, C) like those of G;
    the body gets this device's part of them as its last operand. `whole` is False if the result is
    sharded: the body returns this device's part, and the result begins with (R, C). `kernels`
    allows GPU kernels inside the body, else only XLA and CPU forms run. If the caller is inside of
    a `shard_map` over the axes of the partition, with the arrays of G passed by `G.spec`, the body
    is called directly.
    """
    part: Partition = G.part

    def run(arrays, *operands):
        mine = jax.tree.map(lambda x: x[0, 0], arrays)
        data, indices, indptr, order, everyone, positions, *more = mine
        lost = jnp.zeros((), bool)
        block = CSR(data, indices, indptr, lost, part.block_shape, True, G.unique)
        with using(None if kernels else "cpu"):  # most kernels are not tested on several devices
            local = Local(block, order, everyone, positions, part, G.symmetric)
            result = body(local, *operands, *more)
        return result if whole else result[None, None]

    more = () if values is None else (values,)
    arrays = (G.data, G.indices, G.indptr, G.order, G.everyone, G.positions, *more)
    around = jax.sharding.get_abstract_mesh()
    if set(part.axes) <= set(around.manual_axes):
        return run(arrays, *operands)
    everywhere = PartitionSpec()
    # The loops inside do not say which of their values differ between devices.
    return jax.shard_map(
        run,
        mesh=part.mesh if around.empty else None,
        in_specs=(part.spec, *(everywhere for _ in operands)),
        out_specs=everywhere if whole else part.spec,
        check_vma=False,
    )(arrays, *operands)


def averaged(G: Any, x: Array) -> Array:
    """x, which every device holds; inside of the caller's `shard_map` its cotangents are averaged.

    There each device has a part of a cotangent, and a loop over it would end at different steps.
    """
    axes = G.part.axes
    inside = set(axes) <= set(jax.sharding.get_abstract_mesh().manual_axes)
    return lax.pmean(x, axes) if inside else x


def filled(x: Any, at: Array, fill: Any = 0) -> Any:
    """`x[at]` of every leaf; `fill` where an index is out of range."""

    def of(v):
        if v.shape[0] == 0:  # of which JAX gathers nothing
            return jnp.full((*at.shape, *v.shape[1:]), fill, v.dtype)
        return v.at[at].get(mode="fill", fill_value=fill)

    return jax.tree.map(of, x)


def mine(local: Local, vertex: Array) -> Array:
    """(r,) bool, true at the place of a vertex on the device that has it; false elsewhere."""
    return (local.order == vertex) & (local.order < local.part.n)
