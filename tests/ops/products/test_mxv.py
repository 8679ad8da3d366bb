"""`mxv`, `vxm`, SpMSpV by every method against their definition, for every format and semiring."""

import chex
import jax
import jax.extend.core
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import PROBLEMS

import jaxspv as jsp
from jaxspv.formats import COO, FORMATS
from jaxspv.ops.products.spmspv.api import METHODS

M, N, CAPACITY = 7, 9, 40  # one shape: one compilation for all examples
CORE = (
    "plus_times",
    "min_plus",
    "max_plus",
    "max_times",
    "min_max",
    "max_min",
    "or_and",
    "plus_pair",
    "any_pair",
    "any_secondi",
    "any_firsti",
    "min_first",
    "min_second",
    "min_secondi",
    "log_plus",
    "lxor_land",
)
USER = jsp.semiring(
    jsp.monoid(lambda x, y: x + y + x * y, 0, name="user"),
    jsp.BinaryOp(lambda a, x: a * x / 8, "eighth"),
)
SEMIRINGS = (*(getattr(jsp.semirings, name) for name in CORE), USER)

NUMPY_ADD = {
    "plus": np.add,
    "min": np.minimum,
    "max": np.maximum,
    "lor": np.logical_or,
    "lxor": np.logical_xor,
    "any": lambda x, y: x,
    "logaddexp": np.logaddexp,
    "user": lambda x, y: x + y + x * y,
}
NUMPY_MUL = {
    "times": lambda a, x, i, k: a * x,
    "min_extend": lambda a, x, i, k: a + x,
    "max_extend": lambda a, x, i, k: a + x,
    "plus": lambda a, x, i, k: a + x,
    "max": lambda a, x, i, k: np.maximum(a, x),
    "min": lambda a, x, i, k: np.minimum(a, x),
    "land": lambda a, x, i, k: bool(a) and bool(x),
    "pair": lambda a, x, i, k: a * 0 + 1,
    "first": lambda a, x, i, k: a,
    "second": lambda a, x, i, k: x,
    "firsti": lambda a, x, i, k: i,
    "secondi": lambda a, x, i, k: k,
    "eighth": lambda a, x, i, k: a * x / 8,
}


def dense_of(entries, shape):
    """(values, stored) of a dict place -> value."""
    values, stored = np.zeros(shape), np.zeros(shape, bool)
    for place, value in entries.items():
        values[place], stored[place] = value, True
    return values, stored


def oracle(entries, x, semiring):
    """dict row -> value: the definition, missing rows missing."""
    add, mul = NUMPY_ADD[semiring.add.name], NUMPY_MUL[semiring.mul.name]
    column = dense_of({(k, 0): v for k, v in x.items()}, (N, 1))
    values, stored = oracles.product(
        dense_of(entries, (M, N)), column, add, lambda a, v, i, k, j: mul(a, v, i, k)
    )
    return {int(i): float(values[i, 0]) for i in np.flatnonzero(stored)}


def padded(entries, m, n):
    """COO with NaN in the padding."""
    keys = sorted(entries)
    pad = CAPACITY - len(keys)
    return COO(
        jnp.asarray([entries[k] for k in keys] + [np.nan] * pad, jnp.float32),
        jnp.asarray([k[0] for k in keys] + [m] * pad, jnp.int32),
        jnp.asarray([k[1] for k in keys] + [n] * pad, jnp.int32),
        jnp.asarray(False),
        (m, n),
    )


def sparse_vector(x, n, nse=6):
    keys = sorted(x)
    pad = nse - len(keys)
    return jsp.SparseVector(
        jnp.asarray([x[k] for k in keys] + [np.nan] * pad, jnp.float32),
        jnp.asarray(keys + [n] * pad, jnp.int32),
        jnp.int32(len(keys)),
        jnp.asarray(False),
        (n,),
    )


def same(got, want, extent):
    assert int(got.count) == len(want)
    assert not bool(got.overflow)
    indices = np.asarray(got.indices)[: len(want)]
    assert indices.tolist() == sorted(want)
    assert (np.asarray(got.indices)[len(want) :] == extent).all()
    values = np.asarray(got.data)[: len(want)].astype(np.float64)
    np.testing.assert_allclose(values, [want[i] for i in sorted(want)], rtol=2e-4, atol=1e-5)


VALUES = st.integers(-8, 8).map(lambda v: v / 4)
CELLS = st.tuples(st.integers(0, M - 1), st.integers(0, N - 1))
MATRICES = st.dictionaries(CELLS, VALUES, max_size=30)
VECTORS = st.dictionaries(st.integers(0, N - 1), VALUES, max_size=6)


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=repr)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_every_method_is_the_definition(name, semiring):
    @jax.jit
    def run(A, x):
        return {
            method: jsp.mxv(A, x, semiring, method=method)
            for method in METHODS
            if method not in refused
        }

    refused = set()
    probe = padded({(0, 0): 1.0}, M, N).asformat(name)
    for method in METHODS:
        try:
            jsp.explain("mxv", probe, sparse_vector({}, N), semiring, method=method)
        except NotImplementedError:
            refused.add(method)
    assert {"row", "dense"} <= set(METHODS) - refused
    if name == "csc":
        assert refused <= {"scatter", "tile"}
    if name == "tiled":
        assert "tile" not in refused

    @given(MATRICES, VECTORS)
    def check(entries, x):
        want = oracle(entries, x, semiring)
        A = padded(entries, M, N).asformat(name)
        for got in run(A, sparse_vector(x, N)).values():
            same(got, want, M)

    check()


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=repr)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_dense_vector_and_masks(name, semiring):
    @jax.jit
    def run(A, B, x, mask):
        masks = (None, mask, ~mask)
        return (
            [jsp.mxv(A, x, semiring, mask=m) for m in masks],
            [jsp.vxm(x, B, semiring, mask=m) for m in masks],
        )

    @given(
        MATRICES,
        st.lists(VALUES, min_size=N, max_size=N),
        st.lists(st.booleans(), min_size=M, max_size=M),
    )
    def check(entries, x, mask):
        A = padded(entries, M, N).asformat(name)
        B = padded({(j, i): v for (i, j), v in entries.items()}, N, M).asformat(name)
        allowed = np.asarray(mask)
        flipped = {"firsti": "firstj", "first": "second", "second": "first", "secondi": "none"}
        got_mxv, got_vxm = run(A, B, jnp.asarray(x, jnp.float32), jnp.asarray(allowed))
        want = oracle(entries, dict(enumerate(x)), semiring)
        for got, keep in zip(got_mxv, (np.ones(M, bool), allowed, ~allowed), strict=True):
            zero = float(semiring.zero(got.dtype))
            full = [want[i] if i in want and keep[i] else zero for i in range(M)]
            np.testing.assert_allclose(np.asarray(got, np.float64), full, rtol=2e-4, atol=1e-5)
        if semiring.mul.name not in flipped:  # a commutative mul: vxm on A^T is mxv on A
            for a, b in zip(got_mxv, got_vxm, strict=True):
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=1e-5)

    check()


def test_vxm_takes_the_vector_first():
    A = jsp.from_edges([0, 1], [2, 2], [5.0, 7.0], shape=(3, 3))
    x = jsp.vector_from_entries([0, 1], [10.0, 20.0], 3)
    s = jsp.semirings
    assert jsp.vxm(x, A, s.min_first).todense().tolist() == [0, 0, 10]
    assert jsp.vxm(x, A, s.min_second).todense().tolist() == [0, 0, 5]
    assert jsp.vxm(x, A, s.any_secondi).todense().tolist() == [0, 0, 0]
    assert jsp.vxm(x, A, s.min_secondi, mask=jnp.array([0, 0, 1])).nnz == 1
    assert (x @ A).todense().tolist() == [0, 0, 190]


def test_masks_of_a_sparse_product():
    A = jsp.from_dense(np.ones((4, 4), np.float32), format="csc")
    x = jsp.vector_from_entries([0], [1.0], 4)
    m = jsp.vector_from_entries([1, 2], [0.0, 1.0], 4)
    for method in METHODS:

        def places(mask, method=method):
            B = A.asformat("tiled") if method == "tile" else A
            y = jsp.mxv(B, x, mask=mask, method=method)
            return y.indices[: int(y.count)].tolist()

        assert places(m) == [2]
        assert places(jsp.structure(m)) == [1, 2]
        assert places(~m) == [0, 1, 3]
        assert places(~jsp.structure(m)) == [0, 3]


def test_a_capacity_too_small_is_an_error_or_a_flag():
    A = jsp.from_dense(np.ones((4, 4), np.float32), format="csc")
    x = jsp.vector_from_entries([0], [1.0], 4)
    for method in METHODS:
        A = A.asformat("tiled" if method == "tile" else "csc")
        with pytest.raises(ValueError, match="`nse` must be at least 4 to hold the result; got 2"):
            jsp.mxv(A, x, nse=2, method=method)
        y = jax.jit(lambda A, x, method=method: jsp.mxv(A, x, nse=2, method=method))(A, x)
        assert bool(y.overflow) and int(y.count) == 2
        with pytest.raises(ValueError, match="overflow"):
            jsp.check(y)
    sticky = jax.jit(lambda A, y: jsp.mxv(A, y.resized(4)))(A, y)
    assert bool(sticky.overflow)


def test_integer_path_lengths_clamp_and_tell():
    top = np.iinfo(np.int32).max
    A = jsp.from_edges([0, 1], [1, 2], np.array([top - 1, 5], np.int32), shape=(3, 3))
    x = jsp.vector_from_entries([0, 1], np.array([7, top], np.int32), 3)
    y = jsp.vxm(x, A, jsp.semirings.min_plus)
    assert y.todense(-1).tolist() == [-1, top, top]
    assert bool(y.overflow)  # top - 1 + 7; infinity + 5 is no overflow
    calm = jsp.vxm(
        jsp.vector_from_entries([1], np.array([top], np.int32), 3), A, jsp.semirings.min_plus
    )
    assert not bool(calm.overflow)
    with pytest.raises(TypeError, match="max_plus has no -infinity in uint8"):
        B = jsp.from_dense(np.ones((2, 2), np.uint8))
        jsp.mxv(B, jnp.ones(2, jnp.uint8), jsp.semirings.max_plus)


def test_work_follows_the_frontier_and_not_the_matrix():
    """Under jit the pass over all slots is only in the branch for large frontiers."""
    n, degree = 20_000, 20
    rng = np.random.default_rng(0)
    A = jsp.from_edges(
        np.repeat(np.arange(n), degree), rng.integers(0, n, n * degree), shape=(n, n)
    )
    x = jsp.vector_from_entries(np.arange(10), np.ones(10, np.float32), n)
    few = jax.jit(lambda x, A: jsp.vxm(x, A, nse=4096))
    jaxpr = jax.make_jaxpr(few)(x, A)

    def largest_outside_switch(jaxpr):
        worst = 0
        for eqn in jaxpr.eqns:
            for sub in jax.extend.core.jaxprs_in_params(eqn.params):
                if eqn.primitive.name not in ("cond", "while"):
                    worst = max(worst, largest_outside_switch(sub))
            if eqn.primitive.name in ("gather", "scatter", "scatter-add", "sort", "mul"):
                worst = max([worst, *(int(np.prod(v.aval.shape)) for v in eqn.outvars)])
        return worst

    assert largest_outside_switch(jaxpr.jaxpr) <= 4096
    got = few(x, A).todense()
    want = A.to_scipy().T @ np.asarray(x.todense())
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_no_value_of_one_row_reaches_another(name):
    D = np.ones((3, 3), np.float32)
    D[1] = [np.inf, np.nan, -np.inf]
    y = jsp.from_dense(D, format=name) @ jnp.ones(3)
    assert np.isnan(y[1]) and y[0] == 3 and y[2] == 3


def test_bad_operands_are_named():
    A = jsp.from_dense(np.ones((2, 3), np.float32))
    with pytest.raises(ValueError, match=r"`x` must have shape \(3,\)"):
        jsp.mxv(A, jnp.ones(2))
    with pytest.raises(ValueError, match=r"`x` must have shape \(2,\)"):
        jsp.vxm(jnp.ones(3), A)
    with pytest.raises(TypeError, match="`A` must be a sparse matrix"):
        jsp.mxv(np.ones((2, 2)), jnp.ones(2))
    with pytest.raises(TypeError, match="`semiring` must be a Semiring"):
        jsp.mxv(A, jnp.ones(3), jnp.add)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match="such as 'min_plus'; got 'such_none'"):
        jsp.mxv(A, jnp.ones(3), "such_none")
    with pytest.raises(ValueError, match="`method` must be one of"):
        jsp.mxv(A, jsp.vector_from_entries([0], [1.0], 3), method="magic")
    with pytest.raises(ValueError, match="`mask` must have the shape"):
        jsp.mxv(A, jnp.ones(3), mask=jnp.ones(3, bool))
    with pytest.raises(NotImplementedError, match="it reads columns, and CSR lists rows"):
        jsp.mxv(A, jsp.vector_from_entries([0], [1.0], 3), method="sort")


def test_empty_matrices_and_vectors():
    A = jsp.from_edges([], [], np.zeros(0, np.float32), shape=(3, 4))
    assert jsp.mxv(A, jnp.ones(4)).tolist() == [0, 0, 0]
    y = jsp.vxm(jsp.vector_from_entries([1], [1.0], 3), A)
    assert int(y.count) == 0 and y.shape == (4,)


def test_one_compilation_serves_equal_shapes():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def f(A, x):
        return A @ x

    for seed in range(3):
        rng = np.random.default_rng(seed)
        A = jsp.from_edges(rng.integers(0, 5, 8), rng.integers(0, 5, 8), shape=(5, 5), nse=8)
        f(A, jnp.ones(5))


EMPTY = [name for name, problem in PROBLEMS.items() if problem.row.size == 0]


@pytest.mark.parametrize("name", sorted(FORMATS))
@pytest.mark.parametrize("problem", EMPTY)
def test_nothing_stored_gives_identities(problem, name):
    m, n = PROBLEMS[problem].shape
    A = jsp.from_dense(jnp.zeros((m, n)), nse=PROBLEMS[problem].spare, format=name)
    for semiring in (jsp.semirings.plus_times, jsp.semirings.min_plus, jsp.semirings.any_secondi):
        zero = semiring.zero(np.float32 if semiring.mul.position is None else np.int32)
        assert jsp.mxv(A, jnp.ones(n), semiring).tolist() == [zero] * m
        assert jsp.vxm(jnp.ones(m), A, semiring).tolist() == [zero] * n
    slope = jax.grad(lambda x: (A @ x).sum())(jnp.ones(n))
    assert slope.tolist() == [0] * n
    y = jsp.mxv(A, jsp.vector_from_entries([], [], n, nse=2))
    assert int(y.count) == 0 and y.shape == (m,)
