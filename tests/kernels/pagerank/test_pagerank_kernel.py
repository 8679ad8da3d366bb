"""The PageRank kernel, interpreted, against dense power iteration in float64."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from pallas_kernels.layouts import sliced_rows
from pallas_kernels.layouts.sliced_rows import prepare_pagerank
from pallas_kernels.pagerank.one_gpu import Limits, pagerank
from pallas_kernels.simt.device import Grid
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import lower, ring
from tests.kernels.warps_apart import gridded

pagerank = gridded(pagerank)

ORDERS = ("degree", "breadth_first")


def matrix(graph, weighted, seed=0):
    """A as a SciPy CSR with weights of one magnitude, some of them 0."""
    indptr, indices = map(np.asarray, graph)
    rng = np.random.default_rng(seed)
    data = rng.integers(0, 8, len(indices)) / 4 if weighted else np.ones(len(indices))
    return sp.csr_array((data.astype(np.float32), indices, indptr), shape=2 * (len(indptr) - 1,))


def operands(A, order="degree", weighted=False, thread_row=4, segment=None):
    """(strength, prepared) of A."""
    T = sp.csr_array(A.T.tocsr())
    with pytest.MonkeyPatch.context() as patch:
        if segment:
            patch.setattr(sliced_rows, "SEGMENTS", (segment, segment))
        prepared = prepare_pagerank(
            T.indptr,
            T.indices,
            T.data if weighted else None,
            out_degree=np.diff(A.indptr),
            order=order,
            thread_row=thread_row,
        )
    strength = jnp.asarray(A.sum(1), jnp.float32)
    return strength, jax.tree.map(jnp.asarray, prepared)


def oracle(A, p, damping, tol, most, least):
    """(scores, iterations, change) by the formula, in float64."""
    A, p = A.astype(np.float64), p.astype(np.float64)
    strength = A.sum(1)
    with np.errstate(divide="ignore"):
        inverse = np.where(strength > 0, 1 / strength, 0)
    x, i, change = p, 0, np.inf
    while (change > tol or i < least) and i < most:
        new = damping * (A.T @ (x * inverse) + x[strength == 0].sum() * p) + (1 - damping) * p
        change, x, i = np.abs(new - x).sum(), new, i + 1
    return x, i, change


@functools.cache
def _jitted(**form):
    return jax.jit(functools.partial(pagerank, **form))


def check(A, strength, prepared, p, knobs, form=None, slack=1):
    """form: launch options; iterations may differ by one where rounding decides."""
    f = _jitted(**(form or {}))
    p = np.asarray(p / p.sum(), np.float32)
    scores, steps, change, status = f(strength, jnp.asarray(p), Limits(*knobs), prepared=prepared)
    want, want_steps, want_change = oracle(A, p, *knobs)
    assert status == 0
    assert abs(int(steps) - want_steps) <= slack
    np.testing.assert_allclose(scores, want, atol=2e-6, rtol=2e-5)
    if np.isfinite(want_change) and steps == want_steps:
        np.testing.assert_allclose(change, want_change, atol=2e-6, rtol=1e-3)
    return np.asarray(scores), int(steps)


INTERPRETED = {"grid": Grid(ctas=2, threads=64, interpret=True)}


@pytest.mark.parametrize("name", GRAPHS)
def test_interpreted(name):
    for order, weighted, segment in (("degree", False, None), ("breadth_first", True, 8)):
        A = matrix(GRAPHS[name], weighted)
        prepared = operands(A, order, weighted, segment=segment)
        p = np.random.default_rng(1).random(A.shape[0]) + 0.1
        check(A, *prepared, p, (0.85, 1e-5, 12, 0), INTERPRETED)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_directed_with_dangling_vertices(order, weighted):
    A = matrix(random_graph(150, 400, 3, symmetric=False), weighted)
    assert (A.sum(1) == 0).any()
    p = np.random.default_rng(2).random(150) * (np.arange(150) % 3 == 0)
    prepared = operands(A, order, weighted)
    check(A, *prepared, p, (0.85, 1e-6, 100, 0), INTERPRETED)


def test_split_rows_and_several_ctas():
    """A hub of 400 in 50 segments: the same result, bit for bit, however it is spread."""
    i = np.arange(1, 401)
    star = sp.coo_array((np.ones(800), (np.r_[i, 0 * i], np.r_[0 * i, i])), shape=(401, 401))
    A = matrix((star.tocsr().indptr, star.tocsr().indices), False)
    prepared = operands(A, segment=8)
    assert prepared[1]["splits"].tolist() == [[0, 50]]
    found = [
        check(A, *prepared, np.ones(401), (0.85, 1e-6, 30, 0), {"grid": grid})[0]
        for grid in (Grid(3, 32, interpret=True), Grid(3, 96, interpret=True))
    ]
    np.testing.assert_allclose(*found, rtol=1e-6)


def test_iterations():
    A = matrix(GRAPHS["random"], False)
    prepared, p = operands(A), np.ones(A.shape[0])
    go = functools.partial(check, A, *prepared, p, form=INTERPRETED, slack=0)
    assert go((0.85, 1.0, 100, 7))[1] == 7  # the least number
    assert go((0.85, 0.0, 3, 0))[1] == 3  # the most
    assert go((0.85, 0.0, 0, 9))[1] == 0  # the most wins
    assert go((0.0, 1e-6, 9, 0))[1] == 1  # no damping: p is the fixpoint


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("weighted", [False, True])
def test_changes_in_16_bits(order, weighted):
    """What is rounded away comes back: the scores are as right as those of 32 bits."""
    form = INTERPRETED | {"increments": True}
    for graph in (random_graph(150, 400, 3, symmetric=False), GRAPHS["star with a tail"]):
        A = matrix(graph, weighted)
        n = A.shape[0]
        p = np.random.default_rng(2).random(n) * (np.arange(n) % 3 == 0)
        prepared = operands(A, order, weighted, segment=8)
        for knobs in ((0.85, 1e-6, 100, 0), (0.85, 1.0, 1, 1), (0.85, 1.0, 0, 9)):
            check(A, *prepared, p, knobs, form, slack=2)


def test_padding_is_never_gathered():
    A = matrix(GRAPHS["random"], True)
    strength, prepared = operands(A, weighted=True)
    padding = prepared["entries"] == A.shape[0]
    assert padding.any() and not prepared["values"][padding].any()
    real = np.sort(np.asarray(prepared["values"])[~np.asarray(padding)])
    np.testing.assert_array_equal(real, np.sort(A.data))


def test_wrong_order_is_refused():
    with pytest.raises(ValueError, match="order"):
        prepare_pagerank([0, 0], np.zeros(0, np.int32), order="random")


@pytest.mark.parametrize("weighted", [False, True])
def test_one_launch(weighted):
    A = matrix(ring(256), weighted)
    strength, prepared = operands(A, weighted=weighted)
    text = lower(
        lambda s, p, k: pagerank(s, s, Limits(0.85, 1e-6, 100, k), prepared=p),
        strength,
        prepared,
        jnp.int32(0),
    )
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("order", ORDERS)
def test_native(order, weighted):
    """Rows by thread and by warp, whole and in segments; twice the same, bit for bit."""
    for name in ("any degree", "no edges")[: 1 + (order == "degree")]:
        A = matrix(NATIVE[name], weighted)
        p = np.random.default_rng(1).random(A.shape[0]) + 0.1
        for split in ((), (2, 8)):
            prepared = operands(A, order, weighted, *split)
            knobs = (0.85, 1e-6, 100, 0)
            want, _ = check(A, *prepared, p, knobs)
            again, _ = check(A, *prepared, p, knobs)
            np.testing.assert_array_equal(want, again)
            check(A, *prepared, p, knobs, {"grid": Grid(7, 256)})
