"""SSSP with the weights w(i, j) in 1..64 on prepared graphs, against SciPy's Dijkstra."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from .. import baselines
from ..harness import Candidate, measure
from ..options import Options
from ..prepared import candidates, component_edges, finish, prepared
from ..suite import Workload

BASELINE = "SciPy"
LARGE = 30_000_000  # entries from which Dijkstra takes minutes: a certificate is checked instead


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph."""
    A, source = workload.weighted(), workload.start()
    graph, costs = prepared(A, "sssp")
    dijkstra = None if A.nnz > LARGE else baselines.scipy_dijkstra(A, source)
    known = [] if dijkstra is None else [dijkstra()[0]]

    def check(result):
        distances = np.asarray(result.distances, np.float64)
        if not known:
            check_certificate(A, source, distances)
            known.append(distances)
        _equal(known[0], distances)
        if result.parents is not None:
            verify.tree(A, source, result.parents, np.isfinite(distances))

    found = candidates(jsp.sssp, graph, source, check, costs, options)
    if options.baselines and dijkstra is not None:
        found.append(Candidate(BASELINE, dijkstra, lambda result: _equal(known[0], result[0])))
    records = measure(found, **options.timing())
    reached = np.isfinite(known[0])
    return finish(
        records,
        n=A.shape[0],
        entries=A.nnz,
        symmetric=bool(graph.symmetric),
        source=source,
        reached=int(reached.sum()),
        edges=component_edges(A, reached, graph.symmetric),
    )


def check_certificate(A: sp.csr_array, source: int, distances: np.ndarray) -> None:
    """Proves distances right without computing them: weights must be positive.

    `d[source] = 0`, no edge improves (`d[v] <= d[u] + w`), and every other finite vertex has a
    tight edge (`d[v] = d[u] + w`): by induction along tight edges d is the length of a path, and by
    induction along any path no path is shorter. O(entries), in slices of rows.
    """
    n, degree = A.shape[0], np.diff(A.indptr)
    assert distances[source] == 0, "the distance of the source is not 0."
    assert A.data.min(initial=1) > 0, "the certificate needs positive weights."
    tight = np.zeros(n, bool)
    step = max(1, n // 64)
    for first in range(0, n, step):
        last = min(n, first + step)
        slots = slice(A.indptr[first], A.indptr[last])
        head = np.repeat(distances[first:last], degree[first:last])
        tail, through = distances[A.indices[slots]], head + A.data[slots]
        assert (tail <= through).all(), f"an edge out of vertices {first}..{last - 1} improves."
        tight[A.indices[slots][(tail == through) & np.isfinite(head)]] = True
    tight[source] = True
    loose = np.flatnonzero(np.isfinite(distances) & ~tight)
    assert not len(loose), f"no edge gives the distance of vertex {loose[0]} ({len(loose)} such)."


def _equal(want: np.ndarray, got: Any) -> None:
    """Exactly: sums of integer weights below 2^24 are exact in float32."""
    wrong = np.flatnonzero(np.asarray(got) != want)
    assert not len(wrong), (
        f"distance of vertex {wrong[0]} is {got[wrong[0]]}, not {want[wrong[0]]} "
        f"({len(wrong)} wrong)."
    )
