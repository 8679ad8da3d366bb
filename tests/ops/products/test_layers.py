"""The order of layers (custom_jvp, custom_vmap, choice, kernel), proved on `mxv`."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads

import jaxspv as jsp
from jaxspv._core import forms
from jaxspv._core.operation import Operation
from jaxspv.formats import FORMATS

DENSE = np.array([[0.0, 2.0, 0.0, -1.5], [0.0, 0.0, 0.0, 0.0], [3.0, 0.5, 0.0, 4.0]], np.float32)


def matrix(name):
    """3-by-4, an empty row, capacity above the entries, NaN in the padding."""
    A = jsp.from_dense(DENSE, format=name)
    coo = A.asformat("coo")
    pad = ((0, 3),)
    padded = dataclasses.replace(
        coo,
        data=jnp.pad(coo.data, pad, constant_values=jnp.nan),
        row=jnp.pad(coo.row, pad, constant_values=3),
        col=jnp.pad(coo.col, pad, constant_values=4),
    )
    return padded.asformat(name)


def loss(A, semiring):
    def f(data, x):
        y = jsp.mxv(A.with_data(data), x, semiring)
        return jnp.sum(jnp.where(jnp.isfinite(y), y, 0) ** 2)

    return f


X = jnp.asarray([1.0, -2.0, 0.25, 3.0])
SMOOTH = (jsp.semirings.plus_times, jsp.semirings.log_plus)
SEMIRINGS = (*SMOOTH, jsp.semirings.min_plus, jsp.semirings.max_times)


@pytest.mark.parametrize("semiring", SEMIRINGS, ids=repr)
@pytest.mark.parametrize("name", sorted(FORMATS))
def test_gradients_in_both_modes_and_twice(name, semiring):
    A = matrix(name)
    with jax.enable_x64():
        A = A.astype(jnp.float64)
        data = jnp.where(jnp.isnan(A.data), 7.0, A.data)  # finite differences need numbers
        f = jax.jit(loss(A, semiring))
        check_grads(f, (data, X.astype(jnp.float64)), order=2, eps=1e-5)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_padding_never_reaches_a_gradient(name):
    A = matrix(name)
    for semiring in SEMIRINGS:
        d_data, d_x = jax.grad(loss(A, semiring), (0, 1))(A.data, X)
        valid = A.rowcol()[0] < 3
        assert np.isfinite(d_x).all()
        assert np.isfinite(d_data[valid]).all()
        assert (d_data[~valid] == 0).all()


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_hessian_of_a_square(name):
    A = matrix(name)
    hessian = jax.hessian(loss(A, jsp.semirings.plus_times), 1)(A.data, X)
    np.testing.assert_allclose(hessian, 2 * DENSE.T @ DENSE, rtol=1e-5)


@pytest.mark.parametrize("name", sorted(FORMATS))
def test_vmap_of_values_and_gradients(name):
    A, f = matrix(name), None
    f = loss(A, jsp.semirings.plus_times)
    xs = jnp.stack([X, 2 * X, -X])
    one_by_one = jnp.stack([f(A.data, x) for x in xs])
    np.testing.assert_allclose(jax.vmap(f, (None, 0))(A.data, xs), one_by_one, rtol=1e-5)
    gradients = jnp.stack([jax.grad(f, 1)(A.data, x) for x in xs])
    np.testing.assert_allclose(
        jax.vmap(jax.grad(f, 1), (None, 0))(A.data, xs), gradients, rtol=1e-5
    )
    through = jax.grad(lambda xs: jax.vmap(f, (None, 0))(A.data, xs).sum())(xs)
    np.testing.assert_allclose(through, gradients, rtol=1e-5)


def test_vmap_over_values_and_nested_vmap_under_jit():
    A = matrix("csr")
    datas = jnp.stack([A.data, 3 * A.data])
    xs = jnp.stack([X, 2 * X, -X])
    f = jax.jit(jax.vmap(jax.vmap(lambda d, x: A.with_data(d) @ x, (None, 0)), (0, None)))
    want = np.stack([np.asarray(xs) @ DENSE.T, 3 * np.asarray(xs) @ DENSE.T])
    np.testing.assert_allclose(f(datas, xs), want, rtol=1e-5)


def test_jvp_is_linear_and_agrees_with_vjp():
    A = matrix("csc")
    f = loss(A, jsp.semirings.min_plus)
    _, forward = jax.jvp(lambda x: f(A.data, x), (X,), (jnp.ones(4),))
    np.testing.assert_allclose(forward, jax.grad(f, 1)(A.data, X).sum(), rtol=1e-5)


def test_ties_go_to_the_smallest_index():
    A = jsp.from_dense([[1.0, 1.0, 1.0]])
    slope = jax.grad(lambda x: jsp.mxv(A, x, jsp.semirings.min_plus)[0])(jnp.zeros(3))
    assert slope.tolist() == [1.0, 0.0, 0.0]


def test_a_product_with_zeros_has_its_exact_gradient():
    times = jsp.semiring(jsp.monoids.times, jsp.operators.second)
    A = jsp.from_dense([[1.0, 1.0, 1.0]])

    def slope(x):
        return jax.grad(lambda x: jsp.mxv(A, x, times)[0])(jnp.asarray(x)).tolist()

    assert slope([2.0, 3.0, 4.0]) == [12.0, 8.0, 6.0]
    assert slope([0.0, 3.0, 4.0]) == [12.0, 0.0, 0.0]
    assert slope([0.0, 0.0, 4.0]) == [0.0, 0.0, 0.0]


def test_user_semiring_with_a_parameter_is_differentiable_in_it():
    soft = jsp.semiring(
        jsp.monoids.plus, jsp.BinaryOp(lambda a, x, t: jnp.tanh(t * a * x), "tanh", (1.0,))
    )
    A = jsp.from_dense(DENSE)

    def f(t):
        mul = dataclasses.replace(soft.mul, params=(t,))
        return jsp.mxv(A, X, dataclasses.replace(soft, mul=mul)).sum()

    with jax.enable_x64():
        check_grads(jax.jit(f), (0.3,), order=2, eps=1e-4, atol=1e-2, rtol=1e-2)


def test_sparse_gradient_has_the_pattern_and_none_elsewhere():
    A = jsp.from_dense(DENSE)
    dA = jsp.grad(lambda A: (A @ X).sum())(A)
    assert isinstance(dA, jsp.CSR) and dA.indices is None and dA.indptr is None
    np.testing.assert_allclose(dA.data, np.asarray(X)[np.nonzero(DENSE)[1]])
    assert "CSR" in repr(dA)


def test_gradient_of_spmspv_lives_on_the_pattern():
    A = jsp.from_dense(DENSE, format="csc")
    x = jsp.vector_from_entries([1, 3], [2.0, 5.0], 4, nse=3)

    def f(data, values):
        y = jsp.mxv(A.with_data(data), x.with_data(values))
        return jnp.sum(y.data**2)

    def dense(D, values):
        return jnp.sum((D[:, jnp.array([1, 3])] @ values) ** 2)

    d_data, d_values = jax.grad(f, (0, 1))(A.data, x.data)
    want_D, want_values = jax.grad(dense, (0, 1))(jnp.asarray(DENSE), jnp.array([2.0, 5.0]))
    row, col = A.rowcol()
    np.testing.assert_allclose(d_data, want_D[row, col], rtol=1e-5)
    np.testing.assert_allclose(d_values[:2], want_values, rtol=1e-5)
    assert d_values[2] == 0


def test_plan_names_refusals_and_bad_choices():
    A = jsp.from_dense(DENSE)
    with pytest.raises(ValueError, match="`backend` must be one of"):
        jsp.mxv(A, X, backend="tpu")
    with pytest.raises(NotImplementedError, match="backend='pallas' was asked for"):
        jsp.mxv(A.asformat("coo"), X, backend="pallas")


@pytest.fixture
def kernels_run(monkeypatch):
    """Forms for GPUs are chosen with every release of JAX."""
    monkeypatch.setattr(forms, "kernels_refused", lambda: None)


def test_two_backends_in_one_program_choose_by_platform(kernels_run):
    op = Operation("probe")
    op.register("fast", backend="pallas")(lambda x: x + 100)
    op.register("slow")(lambda x: x + 1)
    assert int(op(jnp.int32(1))) == 2  # CPU
    lowered = jax.jit(lambda x: op(x)).trace(jnp.int32(1)).lower(lowering_platforms=("cuda",))
    assert "100" in lowered.as_text()
    plan = jsp.explain(lambda: op(jnp.int32(1)))
    assert [impl.backend for impl in plan.chosen] == ["pallas", "xla"]
    assert "pallas/fast on NVIDIA GPUs, xla/slow elsewhere" in str(plan)


def test_pallas_alone_raises_on_cpu_lowers_for_cuda_and_refuses_vmap(kernels_run):
    op = Operation("probe")
    op.register("fast", backend="pallas")(lambda x: x + 100)
    with pytest.raises(NotImplementedError, match="runs on NVIDIA GPUs only"):
        op(jnp.int32(1))
    lowered = jax.jit(lambda x: op(x)).trace(jnp.int32(1)).lower(lowering_platforms=("cuda",))
    assert "100" in lowered.as_text()
    with pytest.raises(NotImplementedError, match="cannot be batched"):
        jax.jit(jax.vmap(lambda x: op(x))).trace(jnp.arange(3)).lower(lowering_platforms=("cuda",))


def test_a_kernel_without_a_batch_rule_refuses_under_vmap(kernels_run):
    op = Operation("probe")
    op.register("fast", backend="pallas")(lambda x: x + 100)
    op.register("batched", backend="pallas", batched="vmap")(lambda x: x + 200)
    op.register("slow")(lambda x: x + 1)
    xs = jnp.arange(3)
    text = jax.jit(jax.vmap(op)).trace(xs).lower(lowering_platforms=("cuda",)).as_text()
    assert "200" in text and "100" not in text
    plan = jsp.explain(jax.vmap(op), xs)
    assert plan.on("cuda").name == "batched" and "cannot be batched by vmap" in str(plan)
    assert jax.vmap(op)(xs).tolist() == [1, 2, 3]


def test_a_switch_under_vmap_stays_a_switch():
    A = jsp.from_dense(np.tile(DENSE, (400, 2)), format="csc")
    xs = [jsp.vector_from_entries([i], [1.0], 8) for i in (1, 3)]
    batch = jax.tree.map(lambda *leaves: jnp.stack(leaves), *xs)
    mapped = jax.vmap(lambda x: jsp.mxv(A, x, method="sort"))
    assert "stablehlo.case" in jax.jit(mapped).lower(batch).as_text()
    got = mapped(batch)
    for k, x in enumerate(xs):
        want = jsp.mxv(A, x).todense()
        one = jax.tree.map(lambda leaf, k=k: leaf[k], got)
        np.testing.assert_allclose(one.todense(), want)


def test_an_eager_gradient_is_a_few_programs_and_none_at_the_second_call():
    A = jsp.from_dense(DENSE + 1)
    compiled = []

    def listen(event, duration, **_):
        if event == "/jax/core/compile/backend_compile_duration":
            compiled.append(duration)

    def slope():
        # A function of its own each time: what is shared is the operation's, not this one's.
        return jax.grad(lambda d, x: jsp.mxv(A.with_data(d), x)[0], (0, 1))(A.data, X)

    jax.monitoring.register_event_duration_secs_listener(listen)
    try:
        first, programs = slope(), len(compiled)
        again = slope()
    finally:
        jax.monitoring.unregister_event_duration_listener(listen)
    assert programs <= 12  # 35 when every primitive of a tangent is one
    assert len(compiled) == programs
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], DENSE[0] + 1)
