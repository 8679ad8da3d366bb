"""Betweenness on every platform: many sources together, a column of an array for each."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.loops import while_going
from ..._core.native_loops import computed_once
from ...algebra.monoids import min_
from ...algebra.semirings import plus_second
from ...graph import Graph
from ...ops.products.mxm.api import mxm
from ..common.edges import endpoints_of, without_values
from ..sssp.api import sssp

LEAST_COLUMNS, MOST_COLUMNS = 64, 512  # sources of a batch, where memory allows
ENOUGH = 2**22  # numbers in an array of a batch that keep a device busy
MOST_VALUES = 2**26  # numbers in an array of a batch
MOST_WEIGHTED = 32  # sources of a batch, with an array of all edges for each


def by_levels(
    graph: Graph, sources: Array, endpoints: bool, dtype: np.dtype
) -> tuple[Array, Array]:
    """(n,) what passes each vertex on paths of fewest edges from all `sources`; overflow.

    Forward: the paths of length d + 1 to v are the sum of those of length d to what has an edge to
    v, and of all that is reached only what is d edges away has an edge to what is not. Backward,
    from the last level: with `x(w) = 1 / paths(w) + y(w)` at the level below, y(v) is the sum of x
    over the edges out of v, which lead no further than one level, and `paths(v) y(v)` what passes
    v. Every level, of all sources of a batch, is a product of the pattern with an (n, sources)
    array; no level needs the others taken out of it.
    """
    n = graph.n
    out = without_values(graph.out, dtype)
    inn = out
    if not graph.symmetric:
        inn = out.T.asformat("csr") if graph.inn is None else without_values(graph.inn, dtype)
    columns = int(np.clip(ENOUGH // n, LEAST_COLUMNS, MOST_COLUMNS))
    batches = _batches(sources, n, min(columns, max(1, MOST_VALUES // n)))

    def some(total, sources):
        passed, finite = _passed(out, inn, sources, endpoints, dtype)
        return (total[0] + passed, total[1] | ~finite), None

    nothing = jnp.zeros(n, dtype), jnp.bool_(False)
    return lax.scan(some, nothing, batches)[0]


def _passed(out, inn, sources: Array, endpoints: bool, dtype: np.dtype) -> tuple[Array, Array]:
    """(n,) the dependencies of the sources on each vertex; whether path counts are finite.

    inn: the in-edges of each vertex.
    """
    paths, levels, last = _forward(inn, sources, dtype)
    alone = jnp.where(levels >= 0, 1 / jnp.where(levels >= 0, paths, 1), 0)

    def step(state):
        level, x = state
        y = mxm(out, x, plus_second)
        return level - 1, jnp.where((levels == level - 1) & (level > 1), alone + y, x)

    start = (last, jnp.where((levels == last) & (last > 0), alone, 0))
    _, x = lax.while_loop(lambda s: s[0] > 1, step, start)
    passed = jnp.sum(jnp.where(levels > 0, paths * (x - alone), 0), axis=1)
    if endpoints:
        reached = levels > 0
        passed = passed + jnp.sum(reached, axis=1)
        ends = jnp.sum(reached, axis=0).astype(dtype)
        passed = passed.at[sources].add(ends, mode="drop")
    return passed, jnp.all(jnp.isfinite(paths))


def _forward(inn, sources: Array, dtype: np.dtype) -> tuple[Array, Array, Array]:
    """(n, k) numbers of shortest paths from each source, their lengths (-1: none), the longest."""
    at_source = jnp.arange(inn.shape[0], dtype=jnp.int32)[:, None] == sources

    def step(state):
        level, paths, levels, _ = state
        came = mxm(inn, paths, plus_second)
        new = (levels < 0) & (came > 0)
        paths, levels = jnp.where(new, came, paths), jnp.where(new, level + 1, levels)
        return level + 1, paths, levels, jnp.any(new)

    paths, levels = at_source.astype(dtype), jnp.where(at_source, 0, -1).astype(jnp.int32)
    last, paths, levels, _ = while_going(step, (jnp.int32(0), paths, levels, jnp.bool_(True)))
    return paths, levels, last - 1


def _batches(sources: Array, n: int, together: int) -> Array:
    """(rounds, together) the sources, filled up with n."""
    together = min(together, max(sources.shape[0], 1))
    rounds = -(-sources.shape[0] // together)
    spare = rounds * together - sources.shape[0]
    return jnp.pad(sources, (0, spare), constant_values=n).reshape(rounds, together)


def by_tight_edges(
    graph: Graph, sources: Array, endpoints: bool, dtype: np.dtype
) -> tuple[Array, Array]:
    """The same for paths of least total weight.

    Edges on shortest paths are an acyclic graph T for each source: `sigma = e_s + T^T sigma` counts
    the paths to each vertex, `c = 1 / sigma + T c` and `delta = sigma T c` is what passes it. Each
    is repeated for as many steps as the longest path has edges.
    """
    n = graph.n
    tail, head = endpoints_of(graph)
    together = int(np.clip(MOST_VALUES // graph.nse, 1, MOST_WEIGHTED))

    def some(total, sources):
        tight, reached, steps, lost = _tight_edges(graph, sources, tail, head)

        def sums(start, begin, end):
            def step(_, x):
                flow = jnp.where(tight, x.at[begin].get(mode="clip"), 0)
                return start + jnp.zeros_like(start).at[end].add(flow, mode="drop")

            return lax.fori_loop(0, steps, step, start)

        at_source = jnp.arange(n, dtype=jnp.int32)[:, None] == sources
        paths = sums(at_source.astype(dtype), tail, head)
        alone = jnp.where(reached, 1 / jnp.where(reached, paths, 1), 0)
        shares = jnp.where(tight, sums(alone, head, tail).at[head].get(mode="clip"), 0)
        passed = paths * jnp.zeros_like(paths).at[tail].add(shares, mode="drop")
        if endpoints:
            others = reached & ~at_source
            passed = jnp.where(at_source, jnp.sum(others, axis=0), passed + others)
        else:
            passed = jnp.where(at_source, 0, passed)
        over = jnp.any(~jnp.isfinite(paths)) | lost
        return (total[0] + jnp.sum(passed, 1), total[1] | over), None

    nothing = jnp.zeros(n, dtype), jnp.bool_(False)
    return lax.scan(some, nothing, _batches(sources, n, together))[0]


def _tight_edges(graph: Graph, sources: Array, tail: Array, head: Array):
    """(nse, k) edges on shortest paths, (n, k) what is reached, edges of the longest path, and
    whether the dtype does not hold the distances."""
    found = sssp(graph, sources, parents=False)
    far = found.distances.T
    largest: Any = min_.identity_of(far.dtype)[()]
    start, end = (far.at[v].get(mode="fill", fill_value=largest) for v in (tail, head))
    near = (start < largest) & (start <= end)  # an unsigned sum may wrap
    weights = computed_once(graph.data)[:, None].astype(far.dtype)
    tight = near & (jnp.where(near, start, 0) + weights == end)
    # Weights are > 0, so that no path has n edges; the bound ends the loop where they are not.

    def step(state):
        hops, _, k = state
        further = jnp.where(tight, hops.at[tail].get(mode="clip") + 1, 0)
        new = hops.at[head].max(further, mode="drop")
        return new, jnp.any(new != hops), k + 1

    first = (jnp.zeros(far.shape, jnp.int32), jnp.bool_(True), jnp.int32(0))
    hops, _, _ = lax.while_loop(lambda s: s[1] & (s[2] < graph.n), step, first)
    lost = jnp.any(found.overflow) | jnp.any(tight & (start == end))  # weights that vanish in sums
    lost |= jnp.any((start < largest) & (end == largest) & (weights < largest))
    return tight, far < largest, jnp.max(hops, initial=0), lost
