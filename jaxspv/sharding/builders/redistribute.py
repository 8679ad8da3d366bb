"""A sharded graph from edges that lie anywhere on a mesh: they are sent, sorted and joined.

Three programs over the devices. The first counts degrees, distributes the vertices round robin and
sorts the edges of each device by the device that they go to. The host reads how many go from each
device to each other, and so knows the capacity they need. The second sends them, in rounds of
bounded size however uneven they are, sorts what arrived and joins equal pairs. The third cuts the
arrays to the entries that remain.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.sharding import PartitionSpec

from ..._core.indices import LIMIT, bucketed
from ..._core.platforms import using
from ..._core.tuples import take
from ...algebra.monoids import Monoid, plus
from ...construct.edges import unique_traced
from ...formats.offsets import compress
from ..graph import ShardedGraph
from ..partition import Partition

SENT = 2**26  # edges that a device sends in one round, at most


def spread(
    part: Partition,
    given: Sequence[Array],
    *,
    dup: Monoid,
    directed: bool = True,
    symmetric: bool = False,
    nse: int | None = None,
    exact: bool = False,
) -> ShardedGraph:
    """The sharded graph of (R, C, k) rows, columns (and values) over the mesh, which are deleted.

    Rows or columns from n on are no edge; exact: refuses sums of integers that do not fit. nse: the
    capacity of each device; None: what the fullest needs.

    Cost: O(k log k) on each device; each edge is sent once. Memory, in addition to the edges: three
    times the edges that a device receives, while they are sorted, and 8 n bytes.
    """
    slots = given[0].shape[-1] * (1 if directed else 2)
    if slots >= LIMIT:
        raise ValueError(
            f"a device gives fewer than 2^31 - 1 edges; here {slots}, both directions counted: "
            "take more devices."
        )
    *edges, bounds, order, counts = _addressed(part, directed, *given)
    sent = np.asarray(counts).astype(np.int64)
    for x in given:
        x.delete()
    most = int(sent.sum(axis=0).max())
    if bucketed(most) >= LIMIT:
        raise ValueError(f"a device holds fewer than 2^31 - 1 edges; one would get {most}.")
    capacity = bucketed(most)
    chunk = min(bucketed(int(sent.max())), max(SENT // sent.shape[0], 1))
    rounds = np.int32(-(-int(sent.max()) // chunk))
    exact = exact and dup is plus and edges[-1].dtype.kind in "iu"
    values, indices, indptr, most, wrapped = _joined(
        part, (capacity, chunk, exact), dup, rounds, counts, bounds, *edges
    )
    del edges
    if wrapped:
        raise ValueError(f"a sum of values at one place is beyond {values.dtype}.")
    fullest = int(np.asarray(most))
    if nse is not None and nse < fullest:
        raise ValueError(f"`nse` must be at least {fullest} to hold the entries; got {nse}.")
    nse = bucketed(fullest) if nse is None else nse
    if nse != capacity:
        values, indices = _cut(part, nse, values, indices)
    everyone, positions = _everyone(part, order)
    return ShardedGraph(values, indices, indptr, order, everyone, positions, part, True, symmetric)


@functools.partial(jax.jit, static_argnums=0)
def _everyone(part: Partition, order):
    """The orders of all devices, and the place of each vertex in them, on each."""

    def body(mine):
        everyone = lax.all_gather(mine, part.axes, tiled=True)
        places = jnp.arange(everyone.shape[0], dtype=jnp.int32)
        return everyone, jnp.zeros(part.n, jnp.int32).at[everyone].set(places, mode="drop")

    return _programs(part, body, 1, (False, False))(order)


def _programs(part: Partition, body: Any, given: int, whole: tuple[bool, ...]) -> Any:
    """`body` on every device: its first `given` operands are sharded, the rest whole on each, as
    are the results that `whole` says."""
    everywhere = PartitionSpec()

    def run(*operands):
        mine = [x[0, 0] for x in operands[:given]]
        with using("cpu"):
            results = body(*mine, *operands[given:])
        return tuple(y if same else y[None, None] for y, same in zip(results, whole, strict=True))

    def specs(operands):
        return tuple(part.spec if k < given else everywhere for k in range(len(operands)))

    def on_devices(*operands):
        return jax.shard_map(
            run,
            mesh=part.mesh,
            in_specs=specs(operands),
            out_specs=tuple(everywhere if same else part.spec for same in whole),
            check_vma=False,
        )(*operands)

    return on_devices


@functools.partial(jax.jit, static_argnums=(0, 1))
def _addressed(part, directed, row, col, *data):
    """On each device its edges as local rows, columns (and values) in the order of their devices,
    where each device's begin, its piece; and everywhere how many go from where to where."""
    R, C = part.grid
    n, P = part.n, R * C

    def body(row, col, *data):
        valid = (row >= 0) & (row < n) & (col >= 0) & (col < n)
        if not directed:
            back = valid & (row != col)
            row, col = jnp.concatenate([row, col]), jnp.concatenate([col, row])
            data = [jnp.concatenate([d, d]) for d in data]
            valid = jnp.concatenate([valid, back])
        degrees = jnp.zeros(n, jnp.int32)
        for side, parts in ((row, R), (col, C)):
            if parts > 1:
                degrees = degrees.at[jnp.where(valid, side, n)].add(1, mode="drop")
        # So that the sum of those of all devices stays below 2^31.
        degrees = lax.psum(jnp.minimum(degrees, LIMIT // (2 * P)), part.axes)
        pieces = part.deal(degrees)
        places = jnp.arange(pieces.size, dtype=jnp.int32)
        positions = jnp.zeros(n, jnp.int32).at[pieces.reshape(-1)].set(places, mode="drop")
        ends = (take(positions, side) for side in (row, col))
        device, local_row, local_col = part.place_of(*ends)
        device = jnp.where(valid, device, P).astype(jnp.int32)
        device, by = lax.sort((device, lax.iota(jnp.int32, device.shape[0])), num_keys=1)
        bounds = compress(device, P)
        order = pieces[lax.axis_index(part.axes)]
        counts = lax.all_gather(jnp.diff(bounds), part.axes)
        return (*(x[by] for x in (local_row, local_col, *data)), bounds, order, counts)

    given = 2 + len(data)
    whole = (*([False] * given), False, False, True)
    return _programs(part, body, given, whole)(row, col, *data)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _joined(part, how, dup, rounds, counts, bounds, *edges):
    """The entries of each device, sorted, in `capacity` slots; the largest number of them; and if
    `exact` whether a sum of integers is wrong."""
    (rows, cols), (capacity, chunk, exact) = part.block_shape, how

    def body(bounds, row, col, *rest):
        *data, dup, rounds, counts = rest
        came = counts[:, lax.axis_index(part.axes)]
        before, goes = jnp.cumsum(came, dtype=jnp.int32) - came, jnp.diff(bounds)
        step = lax.iota(jnp.int32, chunk)

        def turn(t, got):
            first = t * chunk
            send = step < (goes - first)[:, None]
            at = jnp.where(send, (bounds[:-1] + first)[:, None] + step, 0)
            land = step < (came - first)[:, None]
            to = jnp.where(land, (before + first)[:, None] + step, capacity)
            return tuple(
                g.at[to].set(lax.all_to_all(x[at], part.axes, 0, 0), mode="drop")
                for g, x in zip(got, (row, col, *data), strict=True)
            )

        empty = [jnp.full(capacity, rows, jnp.int32), jnp.full(capacity, cols, jnp.int32)]
        empty += [jnp.zeros(capacity, d.dtype) for d in data]
        row, col, *data = lax.fori_loop(0, rounds, turn, tuple(empty))
        row, col, slots, count = unique_traced(row, col, part.block_shape)
        valid = lax.iota(jnp.int32, capacity) < count
        values = (
            dup.segment_reduce(data[0], slots, capacity)
            if data
            else jnp.ones(capacity, jnp.float32)
        )
        values = jnp.where(valid, values, jnp.zeros((), values.dtype))
        wrapped = jnp.int32(0)
        if exact:  # then it differs by 2^bits at least
            near = plus.segment_reduce(data[0].astype(float), slots, capacity)
            far = jnp.abs(near - values.astype(float)) > float(jnp.iinfo(values.dtype).max) / 2
            wrapped = jnp.any(far & valid).astype(jnp.int32)
        fullest, wrapped = (lax.pmax(x, part.axes) for x in (count, wrapped))
        return values, jnp.where(valid, col, cols), compress(row, rows), fullest, wrapped

    run = _programs(part, body, 1 + len(edges), (False, False, False, True, True))
    return run(bounds, *edges, dup, rounds, counts)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _cut(part, nse, data, indices):
    """The same entries in `nse` slots a device."""
    cols = part.block_shape[1]

    def body(data, indices):
        kept = min(nse, data.shape[0])
        more = (0, nse - kept)
        return jnp.pad(data[:kept], more), jnp.pad(indices[:kept], more, constant_values=cols)

    return _programs(part, body, 2, (False, False))(data, indices)
