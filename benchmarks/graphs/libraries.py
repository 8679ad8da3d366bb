"""One question, every library at hand, each called as its users call it; for a CPU.

jaxspv, SciPy, NetworkX, python-graphblas and `jax.experimental.sparse`: products, searches, paths,
PageRank, triangles. Matrices are converted before the clock runs.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import jax.numpy as jnp
import networkx as nx
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import baselines
from ..harness import Candidate, blocking, measure
from ..options import Options
from ..road.graphblas import pattern
from ..suite import Workload

BASELINE = "jaxspv"
DAMPING, TOLERANCE = 0.85, 1e-6
MOST_FOR_NETWORKX = 500_000  # entries


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph, symmetric and without self loops, its lengths 1 to 10."""
    A = pattern(workload.matrix())
    lengths = A.copy()
    low, high = np.minimum(*_ends(A)), np.maximum(*_ends(A))
    lengths.data = ((low * 7919 + high * 104729) % 10 + 1).astype(np.float32)
    source, found = int(np.argmax(np.diff(A.indptr))), []
    for question, programs in questions(A, lengths, source):
        names = programs if options.baselines else ["jaxspv"]
        first = np.asarray(programs["SciPy" if "SciPy" in programs else "python-graphblas"]())
        check = functools.partial(_same, first, 3e-5 if question == "PageRank" else 1e-5)
        candidates = [Candidate(name, programs[name], check) for name in names]
        for record in measure(candidates, **options.timing()):
            case = {"case": f"{workload.name} {question}", "question": question}
            found.append(record | case | {"n": A.shape[0], "entries": A.nnz})
    return found


def _ends(A: sp.csr_array) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(A.shape[0]), np.diff(A.indptr)), A.indices.astype(np.int64)


def _same(want: np.ndarray, atol: float, found: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), want, rtol=1e-5, atol=atol)


Programs = dict[str, Callable[[], Any]]


def questions(
    A: sp.csr_array, lengths: sp.csr_array, source: int
) -> Iterator[tuple[str, Programs]]:
    """Name, and a program of each library that gives the answer as an array."""
    from . import by_graphblas as gb

    mine, far = jsp.from_scipy(A), jsp.from_scipy(lengths)
    G = jsp.prepare(mine, for_=("bfs", "pagerank", "mxv"))
    F = jsp.prepare(far, for_="sssp")
    theirs, their_far = gb.matrix(A), gb.matrix(lengths)
    x = np.linspace(0, 1, A.shape[0], dtype=np.float32)
    bcoo, M = baselines.bcoo_spmv(A)
    v, w = jnp.asarray(x), gb.vector(x)
    dijkstra = baselines.scipy_dijkstra(lengths, source)
    power = baselines.scipy_pagerank(A, DAMPING, TOLERANCE, 200)
    yield (
        "product",
        {
            "jaxspv": blocking(lambda G, v: G @ v, G, v),
            "SciPy": baselines.scipy_spmv(A, x),
            "python-graphblas": lambda: gb.product(theirs, w),
            "BCOO": lambda: bcoo(M, v).block_until_ready(),
        },
    )
    bfs = {
        "jaxspv": blocking(lambda G, s: jsp.bfs(G, s, parents=False).levels, G, source),
        "python-graphblas": lambda: gb.bfs(theirs, source),
    }
    sssp = {
        "jaxspv": blocking(lambda F, s: jsp.sssp(F, s, parents=False).distances, F, source),
        "SciPy": lambda: dijkstra()[0],
        "python-graphblas": lambda: gb.sssp(their_far, source),
    }
    rank = {
        "jaxspv": blocking(lambda G: jsp.pagerank(G, DAMPING, tol=TOLERANCE).scores, G),
        "SciPy": lambda: power()[0],
        "python-graphblas": lambda: gb.pagerank(theirs, DAMPING, TOLERANCE),
    }
    triangles = {
        "jaxspv": blocking(lambda A: jsp.triangle_count(A).count, mine),
        "python-graphblas": lambda: gb.triangles(theirs),
    }
    if A.nnz <= MOST_FOR_NETWORKX:
        H = nx.from_scipy_sparse_array(lengths)
        searched = baselines.networkx_bfs(A, source)
        bfs["NetworkX"] = lambda: searched().levels
        sssp["NetworkX"] = lambda: _array(
            nx.single_source_dijkstra_path_length(H, source), A.shape[0]
        )
        ranked = baselines.networkx_pagerank(A, DAMPING, TOLERANCE)
        rank["NetworkX"] = lambda: ranked()[0]
        triangles["NetworkX"] = lambda: sum(nx.triangles(H).values()) // 3
    yield from (("BFS", bfs), ("shortest paths", sssp), ("PageRank", rank))
    yield "triangles", triangles


def _array(found: dict[int, float], n: int) -> np.ndarray:
    values = np.full(n, np.inf)
    values[list(found)] = list(found.values())
    return values
