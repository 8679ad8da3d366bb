"""Functions of scalars as code of kernels, where and how they were traced."""

import jax
import jax.numpy as jnp
import numpy as np

from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.simt import scalar_jaxpr
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring

HOST = Grid(ctas=2, threads=64, interpret=True)


def test_functions_that_are_traced_while_constants_are_folded():
    """As for the size of a product of known matrices within a trace: constants are arrays there."""
    lengths = np.array([3, 0, 1, 4, 40])
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    A = indptr, np.arange(indptr[-1], dtype=np.int32) % 7, np.ones(indptr[-1], np.float32)

    def sums():
        with jax.ensure_compile_time_eval():
            three = lambda a, x: jnp.full((), 2, jnp.float32) + 1  # noqa: E731
            semiring = ScalarSemiring.of(three, lambda a, b: a + b, 0.0, jnp.float32)
            assert scalar_jaxpr.refuse(three, "float32", "float32") is None
            assert semiring.mul.consts
            y = csr_spmv(*map(jnp.asarray, A), jnp.ones(7), semiring=semiring, grid=HOST)
            np.testing.assert_array_equal(y, 3 * lengths)
            array = jnp.ones(3)
            assert "captures" in scalar_jaxpr.refuse(lambda a: (a * array).sum(), "float32")
        return y

    jax.make_jaxpr(sums)()
