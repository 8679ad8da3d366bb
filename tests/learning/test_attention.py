"""Attention over entries: against the definition and the unfused composition, in both modes."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.test_util import check_grads
from learning_cases import attended, made, normal, operands, padded, pattern, ulps

import jaxspv as jsp
from jaxspv._core.eager import programs
from jaxspv.ops.products.sddmm import by_entry

ROW, COL = pattern(seed=1)
M, N = 37, 29


@pytest.fixture(params=["whole", "chunks"])
def pieces(request, monkeypatch):
    """All entries at once, or 64 at a time; the width tells their compiled programs apart."""
    if request.param == "chunks":
        monkeypatch.setattr(by_entry, "ELEMENTS", {"cpu": 1, "xla": 1})
    return 6 if request.param == "chunks" else 4


@pytest.mark.parametrize("heads", [(), (2,), (2, 3)], ids=str)
def test_is_the_definition(heads, pieces):
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands(heads, pieces)
    bias = normal(9, ROW.size, *heads)
    y, logs = jsp.learning.attention(A, Q, K, V, padded(bias, A), return_logs=True)
    dots = np.sum(np.asarray(Q)[ROW] * np.asarray(K)[COL], axis=-1)
    want = attended(ROW, COL, M, dots / np.sqrt(pieces) + bias, V)
    np.testing.assert_allclose(y, want[0], rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(logs, want[1], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(
        jsp.learning.attention(A, Q, K, V, scale=2.0),
        attended(ROW, COL, M, 2 * dots, V)[0],
        rtol=1e-4,
        atol=1e-5,
    )


def unfused(A, Q, K, V, bias):
    S = jsp.sddmm(A, Q, K)
    P = jsp.learning.softmax(S.with_data(S.data / np.sqrt(Q.shape[-1]) + bias))
    terms = P.with_data(P.data[..., None] * V.at[P.rowcol()[1]].get(mode="fill", fill_value=0))
    return jsp.learning.aggregate(terms)


@pytest.mark.parametrize("format", ["coo", "csc"])
def test_equals_the_composition_and_so_do_gradients(format, pieces):
    A, (Q, K, V) = made(ROW, COL, (M, N), format=format), operands((2,), pieces)
    bias = padded(normal(9, ROW.size, 2), A)
    weights = normal(8, M, 2, 3)

    def loss(f):
        return jax.value_and_grad(lambda *p: jnp.sum(weights * f(A, *p)), argnums=(0, 1, 2, 3))

    fused, composed = (jax.jit(loss(f))(Q, K, V, bias) for f in (jsp.learning.attention, unfused))
    for got, want in zip(jax.tree.leaves(fused), jax.tree.leaves(composed), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-5)
    assert (fused[1][3][ROW.size :] == 0).all()


def test_gradients_in_both_modes(pieces):
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), pieces)
    bias = normal(9, ROW.size)

    def f(Q, K, V, bias):
        y, logs = jsp.learning.attention(
            A, Q, K, V, padded(bias[:, None] + jnp.zeros(2), A), return_logs=True
        )
        return y, jnp.where(logs > -jnp.inf, logs, 0)

    check_grads(f, (Q, K, V, bias), order=1, atol=2e-2, rtol=2e-2)
    check_grads(lambda V: f(Q, K, V, bias), (V,), order=1, atol=2e-2, rtol=2e-2)


def test_second_order():
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((), 3)
    f = lambda Q, K, V: jsp.learning.attention(A, Q, K, V)[4:8]  # noqa: E731
    check_grads(f, (Q, K, V), order=2, atol=3e-2, rtol=3e-2)


def gat_v1(_, q, k, e):
    return jax.nn.leaky_relu(q + k, 0.2) + 0 * e


def gat_v2(a, q, k, e):
    return jnp.sum(a * jax.nn.leaky_relu(q + k, 0.2), axis=-1) + e


@pytest.mark.parametrize("score", [gat_v1, gat_v2])
def test_scores_of_users(score, pieces):
    A = made(ROW, COL, (M, N))
    wide = (2,) if score is gat_v1 else (2, pieces)
    Q, K, V, a = normal(0, M, *wide), normal(1, N, *wide), normal(2, N, 2, 3), normal(3, *wide)
    edges = normal(4, ROW.size, 2)

    def f(a, Q, K, V, edges):
        own = padded(edges, A, 0)
        return jsp.learning.attention(
            A, Q, K, V, score=lambda q, k, e: score(a, q, k, e), edges=own
        )

    each = jax.vmap(lambda i, j, e: score(a, Q[i], K[j], e))(ROW, COL, edges)
    want = attended(ROW, COL, M, each, V)[0]
    np.testing.assert_allclose(f(a, Q, K, V, edges), want, rtol=1e-4, atol=1e-5)
    check_grads(jax.jit(f), (a, Q, K, V, edges), order=1, atol=2e-2, rtol=2e-2)
    two = jsp.learning.attention(A, Q, K, V, score=lambda q, k: score(a, q, k, 0.0))
    assert two.shape == (M, 2, 3)


def test_a_score_written_anew_is_compiled_once():
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((), 3)
    sizes = []
    for _ in range(3):
        jsp.learning.attention(A, Q, K, V, score=lambda q, k: jnp.sum(q * k) * jnp.float32(2))
        sizes.append(programs.PROGRAMS.traces.total())
    assert sizes[0] == sizes[1] == sizes[2]


@pytest.mark.parametrize("dtype", [jnp.bfloat16, np.float16])
def test_narrow_floats_are_added_in_wider_ones(dtype):
    A = made(ROW, COL, (M, N))
    Q, K, V = (x.astype(dtype) for x in operands((2,), 64))
    V = jnp.abs(V)  # no cancellation: a unit in the last place of the sum is one of the result
    y, logs = jsp.learning.attention(A, Q, K, V, return_logs=True)
    dots = np.sum(np.asarray(Q, np.float64)[ROW] * np.asarray(K, np.float64)[COL], axis=-1)
    want, wanted_logs = attended(ROW, COL, M, dots / 8, np.asarray(V, np.float64))
    assert y.dtype == dtype and logs.dtype == np.float32
    assert ulps(y, want, dtype) <= 2
    np.testing.assert_allclose(logs, wanted_logs, rtol=1e-5, atol=1e-5)
    gradients = jax.grad(lambda Q: jnp.sum(jsp.learning.attention(A, Q, K, V).astype(np.float32)))(
        Q
    )
    assert gradients.dtype == dtype and np.isfinite(np.asarray(gradients, np.float32)).all()


def test_extremes():
    """Large scores do not overflow, hidden entries have no weight, hidden rows give 0."""
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((), 3)
    big = jsp.learning.attention(A, 1e6 * Q, K, V)
    assert np.isfinite(big).all()
    far, keys = jsp.from_edges([0, 0], [0, 1], shape=(1, 2)), jnp.array([[1e5], [-1e5]])
    y = jsp.learning.attention(far, jnp.full((1, 1), 1e10), keys, jnp.array([[1.0], [2.0]]))
    assert y.tolist() == [[1]]  # rounding scores of 1e15 leaves millions
    hidden = np.where(ROW == 5, -np.inf, np.where(COL == 3, -np.inf, 0)).astype(np.float32)

    def f(Q, K, V):
        return jsp.learning.attention(A, Q, K, V, padded(jnp.asarray(hidden), A))

    y = f(Q, K, V)
    assert (y[5] == 0).all() and (y[2] == 0).all() and np.isfinite(y).all()
    np.testing.assert_array_equal(y, f(Q, K, V.at[3].set(1e9)))
    for slope in jax.grad(lambda *p: jnp.sum(f(*p) ** 2), argnums=(0, 1, 2))(Q, K, V):
        assert np.isfinite(slope).all()


def test_vmap_and_jit():
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), 3)
    Qs = jnp.stack([Q, 2 * Q])
    got = jax.jit(jax.vmap(lambda Q: jsp.learning.attention(A, Q, K, V)))(Qs)
    for k in range(2):
        np.testing.assert_allclose(
            got[k], jsp.learning.attention(A, Qs[k], K, V), rtol=1e-4, atol=1e-5
        )
    gradients = jax.vmap(jax.grad(lambda Q: jnp.sum(jsp.learning.attention(A, Q, K, V) ** 2)))(Qs)
    one = jax.grad(lambda Q: jnp.sum(jsp.learning.attention(A, Q, K, V) ** 2))(Qs[1])
    np.testing.assert_allclose(gradients[1], one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_nothing_of_entries_times_heads_is_stored(mode):
    n, nse, heads, d = 64, 1 << 16, 8, 16
    rng = np.random.default_rng(0)
    A = jsp.COO(
        jnp.zeros(nse),
        jnp.asarray(np.sort(rng.integers(0, n, nse)).astype(np.int32)),
        jnp.asarray(rng.integers(0, n, nse).astype(np.int32)),
        jnp.asarray(False),
        (n, n),
    )
    f = lambda Q: jnp.sum(jsp.learning.attention(A, Q, Q, Q) ** 2)  # noqa: E731
    f = jax.grad(f) if mode == "reverse" else f
    memory = jax.jit(f).lower(normal(0, n, heads, d)).compile().memory_analysis()
    assert memory.temp_size_in_bytes < 4 * nse * heads  # of which (entries, heads, d) is 16 times


def test_bad_arguments():
    A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), 3)
    with pytest.raises(ValueError, match=r"`K` must have shape \(29, 2, 3\)"):
        jsp.learning.attention(A, Q, Q, V)
    with pytest.raises(ValueError, match="must have the heads of `V`"):
        jsp.learning.attention(A, Q, K, V[:, 0])
    with pytest.raises(ValueError, match=r"`bias` must have shape \("):
        jsp.learning.attention(A, Q, K, V, jnp.zeros((A.nse, 3)))
    with pytest.raises(ValueError, match=r"`score` must give floats of the heads of `V`, \(2,\)"):
        jsp.learning.attention(A, Q, K, V, score=lambda q, k: jnp.sum(q * k))
    with pytest.raises(ValueError, match="`edges` are for `score`"):
        jsp.learning.attention(A, Q, K, V, edges=jnp.zeros(A.nse))
    with pytest.raises(TypeError, match="`Q` must be of floats; got int32"):
        jsp.learning.attention(A, Q.astype(np.int32), K, V)


def test_float64_is_computed_in_float64():
    with jax.enable_x64():
        A, (Q, K, V) = made(ROW, COL, (M, N)), operands((2,), 3)
        Q, K, V = (x.astype(np.float64) for x in (Q, K, V))
        y, logs = jsp.learning.attention(A, Q, K, V, return_logs=True)
        dots = np.sum(np.asarray(Q)[ROW] * np.asarray(K)[COL], axis=-1) / np.sqrt(3)
        want = attended(ROW, COL, M, dots, V)
        assert y.dtype == logs.dtype == np.float64
        np.testing.assert_allclose(y, want[0], rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(logs, want[1], rtol=1e-12)
        S = jsp.learning.softmax(jsp.sddmm(A, Q, K))
        assert S.dtype == np.float64
        check_grads(
            lambda *p: jsp.learning.attention(A, *p), (Q, K, V), order=1, atol=1e-6, rtol=1e-6
        )
        check_grads(
            lambda *p: jsp.learning.softmax(jsp.sddmm(A, *p)).data, (Q, K), order=1, rtol=1e-6
        )
