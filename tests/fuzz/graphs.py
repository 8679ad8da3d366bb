"""Algorithms on random graphs, alone and inside of transformations, against SciPy."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.csgraph as csgraph
from jax import lax

import jaxspv as jsp

from .cases import Case, Fuzzer


def _graph(case: Case):
    rng = np.random.default_rng(case["seed"])
    n, density = case["n"], case["density"]
    dense = np.where(rng.random((n, n)) < density, rng.integers(1, 9, (n, n)), 0)
    dense = np.maximum(dense, dense.T) if case["symmetric"] else dense
    return dense.astype(np.float32), int(rng.integers(n))


def _wrapped(f, kind: str):
    """`f(source)` inside of a transformation that leaves its result as it is."""
    return {
        "eager": f,
        "jit": jax.jit(f),
        "vmap": lambda s: jax.vmap(f)(jnp.full(2, s))[1],
        "cond": lambda s: jax.vmap(lambda b: lax.cond(b > 0, f, lambda v: f(v) * 0, s))(
            jnp.array([0, 1])
        )[1],
        "switch": lambda s: jax.jit(lambda i: lax.switch(i, [lambda v: f(v) * 0, f], s))(1),
        "while": lambda s: lax.while_loop(
            lambda c: c[0] < 2, lambda c: (c[0] + 1, f(s)), (0, jnp.zeros_like(f(s)))
        )[1],
        "scan": lambda s: lax.scan(lambda c, v: (c, f(v)), 0, jnp.full(2, s))[1][1],
        "checkpoint": lambda s: jax.jit(jax.checkpoint(lambda v: f(v)))(s),
        "nested": lambda s: jax.jit(lambda v: jax.jit(f)(v))(s),
    }[kind]


def run(case: Case) -> None:
    """Raises where the algorithm of the case gives another result than SciPy."""
    with jax.enable_x64(case["x64"]):
        _run(case)


def _run(case: Case) -> None:
    dense, source = _graph(case)
    A = jsp.from_scipy(scipy.sparse.csr_array(dense), format=case["format"])
    G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank")) if case["prepared"] else A
    matrix = scipy.sparse.csr_array(dense)
    s = jnp.int32(source) if case["wrapper"] != "eager" else source
    if case["algorithm"] == "bfs":
        got = _wrapped(lambda v: jsp.bfs(G, v).levels, case["wrapper"])(s)
        want = csgraph.dijkstra(matrix, indices=source, unweighted=True)
        want = np.where(np.isinf(want), -1, want)
    elif case["algorithm"] == "sssp":
        got = _wrapped(lambda v: jsp.sssp(G, v).distances, case["wrapper"])(s)
        want = csgraph.dijkstra(matrix, indices=source)
    elif case["algorithm"] == "components":
        got = _wrapped(lambda v: jsp.connected_components(G).labels + 0 * v, case["wrapper"])(s)
        labels = csgraph.connected_components(matrix, directed=True, connection="weak")[1]
        want = np.array([np.flatnonzero(labels == label)[0] for label in labels])
    else:
        got = _wrapped(lambda v: jsp.pagerank(G, tol=1e-6).scores + 0 * v, case["wrapper"])(s)
        np.testing.assert_allclose(np.asarray(got), _pagerank(dense), atol=2e-5)
        return
    np.testing.assert_array_equal(np.asarray(got), want)


def _pagerank(dense: np.ndarray) -> np.ndarray:
    n, out = len(dense), dense.sum(1)
    move = np.where(out[:, None] > 0, dense / np.where(out > 0, out, 1)[:, None], 1 / n)
    x = np.full(n, 1 / n)
    for _ in range(200):
        x = 0.85 * x @ move + 0.15 / n
    return x


FUZZER = Fuzzer(
    {
        "algorithm": ("bfs", "sssp", "components", "pagerank"),
        "wrapper": (
            "eager", "jit", "vmap", "cond", "switch", "while", "scan", "checkpoint", "nested",
        ),
        "n": (3, 1, 12, 40),
        "density": (0.3, 0.0, 0.05, 0.9),
        "symmetric": (False, True),
        "format": ("csr", "csc", "coo", "tiled"),
        "prepared": (False, True),
        "x64": (False, True),
    },
    run,
)  # fmt: skip
