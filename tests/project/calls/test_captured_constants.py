"""What a traced function captures is as good as concrete: the same answers under jit and vmap."""

import chex
import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
from scipy.sparse import csgraph

import jaxspv as jsp

I, J = np.array([0, 1, 1]), np.array([1, 2, 2])
DENSE = np.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]], np.float32)
A = jsp.from_dense(DENSE)
SYMMETRIC = jsp.from_dense(DENSE + DENSE.T)
CASES = {
    "from_edges": lambda t, a: jsp.from_edges(a(I), a(J), t, shape=(3, 3)),
    "from_edges of constants": lambda t, a: jsp.from_edges(a(I), a(J), a(J), shape=(3, 3)),
    "from_edges and slots": lambda t, a: jsp.from_edges(
        a(I), a(J), t, shape=(3, 3), return_slots=True, format="csc"
    ),
    "vector_from_entries": lambda t, a: jsp.vector_from_entries(a(I), t, 3),
    "build": lambda t, a: jsp.graphblas.build((a(I[:2]), a(J[:2])), t[:2], (3, 3)),
    "from_dense": lambda t, a: jsp.from_dense(a(DENSE), nse=5).with_data(jnp.tile(t, 2)[:5]),
    "vector_from_dense": lambda t, a: jsp.vector_from_dense(a(DENSE[0])).with_data(t[:2]),
    "similarity": lambda t, a: jsp.similarity(SYMMETRIC, a(I), a(J)).jaccard,
    "extract": lambda t, a: jsp.extract(A, a(I), a(J)),
    "assign": lambda t, a: jsp.assign(A, t[0], a(I[:2]), a(J[:2])),
    "set_element": lambda t, a: jsp.graphblas.set_element(A, t[0], a(1), a(2)),
    "bfs": lambda t, a: jsp.bfs(A, a(I[:2]), until=jsp.until.reached(a(2))).levels,
    "pagerank": lambda t, a: jsp.pagerank(A, personalization=a(t * 0 + 1)).scores,
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("array", [np.asarray, jnp.asarray], ids=["NumPy", "JAX"])
def test_captured(name, array):
    captured = {}

    def constant(x):  # made outside of the trace, once for each place that asks
        return x if isinstance(x, jax.core.Tracer) else captured[np.asarray(x).tobytes()]

    def keep(x):
        with jax.ensure_compile_time_eval():
            captured[np.asarray(x).tobytes()] = array(x)
        return captured[np.asarray(x).tobytes()]

    t = jnp.arange(1.0, 4.0)
    want = jax.tree.map(np.asarray, _dense(CASES[name](t, keep)))
    got = jax.jit(lambda t: _dense(CASES[name](t, constant)))(t)
    chex.assert_trees_all_close(got, want, rtol=1e-6)
    stacked = jax.vmap(lambda t: _dense(CASES[name](t, constant)))(jnp.stack([t, 2 * t]))
    chex.assert_trees_all_close(jax.tree.map(lambda x: x[0], stacked), want, rtol=1e-6)


def _dense(result):
    """Formats as arrays, that capacities may differ."""
    parts = result if isinstance(result, tuple) else (result,)
    return [x.todense() if hasattr(x, "todense") else x for x in parts]


@pytest.mark.parametrize("ask", [A.trim, A.nonzero, lambda: jsp.choose_format(A)])
def test_what_needs_the_host_says_so(ask):
    with pytest.raises(ValueError, match="needs concrete values"):
        jax.jit(lambda t: (ask(), t)[1])(1.0)


@pytest.mark.parametrize("operand", ["vector", "matrix"])
def test_a_backend_that_is_not_there_is_refused_inside_jit_too(operand):
    x = jnp.ones(3) if operand == "vector" else jnp.ones((3, 2))
    product = jsp.mxv if operand == "vector" else jsp.mxm
    with pytest.raises(
        NotImplementedError, match="no implementation|for platform cpu|on NVIDIA GPUs only"
    ):
        jax.jit(lambda A, x: product(A, x, backend="pallas"))(A, x)


OF_NUMPY = {
    "A x": lambda M, x: jsp.mxv(M, x),
    "A A": lambda M, x: jsp.mxm(M, M, nse=9),
    "extract": lambda M, x: jsp.extract(M, jnp.array([0, 2]), jnp.array([1, 2]), nse=4),
    "reduce": lambda M, x: jsp.reduce(M, axis=0),
    "dense": lambda M, x: (M, x),
}


@pytest.mark.parametrize("format", ["coo", "csr", "csc", "tiled", "bittiled", "ell", "sell"])
@pytest.mark.parametrize("call", OF_NUMPY)
def test_captured_objects_of_numpy_arrays(call, format):
    M = A.asformat(format)
    entries = jnp.array([2.0, 1.0]), jnp.array([2, 0]), jnp.int32(2), jnp.asarray(False)
    x = jsp.SparseVector(*entries, (3,), sorted=False)
    want = _dense(OF_NUMPY[call](M, x))
    M, x = jax.device_get((M, x))
    for got in (jax.jit(lambda: _dense(OF_NUMPY[call](M, x)))(), _dense(OF_NUMPY[call](M, x))):
        chex.assert_trees_all_close(got, want, rtol=1e-6)


GRAPHS = {
    "pagerank": lambda M: jsp.pagerank(M).scores,
    "sssp": lambda M: jsp.sssp(M, 0).distances,
    "modularity": lambda M: jsp.modularity(M, jnp.array([0, 1, 1])),
    "prepare": lambda M: jsp.sssp(jsp.prepare(M, for_="bfs"), 0).distances,
}


@pytest.mark.parametrize("format", ["coo", "csc", "ell", "sell", "tiled"])
@pytest.mark.parametrize("call", GRAPHS)
def test_captured_graphs_of_every_format(call, format):
    G = nx.from_numpy_array(DENSE, create_using=nx.DiGraph)
    want = {
        "pagerank": lambda: list(nx.pagerank(G, tol=1e-9).values()),
        "modularity": lambda: nx.community.modularity(G, [{0}, {1, 2}]),
    }.get(call, lambda: csgraph.dijkstra(DENSE, indices=0))()
    M = A.asformat(format)
    np.testing.assert_allclose(jax.jit(lambda: GRAPHS[call](M))(), want, rtol=1e-5)
    with pytest.raises(ValueError, match="must not be NaN"):
        N = M.with_data(M.data.at[M.data == 3].set(jnp.nan))
        jax.jit(lambda: jsp.sssp(N, 0).distances)()


def test_masks_of_numpy_are_compared_with_nothing():
    mask = np.array([[True, False, True], [True, True, False], [False, True, True]])
    want = np.where(mask, DENSE.T, 0)
    assert np.array_equal(jsp.transpose(A, mask=mask).todense(), want)
    with pytest.raises(TypeError, match="an element has no `mask`"):
        jsp.extract(A, 0, 1, mask=mask)
