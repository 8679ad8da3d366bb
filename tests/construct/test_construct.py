"""Constructors against SciPy and NetworkX: duplicates, order, padding, dtypes, capacity, errors."""

import jax
import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from jax.experimental import sparse as jax_sparse
from strategies import edges as edge_lists

import jaxspv as jsp
from jaxspv.construct import edges
from jaxspv.formats import FORMATS

SHAPE, EDGES = (6, 8), 12
FOLDS = {"plus": np.add, "min_": np.minimum, "max_": np.maximum, "times": np.multiply}

pytestmark = pytest.mark.fast


def folded(senders, receivers, values, shape, fold):
    """Value and presence of every place, joined in the order of the edges."""
    dense, stored = np.zeros(shape, values.dtype), np.zeros(shape, bool)
    for i, j, v in zip(senders, receivers, values, strict=True):
        dense[i, j] = fold(dense[i, j], v) if stored[i, j] else v
        stored[i, j] = True
    return dense, stored


def stored_of(A):
    """Presence of every place, explicit zeros included."""
    ones = A.with_edge_data(jnp.arange(A.nse), jnp.ones_like(A.data))
    return np.asarray(ones.todense()) > 0


def check(A, dense, stored, capacity=None):
    """A holds exactly these entries, is sorted and unique, and its padding is at the extent."""
    assert A.sorted and A.unique and not bool(A.overflow)
    assert int(A.count) == stored.sum()
    assert A.nse == (stored.sum() if capacity is None else capacity)
    np.testing.assert_array_equal(stored_of(A), stored)
    np.testing.assert_array_equal(np.asarray(A.todense()), dense)
    row, col = (np.asarray(index) for index in A.rowcol())
    count = int(A.count)
    assert (row[count:] == A.shape[0]).all() and (col[count:] == A.shape[1]).all()
    major, minor = (col, row) if A.format == "csc" else (row, col)
    place = major[:count].astype(np.int64) * max(A.shape) + minor[:count]
    assert (np.diff(place) > 0).all()


@given(edge_lists(SHAPE, EDGES), st.sampled_from(sorted(FOLDS)), st.sampled_from(sorted(FORMATS)))
def test_from_edges_joins_duplicates(ends, name, format):
    values = np.arange(1, EDGES + 1, dtype=np.float32)
    A = jsp.from_edges(*ends, values, shape=SHAPE, dup=getattr(jsp.monoids, name), format=format)
    # tiles and padded rows keep no order of entries: theirs are looked at as rows
    rows = A if format in ("coo", "csr", "csc") else A.asformat("csr")
    dense, stored = folded(*ends, values, SHAPE, FOLDS[name])
    place = ends[0].astype(int) * SHAPE[1] + ends[1]
    in_order = format in ("coo", "csr") and (np.diff(place) > 0).all()
    spare = stored.sum() == EDGES and not in_order  # see test_edge_order.py
    check(rows, dense, stored, capacity=stored.sum() + (spare and format not in ("ell", "sell")))


@pytest.mark.parametrize("zero", [0.0, 1.5])
def test_gradient_through_products_of_duplicates(zero):
    i, j = np.array([0, 0, 1, 0]), np.array([1, 1, 2, 1])
    v = jnp.array([3.0, zero, 2.0, 0.5])

    def product(v):
        return (jsp.from_edges(i, j, v, shape=(3, 3), dup=jsp.monoids.times).data ** 2).sum()

    square = 2 * 3 * zero * 0.5
    by_hand = [square * zero * 0.5, square * 3 * 0.5, 2 * 2, square * 3 * zero]
    np.testing.assert_allclose(jax.grad(product)(v), by_hand, rtol=1e-6)
    diagonal = [2 * (zero * 0.5) ** 2, 2 * 1.5**2, 2, 2 * (3 * zero) ** 2]
    np.testing.assert_allclose(jnp.diag(jax.jit(jax.hessian(product))(v)), diagonal, rtol=1e-6)


@jax.jit
def jitted(senders, receivers, values):
    return jsp.from_edges(senders, receivers, values, shape=SHAPE, return_slots=True)


@given(edge_lists(SHAPE, EDGES))
def test_from_edges_is_the_same_under_jit(ends):
    values = np.arange(1, EDGES + 1, dtype=np.float32)
    A, slots = jitted(*ends, values)
    check(A, *folded(*ends, values, SHAPE, np.add), capacity=EDGES)
    B, eager_slots = jsp.from_edges(*ends, values, shape=SHAPE, return_slots=True)
    np.testing.assert_array_equal(slots, eager_slots)
    np.testing.assert_array_equal(A.with_edge_data(slots, jnp.asarray(values)).data, A.data)
    assert A.nse == EDGES >= B.nse


@pytest.mark.parametrize("format", sorted(FORMATS))
def test_shuffled_edges(format):
    """The order of the edges changes neither the matrix nor what values per edge mean."""
    rng = np.random.default_rng(3)
    senders, receivers = rng.integers(6, size=40), rng.integers(8, size=40)
    values = rng.integers(1, 100, 40).astype(np.float32)
    want, _ = folded(senders, receivers, values, SHAPE, np.add)
    build = dict(shape=SHAPE, return_slots=True, format=format)
    A, slots = jsp.from_edges(senders, receivers, values, **build)
    for _ in range(3):
        p = rng.permutation(40)
        B, shuffled = jsp.from_edges(senders[p], receivers[p], values[p], **build)
        np.testing.assert_array_equal(B.todense(), want)
        np.testing.assert_array_equal(shuffled, np.asarray(slots)[p])
        again = A.with_edge_data(shuffled, jnp.asarray(values[p]))
        np.testing.assert_array_equal(again.todense(), want)
    least = A.with_edge_data(slots, jnp.asarray(values), dup=jsp.monoids.min_)
    np.testing.assert_array_equal(
        least.todense(), folded(senders, receivers, values, SHAPE, np.minimum)[0]
    )
    with pytest.raises(ValueError, match="with_edge_data"):
        A.with_data(jnp.asarray(values))


def test_edges_dropped_under_jit_have_no_slot():
    senders = np.array([5, -1, 0, 6, 0, 2], np.int32)
    receivers = np.array([7, 0, 8, 0, 3, 2], np.int32)

    @jax.jit
    def build(s, r):
        return jsp.from_edges(s, r, jnp.arange(6.0), shape=SHAPE, return_slots=True)

    A, slots = build(senders, receivers)
    assert int(A.count) == 3 and not bool(A.overflow)
    assert slots.tolist() == [2, 6, 6, 6, 0, 1]
    assert A.todense()[5, 7] == 0 and A.todense()[0, 3] == 4 and A.todense()[2, 2] == 5


def test_capacity():
    A = jsp.from_edges([0, 1, 1], [1, 0, 0], shape=(2, 2), nse=5)
    check(A, np.array([[0, 1], [2, 0]], np.float32), np.array([[0, 1], [1, 0]], bool), capacity=5)
    with pytest.raises(ValueError, match="`nse` must be at least 2"):
        jsp.from_edges([0, 1, 1], [1, 0, 0], shape=(2, 2), nse=1)

    @jax.jit
    def build(s, r):
        return jsp.from_edges(s, r, shape=(2, 2), nse=1, return_slots=True)

    B, slots = build(np.array([0, 1, 1]), np.array([1, 0, 0]))
    assert bool(B.overflow) and B.nse == 1 and slots.tolist() == [0, 1, 1]
    assert B.todense().tolist() == [[0, 1], [0, 0]]
    with pytest.raises(ValueError, match="overflow"):
        jsp.check(B)


def test_values():
    ones = jsp.from_edges([0], [1], shape=(2, 2))
    assert ones.dtype == np.float32 and ones.data.tolist() == [1]
    assert jsp.from_edges([0, 1], [1, 1], 7, shape=(2, 2)).data.tolist() == [7, 7]
    for dtype in (bool, np.int8, np.uint32, np.int32, np.float16, np.float32, jnp.bfloat16):
        A = jsp.from_edges([1, 0], [1, 1], np.array([1, 0]).astype(dtype), shape=(2, 2))
        assert A.dtype == dtype and int(A.count) == 2, "an explicit zero is an entry"


def test_explicit_zeros_and_sums_to_zero_stay():
    A = jsp.from_edges([0, 1, 1], [0, 1, 1], [0.0, 2.0, -2.0], shape=(2, 2))
    assert int(A.count) == 2 and A.data.tolist() == [0, 0]
    matrix = sp.coo_array(([0.0, 2.0, -2.0], ([0, 1, 1], [0, 1, 1])), shape=(2, 2))
    assert int(jsp.from_scipy(matrix).count) == 2


@given(edge_lists(SHAPE, EDGES))
def test_sorts_agree(ends):
    """The host's counting sort, XLA's sort, and the two passes that a GPU takes."""
    row, col = ends
    order = np.lexsort((np.arange(EDGES), col, row))
    for sort in (edges.sort_in_one_pass, edges.sort_in_two_passes):
        got = sort(jnp.asarray(row), jnp.asarray(col))
        for a, b in zip(got, (row[order], col[order], order), strict=True):
            np.testing.assert_array_equal(a, b)
    by_col = edges.counting_argsort(col, SHAPE[1])
    np.testing.assert_array_equal(by_col, np.argsort(col, kind="stable"))


@pytest.mark.parametrize("layout", ["coo", "csr", "csc", "bsr", "dia", "lil", "dok"])
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_from_scipy(layout, format):
    matrix = sp.random_array((7, 9), density=0.3, rng=np.random.default_rng(1), dtype=np.float32)
    A = jsp.from_scipy(matrix.asformat(layout), format=format)
    B = A.to_scipy()
    assert A.format == format and B.shape == (7, 9) and (B != matrix).nnz == 0
    assert int(A.count) == matrix.nnz


def test_from_scipy_unsorted_and_duplicated():
    indptr, indices = np.array([0, 3, 4]), np.array([2, 0, 2, 1])
    matrix = sp.csr_array((np.array([1.0, 2, 3, 4]), indices, indptr), shape=(2, 3))
    A = jsp.from_scipy(matrix)
    assert A.todense().tolist() == [[2, 0, 4], [0, 4, 0]] and A.indices.tolist() == [0, 2, 1]
    assert jsp.from_scipy(matrix, dup=jsp.monoids.max_).todense()[0, 2] == 3
    assert jsp.from_scipy(matrix, dtype=np.int32).dtype == np.int32
    assert jsp.from_scipy(sp.csr_matrix(matrix), nse=9).nse == 9


def test_64_bit_values():
    huge = sp.csr_array(np.array([[0, 2**40]]))
    with jax.enable_x64(False):
        assert jsp.from_scipy(sp.eye_array(2, dtype=np.float64)).dtype == np.float32
        assert jsp.from_scipy(sp.eye_array(2, dtype=np.int64)).dtype == np.int32
        with pytest.raises(ValueError, match="x64"):
            jsp.from_scipy(huge)
    with jax.enable_x64():
        A = jsp.from_scipy(huge)
        assert A.dtype == np.int64 and A.data.tolist() == [2**40] and A.indices.dtype == np.int32


WIDE = [[2**40, 1], [-(2**31) - 1, 0], [1e300, 1.0], [2.0, -1e39], [complex(np.inf, 1e39), 1]]


@pytest.mark.parametrize(
    "make",
    [
        lambda x: jsp.from_dense([x]),
        lambda x: jsp.from_dense(np.array([x])),
        jsp.vector_from_dense,
        lambda x: jsp.vector_from_entries([1, 0], x, 2),
        lambda x: jsp.vector_from_entries([1, 1], x, 2),
        lambda x: jsp.from_edges([0, 1], [0, 1], shape=(2, 2)).with_data(x),
        lambda x: jsp.from_edges([1, 0], [0, 1], shape=(2, 2)).with_edge_data(x),
        lambda x: jsp.from_edges([1, 0], [0, 1], x, shape=(2, 2)),
        lambda x: jsp.from_scipy(sp.csr_array(np.array([x]))),
    ],
)
@pytest.mark.parametrize("x", WIDE)
def test_values_of_64_bits_that_do_not_fit_raise(make, x):
    for numbers in (np.array(x), x):
        with jax.enable_x64(False), pytest.raises(ValueError, match="do not fit (int|[fc])"):
            make(numbers)
        with jax.enable_x64():
            assert make(numbers).sum().item() == sum(x)


def test_numbers_of_other_libraries_and_dtypes_asked_for():
    import networkx as nx

    graph = nx.Graph()
    graph.add_edge(0, 1, weight=1e300)
    with pytest.raises(ValueError, match=r"'weight' holds 1e\+300, which float32 does not"):
        jsp.from_networkx(graph)
    matrix = sp.csr_array(np.array([[1e30, np.inf, np.nan, 1e-60]]))
    with pytest.raises(ValueError, match=r"`matrix` holds 1e\+30, which float16 does not"):
        jsp.from_scipy(matrix, dtype=np.float16)
    with jax.enable_x64(False):  # what is infinite, not a number or small stays so
        np.testing.assert_array_equal(
            jsp.from_scipy(matrix).data, np.float32([1e30, np.inf, np.nan, 0])
        )
    for value, dtype in ((300, "int8"), (1.5, "int32")):
        graph = nx.Graph([(0, 1, {"weight": value})])
        for call in (
            lambda t, graph=graph: jsp.from_networkx(graph, dtype=t),
            lambda t, value=value: jsp.from_scipy(sp.csr_array([[value]]), dtype=t),
        ):
            with pytest.raises(ValueError, match=f"holds {value}, which {dtype} does not"):
                call(dtype)
            assert call(bool).data[0]  # whether it is not 0


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 3)])
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_no_entries(shape, format):
    for A in (
        jsp.from_edges([], [], shape=shape, format=format),
        jsp.from_dense(np.zeros(shape, np.float32), format=format),
        jsp.from_scipy(sp.csr_array(shape, dtype=np.float32), format=format),
        jsp.from_edges([], [], shape=shape, nse=2, format=format),
    ):
        assert A.shape == shape and int(A.count) == 0 and A.todense().shape == shape


def test_from_dense():
    dense = np.array([[0, 2, np.nan], [np.inf, 0, -1]], np.float32)
    check(jsp.from_dense(dense, nse=6), dense, dense != 0, capacity=6)
    A = jsp.from_dense(dense, fill=np.nan)
    assert int(A.count) == 5 and bool(np.isnan(A.todense(np.nan)[0, 2]))
    B = jsp.from_dense(np.array([[np.inf, 1.0]]), fill=np.inf)
    assert B.data.tolist() == [1] and B.todense(np.inf).tolist() == [[np.inf, 1]]
    C = jax.jit(lambda d: jsp.from_dense(d, nse=2))(dense[:, :2])
    assert C.nse == 2 and not bool(C.overflow) and C.todense().tolist() == [[0, 2], [np.inf, 0]]
    assert bool(jax.jit(lambda d: jsp.from_dense(d, nse=1))(dense).overflow)


def test_from_bcoo_and_bcsr():
    dense = jnp.asarray([[0.0, 2.0, 0.0], [1.0, 0.0, 3.0]])
    for A in (
        jsp.io.from_bcoo(jax_sparse.BCOO.fromdense(dense, nse=5)),
        jsp.io.from_bcsr(jax_sparse.BCSR.fromdense(dense, nse=5)),
        jax.jit(jsp.io.from_bcoo)(jax_sparse.BCOO.fromdense(dense, nse=5)),
        jax.jit(jsp.io.from_bcsr)(jax_sparse.BCSR.fromdense(dense, nse=5)),
    ):
        check(A, np.asarray(dense), np.asarray(dense != 0), capacity=5)
        np.testing.assert_array_equal(A.to_bcoo().todense(), dense)
        listed = A.asformat("coo").trim()
        np.testing.assert_array_equal(dense[tuple(listed.indices.T)], listed.data)
    twice = jax_sparse.BCOO((jnp.ones(3), jnp.array([[1, 2], [0, 0], [1, 2]])), shape=(2, 3))
    assert jsp.io.from_bcoo(twice).todense().tolist() == [[1, 0, 0], [0, 0, 2]]
    values = np.array([1e-42, -0.0, 7], np.float32)  # a sum with 0 would change both
    places = jnp.array([[1, 2], [0, 0], [2, 3]])  # the last is padding
    one = jsp.io.from_bcoo(jax_sparse.BCOO((jnp.asarray(values), places), shape=(2, 3))).trim()
    assert np.asarray(one.data).tobytes() == values[[1, 0]].tobytes()


def test_from_networkx():
    graph = nx.Graph()
    graph.add_edge("b", "a", weight=2.5)
    graph.add_edge("a", "a", weight=3)
    graph.add_edge("a", "c")
    A = jsp.from_networkx(graph, nodelist=["a", "b", "c"])
    want = nx.to_numpy_array(graph, nodelist=["a", "b", "c"])
    np.testing.assert_array_equal(A.todense(), want)
    B = jsp.from_networkx(graph, nodelist=["c", "a"], weight=None, dtype=np.int32)
    assert B.dtype == np.int32 and B.todense().tolist() == [[0, 1], [1, 1]]
    parallel = nx.MultiDiGraph([(0, 1), (0, 1), (1, 2)])
    assert jsp.from_networkx(parallel).todense().tolist() == [[0, 2, 0], [0, 0, 1], [0, 0, 0]]
    assert jsp.from_networkx(nx.DiGraph()).shape == (0, 0)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: jsp.from_edges([0], [2], shape=(2, 2)), ValueError, r"receivers.*\[0, 2\).*2"),
        (lambda: jsp.from_edges([-1], [0], shape=(2, 2)), ValueError, r"senders.*-1"),
        (lambda: jsp.from_edges([0, 1], [0], shape=(2, 2)), ValueError, "one length"),
        (lambda: jsp.from_edges([[0]], [[0]], shape=(2, 2)), ValueError, "1-D"),
        (lambda: jsp.from_edges([0.0], [0], shape=(2, 2)), TypeError, "senders.*integers"),
        (lambda: jsp.from_edges([0], [0], [1, 2], shape=(2, 2)), ValueError, r"values.*\(1,\)"),
        (lambda: jsp.from_edges([0], [0], shape=[2, 2]), TypeError, r"shape.*\[2, 2\]"),
        (lambda: jsp.from_edges([0], [0], shape=(2, 2.0)), TypeError, "shape"),
        (lambda: jsp.from_edges([0], [0], shape=(2, -2)), ValueError, "negative"),
        (lambda: jsp.from_edges([0], [0], shape=(2**31, 2)), ValueError, "jax_enable_x64"),
        (lambda: jsp.from_edges([0], [0], shape=(2, 2), nse=-1), ValueError, "nse"),
        (lambda: jsp.from_edges([0], [0], shape=(2, 2), format="xyz"), ValueError, "csr.*xyz"),
        (lambda: jsp.from_dense([1.0, 2.0]), ValueError, r"dense.*\(2,\)"),
        (lambda: jsp.from_dense(np.ones((2, 2)), nse=3), ValueError, "nse.*4.*3"),
        (lambda: jax.jit(jsp.from_dense)(np.ones((2, 2))), ValueError, "nse.*jit"),
        (lambda: jsp.from_scipy(np.ones((2, 2))), TypeError, "scipy.sparse.*ndarray"),
        (lambda: jsp.from_scipy(sp.coo_array(np.ones(3))), ValueError, r"2-D.*\(3,\)"),
        (lambda: jsp.io.from_bcoo(jax_sparse.BCOO.fromdense(jnp.ones(3))), ValueError, "BCOO"),
        (lambda: jsp.from_networkx(nx.path_graph(2), nodelist=[0, 0]), ValueError, "0 twice"),
        (lambda: jsp.from_networkx(nx.path_graph(4), nodelist=[3, 9]), ValueError, "graph; got 9"),
    ],
)
def test_bad_input(call, error, words):
    with jax.enable_x64(False), pytest.raises(error, match=words):
        call()


MASKED = np.ma.array([1, 0], mask=[False, True])
OF_ARRAYS = {
    "senders": lambda x: jsp.from_edges(x, [0, 1], shape=(2, 2)),
    "values": lambda x: jsp.from_edges([0, 1], [0, 1], x, shape=(2, 2)),
    "indices": lambda x: jsp.vector_from_entries(x, [5.0, 6.0], 2),
    "values of a vector": lambda x: jsp.vector_from_entries([0, 1], x, 2),
    "edge_index": lambda x: jsp.learning.from_edge_index(np.ma.stack([x, x])),
    "source": lambda x: jsp.bfs(jsp.from_dense(np.eye(2)), x).levels,
    "labels": lambda x: jsp.modularity(jsp.from_dense(np.eye(2)), x),
    "nodes": lambda x: jsp.learning.sample_neighbors(
        jax.random.key(0), jsp.from_dense(np.eye(2)), x, 1
    ),
    "i": lambda x: jsp.from_dense(np.eye(2))[x],
    "w": lambda x: jsp.io.from_table({"a": [0, 1], "b": [0, 1], "w": x}, "a", "b", "w"),
    "x": lambda x: jsp.vector_from_dense(x),
    "dense": lambda x: jsp.from_dense(np.ma.stack([x, x])),
}


@pytest.mark.parametrize("name", OF_ARRAYS)
def test_what_is_masked_out_is_no_number(name):
    with pytest.raises(ValueError, match=f"`{name.split()[0]}`.*masked"):
        OF_ARRAYS[name](MASKED)


@pytest.mark.parametrize("order", "<>")
def test_vertices_of_either_byte_order(order):
    x = np.array([1, 0], f"{order}i4")
    assert jsp.from_edges(x, [0, 0], shape=(2, 2)).todense().tolist() == [[1, 0], [1, 0]]
    A = jsp.from_dense(np.eye(2))
    assert jsp.learning.sample_neighbors(jax.random.key(0), A, x, 1).nodes[0].tolist() == [[1], [0]]
    assert jsp.learning.random_walk(jax.random.key(0), A, x, 1).tolist() == [[1, 1], [0, 0]]


def test_dense_arrays_and_matrices_compile_nothing_and_vectors_one_program(caplog):
    rng = np.random.default_rng(3)
    dense = (rng.random((23, 29)) * (rng.random((23, 29)) < 0.2)).astype(np.float32)
    with jax.log_compiles():
        x = jsp.vector_from_dense(dense[0], nse=29)
        A = jsp.from_dense(dense, nse=dense.size, format="coo")
        got = A.todense(), x.todense()
    started = [r.getMessage() for r in caplog.records if r.getMessage().startswith("Compiling")]
    moved = ("Compiling jit(stage)", "Compiling jit(convert_element_type)")  # arrays and numbers
    assert len([text for text in started if not text.startswith(moved)]) == 1, started
    np.testing.assert_array_equal(got[0], dense)
    np.testing.assert_array_equal(got[1], dense[0])
    assert x.count == np.count_nonzero(dense[0]) and not A.overflow
