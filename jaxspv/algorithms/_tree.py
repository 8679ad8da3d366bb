"""Sums along the paths of a tree of shortest paths, by pointer doubling."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array, lax
from jax.custom_batching import sequential_vmap

from .._scalar_loops import is_negative, read, write
from ..batching import batch_any
from ..dispatch import is_zero
from ..formats import CSR
from ._sssp_xla import sssp_parents_xla


def path_tangent(A: CSR, A_dot: Any, source: Array, distances: Array) -> Array:
    """The tangent of the distances: `d'[v] = sum of A'[u, w] over the tree path source -> v`.

    Of the tight predecessors of a vertex that are strictly nearer the one of smallest id carries
    the whole derivative, on every backend. Where a vertex has none, for its edges have zero or
    absorbed weight, or negative ones, all take the tree of `sssp(..., deterministic=True)`.
    Unreached vertices have tangent 0. Linear in `A_dot.data` and built from gathers, hence it
    transposes. O(nse + n log depth).
    """
    if is_zero(A_dot.data):
        return jnp.zeros_like(distances)
    n = distances.shape[0]
    weights, d = lax.stop_gradient((A.data, distances))  # the tree is locally constant
    slot = tree_slots(A.with_data(weights), d, source)
    inner = slot < A.nse
    row = jnp.searchsorted(A.indptr, slot, side="right", method="scan_unrolled") - 1
    parent = jnp.where(inner, row, jnp.arange(n))
    step = A_dot.data.at[slot].get(mode="fill", fill_value=0)
    return sum_to_root(step, parent.astype(jnp.int32))


def tree_slots(A: CSR, distances: Array, source: Array) -> Array:
    """(n,) the slot of the edge by which the derivative comes to each vertex; `A.nse`: none."""
    n, nse = distances.shape[0], A.nse
    if nse == 0:
        return jnp.zeros(n, jnp.int32)

    @sequential_vmap
    def first_native(indptr, indices, weights, d):
        return _first_nearer_sequential(indptr, indices, weights, d)

    slot = lax.platform_dependent(
        A.indptr, A.indices, A.data, distances,
        cpu=first_native, default=lambda *graph: _first_nearer(A.rowcol(), *graph[2:]),
    )  # fmt: skip
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    open_ends = jnp.isfinite(distances) & ~at_source & (slot == nse)
    slot = jnp.where(at_source | ~jnp.isfinite(distances), nse, slot)

    def general():
        parents = sssp_parents_xla(A.indptr, A.indices, A.data, distances, source)
        inner = (parents >= 0) & ~at_source
        vertex = jnp.arange(n, dtype=jnp.int32)
        return jnp.where(inner, edge_slot(A, jnp.where(inner, parents, 0), vertex), nse)

    return lax.cond(batch_any(jnp.any(open_ends)), general, lambda: slot)


def _first_nearer(rowcol, weights, d) -> Array:
    """The first slot whose edge is tight and comes from a strictly nearer vertex; nse: none."""
    n, nse = d.shape[0], weights.shape[0]
    tail, head = rowcol
    before, after = (jnp.take(d, v, mode="clip") for v in (tail, head))
    tight = (tail < n) & (before + weights == after) & (before < after) & jnp.isfinite(after)
    slots = jnp.full(n, nse, jnp.int32)
    every = jnp.arange(nse, dtype=jnp.int32)
    return slots.at[jnp.where(tight, head, n)].min(every, mode="drop")


def _first_nearer_sequential(indptr, indices, weights, d) -> Array:
    """The same in one native loop (`_scalar_loops`): slots ascend, so the first one stays."""
    n, nse = d.shape[0], weights.shape[0]

    def row(c):
        u, slots = c
        before, last = read(d, u), read(indptr, u + 1)

        def edge(c):
            e, slots = c
            v = read(indices, e)
            after = read(d, v)
            tight = (before + read(weights, e) == after) & (before < after)
            new = is_negative(read(slots, v)) * (tight & (after < jnp.inf))
            return e + 1, write(slots, jnp.where(new > 0, v, n), e)

        return u + 1, lax.while_loop(lambda c: c[0] < last, edge, (read(indptr, u), slots))[1]

    first = (jnp.int32(0), jnp.full(n + 1, -1, jnp.int32))
    slots = lax.while_loop(lambda c: c[0] < n, row, first)[1][:n]
    return jnp.where(slots < 0, nse, slots)


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
