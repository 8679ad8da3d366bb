"""Operations on matrices and vectors of tuples, against dictionaries of places."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.formats.tuples import Tuples

S = jsp.semirings
FORMATS = ("coo", "csr", "csc", "ell", "sell", "tiled")
PAIR = S.argmin_plus()
NONE = 2**31 - 1


def drawn(seed, shape=(4, 5), entries=9):
    """A matrix of (float32, int32), NaN in its padding, and its dictionary."""
    rng = np.random.default_rng(seed)
    flat = np.sort(rng.permutation(shape[0] * shape[1])[:entries])
    row, col = flat // shape[1], flat % shape[1]
    cost = rng.integers(0, 5, entries).astype(np.float32)
    ids = rng.integers(0, 90, entries).astype(np.int32)
    where = {"constant_values": shape[0]}, {"constant_values": shape[1]}
    rows, cols = (jnp.asarray(np.pad(v, (0, 3), **w), jnp.int32)
                  for v, w in zip((row, col), where, strict=True))  # fmt: skip
    A = jsp.COO(jnp.zeros(entries + 3), rows, cols, jnp.asarray(False), shape)
    padded = np.pad(cost, (0, 3), constant_values=np.nan), np.pad(ids, (0, 3))
    T = A.with_data(tuple(map(jnp.asarray, padded)))
    return T, {(int(i), int(j)): (c, k) for i, j, c, k in zip(row, col, cost, ids, strict=True)}


def entries(T):
    """The dictionary of a matrix or vector of tuples."""
    numbers, valid = T.places, np.asarray(T.valid())
    assert valid.sum() == int(T.count)
    values = [np.asarray(v)[np.asarray(numbers.data)[valid]] for v in jax.tree.leaves(T.values)]
    keys = numbers.rowcol() if numbers.ndim == 2 else (numbers.indices,)
    keys = list(zip(*(np.asarray(k)[valid].tolist() for k in keys), strict=True))
    assert len(set(keys)) == len(keys)
    found = dict(zip(keys, zip(*(v.tolist() for v in values), strict=True), strict=True))
    return {k if len(k) > 1 else k[0]: v for k, v in found.items()}


def best(*pairs):
    return min(pairs)


def times(x, y):
    return x[0] + y[0], x[1] if y[1] == NONE else y[1]


@pytest.mark.parametrize("format", FORMATS)
def test_formats_keep_values(format):
    T, want = drawn(1)
    F = T.asformat(format)
    assert isinstance(F, Tuples) and F.format == format and entries(F) == want
    assert entries(F.T) == {(j, i): v for (i, j), v in want.items()}
    cost, ids = F.todense((-1.0, -1))
    for place in np.ndindex(4, 5):
        assert (cost[place], ids[place]) == want.get(place, (-1, -1))
    assert entries(F.with_data(F.data)) == want


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("flip", [False, True])
def test_products_with_vectors(format, flip):
    T, want = drawn(2)
    T = T.asformat(format)
    n, m = (4, 5) if flip else (5, 4)
    x = jnp.arange(n, dtype=jnp.float32), jnp.arange(n, dtype=jnp.int32) + 100
    call = (lambda x, **o: jsp.vxm(x, T, PAIR, **o)) if flip else lambda x, **o: jsp.mxv(T, x, PAIR, **o)  # fmt: skip  # noqa: E501
    terms = {}
    for (i, j), v in want.items():
        k, out = (i, j) if flip else (j, i)
        pair = (float(x[0][k]), int(x[1][k]))
        terms.setdefault(out, {})[k] = times(pair, v) if flip else times(v, pair)

    def expected(out, keys):
        return min((t for k, t in terms.get(out, {}).items() if k in keys), default=(np.inf, NONE))

    dense = [expected(i, range(n)) for i in range(m)]
    for found in (call(x), jax.jit(call)(x)):
        assert list(zip(*(v.tolist() for v in found), strict=True)) == dense
    mask = jnp.arange(m) % 2 == 0
    out = tuple(jnp.full(m, v, d) for v, d in ((1.5, jnp.float32), (7, jnp.int32)))
    found = call(x, mask=mask, accum=PAIR.add, out=out)
    for i in range(m):
        want_i = best((1.5, 7), dense[i]) if i % 2 == 0 else (1.5, 7)
        assert (found[0][i], found[1][i]) == want_i
    some = jsp.vector_from_entries([0, 2], [1.0, 1.0], n).with_data(tuple(v[jnp.array([0, 2])] for v in x))  # fmt: skip  # noqa: E501
    assert entries(call(some)) == {i: expected(i, (0, 2)) for i in terms if {0, 2} & set(terms[i])}
    columns = tuple(jnp.stack([v, v + 1], 0 if flip else 1) for v in x)
    both = jsp.mxm(columns, T, PAIR) if flip else jsp.mxm(T, columns, PAIR)
    for k in range(2):
        lone = call(tuple(v + k for v in x))
        got = tuple(v[k] if flip else v[:, k] for v in both)
        assert all((a == b).all() for a, b in zip(lone, got, strict=True))
    assert re.search("product of tuples: .*xla/segments", str(jsp.explain(call, x)))


@pytest.mark.parametrize("formats", [("csr", "csr"), ("csc", "coo"), ("ell", "csc")])
def test_products_of_matrices_and_the_write_rule(formats):
    (A, a), (B, b) = drawn(3), drawn(4, (5, 4))
    A, B = A.asformat(formats[0]), B.asformat(formats[1])
    want = {}
    for (i, k), x in a.items():
        for (p, j), y in b.items():
            if p == k:
                want[i, j] = min(want.get((i, j), (np.inf, NONE)), times(x, y))
    C = jsp.mxm(A, B, PAIR)
    assert entries(C) == want
    assert entries(jax.jit(lambda A, B: jsp.mxm(A, B, PAIR))(A, B)) == want
    short = jax.jit(lambda A, B: jsp.mxm(A, B, PAIR, chunk=2))(A, B)
    assert bool(short.overflow)
    out, old = drawn(5, (4, 4), 6)
    mask = jnp.asarray(np.random.default_rng(0).random((4, 4)) < 0.6)
    for replace in (False, True):
        for accum in (None, PAIR.add):
            found = entries(jsp.mxm(A, B, PAIR, mask=mask, out=out, accum=accum, replace=replace))
            z = dict(want)
            if accum is not None:
                z = {k: min(v for d in (old, want) if (v := d.get(k))) for k in {*old, *want}}
            left = {} if replace else {k: v for k, v in old.items() if not mask[k]}
            assert found == left | {k: v for k, v in z.items() if mask[k]}


def test_element_by_element():
    (A, a), (B, b) = drawn(6), drawn(7)
    least, either = PAIR.add, {*a, *b}
    found = entries(jsp.ewise_add(A, B.asformat("csc"), least))
    assert found == {k: min(v for d in (a, b) if (v := d.get(k))) for k in either}
    one = (jnp.float32(0.5), jnp.int32(3))
    found = entries(jsp.ewise_union(A, B, least, one, one))
    assert found == {k: min(a.get(k, (0.5, 3)), b.get(k, (0.5, 3))) for k in either}
    C = jsp.ewise_mult(A, B, lambda x, y: x[0] - y[0]).trim()
    assert isinstance(C, jsp.COO) and {
        (int(i), int(j)): float(v) for i, j, v in zip(C.row, C.col, C.data, strict=True)
    } == {k: a[k][0] - b[k][0] for k in a if k in b}
    dense = tuple(v[0] for v in A.todense())
    found = jsp.ewise_add(dense, dense, least)
    assert all((x == y).all() for x, y in zip(found, dense, strict=True))


def test_apply_select_and_reduce():
    A, a = drawn(8)
    swap = entries(jsp.apply(A, lambda v: (v[1], v[0])))
    assert swap == {k: (v[1], v[0]) for k, v in a.items()}
    placed = jsp.apply(A, jsp.IndexUnaryOp(lambda v, i, j, s: v[0] + 10 * i + j + s), thunk=100)
    assert placed.trim().data.tolist() == [v[0] + 10 * i + j + 100 for (i, j), v in a.items()]
    bound = entries(jsp.apply(A, PAIR.mul, left=(1.0, 5)))
    assert bound == {k: times((1.0, 5), v) for k, v in a.items()}
    kept = entries(jsp.select(A, lambda v: v[0] > 1))
    assert kept == {k: v for k, v in a.items() if v[0] > 1}
    lower = entries(jsp.select(A.asformat("csc"), lambda v, i, j, s: j <= i + s, 1))
    assert lower == {(i, j): v for (i, j), v in a.items() if j <= i + 1}
    assert tuple(v.item() for v in jsp.reduce(A, PAIR.add)) == min(a.values())
    for axis in (0, 1):
        want = {}
        for k, v in a.items():
            want[k[1 - axis]] = min(v, want.get(k[1 - axis], (np.inf, NONE)))
        y = jsp.reduce(A, PAIR.add, axis=axis)
        assert entries(y) == want
        assert tuple(v.item() for v in jsp.reduce(y, PAIR.add)) == min(a.values())
    with pytest.raises(ValueError, match="`axis` must be"):
        jsp.reduce(y, PAIR.add, axis=0)


def test_numbers_of_tuples_are_written_under_all_options():
    A, a = drawn(8)
    old = sp.random_array((4, 5), density=0.4, rng=np.random.default_rng(1), dtype=np.float32)
    C, want = jsp.from_scipy(old), old.toarray()
    allowed = np.arange(20).reshape(4, 5) % 2 == 0
    for (i, j), v in a.items():
        want[i, j] = want[i, j] + v[0] if allowed[i, j] else want[i, j]
    options = {"mask": jsp.structure(jsp.from_dense(allowed)), "out": C}
    y = jsp.apply(A, lambda v: v[0], **options, accum=jsp.operators.plus)
    np.testing.assert_array_equal(y.todense(), want)


def test_places_alone():
    A, a = drawn(9)
    assert entries(jsp.transpose(A)) == {(j, i): v for (i, j), v in a.items()}
    part = jsp.extract(A, [2, 0], [1, 3])
    assert entries(part) == {
        (p, q): a[i, j] for p, i in enumerate((2, 0)) for q, j in enumerate((1, 3)) if (i, j) in a
    }
    found = entries(jsp.assign(A, part, [0, 1], [0, 1]))
    inside = {(i, j) for i in (0, 1) for j in (0, 1)}
    assert found == {k: v for k, v in a.items() if k not in inside} | entries(part)
    with pytest.raises(ValueError, match="give a list of places"):
        jsp.extract(A, 0, 1)
    with pytest.raises(ValueError, match="takes no `accum`"):
        jsp.assign(A, part, [0, 1], [0, 1], accum=PAIR.add)


@pytest.mark.parametrize("k", [0, 1, -2])
def test_diagonals_and_other_shapes(k):
    A, a = drawn(11, entries=14)
    d = jsp.diag(A, k)
    down, right = max(-k, 0), max(k, 0)
    assert entries(d) == {i - down: v for (i, j), v in a.items() if j - i == k}
    back = jsp.diag(d, k, format="csc")
    assert back.format == "csc" and entries(back) == {
        (i + down, i + right): v for i, v in entries(d).items()
    }
    for shape in ((3, 9), (6, 2)):
        want = {(i, j): v for (i, j), v in a.items() if i < shape[0] and j < shape[1]}
        assert entries(jsp.graphblas.resize(A, shape)) == want
    assert jsp.graphblas.resize(d, 2).shape == (2,)


def test_kronecker_products():
    (A, a), (B, b) = drawn(12, (2, 3), 4), drawn(13, (3, 2), 5)
    want = {
        (i * 3 + k, j * 2 + q): times(v, w) for (i, j), v in a.items() for (k, q), w in b.items()
    }
    with_best = lambda x, y: (x[0] + y[0], jnp.where(y[1] == NONE, x[1], y[1]))  # noqa: E731
    assert entries(jsp.kron(A, B, with_best)) == want
    C = jsp.kron(A, B, lambda x, y: x[0] * y[1])
    for (i, j), v in a.items():
        for (k, q), w in b.items():
            assert C.todense()[i * 3 + k, j * 2 + q] == v[0] * w[1]


def test_apply_has_no_derivative_at_padding():
    """`a w / (4 - i)`, infinite at the row of padding."""
    A, a = drawn(14)
    op = jsp.IndexUnaryOp(lambda v, i, j, w: v[0] * w / (4 - i))
    by_w = jax.grad(lambda w: jsp.apply(A, op, thunk=w).sum())(2.0)
    np.testing.assert_allclose(by_w, sum(v[0] / (4 - i) for (i, _), v in a.items()), rtol=1e-6)


def test_values_that_do_not_fit_are_refused():
    A = jsp.from_edges([0, 1], [1, 0], [1.0, 2.0], shape=(2, 2))
    with pytest.raises(ValueError, match="one row a slot"):
        A.with_data((jnp.ones(3), jnp.ones(2)))
    assert A.with_data((3.0, 4.0)).data.tolist() == [3, 4]  # a list of numbers, as before
    T = A.with_data(PAIR.lift(A.data))
    with pytest.raises(ValueError, match="leaves of shape"):
        jsp.mxv(T, (jnp.ones(3), jnp.ones(3, jnp.int32)), PAIR)
    with pytest.raises(ValueError, match="do not match"):
        jsp.mxm(T, drawn(1)[0], PAIR)
    with pytest.raises(TypeError, match="must be sparse"):
        jsp.vxm((jnp.ones(2), jnp.ones(2)), np.ones((2, 2)), PAIR)
    twice = jsp.COO(*map(jnp.asarray, ([1.0, 2.0], [0, 0], [1, 1], False)), (2, 2), True, False)
    with pytest.raises(ValueError, match="lists each place once"):
        twice.with_data((jnp.ones(2), jnp.ones(2)))
    assert repr(T) == "Tuples((float32[2], int32[2]), CSR, shape=(2, 2))"
    with pytest.raises(AttributeError, match="has no attribute"):
        T.shapes  # noqa: B018


def test_a_mask_of_the_places_that_hold_tuples():
    """What a search has reached is no longer written: its own tuples say where."""
    s = S.argmin_plus()
    A = jsp.from_edges([0, 0, 1], [1, 2, 0], np.float32([1, 5, 2]), shape=(3, 3))
    A = A.with_data(s.lift(A.data))
    v = jsp.vector_from_entries([0, 1], np.float32([0, 3]), 3)
    v = v.with_data((v.data, jnp.full(v.nse, 7, jnp.int32)))
    y = jsp.vxm(v, A, s, mask=~jsp.structure(v))
    assert y.places.trim().indices.tolist() == [2]
    assert jsp.vxm(v, A, s, mask=jsp.structure(v)).places.trim().indices.tolist() == [0, 1]
    with pytest.raises(TypeError, match="takes no `mask`"):
        jsp.reduce(A, s.add, out=(0.0, 1), accum=s.add)


MOMENTS = {"entropy": S.entropy(), "variance": S.variance()}  # whose first is the expectation


@pytest.mark.parametrize("name", MOMENTS)
def test_gradients_and_lanes(name):
    """Products and reductions, twice differentiable, with a vertex without entries and padding."""
    s, (A, _) = MOMENTS[name], drawn(10)
    with jax.enable_x64(True):
        x0 = tuple(jnp.zeros(4, jnp.float64) for _ in s.one.value)
        other = jnp.arange(A.nse, dtype=jnp.float64) / 5

        def f(w):
            lifted = s.lift(w) if name == "entropy" else s.lift(w, other * w)
            T = A.with_data(lifted)
            y = jsp.vxm(x0, T, s)
            whole = jsp.reduce(T, s.add)
            return sum(jnp.sum(jnp.where(jnp.isfinite(v), v, 0)) for v in (*y, *whole))

        w = jnp.asarray(np.random.default_rng(0).normal(size=A.nse))
        f = jax.jit(f)
        for order, mode in ((1, "fwd"), (2, "rev")):
            check_grads(f, (w,), order, [mode], eps=1e-4, rtol=1e-4, atol=1e-4)
        lanes = jax.vmap(jax.grad(f))(jnp.stack([w, 2 * w]))
        np.testing.assert_allclose(lanes[1], jax.grad(f)(2 * w), 1e-8)
        assert np.isfinite(lanes).all() and not lanes[:, -3:].any()


def test_values_unlike_those_of_out_are_refused():
    A = jsp.from_dense([[0.0, 1.0], [2.0, 0.0]])
    pairs = A.with_data((A.data, jnp.arange(2)))
    wide = A.with_data((A.data, jnp.ones((2, 3))))
    three = A.with_data((A.data, A.data, A.data))
    for other in (wide, three):
        with pytest.raises(TypeError, match="like those of `out`"):
            jsp.transpose(pairs, out=other)
        with pytest.raises(TypeError, match="like those of `C`"):
            jsp.assign(pairs, other, [0, 1], [0, 1])
