"""The TileBFS kernel, interpreted, against SciPy: each way through a level, both directions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from graph_files import graph_files

import jaxspv as jsp
from jaxspv import verify
from jaxspv.formats import BitTiled
from pallas_kernels.bfs import tile_levels
from pallas_kernels.bfs.tile import Search, Side, tile_bfs
from pallas_kernels.simt.device import Grid
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, NATIVE, oracle, random_graph
from tests.kernels.test_lowering import lower
from tests.kernels.warps_apart import DEFAULT_GRID, gridded

tile_bfs = gridded(tile_bfs)

RULE = jsp.TileRule()
HOST = {"grid": Grid(2, 64, interpret=True)}
WAYS = {
    "csc": jsp.TileRule(("push_csc",)),
    "csr": jsp.TileRule(("push_csc", "push_csr"), push_csr_above=0.0),
    "pull": jsp.TileRule(push_csr_above=2.0, pull_below=1.0),
    "rule": jsp.TileRule(push_csr_above=0.05, pull_below=0.3),
}


def sides(graph, nt, limit=0):
    n = len(graph[0]) - 1
    A = sp.csr_array((np.ones(len(graph[1]), np.float32), graph[1], graph[0]), shape=(n, n))
    B = BitTiled.from_coo(jsp.from_scipy(A).to_coo(), nt=nt, sparse_tile=limit)
    return tuple(
        Side(w.tile_ptr, w.tile_minor, w.words, w.rest_ptr, w.rest_minor)
        for w in (B.by_row, B.by_column)
    )


def searcher(graph, nt, limit, rule=RULE, grid=DEFAULT_GRID, **options):
    search = Search(len(graph[0]) - 1, nt, rule, **options)
    f = functools.partial(tile_bfs, search=search, grid=grid)
    return functools.partial(jax.jit(f), *sides(graph, nt, limit))


def check(graph, source, out):
    levels, num_levels, status, _ = out
    want = oracle(*graph, source) if 0 <= source < len(graph[0]) - 1 else -1 + 0 * graph[0][1:]
    assert status == 0
    np.testing.assert_array_equal(levels, want)
    assert num_levels == want.max() + 1


@pytest.mark.parametrize("name", GRAPHS)
def test_named_graphs(name):
    graph = GRAPHS[name]
    search = searcher(graph, 32, 0, rule=WAYS["rule"], **HOST)
    for source in (0, len(graph[0]) - 2, -1):
        check(graph, source, search(jnp.int32(source)))


@pytest.mark.parametrize("limit", [0, 1, 100])
@pytest.mark.parametrize("nt", [32, 64])
@pytest.mark.parametrize("way", WAYS)
def test_directed_with_a_remainder(way, nt, limit):
    for edges in (150, 700):
        graph = random_graph(300, edges, edges, symmetric=False)
        search = searcher(graph, nt, limit, rule=WAYS[way], **HOST)
        for source in (0, 17):
            check(graph, source, search(jnp.int32(source)))


@pytest.mark.parametrize("way", WAYS)
def test_a_directed_path_is_walked_one_way(way):
    n = 150
    for step in (1, -1):
        A = sp.diags_array([np.ones(n - 1)], offsets=[step], shape=(n, n)).tocsr()
        graph = A.indptr.astype(np.int32), A.indices.astype(np.int32)
        search = searcher(graph, 32, 0, rule=WAYS[way], **HOST)
        for source in (0, 70, n - 1):
            levels = np.asarray(search(jnp.int32(source))[0])
            distance = (np.arange(n) - source) * step
            np.testing.assert_array_equal(levels, np.where(distance >= 0, distance, -1))


@pytest.mark.parametrize("way", ["csr", "pull"])
@pytest.mark.parametrize("capacity", [1024, 1])
def test_long_lines_of_tiles_are_shared(monkeypatch, way, capacity):
    monkeypatch.setattr(tile_levels, "SPLIT", 2)
    monkeypatch.setattr(tile_levels, "LISTED", capacity)
    monkeypatch.setattr("pallas_kernels.bfs.tile.LISTED", capacity)
    graph = random_graph(400, 900, 3)
    check(graph, 5, searcher(graph, 32, 0, rule=WAYS[way], **HOST)(jnp.int32(5)))


def test_targets_and_trace():
    graph = random_graph(300, 400, 8)
    source = int(np.argmax(np.diff(graph[0])))
    want = oracle(*graph, source)
    target = int(np.argmax(want == 3))
    assert want[target] == 3

    def stop(level, reached, unchanged):
        return reached[0] & ~reached[1]

    search = searcher(graph, 32, 0, stop=stop, trace=8, **HOST)
    levels, num_levels, status, trace = search(jnp.int32(source), targets=jnp.asarray([target, -1]))
    assert status == 0 and num_levels == 4
    np.testing.assert_array_equal(levels, np.where(want <= 3, want, -1))
    assert trace[:4, 0].tolist() == [0, 1, 2, -1]
    assert trace[:3, 1].tolist() == [(want == k).sum() for k in range(3)]


def test_bad_arguments_are_named():
    graph = random_graph(40, 40, 1)
    with pytest.raises(ValueError, match="`nt` must be 32 or 64; got 16"):
        tile_bfs(*sides(graph, 32), jnp.int32(0), Search(40, 16, RULE))
    with pytest.raises(ValueError, match="with push_csc; got"):
        jsp.TileRule(("push_csr", "pull_csc"))


@pytest.mark.parametrize("nt", [32, 64])
def test_one_launch(nt):
    graph = random_graph(200, 400, 1)
    search = Search(200, nt, RULE, trace=4, stop=lambda level, reached, unchanged: level >= 3)
    f = functools.partial(tile_bfs, search=search)
    text = lower(f, *sides(graph, nt, 1), jnp.int32(0))
    assert text.count("custom_call @mosaic_gpu") == 1


@pytest.mark.gpu
@pytest.mark.parametrize("nt", [32, 64])
@pytest.mark.parametrize("way", WAYS)
def test_native(way, nt):
    large = random_graph(20_000, 60_000, 1, symmetric=False), random_graph(20_000, 400_000, 2)
    cases = (NATIVE["any degree"], 0), (NATIVE["any degree"], 2), (large[0], 2), (large[1], 0)
    for graph, limit in cases:
        search = searcher(graph, nt, limit, rule=WAYS[way])
        n = len(graph[0]) - 1
        for source in range(0, n, n // 12):
            for _ in range(3):
                check(graph, source, search(jnp.int32(source)))


FILES = graph_files() or [pytest.param(None, marks=pytest.mark.skip("no real graphs here"))]


@pytest.mark.gpu
@pytest.mark.parametrize("path", FILES, ids=lambda p: p and p.name.split(".")[0])
def test_native_real_graphs(path):
    """By tiles of bits, and one product by columns and by tiles against SciPy."""
    A = jsp.read_mtx(path)
    A = A if A.dtype == np.float32 else A.astype(jnp.float32)
    m, n = A.shape
    if m == n:
        verify.bfs(A, 0, jsp.bfs(A.asformat("bittiled"), 0))
    places = np.arange(0, n, 37, dtype=np.int32)
    x = jsp.vector_from_entries(places, np.ones(len(places), np.float32), n)
    host = A.to_scipy()
    want, scale = host @ np.asarray(x.todense()), abs(host) @ np.ones(n, np.float32)
    stored = abs(host).astype(bool).astype(np.int32) @ np.asarray(x.structure(), np.int32)
    for format in ("csc", "tiled"):
        y = jsp.mxv(A.asformat(format), x)
        assert int(y.count) >= (stored > 0).sum() and not bool(y.overflow)
        assert (np.abs(np.asarray(y.todense()) - want) <= 1e-5 * scale).all()
