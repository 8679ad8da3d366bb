"""A frontier in parallel: the edges that leave it, in chunks, and the new vertices among them."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from ...ops.frame.expand import SelectedRows, select_rows


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


def rows_of(indptr: Array, queue: Queue, capacity: int) -> tuple[Array, SelectedRows]:
    """The frontier (of at most `capacity` vertices) and its rows."""
    vertices = queue.window(capacity)
    return vertices, select_rows(indptr, vertices, queue.tail - queue.head)


def edges_of(vertices: Array, rows: SelectedRows, first: Array, chunk: int) -> Edges:
    """Edges number `first` to `first + chunk` of the rows, counted through all of them.

    The owner of an edge is the first row that ends behind it: a binary search, unrolled so that
    it is one fused kernel on a GPU. Cost: O(chunk log(rows)).
    """
    number = first + jnp.arange(chunk, dtype=jnp.int32)
    owner = jnp.searchsorted(rows.ends, number, side="right", method="scan_unrolled")
    owner = jnp.minimum(owner.astype(jnp.int32), rows.ends.shape[0] - 1)
    before = jnp.where(owner > 0, rows.ends[jnp.maximum(owner - 1, 0)], 0)
    slot = rows.start[owner] + number - before
    return Edges(slot, vertices[owner], (number >= 0) & (number < rows.total))


def one_of_each(claims: Array, vertices: Array, valid: Array) -> tuple[Array, Array]:
    """A flag on exactly one of the valid slots that name the same vertex; (claims, flags).

    Every slot writes its number into `claims[vertex]`, some write stays, and its slot finds its own
    number there. What `claims` (n,) holds before does not matter.
    """
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
