"""The dense fixpoint kernel, interpreted, against NumPy loops and the XLA backend."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from examples import fixpoint as written
from jaxspv.algorithms.fixpoint import gpu, layout
from jaxspv.algorithms.fixpoint.api import _checked, _Loop
from pallas_kernels.fixpoint.pull import Steps, fixpoint_dense
from pallas_kernels.layouts import sliced_rows
from pallas_kernels.layouts.sliced_rows import prepare_pagerank, weights_of_vertices
from pallas_kernels.simt.device import Grid
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, evaluate, hoist, trace
from tests.kernels.bfs.test_bfs_kernel import GRAPHS
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import gridded

fixpoint_dense = gridded(fixpoint_dense)

F32, I32 = jnp.float32, jnp.int32


def weighted(name, seed=0):
    """(indptr, indices, values) of the in-edges of a graph of tests."""
    indptr, indices = GRAPHS[name]
    values = np.random.default_rng(seed).integers(1, 9, len(indices)).astype(np.float32)
    return indptr, indices, values


def arrays(graph, order="degree"):
    return jax.tree.map(jnp.asarray, prepare_pagerank(*graph, order=order))


def at_most(limit):
    def stop(i, reached, unchanged, change, scalars):
        return unchanged | (i >= limit), unchanged

    return stop


def shortest(graph, x0, ctas=2, stop=None, targets=None, **options):
    """x <- min(x, min_i x[i] + a)."""
    return fixpoint_dense(
        x0,
        (),
        (),
        Steps(
            ScalarSemiring.of(jnp.add, jnp.minimum, np.inf, F32),
            trace(lambda old, y, i: jnp.minimum(old, y), F32, F32, I32),
            stop or at_most(500),
            **options,
        ),
        prepared=arrays(graph),
        targets=targets,
        grid=Grid(ctas, 64, interpret=True),
    )


def bellman_ford(graph, x0, steps):
    indptr, indices, values = graph
    x = x0.copy()
    row = np.repeat(np.arange(len(x)), np.diff(indptr))
    for i in range(steps):
        y = np.full(len(x), np.inf, np.float32)
        np.minimum.at(y, row, x[indices] + values)
        new = np.minimum(x, y)
        if (new == x).all():
            return x, i + 1
        x = new
    return x, steps


@pytest.mark.parametrize("ctas", [1, 3])
@pytest.mark.parametrize("name", ["path", "grid", "star with a tail", "dense"])
def test_shortest_paths(name, ctas):
    graph = weighted(name)
    n = len(graph[0]) - 1
    x0 = np.where(np.arange(n) == n // 2, 0, np.inf).astype(np.float32)
    want, steps = bellman_ford(graph, x0, 500)
    x, iterations, flag, status = shortest(graph, jnp.asarray(x0), ctas)
    assert status == 0 and iterations == steps and flag == (steps < 500)
    np.testing.assert_array_equal(x, want)


def test_long_rows_in_segments(monkeypatch):
    monkeypatch.setattr(sliced_rows, "SEGMENTS", (8, 8))
    monkeypatch.setattr(sliced_rows, "THREAD_ROWS", (4, 4))
    graph = weighted("dense")
    x0 = np.where(np.arange(len(graph[0]) - 1) == 3, 0, np.inf).astype(np.float32)
    want, steps = bellman_ford(graph, x0, 500)
    x, iterations, _, status = shortest(graph, jnp.asarray(x0))
    assert status == 0 and iterations == steps
    np.testing.assert_array_equal(x, want)


def test_a_target_ends_the_loop():
    graph = weighted("path")
    n = len(graph[0]) - 1
    x0 = np.where(np.arange(n) == 0, 0, np.inf).astype(np.float32)
    vertices, target = np.asarray(arrays(graph)["vertices"]), 5
    pair = jnp.array([target, np.flatnonzero(vertices == target)[0]], jnp.int32)
    x, iterations, flag, _ = shortest(
        graph,
        jnp.asarray(x0),
        targets=pair,
        stop=lambda i, reached, unchanged, change, scalars: (reached[0] | unchanged, reached[0]),
    )
    want, _ = bellman_ford(graph, x0, int(iterations))
    assert flag == 1 and iterations == 5
    np.testing.assert_array_equal(x, want)


@pytest.mark.parametrize("name", ["grid", "random"])
def test_sums_operands_and_change(name):
    """PageRank with a dangling mass, and a count of large elements in int32."""
    indptr, indices, _ = GRAPHS[name][0], GRAPHS[name][1], None
    n = len(indptr) - 1
    degree = np.bincount(indices, minlength=n)
    degree[::7] = 0  # these pass nothing on
    values = np.where(degree[indices] > 0, 1 / np.maximum(degree[indices], 1), 0).astype(np.float32)
    p = np.random.default_rng(1).random(n).astype(np.float32)
    p /= p.sum()
    lost = (degree == 0).astype(np.float32)

    def update(old, y, i, p, lost, damping, mass, large):
        return damping * (y + mass * p) + (1 - damping) * p + 0 * large.astype(F32)

    kinds = (F32, F32, F32)
    x, iterations, flag, status = fixpoint_dense(
        jnp.asarray(p),
        (jnp.asarray(p), jnp.asarray(lost)),
        (jnp.float32(0.85),),
        Steps(
            ScalarSemiring.of(jnp.multiply, jnp.add, 0.0, F32),
            trace(update, F32, F32, I32, *kinds, F32, I32),
            lambda i, reached, unchanged, change, scalars: (
                (change <= 1e-6) & (i >= 3) | (i >= 60),
                change <= 1e-6,
            ),
            sums=(
                trace(lambda x, p, lost, d: x * lost, F32, *kinds),
                trace(lambda x, p, lost, d: (x > 0.01).astype(I32), F32, *kinds),
            ),
        ),
        prepared=arrays((indptr, indices, values)),
        grid=Grid(2, 64, interpret=True),
    )
    row = np.repeat(np.arange(n), np.diff(indptr))
    want, steps = p.astype(np.float64), 0
    while steps < 60:
        flow = np.bincount(row, values.astype(np.float64) * want[indices], n)
        new = 0.85 * (flow + (want * lost).sum() * p) + 0.15 * p
        steps, change, want = steps + 1, np.abs(new - want).sum(), new
        if change <= 1e-6 and steps >= 3:
            break
    assert status == 0 and flag == 1 and abs(int(iterations) - steps) <= 1
    np.testing.assert_allclose(x, want, rtol=2e-4)


def test_one_launch():
    graph = weighted("grid")
    x0 = jnp.zeros(len(graph[0]) - 1, jnp.float32)
    text = lower(
        lambda x0, prepared: fixpoint_dense(
            x0,
            (),
            (),
            Steps(
                ScalarSemiring.of(jnp.add, jnp.minimum, np.inf, F32),
                trace(lambda old, y, i: jnp.minimum(old, y / jnp.sqrt(old) ** 3), F32, F32, I32),
                at_most(9),
            ),
            prepared=prepared,
        ),
        x0,
        arrays(graph),
    )
    assert text.count("custom_call @mosaic_gpu") == 1


# ---- Through the algorithm: the same as on the XLA backend ----


@pytest.fixture
def interpreted(monkeypatch):
    """The kernel's layout on a CPU, and the kernel interpreted."""
    kernel = functools.partial(fixpoint_dense, grid=Grid(2, 64, interpret=True))
    monkeypatch.setattr(layout, "on_gpu", lambda arrays: True)
    monkeypatch.setattr(gpu, "fixpoint_dense", kernel)


def both(A, x0, semiring, **options):
    """(the kernel's, XLA's) fixpoint."""
    G = jsp.prepare(A, for_=("fixpoint",))
    call, static = _checked(G, x0, semiring, DEFAULTS._replace(**options))
    assert gpu.not_dense(*call, **static) is None
    want = jsp.fixpoint(G, x0, semiring, backend="xla", method="dense", **options)
    return gpu.dense(*call, **static), want


DEFAULTS = _Loop(None, (), None, None, monotone=False, closure=False)


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_bfs_by_the_user(interpreted, dtype):
    A = matrix("grid", np.ones, dtype)
    infinity = np.inf if dtype == np.float32 else np.iinfo(dtype).max
    x0 = jnp.full(A.shape[0], infinity, dtype).at[3].set(0)
    got, want = both(
        A,
        x0,
        jsp.semirings.min_second,
        monotone=True,
        update=lambda old, y, i, sums: jnp.minimum(
            old, jnp.where(y < infinity, i + 1, y).astype(dtype)
        ),
        until=jsp.until.reached(7) | jsp.until.max_iterations(9),
    )
    same(got, want)


def test_sssp_by_the_user(interpreted):
    A = matrix("random", lambda n: np.random.default_rng(2).integers(1, 9, n), np.float32)
    x0 = jnp.full(A.shape[0], jnp.inf).at[3].set(0)
    same(*both(A, x0, jsp.semirings.min_plus, monotone=True))


@pytest.mark.parametrize("scaled", [True, False])
def test_pagerank_by_the_user(interpreted, scaled):
    """With divisions; each vertex passes on one share, or its edges have weights of their own."""
    A = matrix("random", np.ones, np.float32)
    n, degree = A.shape[0], np.diff(np.asarray(A.indptr))
    data = np.repeat(1 / np.maximum(degree, 1), degree).astype(np.float32)
    if not scaled:
        data[::3] /= 2
    A = A.with_data(jnp.asarray(data))
    p, lost = jnp.full(n, 1 / n), jnp.asarray(degree == 0, jnp.float32)
    layout = jsp.prepare(A, for_="fixpoint").layouts["fixpoint"].kernel
    assert ("scales" in layout) == scaled == ("values" not in layout)
    got, want = both(
        A,
        p,
        jsp.semirings.plus_times,
        operands=(lost, jnp.float32(0.85)),
        update=lambda old, y, i, lost, d, sums: d * (y + sums["lost"] / n) + (1 - d) / n,
        sums={"lost": lambda x, lost, d: x * lost},
        until=jsp.until.residual(1e-6, 2),
    )
    assert got.iterations == want.iterations and bool(got.converged) and not got.status
    np.testing.assert_allclose(got.x, want.x, rtol=1e-5)


def test_one_weight_a_vertex():
    indptr = [0, 2, 2, 5, 6]
    found = weights_of_vertices(indptr, np.array([2, 2, 3, 3, 3, 4], np.int32))
    assert found.tolist() == [2, 0, 3, 4]
    assert weights_of_vertices(indptr, np.array([2, 2, 3, 3, 5, 4], np.int32)) is None
    zeros = np.array([0.0, -0.0, 1, 1, 1, 1], np.float32)
    assert weights_of_vertices(indptr, zeros) is None  # 1 / 0 is not 1 / -0


def test_what_does_not_change_in_a_step_is_computed_once():
    """`hoist` takes all operations on scalars, and no other."""
    closed = trace(lambda x, a, b: x * (a / b) + jnp.where(a > b, a, b) * x, F32, F32, F32)
    done = []

    class Kernel:
        def __getattr__(self, name):
            return lambda *args: done.append(args[0] if name in ("operate", "relate") else name)

    known = hoist(Kernel(), closed, None, 1, 2)
    hoisted, done[:] = list(done), []
    evaluate(Kernel(), closed, 0, 1, 2, known=known)
    assert "div" in hoisted and "where" in hoisted and not {"mul", "add"} & set(hoisted)
    assert sorted(done) == ["add", "mul", "mul"]


EIGENVECTOR = {
    "update": lambda old, y, i, sums: jnp.where(
        jnp.isfinite(y), (old + y) / jnp.sqrt(sums["square"]), old
    ),
    "sums": {"square": lambda x: x**2 + 0 * x**3},
    "until": jsp.until.max_iterations(9),
}


def test_an_eigenvector_by_the_user(interpreted):
    """Square roots and powers of the sums; elements that overflow stay what they were."""
    A = matrix("grid", np.ones, np.float32)
    got, want = both(A, jnp.ones(A.shape[0]), jsp.semirings.plus_times, **EIGENVECTOR)
    assert got.iterations == 9 and not got.status
    np.testing.assert_allclose(got.x, want.x, rtol=1e-5)


def test_integers_are_not_divided(interpreted):
    A = matrix("grid", np.ones, np.int32)
    G, x0 = jsp.prepare(A, for_=("fixpoint",)), jnp.ones(A.shape[0], jnp.int32)
    loop = DEFAULTS._replace(update=lambda old, y, i, sums: jax.lax.div(y, old))
    call, static = _checked(G, x0, jsp.semirings.plus_times, loop)
    assert "float32 alone" in gpu.not_dense(*call, **static)


@pytest.mark.parametrize("name, update", [("sin", jnp.sin), ("rev", lambda y: y[::-1])])
def test_what_the_kernel_lacks_is_named(interpreted, name, update):
    A = matrix("grid", np.ones, np.float32)
    G, x0 = jsp.prepare(A, for_=("fixpoint",)), jnp.ones(A.shape[0])
    loop = DEFAULTS._replace(update=lambda old, y, i, sums: update(y))
    call, static = _checked(G, x0, jsp.semirings.plus_times, loop)
    assert f"`{name}`" in gpu.not_dense(*call, **static)


def matrix(name, values, dtype):
    """A graph of tests as a CSR."""
    indptr, indices = map(np.asarray, GRAPHS[name])
    data = values(len(indices)).astype(dtype)
    return jsp.from_scipy(sp.csr_array((data, indices, indptr), shape=(len(indptr) - 1,) * 2))


def same(got, want):
    assert not got.status and bool(got.converged) == bool(want.converged)
    assert got.iterations == want.iterations
    np.testing.assert_array_equal(got.x, want.x)


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["grid", "random", "dense", "path"])
def test_native(name):
    A = matrix(name, lambda n: np.random.default_rng(2).integers(1, 9, n), np.float32)
    x0 = jnp.full(A.shape[0], jnp.inf).at[3].set(0)
    G = jsp.prepare(A, for_=("fixpoint",))
    run = jax.jit(
        lambda G, x0, b: jsp.fixpoint(
            G,
            x0,
            jsp.semirings.min_plus,
            update=lambda old, y, *_: jnp.minimum(old, y),
            backend=b,
            method="dense",
        ),
        static_argnums=2,
    )
    want = run(G, x0, "xla")
    assert bool(want.converged)
    for _ in range(5):
        same(run(G, x0, "pallas"), want)


@pytest.mark.gpu
@pytest.mark.parametrize("scaled", [True, False])
@pytest.mark.parametrize("name", ["random", "dense"])
def test_native_pagerank(name, scaled):
    """As built in; two runs are equal bit for bit."""
    A = matrix(name, np.ones, np.float32)
    A = A.with_data(jnp.ones_like(A.data))  # repeated edges were added up
    P, dangling = written.transition(A)
    if not scaled:  # the same matrix, one weight taken apart
        P = P.with_data(P.data.at[0].add(1e-7))
    H = jsp.prepare(P, for_="fixpoint")
    assert ("scales" in H.layouts["fixpoint"].kernel) == scaled
    run = jax.jit(lambda H: jsp.fixpoint(H, **written.pagerank_loop(H, dangling), backend="pallas"))
    found, again = run(H), run(H)
    np.testing.assert_array_equal(found.x, again.x)
    np.testing.assert_allclose(found.x, jsp.pagerank(A).scores, rtol=1e-4)
    assert bool(found.converged) and not found.status


@pytest.mark.gpu
def test_native_eigenvector():
    G = jsp.prepare(matrix("grid", np.ones, np.float32), for_="fixpoint")
    run = jax.jit(
        lambda G, b: jsp.fixpoint(G, jnp.ones(G.n), backend=b, **EIGENVECTOR), static_argnums=1
    )
    got, want = run(G, "pallas"), run(G, "xla")
    np.testing.assert_allclose(got.x, want.x, rtol=1e-5)
