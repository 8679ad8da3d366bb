"""When the GPUs of a mesh can run one kernel together, and whether that is the default."""

from __future__ import annotations

import jax
import numpy as np
from jax.sharding import Mesh

from pallas_kernels.simt.device import capability_of

from .._core.compat import kernels_refused
from .._core.platforms import BACKENDS, situation
from .graph import ShardedGraph

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
    if (reason := kernels_refused()) is not None:
        return reason
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
