"""Products and reductions of a sharded graph: `mxv`, `vxm`, `mxm` with an array, `reduce`."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.dispatch import overload
from ..formats.stored import Stored
from ..monoids import Monoid, as_monoid, lor, plus
from ..ops.frame.call import Dense, Options, call
from ..ops.mxm.api import mxm
from ..ops.mxv.api import mxv, vxm
from ..ops.reduce import reduce
from ..semirings import Semiring, as_semiring, plus_times
from .exchange import Local, on_mesh
from .frame import differentiated, mesh_op, refused, told, whole
from .graph import ShardedGraph


def _product(G: ShardedGraph, x: Array, semiring: Semiring, *, flip: bool) -> Array:
    """y[i] = add_j mul(A[i, j], x[j]), or with `flip` y[j] = add_i mul(x[i], A[i, j]); x (n, ...).

    All-gather of x along the columns (rows), the product of one device, a fold of what devices of
    the same rows (columns) got.
    """

    def body(local: Local, x, semiring):
        piece = local.piece(x)
        if flip:
            partial = _times_left(local.along_rows(piece), local.block, semiring)
            return local.everywhere(local.fold_cols(partial, semiring.add))
        partial = _times(local.block, local.along_cols(piece), semiring)
        return local.everywhere(local.fold_rows(partial, semiring.add))

    return on_mesh(body, G, x, semiring)


def _times(block, x, semiring):
    return mxv(block, x, semiring) if x.ndim == 1 else mxm(block, x, semiring)


def _times_left(x, block, semiring):
    return vxm(x, block, semiring) if x.ndim == 1 else mxm(x.T, block, semiring).T


op = mesh_op("product", differentiated(_product))
op.register("collectives")(_product)


def _multiply(name: str, G: ShardedGraph, x: Any, semiring: Any, flip: bool) -> Array:
    semiring = as_semiring(semiring)
    if semiring.add.identity is None or semiring.mul.position is not None:
        raise NotImplementedError(
            f"{name} of a ShardedGraph takes semirings whose addition has an identity and whose "
            f"operator is not positional; got {semiring}."
        )
    if isinstance(x, Stored) or np.shape(x)[:1] != (G.n,):
        got = type(x).__name__ if isinstance(x, Stored) else np.shape(x)
        raise ValueError(f"{name} of a ShardedGraph takes an array over {G.n} vertices; got {got}.")
    return op(told(G), whole(G, x), semiring, flip=flip)


@overload(mxv, ShardedGraph)
def _mxv(A, x, semiring=plus_times, **options) -> Array:
    refused("mxv", options)
    return _multiply("mxv", A, x, semiring, flip=False)


@overload(vxm, ShardedGraph)
def _vxm(x, A, semiring=plus_times, **options) -> Array:
    refused("vxm", options)
    return _multiply("vxm", A, x, semiring, flip=True)


@overload(mxm, ShardedGraph)
def _mxm(A, B, semiring=plus_times, **options) -> Array:
    refused("mxm", options)
    left = isinstance(A, ShardedGraph)
    X = B if left else A
    if not isinstance(X, (jax.Array, np.ndarray)) or X.ndim != 2:
        raise NotImplementedError(
            f"mxm of a ShardedGraph takes an array of two axes beside it; got {type(X).__name__}."
        )
    if left:
        return _multiply("mxm", A, X, semiring, flip=False)
    return _multiply("mxm", B, jnp.asarray(X).T, semiring, flip=True).T


# ---- Reductions ----


def _reduced(G: ShardedGraph, add: Monoid, *, axis: int | None) -> Any:
    def body(local: Local, add):
        row, col = local.block.rowcol()
        terms = add.admit(local.block.data)
        rows, cols = local.part.block_shape
        if axis is None:
            mine = add.segment_reduce(terms, jnp.where(row < rows, 0, 1), 1)
            return add.reduce(lax.all_gather(mine, local.part.axes).reshape(-1))
        at, extent = (row, rows) if axis == 1 else (jnp.where(row < rows, col, cols), cols)
        fold = local.fold_rows if axis == 1 else local.fold_cols
        there = jnp.zeros(extent, bool).at[at].set(True, mode="drop")
        values = fold(add.segment_reduce(terms, at, extent, sorted=axis == 1), add)
        return local.everywhere(values), local.everywhere(fold(there, lor))

    return on_mesh(body, G, add)


reduce_op = mesh_op("reduce", differentiated(_reduced))
reduce_op.register("collectives")(_reduced)


@overload(reduce, ShardedGraph)
def _reduce(A, add=plus, *, axis=None, **options) -> Any:
    refused("reduce", options)
    if axis not in (None, 0, 1, -1, -2) or isinstance(axis, bool):
        raise ValueError(f"`axis` must be None, 0 or 1; got {axis!r}.")
    add = as_monoid(add)
    if add.identity is None:
        raise NotImplementedError(
            f"reduce of a ShardedGraph takes no monoid without identity: {add}."
        )
    if axis is None:
        return reduce_op(told(A), add, axis=None)
    return call(_as_entries, reduce_op(told(A), add, axis=axis % 2), Options())


def _as_entries(values, present):
    return Dense(values, present)
