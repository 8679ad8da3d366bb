"""Monoids of the user: parameters, declarations, functions that are recognised, misuse."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

import jaxspv as jsp
from jaxspv.algebra import operators
from jaxspv.algebra.monoids import ALL

pytestmark = pytest.mark.fast


def soft_minimum(x, y, temperature):
    return -jnp.logaddexp(-temperature * x, -temperature * y) / temperature


def test_user_monoid_with_a_parameter_under_jit_and_grad():
    def soft(temperature):
        return jsp.monoid(jsp.BinaryOp(soft_minimum, "soft_min", (temperature,)), np.inf)

    x, ids = jnp.asarray([3.0, 1.0, 2.0, 7.0, 5.0]), jnp.asarray([0, 0, 1, 0, 1])
    at = np.float64(x)
    want = -np.log(np.exp(-2 * at).sum()) / 2
    np.testing.assert_allclose(jax.jit(lambda m, x: m.reduce(x))(soft(2.0), x), want, rtol=1e-6)
    weights = np.exp(-2 * at) / np.exp(-2 * at).sum()
    np.testing.assert_allclose(jax.grad(lambda x: soft(2.0).reduce(x))(x), weights, rtol=1e-5)
    slope = jax.grad(lambda t: soft(t).reduce(x))(2.0)
    step = (soft(2.01).reduce(x) - soft(1.99).reduce(x)) / 0.02
    np.testing.assert_allclose(slope, step, rtol=1e-2)
    by_two = jax.jit(lambda m, x: m.segment_reduce(x, ids, 3))(soft(2.0), x)
    parts = [-np.log(np.exp(-2 * at[np.asarray(ids) == s]).sum()) / 2 for s in (0, 1)]
    np.testing.assert_allclose(by_two, [*parts, np.inf], rtol=1e-6)


def test_user_monoid_without_a_scatter():
    gcd = jsp.monoid(jnp.gcd, 0)
    x = jnp.asarray([12, 18, 5, 10, 30])
    assert gcd.kind is None and gcd.name == "gcd"
    assert gcd.segment_reduce(x, jnp.asarray([0, 0, 2, 2, -1]), 3).tolist() == [6, 0, 5]
    assert int(gcd.reduce(x)) == 1
    assert gcd.reduce(x[None, :], 0).tolist() == x.tolist()


def nearer_to_zero(x, y):
    return jnp.where(jnp.abs(y) < jnp.abs(x), y, x)


def test_a_selective_monoid_of_the_user_is_differentiated_through_what_wins():
    nearest = jsp.monoid(nearer_to_zero, np.inf, selective=True)
    assert nearest.idempotent and nearest.selective and not nearest.scatters
    A = jsp.from_dense(np.array([[-4.0, 3.0, 0.0], [0.0, -1.0, 2.0]], np.float32))
    semiring = jsp.semiring(nearest, jnp.multiply)

    def total(data, x):
        return jsp.mxv(A.with_data(data), x, semiring).sum()

    by_data, by_x = jax.grad(total, (0, 1))(A.data, jnp.ones(3))
    assert by_data.tolist() == [0, 1, 1, 0] and by_x.tolist() == [0, 2, 0]
    slope = jax.grad(lambda data: jsp.reduce(A.with_data(data), nearest))(A.data)
    assert slope.tolist() == [0, 0, 1, 0]


def test_an_idempotent_monoid_of_the_user_may_run_monotonically():
    """The greatest common divisor of the starts that reach a vertex."""
    A = jsp.from_edges(np.array([0, 1, 2]), np.array([1, 2, 1]), np.ones(3, np.int32), shape=(4, 4))
    x0 = jnp.asarray([12, 18, 0, 5], jnp.int32)

    def run(**declared):
        gcd = jsp.monoid(jnp.gcd, 0, **declared)
        return jsp.fixpoint(A, x0, jsp.semiring(gcd, operators.first), monotone=True).x

    assert run(idempotent=True).tolist() == [12, 6, 6, 5]
    with pytest.raises(ValueError, match="`gcd` is not declared to be"):
        run()


def test_well_known_functions_are_recognised():
    known = {
        jnp.add: "plus",
        jnp.multiply: "times",
        jnp.minimum: "min",
        jnp.maximum: "max",
        jnp.logical_or: "lor",
        jnp.logical_and: "land",
        jnp.logical_xor: "lxor",
        jnp.bitwise_or: "bor",
        jnp.bitwise_and: "band",
        jnp.bitwise_xor: "bxor",
        jnp.logaddexp: "logaddexp",
        lax.add: "plus",
        lax.mul: "times",
        lax.min: "min",
        lax.max: "max",
        operators.lxnor: "lxnor",
        operators.bxnor: "bxnor",
    }
    for op, name in known.items():
        mine, builtin = jsp.monoid(op), next(m for m in ALL if m.name == name)
        for field in ("identity", "terminal", "kind", "dtypes", "idempotent", "selective"):
            assert getattr(mine, field) == getattr(builtin, field)
    assert jsp.monoid(jnp.add, 0.0).kind == "add"
    assert jsp.monoid(jnp.maximum, 0).kind is None  # non-negative numbers: another identity
    assert jsp.monoid(jnp.maximum, 0).reduce(jnp.zeros(0)) == 0
    assert jsp.monoid(jnp.minimum, terminal=0).terminal_of(np.int8) == 0
    assert jsp.monoid(jnp.add, name="mine").name == "mine"


LAWFUL = {
    "hypot, of what is not negative": (jnp.hypot, 0.0),
    "noisy or": (lambda x, y: x + y - x * y, 0),
    "bounded sum, of probabilities": (lambda x, y: jnp.minimum(x + y, 1), 0),
    "bounded difference, of probabilities": (lambda x, y: jnp.maximum(x + y - 1, 0), 1),
    "maximum of what is not negative": (jnp.maximum, 0),
    "minimum up to a bound": (jnp.minimum, 100),
    "parallel resistances": (lambda x, y: 1 / (1 / x + 1 / y), np.inf),
    "sum modulo 5": (lambda x, y: (x + y) % 5, 0),
    "logarithms of a sum": (lambda x, y: jnp.log(jnp.exp(x) + jnp.exp(y)), -np.inf),
    "a branch": (lambda x, y: lax.cond(x > y, lambda: x, lambda: y), -np.inf),
    "bits": (lambda x, y: x | y, 0),
    "exclusive nor of truth values": (lambda x, y: ~(x ^ y), True),
    "an identity by dtype": (lambda x, y: jnp.maximum(x, y), lambda d: -9 if d.kind == "i" else 0),
    "a loop": (jnp.gcd, 0),  # not followed, so trusted
    "a loop without laws": (lambda x, y: jnp.gcd(x, y) + 1, 0),
}
LAWLESS = {
    "difference": (lambda x, y: x - y, 0, r"`identity` joined .*: op\(0.0, "),
    "mean": (lambda x, y: (x + y) / 2, 0, "`identity` joined"),
    "distance": (lambda x, y: jnp.abs(x - y), 0, "`identity` joined"),
    "minimum": (jnp.minimum, 0, "`identity` joined"),
    "maximum": (jnp.maximum, 5, "`identity` joined"),
    "product": (jnp.multiply, 0, "`identity` joined"),
    "sum": (jnp.add, 1, "`identity` joined"),
    "soft minimum": (lambda x, y: -jnp.logaddexp(-x, -y), 0, "`identity` joined"),
    "bits": (lambda x, y: ~(x & y), -1, "`identity` joined"),
    "implication": (lambda x, y: ~x | y, True, "`identity` joined"),
    "polynomial": (lambda x, y: x + y + x * x * y * y, 0, r"`op` is not associative: with \(x, y"),
    "by two": (lambda x, y: jnp.where(x * y == 0, x + y, (x + y) / 2), 0, "not associative"),
}


@pytest.mark.parametrize("name", LAWFUL)
def test_laws_that_hold_for_some_numbers_are_enough(name):
    assert not jsp.monoid(*LAWFUL[name]).of_tuples


@pytest.mark.parametrize("name", LAWLESS)
def test_broken_laws_are_refused_when_made(name):
    op, identity, message = LAWLESS[name]
    with pytest.raises(ValueError, match=f"{message}.*`check=False` trusts you"):
        jsp.monoid(op, identity)
    assert jsp.monoid(op, identity, check=False).identity == identity


@pytest.mark.parametrize("builtin", [m for m in ALL if m.identity is not None])
def test_the_check_of_laws_passes_what_has_a_name(builtin):
    fn = builtin.op.fn
    assert jsp.monoid(lambda x, y: fn(x, y), builtin.identity).kind is None


def test_laws_are_checked_without_compilation(caplog):
    with jax.log_compiles():
        jsp.monoid(lambda x, y: jnp.hypot(x, y) * 1.0, 0.0)
    assert "ompil" not in caplog.text


def test_parameters_that_are_traced_are_trusted():
    def total(t):
        return jsp.monoid(lambda x, y: x + y + t * x * x * y, 0.0).reduce(jnp.ones(2))

    assert jax.jit(total)(1.0) == 3
    with pytest.raises(ValueError, match="not associative"):
        total(1.0)


def test_misuse_is_told():
    with pytest.raises(TypeError, match="must be a BinaryOp or a function of two arrays; got 3"):
        jsp.monoid(3)
    with pytest.raises(TypeError, match="must be a BinaryOp or a function of two arrays"):
        jsp.monoid([1])
    with pytest.raises(ValueError, match="`identity` is needed: `<lambda>` is not a well-known"):
        jsp.monoid(lambda x, y: x + y)
