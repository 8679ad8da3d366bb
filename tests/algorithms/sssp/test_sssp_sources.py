"""vmap of sssp: every method and every batched operand against one search at a time."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.native import bind


def graph(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 9, 150).astype(dtype)
    return jsp.from_edges(
        rng.integers(0, 40, 150),
        rng.integers(0, 40, 150),
        weights,
        shape=(40, 40),
        nse=155,
        dup=jsp.monoids.min_,
    )


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("method", [None, "relaxation", "bellman_ford"])
def test_sources(method, dtype):
    A = graph(dtype=dtype)
    for G in (A, jsp.prepare(A, for_="sssp", symmetric=False)):
        options = {} if method == "bellman_ford" or G is A else {"delta": None}
        got = jax.vmap(lambda s: jsp.sssp(G, s, method=method, **options))(jnp.arange(6))
        for k in range(6):
            want = jsp.sssp(A, k, deterministic=True)
            np.testing.assert_array_equal(got.distances[k], want.distances)
            assert got.converged[k] and not got.overflow[k]
            d, parents = np.asarray(want.distances), np.asarray(got.parents[k])
            assert ((parents >= 0) == (d != (np.inf if dtype == np.float32 else 2**31 - 1))).all()


def test_relaxation_is_one_product_for_all_sources():
    A = graph()
    search = jax.vmap(lambda s: jsp.sssp(A, s, method="relaxation", parents=False).distances)
    text = jax.jit(search).lower(jnp.arange(23)).as_text()
    assert "dense<23> : tensor<i32>" not in text  # no loop over the sources: arrays of all
    n = A.shape[0]
    assert f"tensor<{n}x23xf32>" in text or "tensor<155x23xf32>" in text  # one product with all


def test_values_and_negative_cycles():
    A = graph()
    datas = jnp.stack([A.data, 2 * A.data])
    got = jax.vmap(lambda w: jsp.sssp(A.with_data(w), 0).distances)(datas)
    np.testing.assert_array_equal(got[1], 2 * got[0])
    loop = jsp.from_edges([0, 1], [1, 0], [1.0, -2.0], shape=(2, 2))
    assert not jax.jit(lambda A: jsp.sssp(A, 0, method="relaxation").converged)(loop)


@pytest.mark.parametrize("dtype", ["float32", "int32"])
def test_a_negative_loop_at_the_source(dtype):
    """Its parent is itself, like that of a root."""
    A = jsp.from_edges([0, 1], [0, 2], np.array([-3, 1], dtype), shape=(3, 3))
    with pytest.raises(jsp.NegativeCycleError):
        jsp.sssp(A, 0)
    found = jax.jit(jsp.sssp)(A, 0)
    assert not found.converged and found.steps <= 4
    assert jsp.sssp(A, 1).converged


@pytest.mark.parametrize("method", [None, "delta_stepping", "bellman_ford", "native"])
def test_until_keeps_the_path_to_its_node_where_a_weight_is_negative(method):
    """0 -> 1 -> 2 by 2 and -1: vertex 1 lies beyond the length of its successor on the path."""
    A = jsp.from_edges([0, 1, 0], [1, 2, 3], np.float32([2, -1, 0.5]), shape=(4, 4), nse=6)
    if method == "native" and (reason := bind.refused()):
        pytest.skip(reason)

    def length(data, G=A):
        return jsp.sssp(G.with_data(data), 0, until=jsp.until.reached(2), method=method)

    for G in (A, jsp.prepare(A, for_="sssp")):
        for found in (length(A.data, G), jax.jit(lambda w, G: length(w, G))(A.data, G)):
            np.testing.assert_array_equal(found.distances, [0, 2, 1, 0.5])
            assert found.path_to(2).tolist() == [0, 1, 2] and found.converged
    d = jax.grad(lambda w: length(w).distances[2])(A.data)
    along = jsp.from_edges([0, 1, 0], [1, 2, 3], [1.0, 1.0, 0.0], shape=(4, 4))
    np.testing.assert_array_equal(A.with_data(d).todense(), along.todense())


def test_a_mesh_keeps_the_path_too_and_programs_close_over_its_graph():
    A = jsp.from_edges([0, 1, 0], [1, 2, 3], np.float32([2, -1, 0.5]), shape=(4, 4))
    G = jsp.shard(A, jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,)))
    found = jsp.sssp(G, 0, until=jsp.until.reached(2))
    np.testing.assert_array_equal(found.distances, [0, 2, 1, 0.5])
    assert found.path_to(2).tolist() == [0, 1, 2]
    closed_over = jax.jit(lambda: (jsp.sssp(G, 0).distances, jsp.pagerank(H).scores))
    H = G.with_data(abs(G.data))
    far, scores = closed_over()
    np.testing.assert_array_equal(far, [0, 2, 1, 0.5])
    np.testing.assert_allclose(scores.sum(), 1, rtol=1e-5)
    assert "collectives" in str(jsp.explain(jsp.sssp, G, 0))
