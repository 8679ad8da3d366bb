"""Operations give one result eagerly, under jit and on an explicit device: chex's variants."""

import chex
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp

pytestmark = pytest.mark.fast
A = sp.random_array((9, 9), density=0.3, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
B = sp.random_array((9, 9), density=0.3, rng=np.random.default_rng(1), dtype=np.float32).tocsr()
X = np.random.default_rng(2).random(9, np.float32)
EVERY_WAY = chex.variants(with_jit=True, without_jit=True, with_device=True, without_device=True)


class TestVariants(chex.TestCase):
    @EVERY_WAY
    def test_products(self):
        a, b = jsp.from_scipy(A), jsp.from_scipy(B)
        y = self.variant(lambda a, x: jsp.mxv(a, x))(a, X)
        np.testing.assert_allclose(y, A @ X, rtol=1e-5)
        C = self.variant(lambda a, b: jsp.mxm(a, b, nse=81))(a, b)
        np.testing.assert_allclose(C.todense(), (A @ B).toarray(), rtol=1e-5)

    @EVERY_WAY
    def test_element_wise(self):
        a, b = jsp.from_scipy(A), jsp.from_scipy(B)
        union = self.variant(lambda a, b: jsp.ewise_add(a, b))(a, b)
        np.testing.assert_allclose(union.todense(), (A + B).toarray(), rtol=1e-6)
        both = self.variant(lambda a, b: jsp.ewise_mult(a, b))(a, b)
        np.testing.assert_allclose(both.todense(), (A * B).toarray(), rtol=1e-6)

    @EVERY_WAY
    def test_searches(self):
        graph = jsp.prepare(jsp.from_scipy(A), for_=("bfs", "sssp"))
        levels = self.variant(lambda G, s: jsp.bfs(G, s).levels)(graph, jnp.int32(0))
        hops = sp.csgraph.dijkstra(A, indices=0, unweighted=True)
        np.testing.assert_array_equal(levels, np.where(np.isfinite(hops), hops, -1))
        far = self.variant(lambda G, s: jsp.sssp(G, s).distances)(graph, jnp.int32(0))
        np.testing.assert_allclose(far, sp.csgraph.dijkstra(A, indices=0), rtol=1e-6)
