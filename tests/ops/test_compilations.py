"""How many programs eager calls compile: few shapes, and one program a call."""

import contextlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.indices import SMALL, eager_capacity
from jaxspv.algebra.operators import minus, truediv, valuegt

SECONDS = "/jax/core/compile/backend_compile_duration"
COUNTS = [0]


def _listen(event, seconds, **kwargs):
    COUNTS[0] += event == SECONDS


jax.monitoring.register_event_duration_secs_listener(_listen)


@contextlib.contextmanager
def compiling(most):
    """Fails where more programs than `most` are compiled inside."""
    before = COUNTS[0]
    yield
    assert COUNTS[0] - before <= most


def graph(seed, n=6000, edges=30_000):
    """A graph of exactly so many entries."""
    places = np.random.default_rng(seed).choice(n * n, edges, replace=False)
    weights = np.linspace(0.1, 1, edges, dtype=np.float32)
    return jsp.from_edges(places // n, places % n, weights, shape=(n, n))


def reached(A, source, steps=12):
    x, counts = jsp.vector_from_entries([source], [0.0], A.shape[0]), []
    for _ in range(steps):
        x = jsp.vxm(x, A, jsp.semirings.min_plus)
        counts.append(int(x.count))
        assert x.nse == eager_capacity(counts[-1], A.shape[0])
    assert counts[0] < 50 and counts[-1] > SMALL  # it grows through all buckets
    return x


def test_a_loop_of_products_compiles_three_programs_and_none_on_the_next_graph():
    A, B = graph(0), graph(1)
    jax.block_until_ready((A, B))
    with compiling(3):
        x = reached(A, 0)
    with compiling(0):
        reached(A, 17)
        reached(B, 5)
    dense = np.full(A.shape, np.inf)
    M = A.to_scipy().tocoo()
    dense[M.row, M.col] = M.data
    want = np.full(A.shape[0], np.inf)
    want[0] = 0
    for _ in range(12):
        want = np.concatenate([(want[:, None] + block).min(0) for block in np.split(dense, 10, 1)])
    np.testing.assert_allclose(x.todense(np.inf), want, rtol=1e-5)


CALLS = {
    "union": lambda A, x, m: jsp.ewise_add(x, m, minus),
    "intersection": lambda A, x, m: jsp.ewise_mult(x, m, truediv),
    "select": lambda A, x, m: jsp.select(x, valuegt, 0.5),
    "apply": lambda A, x, m: jsp.apply(x, truediv, left=1.0),
    "mask": lambda A, x, m: jsp.vxm(x, A, mask=~jsp.structure(m)),
    "pull": lambda A, x, m: jsp.mxv(A, x, mask=jsp.structure(m)),
    "out": lambda A, x, m: jsp.vxm(x, A, mask=m, out=m, accum=jnp.minimum, replace=True),
    "assign": lambda A, x, m: jsp.assign(x, 1.0, mask=jsp.structure(m)),
    "reduce": lambda A, x, m: jsp.reduce(A, axis=1),
    "dense": lambda A, x, m: A @ jnp.zeros(6000),
    "matrix": lambda A, x, m: jsp.select(A, valuegt, 0.5),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_call_is_one_program(name):
    """Beside the program itself at most one that cuts its result, which a CPU does not need."""
    A, x, m = graph(2), reached(graph(2), 3, 12), reached(graph(3), 4, 12)
    more = [reached(graph(3), 9), reached(graph(2), 8)]
    jnp.zeros(6000).block_until_ready()
    with compiling(1):
        first = CALLS[name](A, x, m)
    with compiling(0):  # other values, counts, graphs
        second = CALLS[name](graph(3), *more)
    assert jax.tree.structure(first) == jax.tree.structure(second)


@pytest.mark.parametrize("count", [0, 1, SMALL, SMALL + 1, 100_000, 1 << 20, 3 << 20, 1 << 25])
def test_capacities_hold_their_count_and_do_not_creep(count):
    huge = 1 << 40
    capacity = eager_capacity(count, huge)
    assert capacity >= max(count, SMALL) and capacity <= max(16 * count, SMALL)
    assert eager_capacity(capacity, huge) == capacity
    assert eager_capacity(count, count) == count  # never more than there are places
    if count > 1 << 20:
        assert capacity <= 1.25 * count


def test_trim_gives_what_is_there():
    x = jsp.select(jsp.vector_from_entries([1, 5, 7], [1.0, 2.0, 3.0], 9), valuegt, 1.5)
    assert x.nse == 3 or x.nse == 9
    assert (x.trim().indices.tolist(), x.trim().data.tolist()) == ([5, 7], [2.0, 3.0])
    A = jsp.from_edges([1, 0, 2], [0, 1, 2], [1.0, 2.0, 3.0], shape=(3, 3), nse=9)
    for name in ("coo", "csr", "csc", "tiled", "bittiled"):
        B = A.asformat(name)
        assert B.trim().nse == 3 == int(B.count) and B.trim().trim().nse == 3
        np.testing.assert_array_equal(B.trim().todense(), B.todense())
    with pytest.raises(ValueError, match="`trim` needs concrete values"):
        jax.jit(lambda A: A.trim().data)(A)


def test_a_host_takes_rows_and_columns_without_a_program():
    A = graph(11)
    S = A.to_scipy()
    i = jax.device_put(np.array([7, 7, 2]))
    with compiling(0):
        found = [A[5], A[:, 7], A[[4, 1, 4]], A[:, [3, 0]], A[::-2], A[i, 3:90], A.T[3]]
    wanted = [S[5], S[:, 7], S[[4, 1, 4]], S[:, [3, 0]], S[::-2], S[[7, 7, 2], 3:90], S[:, 3]]
    for x, y in zip(found, wanted, strict=True):
        assert np.array_equal(x.todense(), y.toarray().squeeze())


@pytest.mark.parametrize("format", ["csr", "csc"])
def test_a_host_assigns_without_a_program(format):
    rng = np.random.default_rng(7)
    dense = np.where(rng.random((41, 37)) < 0.3, rng.integers(1, 9, (41, 37)), 0)
    part = np.where(rng.random((3, 4)) < 0.5, rng.integers(1, 9, (3, 4)), 0).astype(np.float32)
    line = part[0].copy()
    A = jsp.from_dense(dense.astype(np.float32)).asformat(format)
    B, v = jsp.from_dense(part), jsp.vector_from_dense(line)
    places = {  # i, j as jaxspv and as NumPy take them
        "lists": ([7, 0, 40], [3, 36, 1, 2]),
        "slices": (slice(30, 3, -11), slice(1, 9, 2)),
        "a row": (5, [8, 1, 30, 2]),
        "a column": (slice(None, 4), 9),
        "all": (None, None),
    }
    for name, (i, j) in places.items():
        at = tuple(slice(None) if k is None else k for k in (i, j))
        at = np.ix_(*at) if name == "lists" else at
        values = {3.0: 3.0, 2: 2}.items() if "a " not in name else [(v, line), (line, line)]
        values = [*values, (B, part), (B.asformat("coo"), part), (B.asformat("csc"), part)]
        values = values if name in ("lists", "slices") else values[:2]
        for value, array in values:
            with compiling(0):
                found = jsp.assign(A, value, i, j)
            want = dense.astype(np.float32)
            want[at] = array
            assert found.format == format and found.nse == eager_capacity(found.nnz, want.size)
            np.testing.assert_array_equal(found.todense(), want)
            assert jsp.check(found) is found
            same = jax.jit(lambda A, i=i, j=j, value=value: jsp.assign(A, value, i, j))(A)
            np.testing.assert_array_equal(same.todense(), want)


def test_a_host_takes_and_assigns_parts_of_vectors_without_a_program():
    rng = np.random.default_rng(8)
    dense = np.where(rng.random(41) < 0.4, rng.integers(1, 9, 41), 0).astype(np.float32)
    v = jsp.vector_from_dense(dense)
    parts = [[3, 40, 0, 7], [5], [], slice(30, 3, -4), slice(2, 9), slice(1, 30, 3), slice(4, 4)]
    for k in [*parts, dense > 4, np.array([-1, -41])]:
        line = (rng.random(len(dense[k])) * rng.integers(0, 2, len(dense[k]))).astype(np.float32)
        few = jsp.vector_from_dense(line) if line.size else 5.0
        for value, array in ((2.0, 2.0), (line, line), (few, line), (3, 3)):
            with compiling(0):
                part, found = jsp.extract(v, k), jsp.assign(v, value, k)
            want = dense.copy()
            want[k] = array
            np.testing.assert_array_equal(part.todense(), dense[k])
            np.testing.assert_array_equal(found.todense(), want)
            traced = jax.jit(lambda v, k=k, value=value: jsp.assign(v, value, k))(v)
            assert int(traced.count) == int(found.count) and found.dtype == traced.dtype
            assert found.nse == eager_capacity(int(found.count), 41) and not found.overflow
    repeated = jsp.extract(v, [7, 0, 7]).todense()
    np.testing.assert_array_equal(repeated, dense[[7, 0, 7]])
    n = 2**31 - 3
    long = jsp.extract(jsp.vector_from_entries([9, n - 11], [1, 2], n), slice(None, 1, -5)).trim()
    assert (long.indices.tolist(), long.data.tolist()) == ([2, (n - 10) // 5], [2, 1])
    with compiling(0):
        found = jsp.assign(jsp.assign(v, 6.0, 11), jsp.vector_from_entries([], [], 1), 0)
    assert found.todense()[11] == 6 and not np.isin(0, found.trim().indices)


@pytest.mark.parametrize("format", ["csr", "coo", "csc"])
def test_an_archive_is_read_without_a_program(format, tmp_path):
    A = jsp.select(graph(13, n=6007), valuegt, 0.5).asformat(format)
    assert A.nse > int(A.count)  # with padding
    jsp.save_npz(tmp_path / "a.npz", A)
    with compiling(0):
        B = jsp.load_npz(tmp_path / "a.npz")
    assert (B.nse, int(B.count), B.format) == (A.nse, int(A.count), format)
    assert (
        (B.to_scipy() != sp.load_npz(tmp_path / "a.npz")).nnz
        == 0
        == (B.to_scipy() != A.to_scipy()).nnz
    )


@pytest.mark.parametrize("method", ["scale", "compare", "max", "nonzero", "diagonal", "array"])
def test_scipys_methods_are_one_program_each(method):
    calls = {
        "scale": lambda A: A * 3,
        "compare": lambda A: A > 0.3,
        "max": lambda A: A.max(axis=1),
        "nonzero": lambda A: A.nonzero(),
        "diagonal": lambda A: A.diagonal(1),
        "array": lambda A: A * np.ones(6001, np.float32),
    }
    A = graph(12, n=6001)
    with compiling(1):
        calls[method](A)
