"""Single-source shortest paths in XLA: raw arrays in, raw arrays out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from . import _sssp_sequential as sequential
from ._lengths import infinity
from ._sssp_parents import parents_sequential


def sssp_xla(indptr, indices, weights, source, *, delta=None, stop=None, max_steps=None, parents=False):
    graph = sequential.Graph(indptr, indices, weights)
    limit = jnp.int32(2**31 - 1 if max_steps is None else max_steps)
    if delta is None:
        length, steps, converged, pred = sequential.bellman_ford(graph, source, stop, limit)
    else:
        length, steps, converged, pred = sequential.delta_stepping(graph, source, delta, stop, limit, parents)
    overflow = jnp.bool_(False)
    if jnp.issubdtype(length.dtype, jnp.integer):
        overflow = sequential.clamped(graph, length)
    return length, steps, converged, overflow, pred


def sssp_parents_xla(indptr, indices, weights, distances, source):
    return parents_sequential(indptr, indices, weights, distances, source)


def default_delta(indptr, indices, weights):
    return np.mean(weights) / 2
