"""The persistent kernels through the public API on a GPU: in scans, beside others."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse import csgraph

import jaxspv as jsp
from jaxspv import verify

pytestmark = pytest.mark.gpu


def directed(n=3000, m=12000, seed=0, dtype=np.float32):
    """SciPy CSR with weights 1..64."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n, (2, m))
    keys = np.unique(row.astype(np.int64) * n + col)
    data = rng.integers(1, 65, len(keys)).astype(dtype)
    return sp.csr_array(sp.coo_array((data, (keys // n, keys % n)), shape=(n, n)))


def symmetric(A):
    low = sp.triu(A, 1).tocsr()
    return sp.csr_array(low + low.T)


def grid(side=60):
    v = np.arange(side * side).reshape(side, side)
    s, d = np.r_[v[:, 1:].ravel(), v[1:].ravel()], np.r_[v[:, :-1].ravel(), v[:-1].ravel()]
    w = (s * 7 + d * 3) % 64 + 1
    A = sp.coo_array((w.astype(np.float32), (s, d)), shape=2 * (side * side,)).tocsr()
    return sp.csr_array(A + A.T)


GRAPHS = {"directed": directed, "symmetric": lambda: symmetric(directed()), "grid": grid}
ALL = ("bfs", "sssp", "pagerank")


@pytest.mark.parametrize("name", GRAPHS)
def test_a_hundred_sources_in_a_scan(name):
    """All levels, distances and trees of all of them."""
    A = GRAPHS[name]()
    G = jsp.prepare(jsp.from_scipy(A), for_=ALL)
    for algorithm in (jsp.bfs, jsp.sssp):
        plan = jsp.explain(algorithm, G)
        assert plan.chosen[0].backend == "pallas", str(plan)
    sources = np.random.default_rng(1).integers(0, A.shape[0], 100).astype(np.int32)

    def one(carry, source):
        bfs, sssp = jsp.bfs(G, source), jsp.sssp(G, source)
        return carry + bfs.num_levels, (bfs, sssp)

    _, (bfs, sssp) = jax.jit(lambda s: jax.lax.scan(one, jnp.int32(0), s))(jnp.asarray(sources))
    assert not np.asarray(bfs.status).any() and not np.asarray(sssp.status).any()
    right = csgraph.dijkstra(A, indices=sources)
    np.testing.assert_array_equal(sssp.distances, right)  # sums of small integers are exact
    for k, source in enumerate(sources.tolist()):
        verify.bfs(A, source, jax.tree.map(lambda x, k=k: np.asarray(x)[k], bfs))
        verify.tree(A, source, np.asarray(sssp.parents)[k], np.isfinite(right[k]))


@pytest.mark.parametrize("options", [False, True])
def test_several_in_one_program_beside_other_work(options):
    A, B = symmetric(directed(seed=3)), grid()
    G, H = (jsp.prepare(jsp.from_scipy(m), for_=ALL) for m in (A, B))

    def work(G, H, m):
        ranks = jsp.pagerank(H)
        return (jsp.bfs(G, 0), jsp.sssp(H, 1), jsp.bfs(H, 2), jsp.sssp(G, 3), ranks, (m @ m).sum())

    more = {"compiler_options": jsp.config.gpu_compiler_options()} if options else {}
    run = jax.jit(work, **more)
    for _ in range(5):
        a, b, c, d, ranks, total = run(G, H, jnp.ones((2048, 2048)))
        verify.bfs(A, 0, a)
        verify.bfs(B, 2, c)
        np.testing.assert_array_equal(b.distances, csgraph.dijkstra(B, indices=1))
        np.testing.assert_array_equal(d.distances, csgraph.dijkstra(A, indices=3))
        verify.pagerank(B, ranks, damping=0.85, atol=3e-6)
        assert total == 2048.0**3


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", GRAPHS)
def test_conditions_of_sssp(name, dtype):
    A = GRAPHS[name]().astype(dtype)
    G = jsp.prepare(jsp.from_scipy(A), for_="sssp")
    right = csgraph.dijkstra(A, indices=5)
    order = np.argsort(right)
    run = jax.jit(lambda G, v: jsp.sssp(G, 5, until=jsp.until.reached(v), backend="pallas"))
    top = np.inf if dtype == np.float32 else np.iinfo(dtype).max
    for target in (5, int(order[100]), int(order[1500])):
        got = run(G, jnp.int32(target))
        near = right <= right[target]
        np.testing.assert_array_equal(got.distances, np.where(near, right, top))
        verify.tree(A, 5, np.asarray(got.parents), near & np.isfinite(right))


@pytest.mark.parametrize("name", ["bremen_dist", "directed", "symmetric"])
def test_trees_over_edges_of_length_zero(name, data):
    """In the file of road lengths some are 0, in the others half of them."""
    if name in GRAPHS:
        A = GRAPHS[name]()
        A.data[A.data % 2 == 0] = 0
    else:
        A = jsp.read_mtx(data / f"{name}.mtx.gz").to_scipy().astype(np.float32)
    G = jsp.prepare(jsp.from_scipy(A), for_="sssp")
    sources = np.random.default_rng(4).integers(0, A.shape[0], 32).astype(np.int32)
    one = lambda s: jsp.sssp(G, s, backend="pallas")  # noqa: E731
    found = jax.jit(lambda s: jax.lax.map(one, s))(jnp.asarray(sources))
    assert not np.asarray(found.status).any()
    for k, source in enumerate(sources.tolist()):
        verify.sssp(A, source, jax.tree.map(lambda x, k=k: np.asarray(x)[k], found))


@pytest.mark.parametrize("name", GRAPHS)
def test_pagerank(name):
    A = GRAPHS[name]()
    G = jsp.prepare(jsp.from_scipy(A), for_="pagerank")
    p = np.random.default_rng(0).random(A.shape[0]).astype(np.float32)
    want = jsp.pagerank(G, 0.9, 1e-7, 300, p, min_iterations=20, backend="xla")
    got = jax.jit(
        lambda G, p: jsp.pagerank(G, 0.9, 1e-7, 300, p, min_iterations=20, backend="pallas")
    )(G, p)
    np.testing.assert_allclose(got.scores, want.scores, atol=1e-7, rtol=1e-4)
    assert abs(int(got.iterations) - int(want.iterations)) <= 2
    gradient = jax.grad(lambda d: jsp.pagerank(G, d).scores[3])(0.85)
    other = jax.grad(lambda d: jsp.pagerank(G, d, backend="xla").scores[3])(0.85)
    np.testing.assert_allclose(gradient, other, rtol=1e-3)


def test_sources_by_vmap_and_new_weights():
    A = grid(30)
    G = jsp.prepare(jsp.from_scipy(A), for_="sssp")
    got = jsp.sssp(G, jnp.arange(4))
    np.testing.assert_array_equal(got.distances, csgraph.dijkstra(A, indices=np.arange(4)))
    double = jax.jit(lambda G, d: jsp.sssp(G.with_data(d), 2).distances)(G, 2 * G.data)
    np.testing.assert_array_equal(double, 2 * csgraph.dijkstra(A, indices=2))
