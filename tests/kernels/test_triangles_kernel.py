"""The triangle kernels, interpreted, against products of SciPy: tables, short rows, long rows."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

from pallas_kernels.simt.device import Grid
from pallas_kernels.triangles import count as counting
from pallas_kernels.triangles import upward as orienting
from pallas_kernels.triangles.count import (
    CARRY,
    triangles,
    triangles_of_edges,
    triangles_of_vertices,
)
from pallas_kernels.triangles.truss import truss
from pallas_kernels.triangles.upward import EDGES, MEDIUM, NUMBER, upward
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, random_graph
from tests.kernels.test_lowering import gpus, lower, ring
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

triangles, truss, upward = map(gridded, (triangles, truss, upward))
triangles_of_edges, triangles_of_vertices = map(
    gridded, (triangles_of_edges, triangles_of_vertices)
)

SMALL = Grid(2, 64, True)


def symmetric(graph, loops=False):
    indptr, indices = graph
    n = len(indptr) - 1
    a = without_loops(sp.csr_array((np.ones(len(indices), int), indices, indptr), shape=(n, n)))
    a = a + a.T + sp.eye_array(n, dtype=int) if loops else a + a.T
    a = sp.csr_array(a != 0, dtype=int)
    a.sort_indices()
    return a


def without_loops(a):
    row, col = a.tocoo().coords
    keep = row != col
    return sp.csr_array((np.ones(keep.sum(), int), (row[keep], col[keep])), shape=a.shape)


def expected(a):
    """The number of triangles of each vertex: half of its closed walks of three steps."""
    a = without_loops(a)
    return np.asarray((a @ a).multiply(a).sum(axis=1)).ravel() // 2


def operands(a, spare=0):
    """Offsets and columns, the latter with places behind the last entry."""
    columns = np.append(a.indices, np.full(spare, a.shape[0]))
    return jnp.asarray(a.indptr, jnp.int32), jnp.asarray(columns, jnp.int32)


def check(a, how=DEFAULT_GRID, spare=0):
    graph, want = operands(a, spare), expected(a)
    edges = jax.jit(lambda *graph: upward(*graph, grid=how))(*graph)
    assert int(edges.totals[EDGES]) == (a.nnz - np.count_nonzero(a.diagonal())) // 2
    counts = jax.jit(lambda *o: triangles(*o, grid=how))(*graph, edges)
    low, high = (int(np.asarray(x).sum(dtype=np.int64)) for x in counts)
    total = low + (high << CARRY)
    assert total == want.sum() // 3
    each = jax.jit(lambda *o: triangles_of_vertices(*o, grid=how))(*graph, edges)
    np.testing.assert_array_equal(each, want)
    row, col = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)), a.indices
    b = without_loops(a)
    of_edges = np.asarray(jax.jit(lambda *o: triangles_of_edges(*o, grid=how))(*graph, edges))
    np.testing.assert_array_equal(of_edges[: a.nnz], (b @ b).toarray()[row, col] * (row < col))


def peeled(a, least):
    """The entries whose edges lie in `least` triangles of such edges or more, by products."""
    left = a.copy()
    while True:
        kept = left.multiply((left @ left).multiply(left) >= least) if least > 0 else left
        if kept.nnz == left.nnz:
            return np.asarray(kept.todense())
        left = sp.csr_array(kept)


def check_truss(a, how=DEFAULT_GRID, spare=0):
    graph = operands(a, spare)
    counts = triangles_of_edges(*graph, upward(*graph, grid=how), grid=how)
    row, col = np.repeat(np.arange(a.shape[0]), np.diff(a.indptr)), a.indices
    tails = jnp.asarray(np.append(row, np.full(spare, a.shape[0])), jnp.int32)
    of = jax.jit(lambda least: truss(*graph, tails, counts, least, grid=how))
    for least in range(5):
        left, status = of(jnp.int32(least))
        assert int(status) == 0
        np.testing.assert_array_equal(left[: a.nnz], peeled(a, least)[row, col])
        assert not np.any(left[a.nnz :])


def with_bounds(monkeypatch, big, log=13, long=2048, few=64):
    """Tables for rows of `big` edges, of 2^log words at most; rows of `long` entries by a CTA,
    tables of more than `few` edges too."""
    monkeypatch.setattr(orienting, "FEW", few)
    for module in (orienting, counting):
        monkeypatch.setattr(module, "BIG", big)
    monkeypatch.setattr(counting, "LOG", log)
    monkeypatch.setattr(orienting, "LONG", long)
    monkeypatch.setattr(orienting, "MIDDLE", long // 2)


@pytest.fixture(params=["bits", "words"], autouse=True)
def table(request, monkeypatch):
    """Graphs of every size take either table."""
    if request.param == "words":
        monkeypatch.setattr(counting, "MOST_WORDS", 0)


@pytest.mark.parametrize("big, few", [(1, 0), (1, 3), (1, 64), (16, 64)])
@pytest.mark.parametrize("name", GRAPHS)
def test_triangles(name, big, few, monkeypatch):
    with_bounds(monkeypatch, big, few=few)
    check(symmetric(GRAPHS[name]), SMALL)


@pytest.mark.parametrize("big, log, long", [(2, 4, 8), (12, 5, 30), (100, 13, 20)])
@pytest.mark.parametrize("few", [0, 64])
def test_tables_in_parts_and_long_rows(big, log, long, few, monkeypatch):
    with_bounds(monkeypatch, big, log, long, few)
    monkeypatch.setattr(counting, "LOG_OF_WARP", min(log, 5))
    check(symmetric(random_graph(90, 1500, 4)), SMALL, spare=40)


def test_wide_rows_and_more_long_rows_than_the_list_holds(monkeypatch):
    with_bounds(monkeypatch, 4, long=12)
    monkeypatch.setattr(orienting, "LISTED", 3)
    monkeypatch.setattr(counting, "WIDE", 5)
    check(symmetric(random_graph(40, 450, 5)), SMALL)


@pytest.mark.parametrize("big", [2, 16])
def test_cliques_and_self_loops(big, monkeypatch):
    """All degrees are equal, so numbers alone decide the direction of an edge."""
    with_bounds(monkeypatch, big)
    clique = sp.csr_array(np.ones((40, 40)))
    a = symmetric((clique.indptr, clique.indices), loops=True)
    check(a, SMALL)
    assert expected(a).sum() // 3 == 9880


def test_counts_carry():
    """A word of a count never exceeds 2^CARRY."""
    k = type("K", (), {"shr": staticmethod(lambda a, b: a >> b)})
    low, high = 0, 0
    for more in (2**30 - 1, 5, 2**30 - 3):
        low, high = counting._carried(k, low + more, high)
        assert low < 1 << CARRY
    assert low + (high << CARRY) == 2**31 + 1


def test_big_vertices_are_listed_once(monkeypatch):
    monkeypatch.setattr(orienting, "BIG", 3)
    a = symmetric(random_graph(90, 700, 4))
    monkeypatch.setattr(orienting, "FEW", 8)
    monkeypatch.setattr(orienting, "SHORT", 15)
    edges = upward(*operands(a), grid=SMALL)
    size, degree = np.asarray(edges.rows).reshape(-1, 2)[:, 1], np.diff(a.indptr)
    few = (size <= 8) & (degree <= 15)
    whole, end = np.asarray(edges.big), len(edges.big)
    for word, listed in ((NUMBER, ~few), (MEDIUM, few)):
        number = int(edges.totals[word])
        found = whole[:number] if word == NUMBER else whole[end - number :]
        assert sorted(found) == np.flatnonzero((size >= 3) & listed).tolist() != []


@pytest.mark.parametrize("name", GRAPHS)
def test_trusses(name):
    check_truss(symmetric(GRAPHS[name]), SMALL, spare=3)


def test_trusses_of_cliques_in_a_chain():
    """Peeled from both ends, round by round; the cliques stay."""
    a = sp.lil_array((60, 60), dtype=int)
    for i in range(58):
        a[i, i + 1] = a[i, i + 2] = 1
    a[20:26, 20:26] = a[40:45, 40:45] = 1
    a = without_loops(sp.csr_array(a + a.T != 0, dtype=int))
    a.sort_indices()
    check_truss(a, SMALL)


@pytest.mark.parametrize("kind", ["A100", "H100", "H200", "B200"])
def test_two_launches(kind):
    graph = tuple(map(jnp.asarray, ring(256)))

    def all_of_truss(indptr, indices, edges):
        counts = triangles_of_edges(indptr, indices, edges)
        return truss(indptr, indices, indices, counts, jnp.int32(2))

    text = lower(lambda *g: all_of_truss(*g, upward(*g)), *graph, mesh=gpus(1, kind))
    assert text.count("custom_call @mosaic_gpu") == 3
    for count in (triangles, triangles_of_vertices):
        text = lower(lambda *g, f=count: f(*g, upward(*g)), *graph, mesh=gpus(1, kind))
        assert text.count("custom_call @mosaic_gpu") == 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", NATIVE)
def test_native(name):
    for _ in range(5):
        check(symmetric(NATIVE[name]))
        check_truss(symmetric(NATIVE[name]))
