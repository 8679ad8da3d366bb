"""Core numbers by the kernel: what calls choose, and that it is right where there is a GPU."""

import jax
import numpy as np
import pytest
from graph_cases import named, random_matrix

import jaxspv as jsp
from jaxspv import verify
from jaxspv.algorithms.connectivity import cores as module


def test_no_call_takes_a_kernel_that_has_not_run():
    A = jsp.from_scipy(random_matrix(20, 40, 0, symmetric=True))
    if module.RAN:
        pytest.skip("the kernel has run")
    with pytest.raises(NotImplementedError):
        jsp.core_number(A, backend="pallas", method="levels")


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["karate", "wiki-Vote", "coAuthorsDBLP", "moscow-roads"])
def test_native_levels(name, monkeypatch):
    monkeypatch.setattr(module, "RAN", True)
    A = named(name)
    if A is None:
        pytest.skip("no real graphs")
    G = jsp.prepare(jsp.from_scipy(A + A.T), for_=(), symmetric=True)
    for call in (jsp.core_number, jax.jit(jsp.core_number)):
        verify.cores(np.abs(A) + np.abs(A.T), call(G))
