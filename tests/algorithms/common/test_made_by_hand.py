"""Every algorithm takes matrices made by hand whose rows are unsorted or list a place twice."""

import dataclasses
import inspect

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

N, CAPACITY = 24, 160
RNG = np.random.default_rng(5)
KEY = jax.random.key(0)


def matrix(row, col, value, **flags):
    """A CSR of slots as they are listed, row by row, with padding."""
    order = np.argsort(row, kind="stable")
    indptr = np.searchsorted(row[order], np.arange(N + 1)).astype(np.int32)
    spare = (0, CAPACITY - len(row))
    data = np.pad(value[order], spare, constant_values=np.nan)
    indices = np.pad(col[order], spare, constant_values=N).astype(np.int32)
    arrays = map(jnp.asarray, (data, indices, indptr, np.bool_(False)))
    return jsp.CSR(*arrays, (N, N), **flags)


def forms(row, col, value):
    """The matrix as the library makes it, with unsorted rows, and with half of it listed twice."""
    mixed = RNG.permutation(len(row))
    twice = np.r_[mixed, mixed[::2]]
    share = np.where(np.isin(twice, mixed[::2]), value[twice] / 2, value[twice])
    yield matrix(row, col, value)
    yield matrix(row[mixed], col[mixed], value[mixed], sorted=False)
    repeated = matrix(row[twice], col[twice], share, sorted=False, unique=False)
    yield repeated
    coo = repeated.rowcol()
    yield jsp.COO(repeated.data, *coo, repeated.overflow, (N, N), sorted=False, unique=False)


def symmetric(edges):
    low, high = np.unique(np.sort(RNG.integers(0, N, (2, edges)), axis=0), axis=1)
    low, high = low[low != high], high[low != high]
    weight = RNG.integers(1, 9, len(low)).astype(np.float32)
    ends = np.r_[low, high], np.r_[high, low]
    order = np.lexsort(ends[::-1])
    return ends[0][order], ends[1][order], np.r_[weight, weight][order]


def acyclic(row, col, value):
    return row[row < col], col[row < col], value[row < col]


KINDS = ("unsorted", "repeated", "repeated in a COO")
EDGES = symmetric(50)
BOTH, FORWARD = list(forms(*EDGES)), list(forms(*acyclic(*EDGES)))
START = jnp.full(N, jnp.inf).at[0].set(0.0)
CALLS = {
    "bfs": lambda A: jsp.bfs(A, 0, deterministic=True),
    "sssp": lambda A: jsp.sssp(A, 0, deterministic=True)[:2],
    "soft_sssp": lambda A: jsp.soft_sssp(A.with_data(A.data * 9), 0, 1.0).distances,
    "pagerank": jsp.pagerank,
    "fixpoint": lambda A: jsp.fixpoint(A, START, jsp.semirings.min_plus, monotone=True).x,
    "closure": lambda A: jsp.closure(A, jsp.semirings.min_plus, start=START),
    "connected_components": jsp.connected_components,
    "strongly_connected_components": jsp.strongly_connected_components,
    "triangle_count": jsp.triangle_count,
    "clustering": jsp.clustering,
    "average_clustering": jsp.average_clustering,
    "square_clustering": jsp.square_clustering,
    "triangle_centrality": jsp.triangle_centrality,
    "k_truss": lambda A: jsp.k_truss(A, 4).todense(),
    "core_number": jsp.core_number,
    "k_core": lambda A: jsp.k_core(A, 3),
    "betweenness_centrality": jsp.betweenness_centrality,
    "closeness_centrality": jsp.closeness_centrality,
    "eigenvector_centrality": jsp.eigenvector_centrality,
    "katz_centrality": lambda A: jsp.katz_centrality(A, alpha=0.01),
    "hits": jsp.hits,
    "maximal_independent_set": lambda A: jsp.maximal_independent_set(KEY, A),
    "greedy_color": jsp.greedy_color,
    "maximum_bipartite_matching": jsp.maximum_bipartite_matching,
    "minimum_spanning_forest": lambda A: jsp.minimum_spanning_forest(A)._replace(weights=None),
    "spanning_tree": lambda A: jsp.spanning_tree(A, 0).parents >= 0,
    "label_propagation": jsp.label_propagation,
    "louvain": jsp.louvain,
    "modularity": lambda A: jsp.modularity(A, np.arange(N) % 3),
    "reverse_cuthill_mckee": jsp.reverse_cuthill_mckee,
    "eccentricity": jsp.eccentricity,
    "diameter": jsp.diameter,
    "bipartition": jsp.bipartition,
    "is_bipartite": jsp.is_bipartite,
    "degree_histogram": jsp.degree_histogram,
    "similarity": lambda A: jsp.similarity(A, jnp.arange(6), jnp.arange(6)[::-1]),
    "has_path": lambda A: jsp.has_path(A, 0, 5),
    "astar": lambda A: jsp.astar(A, 0, 5, jnp.zeros(N)),
    "all_pairs_shortest_path_length": jsp.all_pairs_shortest_path_length,
    "k_shortest_paths": lambda A: jsp.k_shortest_paths(A, 0, 5, 3),
    "random_walk": lambda A: jsp.learning.random_walk(KEY, A, np.arange(4), 5, p=0.5),
    "topological_sort": jsp.topological_sort,
    "is_directed_acyclic_graph": jsp.is_directed_acyclic_graph,
    "transitive_reduction": lambda A: jsp.transitive_reduction(A).todense(),
}
ACYCLIC = ("topological_sort", "is_directed_acyclic_graph", "transitive_reduction")


def test_every_algorithm_is_here():
    public = (getattr(jsp, name) for name in dir(jsp))
    found = {
        f.__name__
        for f in public
        if inspect.isfunction(f) and inspect.unwrap(f).__module__.startswith("jaxspv.algorithms")
    }
    assert found | {"random_walk"} == set(CALLS)


@pytest.mark.parametrize("kind", KINDS)
def test_the_objects_are_legal(kind):
    for made in (BOTH, FORWARD):
        made[0].check_invariants()
        A = made[1 + KINDS.index(kind)].check_invariants()
        np.testing.assert_array_equal(A.todense(), made[0].todense())


@pytest.mark.parametrize("name", CALLS)
def test_it_answers_as_for_the_canonical_matrix(name):
    canonical, *others = FORWARD if name in ACYCLIC else BOTH
    want = CALLS[name](canonical)
    for kind, A in zip(KINDS, others, strict=True):
        chex.assert_trees_all_close(CALLS[name](A), want, rtol=1e-5, atol=1e-6, custom_message=kind)


@pytest.mark.parametrize("name", ["pagerank", "triangle_count", "core_number"])
def test_as_a_graph_made_by_hand_and_under_jit(name):
    canonical, *others = BOTH
    want = CALLS[name](canonical)
    for A in others[:2]:
        graph = jsp.Graph(A, symmetric=True)
        chex.assert_trees_all_close(CALLS[name](graph), want, rtol=1e-5)
        chex.assert_trees_all_close(jax.jit(CALLS[name])(graph), want, rtol=1e-5)
        chex.assert_trees_all_close(CALLS[name](jsp.prepare(A)), want, rtol=1e-5)


def test_slopes_go_to_every_entry_of_a_place():
    canonical, _, repeated, _ = BOTH

    def far(A):
        found = jsp.sssp(A, 0).distances
        return jnp.sum(jnp.where(jnp.isfinite(found), found, 0))

    want = dataclasses.replace(canonical, data=jsp.grad(far)(canonical).data).todense()
    slope = np.asarray(jsp.grad(far)(repeated).data)
    row, col = (np.asarray(x) for x in repeated.rowcol())
    valid = row < N
    np.testing.assert_allclose(slope[valid], np.asarray(want)[row[valid], col[valid]])
    assert (slope[~valid] == 0).all() and np.count_nonzero(slope) > 3


def test_samples_name_the_slots_of_the_matrix_given():
    canonical, mixed, repeated, _ = BOTH
    for A in (canonical, mixed, canonical.T, mixed.asformat("coo").T):
        weights = jnp.where(jnp.arange(A.nse) < A.count, A.data, 0)
        for odds in (None, weights):
            found = jsp.learning.sample_neighbors(KEY, A, np.arange(4), (3, 2), weights=odds)
            row, col = A.rowcol()
            for before, nodes, slots in zip(
                (np.arange(4), *found.nodes), found.nodes, found.slots, strict=False
            ):
                valid = np.asarray(slots) < A.nse
                assert valid.any()
                tails = np.broadcast_to(np.asarray(before)[..., None], nodes.shape)
                np.testing.assert_array_equal(np.asarray(row)[slots[valid]], tails[valid])
                np.testing.assert_array_equal(np.asarray(col)[slots[valid]], nodes[valid])
    with pytest.raises(ValueError, match="lists no place twice"):
        jsp.learning.sample_neighbors(KEY, repeated, np.arange(4), 3, weights=repeated.data)
