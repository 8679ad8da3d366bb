"""check_grads over semirings x formats x operations x problems, driven by the registries.

A new format or semiring joins without an edit; an operation joins by a line in OPERATIONS. By
default every operation, every format and the core semirings run, one axis at a time, and the second
order where it is not the same code again; JAXSPV_THOROUGH=1 runs the whole product twice over.
"""

import dataclasses
import functools
import itertools
import os

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.formats import FORMATS

THOROUGH = os.environ.get("JAXSPV_THOROUGH") == "1"
PADDING = 3

# Holes are 0. An empty row, an empty column, a full row; values that tie nowhere.
PROBLEMS = {
    "rectangular": [[0, 2.1, 0, 1.5], [0, 0, 0, 0], [3.2, 0.55, 0, 0.9]],
    "square": [[0.7, 1.3, 2.2, 1.9], [0, 0, 0, 1.1], [0, 1.6, 0, 0], [2.7, 0, 0.4, 0]],
    "one entry": [[0, 0], [1.7, 0]],
}
SOFT = jsp.semiring(
    jsp.monoids.plus, jsp.BinaryOp(lambda a, x, t: jnp.tanh(t * a * x), "tanh", (0.7,))
)
SMOOTH_MAX = jsp.semiring(
    jsp.monoid(lambda a, b: jnp.sqrt(a * a + b * b), 0.0, name="hypot"), jsp.operators.times
)
USERS = {"user_tanh": SOFT, "user_hypot": SMOOTH_MAX}


def is_smooth(semiring):
    """Defined on floats, with a float result."""
    number = jnp.ones(1, jnp.float32)
    if semiring.mul.position is not None or not semiring.add.accepts(np.dtype("f4")):
        return False
    return jnp.issubdtype(jax.eval_shape(semiring.mul, number, number).dtype, jnp.floating)


def has_identity(semiring):
    return semiring.add.identity is not None


SEMIRINGS = {s.name: s for s in jsp.semirings.ALL if is_smooth(s)} | USERS
CORE = [s.name for s in jsp.semirings.CORE if s.name in SEMIRINGS] + ["times_plus", *USERS]


def padded(dense, name):
    """The holes of `dense` left out; capacity above the entries, NaN in it."""
    m, n = np.shape(dense)
    coo = jsp.from_dense(np.asarray(dense, np.float64), format="coo")
    pad = ((0, PADDING),)
    return dataclasses.replace(
        coo,
        data=jnp.pad(coo.data, pad, constant_values=jnp.nan),
        row=jnp.pad(coo.row, pad, constant_values=m),
        col=jnp.pad(coo.col, pad, constant_values=n),
    ).asformat(name)


def stored_slots(A):
    return np.flatnonzero(np.asarray(A.rowcol()[0]) < A.shape[0])


def with_values(A, values):
    """A with NaN in its padding and `values` in the stored slots."""
    data = jnp.full(A.nse, jnp.nan, values.dtype)
    return A.with_data(data.at[stored_slots_of[id(A)]].set(values))


stored_slots_of: dict[int, np.ndarray] = {}


def numbers(result):
    """What a result holds, without padding and missing places."""
    if isinstance(result, jsp.SparseVector):
        return jnp.where(jnp.arange(result.nse) < result.count, result.data, 0)
    if hasattr(result, "rowcol"):
        return jnp.where(result.rowcol()[0] < result.shape[0], result.data, 0)
    return jnp.where(jnp.isfinite(result), result, 0)


def sparse(values, n):
    """A SparseVector of length n with capacity to spare: every second entry is stored."""
    index = np.arange(0, n, 2)
    x = jsp.vector_from_entries(index, np.ones(len(index)), n, nse=len(index) + 2)
    data = jnp.full(x.nse, jnp.nan, values.dtype).at[: len(index)].set(values[index])
    return x.with_data(data)


# name -> (function of (A, B, x, z, semiring), A of the transposed shape B, x (n,), z (m,))
OPERATIONS = {
    "mxv": lambda A, B, x, z, s: jsp.mxv(A, x, s),
    "vxm": lambda A, B, x, z, s: jsp.vxm(z, A, s),
    "mxv sparse": lambda A, B, x, z, s: jsp.mxv(A, sparse(x, A.shape[1]), s),
    "vxm sparse": lambda A, B, x, z, s: jsp.vxm(sparse(z, A.shape[0]), A, s),
    "mxv masked": lambda A, B, x, z, s: jsp.mxv(A, x, s, mask=jnp.arange(A.shape[0]) != 0),
    "mxm": lambda A, B, x, z, s: jsp.mxm(A, B, s, nse=20),
    "mxm masked": lambda A, B, x, z, s: jsp.mxm(
        A, B, s, nse=20, mask=jnp.eye(A.shape[0], dtype=bool)
    ),
    "transpose": lambda A, B, x, z, s: A.T.todense() * jnp.outer(x, z),
    "convert": lambda A, B, x, z, s: A.asformat("csc").asformat("coo").todense() * jnp.outer(z, x),
    "ewise_add": lambda A, B, x, z, s: jsp.ewise_add(A, B.T, s.add),
    "ewise_union": lambda A, B, x, z, s: jsp.ewise_union(A, B.T, s.mul, x[0], z[0]),
    "ewise_mult": lambda A, B, x, z, s: jsp.ewise_mult(A, B.T, s.mul),
    "apply": lambda A, B, x, z, s: jsp.apply(A, jnp.tanh),
    "select": lambda A, B, x, z, s: jsp.select(A, jsp.operators.tril),
    "reduce": lambda A, B, x, z, s: jsp.reduce(A, s.add),
    "reduce rows": lambda A, B, x, z, s: jsp.reduce(A, s.add, axis=1),
    "extract": lambda A, B, x, z, s: jsp.extract(A, jnp.arange(2), jnp.arange(2)),
    "assign": lambda A, B, x, z, s: jsp.assign(A, x[0] * z[0], 0),
    "assign accum": lambda A, B, x, z, s: jsp.assign(A, B.T, accum=s.add),
    "kron": lambda A, B, x, z, s: jsp.kron(A, B, s.mul),
}
OPERATIONS = {
    k: f
    for k, f in OPERATIONS.items()
    if k.split()[0] in ("transpose", "convert") or (hasattr(jsp, k.split()[0]))
}
ONCE_MORE = [k for k in OPERATIONS if k in ("mxv sparse", "mxm", "ewise_add", "reduce rows")]
WITHOUT_SEMIRING = ("transpose", "convert", "apply", "select", "extract")


def cases():
    """(format, semiring, operation, problem)."""
    if THOROUGH:
        yield from itertools.product(sorted(FORMATS), SEMIRINGS, OPERATIONS, PROBLEMS)
        return
    for name, semiring in itertools.product(
        sorted(FORMATS), ("plus_times", "min_plus", "log_plus", "user_hypot")
    ):
        yield name, semiring, "mxv", "rectangular"
    yield from (("csr", "plus_times", operation, "rectangular") for operation in OPERATIONS)
    yield from (("csr", "max_times", operation, "rectangular") for operation in ONCE_MORE)
    yield from (("csr", semiring, "mxv", "square") for semiring in CORE)


def order_of(name, operation, problem):
    """2 where the derivative of the derivative is code of its own."""
    return 2 if THOROUGH or (name, operation, problem) == ("csr", "mxv", "rectangular") else 1


def skipped(name, semiring, operation):
    """Why a case does not exist, or None."""
    if operation in WITHOUT_SEMIRING and semiring != "plus_times":
        return f"{operation} has no semiring"
    if operation.startswith("reduce") and not has_identity(SEMIRINGS[semiring]):
        return "an empty reduction has no value"
    return None


CASES = [c for c in dict.fromkeys(cases()) if skipped(*c[:3]) is None]


@pytest.mark.parametrize("name,semiring,operation,problem", CASES)
def test_both_modes_twice(name, semiring, operation, problem):
    run, s = OPERATIONS[operation], SEMIRINGS[semiring]
    rng = np.random.default_rng(0)
    with jax.enable_x64():
        dense = np.array(PROBLEMS[problem])
        m, n = dense.shape
        other = np.where(rng.random((n, m)) < 0.6, rng.uniform(0.5, 3, (n, m)), 0)
        A, B = padded(dense, name), padded(other, name)
        for M in (A, B):
            stored_slots_of[id(M)] = stored_slots(M)
        x, z = jnp.asarray(rng.uniform(0.5, 2, n)), jnp.asarray(rng.uniform(0.5, 2, m))

        @jax.jit
        def loss(a, b, x, z):
            y = run(with_values(A, a), with_values(B, b), x, z, s)
            return jnp.sum(jnp.sin(numbers(y)))

        a, b = (M.data[stored_slots_of[id(M)]] for M in (A, B))
        order = order_of(name, operation, problem)
        check_grads(loss, (a, b, x, z), order=order, eps=1e-5)


TIED = [s for s in SEMIRINGS if SEMIRINGS[s].add.selective]
TIED = TIED if THOROUGH else ["min_plus", "max_times", "any_times"]


@pytest.mark.parametrize("semiring", TIED)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_at_ties_the_smallest_index_wins(name, semiring):
    """Every product is equal: all of the derivative goes to the first entry of a row."""
    s = SEMIRINGS[semiring]
    stored = np.array(PROBLEMS["square"]) != 0
    A = jsp.from_dense(np.where(stored, 1.0, 0).astype(np.float32), format=name)
    x = jnp.full(4, 2.0)

    def total(data, x):
        return jsp.mxv(A.with_data(data), x, s).sum()

    by_data, by_x = jax.grad(total, (0, 1))(A.data, x)
    slope_a, slope_x = jax.grad(lambda a, x: s.mul(a, x), (0, 1))(1.0, 2.0)
    row, col = (np.asarray(i) for i in A.rowcol())
    first = stored.argmax(1)
    chosen = np.append(first, -1)[row]  # no entry of padding
    np.testing.assert_allclose(by_data, np.where(col == chosen, slope_a, 0))
    np.testing.assert_allclose(by_x, slope_x * np.bincount(first, minlength=4))
    if name != "csr" and not THOROUGH:
        return
    C = jsp.mxm(A, jsp.from_dense(np.where(stored.T, 2.0, 0).astype(np.float32)), s)
    places = int(C.count)
    product = jax.grad(
        lambda data: numbers(
            jsp.mxm(
                A.with_data(data),
                jsp.from_dense(np.where(stored.T, 2.0, 0).astype(np.float32)),
                s,
                nse=places,
            )
        ).sum()
    )(A.data)
    want = np.zeros((4, 4))
    for i, j in itertools.product(range(4), range(4)):
        shared = stored[i] & stored[j]
        if shared.any():
            want[i, shared.argmax()] += slope_a
    np.testing.assert_allclose(product, want[row, col])


@pytest.mark.parametrize("semiring", ["min_plus", "max_times"])
def test_at_ties_of_unsorted_entries_the_smallest_index_wins(semiring):
    s = SEMIRINGS[semiring]
    row, col = jnp.array([1, 0, 0, 1, 0]), jnp.array([2, 2, 0, 1, 1])
    A = jsp.COO(jnp.ones(5), row, col, jnp.asarray(False), (2, 3), False, True)
    for product in (lambda A, x: jsp.mxv(A, x, s), lambda A, x: jsp.vxm(x, A.T, s)):
        by_data = jax.grad(lambda d: product(A.with_data(d), jnp.full(3, 2.0)).sum())(A.data)
        slope = jax.grad(s.mul)(1.0, 2.0)
        np.testing.assert_allclose(by_data, jnp.where(jnp.array([0, 0, 1, 1, 0]) > 0, slope, 0))


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_integers_and_booleans_have_float0(name):
    A = jsp.from_dense(np.array([[0, 2], [3, 0]]), format=name)
    slope = jax.grad(lambda A: (jsp.mxv(A, jnp.ones(2))).sum(), allow_int=True)(A)
    assert {leaf.dtype for leaf in jax.tree.leaves(slope)} == {jax.dtypes.float0}
    x = jnp.ones(2)
    moving = jax.grad(lambda x: jsp.mxv(A, x).sum())(x)
    np.testing.assert_allclose(moving, [3, 2])
    _, pull = jax.vjp(lambda A: jsp.mxv(A.astype(bool), x > 0, jsp.semirings.or_and), A)
    (none,) = pull(np.zeros(2, jax.dtypes.float0))
    assert all(leaf.dtype == jax.dtypes.float0 for leaf in jax.tree.leaves(none))


def test_positional_products_have_no_slope():
    A = jsp.from_dense(np.array(PROBLEMS["square"], np.float32))

    def total(data):
        return jsp.mxv(A.with_data(data), jnp.ones(4), jsp.semirings.any_secondi).sum() * 1.0

    assert (jax.grad(total)(A.data) == 0).all()


@pytest.mark.parametrize(
    "semiring",
    [
        "plus_times",
        "min_plus",
        *(
            pytest.param(s, marks=pytest.mark.slow)
            for s in ("times_plus", "log_plus", "user_hypot")
        ),
    ],
)
def test_a_product_of_which_most_entries_meet_nothing(semiring):
    """Few products, and the first of them behind more entries than there are products."""
    A = jsp.from_dense(np.arange(1, 21, dtype=np.float32)[None])
    B = jsp.from_edges([19, 19], [0, 2], [2.0, 3.0], shape=(20, 3))
    s = SEMIRINGS[semiring]
    slope = jax.grad(lambda data: jsp.mxm(A.with_data(data), B, s).data.sum())(A.data)
    want = jax.grad(lambda a: jnp.sum(s.mul(a, B.data)))(20.0)
    np.testing.assert_allclose(slope, [0] * 19 + [want])


@pytest.mark.parametrize("semiring", ["plus_times", "min_plus", "any_times", "log_plus"])
def test_a_matrix_without_slots_has_an_empty_slope(semiring):
    A = jsp.from_edges([], [], np.zeros(0, np.float32), shape=(3, 3))

    def total(data, x):
        return numbers(jsp.mxv(A.with_data(data), x, SEMIRINGS[semiring])).sum()

    by_data, by_x = jax.grad(total, (0, 1))(A.data, jnp.ones(3))
    assert by_data.shape == (0,) and not by_x.any()


PADDED = jsp.from_edges([0, 0, 2], [1, 2, 0], [0.5, 0.25, 0.2], shape=(3, 3), nse=6)
_singular = lambda a, b, w: jnp.log1p(-a * w) * b  # noqa: E731 - at a = w = 1
BY_PARAMETER = {
    "apply on a mesh": lambda w: jsp.reduce(jsp.apply(_sharded(), lambda a: _singular(a, 1, w))),
    "apply": lambda w: jsp.apply(PADDED, lambda a: _singular(a, 1, w)).sum(),
    "apply right": lambda w: jsp.apply(PADDED, lambda a, b: _singular(a, 1, b), right=w).sum(),
    "ewise": lambda w: jsp.ewise_add(PADDED, PADDED, lambda a, _: _singular(a, 1, w)).sum(),
    "mxv": lambda w: jsp.mxv(PADDED, jnp.ones(3), jsp.semiring(jnp.add, _of(w))).sum(),
    "mxm": lambda w: jsp.mxm(
        PADDED, jsp.from_edges([0, 1, 2], [0, 1, 2], nse=5), jsp.semiring(jnp.add, _of(w))
    ).sum(),
    "attention": lambda w: jsp.learning.attention(
        PADDED,
        jnp.zeros((3, 1)),
        jnp.zeros((3, 1)),
        jnp.zeros((3, 1)),
        score=lambda q, k, e: q[0] + k[0] + _singular(e, 1, w),
        edges=PADDED.data,
        return_logs=True,
    )[1][0],
}  # fmt: skip


@functools.cache
def _sharded():
    edges, mesh = ([0, 0, 2], [1, 2, 0], PADDED.data[:3]), jax.make_mesh((1,), ("d",))
    return jsp.sharding.shard_edges(*edges, mesh=mesh, n=3, nse=6)


def _of(w):
    return lambda a, b: _singular(a, b, w)


@pytest.mark.parametrize("call", BY_PARAMETER)
def test_padding_has_no_derivative_by_what_a_function_captures(call):
    """The function has none at 1, which is no entry."""
    a = PADDED.data[:3]
    want = jnp.sum(-a / (1 - a))
    if call == "attention":  # the first row alone: the logarithm of a sum
        want = jnp.sum(-a[:2]) / jnp.sum(1 - a[:2])
    for grad in (jax.grad(BY_PARAMETER[call]), jax.jit(jax.grad(BY_PARAMETER[call]))):
        np.testing.assert_allclose(grad(1.0), want, rtol=1e-5)


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "ell", "sell"])
@pytest.mark.parametrize("axis", [0, 1])
def test_padding_has_no_derivative_at_its_row_and_column(axis, format):
    """`a w / (n - i)`, infinite at the extent, which is the row and the column of padding."""
    D = np.array([[0, 1, 2], [3, 0, 0], [0, 4, 0]])
    place = np.nonzero(D)
    A = jsp.from_dense(D.astype(np.float32), nse=9).asformat(format)
    op = jsp.IndexUnaryOp(lambda a, i, j, w: a * w / (3 - (i, j)[axis]))

    def total(data, w):
        return jsp.apply(A.with_data(data), op, thunk=w).sum()

    by_data, by_w = jax.grad(total, (0, 1))(A.data, 2.0)
    each = 1 / (3 - place[axis])
    np.testing.assert_allclose(by_w, np.sum(D[place] * each), rtol=1e-6)
    np.testing.assert_allclose(A.with_data(by_data).todense()[place], 2 * each, rtol=1e-6)
