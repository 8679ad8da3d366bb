"""The 25 pains of people who compute on sparse matrices and graphs in JAX and beside it.

Collected from the issue trackers of other libraries; `docs/pains.md` has where, and our answer.
"""

import math
import pathlib
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.eager import kept
from jaxspv.algorithms.common import weights

D = np.array([[0, 2, 0, 0], [3, 0, 1, 0], [0, 0, 4, 5], [0, 0, 0, 6]], np.float32)
A = jsp.from_dense(D)
X = np.arange(8, dtype=np.float32).reshape(4, 2) - 3
N = 50_000  # its square is past 2^31
KERNELS = tuple(int(k) for k in jax.__version__.split(".")[:3]) >= (0, 11, 1)


def equations(jaxpr):
    """All equations of a program, those of its branches, loops and calls too."""
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in jax.extend.core.jaxprs_in_params(eqn.params):
            yield from equations(inner)


def traced(f, *args):
    return list(equations(jax.make_jaxpr(f)(*args).jaxpr))


def largest(f, *args):
    """Elements of the largest array that a program makes on any platform."""
    return max(math.prod(v.aval.shape) for eqn in traced(f, *args) for v in eqn.outvars)


@pytest.fixture(scope="module")
def large():
    """A permutation of N rows: N entries, as many in every product of it."""
    order = np.random.default_rng(0).permutation(N)
    return order, jsp.from_edges(np.arange(N), order, shape=(N, N))


@pytest.mark.long
def test_pain_01_a_product_takes_memory_of_its_result(large):
    _, P = large
    assert (P @ P).nse < 2 * N  # where a bound by nse(A) nse(B) would be 2.5e9


@pytest.mark.long
def test_pain_02_sizes_past_32_bits_do_not_wrap(large):
    order, P = large
    C = (P @ P).trim()
    np.testing.assert_array_equal(C.indices, order[order])
    with pytest.raises(ValueError, match="`nse` must be given.*2500000000"):
        jax.eval_shape(lambda P: P @ P, P)


def test_pain_03_a_matrix_is_an_argument_and_no_constant():
    traces = []

    @jax.jit
    def product(A, x):
        traces.append(1)
        return A @ x

    shapes = [product.eval_shape(B, jnp.ones(4)).shape for B in (A, A.with_data(-A.data))]
    assert jax.make_jaxpr(product)(A, jnp.ones(4)).consts == []
    assert shapes == [(4,), (4,)] and len(traces) == 1  # for all matrices of one shape


@pytest.mark.long
def test_pain_04_solvers_of_jax_take_the_product():
    S = (D + D.T + 20 * np.eye(4)).astype(np.float32)
    B, b = jsp.from_dense(S), jnp.arange(4.0)
    x, _ = jax.scipy.sparse.linalg.cg(lambda x: B @ x, b)
    np.testing.assert_allclose(x, np.linalg.solve(S, b), rtol=1e-4, atol=1e-6)


@pytest.mark.long
def test_pain_05_vmap_of_products_with_matrices():
    Xs = jnp.stack([X, 2 * X, X - 1])
    np.testing.assert_allclose(jax.vmap(lambda X: A @ X)(Xs), D @ np.asarray(Xs))


@pytest.mark.long
def test_pain_06_gradients_of_batched_products_have_the_shape_of_the_values():
    def total(data):
        return jax.vmap(lambda x: A.with_data(data) @ x)(jnp.asarray(X.T)).sum()

    slope = jax.jit(jax.grad(total))(A.data)
    np.testing.assert_allclose(slope, X.sum(1)[A.indices])  # (nse,)


@pytest.mark.long
def test_pain_07_gradients_where_the_matrix_comes_of_a_product():
    def total(data):
        B = A.with_data(data)
        return ((B @ A) @ jnp.arange(4.0)).sum()

    slope = jax.grad(total)(A.data)
    row, _ = np.nonzero(D)
    want = (D @ np.arange(4))[A.indices] * np.ones(len(row))
    np.testing.assert_allclose(slope, want, rtol=1e-6)


@pytest.mark.long
def test_pain_08_gradients_by_values_never_make_a_dense_matrix():
    n = 3000
    B = jsp.from_edges(np.arange(n), np.arange(n)[::-1], shape=(n, n))
    slope = jax.grad(lambda data, x: jnp.sum((B.with_data(data) @ x) ** 2), (0, 1))
    assert largest(slope, B.data, jnp.ones(n)) < 10 * n < n * n


@pytest.mark.long
def test_pain_09_products_with_dense_matrices_do_not_copy_a_row_an_entry():
    n, k, per_row = 256, 64, 32
    rng = np.random.default_rng(0)
    row, col = np.repeat(np.arange(n), per_row), rng.integers(0, n, n * per_row)
    B = jsp.from_edges(row, col, shape=(n, n))
    compiled = jax.jit(lambda B, X: B @ X).lower(B, jnp.ones((n, k))).compile()
    assert compiled.memory_analysis().temp_size_in_bytes < 4 * B.nse * k / 4


def test_pain_10_capacity_is_named_where_shapes_must_be_static():
    fits = jax.eval_shape(lambda D: jsp.from_dense(D, nse=7), D)
    assert fits.shape == (4, 4) and fits.data.shape == (7,)
    with pytest.raises(ValueError, match="`nse` must be given under jit"):
        jax.eval_shape(jsp.from_dense, D)
    with pytest.raises(ValueError, match="`nonzero` needs concrete values"):
        jax.eval_shape(lambda A: A.nonzero(), A)


def test_pain_11_a_shape_is_a_pair_of_integers():
    for wrong in (jnp.array([2, 2]), (2.0, 2), [2, 2], (jnp.int32(2), 2), 2):
        with pytest.raises(TypeError, match="`shape` must be a pair of Python integers"):
            jsp.from_edges([0], [1], shape=wrong)
    with pytest.raises(TypeError, match="`shape`"):
        jax.jit(lambda n: jsp.from_edges(np.array([0]), np.array([1]), shape=(n, n)))(2)


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_pain_12_one_value_is_found_by_bisection(large, format):
    B = large[1] if format == "csr" else large[1].T
    assert largest(lambda B, i, j: B[i, j], B, 3, 4) == 1


@pytest.mark.long
def test_pain_13_blocks_are_a_public_format():
    T = jsp.Tiled.from_coo(A.to_coo(), nt=16)
    assert T.nt == 16 and T.shape == (4, 4)
    np.testing.assert_allclose(T @ jnp.ones(4), D.sum(1))


@pytest.mark.long
def test_pain_14_sums_on_a_gpu_are_not_scattered_one_by_one():
    plan = jsp.explain("mxv", A, jnp.ones(4))
    if KERNELS:
        assert plan.on("cuda").backend == "pallas"
    else:
        assert "its kernels need JAX 0.11.1 or newer" in str(plan)  # and scatters are slow there


@pytest.mark.long
def test_pain_15_sums_of_groups_have_a_kernel_of_their_own():
    plan = jsp.explain("mxm", A, jnp.asarray(X))
    assert "segment" not in str(plan)
    assert plan.on("cuda").backend == ("pallas" if KERNELS else "xla")


@pytest.mark.long
def test_pain_16_sorted_indices_are_never_claimed_to_be_so():
    """On a GPU the claim makes a scatter slower: https://github.com/jax-ml/jax/issues/26227."""
    for f, *args in (
        (lambda A, x: A @ x, A, jnp.ones(4)),
        (lambda A, X: A @ X, A, jnp.asarray(X)),
        (lambda A: jsp.reduce(A, jsp.monoids.plus, axis=1), A),
    ):
        scatters = [eqn for eqn in traced(f, *args) if eqn.primitive.name == "scatter-add"]
        floats = [eqn for eqn in scatters if eqn.outvars[0].aval.dtype == np.float32]
        assert not any(eqn.params["indices_are_sorted"] for eqn in floats)


@pytest.mark.long
def test_pain_17_one_long_row_is_cut_into_pieces():
    n = 2000
    row = np.r_[np.zeros(n, int), np.arange(1, n)]
    col = np.r_[np.arange(n), np.zeros(n - 1, int)]
    B = jsp.from_edges(row, col, shape=(n, n))
    assert (B @ jnp.ones(n)).tolist() == [n] + [1] * (n - 1)
    name = jsp.explain("mxv", B, jnp.ones(n)).on("cuda").name
    assert name == ("merge_path" if KERNELS else "pieces")


@pytest.mark.long
def test_pain_18_reverse_mode_through_loops_of_any_length():
    ring = jsp.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [1.0, 2.0, 3.0, 9.0], shape=(4, 4))
    slope = jax.grad(lambda d: jsp.sssp(ring.with_data(d), 0).distances[3])(ring.data)
    assert slope[:4].tolist() == [1.0, 0.0, 1.0, 1.0]


@pytest.mark.long
@pytest.mark.parametrize("name", ["max_times", "min_plus"])
def test_pain_19_least_and_greatest_of_neighbours_and_their_gradients(name):
    def dense(B, X):
        terms = B[:, :, None] * X if name == "max_times" else B[:, :, None] + X
        missing = -jnp.inf if name == "max_times" else jnp.inf
        terms = jnp.where((D != 0)[:, :, None], terms, missing)
        return terms.max(1) if name == "max_times" else terms.min(1)

    def ours(data, X):
        return jsp.mxm(A.with_data(data), X, name)

    loss = lambda f: jax.jit(jax.value_and_grad(lambda *a: jnp.sin(f(*a)).sum(), (0, 1)))  # noqa: E731
    got, gradients = loss(ours)(A.data, jnp.asarray(X))
    want, others = loss(dense)(jnp.asarray(D), jnp.asarray(X))
    np.testing.assert_allclose(got, want, rtol=1e-5)
    np.testing.assert_allclose(gradients[0], others[0][np.nonzero(D)], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(gradients[1], others[1], rtol=1e-5, atol=1e-6)


@pytest.mark.long
def test_pain_20_greatest_of_rows_masked_softmax_and_masked_products():
    np.testing.assert_array_equal(jsp.reduce(A, jsp.monoids.max_, axis=1).todense(), D.max(1))
    share = np.where(D != 0, np.exp(D), 0)
    share /= share.sum(1, keepdims=True)
    np.testing.assert_allclose(jsp.learning.softmax(A, axis=1).todense(), share, rtol=1e-5)
    product = jsp.mxm(A, A, mask=jsp.structure(A))
    np.testing.assert_allclose(product.todense(), np.where(D != 0, D @ D, 0))


@pytest.mark.long
def test_pain_21_messages_along_edges_in_the_order_of_the_edges():
    senders, receivers = np.array([2, 0, 1, 0]), np.array([1, 2, 2, 1])
    values = np.array([1.0, 2, 3, 4], np.float32)
    B, slots = jsp.learning.from_edge_index(
        np.stack([senders, receivers]), values, num_nodes=4, return_slots=True
    )
    want = np.zeros((4, 2), np.float32)
    np.add.at(want, receivers, values[:, None] * X[senders])
    np.testing.assert_allclose(B.T @ X, want)
    scores = jsp.sddmm(B, X, X).data[slots]  # of each edge, its two ends
    np.testing.assert_allclose(scores, (X[senders] * X[receivers]).sum(1))


@pytest.mark.long
def test_pain_22_padding_and_batches_inside_of_jit():
    padded = jax.jit(lambda A: jsp.pad(A, n=6, nse=9).out)(A)
    np.testing.assert_array_equal(padded.todense()[:4, :4], D)
    both = jax.jit(lambda A: jsp.learning.block_diag([A, A]))(A)
    np.testing.assert_array_equal(both.todense(), np.kron(np.eye(2), D))


@pytest.mark.long
@pytest.mark.parametrize("weight", [0.0, 1e-12])
def test_pain_23_what_is_stored_is_an_edge_by_every_method(weight):
    B = jsp.from_edges([0, 1, 0], [1, 2, 2], [weight, 1.0, 5.0], shape=(3, 3))
    assert jsp.from_scipy(sp.csr_array(B.to_scipy())).nse == 3
    assert jsp.bfs(B, 0).levels.tolist() == [0, 1, 1]
    for method in (None, "bellman_ford"):
        found = jsp.sssp(B, 0, method=method)
        np.testing.assert_allclose(found.distances, [0, weight, 1], rtol=1e-6)


def test_pain_24_64_bit_indices_are_asked_for_and_never_cut():
    if jax.config.jax_enable_x64:
        assert jsp.from_edges([0], [2**31], shape=(1, 2**31 + 1), format="coo").col[0] == 2**31
        return
    for wide in ({"shape": (1, 2**31 + 1)}, {"shape": (1, 2), "index_dtype": "int64"}):
        with pytest.raises(ValueError, match="int64 indices need jax_enable_x64"):
            jsp.from_edges([0], [0], **wide)


@pytest.mark.long
def test_pain_25_what_a_graph_needs_is_made_once(monkeypatch):
    found, count = weights._found, []
    monkeypatch.setattr(weights, "_found", lambda graph: (count.append(1), found(graph))[1])
    kept.KEPT.entries.clear()
    B = A.with_data(A.data + 1)
    first, again = jsp.sssp(B, 0), jsp.sssp(B, 1)
    assert len(count) == 1 and first.distances[0] == again.distances[1] == 0


def test_the_page_lists_every_pain_with_its_test():
    page = (pathlib.Path(__file__).parents[2] / "docs/pains.md").read_text()
    rows = re.findall(r"^\| (\d+) \|.*`(test_pain_\d+_\w+)` \|$", page, re.MULTILINE)
    names = [name for name in globals() if name.startswith("test_pain_")]
    assert [name for _, name in rows] == sorted(names) and len(names) == 25
    assert [int(k) for k, _ in rows] == list(range(1, 26))
