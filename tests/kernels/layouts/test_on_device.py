"""`prepare` as on a GPU, run on a CPU: the same graph, and layouts that kernels take."""

import dataclasses
import importlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv._core.eager import arrays
from jaxspv.algorithms.common import edges
from jaxspv.formats.csr import known_symmetric
from pallas_kernels.layouts import adjacency, ragged, sliced_rows
from tests.kernels.layouts import numpy_layouts

MODULES = (
    "_core.eager.arrays",
    "graph",
    "algorithms.bfs.api",
    "algorithms.pagerank.layout",
    "algorithms.sssp.layout",
    "algorithms.fixpoint.layout",
)


def matrix(kind, seed=0):
    """Directed, symmetric, or of low degree: a road of a few crossings."""
    rng = np.random.default_rng(seed)
    n = 300
    if kind == "low_degree":
        ends = np.arange(n - 1)
        a, b = np.append(ends, [3, 7, 90]), np.append(ends + 1, [50, 200, 140])
    else:
        a, b = rng.integers(0, n, (2, 3000))
    weights = rng.integers(1, 9, len(a)).astype(np.float32)
    A = sp.coo_array((weights, (a, b)), shape=(n, n)).tocsr()
    A = A if kind == "directed" else (A + A.T).tocsr()
    A = jsp.from_scipy(A)
    data = jnp.append(A.data, jnp.full(17, jnp.nan))
    return dataclasses.replace(A, data=data, indices=jnp.append(A.indices, jnp.full(17, n)))


@pytest.fixture(params=[0, 1 << 16], ids=["programs", "numpy"])
def on_gpu(monkeypatch, request):
    """As on a GPU: large graphs by programs, small ones by NumPy."""
    monkeypatch.setattr(arrays, "SMALL", request.param)
    for name in MODULES:
        monkeypatch.setattr(importlib.import_module(f"jaxspv.{name}"), "on_gpu", lambda _: True)


@pytest.mark.parametrize("kind", ["directed", "symmetric", "low_degree"])
def test_graph_and_layouts(kind, on_gpu):
    A = matrix(kind)
    G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank", "fixpoint"))
    assert G.symmetric == (kind != "directed")
    S = A.to_scipy()
    T = sp.csr_array(S.T.tocsr())
    T.sort_indices()
    assert (abs(G.inn.to_scipy() - T)).nnz == 0
    pull = () if G.symmetric else (T.indptr, T.indices)
    want = numpy_layouts.prepare_bfs(S.indptr, S.indices, *pull)
    for name, array in want.items():
        np.testing.assert_array_equal(G.layouts["bfs"]["pallas"][name][: len(array)], array)
    want = numpy_layouts.prepare_sssp(S.indptr, S.indices, S.data, renumber=True)
    assert sorted(G.layouts["sssp"]["pallas"]) == sorted(want)
    for name, array in want.items():
        np.testing.assert_array_equal(G.layouts["sssp"]["pallas"][name][: len(array)], array)
    widths = jsp.prepare(A, for_="sssp").layouts["sssp"]["widths"]
    np.testing.assert_allclose(G.layouts["sssp"]["widths"], widths, rtol=1e-6)
    for purpose in ("pagerank", "fixpoint"):
        kernel = G.layouts[purpose].kernel
        assert int((np.asarray(kernel["entries"]) < A.shape[0]).sum()) == S.nnz
        np.testing.assert_allclose(kernel["values"].sum(), S.data.sum())


def leaves_by(monkeypatch, caplog, small, A):
    """The arrays of a graph prepared by programs or by NumPy, and how many programs these were."""
    monkeypatch.setattr(arrays, "SMALL", small)
    jax.clear_caches()
    caplog.clear()
    with jax.log_compiles():
        G = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
    compiled = sum("Finished XLA compilation" in each.message for each in caplog.records)
    return jax.tree.leaves_with_path(G), compiled


@pytest.mark.parametrize("kind", ["directed", "symmetric", "low_degree"])
@pytest.mark.parametrize("ones", [False, True])
@pytest.mark.parametrize("on_gpu", [0], indirect=True, ids=["both"])
def test_numpy_prepares_as_programs_do(kind, ones, on_gpu, monkeypatch, caplog):
    """Every array of the graph, and no program is compiled for it."""
    monkeypatch.setattr("jaxspv.ops.products.row_layouts.layout.on_gpu", lambda _: True)
    A = matrix(kind).check_invariants()
    A = A.with_data(jnp.where(jnp.isnan(A.data), A.data, 1)) if ones else A
    want, programs = leaves_by(monkeypatch, caplog, 0, A)
    found, fewer = leaves_by(monkeypatch, caplog, 1 << 16, A)
    assert programs > 5
    assert fewer == 0
    assert [path for path, _ in found] == [path for path, _ in want]
    for (path, one), (_, other) in zip(found, want, strict=True):
        assert isinstance(one, jax.Array), path
        assert one.dtype == other.dtype, path
        np.testing.assert_allclose(one, other, rtol=1e-6, err_msg=str(path))


def test_weights_are_checked(on_gpu):
    A = matrix("directed")
    for bad, purpose in ((np.nan, "sssp"), (-1.0, "pagerank"), (np.nan, "pagerank")):
        with pytest.raises(ValueError, match="slot 5|in slot 5"):
            jsp.prepare(A.with_data(A.data.at[5].set(bad)), for_=purpose)
    count = int(A.count)
    padding = A.with_data(A.data.at[count:].set(jnp.nan))
    jsp.prepare(padding, for_=("sssp", "pagerank"))


def test_results_do_not_depend_on_the_device(on_gpu, monkeypatch):
    A = matrix("directed")
    here = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
    monkeypatch.undo()
    valid = jsp.prepare(A, for_=("bfs", "sssp", "pagerank"))
    for run in (lambda G: jsp.bfs(G, 3).levels, lambda G: jsp.sssp(G, 3).distances):
        np.testing.assert_array_equal(run(here), run(valid))
    np.testing.assert_allclose(jsp.pagerank(here).scores, jsp.pagerank(valid).scores, rtol=1e-5)
    assert jax.tree.structure(here.inn) == jax.tree.structure(valid.inn)


def test_symmetry_by_bisection(on_gpu, monkeypatch):
    """As SciPy says, in pieces too: pattern, values, NaN as equal to NaN, padding left out."""
    rng = np.random.default_rng(3)
    n, capacity = 12, 144
    for case in range(60):
        monkeypatch.setattr(ragged, "LEAST", capacity - case // 30)
        M = np.zeros((n, n), np.float32)
        k = int(rng.integers(0, 60))
        M[rng.integers(0, n, k), rng.integers(0, n, k)] = rng.integers(1, 5, k)
        if case % 2:
            M = np.maximum(M, M.T)
        if case % 4 == 3:
            M[0, n - 1] = M[n - 1, 0] = np.nan
        if case % 8 == 5:
            M[0, n - 1] += 1
        A = jsp.from_scipy(sp.csr_array(M))
        more = capacity - A.nse
        data = np.append(A.data, np.arange(more, dtype=np.float32))
        indices = np.append(A.indices, np.full(more, n, np.int32))
        A = dataclasses.replace(A, data=jnp.asarray(data), indices=jnp.asarray(indices))
        want = np.array_equal(M, M.T, equal_nan=True)
        assert known_symmetric(A) == want
        graph = jsp.Graph(A)
        assert edges.is_undirected(graph) == np.array_equal(M != 0, M.T != 0)
        assert edges.is_undirected(graph, values=True) == want
        rounded = jsp.Graph(A.with_data(A.data.at[0].multiply(1 + 1e-7)))
        assert edges.is_undirected(rounded, values=True) == want


def test_rows_are_sorted_in_pieces(monkeypatch):
    A = matrix("directed").to_scipy()
    T = sp.csr_array(A.T.tocsr())
    arrays = [jnp.asarray(x) for x in (T.indptr, T.indices, A.indptr)]
    widest = int(np.diff(T.indptr).max())
    whole = adjacency.likely_parents(*arrays, widest=widest)
    for least in (1, 700):
        monkeypatch.setattr(ragged, "LEAST", least)
        parts = adjacency.likely_parents(*arrays, widest=widest)
        for name, array in whole.items():
            np.testing.assert_array_equal(parts[name], array)


def test_entries_are_placed_in_pieces(monkeypatch):
    A = matrix("symmetric").to_scipy()
    graph = [jnp.asarray(x) for x in (A.indptr, A.indices, A.data)]
    whole = sliced_rows.prepare_pagerank(*graph)
    monkeypatch.setattr(ragged, "LEAST", 1)
    jax.clear_caches()
    for name, array in sliced_rows.prepare_pagerank(*graph).items():
        np.testing.assert_array_equal(array, whole[name])
    jax.clear_caches()
