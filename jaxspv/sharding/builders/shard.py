"""`shard`: distributes a graph over the devices of a mesh; the public functions then run on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import jax
import numpy as np
from jax import Array

from ..._core.indices import LIMIT, bucketed, one_value
from ..._core.pytree import is_concrete
from ...formats.base import ours
from ...formats.tuples import Tuples
from ...graph import Graph, as_graph
from ...shapes import Matrix
from ..graph import ShardedGraph
from ..partition import Partition, partition

if TYPE_CHECKING:
    from jax.sharding import Mesh, PartitionSpec


def shard(
    A: Matrix, mesh: Mesh, spec: PartitionSpec | None = None, *, symmetric: bool | None = None
) -> ShardedGraph:
    """Distributes a graph over the devices of a mesh; eager. When it pays: docs/devices.md.

    Vertices go to the devices round robin so that the entries of the devices balance: by descending
    degree, one for each device, every other round backwards.

    Args:
        A: a square matrix, A[i, j] the edge i -> j, or a Graph; in several processes the same in
            each of them.
        mesh: the devices.
        spec: which axes of the mesh split rows and which columns: `P("d")` or `P(("a", "b"))` rows
            alone, `P("r", "c")` blocks of both; None: rows over all axes.
        symmetric: declares that the pattern is symmetric; None: as a Graph knows, else not.

    Returns:
        A `ShardedGraph`. On it run the functions for one device: `mxv`, `vxm`, `mxm` with an array,
        `bfs`, `pagerank`, ...; vectors and results lie whole on every device.

    Raises:
        TypeError: A is no matrix, `mesh` no mesh, `spec` no spec.
        ValueError: A is not square or traced, has ghosts or arrays as entries; `spec` does not fit
            the mesh; a device would hold 2^31 - 1 entries or more.

    Cost: O(entries log entries) on the host; a device holds 8 bytes an entry of its own (float32)
    and O(n / devices) for vertices, with whole rows; C n / devices with C columns of devices.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> A = jsp.from_edges([0, 1, 2], [1, 2, 0], [2.0, 3.0, 4.0], shape=(3, 3))
    >>> jsp.shard(A, mesh).unshard().data.tolist()
    [2.0, 3.0, 4.0]
    """
    A = ours(A)
    if hasattr(A, "shape") and not is_concrete(A):
        raise ValueError("`shard` needs concrete values: call it outside of jit.")
    if isinstance(A, Tuples):
        G = shard(A.places, mesh, spec, symmetric=symmetric)
        numbers = np.asarray(G.data)
        values = jax.tree.map(lambda v: np.asarray(v)[numbers], A.values)
        return G.with_data(jax.tree.map(lambda v: jax.device_put(v, G.part.sharding), values))
    graph = as_graph(A, "`shard`", ())
    if graph.num_vertices is not None:
        raise ValueError("`shard` takes no ghosts: give the graph before `pad`.")
    out = one_value("`shard`", graph.out)
    if out.overflow:
        raise ValueError("`shard` takes no matrix that lacks entries: its `overflow` is set.")
    count = int(out.indptr[-1])
    degrees = np.diff(np.asarray(out.indptr, np.int64))
    row = np.repeat(np.arange(graph.n), degrees)
    col, data = np.asarray(out.indices)[:count], np.asarray(out.data)[:count]
    part = partition(mesh, spec, graph.n)
    known = symmetric if symmetric is not None else isinstance(A, Graph) and A.symmetric
    return _placed(part, row, col, data, out.unique, known)


def _placed(part: Partition, row, col, data, unique: bool, symmetric: bool) -> ShardedGraph:
    R, C = part.grid
    weights = np.zeros(part.n, np.int64)
    for ends, parts in ((row, R), (col, C)):
        if parts > 1:
            weights += np.bincount(ends, minlength=part.n)
    pieces = part.deal(weights)
    positions = part.positions(pieces)
    device, local_row, local_col = part.place_of(positions[row], positions[col])
    rows, cols = part.block_shape
    line = device * rows + local_row
    by = np.lexsort((local_col, line))
    ends = np.concatenate([[0], np.cumsum(np.bincount(line, minlength=R * C * rows))])
    starts = ends[::rows]
    counts = np.diff(starts)
    capacity = bucketed(int(counts.max()))
    if capacity >= LIMIT:
        raise ValueError(
            f"a device holds fewer than 2^31 - 1 entries; here {counts.max()}: take more devices."
        )
    indptr = np.stack([ends[k * rows : (k + 1) * rows + 1] - starts[k] for k in range(R * C)])
    values = np.zeros((R * C, capacity), data.dtype)
    indices = np.full((R * C, capacity), cols, np.int32)
    for k in range(R * C):
        mine = by[starts[k] : starts[k + 1]]
        values[k, : mine.size], indices[k, : mine.size] = data[mine], local_col[mine]
    return ShardedGraph(
        data=_on_devices(part, values),
        indices=_on_devices(part, indices),
        indptr=_on_devices(part, indptr.astype(np.int32)),
        order=_on_devices(part, pieces),
        everyone=_on_devices(part, _repeated(part, pieces)),
        positions=_on_devices(part, _repeated(part, positions.astype(np.int32))),
        part=part,
        unique=unique,
        symmetric=symmetric,
    )


def _on_devices(part: Partition, host: np.ndarray) -> Array:
    """One row of `host` for each device, or what begins with (R, C)."""
    host = host.reshape(*part.grid, -1)
    return jax.make_array_from_callback(host.shape, part.sharding, lambda index: host[index])


def _repeated(part: Partition, host: np.ndarray) -> np.ndarray:
    """The whole of `host`, one row after the other, for each device; a view."""
    return np.broadcast_to(host.reshape(-1), (*part.grid, host.size))
