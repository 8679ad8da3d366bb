"""Components, cores, centralities, communities and trees beside NetworkX and SciPy."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import networkx as nx
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from ..harness import Candidate, blocking, measure, timed, within
from ..options import Options
from ..suite import Workload

BASELINE = "NetworkX"
SOURCES = 8  # of betweenness
MOST_FOR_NETWORKX = 3_000_000  # entries; it takes a microsecond an edge and pass, and much memory
LONGEST_S = 30  # of one call of it; what takes longer is listed among the failures
MOST_SEARCHES = 2_000_000_000  # entries times vertices, of closeness from every vertex


class Case(NamedTuple):
    """One algorithm on one graph.

    Attributes:
        ours: `ours(graph) -> result`.
        check: `check(matrix, result)` raises AssertionError where it is wrong.
        networkx: `networkx(g)`, or None.
        scipy: `scipy(matrix)`, or None.
        directed: whether it takes the graph as it is stored, not joined with its mirror.
        passes: of NetworkX over all edges, about: what a call costs.
    """

    ours: Callable[[Any], Any]
    check: Callable[[Any, Any], None]
    networkx: Callable[[Any], Any] | None = None
    scipy: Callable[[Any], Any] | None = None
    directed: bool = False
    passes: int = 1


def _sampled(g):
    return nx.betweenness_centrality(g, k=min(SOURCES, len(g)), seed=0)


def _sources(graph):
    return np.linspace(0, graph.n - 1, min(SOURCES, graph.n)).astype(np.int32)


def _strong(matrix):
    return sp.csgraph.connected_components(matrix, connection="strong")


CASES = {
    "strong components": Case(
        jsp.strongly_connected_components,
        verify.strong_components,
        lambda g: list(nx.strongly_connected_components(g)),
        _strong,
        directed=True,
    ),
    "core numbers": Case(jsp.core_number, verify.cores, nx.core_number),
    "betweenness, 8 sources": Case(
        lambda G: jsp.betweenness_centrality(G, _sources(G), directed=True),
        lambda A, r: verify.betweenness(
            A, r, np.linspace(0, A.shape[0] - 1, min(SOURCES, A.shape[0])).astype(np.int32)
        ),
        _sampled,
        passes=SOURCES,
    ),
    "closeness": Case(
        jsp.closeness_centrality, verify.closeness, nx.closeness_centrality, passes=-1
    ),
    "clustering": Case(jsp.clustering, verify.clustering, nx.clustering, passes=8),
    "4-truss": Case(
        lambda G: jsp.k_truss(G, 4),
        lambda A, r: verify.truss(A, 4, r),
        lambda g: nx.k_truss(g, 4),
        passes=20,
    ),
    "independent set": Case(
        lambda G: jsp.maximal_independent_set(jax.random.key(0), G),
        verify.independent_set,
        lambda g: nx.maximal_independent_set(g, seed=0),
    ),
    "colors": Case(
        jsp.greedy_color, verify.coloring, lambda g: nx.greedy_color(g, "largest_first")
    ),
    "spanning forest": Case(
        jsp.minimum_spanning_forest,
        verify.forest,
        lambda g: list(nx.minimum_spanning_edges(g)),
        sp.csgraph.minimum_spanning_tree,
    ),
    "label propagation": Case(
        jsp.label_propagation,
        verify.label_propagation,
        lambda g: list(nx.community.label_propagation_communities(g)),
        passes=10,
    ),
    "Louvain": Case(
        lambda G: jsp.louvain(G, weighted=False),
        lambda A, r: verify.communities(A, r, weighted=False),
        lambda g: nx.community.louvain_communities(g, weight=None, seed=0),
        passes=20,
    ),
    "narrow band": Case(
        jsp.reverse_cuthill_mckee,
        verify.cuthill_mckee,
        lambda g: list(nx.utils.reverse_cuthill_mckee_ordering(g)),
        lambda A: sp.csgraph.reverse_cuthill_mckee(A, symmetric_mode=True),
        passes=5,
    ),
    "eigenvector centrality": Case(
        lambda G: jsp.eigenvector_centrality(G, 1e-6, 200, weighted=False),
        lambda A, r: verify.eigenvector(A, r, weighted=False, atol=1e-3),
        lambda g: nx.eigenvector_centrality(g, 1000, 1e-6),
        passes=50,
    ),
}


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph: a case for each algorithm."""
    A, B = workload.matrix(), workload.symmetrised().weighted()
    return records_of(CASES, A, B, workload.name, options)


def records_of(
    cases: dict[str, Case], A: sp.csr_array, B: sp.csr_array, name: str, options: Options
) -> list[dict[str, Any]]:
    """Every case on A, the matrix as it is stored, or on B, the same joined with its mirror."""
    graphs = {
        directed: jsp.prepare(jsp.from_scipy(M), for_=(), symmetric=None if directed else True)
        for directed, M in ((True, A), (False, B))
    }
    networkx = functools.cache(lambda directed: _networkx(A if directed else B, directed))
    records = []
    for label, case in cases.items():
        if label == "closeness" and A.shape[0] * B.nnz > MOST_SEARCHES:
            continue
        matrix, graph = (A if case.directed else B), graphs[case.directed]
        check = functools.partial(case.check, matrix)
        candidates = [Candidate(*_ours(case.ours, matrix, graph), check)]
        passes = A.shape[0] if case.passes < 0 else case.passes
        small = B.nnz * min(passes, 1000) <= 30 * MOST_FOR_NETWORKX and B.nnz <= MOST_FOR_NETWORKX
        if options.baselines and case.networkx is not None and small:
            g = networkx(case.directed)
            call = within(LONGEST_S, functools.partial(case.networkx, g))
            candidates.append(Candidate(BASELINE, call, lambda r: None))
        if options.baselines and case.scipy is not None:
            call = functools.partial(case.scipy, matrix)
            candidates.append(Candidate("SciPy", call, lambda r: None))
        found = measure(candidates, **options.timing())
        for record in found:
            record.update(n=A.shape[0], entries=matrix.nnz, case=f"{name} {label}")
        records += found
    return records


def _ours(
    ours: Callable[[Any], Any], matrix: sp.csr_array, graph: Any
) -> tuple[str, Callable[[], Any]]:
    """(name, program): in float64, and named so, where numbers exceed float32."""
    if not getattr(ours(graph), "overflow", False):
        return "jaxspv", blocking(ours, graph)
    with jax.enable_x64(True):
        wide = jsp.prepare(jsp.from_scipy(matrix.astype(np.float64)), for_=(), symmetric=True)

    def call():
        with jax.enable_x64(True):
            return jax.block_until_ready(ours(wide))

    return "jaxspv, float64", call


def _networkx(matrix: sp.csr_array, directed: bool) -> Any:
    kind = nx.DiGraph if directed else nx.Graph
    return timed(lambda: nx.from_scipy_sparse_array(matrix, create_using=kind))[0]
