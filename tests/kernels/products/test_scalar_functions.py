"""Functions of scalars as code of kernels, where and how they were traced."""

import re
from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.interpreters import mlir
from jaxlib.mlir import ir

import jaxspv as jsp
from jaxspv._core.compat import kernels_refused
from pallas_kernels.products.spmv import csr_spmv
from pallas_kernels.simt import scalar_jaxpr
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from tests.kernels.test_lowering import gpus, lower
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

csr_spmv = gridded(csr_spmv)

HOST = Grid(ctas=2, threads=64, interpret=True)


def test_functions_that_are_traced_while_constants_are_folded():
    """As for the size of a product of known matrices within a trace: constants are arrays there."""
    lengths = np.array([3, 0, 1, 4, 40])
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    A = indptr, np.arange(indptr[-1], dtype=np.int32) % 7, np.ones(indptr[-1], np.float32)

    def sums():
        with jax.ensure_compile_time_eval():
            three = lambda a, x: jnp.full((), 2, jnp.float32) + 1  # noqa: E731
            semiring = ScalarSemiring.of(three, lambda a, b: a + b, 0.0, jnp.float32)
            assert scalar_jaxpr.refuse(three, "float32", "float32") is None
            assert semiring.mul.consts
            y = csr_spmv(*map(jnp.asarray, A), jnp.ones(7), semiring=semiring, grid=HOST)
            np.testing.assert_array_equal(y, 3 * lengths)
            array = jnp.ones(3)
            assert "captures" in scalar_jaxpr.refuse(lambda a: (a * array).sum(), "float32")
        return y

    jax.make_jaxpr(sums)()


NEARLY = {  # function, the same in NumPy
    "exp": (jnp.exp, np.exp),
    "exp2": (jnp.exp2, np.exp2),
    "expm1": (jnp.expm1, np.expm1),
    "log": (jnp.log, np.log),
    "log1p": (jnp.log1p, np.log1p),
    "tanh": (jnp.tanh, np.tanh),
    "logistic": (jax.nn.sigmoid, lambda x: 1 / (1 + np.exp(-x))),
    "rsqrt": (jax.lax.rsqrt, lambda x: 1 / np.sqrt(x)),
}
F32 = np.float32
HALF = 2.0**-24  # of a last bit


def of_pairs(mul, a, x, grid):
    """mul(a[i], x[i]) by the kernel, as a product with a diagonal matrix."""
    n = len(x)
    assert scalar_jaxpr.refuse(mul, "float32", "float32") is None
    semiring = ScalarSemiring.of(mul, lambda a, b: a + b, -0.0, jnp.float32)
    indptr, indices = jnp.arange(n + 1, dtype=jnp.int32), jnp.arange(n, dtype=jnp.int32)
    return csr_spmv(indptr, indices, a, x, semiring=semiring, grid=grid)


def of_each(name, x, grid):
    """The function of every number of x."""
    fn, _ = NEARLY[name]
    return of_pairs(lambda a, v: fn(v), jnp.ones(len(x)), x, grid)


def nearly(name, grid, halves):
    """Asserts that results are within so many halves of a last bit, and special values exact."""
    rng = np.random.default_rng(7)
    drawn = [rng.normal(size=500) * s for s in (1e-6, 0.03, 0.3, 1, 10, 40)]
    drawn += [1 + rng.normal(size=500) * s for s in (1e-6, 1e-2, 0.3)]
    drawn += [2 ** rng.uniform(-120, 127, 500), 1 - rng.random(500) * 2]
    special = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 3e38, -3e38, 2.5e38, 2.0**25]
    x = np.concatenate([*drawn, special]).astype(np.float32)
    found = np.asarray(of_each(name, jnp.asarray(x), grid))
    with np.errstate(all="ignore"):
        want = NEARLY[name][1](x.astype(np.float64))
        rounded = want.astype(np.float32)
    ordinary = np.isfinite(rounded) & (np.abs(rounded) >= 2.0**-126)
    ordinary[-len(special) :] = False
    error = np.abs(found[ordinary] / want[ordinary] - 1)
    assert error.size > 1000 and error.max() <= halves * HALF, error.max() / HALF
    rest = np.where(np.abs(rounded) < 2.0**-126, 0, rounded)[~ordinary]
    found = np.where(np.abs(found) < 2.0**-126, 0, found)[~ordinary]
    np.testing.assert_allclose(found, rest, rtol=4 * HALF)


@pytest.mark.parametrize("name", NEARLY)
def test_functions_that_are_nearly_right(name):
    nearly(name, HOST, halves=4)


def whole(f):
    """f(a, x, NumPy or jax.numpy) of the integers in their place, as a float."""
    return lambda a, x, xp: f(a.astype(xp.int32), x.astype(xp.int32), xp).astype(xp.float32)


def truth(f):
    """f of whether a number is positive."""
    return lambda a, x, xp: f(a > 0, x > 0, xp).astype(xp.float32)


BOTH = {
    "minimum": lambda a, x, xp: xp.minimum(a, x),
    "maximum": lambda a, x, xp: xp.maximum(a, x),
    "equal": lambda a, x, xp: a == x,
    "not equal": lambda a, x, xp: a != x,
    "less": lambda a, x, xp: a < x,
    "at most": lambda a, x, xp: a <= x,
    "greater": lambda a, x, xp: a > x,
    "at least": lambda a, x, xp: a >= x,
    "where": lambda a, x, xp: xp.where(a > x, x, a),
}
WHOLE = {
    "add": lambda a, x, xp: a + x,
    "subtract": lambda a, x, xp: a - x,
    "multiply": lambda a, x, xp: a * x,
    "negative": lambda a, x, xp: -x,
    "absolute": lambda a, x, xp: xp.abs(x),
    "cube": lambda a, x, xp: x**3,
    "clip": lambda a, x, xp: xp.clip(x, -2, a),
}
BITS = {
    "and": lambda a, x, xp: a & x,
    "or": lambda a, x, xp: a | x,
    "xor": lambda a, x, xp: a ^ x,
    "not": lambda a, x, xp: ~x,
}
FLOATS = {
    "divide": lambda a, x, xp: a / x,
    "divide by negative": lambda a, x, xp: a / -x,
    "divide by absolute": lambda a, x, xp: a / xp.abs(x),
    "finite": lambda a, x, xp: xp.isfinite(x).astype(xp.float32),
    "root": lambda a, x, xp: xp.sqrt(xp.abs(x)),
    "truth": lambda a, x, xp: x.astype(xp.bool_).astype(xp.float32),
}
EXACT = {  # functions of two numbers, the integers in their place, or whether they are positive
    **{f"{n}, float": lambda a, x, xp, f=f: f(a, x, xp) * F32(1) for n, f in BOTH.items()},
    **{f"{n}, float": f for n, f in (WHOLE | FLOATS).items()},
    **{f"{n}, integer": whole(f) for n, f in (BOTH | WHOLE | BITS).items()},
    **{f"{n}, bool": truth(f) for n, f in (BOTH | BITS).items()},
}


def exactly(name, grid):
    """Asserts that every pair gives NumPy's bits, where neither is a choice between 0 and -0."""
    numbers = [0.0, -0.0, 1.0, -1.0, 2.5, -3.0, 7.0]
    numbers += [] if "integer" in name else [np.inf, -np.inf, np.nan]
    a, x = (v.ravel().astype(np.float32) for v in np.meshgrid(numbers, numbers))
    fn = EXACT[name]
    found = of_pairs(lambda a, x: fn(a, x, jnp), jnp.asarray(a), jnp.asarray(x), grid)
    with np.errstate(all="ignore"):
        want = fn(a, x, np).astype(np.float32)
    np.testing.assert_array_equal(found, want)
    if not name.startswith(("minimum", "maximum", "clip")):
        sure = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(found)[sure], np.signbit(want)[sure])


@pytest.mark.parametrize("name", EXACT)
def test_functions_that_are_right_bit_for_bit(name):
    exactly(name, HOST)


@pytest.mark.gpu
@pytest.mark.parametrize("name", EXACT)
def test_native_bit_for_bit(name):
    exactly(name, DEFAULT_GRID)


def code_of(text):
    """The kernel of a lowered program as MLIR."""
    escaped = re.search(r'module = "((?:[^"\\]|\\.)*)"', text)
    assert escaped is not None
    byte = lambda m: bytes([int(m[1], 16)]) if len(m[1]) == 2 else m[1]  # noqa: E731
    code = re.sub(rb"\\([0-9A-F]{2}|.)", byte, escaped[1].encode("latin1"))
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    return str(ir.Module.parse(code, context))


def test_truth_values_are_no_signed_numbers_of_a_bit():
    """As those, true is -1 and the lesser of two."""
    if reason := kernels_refused():
        pytest.skip(reason)

    def all_of_them(a, x):
        truths = (f(a > 0, x > 0, jnp) for f in BOTH.values())
        return sum(t.astype(jnp.float32) for t in truths)

    code = code_of(lower(lambda x: of_pairs(all_of_them, x, x, DEFAULT_GRID), jnp.ones(300)))
    of_truths = re.findall(r'"[a-z_.]*arith\.(\w+)".* \(i1, i1\) -> i1', code)
    predicates = re.findall(r"predicate = (\d+) : i64} : \(i1, i1\)", code)
    assert {"andi", "ori", "cmpi"} <= set(of_truths) and not {"minsi", "maxsi"} & set(of_truths)
    assert set(predicates) == {"0", "1", "6", "7", "8", "9"}  # those of unsigned numbers


def sums_of_exponentials(lengths, grid, rng):
    """Asserts y[i] = log sum exp(a + x) over rows of so many entries, in one launch."""
    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    a = rng.normal(size=indptr[-1]).astype(np.float32) * 3
    x = rng.normal(size=900).astype(np.float32) * 20 - 200
    x[::7] = -np.inf
    indices = rng.integers(0, x.size, a.size).astype(np.int32)
    semiring = ScalarSemiring.of(jnp.add, jsp.operators.logaddexp.fn, -np.inf, jnp.float32)
    found = csr_spmv(*map(jnp.asarray, (indptr, indices, a, x)), semiring=semiring, grid=grid)
    terms = a.astype(np.float64) + x[indices]
    want = [np.logaddexp.reduce(terms[i:j], initial=-np.inf) for i, j in pairwise(indptr)]
    np.testing.assert_allclose(found, want, rtol=2e-6)


def test_logarithms_of_sums():
    rng = np.random.default_rng(0)
    sums_of_exponentials([3, 0, 1, 40, 1, 900, 7, 0], HOST, rng)


@pytest.mark.gpu
@pytest.mark.parametrize("lengths", [[3] * 5000, [900] * 300, [2**20, 5]])
def test_native_logarithms_of_sums(lengths):
    sums_of_exponentials(lengths, DEFAULT_GRID, np.random.default_rng(0))


@pytest.mark.parametrize("device", ["A100", "H100", "H200", "B200"])
def test_they_lower_in_one_launch(device):
    if reason := kernels_refused():
        pytest.skip(reason)
    for name in NEARLY:
        text = lower(lambda x: of_each(name, x, DEFAULT_GRID), jnp.ones(300), mesh=gpus(1, device))  # noqa: B023
        assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("name", NEARLY)
def test_native(name):
    nearly(name, DEFAULT_GRID, halves=10)


def test_additions_by_exponentials_are_for_the_kernel_of_tuples():
    """It combines less often, in rows of many entries."""
    if reason := kernels_refused():
        pytest.skip(reason)
    A = jsp.from_dense(np.eye(40, dtype=np.float32))
    for semiring, name in (("log_plus", "csr_spmv_tuples"), ("min_plus", "csr_spmv")):
        text = lower(lambda A, x, s=semiring: jsp.mxv(A, x, s), A, jnp.ones(40))
        assert name in text and ("tuples" in text) == ("tuples" in name)


LITERALS = {  # of 64 bits under x64 until they are converted: the function, and NumPy's
    "where": (lambda a, x: jnp.where(x > 0, 1, a), lambda a, x: np.where(x > 0, 1, a)),
    "both": (
        lambda a, x: jnp.where(x > a, 0.1, 0.0) * a,
        lambda a, x: np.where(x > a, F32(0.1), 0 * a) * a,
    ),
    "clip": (lambda a, x: jnp.clip(x, 0, 1) * 1.5, lambda a, x: np.clip(x, 0, 1) * 1.5),
}


@pytest.mark.parametrize("name", LITERALS)
def test_literals_are_narrow_under_x64(name):
    fn, plain = LITERALS[name]
    rng = np.random.default_rng(0)
    a, x = (rng.normal(size=40).astype(np.float32) for _ in range(2))
    with jax.enable_x64(True):
        assert scalar_jaxpr.refuse(fn, "float32", "float32") is None
        semiring = ScalarSemiring.of(fn, lambda p, q: p + q, 0.0, jnp.float32)
        A = np.arange(41, dtype=np.int32), np.arange(40, dtype=np.int32), a
        y = csr_spmv(*map(jnp.asarray, (*A, x)), semiring=semiring, grid=HOST)
    assert y.dtype == np.float32
    np.testing.assert_array_equal(y, plain(a, x).astype(np.float32))


@pytest.mark.parametrize(
    "fn",
    [
        lambda a, x: (a.astype(jnp.float64) * x).astype(jnp.float32),
        lambda a, x: jnp.where(x > 0, 2**40, a),
        lambda a, x: jnp.sqrt(2.0) * a,
        lambda a, x: a * np.float64(2),
    ],
)
def test_what_is_computed_in_64_bits_is_refused(fn):
    with jax.enable_x64(True):
        assert "64" in str(scalar_jaxpr.refuse(fn, "float32", "float32"))
