"""What the kernels of sparse products get and give, interpreted, beside the other methods."""

import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.formats.csr import sorted_csr
from jaxspv.ops.mxm import gpu
from jaxspv.ops.mxm.call import checked
from jaxspv.ops.mxm.result import sorted_mask

M, L, N, ROOM = 20, 30, 40, 800
CASES = [
    ("plus_times", np.float32),
    ("min_plus", np.float32),
    ("max_times", np.int32),
    ("or_and", np.bool_),
    ("lxor_land", np.bool_),
    ("plus_pair", np.int32),
    ("any_pair", np.float32),
    ("min_secondi", np.int32),
    ("max_firsti", np.float32),
    ("times_plus", np.float32),
]


def matrix(m, n, density, seed, dtype):
    A = sp.random_array((m, n), density=density, rng=np.random.default_rng(seed), format="csr")
    A.data = np.random.default_rng(seed).integers(1, 5, A.nnz).astype(dtype)
    return jsp.from_scipy(A, nse=A.nnz + 5)


def masks():
    listed = matrix(M, N, 0.3, 3, np.int32)
    by_value = listed.with_data(jnp.arange(listed.nse) % 3)
    return None, jsp.structure(listed), ~jsp.structure(listed), by_value, ~by_value


@pytest.mark.parametrize("name, dtype", CASES)
def test_kernels_give_what_the_other_methods_give(name, dtype):
    semiring = getattr(jsp.semirings, name)
    A, B = matrix(M, L, 0.3, 1, dtype), matrix(L, N, 0.5, 2, dtype)
    for number, mask in enumerate(masks()):
        call = checked(A, B, semiring, mask)
        assert gpu.no_rows(*call.operands) is None
        want = jsp.mxm(A, B, semiring, mask=mask, nse=ROOM, method="sort")
        first, wanted = sorted_csr(call.A), sorted_mask(call.mask)
        how = {"nse": ROOM, "interpret": True}
        results = [gpu.multiply_by_rows(call.semiring, first, sorted_csr(call.B), wanted, **how)]
        if number in (1, 3):  # masks that list places
            assert wanted is not None
            columns = sorted_csr(call.B.T).T
            results.append(gpu.multiply_places(call.semiring, first, columns, wanted, **how))
        for r in results:
            count = int(want.count)
            assert int(r.total) == count > 50 and r.data.dtype == want.data.dtype
            np.testing.assert_array_equal(r.indptr, want.indptr)
            np.testing.assert_array_equal(r.indices, want.indices)
            np.testing.assert_allclose(r.data[:count], want.data[:count], rtol=1e-5)


def test_what_the_kernels_do_not_serve_is_told():
    A = matrix(5, 5, 0.5, 0, np.float32)

    def reason(A, semiring, mask=None):
        return str(gpu.no_rows(*checked(A, A, semiring, mask).operands))

    s = jsp.semirings
    assert reason(A, s.plus_times) == "None"
    assert "mask is an array" in reason(A, s.plus_times, jnp.ones((5, 5), bool))
    assert "not float16" in reason(A.astype(jnp.float16), s.plus_times)
    assert "overflow" in reason(A.astype(jnp.int32), s.min_plus)
    assert "in any order" in reason(A, s.any_first)
    assert "`logaddexp`" in reason(A, s.log_plus)
