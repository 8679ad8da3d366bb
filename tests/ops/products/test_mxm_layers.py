"""`mxm` under grad, jvp, vmap and jit, and the write rule C<M, replace> = C accum A B."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv.formats import COO

FIRST = np.array([[0, 2, 0, -1.5], [0, 0, 0, 0], [3, 0.5, 0, 4]], np.float32)
SECOND = np.array([[1, 0, -2], [0, 3, 1], [5, 0, 0], [0.25, 0, 2]], np.float32)
TIMES = jsp.semiring(jsp.monoids.times, jsp.operators.plus)
USER = jsp.semiring(
    jsp.monoid(lambda x, y: x + y + x * y, 0, name="user"),
    jsp.BinaryOp(lambda a, x: jnp.sin(a) * x, "wave"),
)
SEMIRINGS = (
    jsp.semirings.plus_times,
    jsp.semirings.log_plus,
    jsp.semirings.min_plus,
    jsp.semirings.max_times,
    jsp.semirings.any_first,
    TIMES,
    USER,
)


def padded(dense, name="csr"):
    """The matrix with NaN in three slots of padding."""
    coo = jsp.from_dense(dense, format="coo")
    pad = ((0, 3),)
    return COO(
        jnp.pad(coo.data, pad, constant_values=jnp.nan),
        jnp.pad(coo.row, pad, constant_values=dense.shape[0]),
        jnp.pad(coo.col, pad, constant_values=dense.shape[1]),
        coo.overflow,
        coo.shape,
    ).asformat(name)


A, B = padded(FIRST), padded(SECOND, "csc")


def loss(semiring, A=A, B=B, **kwargs):
    def f(a, b):
        C = jsp.mxm(A.with_data(a), B.with_data(b), semiring, nse=9, **kwargs)
        weights = jnp.arange(1, 10) * (jnp.arange(9) < C.count)
        return jnp.sum(weights * jnp.where(weights > 0, C.data, 0) ** 2)

    return f


def known(data):
    return jnp.where(jnp.isnan(data), 7.0, data)  # finite differences need numbers


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=repr)
def test_gradients_in_both_modes_and_twice(semiring):
    with jax.enable_x64():
        a, b = known(A.data).astype(jnp.float64), known(B.data).astype(jnp.float64)
        order = 2 if semiring is SEMIRINGS[0] else 1
        f = jax.jit(loss(semiring, A.astype(jnp.float64), B.astype(jnp.float64)))
        check_grads(f, (a, b), order=order, eps=1e-5)


def test_padding_never_reaches_a_gradient():
    for semiring in SEMIRINGS:
        gradients = jax.grad(loss(semiring), (0, 1))(A.data, B.data)
        for M, slope in zip((A, B), gradients, strict=True):
            valid = M.rowcol()[0] < M.shape[0]
            assert np.isfinite(slope[valid]).all() and (slope[~valid] == 0).all()
            assert slope[valid].any() or (semiring.mul.name == "first" and M is B)


def test_gradients_in_steps_are_those_at_once():
    """Patterns known and traced, a scan and a scan of scans, a mask, dot products."""
    f = loss(jsp.semirings.plus_times)
    want = jax.grad(f, (0, 1))(A.data, B.data)
    for kwargs in ({"chunk": 4, "method": "sort"},):
        got = jax.grad(loss(jsp.semirings.plus_times, **kwargs), (0, 1))(A.data, B.data)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)

    def traced(A, B, chunk):
        return jax.grad(loss(jsp.semirings.plus_times, A, B, chunk=chunk), (0, 1))(A.data, B.data)

    for chunk in (1, None):
        got = jax.jit(traced, static_argnums=2)(A, B, chunk)
        for x, y in zip(got, want, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-5)


def test_masked_gradients_are_dense_ones_on_the_pattern():
    allowed = np.array([[1, 0, 1], [1, 1, 1], [0, 1, 0]], bool)
    mask = jsp.structure(jsp.from_dense(allowed.astype(np.float32)))

    def dense(X, Y):
        return jnp.sum(jnp.where(allowed, X @ Y, 0) ** 2)

    want = jax.grad(dense, (0, 1))(jnp.asarray(FIRST), jnp.asarray(SECOND))
    for method in ("auto", "dot"):

        def f(a, b, method=method):
            C = jsp.mxm(A.with_data(a), B.with_data(b), mask=mask, method=method)
            return jnp.sum(C.data**2)

        got = jax.grad(f, (0, 1))(A.data, B.data)
        for M, slope, full in zip((A, B), got, want, strict=True):
            row, col = M.rowcol()
            is_valid = row < M.shape[0]
            np.testing.assert_allclose(
                slope[is_valid], full[row[is_valid], col[is_valid]], rtol=1e-4
            )


def test_ties_go_to_the_smallest_inner_index():
    X, Y = jsp.from_dense([[1.0, 1.0, 1.0]]), jsp.from_dense([[2.0], [2.0], [2.0]])

    def f(x, y):
        return jsp.mxm(X.with_data(x), Y.with_data(y), jsp.semirings.min_plus).data.sum()

    gradients = jax.grad(f, (0, 1))(X.data, Y.data)
    assert [s.tolist() for s in gradients] == [[1, 0, 0], [1, 0, 0]]


def test_a_sparse_gradient_and_a_parameter():
    dA = jsp.grad(lambda A: jsp.mxm(A, B).data.sum())(A)
    assert isinstance(dA, jsp.CSR) and dA.indices is None
    soft = jsp.semiring(
        jsp.monoids.plus, jsp.BinaryOp(lambda a, x, t: jnp.tanh(t * a * x), "tanh", (1.0,))
    )

    def f(t):
        mul = dataclasses.replace(soft.mul, params=(t,))
        return jsp.mxm(A, B, dataclasses.replace(soft, mul=mul)).data.sum()

    with jax.enable_x64():
        check_grads(jax.jit(f), (0.3,), order=1, eps=1e-4, atol=1e-2, rtol=1e-2)


@pytest.mark.parametrize("method", ["auto", "sort", "dot"])
def test_vmap_over_values_and_over_everything(method):
    mask = jsp.structure(jsp.from_dense(np.ones((3, 3), np.float32)))
    kwargs = {"nse": 9, "method": method, "mask": mask if method == "dot" else None}
    datas = jnp.stack([A.data, 2 * A.data])
    C = jax.jit(jax.vmap(lambda d: jsp.mxm(A.with_data(d), B, **kwargs)))(datas)
    for k, factor in enumerate((1, 2)):
        one = jax.tree.map(lambda leaf, k=k: leaf[k], C)
        np.testing.assert_allclose(one.todense(), factor * (FIRST @ SECOND), rtol=1e-5)
    # Different patterns too.
    other = padded(FIRST[::-1] * 3)
    both = jax.tree.map(lambda *leaves: jnp.stack(leaves), A, other)
    C = jax.jit(jax.vmap(lambda M: jsp.mxm(M, B, chunk=4, **kwargs)))(both)
    for k, M in enumerate((A, other)):
        one = jax.tree.map(lambda leaf, k=k: leaf[k], C)
        np.testing.assert_allclose(one.todense(), M.todense() @ SECOND, rtol=1e-5)


def test_grad_of_vmap_and_vmap_of_grad():
    f = loss(jsp.semirings.plus_times)
    datas = jnp.stack([A.data, 2 * A.data])
    gradients = jnp.stack([jax.grad(f)(d, B.data) for d in datas])
    batched = jax.jit(jax.vmap(jax.grad(f), (0, None)))
    np.testing.assert_allclose(batched(datas, B.data), gradients, rtol=1e-5)
    total = jax.jit(jax.grad(lambda ds: jax.vmap(f, (0, None))(ds, B.data).sum()))(datas)
    np.testing.assert_allclose(total, gradients, rtol=1e-5)


def test_the_write_rule():
    C0 = jsp.from_dense([[10.0, 0, 0], [0, 20, 0], [0, 0, 30.0]])
    T = FIRST @ SECOND
    stored = (FIRST != 0).astype(int) @ (SECOND != 0) > 0
    old = np.asarray(C0.todense())
    allowed = np.array([[1, 0, 1], [1, 0, 1], [0, 1, 0]], bool)
    mask = jsp.structure(jsp.from_dense(allowed.astype(np.float32)))
    joined = np.where(stored & (old != 0), old + T, np.where(stored, T, old))
    cases = [
        ({"out": C0}, T),
        ({"out": C0, "accum": jsp.operators.plus}, joined),
        ({"out": C0, "mask": mask}, np.where(allowed, T, old)),
        ({"out": C0, "mask": mask, "replace": True}, np.where(allowed, T, 0)),
        ({"out": C0, "mask": ~mask, "accum": jsp.monoids.plus}, np.where(allowed, old, joined)),
    ]
    for kwargs, want in cases:
        got = jsp.mxm(A, B, **kwargs)
        np.testing.assert_allclose(got.todense(), want, rtol=1e-5)
        assert got.dtype == C0.dtype and isinstance(got, jsp.CSR)
    with pytest.raises(ValueError, match="`nse` must be at least"):
        jsp.mxm(A, B, out=C0, accum=jsp.operators.plus, nse=int((T != 0).sum()))
    with pytest.raises(TypeError, match="must be a BinaryOp or a function"):
        jsp.mxm(A, B, out=C0, accum=3)
