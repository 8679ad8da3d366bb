"""Betweenness and closeness against NetworkX, and against products of SciPy on real graphs."""

import functools

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from graph_cases import BACKENDS, named, networkx_of, random_matrix, same

import jaxspv as jsp
from jaxspv import verify
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv.algorithms.centrality import betweenness as api
from jaxspv.graph import Graph
from pallas_kernels import betweenness as kernels
from pallas_kernels.simt.device import Grid
from tests.kernels.warps_apart import gridded


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("endpoints", [False, True])
def test_betweenness_is_that_of_networkx(backend, symmetric, weighted, endpoints):
    A = random_matrix(30, 70, 0, symmetric=symmetric)
    g = networkx_of(A, symmetric=symmetric)
    G, H = jsp.from_scipy(A), jsp.pad(jsp.from_scipy(A), n=40, nse=200)
    how = {"weighted": weighted, "endpoints": endpoints, "backend": backend}
    asked = {"weight": "weight" if weighted else None, "endpoints": endpoints}
    for normalized in (False, True):
        want = networkx.betweenness_centrality(g, normalized=normalized, **asked)
        found = jsp.betweenness_centrality(G, normalized=normalized, **how)
        same(found.scores, want)
        assert not bool(found.overflow)
    padded = jsp.betweenness_centrality(H, **how)
    same(jsp.unpad(padded, H).scores, want)


@pytest.mark.parametrize("n", [1, 2])
def test_betweenness_of_one_source_of_a_tiny_graph(n):
    A = jsp.from_edges([0][: n - 1], [1][: n - 1], shape=(n, n))
    found = jsp.betweenness_centrality(A, [0])
    want = networkx.betweenness_centrality(networkx.path_graph(n, networkx.DiGraph), k=1, seed=0)
    same(found.scores, want)
    for sources in ([0], None):
        verify.betweenness(A, jsp.betweenness_centrality(A, sources), sources)


def test_betweenness_of_many_levels():
    v = np.arange(20 - 1)
    A = jsp.from_edges(np.append(v, v + 1), np.append(v + 1, v), shape=(20, 20))
    G = jsp.prepare(A, for_=())
    found = jax.jit(lambda G: jsp.betweenness_centrality(G, backend="xla"))(G)
    same(found.scores, networkx.betweenness_centrality(networkx.path_graph(20)))


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernel needs a newer JAX")
def test_which_are_searched_by_thread_blocks():
    def plan(entries, **how):
        A = jsp.from_scipy(random_matrix(30, entries, 0))
        return str(jsp.explain(jsp.betweenness_centrality, A, **how))

    assert "pallas/blocks on NVIDIA GPUs" in plan(70)
    assert "least weight" in plan(70, weighted=True)
    assert "edges a vertex" in plan(600)


@pytest.mark.parametrize("symmetric", [False, True])
@pytest.mark.parametrize("endpoints", [False, True])
def test_thread_blocks_count_the_same(monkeypatch, symmetric, endpoints):
    """The kernel interpreted, called as it is on a GPU."""
    kernel = functools.partial(gridded(kernels.betweenness), grid=Grid(2, 64, interpret=True))
    monkeypatch.setattr(kernels, "betweenness", kernel)
    A = random_matrix(30, 70, 3, symmetric=symmetric)
    how = {"weighted": False, "endpoints": endpoints}
    for G in (Graph(jsp.from_scipy(A)), jsp.prepare(jsp.from_scipy(A), for_=())):
        sources = jnp.arange(0, 30, 3, dtype=jnp.int32)
        found, want = (run(G, sources, **how) for run in (api._blocks, api._batches))
        np.testing.assert_allclose(found.scores, want.scores, rtol=1e-5, atol=1e-5)
        assert not found.overflow


class Drawn:
    """A generator of random numbers for NetworkX that draws what it is told."""

    def __init__(self, chosen):
        self.chosen = chosen

    def sample(self, nodes, k):
        assert k == len(self.chosen) and set(self.chosen) <= set(nodes)
        return self.chosen


@pytest.mark.parametrize("normalized", [False, True])
@pytest.mark.parametrize("endpoints", [False, True])
def test_betweenness_of_samples(normalized, endpoints, monkeypatch):
    A = random_matrix(30, 70, 1, symmetric=True)
    g, chosen = networkx_of(A, symmetric=True), [3, 7, 8, 20]
    scope = "networkx.utils.misc.create_py_random_state"
    monkeypatch.setattr(scope, lambda state: state)
    how = {"normalized": normalized, "endpoints": endpoints}
    plain = networkx.betweenness_centrality.orig_func
    plain = getattr(plain, "__wrapped__", plain)
    want = plain(g, k=4, seed=Drawn(chosen), **how)
    for backend in BACKENDS:
        found = jsp.betweenness_centrality(
            jsp.from_scipy(A), jnp.asarray(chosen), backend=backend, **how
        )
        same(found.scores, want)


@pytest.mark.parametrize("name", ["karate", "wiki-Vote"])
def test_real_graphs(name):
    A = named(name)
    sources = np.arange(0, A.shape[0], max(A.shape[0] // 20, 1))
    found = jsp.betweenness_centrality(A, sources, directed=True)
    verify.betweenness(A, found, sources)
    if name == "karate":
        verify.betweenness(A, jsp.betweenness_centrality(A))
        verify.closeness(A, jsp.closeness_centrality(A))


@pytest.mark.parametrize("symmetric", [False, True])
def test_closeness_is_that_of_networkx(symmetric):
    A = random_matrix(40, 60, 2, symmetric=symmetric)
    g = networkx_of(A, symmetric=symmetric)
    H = jsp.pad(jsp.from_scipy(A), n=48, nse=200)
    for improved in (False, True):
        found = jsp.closeness_centrality(H, wf_improved=improved)
        found = jsp.unpad(found, H)
        same(found.scores, networkx.closeness_centrality(g, wf_improved=improved))
    same(found.harmonic, networkx.harmonic_centrality(g))
    verify.closeness(A, found)


def test_harmonic_sums_without_a_compiler():
    """Paths of two edges from a centre, vertex 0: the ends are 1, 2, 3 and 4 from others."""
    legs = 2000
    middle, end = np.arange(1, legs + 1), np.arange(legs + 1, 2 * legs + 1)
    one, other = np.r_[0 * middle, middle], np.r_[middle, end]
    A = jsp.from_edges(np.r_[one, other], np.r_[other, one], shape=(2 * legs + 1,) * 2)
    found = jsp.closeness_centrality(A, backend="xla").harmonic
    want = 1 + 1 / 2 + (legs - 1) * (1 / 3 + 1 / 4)
    np.testing.assert_allclose(found[legs + 1 :], np.full(legs, want), rtol=1.2e-7)


def test_known_values_of_karate():
    """Freeman's betweenness of the instructor is 231.07; NetworkX's documented order."""
    scores = jsp.betweenness_centrality(named("karate"), normalized=False).scores
    np.testing.assert_allclose(scores[0], 231.0714286, rtol=1e-5)
    assert int(jnp.argmax(scores)) == 0


def test_traced_batched_and_differentiated():
    A = jsp.from_scipy(random_matrix(12, 30, 3))
    want = jsp.betweenness_centrality(A, weighted=True, directed=True).scores

    def scores(data):
        found = jsp.betweenness_centrality(A.with_data(data), weighted=True, directed=True)
        return found.scores

    np.testing.assert_allclose(jax.jit(scores)(A.data), want, rtol=1e-6)
    both = jax.vmap(scores)(jnp.stack([A.data, 2 * A.data]))
    np.testing.assert_allclose(both, jnp.stack([want, want]), rtol=1e-6)
    assert (jax.grad(lambda d: scores(d).sum())(A.data) == 0).all()
    assert jax.vmap(lambda d: jsp.closeness_centrality(A.with_data(d)).scores)(A.data[None]).shape


def test_many_paths_overflow():
    """A chain of 140 diamonds has 2^140 shortest paths, more than float32 holds."""
    k = 140
    left, right = 3 * np.arange(k), 3 * np.arange(k) + 3
    ends = [(left, left + 1), (left, left + 2), (left + 1, right), (left + 2, right)]
    rows, cols = (np.concatenate(x) for x in zip(*ends, strict=True))
    A = jsp.from_edges(rows, cols, shape=(3 * k + 1, 3 * k + 1))
    for backend in BACKENDS:
        found = jsp.betweenness_centrality(A, jnp.asarray([0]), backend=backend)
        assert bool(found.overflow)
        with pytest.raises(ValueError, match="overflow"):
            jsp.check(found)


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "uint32"])
@pytest.mark.parametrize("backend", BACKENDS)
def test_unsigned_weights_whose_sums_wrap(backend, dtype):
    largest = int(np.iinfo(dtype).max)
    edges = [(0, 1, largest - 55), (1, 3, 100), (0, 2, 20), (2, 3, 24), (3, 4, 3), (5, 4, 1)]
    g = networkx.DiGraph()  # largest - 55 + 100 is 44 = 20 + 24, wrapped
    g.add_nodes_from(range(6))
    g.add_weighted_edges_from(edges)
    want = networkx.betweenness_centrality(g, weight="weight", normalized=False)
    tails, heads, weights = zip(*edges, strict=True)
    A = jsp.from_edges(tails, heads, np.asarray(weights, dtype), shape=(6, 6))
    run = functools.partial(jsp.betweenness_centrality, normalized=False, weighted=True)
    for f in (run, jax.jit(run, static_argnames="backend")):
        found = f(A, backend=backend)
        np.testing.assert_allclose(found.scores, [want[v] for v in range(6)])
        assert not bool(found.overflow)


def test_bad_arguments():
    A = jsp.from_edges([0, 1], [1, 2], [1.0, 0.0], shape=(3, 3))
    with pytest.raises(ValueError, match="slot 1 holds 0.0"):
        jsp.betweenness_centrality(A, weighted=True)
    with pytest.raises(ValueError, match="1-D array"):
        jsp.betweenness_centrality(A, 2)
    with pytest.raises(ValueError, match=r"\[0, 3\)"):
        jsp.betweenness_centrality(A, [3])
    with pytest.raises(TypeError, match="betweenness_centrality needs"):
        jsp.betweenness_centrality(np.eye(3))


def test_wrong_scores_are_caught():
    A = named("karate")
    found = jsp.betweenness_centrality(A)
    with pytest.raises(AssertionError, match="betweenness of vertex 4"):
        verify.betweenness(A, found._replace(scores=found.scores.at[4].add(0.1)))
    near = jsp.closeness_centrality(A)
    with pytest.raises(AssertionError, match="closeness of vertex 2"):
        verify.closeness(A, near._replace(scores=near.scores.at[2].add(0.1)))


@pytest.mark.parametrize("backend", [None, "xla"])
def test_weighted_betweenness_of_narrow_and_of_large_floats(backend):
    """Sums rounded to 16 bits are not equal along a path, nor do they hold 65504 + 65504; sums
    beyond float32 are no paths, and said so."""
    n, rng = 12, np.random.default_rng(0)

    def of_path(weights):
        A = jsp.from_edges(np.arange(n - 1), np.arange(1, n), weights, shape=(n, n))
        return jsp.betweenness_centrality(A, weighted=True, normalized=False, backend=backend)

    want = [k * (n - 1 - k) for k in range(n)]
    for dtype in ("float16", "bfloat16", "float32"):
        found = of_path(jnp.asarray(1 + 3 * rng.random(n - 1), dtype))
        assert found.scores.tolist() == want and not found.overflow
    found = of_path(np.full(n - 1, 65504, np.float16))
    assert found.scores.tolist() == want and not found.overflow
    assert of_path(np.full(n - 1, 2e38, np.float32)).overflow
