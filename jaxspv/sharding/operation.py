"""Functions on a sharded graph: their operation, checks, whether the GPUs run one kernel."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

from pallas_kernels.simt.device import capability_of

from .._core.eager.arrays import is_eager, known_while_tracing
from .._core.eager.kept import kept
from .._core.eager.programs import one_program
from .._core.operation import Operation, Tangent
from .._core.platforms import BACKENDS, situation, using
from .._core.pytree import is_concrete
from .graph import ShardedGraph


def spread(G: ShardedGraph, *operands: Any, **static: Any) -> list[str]:
    """How a graph is distributed, for `explain`."""
    R, C = G.part.grid
    way = "rows" if C == 1 else "columns" if R == 1 else "blocks"
    return [f"{way} over {R} by {C} devices, capacity {G.data.shape[-1]:,} entries on each"]


def refused(name: str, given: dict[str, Any]) -> None:
    """Refuses options that a function does not support for a sharded graph."""
    for option, value in given.items():
        if not (value is None or value is False or isinstance(value, str) and value == "auto"):
            raise NotImplementedError(
                f"`{option}` of {name} is not supported for a ShardedGraph; got {value!r}."
            )


def whole(G: ShardedGraph, x: Any) -> Array:
    """A vector over the vertices; in an eager call it is replicated on the devices of the mesh."""
    return _put(G, x, G.part.replicated)


def is_row_sharded(G: ShardedGraph, x: Any) -> bool:
    """Whether x has the shape of a row-sharded vector or matrix, as `G.deal` gives it."""
    return np.shape(x)[:3] == G.places_here and np.ndim(x) in (3, 4)


def placed(G: ShardedGraph, x: Any) -> Array:
    """A row-sharded array; in an eager call each device gets the rows of its vertices."""
    return _put(G, x, G.part.sharding)


def _put(G: ShardedGraph, x: Any, sharding: NamedSharding) -> Array:
    devices = set(G.part.mesh.devices.flat)
    if is_eager(x) and not (isinstance(x, jax.Array) and x.sharding.device_set == devices):
        return jax.device_put(x, sharding)
    return jnp.asarray(x)


def extreme_weights(G: ShardedGraph) -> tuple[float, ...]:
    """The least and the largest of the concrete values and 0; NaN where one is. Cached."""
    key = (G.data, G.indptr)
    with known_while_tracing():  # of a program that closes over G
        return kept(key, "extremes", lambda: tuple(map(float, one_program(_extremes, *key))))


def _extremes(data: Array, indptr: Array) -> list[Array]:
    valid = jnp.arange(data.shape[-1]) < indptr[..., -1:]  # padding may hold anything
    values = jnp.where(valid, data, jnp.zeros((), data.dtype))
    nan = jnp.any(values != values)  # a minimum over devices may leave NaN out
    found = (jnp.min(values, initial=0), jnp.max(values, initial=0))
    floats = jnp.promote_types(data.dtype, jnp.float32)
    return [jnp.where(nan, jnp.nan, v.astype(floats)) for v in found]


class MeshOperation(Operation):
    """The operation of a public function on a mesh: its forms hold a `shard_map`."""

    def __call__(self, *operands: Any, **how: Any) -> Any:
        """As `Operation`; on a mesh with explicit axes the result lies on every device."""
        call: Any = functools.partial(super().__call__, **how)
        operands = _with_devices(*operands)
        if (mesh := explicit_mesh(operands)) is not None:
            everywhere = NamedSharding(mesh, PartitionSpec())
            call = jax.sharding.auto_axes(call, axes=mesh.axis_names, out_sharding=everywhere)
        with using(how.get("backend")):
            return call(*operands)

    def _on_no_mesh(self) -> contextlib.AbstractContextManager[Any]:
        return contextlib.nullcontext()


def _with_devices(G: ShardedGraph, *operands: Any) -> tuple[Any, ...]:
    """The operands. Where a traced program closes over the graph, `jax.jit` finds the devices by a
    constraint on it: the `shard_map` lies inside of an operation."""
    manual = jax.sharding.get_abstract_mesh().manual_axes
    if is_concrete(G.indices) and not (is_eager() or manual or explicit_mesh(G.indices)):
        indices = jax.lax.with_sharding_constraint(G.indices, G.part.sharding)
        G = dataclasses.replace(G, indices=indices)
    return G, *operands


def mesh_op(
    name: str, tangent: Tangent | None = None, advice: Callable[..., list[str]] = spread
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


MOST_DEVICES = 32
MOST_PLACES, MOST_ENTRIES = 2**28, 2**31 - 2**22  # of all devices, of each; words are int32
# Compute capabilities, from and below, of GPUs that hosts link to each other (H100 to B300), where
# kernels are the default; they were measured on H200. Workstations' GPUs (8.6, 8.9, 12.0) may be
# unable to access each other's memory, and no interface says whether they can.
LINKED = (9, 0), (12, 0)


def one_kernel_refused(G: ShardedGraph) -> str | None:
    """Why the devices of a sharded graph cannot run one kernel together, or do not unless asked by
    `backend="pallas"`; None: they can."""
    part = G.part
    devices = part.mesh.devices if isinstance(part.mesh, Mesh) else np.array([])
    if part.grid[1] > 1:
        return "it needs whole rows: shard over rows alone"
    if part.row_axes != part.mesh.axis_names:
        return "rows must be split over all axes of the mesh, in their order"
    if jax.process_count() > 1:
        return "its devices must be GPUs of one process"
    if not all(d.platform in ("gpu", "cuda") for d in devices.flat):
        return "its devices are no NVIDIA GPUs"
    if [d.id for d in devices.flat] != list(range(devices.size)):
        return "the mesh must take the devices in the order of their numbers, from the first on"
    if devices.size > MOST_DEVICES:
        return f"at most {MOST_DEVICES} devices share a kernel"
    if part.places * devices.size >= MOST_PLACES:
        return f"its kernels number fewer than {MOST_PLACES} vertices"
    if part.places + G.data.shape[-1] >= MOST_ENTRIES:
        return f"its kernels take fewer than {MOST_ENTRIES} rows and entries on a device"
    return unasked(part.mesh)


def unasked(mesh: Mesh) -> str | None:
    """Why kernels are not the default on this mesh of GPUs; None: they are."""
    versions = [capability_of(d) or (0, 0) for d in mesh.devices.flat]
    if all(LINKED[0] <= v < LINKED[1] for v in versions) or situation().allowed != BACKENDS:
        return None
    return "backend='pallas' has to ask for it: such GPUs may not access each other's memory"
