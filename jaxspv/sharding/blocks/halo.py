"""What devices know of the rows of their neighbours, where a graph of small degree is in blocks.

The halo of a device is who reaches one of its own vertices in at most `depth` steps. With the rows
of its halo a device searches `depth` levels before it has to ask the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.bfs.mesh.low_degree import DEVICE_BITS, IDS
from pallas_kernels.layouts.adjacency import degree_sizes, low_degree_arrays

from ..._core.pytree import pytree_dataclass, static

if TYPE_CHECKING:
    from collections.abc import Callable

    from jaxtyping import Int

    from ..partition import Partition

DEPTH = 16  # at most
SHARE = 16  # the halo has at most one of so many places


@pytree_dataclass
class Halo:
    """Rows of the vertices of a device and of its halo, by ids; the axes (R, C) first.

    Attributes:
        adjacency: (R, C, rows, 4 quads) int32 neighbours, as `prepare_bfs` makes them.
        places_of: (R, C, ids) int32, the place of each id among those of all devices; -1: none.
        outbox: (R, C, most told, w) int32, where it is in halos of others: device << 26 | id there.
        told: (R, C, 1) int32, how many ids of its own, the first, are in halos of others.
        depth: steps, static.
    """

    adjacency: Int[Array, "R C rows slots"]
    places_of: Int[Array, "R C ids"]
    outbox: Int[Array, "R C most w"]
    told: Int[Array, "R C 1"]
    depth: int = static()


class Rows(NamedTuple):
    """Entries (v, indices[indptr[v] : indptr[v + 1]]) of a matrix, on the host."""

    indptr: np.ndarray
    indices: np.ndarray

    def of(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(how many entries each of some rows has, their columns one after the other)."""
        starts = self.indptr[vertices]
        counts = self.indptr[vertices + 1] - starts
        ends = np.cumsum(counts)
        at = np.arange(ends[-1] if ends.size else 0) + np.repeat(starts - (ends - counts), counts)
        return counts, self.indices[at]

    def transposed(self, row: np.ndarray) -> Rows:
        """Those of the transposed matrix; row: of each entry."""
        counts = np.bincount(self.indices, minlength=self.indptr.size - 1)
        return Rows(np.append(0, np.cumsum(counts)), row[np.argsort(self.indices, kind="stable")])


def halo_of(
    part: Partition,
    out: Rows,
    into: Rows,
    positions: np.ndarray,
    line: np.ndarray,
    on_devices: Callable[[np.ndarray], Array],
    *,
    depth: int = DEPTH,
    share: int = SHARE,
) -> Halo | None:
    """The halos of all devices, as deep as their sizes allow; None where not even one step fits.

    Args:
        out, into: the rows of the matrix and of its transpose.
        positions: (n,) the place of each vertex.
        line: (n,) the vertices in an order in which neighbours are near; ids follow it.
        on_devices: puts one array for each device there.
    """
    devices, places = part.grid[0], part.places
    if places * 2 >= IDS or devices > 1 << DEVICE_BITS:
        return None
    device = positions // places
    hops = [_hops(into, device == d, depth) for d in range(devices)]
    most = np.max([np.cumsum([hop.size for hop in of]) for of in hops], axis=0)
    depth = int(np.sum(most * share <= places))
    if depth == 0:
        return None
    rank = np.empty(part.n, np.int64)
    rank[line] = np.arange(part.n)

    def along(vertices):
        return vertices[np.argsort(rank[vertices])]

    halos = [along(np.concatenate(of[:depth])) for of in hops]
    owner, to, valid = _messages(halos, device, places)
    ids = places + max(int(most[depth - 1]), 1)
    vertex_of = np.full((devices, ids), -1, np.int64)
    told, table = [], []
    for d in range(devices):
        mine = device[owner] == d
        asked = along(np.unique(owner[mine]))
        own = along(np.flatnonzero(device == d))
        rest = own[~np.isin(own, asked)]
        vertex_of[d, : own.size] = np.concatenate([asked, rest])
        vertex_of[d, places : places + halos[d].size] = halos[d]
        told.append(asked.size)
        table.append((asked, owner[mine], to[mine], valid[mine]))
    rows = _local_rows(out, vertex_of)
    sizes = np.max([np.asarray(degree_sizes(jnp.asarray(r.indptr))) for r in rows], axis=0)
    capacity = max(r.indices.size for r in rows)
    adjacency = []
    for r in rows:
        indices = np.full(capacity, ids, np.int32)
        indices[: r.indices.size] = r.indices
        made = low_degree_arrays(jnp.asarray(r.indptr), jnp.asarray(indices), sizes)
        adjacency.append(np.asarray(made["adjacency"]))
    places_of = np.where(vertex_of >= 0, positions[vertex_of], -1)
    return Halo(
        adjacency=on_devices(np.stack(adjacency)),
        places_of=on_devices(places_of.astype(np.int32)),
        outbox=on_devices(_outbox(table, max(*told, 1))),
        told=on_devices(np.asarray(told, np.int32)[:, None]),
        depth=depth,
    )


def _hops(into: Rows, own: np.ndarray, depth: int) -> list[np.ndarray]:
    """Who reaches one of the own vertices in 1, 2, ... steps and no fewer."""
    seen, hops = own.copy(), []
    last = np.flatnonzero(own)
    for _ in range(depth):
        near = into.of(last)[1]
        last = np.unique(near[~seen[near]])
        seen[last] = True
        hops.append(last)
    return hops


def _messages(halos, device, places):
    """(vertex, whose halo it is in, its id there) of everyone in a halo."""
    owner = np.concatenate(halos)
    to = np.repeat(np.arange(len(halos)), [halo.size for halo in halos])
    valid = np.concatenate([places + np.arange(halo.size) for halo in halos])
    return owner, to, valid


def _outbox(table, most: int) -> np.ndarray:
    """(devices, most, w) words of `Halo.mail`."""
    owners = np.concatenate([owner for _, owner, *_ in table])
    width = int(np.unique(owners, return_counts=True)[1].max(initial=1))
    outbox = np.full((len(table), most, width), -1, np.int64)
    for d, (asked, owner, to, valid) in enumerate(table):
        if not asked.size:
            continue
        by = np.argsort(asked)
        row = by[np.searchsorted(asked[by], owner)]
        order = np.argsort(row, kind="stable")
        row, word = row[order], (to[order] << (31 - DEVICE_BITS)) | valid[order]
        begins = np.searchsorted(row, row)
        outbox[d, row, np.arange(row.size) - begins] = word
    return outbox.astype(np.int32)


def _local_rows(out: Rows, vertex_of: np.ndarray) -> list[Rows]:
    """The rows of the ids of each device, by ids; entries that lead elsewhere are left out."""
    found = []
    id_of = np.full(out.indptr.size - 1, -1, np.int64)
    for vertices in vertex_of:
        valid = np.flatnonzero(vertices >= 0)
        id_of[:] = -1
        id_of[vertices[valid]] = valid
        counts, columns = out.of(vertices[valid])
        near = id_of[columns]
        row = np.repeat(valid, counts)[near >= 0]
        ends = np.cumsum(np.bincount(row, minlength=vertices.size))
        found.append(Rows(np.append(0, ends).astype(np.int32), near[near >= 0].astype(np.int32)))
    return found
