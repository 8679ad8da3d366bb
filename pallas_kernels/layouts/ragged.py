"""Rows of different lengths as flat arrays, on any device: what all layouts are built with."""

import jax
import jax.numpy as jnp
from jax import lax

I32 = jnp.int32
PIECES, LEAST = 8, 1 << 20  # more than LEAST entries are processed in PIECES parts, to save memory


def piece_of(size: int) -> int:
    """The number of entries, of `size`, that are processed together."""
    return size if size <= LEAST else -(-size // PIECES)


def owners(ends: jax.Array, size: int) -> jax.Array:
    """int32[size]: the row of each slot k, which is the number of rows that end at or before k.

    ends int32[m] ascends. Slots from the last end on get m. A mark for each row and a prefix sum.
    """
    marks = jnp.zeros(size, I32).at[ends].add(1, mode="drop")
    return jnp.cumsum(marks, dtype=I32)


def within(begin: jax.Array, end: jax.Array, capacity: int) -> tuple[jax.Array, jax.Array]:
    """(masks, slots): `capacity` slots from `begin` on; where masked off, `begin` itself."""
    nth = jnp.arange(capacity, dtype=I32)
    valid = nth < end - begin
    return valid, begin + jnp.where(valid, nth, 0)


def owners_from(ends: jax.Array, begin: jax.Array, size: int) -> jax.Array:
    """`owners(ends, ...)[begin : begin + size]`."""
    before = jnp.sum(ends <= begin, dtype=I32)
    return before + owners(jnp.where(ends > begin, ends - begin, size), size)


def starts_of(counts: jax.Array) -> jax.Array:
    """int32[m + 1]: 0 and the prefix sums of counts."""
    return jnp.concatenate([jnp.zeros(1, I32), jnp.cumsum(counts, dtype=I32)])


def argsort(keys: jax.Array) -> jax.Array:
    """int32: a stable order by one key for each row, by a sort of (key, number) pairs."""
    return lax.sort((keys, jnp.arange(keys.shape[0], dtype=I32)), num_keys=1, is_stable=True)[1]


def by_falling(counts: jax.Array) -> jax.Array:
    """int32: rows of the largest counts (>= 0) first, equal ones in their order."""
    return argsort(~counts.astype(jnp.uint32))


def inverse(order: jax.Array) -> jax.Array:
    """int32: the place of each row in a permutation."""
    n = order.shape[0]
    return jnp.zeros(n, I32).at[order].set(jnp.arange(n, dtype=I32), unique_indices=True)


def count_of(indices: jax.Array, n: int) -> jax.Array:
    """int32[n]: how often each number occurs; numbers outside of [0, n) do not count."""
    return jnp.zeros(n, I32).at[jnp.where(indices < 0, n, indices)].add(1, mode="drop")


def placed(size: int, fill, where: jax.Array, values: jax.Array) -> jax.Array:
    """An array of `size` with `fill`, and `values` at distinct places; places outside are
    dropped."""
    start = jnp.full(size, fill, values.dtype)
    return start.at[where].set(values, mode="drop", unique_indices=True)


def take(array: jax.Array, index: jax.Array) -> jax.Array:
    """array[index], clamped; what lies outside is masked by the caller."""
    if array.shape[0] == 0:
        return jnp.zeros(index.shape, array.dtype)
    return array.at[index].get(mode="clip")
