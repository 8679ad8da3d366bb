"""connected_components against SciPy's partition."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from graph_cases import BACKENDS
from graph_files import data_folder

import jaxspv as jsp
from jaxspv import verify

N = 60
pytestmark = pytest.mark.fast


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("edges", [0, 20, 40, 70, 200])
def test_labels_are_the_smallest_vertex_of_each_weak_component(edges, backend):
    run = jax.jit(lambda A: jsp.connected_components(A, backend=backend))
    for seed in range(4):
        rng = np.random.default_rng(seed)
        A = jsp.from_edges(
            rng.integers(0, N, edges),
            rng.integers(0, N, edges),
            np.full(edges, np.nan, np.float32),
            shape=(N, N),
            nse=220,
        )
        verify.components(A.with_data(jnp.ones(220)), run(A))
        G = jsp.prepare(A.with_data(jnp.ones(220)), for_=())
        verify.components(G, jsp.connected_components(G))


def test_long_paths_backwards_loops_and_nothing():
    n = 1000
    shuffled = np.random.default_rng(0).permutation(n)
    for order in (np.arange(n), np.arange(n)[::-1], shuffled):
        path = jsp.from_edges(order[1:], order[:-1], shape=(n, n))
        assert (jsp.connected_components(path).labels == 0).all()
    # The root of one set becomes part of another in every row: ways of n / 2 steps.
    half, k = n // 2, np.arange(n // 2 - 1)
    row, col = np.tile(half + 1 + k, 2), np.concatenate([half - k - 1, half - k])
    ladder = jsp.from_edges(row, col, shape=(n, n))
    verify.components(ladder, jsp.connected_components(ladder))
    loops = jsp.from_edges([0, 2], [0, 2], shape=(3, 3))
    assert jsp.connected_components(loops).labels.tolist() == [0, 1, 2]
    empty = jsp.from_edges([], [], shape=(0, 0))
    assert int(jsp.connected_components(empty).count) == 0


def test_vmap_over_graphs_and_errors():
    pairs = [([0, 1], [1, 2]), ([3, 4], [2, 0])]
    graphs = [jsp.from_edges(r, c, shape=(5, 5), nse=2) for r, c in pairs]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *graphs)
    labels = jax.vmap(lambda A: jsp.connected_components(A).labels)(batch)
    assert labels.tolist() == [[0, 0, 0, 3, 4], [0, 1, 2, 2, 0]]
    with pytest.raises(ValueError, match="square matrix"):
        jsp.connected_components(jsp.from_dense(np.ones((2, 3))))
    plan = str(jsp.explain("connected_components", graphs[0]))
    assert "cpu/native" in plan or "cpu/union_find" in plan  # the second without a compiler


@pytest.mark.parametrize("name", ["minnesota", "karate", "jazz"])
def test_bundled_graphs(name):
    A = jsp.read_mtx(jsp.bundled(name))
    verify.components(A, jsp.connected_components(A))


def test_a_wrong_label_is_caught():
    A = jsp.read_mtx(jsp.bundled("karate"))
    result = jsp.connected_components(A)
    with pytest.raises(AssertionError, match="label of vertex 5 is 1, not 0"):
        verify.components(A, result._replace(labels=result.labels.at[5].set(1)))


def test_real_graphs():
    folder = data_folder()
    if folder is None:
        pytest.skip("no real graphs: put them into ../shared/data or set JAXSPV_DATA")
    for name in ("wiki-Vote", "cnr-2000", "moscow-roads"):
        A = jsp.read_mtx(folder / f"{name}.mtx.gz")
        verify.components(A, jsp.connected_components(A))
