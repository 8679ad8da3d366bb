"""Algorithms and operations on every format and dtype: right, or refused by naming the dtype."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse

import jaxspv as jsp
from jaxspv import verify

N = 8
EDGES = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3), (1, 3), (5, 6)]
KINDS = {  # name -> (dtype, format)
    "csr": ("float32", "csr"),
    "coo": ("float32", "coo"),
    "csc": ("float32", "csc"),
    "float16": ("float16", "csr"),
    "bfloat16": ("bfloat16", "csr"),
    "int8": ("int8", "csr"),
    "uint8": ("uint8", "csr"),
    "int64": ("int64", "csr"),
    "bool": ("bool", "csr"),
    "complex64": ("complex64", "csr"),
}
LABELS = np.array([0, 0, 0, 1, 1, 1, 1, 7])
HALF = ("float16", "bfloat16")


def dense(dtype):
    """Weights 1, 2, 3 of an undirected graph as the dtype has them; the last vertex is alone."""
    D = np.zeros((N, N))
    for i, j in EDGES:
        D[i, j] = D[j, i] = 1 + (i + j) % 3
    if dtype == "complex64":
        return D * (1 + 1j)
    return (D > 0).astype(float) if dtype == "bool" else D


def matrix(dtype, format):
    return jsp.from_dense(dense(dtype)).astype(dtype).asformat(format)


def near(got, want):
    got = np.asarray(got)
    want = want > 0 if got.dtype == bool else want
    loose = 1e-2 if got.dtype.name in HALF else 1e-4
    np.testing.assert_allclose(got.astype(np.complex128), want, rtol=loose, atol=loose / 10)


def soft(S, result):
    """`-T log` of the sums over all walks of exp(-length / T)."""
    T, D = 0.1, S.toarray()
    step = np.where(D > 0, np.exp(-D / T), 0)
    with np.errstate(divide="ignore"):
        want = -T * np.log(np.linalg.inv(np.eye(N) - step)[0])
    np.testing.assert_allclose(result.distances, want, atol=1e-4)


def walked(S, walk):
    assert all(S[a, b] for a, b in zip(walk[:-1], walk[1:], strict=True)), walk


def weighted_paths(S, found):
    want = scipy.sparse.csgraph.dijkstra(S)
    near(found, want)


A0 = 0.05
STEPS = 3000
KEY = 0
CALLS = {  # name -> (call of A, oracle of (S, result)); S is SciPy's, float64
    "bfs": (lambda A: jsp.bfs(A, 0), lambda S, r: verify.bfs(S, 0, r)),
    "sssp": (lambda A: jsp.sssp(A, 0), lambda S, r: verify.sssp(S, 0, r)),
    "pagerank": (
        lambda A: jsp.pagerank(A, tol=1e-7),
        lambda S, r: verify.pagerank(S, r, atol=1e-5),
    ),
    "hits": (
        lambda A: jsp.hits(A, tol=1e-6, max_iterations=STEPS),
        lambda S, r: verify.hits(S, r, atol=1e-3),
    ),
    "katz": (
        lambda A: jsp.katz_centrality(A, A0, max_iterations=STEPS),
        lambda S, r: verify.katz(S, r, A0),
    ),
    "eigenvector": (
        lambda A: jsp.eigenvector_centrality(A, max_iterations=STEPS),
        lambda S, r: verify.eigenvector(S, r, atol=1e-3),
    ),
    "betweenness": (jsp.betweenness_centrality, verify.betweenness),
    "closeness": (jsp.closeness_centrality, verify.closeness),
    "clustering": (jsp.clustering, verify.clustering),
    "average_clustering": (jsp.average_clustering, verify.average_clustering),
    "square_clustering": (jsp.square_clustering, verify.square_clustering),
    "triangle_centrality": (jsp.triangle_centrality, verify.triangle_centrality),
    "k_truss": (lambda A: jsp.k_truss(A, 3), lambda S, r: verify.truss(S, 3, r)),
    "label_propagation": (jsp.label_propagation, verify.label_propagation),
    "louvain": (jsp.louvain, verify.communities),
    "modularity": (
        lambda A: jsp.modularity(A, LABELS),
        lambda S, r: near(r, verify.modularity_of(S, LABELS)),
    ),
    "components": (jsp.connected_components, verify.components),
    "bipartition": (jsp.bipartition, verify.bipartition),
    "core_number": (jsp.core_number, verify.cores),
    "strong": (jsp.strongly_connected_components, verify.strong_components),
    "triangles": (jsp.triangle_count, verify.triangles),
    "coloring": (jsp.greedy_color, verify.coloring),
    "independent_set": (
        lambda A: jsp.maximal_independent_set(jax.random.key(KEY), A),
        verify.independent_set,
    ),
    "matching": (jsp.maximum_bipartite_matching, verify.matching),
    "cuthill_mckee": (jsp.reverse_cuthill_mckee, verify.cuthill_mckee),
    "acyclic": (jsp.is_directed_acyclic_graph, lambda S, r: near(~r, np.ones(()))),
    "diameter": (jsp.diameter, verify.diameter),
    "eccentricity": (jsp.eccentricity, verify.eccentricity),
    "all_pairs": (
        lambda A: (
            jsp.all_pairs_shortest_path_length(A, weighted=True).lengths.astype(jnp.float32)
            if jnp.issubdtype(A.dtype, jnp.inexact)
            else jsp.all_pairs_shortest_path_length(A, weighted=True).lengths[:-1, :-1]
        ),
        lambda S, r: weighted_paths(S[: len(r), : len(r)], r),
    ),
    "random_walk": (
        lambda A: jsp.learning.random_walk(jax.random.key(KEY), A, jnp.int32(0), 5),
        lambda S, r: walked(S, np.asarray(r)),
    ),
    "soft_sssp": (lambda A: jsp.soft_sssp(A, 0, 0.1), soft),
    "spanning_forest": (jsp.minimum_spanning_forest, verify.forest),
    "mxv": (lambda A: jsp.mxv(A, jnp.ones(N, A.dtype)), lambda S, r: near(r, S.sum(1))),
    "vxm": (lambda A: jsp.vxm(jnp.ones(N, A.dtype), A), lambda S, r: near(r, S.sum(0))),
    "mxm": (lambda A: jsp.mxm(A, A).todense(), lambda S, r: near(r, (S @ S).toarray())),
    "spmm": (
        lambda A: jsp.mxm(A, jnp.ones((N, 2), A.dtype)),
        lambda S, r: near(r, np.stack([S.sum(1)] * 2, 1)),
    ),
    "reduce": (lambda A: jsp.reduce(A, axis=1).todense(), lambda S, r: near(r, S.sum(1))),
    "reduce_all": (jsp.reduce, lambda S, r: near(r, S.sum())),
    "mean": (lambda A: A.mean(), lambda S, r: near(r, S.mean())),
    "max": (lambda A: A.max(), lambda S, r: near(r, S.max())),
    "aggregate": (jsp.learning.aggregate, lambda S, r: near(r, S.sum(1))),
    "variance": (
        lambda A: jsp.learning.aggregate(A, "var"),
        lambda S, r: near(r, [np.var(S[[i]].data) if S[[i]].nnz else 0 for i in range(N)]),
    ),
    "normalize": (
        lambda A: jsp.learning.normalize(A, "row").todense(),
        lambda S, r: near(r, S.toarray() / np.where(S.sum(1) == 0, 1, S.sum(1))[:, None]),
    ),
    "ewise_add": (lambda A: jsp.ewise_add(A, A).todense(), lambda S, r: near(r, 2 * S.toarray())),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("kind", KINDS)
def test_right_or_refused(kind, name):
    dtype, format = KINDS[kind]
    call, oracle = CALLS[name]
    with jax.enable_x64(True) if kind == "int64" else contextlib.nullcontext():
        A = matrix(dtype, format)
        assert A.dtype == dtype
        try:
            found = call(A)
        except (TypeError, ValueError, NotImplementedError) as error:
            assert dtype in str(error), f"{type(error).__name__}: {error}"
            return
        oracle(scipy.sparse.csr_array(dense(dtype)), found)
