"""Batches, normalisation, self loops, and what graph-network libraries hold: against SciPy."""

import collections

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from jax.test_util import check_grads
from learning_cases import made, pattern

import jaxspv as jsp

RNG = np.random.default_rng(0)
SHAPES = [(3, 4), (1, 2), (0, 3), (5, 5)]
DENSE = [np.where(RNG.random(s) < 0.5, RNG.integers(1, 9, s), 0).astype(np.float32) for s in SHAPES]


def padded(D, format="csr"):
    row, col = D.nonzero()
    return made(row, col, D.shape, D[row, col], format=format, spare=2)


@pytest.mark.parametrize("format", ["csr", "csc", "coo"])
@pytest.mark.parametrize("traced", [False, True], ids=["eager", "jit"])
def test_blocks_along_the_diagonal_and_back(format, traced):
    parts = [padded(D, format) for D in DENSE]
    B = jax.jit(jsp.learning.block_diag)(parts) if traced else jsp.learning.block_diag(parts)
    assert B.format == format and B.check_invariants() is B
    np.testing.assert_array_equal(B.todense(), scipy.linalg.block_diag(*DENSE))
    back = (
        jax.jit(lambda B: jsp.learning.unbatch(B, SHAPES))(B)
        if traced
        else jsp.learning.unbatch(B, parts)
    )
    for block, D in zip(back, DENSE, strict=True):
        assert block.format == format and block.check_invariants() is block
        np.testing.assert_array_equal(block.todense(), D)
        assert not bool(block.overflow) and int(block.count) == np.count_nonzero(D)


def test_blocks_of_arrays_and_of_two_dtypes():
    A = made(np.array([0]), np.array([1]), (2, 2), np.ones((1, 3), np.float32))
    assert jsp.learning.block_diag([A, A]).todense().shape == (4, 4, 3)
    two = jsp.learning.block_diag([padded(DENSE[0]), padded(DENSE[0]).astype(jnp.int32)])
    assert two.dtype == np.float32
    with pytest.raises(ValueError, match="entries must have one shape"):
        jsp.learning.block_diag([A, padded(DENSE[0])])
    with pytest.raises(ValueError, match="at least one"):
        jsp.learning.block_diag([])


def test_unbatch_says_what_is_wrong():
    A = jsp.from_dense(np.ones((4, 4), np.float32))
    with pytest.raises(ValueError, match=r"must add up to \(4, 4\); got \(3, 3\)"):
        jsp.learning.unbatch(A, [(1, 1), (2, 2)])
    with pytest.raises(ValueError, match="entries outside of its blocks"):
        jsp.learning.unbatch(A, [(2, 2), (2, 2)])
    with pytest.raises(ValueError, match="`nse` must be at least"):
        jsp.learning.unbatch(jsp.learning.block_diag([A, A]), [A, A], nse=3)
    blocks = jax.jit(lambda A: jsp.learning.unbatch(A, [(2, 2), (2, 2)]))(A)
    assert all(bool(b.overflow) for b in blocks)


@pytest.mark.parametrize("mode", ["sym", "gcn", "row", "col"])
def test_normalize_is_the_definition(mode):
    row, col = pattern(9, 9, 0.4)
    values = RNG.uniform(0.5, 2, row.size).astype(np.float32)
    dense = np.zeros((9, 9))
    dense[row, col] = values
    r, c = (np.where(s == 0, 1, s) for s in (dense.sum(1, keepdims=True), dense.sum(0)))
    want = (
        dense / {"sym": np.sqrt(r * c), "gcn": np.sqrt(r * r.T), "row": r, "col": c + 0 * r}[mode]
    )
    if mode == "gcn":
        want[:, dense.sum(1) == 0] = 0
    for format in ("csr", "csc", "coo"):
        A = made(row, col, (9, 9), values, format=format)
        np.testing.assert_allclose(jsp.learning.normalize(A, mode).todense(), want, rtol=1e-5)
    A = made(row, col, (9, 9), values)

    def f(v):
        return jsp.learning.normalize(
            A.with_data(jnp.concatenate([v, jnp.full(5, jnp.nan)])), mode
        ).data[:20]

    check_grads(jax.jit(f), (jnp.asarray(values),), order=1, atol=2e-2, rtol=2e-2)


@pytest.mark.parametrize("weighted", [False, True])
def test_gcn_is_the_layer_of_directed_edges(weighted):
    """By the formula over edges: messages from sender to receiver, degrees of receivers."""
    sender, receiver = np.array([[0, 0, 0, 1, 2, 4, 2], [1, 2, 3, 2, 0, 2, 2]])  # 3 sends nothing
    weight = RNG.uniform(0.5, 2, 7).astype(np.float32) if weighted else np.ones(7, np.float32)
    x = RNG.normal(size=(5, 3)).astype(np.float32)
    alone = np.setdiff1d(np.arange(5), sender[sender == receiver])
    tail, head = np.r_[sender, alone], np.r_[receiver, alone]
    value = np.r_[weight, np.ones(len(alone))]
    degree = np.bincount(head, value, minlength=5)
    want = np.zeros((5, 3))
    np.add.at(want, head, (value / np.sqrt(degree[tail] * degree[head]))[:, None] * x[tail])
    A = jsp.from_edges(sender, receiver, weight, shape=(5, 5))
    layer = jsp.learning.normalize(jsp.learning.add_self_loops(A.T), "gcn")
    np.testing.assert_allclose(layer @ x, want, rtol=1e-5)
    both = A + A.T
    same = (jsp.learning.normalize(both, mode).todense() for mode in ("gcn", "sym"))
    np.testing.assert_allclose(*same, rtol=1e-6)
    with pytest.raises(
        ValueError, match=r"`A` must be square for `mode='gcn'`; got shape \(2, 5\)"
    ):
        jsp.learning.normalize(A[:2], "gcn")


@pytest.mark.parametrize("mode", ["sym", "gcn"])
def test_products_of_large_degrees_fit_in_half_precision(mode):
    A = jsp.from_dense(np.full((3, 3), 200, np.float16))  # degrees of 600, their product 360,000
    scaled = jsp.learning.normalize(A, mode)
    assert scaled.dtype == np.float16
    np.testing.assert_allclose(scaled.todense(), np.full((3, 3), 1 / 3), rtol=1e-3)


@pytest.mark.parametrize("mode", ["sym", "gcn", "row", "col"])
@pytest.mark.parametrize("size", [3e19, 3e38, 1e-23, 3e-38])
def test_degrees_and_their_products_fit_in_float32(mode, size):
    A = jsp.from_dense(np.float32([[0, 1, 1], [1, 0, 0], [1, 0, 0]]))

    def scale(s):
        return jsp.learning.normalize(A.with_data(s * A.data), mode).data

    np.testing.assert_allclose(scale(np.float32(size)), scale(1), rtol=1e-6)


def test_normalize_where_sums_vanish():
    A = jsp.from_dense(np.array([[1, -1], [0, 2]], np.float32))
    assert jsp.learning.normalize(A, "row").data.tolist() == [0, 0, 1]
    assert jsp.learning.normalize(A.astype(np.int32), "row").dtype == np.float32
    scaled = jsp.learning.normalize(A.with_data(np.float32([np.inf, 1, 2])), "row")
    np.testing.assert_array_equal(scaled.data, [np.nan, 0, 1])
    with pytest.raises(ValueError, match="`mode` must be"):
        jsp.learning.normalize(A, "both")


def test_self_loops():
    D = DENSE[3]
    want = np.where((np.eye(5) == 1) & (D == 0), 7, D)
    np.testing.assert_array_equal(jsp.learning.add_self_loops(padded(D), 7).todense(), want)
    each = jsp.learning.add_self_loops(padded(np.zeros((5, 5), np.float32)), jnp.arange(5.0))
    np.testing.assert_array_equal(each.todense(), np.diag(np.arange(5.0)))
    with pytest.raises(ValueError, match="`A` must be square"):
        jsp.learning.add_self_loops(padded(DENSE[0]))


def test_edge_index_there_and_back():
    index = np.array([[2, 0, 1, 2], [1, 1, 0, 1]])
    A, slots = jsp.learning.from_edge_index(
        index, np.array([1.0, 2, 3, 4], np.float32), return_slots=True
    )
    assert A.todense().tolist() == [[0, 2, 0], [3, 0, 0], [0, 5, 0]] and slots.tolist() == [
        2,
        0,
        1,
        2,
    ]
    got, values = jsp.learning.to_edge_index(A)
    assert got.tolist() == [[0, 1, 2], [1, 0, 1]] and values.tolist() == [2, 3, 5]
    arrays = jsp.learning.from_edge_index(index, np.ones((4, 2), np.float32), num_nodes=4)
    assert arrays.shape == (4, 4) and arrays.data.tolist() == [[1, 1], [1, 1], [2, 2]]
    with pytest.raises(ValueError, match=r"must have shape \(2, edges\)"):
        jsp.learning.from_edge_index(index.T)
    with pytest.raises(ValueError, match="`num_nodes` must be given"):
        jax.jit(jsp.learning.from_edge_index)(index)


def test_a_tuple_of_graphs_there_and_back():
    parts = [padded(D) for D in (DENSE[3], DENSE[3].T)]
    B = jsp.learning.block_diag(parts)
    theirs = collections.namedtuple("theirs", jsp.learning.GraphsTuple._fields)
    graphs = jsp.learning.to_graphs_tuple(B, jnp.zeros((10, 2)), n_node=[5, 5], cls=theirs)
    assert type(graphs) is theirs
    assert graphs.n_edge.tolist() == [np.count_nonzero(DENSE[3])] * 2
    np.testing.assert_array_equal(jsp.learning.from_graphs_tuple(graphs).todense(), B.todense())
    again, slots = jax.jit(lambda g: jsp.learning.from_graphs_tuple(g, return_slots=True))(graphs)
    np.testing.assert_array_equal(again.todense(), B.todense())
    assert slots.tolist() == list(range(int(B.count)))
    bare = jsp.learning.from_graphs_tuple(graphs._replace(nodes=None, edges={"a": graphs.edges}))
    np.testing.assert_array_equal(bare.todense(), np.asarray(B.todense()) != 0)
    with pytest.raises(ValueError, match="must add up to 10"):
        jsp.learning.to_graphs_tuple(B, n_node=[5, 4])


def test_blocks_that_list_a_place_twice():
    row, col = np.array([0, 1, 0, 2]), np.array([1, 0, 1, 2])  # (0, 1) twice; padding
    data = np.array([1.0, 4.0, 2.0, 9.0], np.float32)
    values, i, j, overflow = map(jnp.asarray, (data, row, col, False))
    twice = jsp.COO(values, i, j, overflow, (2, 2), False, False)
    plain = jsp.from_dense(np.array([[5.0]], np.float32))
    joined = scipy.sparse.coo_array((data[:3], (row[:3], col[:3])), (2, 2)).toarray()
    want = scipy.linalg.block_diag([[5.0]], joined)
    B = jsp.learning.block_diag([plain, twice])
    np.testing.assert_array_equal(B.todense(), want)
    np.testing.assert_array_equal(jsp.apply(B, jnp.square).todense(), want**2)
    for block in jsp.learning.unbatch(B, [plain, twice])[1:]:
        np.testing.assert_array_equal(jsp.apply(block, jnp.square).todense(), joined**2)
