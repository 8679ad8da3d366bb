"""Randomness of the generators: from a JAX key or a NumPy generator."""

from __future__ import annotations

from typing import Any

import jax
import numpy as np


def random_generator(key: Any) -> np.random.Generator:
    """`key` itself if it is a NumPy generator, else one seeded by the bits of a JAX key."""
    if isinstance(key, np.random.Generator):
        return key
    return np.random.default_rng(np.asarray(jax.random.bits(check_key(key), (4,), "uint32")))


def draw_uniform(key: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Uniform numbers in [0, 1): float64 of a NumPy generator, or float32 of a JAX key."""
    if isinstance(key, np.random.Generator):
        return key.random(shape)
    return np.asarray(jax.random.uniform(check_key(key), shape))


def check_key(key: Any) -> Any:
    """`key`, if it is a JAX key, of the new kind or the old.

    Raises:
        TypeError: it is something else.
    """
    if not isinstance(key, (jax.Array, np.ndarray)):
        raise TypeError(
            f"`key` must come from jax.random.key(seed); got {key!r} of {type(key).__name__}."
        )
    return key


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
