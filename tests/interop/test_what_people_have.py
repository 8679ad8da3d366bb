"""What people have at hand is taken as it is: names, shapes left out, other libraries' objects."""

import pathlib
import tomllib

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp
from jax.experimental import sparse

import jaxspv as jsp

pytestmark = pytest.mark.fast
A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])


def test_semirings_by_name():
    x, y = jnp.array([1.0, 5.0]), jsp.vector_from_entries([0], [1.0], 2)
    for product in (jsp.mxv, jsp.vxm):
        args = (A, x) if product is jsp.mxv else (x, A)
        by_name = product(*args, "min_plus")
        np.testing.assert_array_equal(by_name, product(*args, jsp.semirings.min_plus))
    assert jsp.mxv(A, y, "max_times").todense().tolist() == [0.0, 3.0]
    for B in (A, jnp.eye(2)):
        got, want = (jsp.mxm(A, B, s) for s in ("max_plus", jsp.semirings.max_plus))
        for a, b in zip(jax.tree.leaves(got), jax.tree.leaves(want), strict=True):
            np.testing.assert_array_equal(a, b)
    with pytest.raises(ValueError, match="one of `jaxspv.semirings`"):
        jsp.mxv(A, x, "plus_time")
    with pytest.raises(TypeError, match="must be a Semiring"):
        jsp.mxv(A, x, 3)


def test_a_shape_left_out():
    assert jsp.from_edges([0, 3], [1, 2]).shape == (4, 4)
    assert jsp.from_edges([], []).shape == (0, 0)
    with pytest.raises(ValueError, match="`shape` must be given under jit"):
        jax.jit(lambda i: jsp.from_edges(i, i))(jnp.arange(3))


def test_graphs_of_other_libraries():
    networkx = pytest.importorskip("networkx")
    S = sp.csr_array(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], np.float32))
    graphs = [
        S,
        S.tocoo(),
        sp.csc_matrix(S),
        jsp.from_scipy(S).to_bcoo(),
        jsp.from_scipy(S).to_bcsr(),
    ]
    graphs.append(networkx.path_graph(3, create_using=networkx.DiGraph))
    for graph in graphs:
        assert jsp.bfs(graph, 0).levels.tolist() == [0, 1, 2]
        assert jsp.prepare(graph).n == 3
    assert (jsp.mxv(S, jnp.ones(3)) == jnp.array([1.0, 1.0, 0.0])).all()
    huge = networkx.Graph([(0, 1, {"weight": 10**400})])
    with pytest.raises(ValueError, match="'weight' holds a number beyond float64"):
        jsp.from_networkx(huge)
    with pytest.raises(TypeError, match="got ndarray"):
        jsp.bfs(S.toarray(), 0)


def test_masks_and_outputs_of_other_kinds():
    """What an operation takes as an operand it takes as a mask and as `out`."""
    networkx = pytest.importorskip("networkx")
    M = np.array([[1, 0, 0], [0, 2, 1], [0, 0, 0]], np.float32)
    B, ours = jsp.from_dense(np.arange(1, 10, dtype=np.float32).reshape(3, 3)), jsp.from_dense(M)
    kinds = [sp.csr_array(M), sp.coo_array(M), ours.to_bcoo(), jsp.prepare(ours, for_="bfs")]
    kinds.append(networkx.from_numpy_array(M, create_using=networkx.DiGraph))
    for kind in kinds:
        for mask, allowed in ((kind, M != 0), (~jsp.structure(kind), M == 0)):
            want = np.where(allowed, B.todense(), 0)
            np.testing.assert_array_equal(jsp.apply(B, lambda x: x, mask=mask).todense(), want)
            np.testing.assert_array_equal(jsp.where(mask, B).todense(), want)
            want = np.where(allowed, B.todense() @ B.todense(), 0)
            np.testing.assert_array_equal(jsp.mxm(B, B, mask=mask).todense(), want)
            want = np.where(allowed, 9, B.todense())
            np.testing.assert_array_equal(jsp.assign(B, 9, mask=mask).todense(), want)
        added = jsp.apply(B, lambda x: x, out=kind, accum=jnp.add)
        np.testing.assert_array_equal(added.todense(), M + B.todense())
    v = jsp.vector_from_entries([0, 2], np.float32([1, 0]), 3)
    tiled = jsp.TiledVector.from_sparse(v, 16)
    assert jsp.mxv(B, v, mask=tiled).todense().tolist() == [1, 0, 0]
    assert jsp.mxv(B, v, mask=~jsp.structure(jsp.BitVector.from_sparse(v))).nnz == 1
    assert jsp.apply(v, jnp.negative, out=tiled, accum=jnp.add).nnz == 2
    with pytest.raises(TypeError, match="an array stores every place"):
        jsp.structure(jnp.zeros(3))


class Tensor:
    """An array of another library: only its buffer can be had."""

    def __init__(self, array):
        self.shape = array.shape
        self.__dlpack__, self.__dlpack_device__ = array.__dlpack__, array.__dlpack_device__


def test_buffers_of_other_libraries():
    index = np.array([[0, 1, 1], [1, 2, 0]])
    for values in (np.float32([1, 2, 3]), jnp.arange(3, dtype=jnp.bfloat16)):
        B = jsp.learning.from_edge_index(Tensor(index), Tensor(values))
        C = jsp.from_edges(Tensor(index[0]), Tensor(index[1]), Tensor(values))
        want = np.zeros((3, 3))
        want[tuple(index)] = values
        for made in (B, C):
            assert made.dtype == values.dtype
            np.testing.assert_array_equal(made.todense(), want)
    np.testing.assert_array_equal(np.from_dlpack(B.indices), B.indices)


def test_bcsr_and_back():
    back = jsp.io.from_bcsr(A.to_bcsr())
    np.testing.assert_array_equal(back.todense(), A.todense())


def test_names_of_bundled_graphs_and_of_masks():
    assert jsp.read_mtx("karate").shape == (34, 34)
    assert repr(~jsp.structure(A)) == f"Mask(not structure of {A!r})"


def test_the_version_is_that_of_the_package():
    project = pathlib.Path(__file__).parents[2] / "pyproject.toml"
    assert jsp.__version__ == tomllib.loads(project.read_text())["project"]["version"]


@pytest.mark.parametrize("format", ["coo", "csr", "csc"])
def test_scipy_reads_what_is_saved(format, tmp_path):
    B = jsp.from_dense([[0.0, 2.0, 0.0], [3.0, 0.0, 4.0]], nse=7, format=format)
    jsp.save_npz(tmp_path / "B.npz", B)
    theirs = sp.load_npz(tmp_path / "B.npz")
    assert theirs.format == format and theirs.nnz == 3
    np.testing.assert_array_equal(theirs.toarray(), B.todense())
    ours = jsp.load_npz(tmp_path / "B.npz")
    assert ours.nse == 7 and ours.format == format
    np.testing.assert_array_equal(ours.check_invariants().todense(), B.todense())


@pytest.mark.parametrize("kind", ["f4", "f8", "i4", "c8"])
def test_values_of_either_byte_order(kind):
    values = np.array([[1, 0], [-2, 3]])
    swapped = values.astype(np.dtype(kind).newbyteorder(">"))
    for B in (
        jsp.from_dense(swapped),
        jsp.from_edges([0, 1, 1], [0, 0, 1], swapped[[0, 1, 1], [0, 0, 1]]),
    ):
        np.testing.assert_array_equal(B.todense(), values)
    np.testing.assert_array_equal(A @ swapped[1], [6, -6])


@pytest.mark.parametrize("kind", ["longdouble", "clongdouble"])
def test_long_doubles_are_refused_by_name(kind):
    wide = np.eye(2, dtype=kind)
    for call, name in (
        (lambda: jsp.from_dense(wide), "dense"),
        (lambda: jsp.from_edges([0], [1], wide[0, :1]), "values"),
        (lambda: jsp.from_scipy(sp.coo_array(wide)), "values"),
    ):
        with pytest.raises(TypeError, match=f"`{name}` must be numbers; got"):
            call()


@pytest.mark.parametrize("cls", [jsp.CSR, jsp.CSC, jsp.ELL, jsp.COO])
def test_arguments_of_scipys_class_name_what_makes_a_matrix(cls):
    with pytest.raises(TypeError, match="missing .* `jsp.from_scipy`, `jsp.from_edges`"):
        cls(np.ones(1), np.zeros(1, int), shape=(1, 1))


def test_bcoo_for_bcsr_is_refused():
    B, C = sparse.BCOO.fromdense(jnp.eye(2)), sparse.BCSR.fromdense(jnp.eye(2))
    with pytest.raises(ValueError, match="must be a BCSR"):
        jsp.io.from_bcsr(B)
    with pytest.raises(ValueError, match="must be a BCOO"):
        jsp.io.from_bcoo(C)


def test_batches_of_graphs_that_are_none():
    batch = jsp.learning.GraphsTuple(None, None, [1], [0], None, None, [1])
    with pytest.raises(ValueError, match="`graphs.nodes` must be given under jit"):
        jax.jit(lambda n: jsp.learning.from_graphs_tuple(batch._replace(n_node=n)))(jnp.array([2]))
    with pytest.raises(ValueError, match=r"`A` must be square; got shape \(2, 3\)"):
        jsp.learning.to_graphs_tuple(jsp.from_edges([0], [2], shape=(2, 3)))
    with pytest.raises(ValueError, match=r"must add up to 2; got \[-1, 3\]"):
        jsp.learning.to_graphs_tuple(A, n_node=[-1, 3])
