"""fixpoint through the public API on a GPU: its kernel against SciPy, again and again, in scans."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.sparse import csgraph

import jaxspv as jsp
from tests.algorithms.common.test_on_gpu import GRAPHS

pytestmark = pytest.mark.gpu
SOURCES = 64


@pytest.mark.parametrize("name", GRAPHS)
def test_sixty_four_sources_in_a_scan_twenty_times(name):
    """The answer must not change: that would be a race."""
    A = GRAPHS[name]()
    n = A.shape[0]
    G = jsp.prepare(jsp.from_scipy(A), for_="fixpoint")
    sources = np.random.default_rng(1).integers(0, n, SOURCES).astype(np.int32)
    x0 = jnp.full(n, jnp.inf)
    plan = jsp.explain("fixpoint", G, x0, jsp.semirings.min_plus, monotone=True)
    assert plan.chosen[0].backend == "pallas", str(plan)

    def one(carry, source):
        start = jnp.full(n, jnp.inf).at[source].set(0)
        return carry, jsp.fixpoint(G, start, jsp.semirings.min_plus, monotone=True)

    run = jax.jit(lambda s: jax.lax.scan(one, 0, s)[1])
    expected = csgraph.dijkstra(A, indices=sources)
    for _ in range(20):
        found = run(jnp.asarray(sources))
        assert not np.asarray(found.status).any()
        np.testing.assert_array_equal(found.x, expected)


@pytest.mark.parametrize("semiring", ["max_min", "min_max", "max_first", "min_plus"])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", ["directed", "grid"])
def test_every_order_ends_as_on_xla(name, dtype, semiring):
    S = GRAPHS[name]()
    A = jsp.from_scipy(S)
    algebra = getattr(jsp.semirings, semiring)
    x0 = np.full(A.shape[0], algebra.zero(dtype))
    x0[[5, 77]] = [3, 40]
    G = jsp.prepare(A.with_data(A.data.astype(dtype)), for_="fixpoint")
    run = {
        b: jsp.fixpoint(G, jnp.asarray(x0), algebra, monotone=True, backend=b)
        for b in ("pallas", "xla")
    }
    np.testing.assert_array_equal(run["pallas"].x, run["xla"].x)


def test_booleans_and_gradients():
    S = GRAPHS["directed"]()
    A = jsp.from_scipy(S)
    x0 = jnp.zeros(A.shape[0], bool).at[5].set(True)
    B = A.with_data(jnp.ones(A.nse, bool))
    found = jsp.fixpoint(B, x0, jsp.semirings.or_and, monotone=True, backend="pallas")
    order = csgraph.breadth_first_order(S, 5, return_predecessors=False)
    assert np.flatnonzero(found.x).tolist() == sorted(order.tolist())
    start = jnp.full(A.shape[0], jnp.inf).at[5].set(0)

    def total(data, backend):
        G = A.with_data(data)
        paths = jsp.fixpoint(G, start, jsp.semirings.min_plus, monotone=True, backend=backend).x
        return jnp.where(jnp.isfinite(paths), paths, 0).sum()

    gradients = [jax.grad(total)(A.data, b) for b in ("pallas", "xla")]
    np.testing.assert_allclose(*gradients, rtol=1e-6)
