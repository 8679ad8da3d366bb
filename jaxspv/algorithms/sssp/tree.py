"""Trees of shortest paths: the one that carries derivatives, sums along it; that of fewest hops.

An edge u -> v of weight w is tight where `d[u] + w = d[v]`, finite. Three rules, in this order:

1. Of the tight edges from strictly nearer vertices the first slot. One pass over the entries.
2. A vertex without one, for its tight edges have zero or absorbed weight, is an orphan: it takes
   one from a vertex as near as itself, over the fewest such edges from a vertex that is no orphan,
   and of these the first slot. Along both rules (distance, number of such edges) falls.
3. If a vertex still has none, which negative weights can cause, all take the tree of
   `sssp(..., deterministic=True)`: rounds from the source, the first slot from the round before.
"""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.derivatives import is_zero
from ..._core.loops import batch_any
from ..._core.native_loops import computed_once
from ..._core.operation import Operation, typed
from ...formats import CSR
from ...formats.offsets import search_rows
from ...native import bind
from ...ops.products.spmv.jvp import serves
from .xla import OutEdges, extend, forest, infinity

DTYPES = ("float32", "float64", "int32", "int64")
STRICT, OR_EQUAL, ANY = range(3)  # how near an edge's tail must be, by rule


def refuse_tree(A: Any, distances: Any, source: Any) -> str | None:
    """Why the C++ cannot serve distances along the edges of A, a CSR or its arrays."""
    if distances.dtype.name not in DTYPES or not A.indptr.dtype == A.indices.dtype == jnp.int32:
        return f"it takes weights in {', '.join(DTYPES)} and indices of 32 bits"
    return bind.refused()


def tree_edges(A: CSR, distances: Array, source: Array) -> tuple[Array, Array]:
    """For each vertex the slot of its tight in-edge, `A.nse` if it has none; and the edge's tail,
    the vertex itself if it has none.

    Floating distances. O(n + nse); without C++ also a pass over the entries, on a GPU over the row
    offsets, for every edge of the longest chain of rule 2 or 3. Under vmap one after the other.
    """
    n, nse = distances.shape[0], A.nse
    if nse == 0:
        return jnp.zeros(n, jnp.int32), jnp.arange(n, dtype=jnp.int32)
    return tight(A, distances, jnp.asarray(source, jnp.int32))


def _slot_and_row(A, d, *_, **__):
    vector = typed(jnp.int32, *d.shape)
    return vector, vector


tight = Operation("tight edges", types=_slot_and_row, internal=True)


def _no_kernel(A, d, source) -> str | None:
    if serves(A.dtype, A.indptr, A.indices):
        return None
    return "the kernel is for float32 and int32 indices that fit its counters"


@tight.register("rounds", backend="pallas", refuse=_no_kernel, batched="map")
def _by_kernel(A, d, source):
    from pallas_kernels.sssp import tight_edges

    def find(A, before, after, rule):
        return tight_edges.first_tight(A.indptr, A.indices, A.data, before, after, rule=rule)

    return _in_rounds(A, d, source, find)


def _in_rounds(A, d, source, find):
    """All rules in one loop, so that one kernel is compiled: rule 3 as rounds from the source.

    find: as `first_tight`.
    """
    n, nse = d.shape[0], A.nse
    vertex, finite = jnp.arange(n, dtype=jnp.int32), jnp.isfinite(d)
    wanted, none = finite & (vertex != source), jnp.full(n, nse, jnp.int32)

    def more(state):
        return jnp.any(state[3]) & (state[0] <= ANY)

    def round_(state):
        rule, slot, row, orphan, last = state
        before, after = jnp.where(last, d, jnp.inf), jnp.where(orphan, d, jnp.nan)
        first, tail = find(A, before, after, rule)
        found = orphan & (first < nse)
        slot, row = jnp.where(found, first, slot), jnp.where(found, tail, row)
        orphan = orphan & ~found
        last = jnp.where(rule == STRICT, finite & ~orphan, found)
        nothing = ~jnp.any(found)
        anew = nothing & (rule == OR_EQUAL)  # rule 3 for all
        slot, row = jnp.where(anew, none, slot), jnp.where(anew, vertex, row)
        orphan, last = jnp.where(anew, wanted, orphan), jnp.where(anew, vertex == source, last)
        return jnp.maximum(rule + nothing.astype(jnp.int32), OR_EQUAL), slot, row, orphan, last

    first = (jnp.int32(STRICT), none, vertex, wanted, finite)
    return lax.while_loop(more, round_, first)[1:3]


@tight.register("native", backend="cpu", refuse=refuse_tree)
def _tight_in_cpp(A, d, source):
    operands = A.indptr, A.indices, A.data, d, source
    return bind.call("tight_edges", _slot_and_row(A, d), *operands)


@tight.register("passes", batched="map")
def _in_passes(A, d, source):
    """A pass over the entries a round."""
    return _in_rounds(A, d, source, first_tight)


def first_tight(A, before, after, rule):
    """(slot, row) of the first edge with before[u] + w = after[v], finite, where before[u] is also
    less than after[v] (STRICT), or not more (OR_EQUAL); (nse, _): none. NaN: no edge there."""
    n, nse = before.shape[0], A.nse
    tail, head = A.rowcol()
    x, y = jnp.take(before, tail, mode="clip"), jnp.take(after, head, mode="clip")
    tight = (tail < n) & (x + computed_once(A.data) == y) & (y < jnp.inf)
    tight &= (x < y) | ((rule > STRICT) & (x <= y)) | (rule > OR_EQUAL)
    slots = jnp.full(n, nse, jnp.int32)
    every = jnp.arange(nse, dtype=jnp.int32)
    slots = slots.at[jnp.where(tight, head, n)].min(every, mode="drop")
    return slots, tail.at[slots].get(mode="fill", fill_value=n).astype(jnp.int32)


# ---- Sums along paths, by pointer doubling ----


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


# ---- The tree of fewest hops, by the distances alone ----

# `parents[v] = the tight predecessor u of v of smallest (hops[u], u)`, (n,) int32, where an edge
# u -> v is tight if v is reached and `distances[u] + weight = distances[v]`, and hops counts the
# tight edges from the source. The source is its own parent; -1 where unreached.
shortest_path_tree = Operation(
    "shortest-path tree",
    types=lambda graph, distances, source: typed(jnp.int32, graph.n),
    internal=True,
)


@shortest_path_tree.register("native", backend="cpu", refuse=refuse_tree)
def _tree_in_cpp(graph: OutEdges, distances: Array, source: Array) -> Array:
    tree = typed(jnp.int32, graph.n)
    return bind.call("shortest_path_tree", tree, *graph, distances, jnp.asarray(source, jnp.int32))


@shortest_path_tree.register("levels", batched="map")
def _in_levels(graph: OutEdges, distances: Array, source: Array) -> Array:
    """Breadth-first over the tight edges, a level of hops at a time.

    Zero weights, and weights that a float sum absorbs, make cycles of tight edges: so a parent is
    chosen by hops, which rise along every chosen edge.
    """
    n, top = graph.n, infinity(distances.dtype)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    root = jnp.where(at_source, source, -1).astype(jnp.int32)
    if n == 0 or graph.indices.shape[0] == 0:
        return root

    tail, head = search_rows(graph.indptr, graph.indices.shape[0]), graph.indices
    before, after = (jnp.take(distances, v, mode="clip") for v in (tail, head))
    weights = computed_once(graph.weights)
    tight = (tail < n) & (extend(before, weights) == after) & (after < top)
    _, tails = forest(tail, head, tight, at_source)
    return jnp.where(tails < n, tails, root)
