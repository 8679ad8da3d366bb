"""What eager products on a GPU keep of the patterns they multiplied; kernels are interpreted."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.eager import programs
from jaxspv.ops.products.mxm import gpu, methods, plan
from jaxspv.ops.write_rule import call as capacity
from pallas_kernels.simt.device import Grid, launching


@pytest.fixture
def as_on_a_gpu(monkeypatch):
    """Eager products take the kernels by rows; the list of the sizes that they waited for."""
    waited = []

    def looked_at(total):
        waited.append(total)
        return int(total)

    kernels = [
        dataclasses.replace(impl, backend="cpu", refuse=lambda *operands, **static: None)
        if impl.name == "rows"
        else impl
        for impl in methods.op.impls
    ]
    monkeypatch.setattr(programs, "platform_of", lambda leaves: "cuda")
    monkeypatch.setattr(programs, "_options", lambda: None)
    monkeypatch.setattr(plan, "on_gpu", lambda operands: True)
    monkeypatch.setattr(gpu, "no_kernels", gpu.no_rows)
    monkeypatch.setattr(plan, "int", looked_at, raising=False)
    monkeypatch.setattr(gpu, "float", looked_at, raising=False)
    monkeypatch.setattr(capacity, "_counted", looked_at)
    monkeypatch.setattr(methods.op, "_forms", kernels)
    with launching(Grid(2, 64, interpret=True)):
        yield waited


def test_sizes_are_asked_for_once_a_pattern(as_on_a_gpu):
    rng = np.random.default_rng(0)
    S = sp.csr_array(sp.random_array((12, 12), density=0.3, rng=rng, dtype=np.float32))
    A = jsp.from_scipy(S)
    for factor in (1, 2, 3):
        C = jsp.mxm(A.with_data(A.data * factor), A)
        np.testing.assert_allclose(C.todense(), factor * sp.csr_array(S @ S).toarray(), rtol=1e-5)
        assert C.nse >= int(C.count) == sp.csr_array(S @ S).nnz and not bool(C.overflow)
    assert len(as_on_a_gpu) == 2  # the longest row, the size
    with pytest.raises(ValueError, match="`nse` must be at least"):
        jsp.mxm(A, A, nse=3)
    transposed = jsp.mxm(A, A.T)  # of the same arrays
    np.testing.assert_allclose(transposed.todense(), sp.csr_array(S @ S.T).toarray(), rtol=1e-5)
    assert len(as_on_a_gpu) == 3
