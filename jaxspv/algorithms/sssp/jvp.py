"""Sums along the paths of a shortest-path tree, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.batching import batch_any
from ..._core.derivatives.tangents import is_zero
from ..._core.operation import Operation
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
    ends = (parent == np.arange(len(parent), dtype=np.int32)) | (parent == source)
    return sums(values, jnp.where(ends, len(parent), parent), down=False)  # n: past the root


def _tangent(primals, tangents, result, *, down):
    return (
        jnp.zeros_like(result) if is_zero(tangents[0]) else sums(tangents[0], primals[1], down=down)
    )


def _transposed(w, values, above, *, down):
    return sums(w, above, down=not down), None


sums = Operation(
    "sums along paths",
    _tangent,
    transpose=_transposed,
    types=lambda values, above, *, down: values,
    internal=True,
)


@sums.register("doubling")
def _doubled(values: Array, above: Array, *, down: bool) -> Array:
    def double(state):
        s, jump = state
        if down:
            s = s.at[jump].add(s, mode="drop")
        else:
            s = s + s.at[jump].get(mode="fill", fill_value=0)
        return s, jump.at[jump].get(mode="fill", fill_value=jump.shape[0])

    n = above.shape[0]
    return lax.while_loop(lambda c: batch_any(jnp.any(c[1] < n)), double, (values, above))[0]
