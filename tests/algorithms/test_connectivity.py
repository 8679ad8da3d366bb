"""Strong components and cores against SciPy and NetworkX."""

import functools

import jax
import networkx
import numpy as np
import pytest
from graph_cases import BACKENDS, named, networkx_of, random_matrix
from hypothesis import given
from strategies import edges

import jaxspv as jsp
from jaxspv import verify
from jaxspv.algorithms import strong_components as strong
from pallas_kernels import strong as kernels
from pallas_kernels.simt.device import Grid
from tests.kernels.warps_apart import gridded


@given(edges((9, 9), 24))
def test_strong_components_of_random_graphs(ends):
    A = jsp.from_edges(*ends, shape=(9, 9), nse=24)
    for backend in BACKENDS:
        verify.strong_components(A, jsp.strongly_connected_components(A, backend=backend))


@pytest.mark.parametrize("n, entries", [(200, 260), (60, 400), (300, 200)])
def test_strong_components_of_larger_ones(n, entries):
    A = jsp.from_scipy(random_matrix(n, entries, n))
    H = jsp.pad(A, n=400, nse=600)
    for backend in BACKENDS:
        found = jsp.strongly_connected_components(H, backend=backend)
        assert (found.labels[n:] == -1).all()
        verify.strong_components(A, jsp.unpad(found, H))


@pytest.mark.parametrize("prepared", [False, True])
def test_strong_components_by_the_kernel(monkeypatch, prepared):
    """What stands around the kernel: padded matrices, in-edges made or prepared, ghosts."""
    kernel = functools.partial(gridded(kernels.strong), grid=Grid(2, 64, True))
    monkeypatch.setattr(kernels, "strong", kernel)
    A = jsp.from_scipy(random_matrix(150, 260, 3))
    H = jsp.pad(A, n=170, nse=300)
    G = jsp.prepare(H, for_=()) if prepared else strong.as_graph(H, "test", ())
    found = jax.jit(strong._signatures)(G)
    assert (found.labels[150:] == -1).all()
    verify.strong_components(A, jsp.unpad(found, H))


@pytest.mark.parametrize("kind", ["path", "cycle", "nothing", "no vertices"])
def test_strong_components_at_the_edge(kind):
    n = {"no vertices": 0}.get(kind, 7)
    tail = np.arange({"path": 6, "cycle": 7}.get(kind, 0))
    A = jsp.from_edges(tail, (tail + 1) % 7, shape=(n, n))
    for backend in BACKENDS:
        found = jsp.strongly_connected_components(A, backend=backend)
        assert int(found.count) == {"cycle": 1, "no vertices": 0}.get(kind, 7)


def test_strong_components_traced():
    A = jsp.from_scipy(random_matrix(20, 40, 5))
    found = jax.jit(jsp.strongly_connected_components)(A)
    verify.strong_components(A, found)
    both = jax.vmap(lambda d: jsp.strongly_connected_components(A.with_data(d)).labels)(
        np.ones((2, A.nse), np.float32)
    )
    np.testing.assert_array_equal(both[1], found.labels)


@pytest.mark.parametrize("name", ["karate", "wiki-Vote", "cnr-2000"])
def test_real_graphs(name):
    A = named(name)
    verify.strong_components(A, jsp.strongly_connected_components(A))
    A = named(name, symmetric=True)
    if name != "cnr-2000":
        for backend in BACKENDS:
            verify.cores(A, jsp.core_number(A, backend=backend))


@pytest.mark.parametrize("entries", [0, 40, 200])
def test_cores_are_those_of_networkx(entries):
    A = random_matrix(30, entries, entries, symmetric=True)
    g = networkx_of(A, symmetric=True)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    want = networkx.core_number(g)
    H = jsp.pad(jsp.from_scipy(A), n=40, nse=500)
    for backend in BACKENDS:
        found = jsp.core_number(H, backend=backend)
        assert found.cores.tolist() == [*want.values()] + 10 * [0]
        for k in (None, 1, 2):
            core = jsp.k_core(H, k, backend=backend).to_scipy().tocoo()
            want_core = networkx.k_core(g, k)
            off = core.row != core.col
            assert off.sum() == 2 * want_core.number_of_edges()


def test_wrong_results_are_caught():
    A = named("karate")
    found = jsp.core_number(A)
    with pytest.raises(AssertionError, match="core number of vertex 9"):
        verify.cores(A, found._replace(cores=found.cores.at[9].add(1)))
    parts = jsp.strongly_connected_components(A)
    with pytest.raises(AssertionError, match="label of vertex 9"):
        verify.strong_components(A, parts._replace(labels=parts.labels.at[9].set(9)))
    with pytest.raises(ValueError, match="core_number is of undirected graphs"):
        jsp.core_number(jsp.from_edges([0], [1], shape=(2, 2)))


@pytest.mark.parametrize("kind", ["tree", "odd", "directed", "loop"])
def test_two_sides(kind):
    n = 12
    if kind == "odd":
        g = networkx.disjoint_union(networkx.cycle_graph(5), networkx.path_graph(7))
    else:
        g = networkx.disjoint_union(networkx.cycle_graph(6), networkx.path_graph(6))
    if kind == "loop":
        g.add_edge(3, 3)
    rows, cols = zip(*g.edges, strict=True)
    A = jsp.from_edges(rows, cols, shape=(n, n), nse=20)
    if kind == "tree":
        A = jsp.from_networkx(g)
    H = jsp.pad(A, n=15, nse=40)
    for graph in (A, H):
        found = jax.jit(jsp.bipartition)(graph)
        assert bool(found.bipartite) == networkx.is_bipartite(g) == bool(jsp.is_bipartite(graph))
        for part in networkx.connected_components(g):
            inside = g.subgraph(part)
            sides = [int(found.sides[v]) for v in sorted(part)]
            if networkx.is_bipartite(inside):
                color = networkx.bipartite.color(inside)
                flip = color[min(part)]
                assert sides == [color[v] ^ flip for v in sorted(part)]
            else:
                assert set(sides) == {-1}
    assert (found.sides[n:] == -1).all()


def test_cores_of_any_k():
    """NetworkX's, of numbers that int32 does not hold too; what is no integer is refused."""
    A, g = named("karate"), networkx.karate_club_graph()
    for k in (0, 3, 4, 5, 2**31, np.int64(2**32 + 1)):
        assert int(jsp.k_core(A, k).count) == 2 * networkx.k_core(g, int(k)).number_of_edges()
    for wrong, error in ((1.5, TypeError), (-1, ValueError)):
        with pytest.raises(error, match="`k` must"):
            jsp.k_core(A, wrong)
