"""BFS from many sources: vmap and arrays of sources, every form, each source against SciPy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv import verify
from jaxspv.algorithms.bfs.xla import search_sources
from pallas_kernels.layouts.adjacency import Adjacency


def random_graph(n, m, seed):
    rng = np.random.default_rng(seed)
    return jsp.from_edges(rng.integers(0, n, m), rng.integers(0, n, m), shape=(n, n), nse=m + 5)


def check(A, sources, levels, parents):
    """Every source on its own, against SciPy; nothing is reached from one out of range."""
    for k, source in enumerate(np.asarray(sources)):
        tree = None if parents is None else parents[k]
        if 0 <= source < A.shape[0]:
            depth = np.asarray(levels[k]).max() + 1
            verify.bfs(A, source, jsp.results.BFS(levels[k], tree, depth, 0))
        else:
            assert (levels[k] == -1).all() and (tree is None or (tree == -1).all())


def test_with_and_without_in_edges():
    A = random_graph(60, 150, 0)
    G = jsp.prepare(A, for_="bfs", symmetric=False)
    sources = jnp.asarray([*range(30), -1, 60], jnp.int32)
    for inn in (G.inn, None):
        more = () if inn is None else (inn.indptr, inn.indices)
        levels, parents = search_sources(Adjacency(A.indptr, A.indices, *more), sources)
        check(A, sources, levels, parents)
        want = jnp.stack([jsp.bfs(A, k, deterministic=True).parents for k in range(30)])
        np.testing.assert_array_equal(parents[:30], want)


@pytest.mark.parametrize("count", [pytest.param(1, marks=pytest.mark.slow), 33])
def test_arrays_of_sources_of_any_length(count):
    A = random_graph(80, 700, 1)
    sources = np.random.default_rng(count).integers(0, 80, count)
    for G in (A, jsp.prepare(A, for_="bfs")):
        for parents in (True, False):
            result = jsp.bfs(G, sources, parents=parents)
            check(A, sources, result.levels, result.parents)
            assert result.num_levels.tolist() == (result.levels.max(1) + 1).tolist()
            assert result.status.shape == (count,)


def test_vmap_over_sources_is_one_traversal_and_vmap_over_both_axes_too():
    G = jsp.prepare(random_graph(50, 400, 2), for_="bfs")
    sources = jnp.arange(12, dtype=jnp.int32).reshape(3, 4)
    search = jax.vmap(jax.vmap(lambda s: jsp.bfs(G, s)))
    result = jax.jit(search)(sources)
    for i in range(3):
        check(G.out, sources[i], result.levels[i], result.parents[i])
    ones = jsp.bfs(G, sources.ravel())
    np.testing.assert_array_equal(result.levels.reshape(12, -1), ones.levels)


def test_vmap_over_graphs_and_with_conditions_goes_one_by_one():
    many = [random_graph(20, 60, seed) for seed in range(3)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *many)
    result = jax.vmap(lambda A: jsp.bfs(A, 0))(batch)
    for k, A in enumerate(many):
        check(A, [0], result.levels[k : k + 1], result.parents[k : k + 1])
    nested = jax.vmap(lambda A: jax.vmap(lambda s: jsp.bfs(A, s).levels)(jnp.arange(5)))(batch)
    for k, A in enumerate(many):
        check(A, range(5), nested[k], None)
    A = random_graph(40, 80, 7)
    stopped = jax.vmap(lambda s, t: jsp.bfs(A, s, until=jsp.until.reached(t)).levels)(
        jnp.arange(4), jnp.arange(4, 8)
    )
    for k in range(4):
        want = jsp.bfs(A, k, until=jsp.until.reached(4 + k)).levels
        np.testing.assert_array_equal(stopped[k], want)


@pytest.mark.parametrize("deterministic", [False, True])
def test_several_sources_under_x64(deterministic):
    with jax.enable_x64(True):
        A = jsp.from_edges([0, 1, 2, 5], [1, 2, 3, 0], shape=(40, 40))
        found = jsp.bfs(A, jnp.array([0, 5, 39]), deterministic=deterministic)
        assert found.levels[:, 3].tolist() == [3, 4, -1]
        assert found.parents[:, 3].tolist() == [2, 2, -1]
