"""Sums along the paths of a tree of shortest paths, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..batching import batch_any
from ..dispatch import is_zero
from ..formats import CSR
from ._tight_edges import tree_edges


def path_tangent(A: CSR, A_dot: Any, source: Array, distances: Array) -> Array:
    """The tangent of the distances: `d'[v] = sum of A'[u, w] over the tree path source -> v`.

    The tree is that of `_tight_edges`, the same on every backend. Unreached vertices have tangent
    0. Linear in `A_dot.data` and built from gathers, hence it transposes. O(nse + n log depth).
    """
    if is_zero(A_dot.data):
        return jnp.zeros_like(distances)
    weights, d = lax.stop_gradient((A.data, distances))  # the tree is locally constant
    slot, parent = tree_edges(A.with_data(weights), d, source)
    step = A_dot.data.at[slot].get(mode="fill", fill_value=0)
    return sum_to_root(step, parent)


def sum_to_root(values: Array, parent: Array) -> Array:
    """`s[v] = sum of values on the path from v up to its root`; a root is its own parent.

    The solution of `s = values + P s`, P the step to the parent, by pointer doubling:
    `(I - P)^-1 = (I + P)(I + P^2)(I + P^4)...`, ceil(log2(depth + 1)) rounds. The factors commute,
    so the transpose (sums over subtrees) runs the same rounds, and no round is stored.
    """
    n = values.shape[0]
    above = jnp.where(parent == jnp.arange(n, dtype=jnp.int32), n, parent)  # n: past the root

    def up(s, jump):
        return s.at[jump].get(mode="fill", fill_value=0)

    def down(s, jump):
        return jnp.zeros_like(s).at[jump].add(s, mode="drop")

    def by_doubling(move):
        def solve(_, b):
            def double(state):
                s, jump = state
                return s + move(s, jump), jump.at[jump].get(mode="fill", fill_value=n)

            return lax.while_loop(lambda c: batch_any(jnp.any(c[1] < n)), double, (b, above))[0]

        return solve

    return lax.custom_linear_solve(
        lambda s: s - up(s, above), values, by_doubling(up), by_doubling(down)
    )
