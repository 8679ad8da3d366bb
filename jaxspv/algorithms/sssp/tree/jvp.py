"""Sums along the paths of a shortest-path tree, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.derivatives import is_zero
from ...._core.loops import batch_any
from ...._core.operation import Operation, typed
from ....formats import CSR
from ....native import bind
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
    return sum_to_root(A_dot.data, parent, source, slot)


def sum_to_root(values: Array, parent: Array, source: Array, slot: Array | None = None) -> Array:
    """`s[v] = sum of values on the path from v up to its root`; a root is its own parent.

    The value of v is `values[v]`, or `values[slot[v]]`, 0 for a slot past the end.

    The value of the source, a root, must be 0: paths end below it, for else the transposed sums of
    a whole graph would meet in its one word.

    The solution of `s = values + P s`, P the step to the parent, by pointer doubling:
    `(I - P)^-1 = (I + P)(I + P^2)(I + P^4)...`, ceil(log2(depth + 1)) rounds. The factors commute,
    so the transpose (sums over subtrees) runs the same rounds, and no round is stored.
    """
    return sums(values, parent, source, slot, down=None)


def _types(values, parent, source, slot, *, down):
    return typed(values.dtype, parent.shape[0] if down is None else down)


def _transposed(w, values, *tree, down):
    return sums(w, *tree, down=values.shape[0] if down is None else None), None, None, None


# down: None, or the number of values that sums over subtrees are handed to, the transpose.
sums = Operation("sums along paths", "linear", transpose=_transposed, types=_types, internal=True)


def _not_in_cpp(values: Any, parent: Any, source: Any, slot: Any, *, down: Any) -> str | None:
    if values.dtype.name not in ("float32", "float64") or parent.dtype != jnp.int32:
        return "it takes float32, float64 and indices of 32 bits"
    return bind.refused()


@sums.register("native", backend="cpu", refuse=_not_in_cpp)
def _in_cpp(
    values: Array, parent: Array, source: Array, slot: Array | None, *, down: int | None
) -> Array:
    """Parents before children, or behind them; sums in float64."""
    size = parent.shape[0] if down is None or slot is None else down
    slots = jnp.zeros(0, jnp.int32) if slot is None else slot
    operands = values, parent, jnp.asarray(source, jnp.int32), slots
    result = typed(values.dtype, size)
    return bind.call("sums_along_paths", result, *operands, down=down is not None)


@sums.register("doubling")
def _doubled(
    values: Array, parent: Array, source: Array, slot: Array | None, *, down: int | None
) -> Array:
    n = parent.shape[0]
    ends = (parent == np.arange(n, dtype=np.int32)) | (parent == source)
    above = jnp.where(ends, n, parent)  # n: past the root
    if down is None and slot is not None:
        values = values.at[slot].get(mode="fill", fill_value=0)

    def double(state):
        s, jump = state
        if down is None:
            s = s + s.at[jump].get(mode="fill", fill_value=0)
        else:
            s = s.at[jump].add(s, mode="drop")
        return s, jump.at[jump].get(mode="fill", fill_value=n)

    s = lax.while_loop(lambda c: batch_any(jnp.any(c[1] < n)), double, (values, above))[0]
    if down is None or slot is None:
        return s
    return jnp.zeros(down, s.dtype).at[slot].add(s, mode="drop")
