"""Rooted spanning trees: every form, several roots, ghosts, refusals."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph_cases import random_matrix

import jaxspv as jsp
from jaxspv import verify
from jaxspv._core.compat import kernels_refused


@pytest.mark.parametrize("backend", [None, "cpu", "xla"])
@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("entries", [0, 30, 100])
def test_trees_of_random_graphs(entries, symmetric, backend):
    S = random_matrix(60, entries, entries, symmetric=symmetric)
    A = jsp.from_scipy(S)
    for graph in (A, jsp.prepare(A), jsp.prepare(A, for_=())):
        for root in (0, 59):
            verify.spanning_tree(S, root, jsp.spanning_tree(graph, root, backend=backend))


def test_several_roots_and_roots_that_are_traced():
    S = random_matrix(60, 100, 1, symmetric=True)
    G = jsp.prepare(jsp.from_scipy(S))
    roots = jnp.array([0, 7, 59])
    found = jsp.spanning_tree(G, roots)
    batched = jax.jit(jax.vmap(lambda r: jsp.spanning_tree(G, r).parents))(roots)
    for k, root in enumerate(roots.tolist()):
        verify.tree(S, root, found.parents[k], verify.levels_of(S, root) >= 0)
        verify.tree(S, root, batched[k], verify.levels_of(S, root) >= 0)
    assert (jax.jit(lambda r: jsp.spanning_tree(G, r).parents)(60) == -1).all()


def test_ghosts_have_no_parent():
    S = random_matrix(50, 100, 2, symmetric=True)
    H = jsp.pad(jsp.from_scipy(S), n=64)
    found = jsp.spanning_tree(H, 3)
    assert (found.parents[50:] == -1).all()
    verify.spanning_tree(S, 3, jsp.unpad(found, H))


def test_paths():
    A = jsp.from_edges(np.arange(9), np.arange(1, 10), shape=(11, 11))
    found = jsp.spanning_tree(A, 2)
    assert found.path_to(6).tolist() == [2, 3, 4, 5, 6]
    assert found.path_to(10).tolist() == found.path_to(0).tolist() == []


def test_refusals():
    A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    with pytest.raises(ValueError, match=r"`root` must lie in \[0, 2\)"):
        jsp.spanning_tree(A, 2)
    with pytest.raises(TypeError, match="`root` must be an integer vertex"):
        jsp.spanning_tree(A, "a")
    with pytest.raises(ValueError, match="square"):
        jsp.spanning_tree(jsp.from_edges([0], [1], shape=(2, 3)), 0)


@pytest.mark.skipif(kernels_refused() is not None, reason=str(kernels_refused()))
def test_a_gpu_takes_clusters_of_symmetric_graphs():
    A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    assert "not known to have both directions" in str(jsp.explain("spanning_tree", A))
    assert jsp.explain("spanning_tree", A).on("cuda").name == "bfs"
    G = jsp.prepare(A, for_=())
    assert jsp.explain("spanning_tree", G).on("cuda").name == "clusters"


def test_the_checker_finds_a_wrong_tree():
    S = random_matrix(20, 60, 3, symmetric=True)
    found = jsp.spanning_tree(jsp.from_scipy(S), 0)
    child = np.flatnonzero((found.parents >= 0) & (np.arange(20) != 0))[0]
    for wrong in (-1, child):
        with pytest.raises(AssertionError):
            verify.spanning_tree(S, 0, found._replace(parents=found.parents.at[child].set(wrong)))


@pytest.mark.gpu
def test_clusters():
    A = jsp.generators.grid2d(jax.random.key(0), 300, 200)
    G = jsp.prepare(A, for_=())
    assert G.symmetric
    verify.spanning_tree(A.to_scipy(), 5, jsp.spanning_tree(G, 5, method="clusters"))


def test_a_sum_beyond_the_largest_float_is_infinite():  # warnings are errors in tests
    A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], np.full(4, 3e38, np.float32), shape=(3, 3))
    assert jsp.minimum_spanning_forest(A).total == np.inf
