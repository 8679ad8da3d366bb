"""Sums by levels in one launch, interpreted and on a GPU, against a loop over edges in NumPy."""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.compat import kernels_refused
from jaxspv.algorithms.closure import api, gpu, levels
from pallas_kernels.simt.device import Grid, launching
from tests.kernels.test_lowering import gpus, lower

LOOPS = {  # semiring: product and sum of numbers in NumPy
    "plus_times": (np.multiply, np.add),
    "min_plus": (np.add, np.minimum),
    "log_plus": (np.add, np.logaddexp),
    "max_first": (lambda x, a: x, np.maximum),
}
SEMIRINGS = {name: getattr(jsp.semirings, name) for name in LOOPS}


def scattered(steps, states, rng):
    """Each vertex has an edge from the layer before, and up to seven from any earlier layer."""
    heads = np.arange(states, steps * states)
    before = heads // states * states
    ends = [(before - states + rng.integers(0, states, heads.size), heads)]
    for chance in np.linspace(0.9, 0.1, 7):
        some = rng.random(heads.size) < chance
        ends.append((rng.integers(0, before)[some], heads[some]))
    row, col = np.unique(np.concatenate(ends, axis=1), axis=1)
    names = rng.permutation(steps * states)
    return names[row], names[col]


def layers(steps, states, arcs, rng):
    """Layers of states, with `arcs` of each to the next layer: all, or some."""
    to = [rng.permutation(states)[:arcs] for _ in range((steps - 1) * states)]
    tail = np.repeat(np.arange((steps - 1) * states), arcs)
    return tail, (tail // states + 1) * states + np.concatenate(to)


GRAPHS = {
    "scattered": (120, lambda rng: scattered(5, 24, rng)),
    "few": (12, lambda rng: scattered(3, 4, rng)),
    "a star": (300, lambda rng: (np.arange(299), np.full(299, 299))),
    "a path": (30, lambda rng: (np.arange(29), np.arange(1, 30))),
    "lattice": (80, lambda rng: layers(10, 8, 2, rng)),
    "chain": (96, lambda rng: layers(8, 12, 12, rng)),
    "no chain": (96, lambda rng: layers(8, 12, 11, rng)),
}


def operands_of(name, batches, seed=0):
    """The matrix, values (batches, nse), x0 (batches, n), half of them the zero of min_plus."""
    rng = np.random.default_rng(seed)
    n, edges = GRAPHS[name]
    row, col = edges(rng)
    order = np.lexsort((col, row))
    A = jsp.from_edges(row[order], col[order], shape=(n, n)).trim()
    values = rng.normal(size=(batches, A.nse)).astype(np.float32)
    return A, values, rng.normal(size=(batches, n)).astype(np.float32)


def by_edges(name, A, values, x0):
    mul, add = LOOPS[name]
    row, col = (np.asarray(v) for v in A.rowcol())
    order = np.asarray(jsp.topological_sort(A).generations)[row].argsort(kind="stable")
    x = x0.astype(np.float64)
    with np.errstate(all="ignore"):
        for e in order:
            x[:, col[e]] = add(x[:, col[e]], mul(x[:, row[e]], values[:, e]))
    return x


def by_kernel(monkeypatch, name, A, values, x0, grid):
    """The closures of all batches by one launch, planned as `jsp.closure` does."""
    given = {}

    def planned(*operands, known):
        assert gpu._refuse(*operands, known=known) is None
        given.update(pieces=operands[3], known=known)
        return operands[2]

    with monkeypatch.context() as patch:
        patch.setattr(levels, "sums", planned)
        jsp.closure(A.with_data(jnp.asarray(values[0])), SEMIRINGS[name], start=x0[0])
    run = jax.jit(lambda v, x: gpu.launched(SEMIRINGS[name], v.T, x.T, **given).T)
    with launching(grid):
        return run(jnp.asarray(values), jnp.asarray(x0))


def check(monkeypatch, name, graph, batches, grid):
    A, values, x0 = operands_of(graph, batches)
    found = by_kernel(monkeypatch, name, A, values, x0, grid)
    want = by_edges(name, A, values, x0)
    np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-6 * np.abs(want).max())


QUICK = [("log_plus", "chain", 1), ("plus_times", "scattered", 16), ("min_plus", "lattice", 3)]
QUICK += [("max_first", "no chain", 1), ("log_plus", "few", 1), ("plus_times", "a star", 1)]


@pytest.mark.parametrize(
    ("name", "graph", "batches"),
    [
        pytest.param(*case, marks=() if case in QUICK else pytest.mark.long)
        for case in itertools.product(LOOPS, GRAPHS, (1, 3, 16))
    ],
)
def test_is_a_loop_over_the_edges(name, graph, batches, monkeypatch):
    check(monkeypatch, name, graph, batches, Grid(2, 128, True))


@pytest.mark.parametrize("graph", ["chain", "scattered"])
def test_in_one_cta_too(graph, monkeypatch):
    check(monkeypatch, "log_plus", graph, 1, Grid(1, 64, True))


def public(name, graph, batches):
    """`jsp.closure` of the batches, their sums, and gradients of these by values and start."""
    A, values, x0 = operands_of(graph, batches)

    def total(values, x0):
        x = jsp.closure(A.with_data(values), SEMIRINGS[name], start=x0).x
        return jnp.sum(jnp.where(jnp.isfinite(x), x * jnp.cos(jnp.arange(x.size)), 0)), x

    run = jax.jit(jax.vmap(jax.value_and_grad(total, (0, 1), has_aux=True)))
    return A, values, x0, run, run(jnp.asarray(values), jnp.asarray(x0))


@pytest.mark.parametrize("name", ["plus_times", "log_plus"])
def test_gradient_of_a_chain_by_sums_over_paths(name, monkeypatch):
    """As on a GPU, where these are a launch each; else JAX differentiates the loop over layers."""
    *_, ((_, x), want) = public(name, "chain", 2)
    monkeypatch.setattr(api, "on_gpu", lambda places: True)
    *_, ((_, again), found) = public(name, "chain", 2)
    np.testing.assert_array_equal(again, x)
    for a, b in zip(found, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5 * np.abs(b).max())


def test_gradient_over_many_levels():
    """All paths of a lattice pass each layer once, so the shares of its edges have the sum 1."""
    steps, states = 3000, 4
    row, col = layers(steps, states, 2, np.random.default_rng(0))
    order = np.lexsort((col, row))
    A = jsp.from_edges(row[order], col[order], shape=(steps * states, steps * states)).trim()
    w = jax.random.normal(jax.random.key(0), (A.nse,))
    start = jnp.where(jnp.arange(A.shape[0]) < states, 0.0, -jnp.inf)

    def total(w):
        return jax.nn.logsumexp(jsp.closure(A.with_data(w), "log_plus", start=start).x[-states:])

    shares = jax.jit(jax.grad(total))(w).reshape(steps - 1, -1).sum(1)
    np.testing.assert_allclose(shares, 1, rtol=2e-5)


@pytest.mark.gpu
@pytest.mark.parametrize("batches", [1, 5])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", LOOPS)
def test_native(name, graph, batches):
    A, values, x0, run, ((_, x), gradients) = public(name, graph, batches)
    want = by_edges(name, A, values, x0)
    np.testing.assert_allclose(x, want, rtol=2e-5, atol=2e-6 * np.abs(want).max())
    with jax.default_device(jax.devices("cpu")[0]):
        *_, (_, want) = public(name, graph, batches)
    for a, b in zip(gradients, want, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-4 * np.abs(b).max())


@pytest.mark.parametrize("device", ["A100", "H100", "H200", "B200"])
@pytest.mark.parametrize("graph", ["lattice", "chain", "scattered"])
def test_it_lowers_in_one_launch(graph, device):
    if reason := kernels_refused():
        pytest.skip(reason)
    for batches in (1, 5):
        A, values, x0 = operands_of(graph, batches)
        closure = lambda v, x: jsp.closure(A.with_data(v), "log_plus", start=x).x  # noqa: B023, E731
        text = lower(jax.vmap(closure), values, x0, mesh=gpus(1, device))
        assert text.count("custom_call @mosaic_gpu") == 1


def test_lanes_whose_places_exceed_int32_run_one_by_one(monkeypatch):
    if reason := kernels_refused():
        pytest.skip(reason)
    loops = []
    for lanes, limit in ((6, gpu.LIMIT), (7, 432)):  # of a lattice of 144 edges
        A, values, x0 = operands_of("lattice", lanes)
        monkeypatch.setattr(gpu, "LIMIT", limit)
        closure = lambda v, x: jsp.closure(A.with_data(v), "log_plus", start=x).x  # noqa: B023, E731
        text = lower(jax.vmap(closure), values, x0)
        assert text.count("custom_call @mosaic_gpu") == 1
        loops.append(text.count("stablehlo.while"))
    assert loops == [0, 1]
