"""`mxv` and `vxm` over semirings of tuples on a sharded graph."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp

from ..._core.eager.arrays import known_while_tracing
from ..._core.tuples import commutes, random_values
from ...sharding.exchange import Local, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.operation import mesh_op, refused, whole
from .operations import is_sparse
from .products import mxv, vxm


def _product(G: ShardedGraph, values: Any, x: Any, semiring: Any, *, flip: bool) -> Any:
    """y (n, ...) of x (n, ...), both replicated; each device multiplies its block."""
    body = functools.partial(_multiplied, flip=flip)
    return on_mesh(body, G, x, semiring, values=values)


def _multiplied(local: Local, x: Any, semiring: Any, values: Any, *, flip: bool) -> Any:
    block = local.block.with_data(values)
    if flip:
        partial = vxm(local.along_rows(local.piece(x)), block, semiring)
        return local.everywhere(local.fold_cols(partial, semiring.add))
    partial = mxv(block, local.along_cols(local.piece(x)), semiring)
    return local.everywhere(local.fold_rows(partial, semiring.add))


op = mesh_op("product of tuples", "definition", advice=lambda *_, **__: [])
op.register("collectives")(_product)


def multiply(name: str, A: Any, x: Any, semiring: Any, options: dict[str, Any], *, flip: bool):
    """`A x`, or with `flip` `x A`, of a pytree of arrays (n, ...). Raises NotImplementedError: an
    option that only one device supports; `add` does not commute. ValueError: x is not over the
    vertices."""
    backend = options.pop("backend", None)
    refused(f"{name} over tuples", options)
    add = semiring.add
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
    return op(G, values, x, semiring, flip=flip, backend=backend)


def sharded_mxv(A: Any, x: Any, semiring: Any, **options: Any) -> Any:
    return multiply("mxv", A, x, semiring, options, flip=False)


def sharded_vxm(x: Any, A: Any, semiring: Any, **options: Any) -> Any:
    return multiply("vxm", A, x, semiring, options, flip=True)
