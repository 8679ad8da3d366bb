"""`shard_edges`: a sharded graph from the edges that each process has."""

from __future__ import annotations

import contextlib
import functools
import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from ..._core.indices import LIMIT, bucketed, check_range
from ...algebra.monoids import Monoid, as_monoid, plus
from ...construct.edges import checked_indices, narrow, taken
from ...shapes import Indices, Values
from ..graph import ShardedGraph
from ..partition import Partition, partition
from .redistribute import spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax.sharding import Mesh, PartitionSpec


def shard_edges(
    senders: Indices,
    receivers: Indices,
    values: Values | None = None,
    *,
    mesh: Mesh,
    spec: PartitionSpec | None = None,
    n: int | None = None,
    directed: bool = True,
    symmetric: bool | None = None,
    dup: Monoid = plus,
    nse: int | None = None,
) -> ShardedGraph:
    """A sharded graph from the edges of all processes, none of which sees those of others; eager.

    Each process gives edges of its own, as many as it has, in any order: entry (senders[e],
    receivers[e]) holds values[e]. They go to its devices in equal shares, and from there by
    all-to-all to the devices that they belong to. In one process: all edges.

    Args:
        senders, receivers: int (edges,), on the host.
        values: (edges,) in the same dtype in all processes; None: float32 ones.
        mesh, spec: as in `shard`.
        n: number of vertices; None: one more than the largest there is.
        directed: False: every edge in both directions, loops once.
        symmetric: declares that the pattern is symmetric; None: it is where `directed` is False.
        dup: the monoid that combines the values of equal pairs, wherever they came from.
        nse: capacity of each device; None: what the fullest one needs, rounded up.

    Returns:
        A `ShardedGraph`; vertices are distributed as by `shard`, repeated pairs count in degrees.

    Raises:
        TypeError: indices are no integers; `mesh` no mesh, `spec` no spec.
        ValueError: shapes differ, an index is out of range, `nse` is too small, processes differ in
            `n` or the dtype of values; a device would get 2^31 - 1 edges or more. In all processes
            where it is so in one.

    Cost: O(k log k) for k edges a device, each of which is sent once, in rounds of bounded size;
    three times the memory of what a device gets, and 8 n bytes.

    >>> import jax, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> G = jsp.sharding.shard_edges([0, 1, 1], [1, 2, 2], [1.0, 2.0, 3.0], mesh=mesh)
    >>> G.unshard().todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 5.0], [0.0, 0.0, 0.0]]
    """
    own = functools.partial(_checked, senders, receivers, values, n)
    return sharded(own, (mesh, spec), n, directed, symmetric, dup, nse)


def sharded(
    own: Callable[[], LocalEdges],
    where: tuple[Mesh, PartitionSpec | None],
    n: int | None,
    directed: bool,
    symmetric: bool | None,
    dup: Monoid,
    nse: int | None,
    check: Callable[[Agreed], None] = lambda agreed: None,
) -> ShardedGraph:
    """The graph of the edges that `own()` returns in each process.

    An error in one process is raised in all, so that none blocks for ever.

    Args:
        own: returns the edges of this process, or raises.
        where: the mesh and how the graph lies on it.
        check: raises if the edges of all processes together are not as they should be.
    """
    if n is not None and (not isinstance(n, (int, np.integer)) or not 0 <= n < LIMIT):
        raise ValueError(f"`n` must be an integer in [0, 2^31 - 1); got {n!r}.")
    dup = as_monoid(dup, "dup")
    part = partition(*where, n or 0)
    try:
        mine = own()
    except Exception:
        with contextlib.suppress(ValueError):
            agree(part, None, n)  # the other processes block until this one calls it
        raise
    found = agree(part, mine, n)
    check(found)
    part = partition(*where, found.n)
    return spread(
        part,
        put(part, mine, found.capacity),
        dup=dup,
        directed=directed,
        symmetric=not directed if symmetric is None else symmetric,
        nse=nse,
        exact=mine.exact,
    )


def _checked(senders: Any, receivers: Any, values: Any, n: int | None) -> LocalEdges:
    row, col = (_vertices(*pair, n) for pair in (("senders", senders), ("receivers", receivers)))
    if row.shape != col.shape:
        raise ValueError(
            f"`senders` and `receivers` must be of one length; got {row.size} and {col.size}."
        )
    if values is None:
        return LocalEdges(row, col, np.ones(row.size, np.float32))
    data = narrow(np.asarray(taken(values)))
    if data.shape != row.shape:
        raise ValueError(f"`values` must have shape {row.shape}; got {data.shape}.")
    return LocalEdges(row, col, data)


def _vertices(name: str, given: Any, n: int | None) -> np.ndarray:
    index = np.asarray(checked_indices(name, given))
    if index.ndim != 1:
        raise ValueError(f"`{name}` must be 1-D; got shape {index.shape}.")
    check_range(name, index, LIMIT - 1 if n is None else n)
    return index


# ---- Edges that each process has on its host ----


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
