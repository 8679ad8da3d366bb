"""k-way merge of consecutive sorted runs, by rounds of pairwise merges."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ...._core.batching import batch_any, batch_max
from ..common.expand import Runs, run_of_each


def merge_rows(keys: Array, runs: Runs) -> tuple[Array, Array]:
    """Merges runs of ascending keys: `(sorted keys, order)` with `sorted = keys[order]`, stable.

    Keys from `runs.total` on are padding and larger than any other. In round t runs r and r ^ 2^t
    are merged: an element's new place is its own rank plus its rank in the partner run, found by
    binary search (Cole-style ranking; log2(count) rounds, each O(size log of the longest run)).

    Args:
        keys: (size,) int32.
        runs: which keys belong to the same run.
    """
    size, k = keys.shape[0], runs.ends.shape[0]
    place, total = jnp.arange(size, dtype=jnp.int32), runs.total
    ends = jnp.minimum(runs.ends, total)
    begin = jnp.concatenate([jnp.zeros(1, jnp.int32), ends])  # (k + 1,) start of run r
    run = run_of_each(runs.ends, jnp.int32(0), size)

    def round_(state):
        width, keys, order, run = state
        block = run // width
        low = begin[jnp.minimum(block * width, k)]
        partner = block ^ 1
        p_low = begin[jnp.minimum(partner * width, k)]
        p_high = begin[jnp.minimum((partner + 1) * width, k)]
        left = block < partner  # ties: the left run first
        rank = _rank(keys, keys, p_low, p_high, ~left)
        pair = jnp.minimum(low, p_low)
        target = jnp.where(place < total, pair + (place - low) + rank, place)
        move = jnp.zeros_like(keys).at[target]
        return (
            width * 2,
            move.set(keys, unique_indices=True),
            jnp.zeros_like(order).at[target].set(order, unique_indices=True),
            jnp.zeros_like(run).at[target].set(run, unique_indices=True),
        )

    state = (jnp.int32(1), keys, place, run)
    _, keys, order, _ = lax.while_loop(lambda s: batch_any(s[0] < runs.count), round_, state)
    return keys, order


def _rank(keys: Array, values: Array, low: Array, high: Array, or_equal: Array) -> Array:
    """The number of ascending `keys[low:high]` that are < value, or <= value where `or_equal`."""
    steps = batch_max(_bit_length(jnp.max(high - low)))

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        key = keys[jnp.minimum(middle, keys.shape[0] - 1)]
        goes = (low < high) & ((key < values) | (or_equal & (key == values)))
        return jnp.where(goes, middle + 1, low), jnp.where(goes | (low >= high), high, middle)

    return lax.fori_loop(0, steps, step, (low, high))[0] - low


def _bit_length(n: Array) -> Array:
    """The number of bits of n: so many bisection steps find a place among n elements."""
    return 32 - lax.clz(n)
