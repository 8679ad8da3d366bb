"""`search` against SciPy's traversal and NumPy's definition of a tree."""

import functools

import chex
import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from graph_files import graph_files
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import breadth_first_order

from jaxspv._core.operation import Operation
from jaxspv.algorithms.bfs import xla
from pallas_kernels.layouts.adjacency import Adjacency

EXTREMES = np.array([-1, np.iinfo(np.int32).max, np.iinfo(np.int32).min, 0], np.int32)


def csr_of(n, rows, cols):
    """CSR arrays with duplicates and self loops kept, columns in the given order."""
    order = np.argsort(rows, kind="stable")
    indptr = np.zeros(n + 1, np.int32)
    np.cumsum(np.bincount(rows, minlength=n), out=indptr[1:])
    return indptr, np.asarray(cols, np.int32)[order]


def random_graph(n, m, seed):
    rng = np.random.default_rng(seed)
    return csr_of(n, rng.integers(0, n, m), rng.integers(0, n, m))


def path(n):
    return csr_of(n, np.arange(n - 1), np.arange(1, n))


def star(n):
    leaves = np.arange(1, n)
    hub = np.zeros(n - 1, np.int64)
    return csr_of(n, np.r_[hub, leaves], np.r_[leaves, hub])


def grid(side):
    ids = np.arange(side * side).reshape(side, side)
    a = np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()]
    b = np.r_[ids[:, 1:].ravel(), ids[1:].ravel()]
    return csr_of(side * side, np.r_[a, b], np.r_[b, a])


def karate():
    import networkx as nx

    matrix = sp.csr_array(nx.to_scipy_sparse_array(nx.karate_club_graph()))
    return matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)


GRAPHS = {
    "path": path(20),
    "path_backwards": csr_of(20, np.arange(1, 20), np.arange(19)),
    "star": star(300),
    "grid": grid(17),
    "karate": karate(),
    "self_loops_and_duplicates": random_graph(40, 400, 0),
    "disconnected": random_graph(200, 150, 1),
    "dense": csr_of(70, np.repeat(np.arange(70), 70), np.tile(np.arange(70), 70)),
    "one_vertex": csr_of(1, [], []),
    "one_loop": csr_of(1, [0], [0]),
    "no_edges": csr_of(5, [], []),
    "no_vertices": csr_of(0, np.zeros(0, int), []),
}


def levels_by_scipy(indptr, indices, source):
    n = len(indptr) - 1
    levels = np.full(n, -1)
    if 0 <= source < n:
        matrix = sp.csr_array((np.ones(len(indices)), indices, indptr), (n, n))
        order, before = breadth_first_order(matrix, source)
        levels[source] = 0
        for v in order[1:]:
            levels[v] = levels[before[v]] + 1
    return levels


def smallest_parents(indptr, indices, source, levels):
    """min {u : u -> v an edge, levels[u] + 1 == levels[v]}."""
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    tight = (levels[rows] >= 0) & (levels[rows] + 1 == levels[indices])
    parents = np.full(n, n)
    np.minimum.at(parents, indices[tight], rows[tight])
    parents[parents == n] = -1
    if 0 <= source < n:
        parents[source] = source
    return parents


def check_tree(indptr, indices, source, levels, parents):
    n = len(indptr) - 1
    rows = np.repeat(np.arange(n), np.diff(indptr))
    edges = set(zip(rows.tolist(), indices.tolist(), strict=True))
    assert ((parents >= 0) == (levels >= 0)).all()
    for v in np.flatnonzero(levels >= 0):
        u = int(parents[v])
        if v == source:
            assert u == source
        else:
            assert levels[u] == levels[v] - 1 and (u, int(v)) in edges, (u, v)


STOPS = {
    None: lambda _: None,
    "reached": lambda x: lambda level, levels, size: levels[x] >= 0,
    "level": lambda x: lambda level, levels, size: level >= x,
    "size": lambda x: lambda level, levels, size: size == x,
}


@functools.cache
def compiled(stop=None, **static):
    def run(indptr, indices, source, *, stop_value=0):
        return xla.search(
            Adjacency(indptr, indices), source, stop=STOPS[stop](stop_value), **static
        )

    return jax.jit(run)


def search(graph, source, *, stop_value=0, common=True, **options):
    """`search` on a listed graph; small ones in one shape, for it compiles slowly."""
    n = len(graph[0]) - 1
    if common:
        graph = in_common_shape(*graph)
        source = source if source < n else source - n + COMMON[0]
    levels, parents, num_levels = compiled(**options)(
        *map(jnp.asarray, graph), source, stop_value=stop_value
    )
    assert (levels[n:] == -1).all() and (parents is None or (parents[n:] == -1).all())
    return levels[:n], None if parents is None else parents[:n], num_levels


def in_turn(run):
    """`run` as an operation has it: under vmap one lane after the other."""
    op = Operation("search of a test")
    op.register("search", batched="map")(run)
    return op


COMMON = 300, 5000  # vertices and capacity


def in_common_shape(indptr, indices):
    """The graph with unconnected vertices added and with padding of every kind."""
    n, capacity = COMMON
    indptr = np.pad(indptr, (0, n + 1 - len(indptr)), constant_values=indptr[-1])
    return indptr, np.concatenate([indices, np.resize(EXTREMES, capacity - len(indices))])


@pytest.mark.parametrize("name", GRAPHS)
def test_levels_and_parents(name):
    graph = GRAPHS[name]
    n = len(graph[0]) - 1
    for source in sorted({0, n // 2, n - 1, -1, n, n + 5, -(2**31)}):
        expected = levels_by_scipy(*graph, source)
        levels, parents, num_levels = search(graph, source)
        assert levels.dtype == parents.dtype == num_levels.dtype == jnp.int32
        np.testing.assert_array_equal(levels, expected)
        assert int(num_levels) == (expected.max() + 1 if n else 0)
        check_tree(*graph, source, np.asarray(levels), np.asarray(parents))


@pytest.mark.parametrize("name", ["karate", "self_loops_and_duplicates", "no_edges"])
def test_levels_alone(name):
    graph = GRAPHS[name]
    for source in (0, 3, -1):
        levels, nothing, num_levels = search(graph, source, parents=False)
        expected = levels_by_scipy(*graph, source)
        np.testing.assert_array_equal(levels, expected)
        assert nothing is None and int(num_levels) == expected.max() + 1


@pytest.mark.parametrize("name", GRAPHS)
def test_deterministic_parents_are_the_smallest(name):
    graph = GRAPHS[name]
    for source in (0, len(graph[0]) - 2, -1):
        levels, parents, _ = search(graph, source, deterministic=True)
        expected = levels_by_scipy(*graph, source)
        np.testing.assert_array_equal(levels, expected)
        np.testing.assert_array_equal(parents, smallest_parents(*graph, source, expected))


@pytest.mark.parametrize("filling", EXTREMES.tolist())
def test_padding_is_never_read_as_an_edge(filling):
    indptr, indices = GRAPHS["karate"]
    padded = jnp.concatenate([indices, np.full(37, filling, np.int32)])
    expected = levels_by_scipy(indptr, indices, 33)
    levels, parents, _ = compiled()(jnp.asarray(indptr), padded, jnp.int32(33))
    np.testing.assert_array_equal(levels, expected)
    check_tree(indptr, indices, 33, np.asarray(levels), np.asarray(parents))
    levels, _, num_levels = compiled()(jnp.zeros(6, jnp.int32), padded, jnp.int32(2))
    np.testing.assert_array_equal(levels, [-1, -1, 0, -1, -1])
    assert int(num_levels) == 1


@pytest.mark.parametrize("name", ["grid", "karate", "self_loops_and_duplicates"])
def test_stop_completes_its_level_and_no_more(name):
    graph = GRAPHS[name]
    full = levels_by_scipy(*graph, 0)
    for target in (0, 5, len(full) - 1):
        levels, parents, num_levels = search(graph, 0, stop="reached", stop_value=target)
        last = full[target] if full[target] >= 0 else full.max()
        np.testing.assert_array_equal(levels, np.where(full <= last, full, -1))
        assert int(num_levels) == last + 1
        check_tree(*graph, 0, np.asarray(levels), np.asarray(parents))


def test_stop_sees_every_level_in_turn():
    graph = GRAPHS["grid"]
    full = levels_by_scipy(*graph, 0)
    for k in range(4):
        levels, _, num_levels = search(graph, 0, stop="level", stop_value=k)
        np.testing.assert_array_equal(levels, np.where(full <= k, full, -1))
        assert int(num_levels) == k + 1
    sizes = np.bincount(full)
    first = int(np.flatnonzero(sizes == 9)[0])
    levels, _, _ = search(graph, 0, stop="size", stop_value=9)
    assert int(levels.max()) == first


@pytest.mark.parametrize("parents", [False, True])
def test_vmap_over_sources(parents):
    graph = GRAPHS["self_loops_and_duplicates"]
    indptr, indices = map(jnp.asarray, graph)
    sources = jnp.array([0, 7, -1, 39, 40], jnp.int32)

    def one(source):
        return xla.search(Adjacency(indptr, indices), source, parents=parents)

    levels, trees, num_levels = jax.jit(jax.vmap(in_turn(one)))(sources)
    for i, source in enumerate(sources.tolist()):
        expected = levels_by_scipy(*graph, source)
        np.testing.assert_array_equal(levels[i], expected)
        assert int(num_levels[i]) == expected.max() + 1
        if parents:
            check_tree(*graph, source, np.asarray(levels[i]), np.asarray(trees[i]))


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_random_graphs(data):
    n, m = data.draw(st.sampled_from([(3, 5), (30, 40), (300, 400), (300, 3000)]))
    graph = random_graph(n, m, data.draw(st.integers(0, 2**32 - 1)))
    source = data.draw(st.integers(0, n - 1))
    expected = levels_by_scipy(*graph, source)
    levels, parents, _ = search(graph, source)
    np.testing.assert_array_equal(levels, expected)
    check_tree(*graph, source, np.asarray(levels), np.asarray(parents))


def test_vmap_over_sources_and_stop():
    graph = GRAPHS["grid"]
    indptr, indices = map(jnp.asarray, graph)

    def depth(source, target):
        stop = lambda level, levels, size: levels[target] >= 0  # noqa: E731
        return xla.search(Adjacency(indptr, indices), source, stop=stop)[2]

    depth = in_turn(depth)
    sources, targets = jnp.array([0, 5, 288], jnp.int32), jnp.array([288, 5, 100], jnp.int32)
    hops = [int(levels_by_scipy(*graph, s)[t]) for s, t in zip(sources, targets, strict=True)]
    assert jax.vmap(depth)(sources, targets).tolist() == [h + 1 for h in hops]
    from_one = [int(levels_by_scipy(*graph, 5)[t]) + 1 for t in targets]
    assert jax.jit(jax.vmap(depth, (None, 0)))(jnp.int32(5), targets).tolist() == from_one


def test_one_compilation_serves_all_sources_and_equal_shapes():
    @jax.jit
    @chex.assert_max_traces(n=1)
    def fn(indptr, indices, source):
        return xla.search(Adjacency(indptr, indices), source)[0]

    for seed in range(3):
        graph = random_graph(50, 200, seed)
        for source in (0, 49, -1):
            levels = fn(*map(jnp.asarray, graph), jnp.int32(source))
            np.testing.assert_array_equal(levels, levels_by_scipy(*graph, source))


def test_lowers_for_cuda_without_callbacks():
    shapes = [jax.ShapeDtypeStruct(s, jnp.int32) for s in ((101,), (700,), ())]
    fn = jax.jit(xla.search)
    text = fn.trace(Adjacency(*shapes[:2]), shapes[2]).lower(lowering_platforms=("cuda",)).as_text()
    assert "while" in text and "custom_call" not in text


@pytest.mark.parametrize(
    "file", graph_files() or [None], ids=lambda f: f.name.split(".")[0] if f else "none"
)
def test_real_graphs(file):
    if file is None:
        pytest.skip("no graphs: set JAXSPV_DATA to a folder of Matrix Market files")
    matrix = scipy.io.mmread(file, spmatrix=False).tocsr()
    if matrix.shape[0] != matrix.shape[1]:
        pytest.skip("not square")
    indptr, indices = matrix.indptr.astype(np.int32), matrix.indices.astype(np.int32)
    source = int(np.diff(indptr).argmax())
    levels, parents, num_levels = search((indptr, indices), source, common=False)
    levels, parents = np.asarray(levels), np.asarray(parents)
    np.testing.assert_array_equal(levels, levels_by_scipy(indptr, indices, source))
    assert num_levels == levels.max() + 1
    rows = np.repeat(np.arange(len(levels)), np.diff(indptr))
    child = parents[indices] == rows
    assert (np.bincount(indices[child], minlength=len(levels)) > 0)[levels >= 0].sum() >= (
        (levels >= 0).sum() - 1
    )
    inner = levels > 0
    np.testing.assert_array_equal(levels[parents[inner]], levels[inner] - 1)
    assert parents[source] == source and (parents[levels < 0] == -1).all()
