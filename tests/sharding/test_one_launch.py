"""One launch on each GPU of a host gives what one device gives; natively, on all GPUs there are."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import Mesh

import jaxspv as jsp
from jaxspv.sharding.graph import ShardedGraph


def columns(A, source, **how):
    """A product with small whole numbers, whose sums are exact in any order."""
    X = (jnp.arange(A.shape[0])[:, None] + jnp.arange(128) + source) % 7
    return jsp.mxm(A, X.astype(jnp.float32), **how)


def dealt(A, source, **how):
    """The same, of rows that lie with their vertices."""
    X = (jnp.arange(A.shape[0])[:, None] + jnp.arange(72) + source) % 7.0
    if not isinstance(A, ShardedGraph):
        return A @ X
    return A.gather(jsp.mxm(A, A.deal(X), **how))


CALLS = {
    "columns": columns,
    "dealt": dealt,
    "bfs": lambda A, source, **how: jsp.bfs(A, source, deterministic=True, **how),
    "levels": lambda A, source, **how: jsp.bfs(A, source, parents=False, **how)[0],
    "sssp": lambda A, source, **how: jsp.sssp(A, source, parents=False, **how).distances,
    "components": lambda A, source, **how: jsp.connected_components(A, **how),
    "pagerank": lambda A, source, **how: jsp.pagerank(A, **how).scores,
}


def graphs():
    """Name -> (matrix, whether it is symmetric): wide and narrow levels, directed, nearly empty."""
    n = 700
    rng = np.random.default_rng(0)
    row, col = rng.integers(0, n, (2, 4000))
    weight = rng.integers(1, 9, 4000).astype(np.float32)
    both = np.append(row, col), np.append(col, row), np.append(weight, weight)
    return {
        "R-MAT": (jsp.generators.rmat(jax.random.key(0), 12, 16), True),
        "grid": (jsp.generators.grid2d(None, 40), True),
        "random": (jsp.from_edges(*both, shape=(n, n)), True),
        "directed": (jsp.from_edges(row[:1500], col[:1500], weight[:1500], shape=(n, n)), False),
        "path": (jsp.from_edges(np.arange(60), np.arange(1, 61), shape=(90, 90)), False),
    }


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["R-MAT", "grid", "random", "directed", "path"])
def test_natively(name):
    if jax.device_count() < 2:
        pytest.skip("needs several GPUs")
    A, symmetric = graphs()[name]
    mesh = Mesh(np.array(jax.devices()), ("d",))
    G = jsp.shard(A, mesh, symmetric=symmetric)
    for what, call in CALLS.items():
        if what == "pagerank" and not symmetric:
            continue
        one = jax.jit(call)
        together = jax.jit(lambda G, s, call=call: call(G, s, backend="pallas"))
        for source in (0, A.shape[0] // 2):
            want, got = one(A, jnp.int32(source)), together(G, jnp.int32(source))
            tolerance = 1e-4 if what == "pagerank" else 0
            for g, w in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
                np.testing.assert_allclose(g, w, tolerance, err_msg=f"{what} from {source}")
