"""int32 and int64 indices: kept by every operation; mixed ones promote; sizes that need int64."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core import indices

S = sp.random_array((6, 6), density=0.4, rng=np.random.default_rng(0), dtype=np.float32).tocsr()
DENSE = S.toarray()
HUGE = 2**40


@pytest.fixture
def x64():
    with jax.enable_x64():
        yield


def narrow():
    return jsp.from_scipy(S)


def wide(format="csr"):
    return jsp.from_scipy(S, index_dtype=jnp.int64, format=format)


def arrays(x):
    """The index arrays of a sparse object."""
    return [getattr(x, name) for name in x.index_fields]


def check(x, want, dtype=jnp.int64):
    """Indices of one dtype throughout, and the values."""
    assert x.index_dtype == dtype and {a.dtype for a in arrays(x)} == {np.dtype(dtype)}
    assert x.count.dtype == dtype
    np.testing.assert_allclose(x.todense(), want, rtol=1e-6)


def vector(dtype=None):
    return jsp.vector_from_entries([1, 3], [1.0, 2.0], 6, index_dtype=dtype)


V = np.array([0, 1, 0, 2, 0, 0], np.float32)
OPERATIONS = {
    "transpose": (lambda A: jsp.transpose(A), DENSE.T),
    "apply": (lambda A: jsp.apply(A, jnp.negative), -DENSE),
    "select": (lambda A: jsp.select(A, jsp.operators.tril), np.tril(DENSE)),
    "extract": (lambda A: A[[4, 1, 1], 1:5], DENSE[[4, 1, 1], 1:5]),
    "assign": (lambda A: jsp.assign(A, A[:2], [3, 0]), DENSE[[1, 1, 2, 0, 4, 5]]),
    "reduce": (lambda A: jsp.reduce(A, axis=1), DENSE.sum(1)),
    "kron": (lambda A: jsp.kron(A, A[:1, :2]), np.kron(DENSE, DENSE[:1, :2])),
    "diag": (lambda A: jsp.diag(A), np.diag(DENSE)),
    "resize": (lambda A: jsp.graphblas.resize(A, 4, 8), np.pad(DENSE[:4], ((0, 0), (0, 2)))),
    "row": (lambda A: A[4], DENSE[4]),
    "mxv": (lambda A: jsp.mxv(A, vector()), DENSE @ V),
    "vxm": (lambda A: jsp.vxm(vector(), A), V @ DENSE),
    "build": (
        lambda A: jsp.graphblas.build(([1], [2]), 5.0, (2, 3), index_dtype=jnp.int64),
        [[0, 0, 0], [0, 0, 5.0]],
    ),
}


FIRST = ("transpose", "select", "extract", "assign", "reduce", "mxv", "build")


@pytest.mark.parametrize(
    "name",
    [name if name in FIRST else pytest.param(name, marks=pytest.mark.slow) for name in OPERATIONS],
)
def test_kept_by(name, x64):
    run, want = OPERATIONS[name]
    check(run(wide()), want)


@pytest.mark.parametrize("format", ["coo", "csc"])
def test_kept_by_formats(format, x64):
    A = wide(format)
    check(A, DENSE)
    check(A.asformat("csr"), DENSE)
    check(wide().asformat(format), DENSE)
    check(jsp.io.from_bcoo(A.to_bcoo()), DENSE)
    check(A.with_index_dtype(jnp.int32), DENSE, jnp.int32)
    assert A.asformat("tiled").to_coo().index_dtype == jnp.int32  # local indices are packed
    np.testing.assert_array_equal(A.asformat("tiled").todense(), DENSE)


@pytest.mark.parametrize(
    "pair",
    [
        pytest.param("wide, wide", marks=pytest.mark.slow),
        "wide, narrow",
        pytest.param("narrow, wide", marks=pytest.mark.slow),
    ],
)
def test_mixed_ones_promote(pair, x64):
    A, B = (wide() if name == "wide" else narrow() for name in pair.split(", "))
    check(jsp.mxm(A, B), DENSE @ DENSE)
    check(jax.jit(lambda A, B: jsp.mxm(A, B, nse=36))(A, B), DENSE @ DENSE)
    check(A + B, 2 * DENSE)
    masked = jsp.ewise_mult(narrow(), narrow(), mask=wide())
    check(masked, DENSE**2, jnp.int32)  # a mask only allows
    check(jsp.ewise_add(narrow(), narrow(), out=wide(), accum=jnp.add), 3 * DENSE)


def test_positional_operators_give_the_index_dtype(x64):
    for A, dtype in ((wide(), jnp.int64), (narrow(), jnp.int32)):
        first = jsp.mxm(A, A, jsp.semirings.any_secondi).trim()
        assert first.dtype == dtype
        for (i, j), k in zip(zip(*np.nonzero(DENSE @ DENSE), strict=True), first.data, strict=True):
            assert DENSE[i, k] != 0 and DENSE[k, j] != 0
        assert jsp.ewise_mult(A, A, jsp.operators.firsti).dtype == dtype
        assert jsp.apply(A, jsp.operators.rowindex).dtype == dtype
        assert jsp.mxv(A, vector(), jsp.semirings.any_secondi).dtype == dtype


def test_algorithms_number_vertices_by_int32(x64):
    A = wide() + wide().T
    graph = jsp.prepare(A, for_="bfs")
    assert graph.out.index_dtype == jnp.int32
    want = jsp.bfs(A.with_index_dtype(jnp.int32), 0)
    for got in (jsp.bfs(A, 0), jsp.bfs(graph, 0)):
        np.testing.assert_array_equal(got.levels, want.levels)
    assert int(jsp.triangle_count(A).count) == int(jsp.triangle_count(graph).count)


CELLS = {(0, HUGE - 1): 1.0, (7, 2**33): 2.0, (2**35, 3): 4.0, (2**35, 2**33): 8.0}


def huge(cells=CELLS):
    row, col = zip(*cells, strict=True)
    return jsp.from_edges(row, col, list(cells.values()), shape=(HUGE, HUGE), format="coo")


def cells_of(x):
    """Entries as a dict."""
    keys = (x.row, x.col) if x.ndim == 2 else (x.indices,)
    assert x.index_dtype == jnp.int64 and not bool(x.overflow)
    places = zip(*(np.asarray(k)[: int(x.count)].tolist() for k in keys), strict=True)
    return dict(zip(places, np.asarray(x.data).tolist(), strict=False))


def test_extents_that_need_int64(x64):
    A = huge()
    assert cells_of(A) == CELLS
    flipped = {(j, i): x for (i, j), x in CELLS.items()}
    assert cells_of(A.T.to_coo()) == flipped
    both = {k: CELLS.get(k, 0) + flipped.get(k, 0) for k in {**CELLS, **flipped}}
    assert cells_of(A + A.T) == both
    assert cells_of(A * A) == {k: x * x for k, x in CELLS.items()}
    assert cells_of(jsp.select(A, jsp.operators.tril)) == {
        k: x for k, x in CELLS.items() if k[1] <= k[0]
    }
    assert cells_of(jsp.apply(A, jsp.operators.colindex)) == {k: k[1] for k in CELLS}
    assert cells_of(A[[2**35, 5, 7], :]) == {(0, 3): 4.0, (0, 2**33): 8.0, (2, 2**33): 2.0}
    assert cells_of(A[2**35, 2**32 :]) == {(2**32,): 8.0}
    assert float(A[7, 2**33]) == 2.0 and float(A[7, 5]) == 0.0
    assert cells_of(jsp.assign(A, 9.0, [7, 2**36], [2**33])) == {
        **CELLS,
        (7, 2**33): 9.0,
        (2**36, 2**33): 9.0,
    }
    assert cells_of(jsp.reduce(A, axis=1)) == {(0,): 1.0, (7,): 2.0, (2**35,): 12.0}
    assert cells_of(jsp.reduce(A, axis=0)) == {(3,): 4.0, (2**33,): 10.0, (HUGE - 1,): 1.0}
    pair = jsp.from_edges([2**20], [2**21], 3.0, shape=(2**30, 2**30), format="coo")
    assert pair.index_dtype == jnp.int32
    corner = jsp.from_edges([2**29], [1], 5.0, shape=(2**30, 2), format="coo")
    assert cells_of(jsp.kron(pair, corner)) == {(2**50 + 2**29, 2**22 + 1): 15.0}


FACTOR = {(3, 2**39): 10.0, (2**33, 5): 100.0, (6, 6): 1000.0}
PRODUCT = {(7, 5): 200.0, (2**35, 5): 800.0, (2**35, 2**39): 40.0}


def few(*places):
    return jsp.vector_from_entries(places, np.arange(1.0, len(places) + 1), HUGE)


def test_products_over_extents_that_need_int64(x64):
    mask = huge({(2**35, 5): 1.0, (2**35, 6): 1.0})
    assert cells_of(jsp.mxm(huge(), huge(FACTOR), mask=mask)) == {(2**35, 5): 800.0}
    assert cells_of(jsp.mxv(huge(), few(3, 2**33, 9))) == {(7,): 4.0, (2**35,): 20.0}


@pytest.mark.slow
def test_options_of_products_over_extents_that_need_int64(x64):
    A, B, x, seven = huge(), huge(FACTOR), few(3, 2**33, 9), few(7, 8)
    assert cells_of(jsp.mxm(A, B)) == PRODUCT
    assert cells_of(jsp.mxm(A, B, out=B, accum=jsp.operators.plus)) == {**PRODUCT, **FACTOR}
    mask = huge({(2**35, 5): 1.0, (2**35, 6): 1.0})
    rest = jax.jit(lambda A, B, mask: jsp.mxm(A, B, mask=~mask, nse=4))(A, B, mask)
    assert cells_of(rest) == {k: PRODUCT[k] for k in ((7, 5), (2**35, 2**39))}
    assert cells_of(jsp.vxm(x, B)) == {(5,): 200.0, (2**39,): 10.0}
    assert cells_of(jsp.mxv(A, x, mask=~jsp.structure(seven))) == {(2**35,): 20.0}
    assert cells_of(jsp.mxv(A, x, out=seven, accum=jsp.operators.plus)) == {
        (7,): 5.0,
        (8,): 2.0,
        (2**35,): 20.0,
    }


def test_a_capacity_that_needs_int64(monkeypatch, x64):
    monkeypatch.setattr(indices, "LIMIT", 50)  # as if 2^31 - 1 were 50
    edges = np.arange(43)
    A = jsp.from_edges(edges, edges, shape=(43, 45))
    assert A.index_dtype == jnp.int32
    assert (A + A).index_dtype == jnp.int64  # 86 slots at most
    assert jsp.from_edges(edges, edges, shape=(43, 45), nse=60).index_dtype == jnp.int64
    with pytest.raises(ValueError, match="must be int64 for a size of 60"):
        jsp.from_edges(edges, edges, shape=(43, 45), nse=60, index_dtype=jnp.int32)


@pytest.mark.parametrize(
    "call, error, text",
    [
        (
            lambda: jsp.from_edges([0], [0], shape=(2, 2), index_dtype=jnp.int64),
            ValueError,
            "int64 indices need jax_enable_x64, which is off; they were asked for",
        ),
        (
            lambda: jsp.vector_from_entries([1], [2.0], HUGE),
            ValueError,
            f"a size of {HUGE} needs them",
        ),
        (lambda: narrow().with_index_dtype(jnp.int64), ValueError, "jax_enable_x64"),
        (
            lambda: jsp.from_scipy(S, index_dtype=jnp.int16),
            TypeError,
            "must be int32 or int64; got",
        ),
        (
            lambda: jsp.graphblas.resize(narrow(), 2**31 - 1, 3),
            ValueError,
            "a size of 2147483647 needs them",
        ),
    ],
)
def test_errors_without_x64(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_errors_with_x64(x64):
    with pytest.raises(ValueError, match="use format='coo'"):
        jsp.from_edges([0], [0], shape=(HUGE, 2))
    with pytest.raises(ValueError, match="bfs takes extents and capacities below 2"):
        jsp.bfs(huge(), 0)
    with pytest.raises(ValueError, match="`secondi` is positional"):
        jsp.mxm(huge(), huge(), jsp.semirings.any_secondi)
    with pytest.raises(ValueError, match="extents do not match"):
        jsp.mxm(huge(), jsp.graphblas.resize(huge(), 5, HUGE))
    with pytest.raises(ValueError, match="`index_dtype` must be int64 for a size"):
        huge().with_index_dtype(jnp.int32)
