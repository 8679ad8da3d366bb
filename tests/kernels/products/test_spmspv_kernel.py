"""The SpMSpV kernels, interpreted, against a loop in NumPy: every entry, order, padding, masks."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv.formats import Tiled
from pallas_kernels.products import spmspv, spmspv_small
from pallas_kernels.products.spmspv import Entries, Result, Tiles, spmspv_push, spmspv_tile
from pallas_kernels.rows import flatten
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import refuse
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

spmspv_push, spmspv_tile = map(gridded, (spmspv_push, spmspv_tile))

ADD = {"add": np.add, "min": np.minimum, "max": np.maximum}
MUL = {
    "times": lambda a, x: a * x,
    "plus": lambda a, x: a + x,
    "larger": lambda a, x: jnp.where(a > x, a, x),
}


def matrix(m, n, entries, seed=0, hub=None, dtype=np.float32):
    """CSC with values -8 .. 8, duplicates joined; column `hub` is full."""
    rng = np.random.default_rng(seed)
    row, col = rng.integers(0, m, entries), rng.integers(0, n, entries)
    if hub is not None:
        row, col = np.append(row, np.arange(m)), np.append(col, np.full(m, hub))
    A = sp.coo_array((np.ones(len(row)), (row, col)), shape=(m, n)).tocsc()
    A.sum_duplicates()
    A.data = rng.integers(-8, 9, A.nnz).astype(dtype)
    return A


def expected(A, x, add, mul, keep=None):
    """dict row -> value, column by column."""
    y = {}
    for j, v in x.items():
        for e in range(A.indptr[j], A.indptr[j + 1]):
            i, term = int(A.indices[e]), np.asarray(mul(A.data[e], v))
            if keep is None or keep[i]:
                y[i] = add(y[i], term) if i in y else term
    return y


def vector(x, n, capacity, dtype):
    pad = capacity - len(x)
    junk = np.nan if dtype == np.float32 else 99
    return (
        jnp.asarray([*x, *[n] * pad], jnp.int32),
        jnp.asarray([*x.values(), *[junk] * pad], dtype),
        jnp.int32(len(x)),
    )


def check(out, want, m, nse):
    indices, data, count, failed = map(np.asarray, out)
    assert failed == (len(want) > nse) and count == min(len(want), nse)
    rows = sorted(want)[:nse]
    assert indices[: len(rows)].tolist() == rows and (indices[len(rows) :] == m).all()
    np.testing.assert_array_equal(data[: len(rows)], [want[i] for i in rows])


def product(kind, A, *, nse, add, mul, nt=16, limit=2, **options):
    """A function of (vector, allowed=) that runs the compiled kernel with A."""
    m, n = A.shape
    fixed = functools.partial(Result, m, nse, add, mul)
    if kind == "push":
        arrays = map(jnp.asarray, (A.indptr.astype(np.int32), A.indices.astype(np.int32), A.data))

        def pushed(*operands, allowed=None):
            matrix, x = operands[:3], Entries(*operands[3:])
            return spmspv_push(*matrix, x, fixed(allowed), **options)

        return functools.partial(jax.jit(pushed), *arrays)
    T = Tiled.from_coo(jsp.from_scipy(A).to_coo(), nt=nt, sparse_tile=limit)
    arrays = (T.tile_ptr, T.tile_col, T.slot_ptr, T.packed, T.data, T.rest_row, T.rest_col)

    def tiled(*operands, allowed=None):
        tiles, x = Tiles(*operands[:7], nt, n), Entries(*operands[7:])
        return spmspv_tile(tiles, x, fixed(allowed), **options)

    return functools.partial(jax.jit(tiled), *arrays)


def run(kind, A, x, *, allowed=None, capacity=None, **options):
    words = None if allowed is None else jsp.BitVector.from_bool(jnp.asarray(allowed)).words
    arguments = vector(x, A.shape[1], capacity or len(x) + 3, A.dtype)
    return product(kind, A, **options)(*arguments, allowed=words)


HOST = {"grid": Grid(ctas=2, threads=64, interpret=True)}


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("add", ADD)
@pytest.mark.parametrize("kind", ["push", "tile"])
def test_against_the_definition(kind, add, dtype):
    rng = np.random.default_rng(1)
    for seed, (m, n, entries) in enumerate([(90, 70, 500), (200, 33, 90), (40, 300, 2000)]):
        A = matrix(m, n, entries, seed, dtype=dtype)
        x = {int(j): dtype(rng.integers(-4, 5)) for j in rng.choice(n, 9, replace=False)}
        for name, mul in MUL.items():
            if name == "larger" and seed:
                continue
            want = expected(A, x, ADD[add], mul)
            check(run(kind, A, x, nse=m, add=add, mul=mul, **HOST), want, m, m)


@pytest.mark.parametrize("nt", [16, 32, 64])
@pytest.mark.parametrize("limit", [0, 1, 4])
def test_tile_sizes_and_remainder(nt, limit):
    A = matrix(150, 170, 700, 5)
    x = {j: np.float32(j % 5) for j in range(0, 170, 7)}
    want = expected(A, x, np.add, MUL["times"])
    options = {"nt": nt, "limit": limit, **HOST}
    check(run("tile", A, x, nse=150, add="add", mul=MUL["times"], **options), want, 150, 150)


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize(
    "few,crowd,long", [(40, 99, 256), (100, 99, 20), (900, 30, 20), (900, 999, 20)]
)
def test_few_products_and_many(monkeypatch, few, crowd, long, ascending):
    """With all CTAs' rows in shared memory, and where that is refused, in each of its ways."""
    monkeypatch.setattr(spmspv, "FEW", few)
    monkeypatch.setattr(spmspv_small, "CROWD", crowd)
    monkeypatch.setattr(spmspv_small, "LONG", long)
    monkeypatch.setattr(spmspv_small, "MOST", 140)
    A = matrix(150, 120, 900, 2, hub=50)
    A.sort_indices()
    keep = np.arange(150) % 3 != 0
    for places in [(1, 2), (50,), (3, 49, 51), (*range(0, 48, 4),), (*range(50),), (*range(80),)]:
        x = {j: np.float32(j % 5 - 2) for j in places}
        nse, mask = (150, None) if few == 100 or len(x) > 30 else (20, keep)
        want = expected(A, x, np.minimum, MUL["times"], mask)
        got = run(
            "push",
            A,
            x,
            nse=nse,
            add="min",
            mul=MUL["times"],
            allowed=mask,
            capacity=90,
            ascending=ascending,
            grid=Grid(3, 64, interpret=True),
        )
        check(got, want, 150, nse)


@pytest.mark.parametrize("kind", ["push", "tile"])
def test_long_ranges_are_cut(monkeypatch, kind):
    monkeypatch.setattr(flatten, "LONG", 6)
    monkeypatch.setattr(flatten, "PIECE", 4)
    monkeypatch.setattr(spmspv, "LIKELY", 0)  # the way of many products
    A = matrix(100, 120, 300, 2, hub=50)
    x = {3: np.float32(2), 50: np.float32(1), 51: np.float32(-1)}
    want = expected(A, x, np.add, MUL["times"])
    check(run(kind, A, x, nse=100, add="add", mul=MUL["times"], **HOST), want, 100, 100)


@pytest.mark.parametrize("kind", ["push", "tile"])
def test_masks_and_small_capacities(kind):
    A = matrix(100, 80, 600, 3)
    x = {j: np.float32(1 + j) for j in (0, 5, 79)}
    keep = np.arange(100) % 3 != 0
    want = expected(A, x, np.maximum, MUL["plus"], keep)
    options = {"add": "max", "mul": MUL["plus"], "allowed": keep, **HOST}
    assert len(want) > 10
    for nse in (100, 10):
        check(run(kind, A, x, nse=nse, **options), want, 100, nse)
    check(run(kind, A, {}, nse=5, **options), {}, 100, 5)


@pytest.mark.parametrize("add", ["min", "max"])
def test_extremes_order_as_floats(add):
    values = np.array([np.inf, -np.inf, -0.5, 2e-38, -3e38, 2.0, np.nan, 0.0], np.float32)
    row = np.array([0, 0, 1, 1, 2, 2, 3, 3])
    A = sp.csc_array((values, row, np.arange(9)), shape=(4, 8))
    x = {j: np.float32(0) for j in range(8)}
    y = run("push", A, x, nse=4, add=add, mul=MUL["plus"], **HOST)
    want = [ADD[add](values[i], values[i + 1]) for i in (0, 2, 4, 6)]
    np.testing.assert_array_equal(y[1], want)


def test_what_kernels_cannot_compute_is_named():
    assert refuse(MUL["larger"], jnp.float32, jnp.float32) is None
    assert "kernels have no `" in str(refuse(jnp.arctan2, jnp.float32, jnp.float32))
    assert "not float64" in str(refuse(MUL["plus"], np.float64, np.float64))


@pytest.mark.parametrize("kind", ["push", "tile"])
def test_one_launch(kind):
    A = matrix(90, 70, 500)
    x = {1: np.float32(1)}
    options = {"nse": 90, "add": "min", "mul": MUL["plus"]}
    assert lower(lambda: run(kind, A, x, **options)).count("custom_call @mosaic_gpu") == 1
    masked = lower(lambda: run(kind, A, x, allowed=np.ones(90, bool), **options))
    assert masked.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("add", ADD)
@pytest.mark.parametrize("kind", ["push", "tile"])
def test_native(kind, add):
    rng = np.random.default_rng(1)
    for seed, (m, n, entries) in enumerate([(90, 70, 500), (5000, 7000, 60000)]):
        A = matrix(m, n, entries, seed, hub=5)
        f = [
            product(kind, A, nse=m, add=add, mul=MUL["times"], nt=nt)
            for nt in ((16, 64) if kind == "tile" else (16,))
        ]
        for size in (0, 1, 40, n // 2):
            places = np.append(rng.choice(n, size, replace=False), 5)
            x = {int(j): np.float32(rng.integers(-4, 5)) for j in places}
            want = expected(A, x, ADD[add], lambda a, v: a * v)
            for _ in range(3):
                for multiply in f:
                    check(multiply(*vector(x, n, n // 2 + 4, A.dtype)), want, m, m)


SEMIRINGS = (
    "plus_times",
    "min_plus",
    "max_plus",
    "max_times",
    "min_max",
    "max_min",
    "plus_pair",
    "min_first",
    "max_second",
    "or_and",
    "any_secondi",
    "log_plus",
)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize("name", SEMIRINGS)
def test_public_products_equal_those_of_xla(name, dtype):
    semiring = getattr(jsp.semirings, name, None)
    if semiring is None:
        pytest.skip("there is no such semiring")
    if name == "log_plus" and dtype == np.int32:
        pytest.skip("its monoid is not defined on integers")
    A = jsp.from_scipy(matrix(3000, 2000, 30000, 4, hub=7, dtype=dtype)).asformat("csc")
    rng = np.random.default_rng(0)
    keep = jnp.asarray(rng.random(3000) < 0.7)
    formats = A, A.asformat("tiled")
    run = {
        backend: jax.jit(functools.partial(jsp.mxv, semiring=semiring, backend=backend))
        for backend in (None, "xla")
    }
    for size in (0, 3, 400):
        places = np.sort(rng.choice(2000, size, replace=False)).astype(np.int32)
        values = rng.integers(-3, 4, size).astype(dtype)
        x = jsp.vector_from_entries(places, values, 2000, nse=400)
        for M in formats:
            for mask in (None, keep):
                y, want = run[None](M, x, mask=mask), run["xla"](M, x, mask=mask)
                count = int(want.count)
                assert int(y.count) == count and bool(y.overflow) == bool(want.overflow)
                np.testing.assert_array_equal(y.indices[:count], want.indices[:count])
                # a sum of logarithms near 0 has no relative precision
                np.testing.assert_allclose(
                    y.data[:count], want.data[:count], rtol=1e-5, atol=1e-5 * (name == "log_plus")
                )


@pytest.mark.gpu
def test_a_capacity_too_small_is_an_error_on_a_gpu():
    A = jsp.from_dense(np.ones((4, 4), np.float32), format="csc")
    x = jsp.vector_from_entries([0], [1.0], 4)
    for M in (A, A.asformat("tiled")):
        with pytest.raises(ValueError, match="`nse` must be at least 4 to hold the result; got 2"):
            jsp.mxv(M, x, nse=2)
        y = jax.jit(lambda M, x: jsp.mxv(M, x, nse=2))(M, x)
        assert bool(y.overflow) and int(y.count) == 2
