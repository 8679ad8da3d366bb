"""Narrow bands against SciPy's, certificates of orders; histograms of degrees."""

import jax
import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from graph_cases import named, networkx_of, random_matrix

import jaxspv as jsp
from jaxspv import verify


def bandwidth(A, order):
    place = np.argsort(np.asarray(order))
    A = sp.coo_array(A)
    return int(abs(place[A.row] - place[A.col]).max(initial=0))


@pytest.mark.parametrize(
    "name", ["karate", "minnesota", "jazz", "delaunay_n13", "bcsstk13", "usroads-48"]
)
def test_bands_are_as_narrow_as_those_of_scipy(name):
    A = named(name, symmetric=True)
    order = jsp.reverse_cuthill_mckee(A)
    verify.cuthill_mckee(A, order)
    matrix = A.to_scipy()
    theirs = sp.csgraph.reverse_cuthill_mckee(matrix, symmetric_mode=True)
    assert bandwidth(matrix, order) <= 1.1 * bandwidth(matrix, theirs)


@pytest.mark.parametrize("entries", [0, 40, 150])
def test_orders_of_random_graphs(entries):
    A = random_matrix(40, entries, entries, symmetric=True)
    H = jsp.pad(jsp.from_scipy(A), n=44, nse=320)
    orders = [jsp.reverse_cuthill_mckee(H, backend=b).tolist() for b in ("cpu", "xla")]
    assert orders[0] == orders[1] and orders[0][40:] == 4 * [44]
    verify.cuthill_mckee(A, orders[0][:40])
    many = jax.jit(jax.vmap(lambda d: jsp.reverse_cuthill_mckee(H.with_data(d))))
    assert many(np.ones((2, 320), np.float32)).tolist() == 2 * [orders[0]]


def test_what_an_order_must_be():
    A = named("karate")
    order = np.asarray(jsp.reverse_cuthill_mckee(A))
    for wrong, text in (
        (np.arange(34), "roots of 1 components"),
        (np.zeros(34, int), "no permutation"),
        (np.r_[order[1], order[0], order[2:]], "order behind its neighbour"),
    ):
        with pytest.raises(AssertionError, match=text):
            verify.cuthill_mckee(A, wrong)
    with pytest.raises(ValueError, match="reverse_cuthill_mckee is of undirected graphs"):
        jsp.reverse_cuthill_mckee(jsp.from_edges([0], [1], shape=(2, 2)))
    assert jsp.reverse_cuthill_mckee(jsp.from_edges([], [], shape=(0, 0))).shape == (0,)


def test_histograms_are_those_of_networkx():
    A = random_matrix(30, 90, 0, loops=False)
    H = jsp.pad(jsp.from_scipy(A), n=36, nse=128)
    g = networkx_of(A, symmetric=False)
    sides = {"out": g.out_degree, "in": g.in_degree, "both": g.degree}
    for side, degrees in sides.items():
        want = np.bincount([d for _, d in degrees], minlength=20)
        assert jsp.degree_histogram(H, side=side)[:20].tolist() == want.tolist()
        few = jsp.degree_histogram(H, 3, side=side)
        assert few.tolist() == [*want[:2].tolist(), want[2:].sum()]
    G = random_matrix(30, 60, 1, symmetric=True, loops=False)
    want = networkx.degree_histogram(networkx_of(G, symmetric=True))
    assert jsp.degree_histogram(jsp.from_scipy(G), len(want)).tolist() == want
    with pytest.raises(ValueError, match="positive integer"):
        jsp.degree_histogram(H, 0)
    with pytest.raises(ValueError, match="at most 2147483647"):
        jsp.degree_histogram(H, 2**40)
    with pytest.raises(ValueError, match="`side`"):
        jsp.degree_histogram(H, side="up")
