"""BFS on prepared graphs against SciPy, NetworkX and the dense-frontier loop in JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxspv as jsp
from jaxspv import verify

from .. import baselines
from ..harness import Candidate, measure
from ..options import Options
from ..prepared import candidates, component_edges, finish, prepared
from ..suite import Workload

BASELINE = "SciPy"


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph."""
    A, source = workload.matrix(), workload.start()
    graph, costs = prepared(A, "bfs")
    levels = verify.levels_of(A, source)

    def check(result):
        if result.parents is not None:
            return verify.bfs(A, source, result)
        return _equal(levels, result.levels)

    found = candidates(jsp.bfs, graph, source, check, costs, options)
    if options.baselines:
        found += _others(A, source, levels)
    records = measure(found, **options.timing())
    reached = levels >= 0
    return finish(
        records,
        n=A.shape[0],
        entries=A.nnz,
        symmetric=bool(graph.symmetric),
        source=source,
        levels=int(levels.max()) + 1,
        reached=int(reached.sum()),
        edges=component_edges(A, reached, graph.symmetric),
    )


def _others(A, source, levels):
    def order_is_right(result):
        order, before = result
        assert len(order) == (levels >= 0).sum(), "another number of vertices is reached."
        child = order[1:]
        assert (levels[before[child]] == levels[child] - 1).all(), "a predecessor is no parent."

    def levels_are_right(result):
        _equal(levels, result.levels)

    found = [
        Candidate(BASELINE, baselines.scipy_bfs(A, source), order_is_right),
        Candidate("dense-frontier loop", baselines.dense_frontier_bfs(A, source), levels_are_right),
    ]
    if A.nnz <= baselines.SMALL_FOR_NETWORKX:
        call = baselines.networkx_bfs(A, source)
        found.append(Candidate("NetworkX", call, levels_are_right))
    return found


def _equal(want: np.ndarray, got: Any) -> None:
    wrong = np.flatnonzero(np.asarray(got) != want)
    assert not len(wrong), (
        f"level of vertex {wrong[0]} is not {want[wrong[0]]} ({len(wrong)} wrong)."
    )
