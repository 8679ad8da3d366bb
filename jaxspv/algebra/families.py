"""Semirings whose values are tuples: distances with ids, lexicographic pairs, k best paths.

Each function gives one semiring, and the same one for the same arguments. `semiring.lift(weights)`
makes the values of edges. Where a law needs more than types say, it is stated.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.loops import lanes_second
from .._core.operation import Operation
from .._core.pytree import factory
from .._core.tuples import Constant, take
from .monoids import min_, plus
from .operators import BinaryOp
from .semiring import Semiring, along_paths, check_integer, check_semiring, made, one_of

_BIG = np.iinfo(np.int32).max
RANKED = 16  # paths that two lists have when they are joined by all k^2 comparisons


def _numbered(weights: Any, ids: Any = None) -> tuple[Array, Array]:
    """`lift` of pairs of a cost and an id, by default the number of the edge."""
    weights = jnp.asarray(weights)
    numbers = np.arange(weights.shape[0]) if ids is None else ids
    return weights, jnp.asarray(numbers, jnp.int32)


# ---- The best, and who gave it ----


def _lesser_pair(x, y):
    (c, i), (d, j) = x, y
    first = (c < d) | ((c == d) & (i <= j))
    return jnp.where(first, c, d), jnp.where(first, i, j)


def _pairs_by_segments(terms, segments, count):
    cost, ids = terms
    cost = cost.astype(jnp.result_type(cost, 1.0))  # integers have no infinity
    best = min_.segment_reduce(lax.stop_gradient(cost), segments, count)
    wins = (segments >= 0) & (segments < count) & (cost == take(best, segments))
    winner = min_.segment_reduce(ids, jnp.where(wins, segments, count), count)
    wins &= ids == take(winner, segments)
    return _first_cost(cost, best, jnp.where(wins, segments, count)), winner


@jax.custom_jvp
def _first_cost(cost, best, at):
    """`best`, with the derivative of the first of the costs that win there."""
    return best


@_first_cost.defjvp
def _first_cost_jvp(primals, tangents):
    (_, best, at), size = primals, primals[0].shape[0]
    slot = jnp.arange(size, dtype=jnp.int32)
    first = jnp.full(best.shape, size, jnp.int32).at[at].min(slot, mode="drop")
    return best, jnp.where(first == size, 0, take(tangents[0], first))


@factory
def argmin_plus() -> Semiring:
    """Shortest paths with the edge that came last: values `(cost, id)`.

    The smaller cost wins, of equal ones the smaller id; a product adds the costs and keeps the id
    of its second factor, or of the first where that has none (2^31 - 1). The laws hold where all
    edges have ids. `lift(weights, ids=None)`: ids are the numbers of the edges by default.

    >>> import jax.numpy as jnp
    >>> s = argmin_plus()
    >>> [v.item() for v in s.add.op((jnp.float32(2), jnp.int32(7)), (jnp.float32(2), jnp.int32(3)))]
    [2.0, 3]
    """

    def mul(x, y):
        (c, i), (d, j) = x, y
        cost = c + d
        return cost, jnp.where(cost == jnp.inf, _BIG, jnp.where(j == _BIG, i, j))

    none, one = (np.inf, np.int32(_BIG)), (0.0, np.int32(_BIG))
    how = {"idempotent": True, "by_segments": _pairs_by_segments}
    return made("argmin_plus", _lesser_pair, mul, none, one, _numbered, **how)


@factory
def lexicographic(first: Semiring, second: Semiring) -> Semiring:
    """Values `(u, v)`: the better u of `first`; of equal ones the v are joined by `second`.

    `mul` works on each part. The sum of `first` must choose (min, max), and its product keep
    different values apart, as addition of finite numbers does: then the laws hold.

    Raises:
        TypeError: one is no semiring.
        ValueError: the sum of `first` does not choose one of its operands.

    >>> from jaxspv import semirings
    >>> lexicographic(semirings.min_plus, semirings.max_min)
    Semiring(lexicographic(min_plus, max_min))
    """
    check_semiring("first", first)
    check_semiring("second", second)
    if not first.add.selective:
        raise ValueError(f"`first` must choose one of two values, as min and max do; got {first}.")
    none = first.add.identity, second.add.identity

    def add(x, y):
        (u, v), (w, z) = x, y
        best = first.add.op(u, w)
        none = jnp.asarray(second.zero(v.dtype))
        return best, second.add.op(jnp.where(u == best, v, none), jnp.where(w == best, z, none))

    def mul(x, y):
        (u, v), (w, z) = x, y
        head = along_paths(first, jnp.result_type(u, w), both=True).mul(u, w)
        nothing = head == jnp.asarray(first.zero(head.dtype))
        tail = second.mul(v, z)
        return head, jnp.where(nothing, jnp.asarray(second.zero(tail.dtype)), tail)

    def by_segments(terms, segments, count):
        u, v = terms
        best = first.add.segment_reduce(u, segments, count)
        at = jnp.where(u == take(best, segments), segments, count)
        return best, second.add.segment_reduce(v, at, count)

    name, one = f"lexicographic({first.name}, {second.name})", (one_of(first), one_of(second))
    more = {"idempotent": second.add.idempotent, "by_segments": by_segments}
    return made(name, add, mul, none, one, both_lifted, **more)


def both_lifted(first: Any, second: Any) -> tuple[Array, Array]:
    """`lift` of pairs: both parts as arrays."""
    return jnp.asarray(first), jnp.asarray(second)


@factory
def counting(semiring: Semiring) -> Semiring:
    """Values `(best, number)`: the best of the paths and how many have it; `semiring` as min_plus.

    `lift(weights)`: each edge is one path. Counts are in the dtype of the second part, int32; they
    wrap beyond 2^31: lift with float64 ones for more.

    >>> from jaxspv import semirings
    >>> counting(semirings.min_plus)
    Semiring(lexicographic(min_plus, plus_times))
    """
    plus_times = Semiring(plus, BinaryOp(jnp.multiply, "times"), "plus_times")
    pairs = lexicographic(semiring, plus_times)

    def lift(weights, number=None):
        weights = jnp.asarray(weights)
        return weights, jnp.ones(weights.shape, jnp.int32) if number is None else number

    one = Constant((one_of(semiring), 1))
    return dataclasses.replace(pairs, lift=lift, one=one)


# ---- The k best ----


@factory
def k_best(k: int) -> Semiring:
    """The k shortest paths: values `(costs, edges, ranks)` of shape (k,), costs ascending.

    Slot r of a vertex holds its r-th shortest path: its cost, the edge that came last, and the rank
    of the rest of the path at the source of that edge: back-pointers. `lift(weights, ids=None)`
    gives pairs `(cost, id)`, which a product takes on either side. The laws hold for costs; ties
    are ordered by edge, then rank. Missing: infinity, 2^31 - 1.

    >>> import jax.numpy as jnp
    >>> s = k_best(2)
    >>> x, y = s.mul(s.one.value, (1.0, 0)), s.mul(s.one.value, (3.0, 1))
    >>> s.add.op(x, y)[0].tolist()
    [1.0, 3.0]
    """
    check_integer("k", k, 1)
    one = np.where(np.arange(k) == 0, 0.0, np.inf), np.full(k, _BIG, np.int32)
    zero = np.full(k, np.inf), one[1], one[1]

    def add(x, y):
        """Each path goes to the place that its ranks in the two lists give."""
        if k > RANKED:
            return whole(tuple(jnp.stack([a, b]) for a, b in zip(x, y, strict=True)))
        (c, i, r), (d, j, s) = ([lax.stop_gradient(v) for v in lists] for lists in (x, y))
        (c, i, r), (d, j, s) = (v[:, None] for v in (c, i, r)), (v[None] for v in (d, j, s))
        before = (c < d) | ((c == d) & ((i < j) | ((i == j) & (r <= s))))
        place = jnp.arange(k, dtype=jnp.int32)
        of_x = place + jnp.sum(~before, 1, dtype=jnp.int32)
        of_y = place + jnp.sum(before, 0, dtype=jnp.int32)
        there = jnp.concatenate([of_x, of_y])[None] == place[:, None]
        at = jnp.sum(jnp.where(there, jnp.arange(2 * k)[None], 0), 1)
        return tuple(jnp.concatenate([a, b])[at] for a, b in zip(x, y, strict=True))

    def extended(path, edge):
        cost, i = edge
        costs = path[0] + cost
        gone = costs == jnp.inf
        edges = jnp.where(gone, _BIG, jnp.where(i == _BIG, path[1], i))
        steps = jnp.where(i == _BIG, path[2], jnp.arange(k, dtype=jnp.int32))
        return costs, edges.astype(jnp.int32), jnp.where(gone, _BIG, steps).astype(jnp.int32)

    def mul(x, y):
        short_x, short_y = (np.ndim(v[0]) == 0 for v in (x, y))
        if short_x and short_y:
            x, short_x = extended(tuple(map(jnp.asarray, (one[0], one[1], one[1]))), x), False
        if short_y:
            return extended(x, y)
        if short_x:
            return extended(y, x)
        return whole(jax.vmap(lambda c, i: extended(x, (c, i)))(y[0], y[1]))

    def picked(terms, slots, ranks):
        """The values at the ranks in the lists at the slots; those of `zero` beyond the end."""
        none = slots == terms[0].shape[0]
        at = jnp.where(none, 0, slots * k + ranks).astype(jnp.uint32)
        return tuple(
            jnp.where(none, jnp.asarray(z[0], v.dtype), v.reshape(-1)[at])
            for z, v in zip(zero, terms, strict=True)
        )

    def by_segments(terms, segments, count):
        places = jnp.where((segments >= 0) & (segments < count), segments, count)

        def least(v):
            top = jnp.inf if jnp.issubdtype(v.dtype, jnp.inexact) else _BIG
            return jnp.full(count, top, v.dtype).at[places].min(v, mode="drop")

        return picked(terms, *_merged(terms, k, least, lambda v: take(v, places)))

    def whole(terms):
        if k > RANKED or (k + 1) * k * terms[0].shape[0] > _BIG:
            return picked(terms, *_merged(terms, k, jnp.min, lambda v: v))
        return picked(terms, *_chosen(*map(lax.stop_gradient, terms), k=k))

    forms = {"by_segments": by_segments, "whole": whole}
    return made(f"k_best({k})", add, mul, zero, (*one, one[1]), _numbered, **forms)


def _merged(terms, k, least, spread):
    """Slots and ranks, (..., k), of the k least of sorted lists: k times the least of their heads.

    Args:
        terms: costs, edges, ranks (lists, k); equal costs are ordered by edge, then rank.
        least: the minimum over the lists that are merged.
        spread: brings it back to them.
    """
    costs, edges, ranks = jax.tree.map(lax.stop_gradient, terms)
    size = costs.shape[0]
    slot = jnp.arange(size, dtype=jnp.int32)

    def take_one(head, _):
        at = jnp.minimum(head, k - 1)
        cost = jnp.where(head < k, costs[slot, at], jnp.inf)
        wins = (cost == spread(least(cost))) & (cost < jnp.inf)
        for v in (edges[slot, at], ranks[slot, at], slot):
            wins &= v == spread(least(jnp.where(wins, v, _BIG)))
        won = jnp.minimum(least(jnp.where(wins, slot, _BIG)), size)
        return head + wins.astype(head.dtype), (won, take(head, won))

    _, (slots, heads) = lax.scan(take_one, jnp.zeros(size, jnp.int32), length=k)
    return jnp.moveaxis(slots, 0, -1), jnp.moveaxis(heads, 0, -1)


# The slots and ranks that `_merged` gives of all lists, for few short ones: no gathers in a loop.
_chosen = Operation("k best of lists", internal=True)


def _chosen_of_lanes(size, in_batched, *keys, k):
    """Of many at a time, the last axis of each array: so XLA on a CPU makes vectors of them. The k
    best are in the lists of the k best heads; behind the i-th head those of its list at i + j < k
    alone, for all heads before come first. Rank and place are one key."""
    keys = tuple(lanes_second(size, keys, in_batched))
    count, lane = keys[0].shape[0], jnp.arange(size, dtype=jnp.int32)
    i, j = np.indices((min(count, k), k), np.int32).reshape(2, -1)
    lists = jnp.broadcast_to(jnp.arange(count, dtype=jnp.int32)[:, None], (count, size))
    if count > k:
        i, j = i[i + j < k], j[i + j < k]
        costs, edges, ranks = (v[:, :, 0] for v in keys)
        lists = _least(costs, edges, ranks, lists, k, count)
    at = jnp.where(lists < count, lists * size + lane, 0)[i] * k + j[:, None]
    costs, edges, ranks = (v.reshape(-1)[at.astype(jnp.uint32)] for v in keys)
    lists = lists[i]
    costs = jnp.where(lists < count, costs, jnp.inf)
    places = _least(costs, edges, ranks, lists * k + j[:, None], k, count * k)
    return (places // k).T, (places % k).T


@_chosen.register("minima", batched=_chosen_of_lanes)
def _chosen_of_one(costs, edges, ranks, *, k):
    one = (v[None] for v in (costs, edges, ranks))
    return tuple(v[0] for v in _chosen_of_lanes(1, (True,) * 3, *one, k=k))


def _least(costs, edges, ranks, places, k, size):
    """The places, below size, of the k least along the first axis, in order; size for infinity."""
    keys = jnp.clip(ranks, 0, k) * size + places  # no two are equal

    def take_one(costs, _):
        best = jnp.min(costs, 0)
        edge = jnp.min(jnp.where(costs == best, edges, _BIG), 0)
        tied = jnp.where((costs == best) & (edges == edge), keys, _BIG)
        least = jnp.min(tied, 0)
        costs = jnp.where(tied == least, jnp.inf, costs)
        return costs, jnp.where(best < jnp.inf, least % size, size)

    return lax.scan(take_one, costs, length=k)[1]
