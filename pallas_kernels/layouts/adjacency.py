"""The layouts of the BFS kernels, computed once per graph by sorts, prefix sums and scatters.

On its device by programs; by NumPy where its arrays are NumPy's (`ragged.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .ragged import (
    I32,
    argsort,
    by_falling,
    inverse,
    loop,
    module_of,
    of_numbers,
    owners,
    owners_from,
    piece_of,
    placed,
    program,
    sort_pairs,
    starts_of,
    take,
    within,
    write,
)

LOW_MEAN, LOW_MAX = 8, 64  # largest mean and maximum degree of a graph of low degree
COMPONENTS = 64  # `breadth_first_order` orders so many components; other vertices keep their order
REACH = 1 << 16  # neighbours that it reads in a step


class Adjacency(NamedTuple):
    """Edges v -> indices[indptr[v] : indptr[v + 1]] of a graph, and those of the reversed one."""

    indptr: jax.Array
    indices: jax.Array
    in_indptr: jax.Array | None = None
    in_indices: jax.Array | None = None

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.indptr.shape[0] - 1

    def in_both_directions(self, symmetric: bool) -> Adjacency:
        """This graph; if it is symmetric without reversed edges, its edges serve as those."""
        if symmetric and self.in_indices is None:
            return Adjacency(*self[:2], *self[:2])
        return self


def prepare_bfs(
    indptr,
    indices,
    in_indptr=None,
    in_indices=None,
    *,
    rounded: Callable[[int], int] = int,
    sizes: np.ndarray | None = None,
) -> dict[str, jax.Array]:
    """Arrays for `bfs(..., prepared=)`; eager, where the graph is.

    Small degrees (mean <= 8, largest <= 64): adjacency (see `_slots`). Otherwise (in_indptr,
    in_indices: the reversed graph, default the graph itself): in_indices with every row by
    descending degree (the likely parents first), first int32[n, 4] (the first four of each row,
    padded with n) and isolated (bits of the vertices without incoming edge).

    indices behind indptr[-1] are padding. rounded: of sizes that depend on more than the shapes.
    sizes: `degree_sizes(indptr)` where it is known.
    """
    indptr, indices = of_numbers(indptr), of_numbers(indices)
    sizes = np.asarray(degree_sizes(indptr)) if sizes is None else sizes
    if is_low_degree(indptr.shape[0] - 1, *sizes[:2]):
        return low_degree_arrays(indptr, indices, sizes, rounded=rounded)
    widest = int(sizes[0])
    if in_indptr is None:
        in_indptr, in_indices = indptr, indices
    else:
        in_indptr, in_indices = of_numbers(in_indptr), of_numbers(in_indices)
        widest = int(np.asarray(degree_sizes(in_indptr))[0])
    return likely_parents(in_indptr, in_indices, indptr, widest=rounded(widest))


@program
def degree_sizes(indptr: Any) -> Any:
    """int32[10]: largest degree, entries, and for q = 1..4 (vertices of more than 4 q neighbours,
    continuing quads that they need)."""
    xp = module_of(indptr)
    degree = xp.diff(indptr)
    q = xp.arange(1, 5, dtype=I32)[:, None]
    each = xp.stack([(degree > 4 * q).astype(I32), _more(degree, q)], axis=1)  # one reduction
    sums = xp.sum(each, axis=2, dtype=I32).reshape(-1)
    return xp.concatenate([xp.max(degree, initial=0)[None], indptr[-1:], sums])


def is_low_degree(n: int, largest: int, entries: int) -> bool:
    """Whether the degrees of n > 0 vertices are small, the largest one and their sum, and int32
    counts the words of an adjacency."""
    small = n > 0 and int(largest) <= LOW_MAX and int(entries) <= LOW_MEAN * n
    return small and 16 * n + 2 * int(entries) < 1 << 31


def low_degree_arrays(
    indptr, indices, sizes, weights=None, *, renumber=False, rounded: Callable[[int], int] = int
) -> dict[str, jax.Array]:
    """The adjacency of fixed width; with weights also slots and lengths."""
    n = indptr.shape[0] - 1
    long = [int(sizes[2 * q]) for q in (1, 2, 3)]
    q = next((q for q, count in zip((1, 2, 3), long, strict=True) if count <= 0.01 * n), 4)
    more = int(sizes[2 * q + 1])
    rows = n + (rounded(-(-more // q)) if more else 0)
    order = breadth_first_order(indptr, indices, LOW_MAX) if renumber else None
    return dict(_low_degree(indptr, indices, weights, order, q=q, rows=rows))


@program(static=("q", "rows"))
def _low_degree(indptr, indices, weights, order, *, q, rows) -> dict[str, Any]:
    xp, n, out = module_of(indptr), indptr.shape[0] - 1, {}
    degree, row = xp.diff(indptr), owners(indptr[1:], indices.shape[0])
    nth = xp.arange(indices.shape[0], dtype=I32) - take(indptr, row)
    values = indices
    if order is not None:
        rank = inverse(order)
        degree, row = degree[order], xp.where(row < n, take(rank, row), n)
        values = take(rank, indices)
        out = {"order": order, "rank": rank}
    where, links = _slots(degree, row, nth, q, rows)
    adjacency = write(placed(4 * q * rows, n, where, values), *links)
    out["adjacency"] = adjacency.reshape(rows, 4 * q)
    if weights is not None:
        entry = xp.arange(indices.shape[0], dtype=I32)
        out["slots"] = placed(4 * q * rows, 0, where, entry).reshape(rows, 4 * q)
        if weights.shape[0]:
            out["lengths"] = take(weights, out["slots"])
        else:
            out["lengths"] = xp.zeros((rows, 4 * q), weights.dtype)
    return out


def _more(degree, q):
    """Continuing quads of each row."""
    xp = module_of(degree)
    rest = xp.maximum(degree - (4 * q - 1), 0)
    return xp.where(degree > 4 * q, 1 + -(-xp.maximum(rest - 4, 0) // 3), 0)


def _slots(degree, row, nth, q, rows):
    """Where the entries go in a table of fixed width, and (where, what) its links are.

    int32[rows, 4 q]: row v is the neighbours of v, padded with n; ~(quad) in its last slot
    continues there. q is the least that holds all but one vertex in a hundred, at most 4. A
    continuing quad (4 slots, counted from the start of the table) holds 3 neighbours and a link, or
    up to 4 neighbours. row, nth: of each entry; row n stands for none. degree: of each row.
    """
    xp, n, size = module_of(degree), degree.shape[0], 4 * q * rows
    more = _more(degree, q)
    begin = n * q + starts_of(more)
    over = nth - (4 * q - 1)
    of_row = take(more, row)
    part = xp.clip(over // 3, 0, xp.maximum(of_row - 1, 0))
    beyond = 4 * (take(begin, row) + part) + over - 3 * part
    where = xp.where((of_row > 0) & (over >= 0), beyond, row * (4 * q) + nth)
    where = xp.where(row < n, where, size)
    quad = xp.arange((rows - n) * q, dtype=I32)
    v = owners(begin[1:] - n * q, quad.shape[0])
    part = quad - (take(begin, v) - n * q)
    at = xp.where(part == 0, v * (4 * q) + 4 * q - 1, 4 * (n * q + quad - 1) + 3)
    return where, (xp.where(v < n, at, size), ~(n * q + quad))


@program(static=("widest",))
def breadth_first_order(indptr: Any, indices: Any, widest: int) -> Any:
    """int32[n]: vertices in breadth-first order from one of smallest degree, components one after
    the other; a program of its own, which layouts share. widest: at least the largest degree.

    A step expands the next vertices of the queue together, and of equal finds the first stays, so
    that the order is that of a queue whose vertices follow one another.
    """
    n, size = indptr.shape[0] - 1, indices.shape[0]
    if n == 0 or size == 0:
        return module_of(indptr).arange(n, dtype=I32)
    if module_of(indptr) is np:
        return _order_of_queue(indptr, indices)
    degree = jnp.diff(indptr)
    candidates = argsort(degree.astype(jnp.uint32))
    chunk = max(1, REACH // max(1, widest))
    slot, place = jnp.arange(widest, dtype=I32), jnp.arange(chunk * widest, dtype=I32)
    unseen = jnp.int32(chunk * widest)

    def begin(state):
        head, tail, found, order, first = state
        vertex = candidates[jnp.argmax(first[candidates] == unseen)]
        return head, tail + 1, found + 1, order.at[tail].set(vertex), first.at[vertex].set(0)

    def going(state):
        head, tail, found, *_ = state
        return (head < tail) | ((tail < n) & (found < COMPONENTS))

    def step(state):
        head, tail, found, order, first = lax.cond(
            state[0] == state[1], begin, lambda state: state, state
        )
        at = head + jnp.arange(chunk, dtype=I32)
        vertex = order.at[jnp.minimum(at, n - 1)].get(mode="promise_in_bounds")
        valid = (slot < take(degree, vertex)[:, None]) & (at < tail)[:, None]
        near = take(indices, take(indptr, vertex)[:, None] + slot)
        near = jnp.where(valid, near, n).reshape(-1)
        new = first.at[near].get(mode="fill", fill_value=0) == unseen
        first = first.at[jnp.where(new, near, n)].min(place, mode="drop")
        new = new & (first.at[near].get(mode="fill", fill_value=-1) == place)
        target = jnp.where(new, tail + jnp.cumsum(new, dtype=I32) - 1, n)
        order = order.at[target].set(near, mode="drop", unique_indices=True)
        return jnp.minimum(head + chunk, tail), tail + jnp.sum(new, dtype=I32), found, order, first

    zero = jnp.int32(0)
    start = (zero, zero, zero, jnp.zeros(n, I32), jnp.full(n, unseen))
    _, tail, _, order, first = lax.while_loop(going, step, start)
    left = first == unseen
    target = jnp.where(left, tail + jnp.cumsum(left, dtype=I32) - 1, n)
    return order.at[target].set(jnp.arange(n, dtype=I32), mode="drop", unique_indices=True)


def _order_of_queue(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """`breadth_first_order` by a queue, in Python."""
    starts, near, order = indptr.tolist(), indices.tolist(), []
    unseen = [True] * (len(starts) - 1)
    head = components = 0
    for vertex in argsort(np.diff(indptr)).tolist():
        if unseen[vertex] and components < COMPONENTS:
            components += 1
            order.append(vertex)
            unseen[vertex] = False
        while head < len(order):
            for v in near[starts[order[head]] : starts[order[head] + 1]]:
                if unseen[v]:
                    order.append(v)
                    unseen[v] = False
            head += 1
    return np.append(order, np.flatnonzero(unseen)).astype(np.int32)


def likely_parents(in_indptr, in_indices, indptr, *, widest: int) -> dict[str, jax.Array]:
    """in_indices with each row by descending degree, first four of each row, bits of empty rows.

    widest: at least the longest row of the reversed graph; sizes of programs are rounded.
    """
    size = in_indices.shape[0]
    capacity = max(piece_of(size), min(size, widest))
    return _likely_parents(in_indptr, in_indices, indptr, capacity=capacity)


@program(static=("capacity",))
def _likely_parents(in_indptr, in_indices, indptr, *, capacity) -> dict[str, Any]:
    """Rows of `capacity` entries at a time, so that a sort takes little memory: two stable ones by
    one key of 32 bits, by the place of the neighbour and then by row."""
    xp, n, size = module_of(in_indptr), in_indptr.shape[0] - 1, in_indices.shape[0]
    order = by_falling(xp.diff(indptr))
    rank = inverse(order)
    ends = in_indptr[1:]

    def piece(state):
        begin, ordered = state
        left = in_indptr - begin
        end = begin + xp.max(xp.where(left <= capacity, left, 0), initial=0)
        valid, slot = within(begin, end, capacity)
        row = xp.where(valid, owners_from(ends, begin, capacity), n).astype(xp.uint32)
        place = xp.where(valid, take(rank, take(in_indices, slot)), n).astype(xp.uint32)
        row, place = sort_pairs(*reversed(sort_pairs(place, row)))
        found = take(order, place.astype(I32))
        return end, write(ordered, xp.where(valid, slot, size), found)

    def going(state):
        return state[0] < in_indptr[-1]

    _, ordered = loop(going, piece, (xp.int32(0), xp.full(size, n, I32)))
    slot = xp.arange(4, dtype=I32)
    counts = xp.diff(in_indptr)
    first = xp.where(
        slot < counts[:, None], take(ordered, in_indptr[:-1, None] + slot), xp.int32(n)
    )
    bits = xp.pad(counts == 0, (0, -n % 128)).reshape(-1, 32).astype(xp.uint32)
    isolated = xp.sum(bits << xp.arange(32, dtype=xp.uint32), axis=1, dtype=xp.uint32)
    return {"in_indices": ordered, "first": first, "isolated": isolated.view(I32)}
