"""Similarity of pairs of vertices by their common neighbours."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array, lax

from .._core.indices import lower_bound
from .._core.native_loops import each, read, write
from .._core.operation import Operation, typed
from .._core.platforms import Backend
from .._core.pytree import result_tuple
from .._core.reductions import rounded
from ..algebra.monoids import plus
from ..formats.csr import sorted_csr
from ..graph import Graph, as_graph
from ..shapes import Float, Int, Matrix, Sources
from .common.derivatives import constant
from .common.sources import check_source


@result_tuple
class Similarity(NamedTuple):
    """What the out-neighbours of pairs have in common; see `similarity`.

    Attributes:
        common: (k,) int32, how many both have.
        jaccard: (k,) float32, `common / |N(u) + N(v)|`; 0 where neither has any.
        overlap: (k,) float32, `common / min(|N(u)|, |N(v)|)`; 0 where one has none.
        adamic_adar: (k,) float32, the sum over common w of `1 / log |N(w)|`.
        resource_allocation: (k,) float32, the sum over common w of `1 / |N(w)|`.
    """

    common: Int[Array, "*sources"]
    jaccard: Float[Array, "*sources"]
    overlap: Float[Array, "*sources"]
    adamic_adar: Float[Array, "*sources"]
    resource_allocation: Float[Array, "*sources"]


def similarity(
    G: Matrix, u: Sources, v: Sources, *, backend: Backend | None = None, method: str | None = None
) -> Similarity:
    """How alike the neighbourhoods of u[k] and v[k] are, for given pairs, by five measures.

    N(u) are the vertices that u has an edge to. A common neighbour of one edge alone (in a directed
    graph) counts 0 in `adamic_adar`, whose logarithm is 0 there.

    Args:
        G: a `Graph` or a square sparse matrix; values do not matter.
        u, v: (k,) integer vertices, or two numbers.
        backend: "cpu", "xla" or None.
        method: "merge" (native loops along both rows, on a CPU), "search" (the shorter row's
            entries are searched in the other, elsewhere), or None for these.

    Returns:
        `Similarity(common, jaccard, overlap, adamic_adar, resource_allocation)`.

    Raises:
        TypeError: G is no graph, u or v are no integers.
        ValueError: it is not square, a concrete vertex is out of range, or shapes differ.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: the sum of both degrees of each pair; "search" takes as many steps as the longest of the
    shorter rows has entries, each for all pairs.

    Source: Jaccard, 1901; Adamic, Adar, "Friends and neighbors on the web", Social Networks 25,
    2003; Zhou, Lu, Zhang, "Predicting missing links via local information", European Physical
    Journal B 71, 2009.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> float(jsp.similarity(A, 0, 2).jaccard)
    1.0
    """
    graph = as_graph(G, "similarity", ())
    ends = [check_source(x, graph.n, name) for name, x in (("u", u), ("v", v))]
    if ends[0].shape != ends[1].shape:
        raise ValueError(f"`u` and `v` must be alike; got {ends[0].shape} and {ends[1].shape}.")
    pairs = [jnp.atleast_1d(x) for x in ends]
    found = op(graph, *pairs, backend=backend, method=method)
    return jax.tree.map(lambda x: x.reshape(ends[0].shape), found)


def _types(graph, u, v):
    score = typed(jnp.float32, *u.shape)
    return Similarity(typed(jnp.int32, *u.shape), score, score, score, score)


op = Operation("similarity", constant, types=_types)


def _ready(graph: Graph, *vertices: Array):
    """Sorted rows, degrees, what a common neighbour counts, and (first, last) of each row."""
    A = graph.out if graph.out.sorted else sorted_csr(graph.out)
    degree = jnp.diff(A.indptr).astype(jnp.float32)
    logs = jnp.where(degree > 1, 1 / jnp.log(jnp.maximum(degree, 2)), 0)
    inverse = jnp.where(degree > 0, 1 / jnp.maximum(degree, 1), 0)
    rows = [
        (A.indptr.at[x].get(mode="clip"), A.indptr.at[x + 1].get(mode="clip")) for x in vertices
    ]
    return A.indices, logs, inverse, rows


def _measures(rows: Any, common: Array, adamic: Array, resource: Array) -> Similarity:
    sizes = [(last - first).astype(jnp.float32) for first, last in rows]
    union, least = sizes[0] + sizes[1] - common, jnp.minimum(*sizes)
    jaccard, overlap = (jnp.where(x > 0, common / jnp.maximum(x, 1), 0) for x in (union, least))
    return Similarity(common, jaccard, overlap, adamic, resource)


@op.register("merge", backend="cpu")
def _merge(graph: Graph, u: Array, v: Array) -> Similarity:
    """Both rows are walked in step."""
    indices, logs, inverse, rows = _ready(graph, u, v)
    none = jnp.zeros(u.shape[0], jnp.float32)
    if graph.nse == 0 or u.shape[0] == 0:
        return _measures(rows, none.astype(jnp.int32), none, none)
    wide, joined = plus.one_by_one(none.dtype)
    (first, last), (other_first, other_last) = rows

    def pair(k, common, adamic, resource):
        a_end, b_end = read(last, k), read(other_last, k)

        def step(c):
            a, b, count, one, two = c
            x, y = read(indices, a), read(indices, b)
            hit = x == y
            one = joined(one, jnp.where(hit, read(logs, x), 0))
            two = joined(two, jnp.where(hit, read(inverse, x), 0))
            return a + (x <= y), b + (y <= x), count + hit, one, two

        zero = rounded(jnp.float32(0), wide)
        start = (read(first, k), read(other_first, k), jnp.int32(0), zero, zero)
        found = lax.while_loop(lambda c: (c[0] < a_end) & (c[1] < b_end), step, start)[2:]
        arrays = (common, adamic, resource)
        return tuple(write(a, k, rounded(x, a.dtype)) for a, x in zip(arrays, found, strict=True))

    count = none.astype(jnp.int32)
    return _measures(rows, *each(0, u.shape[0], pair, count, none, none))


@op.register("search")
def _search(graph: Graph, u: Array, v: Array) -> Similarity:
    """Looks up the shorter rows' entries in the longer rows, one entry of all pairs at a time."""
    indices, logs, inverse, rows = _ready(graph, u, v)
    none = jnp.zeros(u.shape[0], jnp.float32)
    if graph.nse == 0 or u.shape[0] == 0:
        return _measures(rows, none.astype(jnp.int32), none, none)
    sizes = [last - first for first, last in rows]
    swap = sizes[0] > sizes[1]
    first, length = (jnp.where(swap, x[1], x[0]) for x in ((rows[0][0], rows[1][0]), sizes))
    low, high = (jnp.where(swap, rows[0][k], rows[1][k]) for k in (0, 1))

    def entry(state):
        k, common, adamic, resource = state
        valid = k < length
        w = indices.at[first + k].get(mode="clip")
        at = lower_bound((indices,), (w,), low, high)
        hit = valid & (at < high) & (indices.at[at].get(mode="clip") == w)
        one, two = (jnp.where(hit, x.at[w].get(mode="clip"), 0) for x in (logs, inverse))
        return k + 1, common + hit, joined(adamic, one), joined(resource, two)

    wide, joined = plus.one_by_one(none.dtype)
    zero = rounded(none, wide)
    start = (jnp.int32(0), none.astype(jnp.int32), zero, zero)
    most = jnp.max(length)
    common, *sums = lax.while_loop(lambda s: s[0] < most, entry, start)[1:]
    return _measures(rows, common, *(rounded(x, none.dtype) for x in sums))
