"""`sssp` around its kernel, interpreted: parents, conditions, flags, as the XLA form has them."""

import functools
import types

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv import verify
from jaxspv.algorithms.sssp import api as module
from jaxspv.algorithms.sssp.layout import with_lengths
from pallas_kernels.layouts.lengths import prepare_sssp
from pallas_kernels.sssp import api as kernels
from pallas_kernels.sssp.problem import Config

SMALL = Config(
    ctas=2, threads=64, interpret=True, hops=3, span=4, unroll=2, near_buffer=64, far_buffer=64
)


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(kernels, "sssp", functools.partial(kernels.sssp, config=SMALL))


def graph_of(A, low_degree):
    """A prepared graph, with the arrays of the low_degree kernel or without."""
    G = jsp.prepare(A, for_="sssp")
    layout = dict(G.layouts["sssp"])
    if low_degree:
        arrays = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
        layout["pallas"] = jax.tree.map(jnp.asarray, prepare_sssp(*arrays, renumber=True))
        assert layout["pallas"]
    return jsp.Graph(**{**vars(G), "layouts": {**G.layouts, "sssp": layout}})


def run(G, source, until=None, *, parents=True, deterministic=False):
    layout = G.layouts.get("sssp")
    return module._persistent(
        G,
        jnp.int32(source),
        until,
        layout and layout["widths"],
        parents=parents,
        deterministic=deterministic,
        max_steps=None,
    )


def edges(n, m, seed, weights):
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, n, m), rng.integers(0, n, m)
    w = weights(rng, m)
    A = jsp.from_edges(
        np.r_[row, col], np.r_[col, row], np.r_[w, w], shape=(n, n), dup=jsp.monoids.min_
    )
    return A.asformat("csr")


WEIGHTS = {
    "positive": lambda rng, m: rng.integers(1, 64, m).astype(np.float32),
    "integers": lambda rng, m: rng.integers(1, 64, m).astype(np.int32),
    "zeros": lambda rng, m: rng.choice([0, 0, 0, 1], m).astype(np.int32),
    "absorbed": lambda rng, m: rng.choice([0.5, 2.0**25], m).astype(np.float32),
}


@pytest.mark.parametrize("low_degree", [True, False])
@pytest.mark.parametrize("weights", WEIGHTS)
def test_as_the_xla_form(weights, low_degree):
    A = edges(60, 100, 1, WEIGHTS[weights])
    G = graph_of(A, low_degree)
    for source in (0, 7):
        want = jsp.sssp(A, source, deterministic=True)
        reached = np.asarray(want.distances) != (np.inf if A.dtype == np.float32 else 2**31 - 1)
        got = run(G, source)
        np.testing.assert_array_equal(got.distances, want.distances)
        assert bool(got.converged) and not bool(got.overflow) and int(got.status) == 0
        verify.tree(A, source, got.parents, reached)
        np.testing.assert_array_equal(run(G, source, deterministic=True).parents, want.parents)
        assert run(G, source, parents=False).parents is None


@pytest.mark.parametrize("low_degree", [True, False])
def test_conditions(low_degree):
    A = edges(80, 130, 3, WEIGHTS["positive"])
    G = graph_of(A, low_degree)
    order = np.argsort(np.asarray(jsp.sssp(A, 0).distances))
    near, far = jsp.until.reached(int(order[10])), jsp.until.reached(int(order[30]))
    for until in (
        near,
        near | far,
        near & far,
        near & jsp.until.unchanged(),
        jsp.until.unchanged() | far,
    ):
        want = jsp.sssp(A, 0, until=until, method="bellman_ford")
        got = run(G, 0, until)
        np.testing.assert_array_equal(got.distances, want.distances)
        verify.tree(A, 0, got.parents, np.isfinite(want.distances))


def test_a_sum_beyond_the_integers_is_told():
    A = jsp.from_edges([0, 1], [1, 2], np.array([2**30, 2**30 + 7], np.int32), shape=(3, 3))
    G = graph_of(A.asformat("csr"), False)
    assert bool(run(G, 0).overflow) and not bool(run(G, 1).overflow)
    G = G.with_data(jnp.asarray([3, 2**31 - 1], jnp.int32))  # which counts as infinity
    assert run(G, 0).distances.tolist() == [0, 3, 2**31 - 1] and bool(run(G, 0).overflow)


def test_new_values_of_another_sign_do_not_converge():
    A = edges(20, 40, 5, WEIGHTS["positive"])
    G = graph_of(A, False)
    assert bool(run(G.with_data(A.data * 2), 0).converged)
    assert not bool(run(G.with_data(-A.data), 0).converged)


def test_rows_by_weight_serve_new_weights_of_any_dtype(monkeypatch):
    """Prepared as on a GPU; not for weights that every call casts."""
    monkeypatch.setattr("jaxspv.algorithms.sssp.layout.on_gpu", lambda _: True)
    for name in ("ORDERED_MEAN", "ORDERED_LEAST"):
        monkeypatch.setattr(f"pallas_kernels.layouts.lengths.{name}", 8)
    A = edges(60, 700, 2, WEIGHTS["integers"])
    G = jsp.prepare(A, for_="sssp")
    assert "parts" in G.layouts["sssp"]["pallas"]
    for H in (G, G.with_data(64 - A.data), G.astype(jnp.float32), G.astype(bool)):
        lengths = H.out if H.dtype != bool else H.out.astype(jnp.int32)
        want = jsp.sssp(lengths, 7, deterministic=True)
        got = run(with_lengths(H), 7)
        np.testing.assert_array_equal(got.distances, want.distances)
        verify.tree(lengths, 7, got.parents, np.ones(60, bool))
    for dtype in (jnp.float16, bool):
        assert not jsp.prepare(A.astype(dtype), for_="sssp").layouts["sssp"]["pallas"]


def test_sizes_that_int32_does_not_count_are_refused():
    def refused(n, nse):
        graph = types.SimpleNamespace(n=n, nse=nse, dtype=np.dtype(np.float32))
        return module._not_persistent(graph, 0, None, None, max_steps=None)

    assert refused(2**27, 2**31 - 1) is None
    assert "int32" in refused(2**28, 2**30) and "int32" in refused(2**28 - 2**20, 2**31 - 1)


def test_weights_under_jit_decide_what_runs():
    A = edges(20, 40, 5, WEIGHTS["positive"])
    search = jax.jit(lambda A: run(jsp.Graph(A), 0))
    want = jsp.sssp(A, 0)
    got = search(A)
    np.testing.assert_array_equal(got.distances, want.distances)
    verify.tree(A, 0, got.parents, np.isfinite(want.distances))
    assert not bool(search(A.with_data(-A.data)).converged)  # an edge in both directions
    got = search(A.with_data(A.data.at[0].set(jnp.nan)))  # which no path takes
    want = jsp.sssp(A.with_data(A.data.at[0].set(jnp.inf)), 0)
    np.testing.assert_array_equal(got.distances, want.distances)
    lengths = np.array([1, -3, 1], np.float32)
    path = jsp.from_edges([0, 1, 2], [1, 2, 3], lengths, shape=(20, 20))
    path = jsp.pad(path.asformat("csr"), nse=A.nse).out
    np.testing.assert_array_equal(search(path).distances[:4], [0, 1, -2, -1])


def test_what_the_kernel_refuses():
    A = edges(20, 40, 5, WEIGHTS["positive"])
    reasons = {
        "no `max_steps`": (None, A.data, 3),
        "no `max_iterations`": (jsp.until.max_iterations(3), A.data, None),
        "negative": (None, -A.data, None),
    }
    for reason, (until, data, steps) in reasons.items():
        G = jsp.prepare(A.with_data(data), for_="sssp")
        widths = G.layouts["sssp"]["widths"]
        assert reason in module._not_persistent(G, 0, until, widths, max_steps=steps)
