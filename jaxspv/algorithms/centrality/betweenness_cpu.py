"""Betweenness on a CPU: Brandes' algorithm from one source, in native loops."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.native_loops import each, read, write
from ...formats import CSR


def by_distance(
    A: CSR, far: Array, source: Array, endpoints: bool, dtype: Any
) -> tuple[Array, Array]:
    """(n,) what passes each vertex on paths of least weight, `far` the distances from the source;
    whether counts overflowed.

    In order of distance an edge u -> v of weight w > 0 is on a shortest path where
    `far[u] + w == far[v]`, exactly: distances are sums from the source on.
    """
    n, indptr, indices, weights = far.shape[0], A.indptr, A.indices, A.data.astype(far.dtype)
    largest = np.inf if jnp.issubdtype(far.dtype, jnp.floating) else np.iinfo(far.dtype).max
    at = jnp.where((source >= 0) & (source < n), source, n)
    order = jnp.argsort(far).astype(jnp.int32)
    tail = jnp.sum(far < largest, dtype=jnp.int32)

    def is_tight(v, w, e):
        return read(far, v) + read(weights, e) == read(far, w)

    def vertex(i, paths):
        u = read(order, i)
        mine = read(paths, u)

        def edge(e, paths):
            v = read(indices, e)
            return (write(paths, v, read(paths, v) + jnp.where(is_tight(u, v, e), mine, 0)),)

        return each(read(indptr, u), read(indptr, u + 1), edge, paths)

    paths = jnp.zeros(n, dtype).at[at].set(1, mode="drop")
    (paths,) = each(0, tail, vertex, paths)
    passed = _back(indptr, indices, order, tail, paths, is_tight)
    return _counted(passed, far < largest, at, endpoints), jnp.any(~jnp.isfinite(paths))


def _back(indptr, indices, order, tail, paths, is_tight) -> Array:
    """(n,) `paths[v] * sum over tight v -> w of c[w]`, c = 1 / paths + the sum; last ones first."""

    def vertex(i, share, passed):
        v = read(order, tail - 1 - i)

        def edge(e, total):
            w = read(indices, e)
            return (total + jnp.where(is_tight(v, w, e), read(share, w), 0),)

        (total,) = each(read(indptr, v), read(indptr, v + 1), edge, jnp.zeros((), paths.dtype))
        count = read(paths, v)
        return write(share, v, 1 / count + total), write(passed, v, count * total)

    nothing = jnp.zeros_like(paths)
    return each(0, tail, vertex, nothing, nothing)[1]


def _counted(passed: Array, reached: Array, source: Array, endpoints: bool) -> Array:
    """Excludes the source; with `endpoints`, a path counts for its first and last vertex too."""
    if not endpoints:
        return passed.at[source].set(0, mode="drop")
    passed = passed + reached
    return passed.at[source].set((jnp.sum(reached) - 1).astype(passed.dtype), mode="drop")
