"""Scores of attention: what an entry is worth by what lies at its ends, static and hashable."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
from jax import Array

from ...ops.aggregate import wide
from ...ops.products.common.elementwise import Elementwise


@dataclasses.dataclass(frozen=True)
class Dot:
    """The score `scale <q, k> + bias` of each head."""

    scale: float

    def __call__(self, _: Any, q: Array, k: Array, own: Any) -> Array:
        s = jnp.sum(wide(q) * wide(k), axis=-1) * self.scale
        return s if own[0] is None else s + _over_heads(own[0], s)


@dataclasses.dataclass(frozen=True)
class Score:
    """The score of a user's function, times `scale`, plus the bias."""

    fn: Elementwise
    scale: float

    def __call__(self, captured: Any, q: Array, k: Array, own: Any) -> Array:
        bias, edges = own
        s = wide(self.fn(captured, q, k, edges)) * self.scale
        return s if bias is None else s + _over_heads(bias, s)


def _over_heads(bias: Array, s: Array) -> Array:
    return wide(bias) if bias.ndim == s.ndim else jnp.broadcast_to(wide(bias), s.shape)
