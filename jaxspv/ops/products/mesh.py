"""Operations on a sharded graph: `mxv`, `vxm`, `mxm` with an array, `reduce`, `apply`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import NamedSharding

from ..._core.eager.arrays import known_while_tracing
from ..._core.platforms import using
from ..._core.tuples import commutes, random_values
from ...algebra.monoids import Monoid, as_monoid, lor, plus
from ...algebra.semirings import Semiring, as_semiring, plus_times
from ...formats.stored import Stored
from ...formats.tuples import Tuples
from ...sharding.exchange import Local, filled, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.operation import explicit_mesh, is_row_sharded, mesh_op, placed, refused, whole
from ..apply import applied, bound
from ..reduce import checked_axis, lines_of
from ..tuples import products as tuples
from ..tuples.operations import is_sparse
from ..write_rule.call import Dense, Options, as_operand_mask, call
from .mxm.api import mxm
from .mxv.api import mxv, vxm
from .spmm.api import in_blocks, written


def product(
    G: ShardedGraph,
    x: Array,
    semiring: Semiring,
    *,
    flip: bool,
    keep: bool = False,
    kernels: bool = False,
) -> Array:
    """y[i] = add_j mul(A[i, j], x[j]), or with `flip` y[j] = add_i mul(x[i], A[i, j]); x (n, ...).

    Each device multiplies its block; devices of the same rows (with `flip` columns) add their
    partial results. A replicated x is not sent, and y is replicated. If x is row-sharded so is y,
    and x is gathered along columns (rows). keep: y stays row-sharded although x is replicated; if
    only rows are split over devices, nothing is sent.
    """
    if is_row_sharded(G, x):
        body = functools.partial(multiplied_row_sharded, flip=flip)
        return on_mesh(body, G, semiring, values=x, whole=False, kernels=kernels)
    if keep:
        body = functools.partial(multiplied_here, flip=flip)
        return on_mesh(body, G, x, semiring, whole=False, kernels=kernels)
    return on_mesh(functools.partial(multiplied, flip=flip), G, x, semiring, kernels=kernels)


def multiplied(local: Local, x: Array, semiring: Semiring, *, flip: bool = False) -> Array:
    """`product` on one device."""
    return local.everywhere(multiplied_here(local, x, semiring, flip=flip))


def multiplied_here(local: Local, x: Array, semiring: Semiring, *, flip: bool = False) -> Array:
    """`product` on one device, of a replicated x, giving the rows of y of its vertices."""
    if flip:
        partial = _times_left(local.rows.along(local.piece(x)), local.block, semiring)
        return local.cols.fold(partial, semiring.add)
    if x.ndim == 1:
        mine = filled(x, local.vertices_along_cols())
        partial = mxv(local.block, mine, semiring)
    else:
        partial = mxm(local.by_vertices(), x, semiring)
    return local.rows.fold(partial, semiring.add)


def multiplied_row_sharded(
    local: Local, semiring: Semiring, x: Array, *, flip: bool = False, columns: int | None = None
) -> Array:
    """`product` on one device, of a row-sharded x, giving the rows of y of its vertices.

    columns: the columns of x of one gather; None: all.
    """
    if flip:
        partial = _times_left(local.rows.along(x), local.block, semiring)
        return local.cols.fold(partial, semiring.add)

    def times(x):
        multiply = mxv if x.ndim == 1 else mxm
        return local.rows.fold(multiply(local.block, local.cols.along(x), semiring), semiring.add)

    if columns is None or x.shape[-1] <= columns:
        return times(x)
    return in_blocks(times, x, columns)


def _times_left(x, block, semiring):
    return vxm(x, block, semiring) if x.ndim == 1 else mxm(x.T, block, semiring).T


op = mesh_op("product", "definition")
op.gpu_forms_in(f"{__package__}.mesh_gpu")
op.register("collectives")(product)


def _multiply(
    name: str,
    G: ShardedGraph,
    x: Any,
    semiring: Any,
    options: dict[str, Any],
    flip: bool,
    keep: bool = False,
) -> Array:
    """`G x` or with `flip` `x G`, of an array (n,) or a matrix on that side, under the options."""
    semiring = as_semiring(semiring)
    if name in ("mxv", "vxm") and (isinstance(G, Tuples) or semiring.add.of_tuples):
        return _multiply_tuples(name, G, x, semiring, options, flip)
    backend = options.pop("backend", None)
    write = _options(name, options)
    if semiring.add.identity is None or semiring.mul.position is not None:
        raise NotImplementedError(
            f"{name} of a ShardedGraph takes semirings whose addition has an identity and whose "
            f"operator is not positional; got {semiring}."
        )
    if semiring.add.of_tuples:
        raise NotImplementedError(
            f"{name} over tuples, as {semiring!r}, runs on one device: call `unshard()`."
        )
    if isinstance(x, (Stored, ShardedGraph)):
        got = type(x).__name__
        raise NotImplementedError(f"{name} of a ShardedGraph takes an array; got {got}.")
    if np.ndim(x) > 2:
        if not is_row_sharded(G, x) or (flip and np.ndim(x) > 3):
            places = G.places_here
            raise ValueError(
                f"{name} of a ShardedGraph takes row-sharded arrays as `G.deal` gives them: "
                f"{places} of a vector or, on the right, {(*places, 'k')} of a matrix; got "
                f"{np.shape(x)}."
            )
        return _stays_row_sharded(name, G, placed(G, x), semiring, write, flip, backend)
    transposed = flip and np.ndim(x) == 2
    if np.shape(x)[-1 if transposed else 0 :][:1] != (G.n,):
        raise ValueError(
            f"{name} of a ShardedGraph takes an array over {G.n} vertices; got {np.shape(x)}."
        )
    if keep:
        return _stays_row_sharded(name, G, whole(G, x), semiring, write, flip, backend)
    x = whole(G, jnp.asarray(x).T if transposed else x)
    with using(backend):
        y = op(G, x, semiring, flip=flip, backend=backend)
    y = y.T if transposed else y
    last = y.ndim == 1 or transposed  # the axis of the vertices
    write = dataclasses.replace(write, mask=as_operand_mask(write.mask))

    def present():
        return on_mesh(lambda local: local.everywhere(_valid(local, 0 if flip else 1)), G)

    return written(y, semiring, write, present, last)


def _stays_row_sharded(
    name: str, G: ShardedGraph, x: Any, semiring: Semiring, write: Options, flip: bool, backend: Any
) -> Array:
    """The product by a row-sharded or a replicated array; its rows stay with their vertices."""
    refused(name + " with a row-sharded result", vars(write))
    how: dict[str, Any] = {"flip": flip, "keep": not is_row_sharded(G, x)}

    def run(G, x):
        return op(G, x, semiring, backend=backend, **how)

    operands = [G, x]
    with using(backend):
        if (mesh := explicit_mesh(operands)) is None:
            return run(*operands)
        like = NamedSharding(mesh, G.part.spec)  # an operation makes what lies everywhere
        anywhere: Any = jax.sharding.auto_axes(run, axes=mesh.axis_names, out_sharding=like)
        return anywhere(*operands)


def _options(name: str, given: dict[str, Any]) -> Options:
    """Where and how a vector result is written; other options are refused."""
    known = {k: given[k] for k in ("mask", "accum", "out", "replace") if k in given}
    refused(name, {k: v for k, v in given.items() if k not in known})
    if isinstance(known.get("out"), Stored):
        raise NotImplementedError(
            f"`out` of {name} of a ShardedGraph is an array; got a sparse one."
        )
    return Options(**known)


def sharded_mxv(A, x, semiring=plus_times, **options) -> Array:
    return _multiply("mxv", A, x, semiring, options, flip=False)


def sharded_vxm(x, A, semiring=plus_times, **options) -> Array:
    return _multiply("vxm", A, x, semiring, options, flip=True)


def sharded_mxm(A, B, semiring=plus_times, **options) -> Array:
    left = isinstance(A, ShardedGraph)
    G, X = (A, B) if left else (B, A)
    _check_dense("mxm", X)
    return _multiply("mxm", G, X, semiring, options, flip=not left)


def row_sharded_mxm(G, X, semiring=plus_times, *, backend=None) -> Array:
    """The public function of `jaxspv.sharding`."""
    if not isinstance(G, ShardedGraph):
        raise TypeError(f"`G` must be a ShardedGraph; got {type(G).__name__}.")
    _check_dense("row_sharded_mxm", X)
    how = {"backend": backend}
    return _multiply("row_sharded_mxm", G, X, semiring, how, flip=False, keep=True)


def _check_dense(name: str, X: Any) -> None:
    if not isinstance(X, (jax.Array, np.ndarray)) or X.ndim < 2:
        raise NotImplementedError(
            f"{name} of a ShardedGraph takes an array of two axes, or one that `G.deal` "
            f"gives; got {type(X).__name__}."
        )


# ---- Products over tuples ----


def _product_of_tuples(G: ShardedGraph, values: Any, x: Any, semiring: Any, *, flip: bool) -> Any:
    """y (n, ...) of x (n, ...), both replicated; each device multiplies its block."""

    def body(local: Local, x, semiring, values):
        block = local.block.with_data(values)
        if flip:
            partial = tuples.vxm(local.rows.along(local.piece(x)), block, semiring)
            return local.everywhere(local.cols.fold(partial, semiring.add))
        partial = tuples.mxv(block, local.cols.along(local.piece(x)), semiring)
        return local.everywhere(local.rows.fold(partial, semiring.add))

    return on_mesh(body, G, x, semiring, values=values)


op_of_tuples = mesh_op("product of tuples", "definition", advice=lambda *_, **__: [])
op_of_tuples.register("collectives")(_product_of_tuples)


def _multiply_tuples(
    name: str, A: Any, x: Any, semiring: Semiring, options: dict[str, Any], flip: bool
) -> Any:
    """`A x`, or with `flip` `x A`, of a pytree of arrays (n, ...). Raises NotImplementedError: an
    option that only one device supports; `add` does not commute. ValueError: x is not over the
    vertices."""
    backend = options.pop("backend", None)
    refused(f"{name} over tuples", options)
    add: Any = semiring.add
    with known_while_tracing():
        if add.ordered or (
            add.ordered is None and not commutes(add.op, random_values(add.identity.value))
        ):
            raise NotImplementedError(
                f"{name} of a ShardedGraph joins terms in no order, and `add` of {semiring} does "
                "not commute (on random values): call `unshard()`."
            )
    if is_sparse(x):
        raise NotImplementedError(f"{name} over tuples of a ShardedGraph takes a dense vector.")
    G, values = (A, A.data) if isinstance(A, ShardedGraph) else (A.places, A.values)
    if wrong := [jnp.shape(v) for v in jax.tree.leaves(x) if jnp.shape(v)[:1] != (G.n,)]:
        raise ValueError(f"`x` must have leaves over {G.n} vertices; got {wrong}.")
    x = jax.tree.map(lambda v: whole(G, v), x)
    return op_of_tuples(G, values, x, semiring, flip=flip, backend=backend)


# ---- Reductions ----


def _reduced(G: ShardedGraph, add: Monoid, *, axis: int | None) -> Any:
    def body(local: Local, add):
        terms = add.admit(local.block.data)
        if axis is None:
            valid = local.block.rowcol()[0] < local.part.block_shape[0]
            mine = add.segment_reduce(terms, jnp.where(valid, 0, 1), 1)
            return add.reduce(lax.all_gather(mine, local.part.axes).reshape(-1))
        at, extent, fold = _lines(local, axis)
        values = fold(add.segment_reduce(terms, at, extent, sorted=axis == 1), add)
        return local.everywhere(values), local.everywhere(_valid(local, axis))

    return on_mesh(body, G, add)


reduce_op = mesh_op("reduce", "definition")
reduce_op.register("collectives")(_reduced)


def _lines(local: Local, axis: int) -> tuple[Array, int, Callable[..., Array]]:
    """The row (axis 1) or column of each entry, their extent, how pieces of them are added up."""
    at, extent, _ = lines_of(local.block, axis)
    return at, extent, local.rows.fold if axis == 1 else local.cols.fold


def _valid(local: Local, axis: int) -> Array:
    """A piece: which rows (axis 1) or columns (axis 0) store an entry."""
    at, extent, fold = _lines(local, axis)
    return fold(jnp.zeros(extent, bool).at[at].set(True, mode="drop"), lor)


def sharded_reduce(A, add=plus, *, axis=None, **options) -> Any:
    write = _options("reduce", options)
    axis, add = checked_axis(axis), as_monoid(add)
    if add.identity is None:
        raise NotImplementedError(
            f"reduce of a ShardedGraph takes no monoid without identity: {add}."
        )
    if axis is None:
        refused("reduce to a scalar", options)
        return reduce_op(A, add, axis=None)
    return call(Dense, reduce_op(A, add, axis=axis), write)


# ---- Operators ----


def _applied(G: ShardedGraph, op: Any, scalar: Any, *, bind: str | None, weak: bool) -> Array:
    def body(local: Local, op, scalar):
        keys = local.endpoints()
        valid = keys[0] < G.n
        some, first = jnp.any(valid), jnp.argmax(valid)

        def repeated(v, other):  # as `Entries.repeated`
            return jnp.where(valid, v, jnp.where(some, v[first], jnp.asarray(other, v.dtype)))

        x, keys = repeated(local.block.data, 1), tuple(repeated(k, 0) for k in keys)
        z = applied(op, scalar, x, keys, bind=bind, weak=weak)
        return jnp.where(valid, z, jnp.zeros((), z.dtype))

    return on_mesh(body, G, op, scalar, whole=False)


apply_op = mesh_op("apply", "definition")
apply_op.register("collectives")(_applied)


def sharded_apply(A, op, *, left=None, right=None, thunk=0, **options) -> ShardedGraph:
    refused("apply", options)
    op, scalar, static = bound(op, left, right, thunk, A)
    return dataclasses.replace(A, data=apply_op(A, op, scalar, **static))
