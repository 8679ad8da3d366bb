"""k-way merge of sorted runs that lie one after the other, by rounds of pairwise merges."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ..batching import batch_any


def merge_rows(keys: Array, ends: Array, count: Array) -> tuple[Array, Array]:
    """Merges runs of ascending keys: `(sorted keys, order)` with `sorted = keys[order]`, stable.

    Run r covers `ends[r-1] <= e < ends[r]`; keys from `ends[-1]` on are padding and larger than any
    other. In round t runs r and r ^ 2^t join: an element's new place is its own rank plus its rank
    in the partner run, found by binary search (Cole-style ranking; log2(count) rounds, each
    O(size log size)).

    Args:
        keys: (size,) int32.
        ends: (k,) int32, ascending.
        count: runs in use, int32.
    """
    size, k = keys.shape[0], ends.shape[0]
    place = jnp.arange(size, dtype=jnp.int32)
    total = ends[-1]
    begin = jnp.concatenate([jnp.zeros(1, jnp.int32), ends])  # (k + 1,) start of run r
    run = jnp.searchsorted(ends, place, side="right", method="scan").astype(jnp.int32)

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
    _, keys, order, _ = lax.while_loop(lambda s: batch_any(s[0] < count), round_, state)
    return keys, order


def _rank(keys: Array, values: Array, low: Array, high: Array, or_equal: Array) -> Array:
    """How many of the ascending `keys[low:high]` are < value (<= value where `or_equal`)."""
    steps = max(keys.shape[0], 1).bit_length()
    first = low

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        key = keys[jnp.minimum(middle, keys.shape[0] - 1)]
        goes = (low < high) & ((key < values) | (or_equal & (key == values)))
        return jnp.where(goes, middle + 1, low), jnp.where(goes | (low >= high), high, middle)

    low, _ = lax.fori_loop(0, steps, step, (low, high))
    return low - first
