"""Helpers of every function on a sharded graph: its operation, checks of operands and options."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from .._core.compilation import is_eager, one_program
from .._core.derivatives.tangents import jvp_of_perturbed
from .._core.eager.kept import kept
from .._core.operation import Operation
from .graph import ShardedGraph


def differentiated(run: Callable[..., Any]) -> Callable[..., Any]:
    """The tangent of an operation whose XLA form JAX differentiates: no loop to run backwards."""

    def tangent(primals, tangents, result, **static):
        del result
        return jvp_of_perturbed(lambda *p: run(*p, **static), primals, tangents)[1]

    return tangent


def spread(G: ShardedGraph, *operands: Any, **static: Any) -> list[str]:
    """How a graph is distributed, for `explain`."""
    R, C = G.part.grid
    way = "rows" if C == 1 else "columns" if R == 1 else "blocks"
    return [f"{way} over {R} by {C} devices, capacity {G.data.shape[-1]:,} entries on each"]


def refused(name: str, given: dict[str, Any]) -> None:
    """Refuses options that a function does not support for a sharded graph.

    Raises:
        NotImplementedError: one of the options is given.
    """
    for option, value in given.items():
        if value is not None and value is not False and value != "auto":
            raise NotImplementedError(
                f"`{option}` of {name} is not supported for a ShardedGraph; got {value!r}."
            )


def whole(G: ShardedGraph, x: Any) -> Array:
    """A vector over the vertices; in an eager call it is replicated on the devices of the mesh."""
    if is_eager(x) and not (isinstance(x, jax.Array) and x.sharding.device_set == _devices(G)):
        return jax.device_put(x, G.part.replicated)
    return jnp.asarray(x)


def is_row_sharded(G: ShardedGraph, x: Any) -> bool:
    """Whether x has the shape of a row-sharded vector or matrix, as `G.deal` gives it."""
    return np.shape(x)[:3] == (*G.part.grid, G.part.places) and np.ndim(x) in (3, 4)


def placed(G: ShardedGraph, x: Any) -> Array:
    """A row-sharded array; in an eager call each device gets the rows of its vertices."""
    if is_eager(x) and not (isinstance(x, jax.Array) and x.sharding.device_set == _devices(G)):
        return jax.device_put(x, G.part.sharding)
    return jnp.asarray(x)


def _devices(G: ShardedGraph) -> set[Any]:
    return set(G.part.mesh.devices.flat)


def least_weight(G: ShardedGraph) -> float:
    """The least of the concrete values of a graph, or 0; NaN where one is. Cached."""
    key = (G.data, G.indptr)
    return kept(key, "least", lambda: float(one_program(_extreme, *key, largest=False)))


def largest_weight(G: ShardedGraph) -> float:
    """The largest of the concrete values of a graph, or 0; NaN where one is. Cached."""
    key = (G.data, G.indptr)
    return kept(key, "largest", lambda: float(one_program(_extreme, *key, largest=True)))


def _extreme(data: Array, indptr: Array, *, largest: bool) -> Array:
    valid = jnp.arange(data.shape[-1]) < indptr[..., -1:]  # padding may hold anything
    values = jnp.where(valid, data, jnp.zeros((), data.dtype))
    found = (jnp.max if largest else jnp.min)(values, initial=0)
    floats = found.astype(jnp.promote_types(data.dtype, jnp.float32))
    # a minimum over devices may leave NaN out
    return jnp.where(jnp.any(values != values), jnp.nan, floats)


class MeshOperation(Operation):
    """The operation of a public function on a mesh: its forms hold a `shard_map`."""

    def __call__(self, *operands: Any, **how: Any) -> Any:
        """As `Operation`; on a mesh with explicit axes the result lies on every device."""
        call = functools.partial(super().__call__, **how)
        if (mesh := explicit_mesh(operands)) is None:
            return call(*operands)
        everywhere = NamedSharding(mesh, PartitionSpec())
        run = jax.sharding.auto_axes(call, axes=mesh.axis_names, out_sharding=everywhere)
        return run(*operands)


def mesh_op(
    name: str, tangent: Callable[..., Any] | None = None, advice: Callable[..., list[str]] = spread
) -> MeshOperation:
    """The operation of a public function on a mesh; a form in one launch would register here."""
    return MeshOperation(f"{name} on a mesh", tangent, advice=advice)


def explicit_mesh(operands: Any) -> Any:
    """The mesh with explicit axes that an array among the operands lies on, or None."""
    for leaf in jax.tree.leaves(operands):
        if isinstance(leaf, jax.Array):
            mesh = getattr(jax.typeof(leaf).sharding, "mesh", None)
            if mesh is not None and not mesh.empty and AxisType.Explicit in mesh.axis_types:
                return mesh
    return None
