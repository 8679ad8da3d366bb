"""The product over semirings of tuples, interpreted and on a GPU, against loops in Python."""

from itertools import pairwise

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv._core.compat import kernels_refused
from jaxspv.formats.tuples import Tuples
from jaxspv.ops.tuples import gpu
from jaxspv.ops.tuples.operations import product
from pallas_kernels.products import spmv_tuples as kernel
from pallas_kernels.rows.lanes import InOrder
from pallas_kernels.rows.stream import Stream
from pallas_kernels.simt.device import Grid
from tests.kernels.test_lowering import gpus, lower
from tests.kernels.warps_apart import gridded

HOST = Grid(ctas=3, threads=64, interpret=True)
COLUMNS, PADDING = 37, 5
ROWS = {
    "short": [3, 0, 1, 4, 2, 0, 0, 7, 1, 1, 5, 2, 0, 3, 6, 1, 8, 0],
    "a hub": [2, 0, 1, 3, 900, 0, 1, 2],
    "hubs": [0, 0, 150, 3, 170, 0, 0, 90],
    "one row": [300],
    "empty rows": [0] * 40,
}
LEAST = np.int32(2**31 - 1)


def composed(x, y):
    """First x, then y: v -> a v + b on int32, which does not commute."""
    (a, b), (c, d) = x, y
    return a * c, b * c + d


def both(x, y):
    return jnp.maximum(x[0], y[0]), x[1] | y[1], jnp.minimum(x[2], y[2])


def weighted(x, y):
    return x[0] + y[0], x[1] & (y[1] > 1), x[0] - y[1]


AFFINE = jsp.semiring(jsp.monoid(composed, (np.int32(1), np.int32(0))), composed)
MIXED = jsp.semiring(  # a float, a truth value and a float of pairs of other kinds
    jsp.monoid(both, (-np.inf, False, np.inf)), weighted
)
ONE = jsp.semiring(  # tuples of one number
    jsp.monoid(lambda x, y: (jnp.minimum(x[0], y[0]),), (np.inf,)), lambda x, y: (x[0] + y[0],)
)
CASES = {  # semiring, dtypes of the entries, dtypes of x
    "argmin_plus": (jsp.semirings.argmin_plus(), "fi", "fi"),
    "lexicographic": (
        jsp.semirings.lexicographic(jsp.semirings.min_plus, jsp.semirings.max_min), "ff", "ff"),
    "affine": (AFFINE, "ii", "ii"),
    "mixed": (MIXED, "fb", "ff"),
    "one": (ONE, "f", "f"),
}  # fmt: skip
OF_LOGS = {  # by sums of exponentials: semiring, dtypes of both
    "expectation": (jsp.semirings.expectation(), "ff"),
    "entropy": (jsp.semirings.entropy(), "ff"),
    "variance": (jsp.semirings.variance(), "fff"),
    "dual": (jsp.semirings.dual(jsp.semirings.log_plus), "ff"),
}


def drawn(lengths, kinds, columns, seed=0):
    """A matrix of tuples with padding that nobody may read, its places shuffled, and x."""
    rng = np.random.default_rng(seed)

    def values(kind, many):
        draw = rng.integers(0, 4, many)
        if kind == "b":
            return jnp.asarray(draw > 1)
        return jnp.asarray((2 * draw + 1).astype({"f": np.float32, "i": np.int32}[kind]))

    indptr = np.append(0, np.cumsum(lengths)).astype(np.int32)
    slots = int(indptr[-1]) + PADDING
    indices = np.full(slots, columns, np.int32)
    indices[:-PADDING] = np.concatenate(
        [rng.integers(0, columns, k) for k in lengths] or [np.zeros(0)])  # fmt: skip
    numbers = rng.permutation(slots).astype(np.int32)
    places = jsp.CSR(*map(jnp.asarray, (numbers, indices, indptr)), jnp.asarray(False),
                     (len(lengths), columns))  # fmt: skip
    a = tuple(values(k, slots) for k in kinds[0])
    return Tuples(places, a), tuple(values(k, columns) for k in kinds[1])


def by_definition(semiring, A, x, hit, flip):
    """Rows as lists of leaves."""
    numbers, indices, indptr = (np.asarray(getattr(A.places, n)) for n in ("data", "indices", "indptr"))  # fmt: skip  # noqa: E501
    a, x = (jax.tree.map(np.asarray, v) for v in (A.values, x))
    mul, add = jax.jit(semiring.mul.fn), jax.jit(semiring.add.op.fn)
    rows = []
    for r in range(A.shape[0]):
        y = None
        for e in range(indptr[r], indptr[r + 1]):
            if hit is not None and not hit[indices[e]]:
                continue
            one, other = tuple(v[numbers[e]] for v in a), tuple(v[indices[e]] for v in x)
            term = mul(other, one) if flip else mul(one, other)
            y = term if y is None else add(y, term)
        rows.append(semiring.add.identity.value if y is None else y)
    return [np.array([np.asarray(row[i]) for row in rows]) for i in range(len(rows[0]))]


def interpreted(monkeypatch, **more):
    plain = gridded(kernel.csr_spmv_tuples)
    monkeypatch.setattr(
        gpu, "csr_spmv_tuples", lambda *a, **o: plain(*a, **{"grid": HOST} | o | more)
    )


def form(semiring, A, x, hit, flip):
    assert gpu._refuse(semiring, A, x, hit, flip=flip) is None
    direct = Tuples.of(A.places, A.data)
    assert direct.in_order
    found, same = (
        jax.tree.leaves(gpu._rows(semiring, T, x, hit, flip=flip, in_order=T.in_order))
        for T in (A, direct)
    )
    for one, other in zip(found, same, strict=True):
        np.testing.assert_array_equal(one, other)
    return found


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("rows", ROWS)
def test_interpreted(monkeypatch, rows, name):
    interpreted(monkeypatch)
    semiring, *kinds = CASES[name]
    A, x = drawn(ROWS[rows], kinds, COLUMNS)
    hit = np.arange(COLUMNS) % 3 != 0
    for some in (None, hit) if rows == "short" else (None,):
        for flip in (False, True) if kinds[0] == kinds[1] else (False,):
            given = None if some is None else jnp.asarray(some)
            found = form(semiring, A, x, given, flip)
            for got, want in zip(found, by_definition(semiring, A, x, some, flip), strict=True):
                np.testing.assert_array_equal(got, want)
                assert got.dtype == want.dtype or want.dtype == np.float64


@pytest.mark.parametrize(
    "shape", [InOrder(1, 3), InOrder(4, 1), InOrder(32, 2), Stream(3), Stream(1)]
)
@pytest.mark.parametrize("grid", [(1, 32), (30, 32), (2, 128)])
def test_shapes_and_ctas(monkeypatch, shape, grid):
    interpreted(monkeypatch, shape=shape, grid=Grid(*grid, interpret=True))
    semiring, *kinds = CASES["affine"]
    for rows in ("short", "a hub"):
        A, x = drawn(ROWS[rows], kinds, COLUMNS, seed=1)
        found = form(semiring, A, x, None, False)
        for got, want in zip(found, by_definition(semiring, A, x, None, False), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("format", ["coo", "csc", "ell", "sell", "tiled"])
@pytest.mark.parametrize("flip", [False, True])
def test_other_formats_become_rows(monkeypatch, format, flip):
    interpreted(monkeypatch)
    semiring, *kinds = CASES["affine"]
    rng = np.random.default_rng(5)
    A = jsp.from_dense(np.where(rng.random((23, COLUMNS)) < 0.3, 1.0, 0.0))
    A = A.with_data(tuple(jnp.asarray(rng.integers(1, 9, A.nse), jnp.int32) for _ in "ab"))
    T = A.asformat(format).T if flip else A.asformat(format)
    x = tuple(jnp.asarray(rng.integers(1, 9, T.shape[1]), jnp.int32) for _ in "ab")
    want = jax.tree.leaves(product(semiring, T, x, None, flip=flip, backend="xla"))
    for one, other in zip(form(semiring, T, x, None, flip), want, strict=True):
        np.testing.assert_array_equal(one, other)


def moments_of(name, level, mean, *rest):
    """What the terms of a row sum to, in float64."""
    if not level.size:
        return (-np.inf, *[0] * (1 + len(rest)))
    total = np.logaddexp.reduce(level)
    share = np.exp(level - total)
    if name == "entropy":
        mean = mean + total - level
    found = total, share @ mean
    return found + tuple(share @ (v + (mean - found[1]) ** 2) for v in rest)


def near_moments(name, A, x, found):
    """Asserts that it is the product, against NumPy; a dual number is a mean."""
    numbers, indices, indptr = (
        np.asarray(v) for v in (A.places.data, A.places.indices, A.places.indptr)
    )
    a = [np.asarray(v, np.float64)[numbers] for v in A.values]
    there = slice(indptr[-1])
    terms = [v[there] + np.asarray(w)[indices[there]] for v, w in zip(a, x, strict=True)]
    want = [moments_of(name, *(t[i:j] for t in terms)) for i, j in pairwise(indptr)]
    for got, each in zip(found, zip(*want, strict=True), strict=True):
        np.testing.assert_allclose(got, each, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("name", OF_LOGS)
def test_sums_of_exponentials(monkeypatch, name):
    interpreted(monkeypatch)
    semiring, kinds = OF_LOGS[name]
    A, x = drawn(ROWS["hubs"], (kinds, kinds), COLUMNS)
    near_moments(name, A, x, form(semiring, A, x, None, False))
    nothing = (jnp.full(COLUMNS, -jnp.inf), *[jnp.zeros(COLUMNS)] * (len(kinds) - 1))
    level, *rest = form(semiring, A, nothing, None, False)
    assert (level == -jnp.inf).all() and not jnp.stack(rest).any()


LOWERED = CASES | {name: (s, kinds, kinds) for name, (s, kinds) in OF_LOGS.items()}


@pytest.mark.parametrize(
    "name, device",
    [*((n, "H200") for n in LOWERED), *(("variance", d) for d in ("A100", "H100", "B200"))],
)
def test_lowers_in_one_launch(name, device):
    if reason := kernels_refused():
        pytest.skip(reason)
    semiring, *kinds = LOWERED[name]
    A, x = drawn([40] * 300, kinds, COLUMNS)
    for T in (A, A.asformat("coo"), A.asformat("csc")) if name == "mixed" else (A,):
        call = lambda A, x: jsp.mxv(A, x, semiring, backend="pallas")  # noqa: E731
        text = lower(call, T, x, mesh=gpus(1, device))
        assert text.count("custom_call @mosaic_gpu") == 1


def test_refusals():
    semiring, *kinds = CASES["argmin_plus"]
    A, x = drawn(ROWS["short"], kinds, COLUMNS)

    def says(words, A=A, x=x, semiring=semiring):
        assert words in gpu._refuse(semiring, A, x, None, flip=False)

    k_best = jsp.semirings.k_best(4)
    lists = A.with_data(k_best.lift(jnp.ones(A.nse)))
    says("more than 4 numbers", lists, k_best.lift(jnp.ones(COLUMNS)), k_best)
    says("nothing", drawn([], kinds, COLUMNS)[0])
    halves = A.values[0].astype(jnp.float16), A.values[1]
    says("float16", Tuples(A.places, halves))


@pytest.mark.gpu
@pytest.mark.parametrize("name", CASES)
def test_native(name):
    semiring, *kinds = CASES[name]
    rng = np.random.default_rng(3)
    for lengths in (rng.integers(0, 9, 5_000), rng.zipf(1.7, 20_000) % 30_000, [200_000], [3] * 7):
        A, x = drawn(np.minimum(lengths, 200_000), kinds, 4_000)
        hit = jnp.arange(4_000) % 3 != 0
        for some in (None, hit):
            want, found = (
                jax.tree.leaves(product(semiring, A, x, some, flip=False, backend=backend))
                for backend in ("xla", "pallas")
            )
            for w, got in zip(want, found, strict=True):
                np.testing.assert_array_equal(got, w)


@pytest.mark.gpu
@pytest.mark.parametrize("name", OF_LOGS)
def test_native_sums_of_exponentials(name):
    semiring, kinds = OF_LOGS[name]
    rng = np.random.default_rng(3)
    for lengths in (rng.integers(0, 9, 5_000), rng.zipf(1.7, 20_000) % 30_000, [200_000], [3] * 7):
        A, x = drawn(np.minimum(lengths, 200_000), (kinds, kinds), 4_000)
        near_moments(name, A, x, product(semiring, A, x, None, flip=False, backend="pallas"))
