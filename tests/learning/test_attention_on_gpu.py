"""Attention as a GPU runs it: interpreted and lowered, the scores of users traced into kernels."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from learning_cases import made, normal, operands, padded, pattern

import jaxspv as jsp
from jaxspv._core.compat import KERNELS_FROM, jax_version
from jaxspv.learning import attention_gpu as gpu
from jaxspv.learning.attention import Dot, _attended, _pulled, _traced
from jaxspv.ops.products.sddmm.api import bare
from pallas_kernels.products.attention.job import Schedule
from tests.kernels.test_lowering import lower

ROW, COL = pattern(seed=1)
M, N = 37, 29


@pytest.fixture
def on_gpu(monkeypatch):
    """The kernels, interpreted, as a GPU would take them."""
    for name in ("csr_attention", "csr_attention_vjp"):
        schedule = Schedule(threads=64, interpret=True)
        kernel = functools.partial(getattr(gpu, name), schedule=schedule)
        monkeypatch.setattr(gpu, name, kernel)


@pytest.mark.parametrize("own", [None, (), (2,)], ids=str)
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
def test_what_a_gpu_runs_is_the_same(own, dtype, on_gpu):
    """The kernels interpreted, called as they are on a GPU, beside the forms in chunks."""
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), 3)
    Q, K, V = (x.astype(dtype) for x in (Q, K, V))
    bias = None if own is None else padded(normal(9, ROW.size, *own, dtype=dtype), A)
    given = bare(A), ((), Q, K, (bias, None)), V
    score = Dot(0.4)
    assert gpu.not_here(*given, score=score) is None
    rough = {"rtol": 2e-2, "atol": 2e-2} if dtype == jnp.bfloat16 else {"rtol": 1e-4, "atol": 1e-5}

    def close(found, wanted):
        for got, want in zip(found, wanted, strict=True):
            got, want = (np.asarray(v, np.float32) for v in (got, want))
            np.testing.assert_allclose(got, want, **rough)

    result = _attended("cpu", *given, score=score)
    close(gpu._rows(*given, score=score), result)
    moving = (True, True) if own is None else (True, False, True)
    how = {"score": score, "live": (moving, True)}
    given = *given, result, (normal(7, M, 2, 3), normal(8, M, 2))
    close(gpu._pulled(*given, **how), _pulled("cpu", *given, **how))


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernels need a newer JAX")
def test_a_gpu_takes_the_kernel():
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), 3)
    for bias in (None, jnp.zeros(A.nse), jnp.zeros((A.nse, 2))):
        text = lower(lambda Q, bias=bias: jsp.learning.attention(A, Q, K, V, bias), Q)
        assert text.count("custom_call @mosaic_gpu") == 1
        gradients = jax.grad(lambda *p: jnp.sum(jsp.learning.attention(A, *p)), argnums=(0, 1, 2))
        text = lower(lambda Q, gradients=gradients: gradients(Q, K, V), Q)
        assert text.count("custom_call @mosaic_gpu") == 2
    batched = lower(jax.vmap(lambda Q: jsp.learning.attention(A, Q, K, V)), jnp.stack([Q, Q]))
    assert batched.count("custom_call @mosaic_gpu") == 1
    assert "attention: pallas/rows on NVIDIA GPUs" in str(
        jsp.explain(jsp.learning.attention, A, Q, K, V)
    )


def same_as_in_chunks(fn, Q, K, V, edges, bias, scale=0.7):
    """The kernels and the chunks of a CPU give the same, and the same cotangents of everything."""
    A, heads = made(ROW, COL, (M, N)), V.shape[1:-1]
    score, captured = _traced(fn, Q, K, edges, heads, scale)
    given = bare(A), (captured, Q, K, (bias, edges)), V
    assert gpu.not_here(*given, score=score) is None
    result = _attended("cpu", *given, score=score)
    for got, want in zip(gpu._rows(*given, score=score), result, strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    moving = (True,) * (len(captured) + 2 + (bias is not None) + (edges is not None))
    how = {"score": score, "live": (moving, True)}
    given = *given, result, (normal(7, M, *heads, 3), normal(8, M, *heads))
    found, wanted = gpu._pulled(*given, **how), _pulled("cpu", *given, **how)
    for got, want in zip(found, wanted, strict=True):
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=2e-5)


@pytest.mark.parametrize("with_edges", [False, True])
@pytest.mark.parametrize("heads", [(), (2,)], ids=str)
def test_a_gpu_takes_scores_of_one_number_a_head(with_edges, heads, on_gpu):
    """GATv1: the score and its derivatives are traced into the kernels."""
    A = made(ROW, COL, (M, N))
    Q, K, V = normal(0, M, *heads), normal(1, N, *heads), normal(2, N, *heads, 3)
    edges = normal(3, A.nse, *heads).at[ROW.size :].set(np.nan) if with_edges else None

    def fn(q, k, e=0.0):
        return jax.nn.leaky_relu(q + k + e, 0.2)

    same_as_in_chunks(fn, Q, K, V, edges, padded(normal(4, ROW.size), A))


def leaky(a, b, q, k):
    return jnp.sum(a * jax.nn.leaky_relu(q + k, 0.2), axis=-1)


def additive(a, b, q, k, e):
    return jnp.einsum("...d,...d->...", a * 0.5, jnp.tanh(q + k * e)) + b


def cosine(a, b, q, k, e):
    sizes = jnp.sum(q * q, -1) * jnp.sum(k * k, -1)
    return b * jax.nn.silu(jnp.sum(q * a * k, -1) * jax.lax.rsqrt(sizes)) - e


def inside(a, b, q, k):
    one = a.reshape(-1, a.shape[-1])[0]  # of all heads
    return jax.jit(lambda x: jnp.sum(jax.nn.elu(x * b[..., None]) * one, -1))(q + k)


@pytest.mark.parametrize("d", [1, 4, 5])
@pytest.mark.parametrize("heads", [(), (3, 2)], ids=str)
@pytest.mark.parametrize("fn", [leaky, additive, cosine, inside])
def test_a_gpu_takes_scores_that_add_over_features(fn, heads, d, on_gpu):
    """GATv2 and its kin: rows of features at both ends, sums over them, weights captured."""
    A = made(ROW, COL, (M, N))
    Q, K, V = normal(0, M, *heads, d), normal(1, N, *heads, d), normal(2, N, *heads, 3)
    a, b = normal(5, *heads, d), normal(6, *heads)
    edges, score = None, functools.partial(fn, a, b)
    if fn in (additive, cosine):
        wide = (d,) if fn is additive else ()
        edges = normal(3, A.nse, *heads, *wide).at[ROW.size :].set(np.nan)
    same_as_in_chunks(score, Q, K, V, edges, None)


@pytest.mark.skipif(jax_version() < KERNELS_FROM, reason="its kernels need a newer JAX")
def test_a_gpu_takes_the_kernel_for_gat_v2():
    A, (Q, K, V), a = made(ROW, COL, (M, N)), operands((2,), 6), normal(5, 2, 6)

    def f(a, Q, K, V):
        return jsp.learning.attention(A, Q, K, V, score=functools.partial(leaky, a, None))

    assert lower(f, a, Q, K, V).count("custom_call @mosaic_gpu") == 1
    gradients = jax.grad(lambda *p: jnp.sum(f(*p)), argnums=(0, 1, 2, 3))
    assert lower(gradients, a, Q, K, V).count("custom_call @mosaic_gpu") == 2
    score = functools.partial(leaky, a, None)
    said = str(jsp.explain(jsp.learning.attention, A, Q, K, V, score=score))
    assert "attention: pallas/rows on NVIDIA GPUs" in said
    said = str(
        jsp.explain(jsp.learning.attention, A, Q, K, V, score=lambda q, k: jnp.sum(q[::-1] * k, -1))
    )
    assert "the `score`: kernels have no `rev`" in said


def test_scores_that_kernels_refuse(on_gpu):
    A, a = made(ROW, COL, (M, N)), normal(5, 2)
    Q, K, V = normal(0, M, 2), normal(1, N, 2), normal(2, N, 2, 3)
    for fn, said in (
        (lambda q, k: jnp.sin(q + a * k), "kernels have no `sin`"),
        (lambda q, k: jnp.cumsum(q) + k, "kernels have no `cumsum`"),
        (lambda q, k: q + k[::-1], "kernels have no `rev`"),
        (lambda q, k: q + jnp.sum(k), "`reduce_sum` adds more than features"),
    ):
        score, captured = _traced(fn, Q, K, None, (2,), 1.0)
        given = bare(A), (captured, Q, K, (None, None)), V
        assert said in gpu.not_here(*given, score=score)


@pytest.mark.gpu
@pytest.mark.parametrize("dtype", [np.float32, jnp.bfloat16])
@pytest.mark.parametrize("kind", ["dot", "bias", "gat", "leaky", "additive"])
def test_native_kernels_are_the_xla_form(kind, dtype):
    A = jsp.generators.rmat(jax.random.key(0), 12)
    n = A.shape[0]
    Q, K, V = (normal(k, n, 8, 16, dtype=dtype) for k in range(3))
    more = {}
    if kind == "bias":
        more["bias"] = normal(3, A.nse, 8)
    if kind == "gat":
        Q, K = (x[..., 0].astype(np.float32) for x in (Q, K))
        more["score"] = lambda q, k: jax.nn.leaky_relu(q + k, 0.2)
    if kind in ("leaky", "additive"):
        Q, K = (x.astype(np.float32) for x in (Q, K))
        more["edges"] = normal(3, A.nse, 8, 16)
    a, b = normal(4, 8, 16), normal(5, 8)

    def run(backend):
        def f(a, Q, K, V):
            if kind == "leaky":
                more["score"] = lambda q, k, e: leaky(a, b, q + e, k)
            if kind == "additive":
                more["score"] = functools.partial(additive, a, b)
            y = jsp.learning.attention(A, Q, K, V, backend=backend, **more).astype(np.float32)
            return jnp.sum(jnp.sin(y)), y

        return jax.jit(jax.value_and_grad(f, argnums=(0, 1, 2, 3), has_aux=True))(a, Q, K, V)

    rough = 3e-2 if dtype == jnp.bfloat16 else 1e-3
    for got, want in zip(jax.tree.leaves(run("pallas")), jax.tree.leaves(run("xla")), strict=True):
        got, want = (np.asarray(v, np.float32) for v in (got, want))
        np.testing.assert_allclose(got, want, rtol=rough, atol=rough * np.abs(want).max())
