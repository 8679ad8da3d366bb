"""Layouts by XLA and by NumPy against an oracle of its own, padded and rounded ones too."""

import jax.numpy as jnp
import numpy as np
import pytest

from pallas_kernels.layouts.adjacency import prepare_bfs
from pallas_kernels.layouts.lengths import prepare_sssp
from pallas_kernels.layouts.sliced_rows import prepare_pagerank, weights_of_vertices
from tests.kernels.bfs.test_bfs_kernel import GRAPHS, csr, random_graph, transpose
from tests.kernels.layouts import numpy_layouts

MORE = {
    "many components": csr(400, [(2 * i, 2 * i + 1) for i in range(200)]),
    "short and long rows": csr(
        300, [(i, i + j) for i in range(0, 270, 30) for j in range(1, 21)] + [(299, 5)]
    ),
    "long rows": csr(500, [(i % 3, i) for i in range(500)] + [(7, i) for i in range(90)]),
    "directed": random_graph(200, 1500, 3, symmetric=False),
}
NAMES = [*GRAPHS, *MORE]


@pytest.fixture(params=[np, jnp], ids=["numpy", "xla"])
def xp(request):
    """The module whose arrays are prepared."""
    return request.param


def graph_of(name):
    return (GRAPHS | MORE)[name]


def rounded(count):
    return -(-count // 7) * 7 + 3


def padded(indptr, indices, more=13):
    n = len(indptr) - 1
    return indptr, np.append(indices, np.full(more, n)).astype(np.int32)


def by(xp, prepare):
    """`prepare` of these arrays as arrays of a module, whose kind the results are."""

    def run(*arrays, **options):
        found = prepare(*map(xp.asarray, arrays), **options)
        assert all(isinstance(array, type(xp.zeros(1))) for array in found.values())
        return found

    return run


def same(found, wanted):
    assert sorted(found) == sorted(wanted)
    for name, array in wanted.items():
        np.testing.assert_array_equal(found[name], array, err_msg=name)
        assert found[name].dtype == array.dtype, name


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("renumber", [False, True])
def test_bfs_and_sssp(name, renumber, xp):
    graph = graph_of(name)
    bfs, sssp = by(xp, prepare_bfs), by(xp, prepare_sssp)
    reverse = () if name != "directed" else transpose(*graph)
    same(bfs(*graph, *reverse), numpy_layouts.prepare_bfs(*graph, *reverse))
    weights = np.random.default_rng(0).random(len(graph[1])).astype(np.float32)
    want = numpy_layouts.prepare_sssp(*graph, weights, renumber=renumber)
    same(sssp(*graph, weights, renumber=renumber), want)
    n = len(graph[0]) - 1
    found = sssp(
        *padded(*graph),
        np.append(weights, np.full(13, np.nan, np.float32)),
        renumber=renumber,
        rounded=rounded,
    )
    assert sorted(found) == sorted(want)
    valid = None
    for key, array in want.items():
        table = np.asarray(found[key])
        if key == "adjacency":
            valid = (array >= 0) & (array < n)
            assert (table[len(array) :] == n).all()
        if key == "lengths":  # what stands where there is no neighbour is never looked at
            table, array = np.where(valid, table[: len(array)], 0), np.where(valid, array, 0)
        np.testing.assert_array_equal(table[: len(array)], array)
    found = bfs(*padded(*graph), *(padded(*reverse) if reverse else ()))
    for key, array in numpy_layouts.prepare_bfs(*graph, *reverse).items():
        np.testing.assert_array_equal(found[key][: len(array)], array)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("order", ["degree", "breadth_first"])
@pytest.mark.parametrize("thread_row", [None, 4])
def test_sliced_rows(name, order, thread_row, xp):
    graph, prepare = graph_of(name), by(xp, prepare_pagerank)
    weights = np.random.default_rng(0).random(len(graph[1])).astype(np.float32)
    options = {"order": order, "thread_row": thread_row}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pallas_kernels.layouts.sliced_rows.SEGMENTS", (16, 16))
        want = numpy_layouts.prepare_pagerank(*graph, weights, **options)
        same(prepare(*graph, weights, **options), want)
        found = prepare(*padded(*graph), weights, rounded=rounded, **options)
    n = len(graph[0]) - 1
    assert rows_of(found, n) == rows_of(want, n)
    assert len(found["entries"]) == rounded(len(want["entries"]))
    spare = np.asarray(found["items"])[len(want["items"]) :]
    if len(want["items"]):
        assert (spare[:, :2] == 0).all() and (spare[:, 3] == -1).all()
        assert (np.asarray(found["vertices"])[spare[:, 2]] == n).all()


def rows_of(prepared, n):
    """vertex -> (number, entries and values) as the kernel reads them."""
    p = {name: np.asarray(array) for name, array in prepared.items()}
    slices, rows = len(p["starts"]) - 1, {}
    base = len(p["vertices"]) - 32 * slices
    for start, end, position, _ in p["items"]:
        rows.setdefault(position, []).extend(range(start, end))
    for s in range(slices):
        for lane in range(32):
            rows[base + 32 * s + lane] = range(p["starts"][s] + lane, p["starts"][s + 1], 32)
    found = {}
    for position, vertex in enumerate(p["vertices"]):
        at = [e for e in rows.get(position, ()) if p["entries"][e] < n]
        found[int(vertex)] = (
            int(p["numbers"][position]),
            sorted(zip(p["entries"][at].tolist(), p["values"][at].tolist(), strict=True)),
        )
    return {v: row for v, row in found.items() if v < n}


@pytest.mark.parametrize("dtype", [np.float32, np.int32])
def test_one_weight_a_vertex(dtype, xp):
    graph = MORE["directed"]
    degree = np.diff(graph[0])
    own = np.random.default_rng(0).integers(1, 9, len(degree)).astype(dtype)
    weights = np.repeat(own, degree)
    want = numpy_layouts.weights_of_vertices(graph[0], weights)
    indptr = xp.asarray(graph[0])
    np.testing.assert_array_equal(weights_of_vertices(indptr, xp.asarray(weights)), want)
    padding = xp.asarray(np.append(weights, np.asarray([77, 78], dtype)))
    np.testing.assert_array_equal(weights_of_vertices(indptr, padding), want)
    weights[graph[0][np.flatnonzero(degree > 1)[0]]] += 1
    assert weights_of_vertices(indptr, xp.asarray(weights)) is None
