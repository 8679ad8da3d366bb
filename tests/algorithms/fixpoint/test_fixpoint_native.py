"""`fixpoint` by native loops: the steps of the form for every platform, and native indeed."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algebra import semirings

N = 300
EDGES = np.random.default_rng(0).integers(0, N, (2, 900))
LENGTHS = np.random.default_rng(1).uniform(0.5, 2, 900).astype(np.float32)


def start(semiring, dtype):
    """The identity of the addition, and that of the multiplication at vertex 0."""
    ones = {"min_plus": 0, "max_min": np.inf, "or_and": True, "min_max": -np.inf, "max_times": 1}
    x0 = np.full(N, semiring.zero(dtype))
    x0[0] = ones[str(semiring).removeprefix("Semiring(").rstrip(")")]
    return jnp.asarray(x0)


CASES = [
    (semirings.min_plus, np.float32),
    (semirings.max_min, np.float32),
    (semirings.min_max, np.float32),
    (semirings.max_times, np.float32),
    (semirings.or_and, bool),
]


@pytest.mark.parametrize("semiring, dtype", CASES, ids=lambda v: str(v))
def test_both_forms_take_the_same_steps(semiring, dtype):
    A = jsp.from_edges(*EDGES, LENGTHS, shape=(N, N), dup=jsp.monoids.min_)
    A = A.with_data(A.data / 2 if semiring is semirings.max_times else A.data)
    A = A.with_data(A.data.astype(dtype))
    x0 = start(semiring, dtype)
    more = (jsp.until.max_iterations(2), jsp.until.reached(7), jsp.until.residual(0.5))
    for until in (None, *(more if semiring is semirings.min_plus else ())):
        found, want = (
            jsp.fixpoint(A, x0, semiring, monotone=True, until=until, backend=b, method=method)
            for b, method in (("cpu", "frontier"), ("xla", "dense"))
        )
        np.testing.assert_array_equal(found.x, want.x)
        assert (found.iterations, found.converged) == (want.iterations, want.converged)


def test_updates_with_operands_and_vmap():
    A = jsp.from_edges(*EDGES, LENGTHS, shape=(N, N), dup=jsp.monoids.min_)
    most = jnp.linspace(2, 6, N)

    def capped(x, y, i, most, sums):
        return jnp.where(y <= most, jnp.minimum(x, y), x)

    def run(x0, backend):
        return jsp.fixpoint(
            A,
            x0,
            semirings.min_plus,
            update=capped,
            operands=(most,),
            monotone=True,
            backend=backend,
        ).x

    x0 = start(semirings.min_plus, np.float32)
    many = jnp.stack([x0, jnp.roll(x0, 5)])
    want = jnp.stack([run(x, "xla") for x in many])
    np.testing.assert_array_equal(jax.vmap(lambda x: run(x, "cpu"))(many), want)
    assert 1 < np.isfinite(want[0]).sum() < N


def test_the_loops_are_native_and_copy_nothing():
    A = jsp.from_edges(*EDGES, LENGTHS, shape=(N, N), dup=jsp.monoids.min_)

    def run(A, x0):
        return jsp.fixpoint(A, x0, semirings.min_plus, monotone=True).x

    text = jax.jit(run).lower(A, start(semirings.min_plus, np.float32)).compile().as_text()
    assert text.count('xla_cpu_small_call="true"') >= 3
    bodies = re.findall(r"^%?[\w.-]*region[^\n]*\{\n(.*?)^\}", text, re.M | re.S)
    inner = [b for b in bodies if "small_call" not in b]
    assert inner and not any(re.search(r"\[\d{3,}\]\S* copy\(", b) for b in inner)
    plan = str(jsp.explain("fixpoint", A, jnp.zeros(N), semirings.min_plus, monotone=True))
    assert "cpu/frontier on CPUs" in plan and "note: `sssp` takes near vertices first" in plan
