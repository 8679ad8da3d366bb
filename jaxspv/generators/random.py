"""Randomness of the generators: JAX keys, and NumPy generators seeded by them for host draws."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def check_key(key: Any) -> Any:
    """`key`, if it is one JAX key (of `jax.random.key`, or the older `jax.random.PRNGKey`).

    Raises:
        ValueError: it is something else.
    """
    dtype, shape = getattr(key, "dtype", None), getattr(key, "shape", None)
    if dtype is not None:
        if jnp.issubdtype(dtype, jax.dtypes.prng_key) and shape == ():
            return key
        if dtype == np.uint32 and shape == jax.eval_shape(lambda: jax.random.PRNGKey(0)).shape:
            return key
    raise ValueError(f"`key` must be one key, as of jax.random.key(seed); got {key!r}.")


def random_generator(key: Any) -> np.random.Generator:
    """A NumPy generator seeded by 128 bits of a JAX key, for draws on the host."""
    return np.random.default_rng(np.asarray(jax.random.bits(check_key(key), (4,), "uint32")))


def distinct(rng: np.random.Generator, population: int, k: int) -> np.ndarray:
    """k distinct integers of [0, population), each set as likely, in random order.

    By rejection where k is at most half of the population, else by a permutation.
    """
    if 2 * k > population:
        return rng.permutation(population)[:k]
    drawn = np.zeros(0, np.int64)
    while drawn.size < k:
        more = rng.integers(population, size=k - drawn.size + 16 + k // 8)
        drawn = np.concatenate([drawn, more])
        drawn = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    return drawn[:k]
