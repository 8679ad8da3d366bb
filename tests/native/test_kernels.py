"""The C++ kernels give what NumPy and SciPy give, are safe on any bytes, and can be left out."""

import dataclasses
import itertools
import os
import subprocess
import sys
import textwrap

import jax
import jax.export
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp
from jaxspv.native import bind, build

pytestmark = pytest.mark.fast
RNG = np.random.default_rng(0)
N = 40
WEIGHTS = np.where(RNG.random((N, N)) < 0.08, RNG.integers(1, 9, (N, N)), 0)
DIRECTED, UNDIRECTED = WEIGHTS, np.maximum(WEIGHTS, WEIGHTS.T)
GRAPHS = {"directed": DIRECTED, "undirected": UNDIRECTED}
FLOATS = {"plus": np.sum, "min": np.min, "max": np.max}

needs_kernels = pytest.mark.skipif(bind.refused() is not None, reason=str(bind.refused()))


def matrix(dense, dtype=np.float32):
    return jsp.from_dense(dense.astype(dtype))


@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize(
    "name", ["plus_times", "min_plus", "max_plus", "max_times", "min_max", "max_min", "plus_pair"]
    + ["min_first", "min_second", "plus_first", "plus_second"],
)  # fmt: skip
def test_products_combine_the_entries_of_a_row(name, dtype):
    A, x = matrix(DIRECTED, dtype), RNG.integers(1, 9, N).astype(dtype)
    add, mul = name.split("_")
    terms = {
        "times": lambda a, b: a * b,
        "plus": lambda a, b: a + b,
        "min": np.minimum,
        "max": np.maximum,
        "first": lambda a, b: a + 0 * b,
        "second": lambda a, b: 0 * a + b,
        "pair": lambda a, b: 1 + 0 * a * b,
    }[mul]
    zero = jsp.semirings.as_semiring(name).zero(dtype)

    def folded(dense, flip):
        rows = []
        for row in dense:
            at = np.flatnonzero(row)
            a, b = row[at].astype(dtype), x[at]
            some = terms(b, a) if flip else terms(a, b)
            rows.append(FLOATS[add](some) if len(at) else zero)
        return np.asarray(rows, dtype)

    for method in ("native", "auto"):
        got = jsp.mxv(A, x, name, method=method)
        np.testing.assert_array_equal(got, folded(DIRECTED, False))
        got = jsp.vxm(x, A, name, method=method)
        np.testing.assert_array_equal(got, folded(DIRECTED.T, True))


@needs_kernels
def test_products_of_truth_values():
    x = RNG.random(N) < 0.2
    got = jsp.mxv(matrix(DIRECTED, bool), x, "or_and", method="native")
    np.testing.assert_array_equal(got, (DIRECTED > 0) @ x)


@needs_kernels
def test_integer_lengths_are_clamped_and_nan_spreads():
    top = np.iinfo(np.int32).max
    A = jsp.from_dense(np.array([[top - 1, 0], [top, 5]], np.int32))
    got = jsp.mxv(A, np.array([7, top], np.int32), "min_plus", method="native")
    assert got.tolist() == [top, top]
    B = jsp.from_dense(np.array([[1, 2], [3, 4]], np.float32))
    got = jsp.mxv(B, np.array([np.nan, 1], np.float32), "min_second", method="native")
    assert np.isnan(got).all()


@needs_kernels
@pytest.mark.parametrize("name", ["plus_times", "min_plus", "max_times"])
def test_rows_of_every_length_and_any_number_of_threads_give_the_same(name):
    lengths = np.r_[0:70, 250:262, 1000, 3, 0, 255:0:-1]
    rows = np.repeat(np.arange(len(lengths)), lengths)
    cols = np.concatenate([RNG.permutation(1200)[:k] for k in lengths])
    dense = np.zeros((len(lengths), 1200), np.float32)
    dense[rows, cols] = RNG.random(len(rows)) + 0.5
    A, x = jsp.from_dense(dense), RNG.random(1200).astype(np.float32)
    try:
        found = []
        for threads in (1, 2):
            jsp.config.set_num_threads(threads)
            found.append(np.asarray(jsp.mxv(A, x, name, method="native")))
    finally:
        jsp.config.set_num_threads(0)
    np.testing.assert_array_equal(*found)
    want = {
        "plus_times": lambda a: np.sum(a * x.astype(float)),
        "min_plus": lambda a: np.min(a[a > 0] + x[a > 0], initial=np.inf),
        "max_times": lambda a: np.max(a[a > 0] * x[a > 0], initial=-np.inf),
    }[name]
    np.testing.assert_allclose(found[0], [want(row) for row in dense], rtol=3e-7)


@needs_kernels
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("longest", [4, 8, 9])
def test_rows_of_few_entries(longest, dtype):
    """They are taken four at a time, in blocks of 256 rows of which the last one is shorter."""
    lengths = RNG.choice([0, 1, 2, 3, 4, longest], 1027, p=[0.2, 0.2, 0.3, 0.15, 0.1, 0.05])
    ptr = np.append(0, np.cumsum(lengths))
    cols = np.concatenate([np.sort(RNG.permutation(64)[:k]) for k in lengths])
    S = sp.csr_array((RNG.integers(1, 9, ptr[-1]).astype(dtype), cols, ptr), (1027, 64))
    x = RNG.integers(-9, 9, 64).astype(dtype)
    with jax.enable_x64(dtype is np.float64):
        A = jsp.from_scipy(S)
        np.testing.assert_array_equal(jsp.mxv(A, x, method="native"), S @ x)
        x[5] = np.nan
        least = [
            np.min(S.data[a:b] + x[cols[a:b]], initial=np.inf) for a, b in itertools.pairwise(ptr)
        ]
        np.testing.assert_array_equal(jsp.mxv(A, x, "min_plus", method="native"), least)


@needs_kernels
def test_long_sums_of_float32_keep_their_digits():
    n = 10**5
    values = np.full(n, 0.1, np.float32)
    A = jsp.from_edges(np.zeros(n, int), np.arange(n), values, shape=(1, n))
    got = jsp.mxv(A, np.ones(n, np.float32), method="native")
    np.testing.assert_allclose(got, [values.astype(float).sum()], rtol=1e-7)


def is_tree(dense, levels, parents, source):
    reached = np.flatnonzero(levels > 0)
    up = parents[reached]
    steps = levels[reached] == levels[up] + 1
    return (
        parents[source] == source
        and steps.all()
        and (dense[up, reached] > 0).all()
        and (parents[levels < 0] == -1).all()
    )


@needs_kernels
@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("prepared", [False, True])
def test_searches_find_levels_and_trees(name, prepared):
    dense = GRAPHS[name]
    G = matrix(dense)
    G = jsp.prepare(G, for_="bfs") if prepared else G
    want = csgraph.shortest_path(sp.csr_array(dense), unweighted=True)
    want = np.where(np.isinf(want), -1, want)
    for source in (0, 3):
        found = jsp.bfs(G, source, method="native")
        levels, parents = map(np.asarray, found[:2])
        np.testing.assert_array_equal(levels, want[source])
        assert is_tree(dense, levels, parents, source)
        assert int(found.num_levels) == want[source].max() + 1
        least = np.asarray(jsp.bfs(G, source, method="native", deterministic=True).parents)
        for v in np.flatnonzero(levels > 0):
            before = np.flatnonzero((dense[:, v] > 0) & (levels == levels[v] - 1))
            assert least[v] == before[0]
    sources = np.arange(N).repeat(2)[:70]
    many = jsp.bfs(G, sources)
    np.testing.assert_array_equal(many.levels, want[sources])
    for k in (0, 40, 69):
        assert is_tree(dense, *(np.asarray(v[k]) for v in many[:2]), sources[k])


@needs_kernels
@pytest.mark.parametrize(
    "until, deepest",
    [
        (jsp.until.max_iterations(2), lambda at: 2),
        (jsp.until.reached(4), lambda at: at),
        (jsp.until.reached(4) & jsp.until.max_iterations(3), lambda at: max(at, 3)),
        (jsp.until.reached(4) | jsp.until.max_iterations(1), lambda at: min(at, 1)),
        (jsp.until.unchanged(), lambda at: N),
    ],
)
def test_searches_stop_after_the_level_in_which_a_condition_holds(until, deepest):
    want = csgraph.shortest_path(sp.csr_array(UNDIRECTED), unweighted=True)[0]
    levels = np.asarray(jsp.bfs(matrix(UNDIRECTED), 0, until=until, method="native").levels)
    np.testing.assert_array_equal(levels, np.where(want <= deepest(int(want[4])), want, -1))


@needs_kernels
def test_a_limit_of_levels_may_be_traced():
    A = matrix(UNDIRECTED)
    want = csgraph.shortest_path(sp.csr_array(UNDIRECTED), unweighted=True)[0]
    limited = jax.jit(lambda k: jsp.bfs(A, 0, until=jsp.until.max_iterations(k)).levels)
    for k in (0, 1, 2):
        np.testing.assert_array_equal(limited(k), np.where(want <= k, want, -1))


@needs_kernels
@pytest.mark.parametrize("dtype", ["float32", "int32"])
@pytest.mark.parametrize("name", GRAPHS)
def test_shortest_paths_equal_those_of_dijkstra(name, dtype):
    dense = GRAPHS[name]
    A = matrix(dense, dtype)
    want = csgraph.dijkstra(sp.csr_array(dense))[0]
    top = np.iinfo(np.int32).max if dtype == "int32" else np.inf
    found = jsp.sssp(A, 0, method="native")
    np.testing.assert_array_equal(found.distances, np.where(np.isinf(want), top, want))
    parents = np.asarray(found.parents)
    for v in np.flatnonzero(np.isfinite(want) & (np.arange(N) > 0)):
        assert want[v] == want[parents[v]] + dense[parents[v], v]
    assert bool(found.converged) and not bool(found.overflow)
    near = jsp.sssp(A, 0, until=jsp.until.reached(4), method="native").distances
    np.testing.assert_array_equal(near, np.where(want <= want[4], np.asarray(found.distances), top))


@needs_kernels
def test_negative_weights_and_cycles():
    path = jsp.from_edges([0, 1, 0], [1, 2, 2], [4.0, -3.0, 2.0], shape=(3, 3))
    assert jsp.sssp(path, 0, method="native").distances.tolist() == [0, 4, 1]
    cycle = jsp.from_edges([0, 1, 2], [1, 2, 1], [1.0, 1.0, -2.0], shape=(3, 3))
    assert not bool(jax.jit(lambda: jsp.sssp(cycle, 0, method="native").converged)())
    with pytest.raises(jsp.NegativeCycleError):
        jsp.sssp(cycle, 0)


@needs_kernels
def test_components_are_named_by_their_smallest_vertices():
    dense = DIRECTED * (RNG.random((N, N)) < 0.25)
    count, labels = csgraph.connected_components(sp.csr_array(dense), directed=False)
    least = np.array([np.flatnonzero(labels == k)[0] for k in range(count)])
    found = jsp.connected_components(matrix(dense), method="native")
    np.testing.assert_array_equal(found.labels, least[labels])


@needs_kernels
def test_lanes_of_vmap_are_lanes_of_the_handler():
    A = matrix(UNDIRECTED)
    scale = jnp.arange(1, 4, dtype=jnp.float32)
    by_weight = jax.vmap(lambda s: jsp.sssp(A.with_data(s * A.data), 0).distances)(scale)
    np.testing.assert_array_equal(by_weight, scale[:, None] * by_weight[0])
    both = jax.vmap(
        jax.vmap(lambda s, v: jsp.sssp(A.with_data(s * A.data), v).distances, (None, 0)), (0, None)
    )
    assert (both(scale, jnp.arange(2))[:, 0] == by_weight).all()
    x = jnp.arange(N, dtype=jnp.float32)
    products = jax.vmap(lambda s: A.with_data(s * A.data) @ x)(scale)
    np.testing.assert_allclose(products, scale[:, None] * (UNDIRECTED @ np.asarray(x)), rtol=1e-6)


@needs_kernels
def test_any_bytes_are_safe():
    """The fuzzer has the sanitizers' view of it; this one goes through XLA."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        A = matrix(UNDIRECTED)
        wild = rng.integers(-(2**31), 2**31, A.indptr.shape[0], dtype=np.int64).astype(np.int32)
        B = dataclasses.replace(A, indptr=jnp.asarray(wild))
        jax.block_until_ready(jax.jit(_everything)(B))


def _everything(A):
    x = jnp.ones(N, jnp.float32)
    vectors = jsp.mxv(A, x, method="native"), jsp.vxm(x, A, method="native")
    graphs = jsp.bfs(A, 0, method="native"), jsp.sssp(A, 0, method="native")
    return vectors, graphs, jsp.connected_components(A, method="native")


@needs_kernels
def test_a_broken_call_is_an_error_that_names_the_reason():
    n = jax.ShapeDtypeStruct((3,), jnp.float32)
    ptr, idx, x = np.zeros(4, np.int32), np.zeros(2, np.int32), np.ones(3, np.float32)
    for bad, text in (
        ((ptr, idx, np.ones(5, np.float32), x), "another length"),
        ((ptr.astype(np.float32), idx, np.ones(2, np.float32), x), "dtype"),
        ((ptr[:3], idx, np.ones(2, np.float32), x), "another length"),
    ):
        with pytest.raises(Exception, match=text):
            jax.jit(lambda *o: bind.call("spmv", n, *o, add=0, mul=0))(*bad).block_until_ready()


@needs_kernels
def test_exports_and_automatic_meshes_hold_no_calls_of_kernels():
    A, x = matrix(UNDIRECTED), jnp.ones(N, jnp.float32)
    assert "jaxspv_spmv" in jax.jit(lambda x: A @ x).lower(x).as_text()
    exported = jax.export.export(jax.jit(lambda x: A @ x))(x)
    assert "jaxspv_spmv" not in exported.mlir_module()
    np.testing.assert_allclose(exported.call(x), UNDIRECTED.sum(1))


def run(code, **environment):
    """Runs Python in a process of its own."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), **environment}
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


USES = """
    import jax, jaxspv as jsp, numpy as np
    from jaxspv.native import bind
    A = jsp.from_edges([0, 1], [1, 2], np.ones(2, np.float32), shape=(3, 3))
    assert (A @ np.ones(3, np.float32)).tolist() == [1, 1, 0]
    assert jsp.bfs(A, 0).levels.tolist() == [0, 1, 2]
    assert jsp.sssp(A, 0).distances.tolist() == [0, 1, 2]
    assert jsp.connected_components(A).labels.tolist() == [0, 0, 0]
    print(bind.refused())
"""


def test_without_kernels_the_other_forms_serve():
    assert "JAXSPV_NATIVE=0" in run(USES, JAXSPV_NATIVE="0")


@pytest.mark.skipif(build.compiler() is None, reason="needs a C++ compiler")
def test_a_library_of_a_newer_version_does_not_take_the_backend_down(tmp_path):
    """A runtime refuses a handler of a version newer than its own. Registered before the backend
    starts, it would keep JAX from working at all."""
    for path in build.sources():
        text = path.read_text().replace("kMajor = 0, kMinor = 3", "kMajor = 0, kMinor = 900")
        (tmp_path / path.name).write_text(text)
    units = [str(tmp_path / name) for name in ("products.cc", "library.cc")]
    library = tmp_path / "newer.so"
    command = [
        build.compiler(),
        "-std=c++17",
        "-O0",
        "-shared",
        "-fPIC",
        *units,
        "-o",
        str(library),
    ]
    subprocess.run(command, check=True)
    sent = run(USES, JAXSPV_NATIVE=str(library))
    assert "cannot be used" in sent


@needs_kernels
def test_the_number_of_threads_changes_no_result():
    code = """
        import jax, jaxspv as jsp, numpy as np, hashlib
        A = jsp.generators.rmat(jax.random.key(0), 12)
        x = np.random.default_rng(0).random(A.shape[0], dtype=np.float32)
        A = A.astype(np.float32)
        found = A @ x, jsp.bfs(A, 0, deterministic=True).parents, jsp.sssp(A, 0).distances
        found += (jsp.connected_components(A).labels,)
        jax.config.update("jax_enable_x64", True)
        r = np.random.default_rng(0).random((2000, 300))  # long columns: parts of the rows
        B = jsp.from_dense(np.where(r < 0.5, r, 0))
        w, z = r[:, 0], r[0]
        found += B.T @ w, jax.grad(lambda z: w @ (B @ z))(z)
        assert np.allclose(found[-2:], w @ np.where(r < 0.5, r, 0))
        print(*(hashlib.sha256(np.asarray(v).tobytes()).hexdigest() for v in found))
    """
    assert run(code, JAXSPV_NUM_THREADS="1") == run(code, JAXSPV_NUM_THREADS="2")
