"""Core numbers, triangles and strong components of real graphs by kernels, on a GPU."""

import jax
import pytest
from graph_cases import named

import jaxspv as jsp
from jaxspv import verify


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["karate", "wiki-Vote", "coAuthorsDBLP", "moscow-roads"])
def test_native(name):
    A = named(name)
    S = abs(A.to_scipy())
    S = S + S.T
    G = jsp.prepare(jsp.from_scipy(S), for_=(), symmetric=True)
    for call in (jsp.core_number, jax.jit(jsp.core_number)):
        verify.cores(S, call(G))
    for count in (jsp.triangle_count, jax.jit(jsp.triangle_count)):
        verify.triangles(S, count(G))


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["wiki-Vote", "p2p-Gnutella31", "cit-HepPh", "cnr-2000"])
def test_strong_components(name):
    A = named(name)
    for call in (jsp.strongly_connected_components, jax.jit(jsp.strongly_connected_components)):
        for G in (A, jsp.prepare(A, for_=())):
            verify.strong_components(A, call(G))
