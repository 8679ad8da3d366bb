"""The laws that semirings declare hold, and no further ones do; overflow; the names of the list."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import strategies
from strategies import DTYPES, bounds, is_float, precision

import jaxspv as jsp
from jaxspv.algebra import monoids, operators, semirings
from jaxspv.algebra.semirings import ALL, CORE

pytestmark = pytest.mark.fast
LAWS = ("annihilation", "distributivity")
COUNT = 13
ROUNDS = ("add", "multiply", "logaddexp")  # floats: sums are within tolerance, choices are exact


@functools.cache
def triples(dtype, low, high):
    """Every (x, y, z) of the sample values of an interval, as three flat arrays."""
    values = strategies.samples(dtype, low, high, COUNT)
    return tuple(jnp.asarray(v.ravel()) for v in np.meshgrid(values, values, values))


def agree(left, right, rounds, *sizes):
    """Where two results are one value; NaN equals NaN. `sizes` give the scale of rounding."""
    left, right = np.asarray(left), np.asarray(right)
    same = left == right
    if not is_float(left.dtype):
        return same
    same |= np.isnan(left) & np.isnan(right)
    if rounds:
        scale = functools.reduce(np.maximum, [np.abs(np.nan_to_num(np.float64(s))) for s in sizes])
        with np.errstate(all="ignore"):
            error = np.abs(np.float64(left) - np.float64(right))
        same |= error <= 8 * float(jnp.finfo(left.dtype).eps) * scale
    return same


def holds(semiring, law, dtype, low, high):
    """(number of counterexamples, one of them) of a law over the samples of [low, high]."""
    x, y, z = triples(dtype, low, high)
    add, mul = semiring.add.op, semiring.mul
    rounds = semiring.add.kind in ROUNDS
    if law == "annihilation":
        zero = jnp.full(x.shape, semiring.zero(dtype)[()])
        good = agree(mul(zero, x), zero, False) & agree(mul(x, zero), zero, False)
    else:
        xy, xz, yx, zx = mul(x, y), mul(x, z), mul(y, x), mul(z, x)
        total = add(y, z)
        good = agree(mul(x, total), add(xy, xz), rounds, xy, xz, x, y, z)
        good &= agree(mul(total, x), add(yx, zx), rounds, yx, zx, x, y, z)
    wrong = np.flatnonzero(~good)
    example = [v[wrong[0]].item() for v in (x, y, z)] if wrong.size else None
    return wrong.size, example


def defined(semiring, dtype):
    """Whether add and mul take the dtype and stay in it."""
    if semiring.mul.position is not None or not semiring.add.accepts(dtype):
        return False
    x = triples(dtype, *bounds(dtype))[0]
    try:
        return semiring.mul(x, x).dtype == dtype
    except TypeError:
        return False


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_declared_laws_hold_on_their_domain_and_no_others_on_all_numbers(dtype):
    with precision(dtype):
        for semiring in ALL:
            if not defined(semiring, dtype):
                continue
            for law in LAWS:
                claim = semiring.domain(law, dtype)
                what = f"{law} of {semiring.name} on {dtype}"
                if claim is not None:
                    wrong, example = holds(semiring, law, dtype, *claim)
                    assert not wrong, f"{what}, domain {claim}: false at x, y, z = {example}"
                has_zero = semiring.add.identity is not None
                if claim != bounds(dtype) and (has_zero or law != "annihilation"):
                    wrong, _ = holds(semiring, law, dtype, *bounds(dtype))
                    assert wrong, f"{what} holds everywhere: declare it on all numbers"


def test_names_are_add_and_mul_and_every_object_is_listed():
    names = {"plus": "plus", "min_extend": "plus", "max_extend": "plus"}
    for semiring in set(ALL) - {semirings.or_and, semirings.log_plus}:
        mul = names.get(semiring.mul.name, semiring.mul.name)
        assert semiring.name == f"{semiring.add.name}_{mul}"
        assert getattr(semirings, semiring.name) is semiring
    assert len({s.name for s in ALL}) == len(ALL) == len(set(ALL))
    assert set(CORE) < set(ALL)
    contract = "plus_times min_plus max_plus max_times min_max max_min or_and plus_pair any_pair"
    assert {*contract.split(), "any_secondi", "min_first", "min_second", "log_plus"} == {
        s.name for s in CORE
    }


def test_predefined_semirings_of_the_c_api_are_there():
    """GraphBLAS C API 2.1, table 3.8."""
    names = """plus_times min_plus max_plus min_times min_max min_first min_second max_times max_min
        max_first max_second plus_min lor_land land_lor lxor_land lxnor_lor"""
    for name in names.split():
        assert isinstance(getattr(semirings, name), semirings.Semiring)


def saturating(x, y, dtype, infinity):
    """The sum of two path lengths over Python integers, and whether it had to be clamped."""
    low, high = bounds(dtype)
    if infinity in (x, y):
        return infinity, False
    total = x + y
    return min(max(total, low), high), not low <= total <= high or total == infinity


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d.kind in "iu"], ids=str)
def test_integer_lengths_saturate_and_tell(dtype):
    with precision(dtype):
        values = strategies.samples(dtype, *bounds(dtype), 32)
        x, y = (v.ravel() for v in np.meshgrid(values, values))
        for semiring in (semirings.min_plus, semirings.max_plus):
            if semiring is semirings.max_plus and dtype.kind == "u":
                with pytest.raises(TypeError, match=f"max_plus has no -infinity in {dtype}"):
                    semiring.mul(jnp.asarray(x), jnp.asarray(y))
                continue
            infinity = bounds(dtype)[semiring is semirings.min_plus]
            pairs = zip(x.tolist(), y.tolist(), strict=True)
            want, clamped = zip(*(saturating(a, b, dtype, infinity) for a, b in pairs), strict=True)
            got = semiring.mul(jnp.asarray(x), jnp.asarray(y))
            assert got.dtype == dtype
            assert got.tolist() == list(want)
            assert semiring.mul.overflow(jnp.asarray(x), jnp.asarray(y)).tolist() == list(clamped)


def test_float_lengths_never_clamp():
    x = jnp.asarray([np.inf, 3e38, -np.inf], jnp.float32)
    for semiring in (semirings.min_plus, semirings.max_plus):
        assert not semiring.mul.overflow(x, x).any()
        assert semiring.mul(x, jnp.float32(3e38)).tolist() == [np.inf, np.inf, -np.inf]
    with pytest.raises(TypeError, match="no -infinity in bool"):
        semirings.max_plus.mul(jnp.array([True]), jnp.array([False]))


def test_semiring_of_plain_functions():
    own = jsp.semiring(jnp.maximum, jnp.minimum)
    assert own.add.kind == "max" and repr(own) == "Semiring(max_minimum)"
    assert own.domain("distributivity", np.float32) is None  # nothing is claimed unasked
    assert jsp.semiring(monoids.lor, operators.land, name="reach").name == "reach"
    with pytest.raises(ValueError, match="`add` must be a Monoid or well known; make one of"):
        jsp.semiring(lambda x, y: x + y, jnp.multiply)
    with pytest.raises(TypeError, match="BinaryOp or a function"):
        jsp.semiring(monoids.plus, 3)
    with pytest.raises(TypeError, match="BinaryOp or a function"):
        jsp.semiring(3, jnp.multiply)


def test_a_semiring_is_static_but_for_its_parameters():
    @jax.jit
    @chex.assert_max_traces(n=1)  # one compilation serves every value of the parameter
    def scaled(semiring, x, y):
        assert semiring.name == "scaled"
        return semiring.mul(x, y)

    def by(factor):
        mul = jsp.BinaryOp(_scaled_product, "scaled", params=(jnp.float32(factor),))
        return jsp.Semiring(monoids.plus, mul, "scaled")

    assert [float(scaled(by(f), 2.0, 3.0)) for f in (1, 10)] == [6, 60]
    assert jax.tree.leaves(semirings.min_plus) == []
    assert jax.tree.structure(semirings.min_plus) != jax.tree.structure(semirings.max_plus)


def _scaled_product(x, y, factor):
    return factor * x * y


def test_positional_products_give_indices():
    x = jnp.zeros(3)
    i, k, j = jnp.array([1, 2, 3]), jnp.array([4, 5, 6]), 7
    want = {"firsti": [1, 2, 3], "firstj": [4, 5, 6], "secondi": [4, 5, 6], "secondj": [7, 7, 7]}
    for name, index in want.items():
        mul = getattr(semirings, f"any_{name}").mul
        got = mul.at(x, x, i, k, j)
        assert got.tolist() == index and got.dtype == jnp.int32
        with pytest.raises(TypeError, match=f"`{name}` is positional"):
            mul(x, x)
    assert semirings.plus_times.mul.at(2.0, 3.0, i, k, j) == 6
