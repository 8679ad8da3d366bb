"""Graphs over the devices of a mesh: ShardedGraph, and ShardedTuples, whose entries are tuples."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.forms import overloadable
from .._core.indices import LIMIT
from .._core.pytree import describe, is_concrete, pytree_dataclass, static
from .._core.tuples import is_tuple, take
from ..algebra.semirings import Semiring, plus_times
from ..formats import CSR
from ..formats.methods import Products
from ..formats.tuples import Tuples
from ..shapes import Int, Shaped
from .exchange import on_mesh
from .partition import Partition

if TYPE_CHECKING:
    from jax import Array
    from jax.sharding import PartitionSpec

    from .._core.platforms import Backend


def _on_mesh() -> Any:
    """The module with what public functions call, imported when one is used."""
    return importlib.import_module(f"{__name__.partition('.')[0]}._on_mesh")


@pytree_dataclass
class ShardedGraph(Products):
    """A square matrix A whose entries lie on the devices of a mesh; made by `shard`.

    Every array begins with the axes (R, C) of the partition, over which it is sharded by `spec`:
    `jax.shard_map` over the mesh takes the graph with `in_specs=G.spec`.

    Attributes:
        data: (R, C, nse) values of each device's entries, in the order of its rows and columns.
        indices: (R, C, nse) int32 local columns; slots beyond the last row are padding.
        indptr: (R, C, rows + 1) int32 offsets of the local rows.
        order: (R, C, places) int32, the vertices of each device; n: none.
        everyone: (R, C, R C places) int32, `order` of all devices, replicated.
        positions: (R, C, n) int32, the place of each vertex in `everyone`, replicated.
        part: the partition, static.
        unique: no entry of A is stored twice, static.
        symmetric: the pattern of A is symmetric, checked or declared, static.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.shard(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)), mesh)
    >>> G.n, jsp.bfs(G, 0).levels.tolist()
    (3, [0, 1, 2])
    """

    data: Shaped[Array, "R C nse"]
    indices: Int[Array, "R C nse"]
    indptr: Int[Array, "R C offsets"]
    order: Int[Array, "R C places"]
    everyone: Int[Array, "R C everyone"]
    positions: Int[Array, "R C n"]
    part: Partition = static()
    unique: bool = static(default=True)
    symmetric: bool = static(default=False)

    @property
    def __jaxspv_functions__(self) -> dict[str, Callable[..., Any]]:
        """What public functions call for it."""
        return _on_mesh().FUNCTIONS

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.part.n

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.n, self.n

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def spec(self) -> PartitionSpec:
        """How each of its arrays is sharded."""
        return self.part.spec

    @property
    def places_here(self) -> tuple[int, ...]:
        """(R, C, places) of row-sharded arrays; inside of a `shard_map` (1, 1, places)."""
        return *self.indptr.shape[:2], self.part.places

    def with_data(self, data: Any) -> Any:
        """The same pattern with new values, in the order of `data`. Traceable.

        Values that are tuples, a pytree of arrays (R, C, nse, ...), give a `ShardedTuples`.

        Raises:
            ValueError: they have another shape.
        """
        if is_tuple(data):
            return ShardedTuples.of(self, data)
        if jnp.shape(data) != self.data.shape:
            raise ValueError(f"`data` must have shape {self.data.shape}; got {jnp.shape(data)}.")
        return dataclasses.replace(self, data=jnp.asarray(data))

    def astype(self, dtype: Any) -> ShardedGraph:
        """The same pattern with values of another dtype."""
        return dataclasses.replace(self, data=self.data.astype(dtype))

    def deal(self, x: Shaped[Array, "n ..."]) -> Shaped[Array, "R C places ..."]:
        """A row-sharded array from one over the vertices: rows lie with their vertices. Traceable.

        A product with a row-sharded array is row-sharded, so that no device ever holds all rows:
        this is for the features between the layers of a network. Places without a vertex hold 0;
        the result is sharded by `spec`.

        Raises:
            ValueError: it is not over the vertices.

        >>> import jax, jaxspv as jsp
        >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
        >>> G = jsp.shard(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)), mesh)
        >>> X = G.deal(jax.numpy.eye(3, 2))
        >>> G.gather(jsp.mxm(G, X)).tolist()
        [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
        """
        if jnp.shape(x)[:1] != (self.n,):
            raise ValueError(f"`x` must have {self.n} rows, one a vertex; got {jnp.shape(x)}.")
        if is_concrete(x):
            x = jax.device_put(x, self.part.replicated)
        return on_mesh(lambda local, x: local.piece(x), self, x, whole=False)

    def gather(self, x: Shaped[Array, "R C places ..."]) -> Shaped[Array, "n ..."]:
        """The inverse of `deal`: all rows in the order of the vertices, replicated. Traceable.

        Raises:
            ValueError: it has not the places of this graph.
        """
        if jnp.shape(x)[:3] != (places := self.places_here):
            raise ValueError(f"`x` must have shape {places} and more; got {jnp.shape(x)}.")
        return on_mesh(lambda local, x: local.everywhere(x), self, values=x)

    def unshard(self) -> CSR:
        """The whole matrix as a CSR, in every process; eager.

        Raises:
            ValueError: it is traced, or has 2^31 - 1 entries or more.
        """
        if not is_concrete(self):
            raise ValueError("`unshard` needs concrete values: call it outside of jit.")
        whole = jax.jit(lambda *x: x, out_shardings=self.part.replicated)
        arrays = whole(self.data, self.indices, self.indptr, self.order)
        data, indices, indptr, order = map(np.asarray, arrays)
        R, C = self.part.grid
        counts = indptr[..., -1].astype(np.int64)
        if counts.sum() >= LIMIT:
            raise ValueError(f"one matrix holds fewer than 2^31 - 1 entries; got {counts.sum()}.")
        rows, cols, values = [], [], []
        for i in range(R):
            for j in range(C):
                count = counts[i, j]
                vertices = order[i].reshape(-1)
                rows.append(np.repeat(vertices, np.diff(indptr[i, j])))
                cols.append(order[:, j].reshape(-1)[indices[i, j, :count]])
                values.append(data[i, j, :count])
        row, col, value = map(np.concatenate, (rows, cols, values))
        by = np.lexsort((col, row))
        ends = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=self.n))])
        values, columns = jnp.asarray(value[by]), jnp.asarray(col[by], jnp.int32)
        offsets = jnp.asarray(ends, jnp.int32)
        return CSR(values, columns, offsets, jnp.zeros((), bool), self.shape, True, self.unique)

    def __repr__(self) -> str:
        R, C = self.part.grid
        return (
            f"ShardedGraph({describe(self.data)}, n={self.n}, {R} by {C} devices, "
            f"spec={self.part.spec})"
        )


@pytree_dataclass
class ShardedTuples:
    """A sharded graph whose entries are pytrees; made by `shard`, or by `with_data` of a graph.

    Attributes:
        places: the `ShardedGraph`; its own values are not read.
        values: a pytree of arrays (R, C, nse, ...), sharded by `spec`, in the order of its slots.

    >>> import jax, jax.numpy as jnp, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    >>> G = jsp.shard(A.with_data((jnp.array([1.0, 2.0]), jnp.array([7, 8]))), mesh)
    >>> x = jnp.zeros(2), jnp.full(2, 2**31 - 1)
    >>> [v.tolist() for v in jsp.vxm(x, G, jsp.semirings.argmin_plus())]
    [[2.0, 1.0], [8, 7]]
    """

    places: Any
    values: Any

    @classmethod
    def of(cls, places: Any, values: Any) -> ShardedTuples:
        """With values in the order of the slots.

        Raises:
            ValueError: the leaves do not have one row for each slot, or a place may come twice.
        """
        values, slots = jax.tree.map(jnp.asarray, values), places.data.shape
        if wrong := [v.shape for v in jax.tree.leaves(values) if v.shape[:3] != slots]:
            raise ValueError(f"`data` must have leaves {slots} and more; got shapes {wrong}.")
        if not places.unique:
            raise ValueError("entries that are tuples need a matrix that lists each place once.")
        return cls(places, values)

    @property
    def __jaxspv_functions__(self) -> dict[str, Callable[..., Any]]:
        """As of a sharded graph; most functions refuse tuples."""
        return _on_mesh().ON_TUPLES

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.places.shape

    @property
    def spec(self) -> Any:
        """How each of its arrays is sharded."""
        return self.places.spec

    def with_data(self, data: Any) -> Any:
        """The same pattern with other values, in the order of the slots."""
        return self.places.with_data(data)

    def unshard(self) -> Tuples:
        """The whole matrix as a CSR, in every process; eager."""
        slots = np.arange(self.places.data.size, dtype=np.int32).reshape(self.places.data.shape)
        whole = dataclasses.replace(self.places, data=slots).unshard()
        everywhere = jax.jit(lambda v: v, out_shardings=self.places.part.replicated)
        values = jax.tree.map(lambda v: np.asarray(everywhere(v)), self.values)
        values = jax.tree.map(lambda v: v.reshape(-1, *v.shape[3:]), values)
        return Tuples.of(whole, take(values, whole.data))

    def __repr__(self) -> str:
        values = repr(jax.tree.map(describe, self.values)).replace("'", "")
        return f"ShardedTuples({values}, {self.places!r})"


@overloadable
def row_sharded_mxm(
    G: ShardedGraph,
    X: Shaped[Array, "n k"],
    semiring: Semiring | str = plus_times,
    *,
    backend: Backend | None = None,
) -> Shaped[Array, "R C places k"]:
    """`G.deal(mxm(G, X, semiring))` without the whole product on any device. Traceable.

    Each row of the result stays on the device of its vertex. With whole rows nothing is sent.

    Args:
        G: a sharded graph.
        X: (n, k), whole on every device; or what `G.deal` gives, as for `mxm`.
        semiring: as in `mxm`.
        backend: "pallas", "xla", or None.

    Returns:
        (R, C, places, k), sharded by `G.spec`; places without a vertex hold the zero of `add`.

    Raises:
        TypeError: G is no ShardedGraph.
        ValueError: X has not n rows.
        NotImplementedError: the form asked for cannot run; says why.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.shard(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)), mesh)
    >>> G.gather(row_sharded_mxm(G, jax.numpy.eye(3, 2))).tolist()
    [[0.0, 1.0], [0.0, 0.0], [1.0, 0.0]]
    """
    raise TypeError(f"`G` must be a ShardedGraph; got {type(G).__name__}.")
