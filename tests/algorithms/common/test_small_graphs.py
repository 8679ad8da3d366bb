"""Graphs without vertices, edges or sources: every algorithm, traced, batched, differentiated."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp


def empty(n, nse=None):
    return jsp.from_edges([], [], jnp.zeros(0), shape=(n, n), nse=nse)


@pytest.mark.parametrize("A", [empty(1), empty(4), empty(4, 3)], ids=["1", "4", "padded"])
def test_slopes_of_paths_without_edges(A):
    def far(d):
        found = jsp.sssp(A.with_data(d), 0).distances
        return jnp.sum(jnp.where(jnp.isfinite(found), found, 0.0))

    assert jax.grad(far)(A.data).tolist() == [0.0] * A.nse
    assert jax.jvp(far, (A.data,), (A.data,))[1] == 0
    assert jsp.grad(lambda A: far(A.data))(A).data.shape == (A.nse,)


def test_padding_without_vertices():
    A = empty(0, 3)
    for G in (A, jsp.prepare(A)):
        assert jsp.connected_components(G, backend="xla").labels.shape == (0,)
        assert jsp.core_number(G, backend="xla")[0].shape == (0,)
        assert jsp.square_clustering(G).shape == jsp.triangle_centrality(G).shape == (0,)
        assert jsp.k_core(G, 1).shape == (0, 0)


def test_traced_searches_without_vertices():
    for format in ("csr", "bittiled"):
        found = jax.jit(lambda A, s, f=format: jsp.bfs(A, s, format=f))(empty(0), 0)
        assert found.levels.shape == (0,)
        assert found.num_levels == 0


@pytest.mark.parametrize("search", [
    jsp.bfs,
    jsp.sssp,
    lambda A, s: jsp.soft_sssp(A, s, 0.1),
    lambda A, s: jsp.bfs(A, s, format="bittiled"),
    lambda A, s: jsp.bfs(A, s, until=jsp.until.reached(1)),
], ids=["bfs", "sssp", "soft_sssp", "bittiled", "until"])  # fmt: skip
@pytest.mark.parametrize("graph", ["bare", "prepared"])
def test_no_sources(search, graph):
    A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    A = A if graph == "bare" else jsp.prepare(A, for_=("bfs", "sssp"))
    none = np.zeros(0, np.int32)
    for run in (lambda s: search(A, s), jax.vmap(lambda s: search(A, s))):
        assert run(jnp.asarray(none))[0].shape == (0, 3)
        assert jax.jit(run)(none)[0].shape == (0, 3)


def test_pagerank_takes_a_captured_preference():
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3))
    p = jnp.array([1.0, 2.0, 1.0])
    expected = jsp.pagerank(A, personalization=np.asarray(p)).scores
    scores = jax.jit(lambda A: jsp.pagerank(A, personalization=p).scores)(A)
    np.testing.assert_allclose(scores, expected, rtol=1e-6)
    slope = jax.grad(lambda d: jsp.pagerank(A.with_data(d), personalization=p).scores[0])
    assert np.isfinite(jax.jit(slope)(A.data)).all()
    wrong = -p
    with pytest.raises(ValueError, match="must be finite and >= 0"):
        jax.jit(lambda A: jsp.pagerank(A, personalization=wrong).scores)(A)


@pytest.mark.parametrize("search", [jsp.bfs, jsp.sssp])
def test_an_empty_list_of_sources_is_searched_from_nowhere(search):
    A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    assert search(A, []).parents.shape == (0, 3)
    with pytest.raises(TypeError, match="integer vertex"):
        search(A, np.zeros(0))
