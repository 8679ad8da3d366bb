"""BFS from 32 random sources in one traversal, against one search after the other, and SciPy."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp
from jaxspv import verify

from .. import baselines
from ..harness import Candidate, blocking, chained, jitted, measure
from ..options import Options
from ..prepared import prepared
from ..suite import Workload

COUNT = 32
CHECKED = 4  # of them, by the independent checker; the others against one search each


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph; a time is that of all sources."""
    A = workload.matrix()
    graph, costs = prepared(A, "bfs")
    some = np.flatnonzero(np.diff(A.indptr))
    sources = np.random.default_rng(1).choice(some, min(COUNT, len(some)), replace=False)
    levels = [verify.levels_of(A, int(s)) for s in sources]
    at = jnp.asarray(sources, jnp.int32)

    def check(result):
        got = np.asarray(result.levels)
        for k, want in enumerate(levels):
            assert (got[k] == want).all(), f"levels from source {sources[k]} are wrong."
        if result.parents is not None:
            for k in range(min(CHECKED, len(levels))):
                one = jax.tree.map(lambda x, k=k: x[k], result)
                verify.bfs(A, int(sources[k]), one)

    found = []
    for parents in (True, False):
        search = functools.partial(jsp.bfs, parents=parents)
        label = "" if parents else ", no parents"
        notes = {**costs, "parents": parents}
        prepare_s = notes.pop("prepare_s")
        add = functools.partial(Candidate, verify=check, prepare_s=prepare_s, notes=notes)
        found.append(add(f"jaxspv{label}", blocking(search, graph, at)))
        if options.repeats:
            call = _inside(search, graph, at, options.repeats)
            found.append(add(f"jaxspv{label}, inside jit", call, repeats=options.repeats))
        one_by_one = jitted(lambda G, at, search=search: lax.map(lambda s: search(G, s), at))
        found.append(add(f"one after the other{label}", blocking(one_by_one, graph, at)))
    if options.baselines:
        searches = [baselines.scipy_bfs(A, int(s)) for s in sources]
        found.append(Candidate("SciPy", lambda: [search() for search in searches], _orders(levels)))
    records = measure(found, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, sources=len(sources))
    return records


def _inside(search, graph, sources, repeats):
    """`repeats` traversals in one program, each after the one before."""

    def step(carry, graph):
        at, _ = carry
        result = search(graph, at)
        return at + result.levels[0, at[0]], result  # the level of a source is 0

    like = jax.eval_shape(search, graph, sources)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), like)
    program = chained(step, repeats, unroll=jax.default_backend() == "gpu")
    return lambda: jax.block_until_ready(program((sources, empty), graph))[1]


def _orders(levels):
    def check(results):
        for want, (order, _) in zip(levels, results, strict=True):
            assert len(order) == (want >= 0).sum(), "another number of vertices is reached."

    return check
