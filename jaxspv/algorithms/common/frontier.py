"""A frontier in parallel: the edges that leave it, in chunks, and the new vertices among them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array

from ..._core.loops import while_loop
from ..._core.platforms import situation
from ...ops.products.common.expand import SelectedRows, select_rows


class Edges(NamedTuple):
    """A chunk of edges; slots beyond the last edge have `valid` false and any other value.

    Attributes:
        slot: (chunk,) place in the matrix.
        tail: (chunk,) vertex the edge belongs to.
        valid: (chunk,) bool.
    """

    slot: Array
    tail: Array
    valid: Array


class Queue(NamedTuple):
    """Vertices in the order in which they were reached; `items[head:tail]` is the frontier.

    Attributes:
        items: (n,) int32, each vertex at most once.
        head, tail: () int32.
    """

    items: Array
    head: Array
    tail: Array

    def window(self, capacity: int) -> Array:
        """(capacity,) the vertices from `head` on; those beyond `tail` are arbitrary."""
        place = self.head + jnp.arange(capacity, dtype=jnp.int32)
        return self.items.at[place].get(mode="clip")


def edges_of(vertices: Array, rows: SelectedRows, first: Array, chunk: int) -> Edges:
    """Edges number `first` to `first + chunk` of the rows, counted through all of them.

    The owner of an edge is the first row that ends behind it: a binary search, unrolled so that
    it is one fused kernel on a GPU. Cost: O(chunk log(rows)). `expand.edge_slots` marks and
    counts instead; on a GPU its scatters and scans are kernels of their own in every step.
    """
    number = first + jnp.arange(chunk, dtype=jnp.int32)
    owner = jnp.searchsorted(rows.ends, number, side="right", method="scan_unrolled")
    owner = jnp.minimum(owner.astype(jnp.int32), rows.ends.shape[0] - 1)
    before = jnp.where(owner > 0, rows.ends[jnp.maximum(owner - 1, 0)], 0)
    slot = rows.start[owner] + number - before
    return Edges(slot, vertices[owner], (number >= 0) & (number < rows.total))


def one_of_each(claims: Array, vertices: Array, valid: Array) -> tuple[Array, Array]:
    """(claims, flags): a flag on one of a vertex's valid slots, whose write to `claims` stays."""
    slot = jnp.arange(vertices.shape[0], dtype=jnp.int32)
    claims = claims.at[jnp.where(valid, vertices, claims.shape[0])].set(slot, mode="drop")
    return claims, valid & (claims.at[vertices].get(mode="clip") == slot)


def distinct_or_dropped(vertices: Array, keep: Array, n: int) -> Array:
    """Indices for a scatter with `unique_indices` and `mode="drop"`: vertices where `keep`."""
    slot = jnp.arange(vertices.shape[0], dtype=jnp.int32)
    return jnp.where(keep, vertices, n + slot)


def append(queue: Queue, vertices: Array, keep: Array) -> Queue:
    """The queue with the vertices that `keep` selects behind its tail (a stream compaction)."""
    place = queue.tail + jnp.cumsum(keep, dtype=jnp.int32)
    index = distinct_or_dropped(place - 1, keep, queue.items.shape[0])
    items = queue.items.at[index].set(vertices, mode="drop", unique_indices=True)
    return queue._replace(items=items, tail=place[-1])


def for_edges(
    indptr: Array,
    nse: int,
    queue: Queue,
    carry: Any,
    visit: Callable[[Any, Edges], Any],
    begin: Callable[[Any, Array, Array], tuple[Any, Array]] | None = None,
    together: tuple[int, int] | None = None,
) -> Any:
    """`carry = visit(carry, chunk)` over chunks of the edges of the vertices of the frontier.

    `begin(carry, vertices, valid)` is called for each block of vertices before their edges; it
    returns the carry, and (bool) of which of them the edges are visited.
    together: the most vertices and edges at a time; None: few on a CPU, where work takes time and
    programs start in microseconds.
    """
    if together is None:
        together = (2**7, 2**9) if situation().platforms == {"cpu"} else (2**14, 2**16)
    vertices, edges = together
    block, chunk = min(queue.items.shape[0], vertices), min(nse, edges)

    def of_block(c):
        first, carry = c
        members = queue._replace(head=first).window(block)
        valid = jnp.arange(block, dtype=jnp.int32) < queue.tail - first
        if begin is not None:
            carry, valid = begin(carry, members, valid)
        rows = select_rows(indptr, members, valid)

        def of_chunk(c):
            return c[0] + chunk, visit(c[1], edges_of(members, rows, c[0], chunk))

        more = lambda c: (c[0] < rows.total) & (c[0] >= 0)  # noqa: E731 - int32 may wrap at the end
        return first + block, while_loop(more, of_chunk, (jnp.int32(0), carry))[1]

    return while_loop(lambda c: c[0] < queue.tail, of_block, (queue.head, carry))[1]
