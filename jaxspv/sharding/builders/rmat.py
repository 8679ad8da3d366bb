"""`shard_rmat`: an R-MAT graph of which each device draws its own share."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import AxisType, Mesh, NamedSharding

from ...algebra.monoids import plus
from ...generators.graphs import check_key, check_rmat, rmat_edges
from ...shapes import Key
from ..graph import ShardedGraph
from ..partition import Partition, partition
from .redistribute import spread

if TYPE_CHECKING:
    from jax.sharding import PartitionSpec


def shard_rmat(
    key: Key,
    scale: int,
    edge_factor: int = 16,
    *,
    mesh: Mesh,
    spec: PartitionSpec | None = None,
    a: float = 0.57,
    b: float = 0.19,
    c: float = 0.19,
    symmetric: bool = True,
    permute: bool = True,
    nse: int | None = None,
) -> ShardedGraph:
    """The graph of `rmat` with the same arguments, of which each device draws and keeps a share.

    The edges depend on the key alone, not on the number of devices: `shard_rmat(key, ...)` is
    `shard(rmat(key, ...), mesh)` without a device that ever holds all. The number of entries has no
    limit but 2^31 - 1 on each device.

    Args:
        key: `jax.random.key`, of Threefry (JAX's default); in several processes the same.
        scale, edge_factor, a, b, c, symmetric, permute: as in `rmat`.
        mesh, spec: as in `shard`.
        nse: capacity of each device; None: what the fullest one needs, rounded up.

    Raises:
        ValueError: as `rmat`; the key is none of Threefry; a device would draw or hold 2^31 - 1
            edges or more, both directions counted.

    Cost: scale edge_factor 2^scale / devices random numbers a device, then that of `shard_edges`.

    Source: as `rmat`; counters as keys: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as
    easy as 1, 2, 3", SC 2011.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.sharding.shard_rmat(jax.random.key(0), 6, 4, mesh=mesh)
    >>> int(G.unshard().count) == int(jsp.generators.rmat(jax.random.key(0), 6, 4).count)
    True
    """
    scale, edge_factor, a, b, c = check_rmat(scale, edge_factor, a, b, c)
    name = str(jax.random.key_impl(check_key(key)))
    if name != "threefry2x32":
        raise ValueError(
            f"`key` must be of Threefry, whose numbers depend on their position; it is of {name}."
        )
    part = partition(mesh, spec, 1 << scale)
    R, C = part.grid
    edges = edge_factor << scale
    share = max(-(-edges // (R * C)), 1)
    if share * (2 if symmetric else 1) >= 2**31 - 1:
        raise ValueError(f"{edges} edges are too many for {R * C} devices: take more devices.")
    # How many edges of its share each device uses: `edges` in all, so the last ones use fewer.
    ends = np.clip(edges - share * np.arange(R * C, dtype=np.int64), 0, share).astype(np.int32)
    auto, numbers = _auto(part), np.asarray(jax.random.key_data(key))
    with jax.set_mesh(auto.mesh):  # pyright: ignore[reportArgumentType] - no abstract mesh
        sides = _edges(part.grid, auto, scale, share, (a, b, c), permute, numbers, ends)
    shares = ([shard.data for shard in side.addressable_shards] for side in sides)
    join = jax.make_array_from_single_device_arrays
    drawn = [join((R, C, share), part.sharding, each) for each in shares]
    how = {"dup": plus, "directed": not symmetric, "symmetric": symmetric, "nse": nse}
    return spread(part, drawn, **how)


def _auto(part: Partition) -> NamedSharding:
    """The sharding of a partition with axes of type Auto: XLA draws each share on its device.

    No device needs numbers of another, since Threefry's depend on the key and the position alone.
    """
    kinds = (AxisType.Auto,) * part.mesh.devices.ndim
    mesh = Mesh(part.mesh.devices, part.mesh.axis_names, axis_types=kinds)
    return NamedSharding(mesh, part.spec)


@functools.partial(jax.jit, static_argnums=range(6))
def _edges(grid, sharding, scale, share, odds, permute, key, ends):
    """Rows and columns (R, C, share) over the devices; n for self loops and from `ends` on."""
    key = jax.random.wrap_key_data(key, impl="threefry2x32")
    row, col = rmat_edges(key, scale, (*grid, share), odds, permute, sharding)
    valid = (row != col) & (jnp.arange(share, dtype=jnp.int32) < ends.reshape(*grid, 1))
    sides = (jnp.where(valid, side, 1 << scale) for side in (row, col))
    return tuple(jax.lax.with_sharding_constraint(side, sharding) for side in sides)
