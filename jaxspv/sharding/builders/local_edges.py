"""Edges that each process has on its host, put on its devices after all processes agreed."""

from __future__ import annotations

import zlib
from typing import NamedTuple

import jax
import numpy as np

from ..._core.indices import LIMIT, bucketed
from ..partition import Partition


class LocalEdges(NamedTuple):
    """The edges of one process.

    Attributes:
        row, col: (edges,) integers.
        data: (edges,) the values.
        exact: sums of integers at one place that their dtype does not hold are refused.
    """

    row: np.ndarray
    col: np.ndarray
    data: np.ndarray
    exact: bool = False


class Agreed(NamedTuple):
    """All processes' vertices, slots for edges on each device, and edges."""

    n: int
    capacity: int
    total: int


def local_devices(part: Partition) -> list[tuple[int, int]]:
    """The places (i, j) of the partition that lie on devices of this process."""
    holders: dict[tuple[int, int], set[int]] = {}
    for device, (i, j) in part.sharding.devices_indices_map(part.grid).items():
        holders.setdefault((i.start or 0, j.start or 0), set()).add(device.process_index)
    if any(len(processes) > 1 for processes in holders.values()):
        raise ValueError(
            f"`spec` must split all axes of `mesh` that differ between processes; {part.spec} "
            f"leaves one out of {dict(part.mesh.shape)}."
        )
    here = jax.process_index()
    mine = sorted(place for place, processes in holders.items() if here in processes)
    if not mine:
        raise ValueError(f"`mesh` has no device of process {here}.")
    return mine


def agree(part: Partition, own: LocalEdges | None, n: int | None) -> Agreed:
    """Sizes of the edges of all processes; `own` is None if those of this process were refused.

    Collective: every process must call it, after an error too, or the others block.

    Raises:
        ValueError: the edges of another process were refused; processes differ in `n` or in the
            dtype of values.
    """
    here = local_devices(part)
    largest = kind = edges = 0
    if own is not None and own.row.size:
        largest = int(max(own.row.max(), own.col.max())) + 1
    if own is not None:
        edges = own.row.size
        kind = zlib.crc32(own.data.dtype.name.encode()) // 4
    capacity = -(-edges // len(here))
    sent = [int(own is None), -1 if n is None else n, largest, kind, capacity]
    local = {place: np.asarray([*sent, 0, 0], np.int32) for place in here}
    local[here[0]][-2:] = divmod(edges, LIMIT)  # once
    whole = jax.jit(lambda x: x, out_shardings=part.replicated)
    found = np.asarray(whole(on_devices(part, local))).reshape(part.grid[0] * part.grid[1], -1)
    refused, sizes, extents, kinds, capacities, high, low = found.astype(np.int64).T
    if refused.any():
        raise ValueError("the edges of another process were refused: its error says why.")
    for name, numbers in (("n", sizes), ("the dtype of values", kinds)):
        if len(set(numbers.tolist())) > 1:
            raise ValueError(f"`{name}` must be the same in all processes; it differs.")
    if n is not None and extents.max() > n:
        raise ValueError(f"a vertex must lie in [0, {n}); got {extents.max() - 1}.")
    total = int((high * LIMIT + low).sum())
    return Agreed(int(extents.max()) if n is None else n, bucketed(int(capacities.max())), total)


def on_devices(part: Partition, local: dict[tuple[int, int], np.ndarray]) -> jax.Array:
    """(R, C, k) sharded by the partition, of the (k,) of each place of this process."""
    size = next(iter(local.values())).shape[0]

    def of(index):
        return local[index[0].start or 0, index[1].start or 0][None, None]

    return jax.make_array_from_callback((*part.grid, size), part.sharding, of)


def put(part: Partition, own: LocalEdges, capacity: int) -> list[jax.Array]:
    """Rows, columns and values on the devices, in equal shares; n: no edge."""
    here = local_devices(part)
    edges = own.row.size
    cuts = [k * edges // len(here) for k in range(len(here) + 1)]

    def shares(values, fill, dtype):
        local = {}
        for k, place in enumerate(here):
            share = np.full(capacity, fill, dtype)
            share[: cuts[k + 1] - cuts[k]] = values[cuts[k] : cuts[k + 1]]
            local[place] = share
        return on_devices(part, local)

    arrays = [shares(side, part.n, np.int32) for side in (own.row, own.col)]
    return [*arrays, shares(own.data, 0, own.data.dtype)]
