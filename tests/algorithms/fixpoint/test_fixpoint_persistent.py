"""`fixpoint` around its kernels, interpreted: the same end as the XLA form, and who is refused."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph
from fixpoint_cases import N, start, weighted

import jaxspv as jsp
from jaxspv._core import forms
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv.algorithms.fixpoint import gpu as push
from jaxspv.algorithms.fixpoint.api import _checked, _Loop
from pallas_kernels.sssp.problem import Config
from tests.kernels.test_lowering import lower

SMALL = Config(
    ctas=2, threads=64, interpret=True, hops=3, span=4, unroll=2, near_buffer=64, far_buffer=64
)


def call(G, x0, semiring, **options):
    return _checked(G, x0, semiring, _Loop(**({"monotone": True} | options)))


@pytest.fixture
def interpreted(monkeypatch):
    monkeypatch.setattr(push, "kernel", functools.partial(push.kernel, config=SMALL))
    monkeypatch.setattr(forms, "kernels_refused", lambda: None)


CASES = {
    "min_plus": (np.float32, np.float32),
    "max_min": (np.float32, np.int32),
    "min_max": (np.int32, np.int32),
    "or_and": (np.bool_, np.bool_),
    "min_second": (np.float32, np.float32),
    "min_plus ": (np.int32, np.int32),
}


@pytest.mark.parametrize("name,prepared", [("min_plus", False), *((name, True) for name in CASES)])
def test_the_kernel_ends_where_the_loop_does(name, prepared, interpreted):
    dtype, data_dtype = CASES[name]
    semiring = getattr(jsp.semirings, name.strip())
    _, A = weighted()
    A = A.with_data(A.data.astype(data_dtype))
    x0 = np.full(N, semiring.zero(dtype))
    x0[[2, 9]] = [3, 4]
    x0 = jnp.asarray(x0)
    purposes = ("fixpoint",) if data_dtype is np.bool_ else ("sssp", "fixpoint")
    G = jsp.prepare(A, for_=purposes) if prepared else A
    operands, static = call(G, x0, semiring)
    assert push.not_persistent(*operands, **static) is None
    x, rounds, converged, status = push.persistent(*operands, **static)
    expected = jsp.fixpoint(A, x0, semiring, monotone=True, backend="xla")
    np.testing.assert_array_equal(x, expected.x)
    assert bool(converged) and int(status) == 0 and int(rounds) > 0


def test_negative_starts_and_lengths(interpreted):
    """Buckets need what is not negative: they are then one bucket."""
    S, A = weighted(seed=3)
    G = jsp.prepare(A, for_=("sssp", "fixpoint"))
    operands, static = call(G, start(4, at=-7.5), jsp.semirings.min_plus)
    x, *_ = push.persistent(*operands, **static)
    np.testing.assert_array_equal(x, csgraph.bellman_ford(S, indices=4) - 7.5)
    height = np.random.default_rng(3).integers(0, 50, N)  # no cycle becomes shorter by it
    S.data += np.repeat(height, np.diff(S.indptr)) - height[S.indices]
    assert (S.data < 0).any()
    G = jsp.prepare(jsp.from_scipy(S), for_=("sssp", "fixpoint"))
    operands, static = call(G, start(4), jsp.semirings.min_plus)
    x, *_ = push.persistent(*operands, **static)
    np.testing.assert_array_equal(x, csgraph.bellman_ford(S, indices=4))


def edges_of(weights):
    """What `weights` makes of the weights of a graph."""
    _, A = weighted()
    return jsp.prepare(A.with_data(weights(A.data)), for_=("sssp", "fixpoint"))


OWN = jsp.semiring(jnp.minimum, lambda x, a: a + x)


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="the kernels need a newer JAX")
@pytest.mark.parametrize(
    "semiring,weights,in_buckets",
    [
        (jsp.semirings.min_plus, jnp.asarray, True),
        (OWN, jnp.asarray, True),
        (jsp.semirings.min_max, jnp.asarray, False),
        (jsp.semirings.max_min, jnp.asarray, False),
        (jsp.semirings.min_plus, jnp.negative, False),
        (jsp.semirings.min_plus, lambda a: a.astype(jnp.int32), False),
    ],
)
def test_lengths_are_relaxed_in_buckets(semiring, weights, in_buckets, monkeypatch):
    """Within a program too, where a semiring is another object (a mesh took six times as long)."""
    widths = []

    def recorded(*args, delta, **options):
        widths.append(delta)
        return kernel(*args, delta=delta, **options)

    kernel = push.kernel
    monkeypatch.setattr(push, "kernel", recorded)
    x0 = jnp.full(N, semiring.zero(np.float32)).at[4].set(1)
    lower(lambda G, x0: jsp.fixpoint(G, x0, semiring, monotone=True), edges_of(weights), x0)
    assert widths and all((w is not None) == in_buckets for w in widths)


def test_what_keeps_a_loop_from_the_kernel(interpreted):
    _, A = weighted()
    lowest = jsp.semirings.min_plus

    def reason(x0=None, semiring=lowest, **options):
        x0 = start(0) if x0 is None else x0
        operands, static = call(A, x0, semiring, **options)
        return push.not_persistent(*operands, **static)

    assert reason() is None
    assert reason(jnp.full(N, jnp.inf).at[0].set(0)) is None  # of weak type
    assert reason(update=lambda old, y, i, sums: jnp.minimum(y, old)) is None
    assert "more than the addition" in reason(update=lambda x, y, i, s: jnp.minimum(x, y) + 0 * i)
    assert "until" in reason(until=jsp.until.reached(3))
    assert "not declared" in reason(monotone=False, until=jsp.until.max_iterations(1))
    assert "positional" in reason(start(0, dtype=np.int32), jsp.semirings.min_secondi)
    bessel = jsp.semiring(jsp.monoids.min_, lambda x, a: x + jax.scipy.special.i0(a))
    assert "kernels have no `" in reason(semiring=bessel)
    text = str(jsp.explain("fixpoint", A, start(0), bessel, monotone=True))
    assert "not pallas/frontier" in text and "kernels have no `" in text


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="the kernels need a newer JAX")
def test_lowered_for_a_gpu_a_loop_is_one_launch():
    _, A = weighted()

    def run(G, s):
        x0 = jnp.full(N, jnp.inf).at[s].set(0)
        return jsp.fixpoint(G, x0, jsp.semirings.min_plus, monotone=True)

    def scanned(G, sources):
        return jax.lax.scan(lambda c, s: (c, run(G, s)), 0, sources)[1]

    def launches(fn, *args):
        return lower(fn, *args).count("custom_call @mosaic_gpu")

    assert launches(run, A, jnp.int32(0)) == 1
    assert launches(scanned, A, jnp.arange(3)) == 1
