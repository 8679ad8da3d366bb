"""Values in the order of the edges that a matrix was made of never land silently elsewhere."""

import pickle

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
import scipy.sparse
from jax.experimental import sparse

import jaxspv as jsp
from jaxspv.formats import FORMATS

ROW, COL = np.array([3, 0, 2, 0, 1]), np.array([1, 2, 2, 0, 3])
W = np.array([1.0, 2.0, 3.0, 4.0, 5.0], np.float32)
SHAPE = (4, 4)


def dense(values, row=ROW, col=COL, shape=SHAPE):
    D = np.zeros(shape, np.float32)
    np.add.at(D, (row, col), values)
    return D


def loss(M):
    x = jnp.arange(1.0, 5.0)
    return jnp.sum((M @ x) * x**2)


SLOPE = (COL + 1.0) * (ROW + 1.0) ** 2  # of `loss` by each edge


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_the_obvious_code_is_refused_and_told_what_is_right(format):
    A = jsp.from_edges(ROW, COL, W, shape=SHAPE, format=format)
    ways = (
        lambda w: loss(A.with_data(w)),
        jax.grad(lambda w: loss(A.with_data(w))),
        jax.jit(lambda w: loss(A.with_data(w))),
        lambda w: jax.jit(lambda M, w: loss(M.with_data(w)))(A, w),
        lambda w: A.T.with_data(w),
        lambda w: A.asformat("csc").with_data(w),
    )
    if format not in ("ell", "sell"):  # of these `prepare` keeps the entries alone
        ways = (*ways, lambda w: jsp.prepare(A).with_data(w))
    for way in ways:
        with pytest.raises(ValueError, match=r"`with_edge_data\((values|data)\)`"):
            way(jnp.asarray(W))
    assert A.with_data(2 * A.data).todense().tolist() == dense(2 * W).tolist()


def test_a_matrix_made_under_jit_refuses_it_too():
    A = jax.jit(lambda r, c: jsp.from_edges(r, c, shape=SHAPE))(ROW, COL)
    with pytest.raises(ValueError, match="with_edge_data"):
        A.with_data(W)


def test_no_slot_is_spared_where_it_says_nothing():
    """In order, with repeated edges, or where the slots are asked for."""
    order = np.lexsort((COL, ROW))
    sorted_edges = jsp.from_edges(ROW[order], COL[order], W[order], shape=SHAPE)
    assert sorted_edges.nse == 5
    np.testing.assert_array_equal(sorted_edges.with_data(W).todense()[ROW[order], COL[order]], W)
    assert jsp.from_edges(ROW, COL, W, shape=SHAPE, return_slots=True)[0].nse == 5
    assert jsp.from_edges([1, 0, 1], [1, 0, 1], shape=(2, 2)).nse == 2


@pytest.mark.parametrize("format", sorted(FORMATS))
@pytest.mark.parametrize("nse", [None, 5, 9])
def test_values_of_edges_find_their_places(format, nse):
    A = jsp.from_edges(ROW, COL, W, shape=SHAPE, format=format, nse=nse)
    new = jnp.asarray(W[::-1] * 10)
    want = dense(W[::-1] * 10)
    np.testing.assert_array_equal(A.with_edge_data(new).todense(), want)
    moved = A.asformat("csc").asformat("coo").with_edge_data(new)
    np.testing.assert_array_equal(moved.todense(), want)
    np.testing.assert_array_equal(A.astype(jnp.int32).with_edge_data(new).todense(), want)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(A)).with_edge_data(new).todense(), want)
    batch = jax.vmap(lambda w: A.with_edge_data(w).todense())(jnp.stack([W, new]))
    np.testing.assert_array_equal(batch, [dense(W), want])
    for slope in (jax.grad, lambda f: jax.jit(jax.grad(f)), jax.jacfwd):
        np.testing.assert_allclose(slope(lambda w: loss(A.with_edge_data(w)))(new), SLOPE)


def test_as_many_slots_as_edges_by_request_are_refused_as_ambiguous():
    A = jsp.from_edges(ROW, COL, W, shape=SHAPE, nse=5)
    with pytest.raises(ValueError, match="may be meant two ways.*with_edge_data"):
        A.with_data(W)
    with pytest.raises(ValueError, match=r"shape \(5,\).*got \(3,\)"):
        A.with_data(W[:3])
    kept = A.with_edge_data(jnp.arange(A.nse), A.data)
    np.testing.assert_array_equal(kept.todense(), dense(W))


def test_slots_that_are_in_the_order_of_the_edges_again():
    graph = networkx.DiGraph([("a", "b"), ("b", "c"), ("c", "a")])
    A = jsp.from_networkx(graph, format="csr")
    assert A.nse == 3
    for M in (
        A,
        A.tocoo(),
        A.asformat("csc").tocoo(),
        pickle.loads(pickle.dumps(A.tocsc())).tocsr(),
    ):
        assert M.with_data(jnp.arange(3.0)).todense().tolist() == [[0, 0, 0], [0, 0, 1], [2, 0, 0]]


def test_repeated_edges_are_joined_as_asked():
    row, col = np.array([1, 0, 1, 1]), np.array([0, 1, 0, 1])
    A = jsp.from_edges(row, col, shape=(2, 2))
    w = jnp.array([1.0, 2.0, 4.0, 8.0])
    assert A.with_edge_data(w).todense().tolist() == [[0, 2], [5, 8]]
    assert A.with_edge_data(w, dup=jsp.monoids.max_).todense().tolist() == [[0, 2], [4, 8]]
    with pytest.raises(ValueError, match="with_edge_data"):
        A.with_data(w)


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_slots_of_many_edges(format):
    """Enough of them that tiles move entries to their remainder."""
    rng = np.random.default_rng(0)
    place = rng.permutation(300 * 300)[: 1 << 14] if format == "tiled" else rng.permutation(90)
    n = 300 if format == "tiled" else 10
    row, col = place // n, place % n
    w = rng.random(place.size, np.float32)
    A, slots = jsp.from_edges(row, col, shape=(n, n), format=format, return_slots=True)
    np.testing.assert_array_equal(
        A.with_edge_data(slots, w).todense(), dense(w, row, col, shape=(n, n))
    )


def test_other_sources_of_edges_in_an_order_of_their_own():
    matrix = scipy.sparse.coo_array((W, (ROW, COL)), shape=SHAPE)
    A = jsp.from_scipy(matrix)
    B = jsp.io.from_bcoo(sparse.BCOO((jnp.asarray(W), jnp.stack([ROW, COL], 1)), shape=SHAPE))
    for M in (A, B):
        with pytest.raises(ValueError, match="with_edge_data"):
            M.with_data(matrix.data)
        np.testing.assert_array_equal(M.with_edge_data(matrix.data).todense(), dense(W))


def test_a_prepared_graph_takes_them_too():
    G = jsp.prepare(jsp.from_edges(ROW, COL, W, shape=SHAPE), for_=("sssp", "pagerank", "mxv"))
    new = jnp.asarray(W[::-1].copy())
    want = jsp.prepare(jsp.from_edges(ROW, COL, new, shape=SHAPE))
    assert (
        jsp.sssp(G.with_edge_data(new), 0).distances.tolist()
        == jsp.sssp(want, 0).distances.tolist()
    )


def test_who_forgot_the_edges_says_so():
    A = jsp.from_edges(ROW, COL, W, shape=SHAPE)
    with pytest.raises(ValueError, match="return_slots=True"):
        jax.jit(lambda M, w: M.with_edge_data(w))(A, W)
    with pytest.raises(ValueError, match="return_slots=True"):
        jsp.from_dense(np.eye(3)).with_edge_data(W)
    with pytest.raises(ValueError, match=r"one shape; got \(5,\) and \(3,\)"):
        A.with_edge_data(W[:3])
