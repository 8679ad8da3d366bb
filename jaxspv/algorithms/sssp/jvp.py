"""Sums along the paths of a shortest-path tree, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..._core.batching import batch_any
from ..._core.derivatives.tangents import is_zero
from ...formats import CSR
from .tight_edges import tree_edges


def path_tangent(A: CSR, A_dot: Any, source: Array, distances: Array) -> Array:
    """The tangent of the distances: `d'[v] = sum of A'[u, w] over the tree path source -> v`.

    The tree is that of `tight_edges`, the same on every backend. Unreached vertices have tangent
    0. Linear in `A_dot.data` and built from gathers, hence it transposes. O(nse + n log depth).
    """
    if is_zero(A_dot.data):
        return jnp.zeros_like(distances)
    weights, d = lax.stop_gradient((A.data, distances))  # the tree is locally constant
    slot, parent = tree_edges(A.with_data(weights), d, source)
    if A_dot.data.shape[0] == 0:  # JAX gathers nothing from nothing
        return jnp.zeros_like(d)
    step = A_dot.data.at[slot].get(mode="fill", fill_value=0)
    return sum_to_root(step, parent, source)


def sum_to_root(values: Array, parent: Array, source: Array) -> Array:
    """`s[v] = sum of values on the path from v up to its root`; a root is its own parent.

    The value of the source, a root, must be 0: paths end below it, for else the transposed sums of
    a whole graph would meet in its one word.

    The solution of `s = values + P s`, P the step to the parent, by pointer doubling:
    `(I - P)^-1 = (I + P)(I + P^2)(I + P^4)...`, ceil(log2(depth + 1)) rounds. The factors commute,
    so the transpose (sums over subtrees) runs the same rounds, and no round is stored.
    """
    n = values.shape[0]
    ends = (parent == jnp.arange(n, dtype=jnp.int32)) | (parent == source)
    above = jnp.where(ends, n, parent)  # n: past the root

    def up(s, jump):
        return s.at[jump].get(mode="fill", fill_value=0)

    def with_up(s, jump):
        return s + up(s, jump)

    def with_down(s, jump):
        return s.at[jump].add(s, mode="drop")

    def by_doubling(move):
        def solve(_, b):
            def double(state):
                s, jump = state
                return move(s, jump), jump.at[jump].get(mode="fill", fill_value=n)

            return lax.while_loop(lambda c: batch_any(jnp.any(c[1] < n)), double, (b, above))[0]

        return solve

    return lax.custom_linear_solve(
        lambda s: s - up(s, above), values, by_doubling(with_up), by_doubling(with_down)
    )
