"""`shard_edges`: a sharded graph from the edges that each process has."""

from __future__ import annotations

import contextlib
import functools
from typing import TYPE_CHECKING, Any

import numpy as np

from ..._core.indices import LIMIT, check_range
from ...algebra.monoids import Monoid, as_monoid, plus
from ...construct.edges import checked_indices, narrow, taken
from ...shapes import Indices, Values
from ..graph import ShardedGraph
from ..partition import partition
from .local_edges import LocalEdges, agree, put
from .redistribute import spread

if TYPE_CHECKING:
    from collections.abc import Callable

    from jax.sharding import Mesh, PartitionSpec

    from .local_edges import Agreed


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
