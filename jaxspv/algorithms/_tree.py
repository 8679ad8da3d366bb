"""Sums along the paths of a tree of shortest paths, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax

from ..batching import batch_any
from ..dispatch import is_zero
from ..formats import CSR
from ._sssp_xla import sssp_parents_xla


def path_tangent(
    A: CSR, A_dot: Any, source: Array, distances: Array, parents: Array | None = None
) -> Array:
    """The tangent of the distances: `d'[v] = sum of A'[u, w] over the tree path source -> v`.

    The tree is that of `sssp` (of the tight predecessors the one of fewest hops, then of smallest
    id), so at ties one path carries the whole derivative. Unreached vertices have tangent 0.
    Linear in `A_dot.data` and built from gathers, hence it transposes. `parents`: that tree, where
    it is known. O(n log depth) beside the tree.
    """
    if is_zero(A_dot.data):
        return jnp.zeros_like(distances)
    n = distances.shape[0]
    if parents is None:
        weights, d = lax.stop_gradient((A.data, distances))  # the tree is locally constant
        parents = sssp_parents_xla(A.indptr, A.indices, weights, d, source)
    vertex = jnp.arange(n, dtype=jnp.int32)
    inner = (parents >= 0) & (parents != vertex)
    parent = jnp.where(inner, parents, vertex)
    slot = edge_slot(A, parent, vertex)
    step = jnp.where(inner, A_dot.data[jnp.where(inner, slot, 0)], 0)
    return sum_to_root(step, parent)


def sum_to_root(values: Array, parent: Array) -> Array:
    """`s[v] = sum of values on the path from v up to its root`; a root is its own parent.

    The solution of `s = values + P s`, P the step to the parent, by pointer doubling:
    `(I - P)^-1 = (I + P)(I + P^2)(I + P^4)...`, ceil(log2(depth + 1)) rounds. The factors commute,
    so the transpose (sums over subtrees) runs the same rounds, and no round is stored.
    """
    n = values.shape[0]
    above = jnp.where(parent == jnp.arange(n, dtype=parent.dtype), n, parent)  # n: past the root

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


def edge_slot(A: CSR, row: Array, col: Array) -> Array:
    """The first slot that holds (row, col), which must be stored: binary search in sorted rows."""

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        goes = (low < high) & (A.indices[jnp.minimum(middle, A.nse - 1)] < col)
        return jnp.where(goes, middle + 1, low), jnp.where(goes | (low >= high), high, middle)

    rounds = max(A.nse, 1).bit_length()
    low, _ = lax.fori_loop(0, rounds, step, (A.indptr[row], A.indptr[row + 1]))
    return low
