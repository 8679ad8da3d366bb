"""The checks of `benchmarks.dev.stress` see what is wrong."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csgraph

from benchmarks import suite
from benchmarks.dev import stress
from pallas_kernels.cores import cores
from tests.kernels.test_lowering import lower, ring


@pytest.mark.parametrize("algorithm", ["bfs", "sssp"])
def test_checks_see_wrong_values_and_parents(algorithm, monkeypatch):
    monkeypatch.setattr(stress, "SIZES", ((256, 1024),))
    A = suite.get("grid12").matrix()
    problem = stress.Problem("grid12", A, algorithm)
    assert problem.n == 256 and problem.symmetric
    real = problem.arrays["weights"][: A.nnz]
    weighted = A.copy()
    weighted.data = np.ones_like(real) if algorithm == "bfs" else real
    right, tree = csgraph.dijkstra(weighted, indices=3, return_predecessors=True)
    infinite = stress.INFINITE[algorithm]
    values = np.full(256, infinite)
    values[:144] = np.where(np.isfinite(right), right, infinite)
    parents = np.full(256, -1, np.int32)
    parents[:144] = np.where(tree < 0, -1, tree)
    parents[3] = 3
    a = {name: jnp.asarray(x) for name, x in problem.arrays.items()}

    def wrong(values, parents):
        x = jnp.asarray(values)
        unproved = stress.proved(problem, a, 3, x)
        return int(unproved), int(stress.bad_parents(problem, a, 3, x, jnp.asarray(parents)))

    assert wrong(values, parents) == (0, 0)
    for vertex, value in ((70, values[70] - 1), (70, values[70] + 1), (3, 1), (200, 5)):
        assert wrong(np.where(np.arange(256) == vertex, value, values), parents)[0] > 0
    for vertex, parent in ((70, 71 + 12), (70, -1), (70, 70), (3, 4), (200, 0)):
        assert wrong(values, np.where(np.arange(256) == vertex, parent, parents))[1] > 0


def test_checks_see_cycles_along_edges_of_length_zero(monkeypatch):
    monkeypatch.setattr(stress, "SIZES", ((256, 1024),))
    A = suite.get("grid12").matrix()
    problem = stress.Problem("grid12", A, "sssp", zeros=True)
    half = problem.arrays["weights"][: A.nnz]
    assert 0 < np.count_nonzero(half) < A.nnz
    a = {name: jnp.asarray(x) for name, x in problem.arrays.items()} | {"weights": jnp.zeros(1024)}
    order, tree = csgraph.breadth_first_order(A, 0)
    parents = np.full(256, -1, np.int32)
    parents[order] = np.maximum(tree[order], 0)
    values = np.where(parents < 0, np.inf, 0).astype(np.float32)
    last = order[-1]
    cycle = parents.copy()
    cycle[parents[last]] = last  # the parent of the last vertex takes it as its own

    def wrong(parents):
        return int(stress.bad_parents(problem, a, 0, jnp.asarray(values), jnp.asarray(parents)))

    assert wrong(parents) == 0 and wrong(cycle) >= 2


def test_delays_put_sleeps_into_a_kernel():
    graph = [jnp.asarray(a) for a in ring(256)]
    plain = lower(lambda *a: cores(*a), *graph)
    with stress.delays():
        delayed = lower(lambda *a: cores(*a), *graph)
    assert "nanosleep" in delayed and "nanosleep" not in plain
