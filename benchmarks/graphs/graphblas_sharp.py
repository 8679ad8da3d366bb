"""What GraphBLAS-sharp measured, on its matrices or others of their size: operations and searches.

Their experiment is BFS on four matrices of the SuiteSparse collection. arc130 is at hand; the
others have named substitutes of about as many entries: a map of routers for a call graph, a crawl
of the web for a larger one, R-MAT of 4 edges a vertex for citations of patents (where `--max-scale`
is 21 or more, as it is on a GPU). Beside BFS what their library is made of: products, sums,
shortest paths, triangles, betweenness. Eager calls, as theirs are, beside SciPy's and NetworkX's.

Source: "GraphBLAS-sharp", 2021, section 5; Davis, Hu, "The University of Florida sparse matrix
collection", TOMS 2011.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from .. import suite
from ..baselines import scipy_bfs, scipy_dijkstra
from ..options import Options
from . import algorithms
from .algorithms import Case

MATRICES = {  # theirs: vertices, entries, what stands for it here
    "arc130": (130, 1_282, "arc130"),
    "linux-call-graph": (324_085, 1_208_908, "caidaRouterLevel"),
    "webbase-1M": (1_000_005, 3_105_536, "cnr-2000"),
    "cit-Patents": (3_774_768, 16_518_948, "rmat22, 4 edges a vertex"),
}
SCALE, EDGES = 22, 4
SOURCES = 4  # of betweenness
BOUND = 2e-5
MOST_PRODUCTS = 2_000_000_000  # of a case that SciPy computes too; those of R-MAT fill a host


def workloads(options: Options) -> list[suite.Workload]:
    """The matrix or the substitute of each."""
    found = []
    for theirs, (n, entries, name) in MATRICES.items():
        if name in suite.files():
            one = suite.get(name)
        elif options.max_scale >= SCALE - 1 and name.startswith("rmat"):
            one = suite.Workload(name, _sparse_rmat, "jaxspv.generators.rmat", cached=True)
        else:
            continue
        origin = one.origin if name == theirs else f"{one.origin}, for {theirs}: {n}, {entries}"
        found.append(suite.Workload(name, one.matrix, origin))
    return found


def _sparse_rmat() -> sp.csr_array:
    return jsp.generators.rmat(jax.random.key(0), SCALE, EDGES).to_scipy()


def cases(A: sp.csr_array, B: sp.csr_array) -> dict[str, Case]:
    """Operations and a search on A as it is, the rest on B, which is symmetric and weighted."""
    x = np.random.default_rng(0).random(A.shape[1], np.float32)
    vector, start = jnp.asarray(x), int(np.argmax(np.diff(A.indptr)))
    sources = np.linspace(0, A.shape[0] - 1, min(SOURCES, A.shape[0])).astype(np.int32)

    def betweenness(G):
        return jsp.betweenness_centrality(G, sources, directed=True)

    def by_networkx(g):
        return nx.betweenness_centrality_subset(g, sources.tolist(), list(g))

    def operation(ours, scipy):
        return Case(ours, functools.partial(_same, scipy), scipy=scipy, directed=True)

    def searched(scipy, M):  # its own copy of the matrix is made before the clock starts
        call = scipy(M, start)
        return lambda _: call()

    return {
        "mxv": operation(lambda G: jsp.mxv(G, vector), lambda A: A @ x.astype(A.dtype)),
        "mxm, A A": operation(lambda G: jsp.mxm(G.out, G.out), lambda A: A @ A),
        "ewise_add, A and its transpose": operation(
            lambda G: jsp.ewise_add(G.out, G.out.T), lambda A: A + A.T
        ),
        "BFS": Case(
            lambda G: jsp.bfs(G, start),
            lambda A, r: verify.bfs(A, start, r),
            scipy=searched(scipy_bfs, A),
            directed=True,
        ),
        "SSSP": Case(
            lambda G: jsp.sssp(G, start),
            lambda B, r: verify.sssp(B, start, r),
            scipy=searched(scipy_dijkstra, B),
        ),
        "triangles": Case(jsp.triangle_count, _counted, scipy=_triangles),
        "betweenness, 4 sources": Case(
            betweenness,
            # Sums of float32 over up to 18,000 edges of a vertex of cnr-2000.
            lambda B, r: verify.betweenness(B, r, sources, rtol=1e-3),
            by_networkx,
            passes=10 * SOURCES,
        ),
    }


def run(workload: suite.Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix: a case for each operation."""
    A, B = workload.matrix(), workload.symmetrised().weighted()
    lower, found = _lower(B), cases(A, B)
    for name, M in (("mxm, A A", A), ("triangles", lower)):
        if int(np.diff(M.tocsc().indptr) @ np.diff(M.indptr).astype(np.int64)) > MOST_PRODUCTS:
            del found[name]
    return algorithms.records_of(found, A, B, workload.name, options)


def _same(scipy: Any, A: sp.csr_array, got: Any) -> None:
    """Within the rounding of the float32 terms that are summed up."""
    result = got.to_scipy() if hasattr(got, "to_scipy") else np.asarray(got, np.float64)
    off = abs(result - scipy(A.astype(np.float64)))
    excess = (off - BOUND * scipy(abs(A).astype(np.float64))).max()
    assert excess <= 1e-30, f"off by {excess:.1e} beyond rounding"


def _lower(B: sp.csr_array) -> sp.csr_array:
    return sp.csr_array(sp.tril(B != 0, -1), dtype=np.int64)


def _triangles(B: sp.csr_array) -> Any:
    L = _lower(B)
    return (L @ L).multiply(L).sum()


def _counted(B: sp.csr_array, result: Any) -> None:
    got, want = int(result.count), int(_triangles(B))
    assert got == want, f"{got} triangles are counted, not {want}"
