"""Where x improves for ever, a fixpoint ends at its bound and says so, in every form."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms.fixpoint import gpu, xla
from jaxspv.algorithms.fixpoint.api import _checked, _Loop
from pallas_kernels.layouts import lengths
from pallas_kernels.sssp import rounds
from pallas_kernels.sssp.api import Config

SMALL = Config(
    ctas=2, threads=64, interpret=True, hops=3, span=4, unroll=2, near_buffer=64, far_buffer=64
)
MOST = 40


def cyclic(weight, dtype=np.float32):
    """0 -> 1 -> 2 -> 1: a cycle of two edges, of length `weight` + 1."""
    return jsp.from_edges([0, 1, 2], [1, 2, 1], np.array([1, weight, 1], dtype), shape=(3, 3))


def start(dtype=np.float32):
    return jnp.asarray([0, jsp.semirings.min_plus.zero(dtype), jsp.semirings.min_plus.zero(dtype)])


@pytest.mark.parametrize("how", [("cpu", "frontier"), ("xla", "dense")])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_a_cycle_of_negative_length_does_not_converge(how, dtype):
    backend, method = how
    options = {"monotone": True, "backend": backend, "method": method}
    found = jsp.fixpoint(cyclic(-2, dtype), start(dtype), jsp.semirings.min_plus, **options)
    assert not found.converged and found.iterations == lengths.most_rounds(3) == 1 << 17
    found = jsp.fixpoint(cyclic(-1, dtype), start(dtype), jsp.semirings.min_plus, **options)
    assert found.converged and found.x.tolist() == [0, 1, 0]


@pytest.mark.parametrize("semiring", ["max_plus", "max_times"])
def test_other_orders(semiring):
    ring = getattr(jsp.semirings, semiring)
    A = cyclic(2.0) if semiring == "max_times" else cyclic(0.5)
    x0 = jnp.full(3, ring.zero(np.float32)).at[0].set(1)
    found = jax.jit(lambda A: jsp.fixpoint(A, x0, ring, monotone=True))(A)
    assert bool(found.converged) == (semiring == "max_times")  # 2^k reaches infinity, and rests
    assert found.iterations <= 1 << 17


def test_a_bound_of_the_callers_own_holds():
    until = jsp.until.max_iterations(7)
    found = jsp.fixpoint(cyclic(-2), start(), jsp.semirings.min_plus, monotone=True, until=until)
    assert found.iterations == 7 and not found.converged


@pytest.mark.parametrize("weight", [-2, -1])
def test_the_kernel_ends_too(weight, monkeypatch):
    monkeypatch.setattr(rounds, "most_rounds", lambda n: MOST)
    monkeypatch.setattr(gpu, "most_rounds", lambda n: MOST)
    monkeypatch.setattr(xla, "most_rounds", lambda n: MOST)
    run = functools.partial(gpu.kernel, config=SMALL)
    monkeypatch.setattr(gpu, "kernel", run)
    loop = _Loop(monotone=True)
    operands, static = _checked(cyclic(weight), start(), jsp.semirings.min_plus, loop)
    _, steps, converged, status = gpu.persistent(*operands, **static)
    assert int(status) == 0 and int(steps) <= MOST
    assert bool(converged) == (weight == -1)
