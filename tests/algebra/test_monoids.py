"""Monoid laws on every dtype, extremes included; reductions against folds in NumPy."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
import strategies
from strategies import DTYPES, bounds, is_float, precision

from jaxspv.algebra import monoids
from jaxspv.algebra.monoids import ALL

pytestmark = pytest.mark.fast
ROUNDS = ("add", "multiply", "logaddexp")  # over floats these are within tolerance
SLOTS, SEGMENTS = 11, 5
USUAL = (np.dtype(bool), np.dtype(np.int32), np.dtype(np.float32))
QUICK = {"xla_backend_optimization_level": 0}  # for the other dtypes: compiling is all the time


def magnitudes(monoid, dtype):
    """The interval in which neither `op(op(x, y), z)` nor its parts overflow or underflow."""
    if not is_float(dtype) or monoid.kind not in ROUNDS:
        return bounds(dtype)
    top = float(jnp.finfo(dtype).max)
    largest = top**0.25 if monoid.kind == "multiply" else top / 4
    return -largest, largest


def values_for(monoid, dtype, count=12):
    """Sample values with both infinities and NaN; products without what underflows."""
    values = strategies.samples(dtype, *magnitudes(monoid, dtype), count)
    if not is_float(dtype):
        return values
    if monoid.kind == "multiply":
        tiny = (values != 0) & (np.abs(values.astype(np.float64)) < 1e-3)
        values = np.where(tiny, np.array(1.5, dtype), values)
    return np.append(values, np.array([np.inf, -np.inf, np.nan], dtype))


def check(got, want, dtype, tolerance, message):
    """Equal, NaN like NaN; floats within `tolerance` times the unit of rounding where given."""
    got = np.asarray(got)
    assert got.dtype == dtype, message
    if not is_float(dtype):
        np.testing.assert_array_equal(got, np.asarray(want).astype(dtype), message)
        return
    got, want = got.astype(np.float64), np.asarray(want, np.float64)
    with np.errstate(all="ignore"):
        good = (got == want) | (np.isnan(got) & np.isnan(want))
        good |= np.abs(got - want) <= tolerance * float(jnp.finfo(dtype).eps)
    assert good.all(), f"{message}: got {got[~good]}, want {want[~good]}"


@pytest.mark.once
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_laws(dtype):
    with precision(dtype):
        for monoid in (m for m in ALL if m.accepts(dtype)):
            values = values_for(monoid, dtype)
            x, y, z = (jnp.asarray(v.ravel()) for v in np.meshgrid(values, values, values))
            scale = np.zeros(x.shape)
            if monoid.kind in ROUNDS and is_float(dtype):
                sizes = [np.abs(np.float64(v)) for v in (x, y, z)]
                sizes = [np.where(np.isfinite(v), v, 0) for v in sizes]
                if monoid.kind == "multiply":
                    sizes = [np.prod([np.maximum(v, 1) for v in sizes], axis=0)]
                with np.errstate(over="ignore"):
                    scale = 8 * (sum(sizes) + 4)
            op, what = monoid.op, f"of {monoid.name} on {dtype}"
            xy = op(x, y)
            check(op(xy, z), op(x, op(y, z)), dtype, scale, f"associativity {what}")
            if monoid.identity is None:
                assert monoid.kind == "any"
                check(xy, x, dtype, 0, "`any` takes the first of two")
                continue
            check(op(y, x), xy, dtype, 0, f"commutativity {what}")
            one = jnp.full(x.shape, monoid.identity_of(dtype)[()])
            check(one, jnp.full(x.shape, oracles.identity(monoid.name, dtype)), dtype, 0, what)
            check(op(one, x), x, dtype, 0, f"left identity {what}")
            check(op(x, one), x, dtype, 0, f"right identity {what}")
            check_terminal(monoid, dtype, x, what)
            check_choices(monoid, x, xy, y, what)


def check_terminal(monoid, dtype, x, what):
    """A declared terminal ends a fold; where none is declared no sample would."""
    terminal, numbers = monoid.terminal_of(dtype), x[~jnp.isnan(x)]
    if terminal is not None:
        last = jnp.full(numbers.shape, terminal[()])
        check(monoid.op(last, numbers), last, dtype, 0, f"terminal {what}")
    elif monoid.kind != "logaddexp" and np.dtype(dtype).kind != "b":
        pairs = monoid.op(numbers[:, None], numbers[None, :]) == numbers[:, None]
        assert not pairs.all(1).any(), f"{what}: an undeclared terminal"


def check_choices(monoid, x, xy, y, what):
    """What is declared idempotent or selective is, and of numbers nothing else is."""
    x, y, xy = (np.asarray(v, np.float64) for v in (x, y, xy))
    numbers = ~(np.isnan(x) | np.isnan(y))
    idempotent = (xy == x)[numbers & (x == y)].all()
    selective = ((xy == x) | (xy == y))[numbers].all()
    assert monoid.idempotent >= monoid.selective
    assert idempotent or not monoid.idempotent, f"{what} is not idempotent"
    assert selective or not monoid.selective, f"{what} is not selective"
    if not set(np.unique(x[numbers])) <= {0, 1}:
        assert monoid.idempotent == idempotent and monoid.selective == selective, what


def reductions(terms, ids, order):
    """By segments, and as a whole, with every monoid of the dtype, in one program."""
    by_segment, whole = {}, {}
    for monoid in (m for m in ALL if m.accepts(terms.dtype)):
        ordered = terms[order], ids[order], SEGMENTS
        by_segment[monoid.name] = (
            monoid.segment_reduce(terms, ids, SEGMENTS),
            monoid.segment_reduce(*ordered, sorted=True),
            monoid.segment_scan(*ordered, sorted=True),
        )
        whole[monoid.name] = (
            monoid.reduce(terms),
            monoid.reduce(jnp.stack([terms, terms[::-1]]))[0],
            monoid.reduce(terms.reshape(1, SLOTS), (-1, 0)),
        )
    return by_segment, whole


def terms_of(dtype, rng):
    """Terms with extremes; of floats some whose sums are exact, so that only products round."""
    if is_float(dtype):
        pool = np.array([-2, -1, -0.5, 0, 0.5, 1, 1.5, 2], dtype)
    else:
        pool = strategies.samples(dtype, *bounds(dtype), 12)
    return rng.choice(pool, SLOTS)


def slack(name):
    return 2 * SLOTS if name in ("times", "logaddexp") else 0


@pytest.mark.once
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_reductions_are_folds(dtype):
    """Empty segments, segments out of range that hold NaN, one segment, sorted or not."""
    rng = np.random.default_rng(3)
    with precision(dtype):
        run = jax.jit(reductions, compiler_options=None if dtype in USUAL else QUICK)
        for spread, shift in ((SEGMENTS, 0), (SEGMENTS + 4, -2), (SEGMENTS + 40, -20), (1, 0)):
            ids = (rng.integers(0, spread, SLOTS) + shift).astype(np.int32)
            terms = terms_of(dtype, rng)
            order = np.argsort(ids, kind="stable")
            outside = (ids < 0) | (ids >= SEGMENTS)
            poisoned = np.where(outside, strategies.garbage(dtype), terms)
            by_segment, _ = run(*map(jnp.asarray, (poisoned, ids, order)))
            _, whole = run(*map(jnp.asarray, (terms, ids, order)))
            for name in whole:
                want = oracles.segments(name, terms, ids, SEGMENTS)
                for got in by_segment[name]:
                    check(got, want, dtype, slack(name), f"segments by {name}")
                for got in whole[name]:
                    check(got, oracles.fold(name, terms), dtype, slack(name), f"fold by {name}")


def test_runs_are_running_folds():
    rng = np.random.default_rng(4)
    ids = np.sort(rng.integers(-1, 4, SLOTS)).astype(np.int32)
    for monoid in (monoids.plus, monoids.min_, monoids.any_, monoids.logaddexp, monoids.lxor):
        terms = terms_of(np.dtype(bool if monoid.dtypes == "b" else np.float32), rng)
        got = monoid.scan_runs(jnp.asarray(terms), jnp.asarray(ids))
        want = oracles.running(monoid.name, terms, ids)
        check(got, want, terms.dtype, slack(monoid.name), f"runs by {monoid.name}")


def test_nothing_to_reduce_gives_the_identity():
    def run(monoid, dtype):
        none, ids, three = jnp.zeros(0, dtype), jnp.zeros(0, jnp.int32), jnp.zeros(3, jnp.int32)
        assert monoid.scan_runs(none, ids).shape == (0,)
        assert monoid.segment_reduce(three.astype(dtype), three, 0).shape == (0,)
        assert monoid.segment_scan(three.astype(dtype), three, 0).shape == (0,)
        return (
            monoid.segment_reduce(none, ids, 2),
            monoid.segment_reduce(none, ids, 2, sorted=True),
            monoid.segment_scan(none, ids, 2),
            monoid.reduce(jnp.zeros((2, 0), dtype)),
            monoid.reduce(jnp.zeros((2, 0, 3), dtype), (1, 2)),
        )

    dtypes = {m: next(d for d in USUAL[::-1] if m.accepts(d)) for m in ALL}
    for monoid, results in zip(
        ALL, jax.jit(lambda: [run(*m) for m in dtypes.items()])(), strict=True
    ):
        for got in results:
            one = oracles.identity(monoid.name, dtypes[monoid])
            check(got, np.full(2, one), dtypes[monoid], 0, monoid.name)


def test_logical_monoids_take_truth_values_of_numbers():
    numbers = jnp.asarray([0, 3, 0, -1, 2], jnp.int32)
    ids = jnp.asarray([0, 0, 1, 2, 2], jnp.int32)
    for name in ("lor", "land", "lxor", "lxnor"):
        monoid = getattr(monoids, name)
        want = oracles.segments(name, np.asarray(numbers) != 0, np.asarray(ids), 3)
        for got in (monoid.segment_reduce(numbers, ids, 3), monoid.segment_scan(numbers, ids, 3)):
            check(got, want, bool, 0, name)
        check(monoid.reduce(numbers), oracles.fold(name, np.asarray(numbers) != 0), bool, 0, name)


def test_scan_is_deterministic_and_close_to_the_sum():
    rng = np.random.default_rng(5)
    terms = rng.normal(size=600).astype(np.float32)
    ids = rng.integers(0, 7, 600).astype(np.int32)
    runs = [np.asarray(monoids.plus.segment_scan(terms, jnp.asarray(ids), 7)) for _ in range(2)]
    np.testing.assert_array_equal(*runs)
    want = [terms[ids == s].astype(np.float64).sum() for s in range(7)]
    np.testing.assert_allclose(runs[0], want, rtol=1e-4, atol=1e-4)


def test_foreign_dtypes_are_refused():
    x, ids = jnp.arange(3), jnp.zeros(3, jnp.int32)
    for call in (
        lambda: monoids.logaddexp.reduce(x),
        lambda: monoids.logaddexp.segment_reduce(x, ids, 1),
        lambda: monoids.band.segment_scan(jnp.ones(3), ids, 1),
        lambda: monoids.min_.reduce(jnp.ones(3, jnp.complex64)),
    ):
        with pytest.raises(TypeError, match="monoid `.*` is not defined on "):
            call()
    assert not monoids.plus.accepts(jnp.float8_e4m3fn)  # it has no infinity


def test_complex_numbers_add_and_multiply():
    z = np.array([1 + 2j, 3 - 1j, -2j], np.complex64)
    ids = jnp.asarray([0, 0, 1], jnp.int32)
    for monoid, join in ((monoids.plus, np.sum), (monoids.times, np.prod)):
        for run in (monoid.segment_reduce, monoid.segment_scan):
            got = run(jnp.asarray(z), ids, 2)
            np.testing.assert_allclose(got, [join(z[:2]), z[2]], rtol=1e-6)
        np.testing.assert_allclose(monoid.reduce(jnp.asarray(z)), join(z), rtol=1e-6)


LOW = -np.inf


@pytest.mark.parametrize("terms", [[LOW, LOW], [1e4, 1e4], [-1e4, 3.0], [np.inf, 1.0], [LOW, 2.0]])
def test_logaddexp_is_stable(terms):
    got = monoids.logaddexp.segment_reduce(jnp.asarray(terms), jnp.zeros(2, jnp.int32), 2)
    np.testing.assert_allclose(got, [np.logaddexp(*terms), LOW], rtol=1e-6)
    np.testing.assert_allclose(monoids.logaddexp.reduce(jnp.asarray(terms)), got[0], rtol=1e-6)


def test_logaddexp_shows_nan_in_its_own_segment_only():
    got = monoids.logaddexp.segment_reduce(
        jnp.asarray([np.nan, 1.0, 2.0, np.nan]), jnp.asarray([0, 0, 1, -1]), 3
    )
    np.testing.assert_array_equal(got, np.float32([np.nan, 2, LOW]))


def test_gradient_of_logaddexp_is_softmax_and_finite():
    terms = jnp.asarray([LOW, LOW, 1.0, 2.0, LOW, np.nan, 1e4])
    ids = jnp.asarray([0, 0, 1, 1, 1, 9, -1])

    def loss(run, t):
        y = run(t, ids, 3)
        return jnp.sum(jnp.where(jnp.isfinite(y), y, 0))

    share = np.exp([1.0, 2.0]) / np.exp([1.0, 2.0]).sum()
    want = [0, 0, *share, 0, 0, 0]
    for run in (monoids.logaddexp.segment_reduce, monoids.logaddexp.segment_scan):
        slope = jax.jit(jax.grad(functools.partial(loss, run)))(terms)
        np.testing.assert_allclose(slope, want, rtol=1e-6)


def test_gradient_of_a_scan_stays_in_its_segment():
    """Neither an infinity nor a dropped NaN reaches the derivative of another segment."""
    ids = jnp.asarray([0, 1, 1, 7])
    terms = jnp.asarray([np.inf, 2.0, 3.0, np.nan])
    slope = jax.jit(jax.grad(lambda t: monoids.times.segment_scan(t, ids, 2)[1]))(terms)
    assert slope.tolist() == [0, 3, 2, 0]


@pytest.mark.parametrize("monoid", ALL, ids=repr)
def test_accumulators_take_terms_in_parts(monoid):
    """What is not there is no term, and places past the end take none."""
    rng = np.random.default_rng(8)
    dtype = next(d for d in USUAL[::-1] if monoid.accepts(d))
    terms = terms_of(dtype, rng)
    place = rng.integers(0, SEGMENTS + 2, SLOTS).astype(np.int32)
    place[place == 1] = 0
    total = jnp.full(SEGMENTS, monoid.identity_of(dtype)[()])
    present = jnp.zeros(SEGMENTS, bool)
    for part in (slice(0, 4), slice(4, 9), slice(9, SLOTS)):
        total, present = monoid.accumulate(total, present, place[part], jnp.asarray(terms[part]))
    want = oracles.segments(monoid.name, terms, place, SEGMENTS)
    check(total, want, dtype, slack(monoid.name), f"accumulators of {monoid.name}")
    assert present.tolist() == [s in place for s in range(SEGMENTS)]


def test_atomics_are_named_by_dtype():
    named = {m.name: m.atomic(d) for m in ALL for d in USUAL if m.accepts(d) and d != np.int32}
    assert {name for name, atomic in named.items() if atomic is not None} == set(
        ("plus", "times", "min", "max", "lor", "land")
    )
    assert [monoids.min_.atomic(d) for d in USUAL] == ["min"] * 3
    assert [monoids.plus.atomic(d) for d in USUAL] == ["max", "add", "add"]
    assert {monoids.plus.scatter(d) for d in (bool, np.int32)} == {"max", "add"}


def test_every_monoid_has_an_oracle_and_a_name_of_its_own():
    assert {m.name for m in ALL} == set(oracles.ADD)
    assert len(ALL) == len(oracles.ADD)
