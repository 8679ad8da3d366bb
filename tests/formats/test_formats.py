"""What every format owes: entries kept by conversions, inert padding, pytree behaviour, errors."""

import copy
import dataclasses
import pickle

import jax
import jax.numpy as jnp
import numpy as np
import oracles
import pytest
from hypothesis import given
from jax.experimental import sparse as jax_sparse
from strategies import DTYPES, PROBLEMS, bounds, garbage, precision, samples, triplets

import jaxspv as jsp
from jaxspv.formats import COO, FORMATS, SparseMatrix, choose

pytestmark = pytest.mark.fast
NAMES = sorted(FORMATS)
QUICK = {"xla_backend_optimization_level": 0}  # compiling is most of the time


def coo_of(problem, spare=None, fill=None):
    """The sorted COO of `Triplets`, made by NumPy; `fill` lies in the data of its padding."""
    m, n = problem.shape
    order = np.lexsort((problem.col, problem.row))
    pad = (0, problem.spare if spare is None else spare)
    fill = garbage(problem.data.dtype) if fill is None else fill
    return COO(
        jnp.asarray(np.pad(problem.data[order], pad, constant_values=fill)),
        jnp.asarray(np.pad(problem.row[order], pad, constant_values=m).astype(np.int32)),
        jnp.asarray(np.pad(problem.col[order], pad, constant_values=n).astype(np.int32)),
        jnp.asarray(False),
        problem.shape,
    )


def make(problem, name, **kwargs):
    return FORMATS[name].from_coo(coo_of(problem, **kwargs))


def conversions(coo):
    """Every format into every format; and of each format, made from its neighbour, all it says."""
    entries, sent = {}, {}
    for k, a in enumerate(NAMES):
        A = FORMATS[a].from_coo(coo)
        for b in NAMES:
            B = A.asformat(b)
            whole = B.to_coo()
            entries[a, b] = (whole.row, whole.col, whole.data), B.count, B.overflow
        B = A.asformat(NAMES[k - 1])
        sent[NAMES[k - 1]] = (
            B.rowcol(),
            B.data,
            (B.todense(), B.todense(7), B.T.todense(), B.T.T.todense(), B.to_bcoo().todense()),
        )
    return entries, sent


def check_entries(triplet, problem):
    """The first entries are those of the problem, sorted; the rest is padding, at the extents."""
    row, col, data = map(np.asarray, triplet)
    order, count = np.lexsort((problem.col, problem.row)), problem.row.size
    np.testing.assert_array_equal(row[:count], problem.row[order])
    np.testing.assert_array_equal(col[:count], problem.col[order])
    np.testing.assert_array_equal(data[:count], problem.data[order])
    assert (row[count:] == problem.shape[0]).all() and (col[count:] == problem.shape[1]).all()


def check_conversions(results, problem):
    row, col, data = problem.row, problem.col, problem.data
    zero, seven = (oracles.dense(row, col, data, problem.shape, fill) for fill in (0, 7))
    entries, sent = results
    for triplet, count, overflow in entries.values():
        check_entries(triplet, problem)
        assert int(count) == row.size and not bool(overflow)
    for slots, values, dense in sent.values():
        i, j = map(np.asarray, slots)
        stored = i < problem.shape[0]
        assert (i[~stored] == problem.shape[0]).all() and (j[~stored] == problem.shape[1]).all()
        kept = zip(i[stored], j[stored], np.asarray(values)[stored], strict=True)
        assert sorted(kept) == sorted(zip(row, col, data, strict=True))
        for got, want in zip(dense, (zero, seven, zero.T, zero, zero), strict=True):
            np.testing.assert_array_equal(got, want)


# The others are in these, in what is made eagerly, or in the random matrices: each is a program.
@pytest.mark.once
@pytest.mark.parametrize(
    "name",
    ["no rows", "no columns", "nothing at all", "one row full", "explicit zeros", "shuffled"],
)
def test_every_pair_of_formats_under_jit(name):
    coo = coo_of(PROBLEMS[name])
    check_conversions(jax.jit(conversions, compiler_options=QUICK)(coo), PROBLEMS[name])


@pytest.mark.parametrize("name", ["empty rows and columns", "no entries"])
def test_every_pair_of_formats_eagerly(name):
    check_conversions(conversions(coo_of(PROBLEMS[name])), PROBLEMS[name])


@pytest.mark.once
@pytest.mark.parametrize("spare", [0, 13])
def test_random_matrices_in_two_capacities(spare):
    run, capacity = jax.jit(conversions), 20 + spare

    @given(triplets())
    def check(problem):
        check_conversions(run(coo_of(problem, capacity - problem.row.size)), problem)

    check()


@pytest.mark.once
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_dtypes_and_what_padding_holds(dtype):
    """Every number of the dtype survives, and no content of the padding is seen."""
    with precision(dtype):
        problem = PROBLEMS["empty rows and columns"]
        problem = problem._replace(data=samples(dtype, *bounds(dtype), 8)[: problem.row.size])
        want = oracles.dense(*problem[:4])
        for name in NAMES:
            for fill in (garbage(dtype), bounds(dtype)[0]):
                A = make(problem, name, fill=np.array(fill, dtype))
                assert A.dtype == dtype and A.todense().dtype == dtype
                np.testing.assert_array_equal(A.todense(), want)
                B = A.to_scipy()
                np.testing.assert_array_equal(B.toarray().astype(dtype), want)
                assert B.nnz == problem.row.size
                assert A.to_bcoo().data.dtype == dtype


# Making tiles eagerly compiles for each shape.
EAGER = [
    (n, p)
    for n in NAMES
    for p in PROBLEMS
    if n != "tiled" or p in ("nothing at all", "explicit zeros", "shuffled")
]


@pytest.mark.parametrize(("name", "problem"), EAGER)
def test_scipy_gets_the_entries_and_nothing_else(name, problem):
    problem = PROBLEMS[problem]
    A = make(problem, name)
    for matrix, want in ((A, problem.shape), (A.T, problem.shape[::-1])):
        got = matrix.to_scipy()
        assert got.shape == want and got.nnz == problem.row.size
    assert A.to_scipy().format == (name if name in ("coo", "csr", "csc") else "csr")
    coo = A.to_scipy().tocoo()
    entries = sorted(zip(*coo.coords, coo.data, strict=True))
    assert entries == sorted(zip(problem.row, problem.col, problem.data, strict=True))


def test_bcoo_keeps_padding_out_of_its_sums():
    for name in NAMES:
        A = make(PROBLEMS["shuffled"], name).to_bcoo()
        assert isinstance(A, jax_sparse.BCOO) and A.unique_indices
        assert np.isfinite(A.data).all() and np.isfinite((A @ jnp.ones(9)).sum())


@pytest.mark.parametrize("name", sorted(set(NAMES) & {"csr", "csc"}))
def test_the_minor_index_of_padding_is_not_read(name):
    """BCSR, for one, leaves what it likes there."""
    problem = PROBLEMS["empty rows and columns"]
    A = make(problem, name)
    places = jnp.where(jnp.arange(A.nse) < A.count, A.indices, 0)
    check_conversions(conversions(dataclasses.replace(A, indices=places).to_coo()), problem)


# ---- Attributes and small methods ----


@pytest.mark.parametrize("name", NAMES)
def test_attributes(name):
    problem = PROBLEMS["empty rows and columns"]
    A = make(problem, name)
    assert (A.shape, A.ndim, A.dtype, A.unique) == ((6, 8), 2, np.float32, True)
    assert A.nse == A.size == A.data.size and int(A.nnz) == int(A.count) == 3
    assert A.transpose().shape == (8, 6)
    assert A.asformat(name) is A
    assert A.block_until_ready() is not None
    assert repr(A).startswith(f"{type(A).__name__}(float32[{A.nse}], shape=(6, 8)")
    assert not A.row_sorted or (np.diff(np.asarray(A.rowcol()[0])) >= 0).all()
    with pytest.raises(ValueError, match="`name` must be one of .*'csr'.*; got 'bsr'"):
        A.asformat("bsr")


@pytest.mark.parametrize("name", NAMES)
def test_transposition_moves_no_data(name):
    A = make(PROBLEMS["shuffled"], name)
    ours, theirs = jax.tree.leaves(A), jax.tree.leaves(A.T)
    assert {id(leaf) for leaf in ours} == {id(leaf) for leaf in theirs}


@pytest.mark.parametrize("name", NAMES)
def test_with_data_takes_exactly_one_value_a_slot(name):
    A = make(PROBLEMS["one row full"], name)
    doubled = A.with_data(2 * A.data)
    np.testing.assert_array_equal(doubled.todense(), 2 * A.todense())
    assert A.with_data(np.arange(A.nse)).dtype == jax.dtypes.canonicalize_dtype(int)
    for wrong in ((A.nse + 1,), (A.nse - 1,), (), (1,), (2, A.nse)):
        with pytest.raises(ValueError, match=rf"`data` must have shape \({A.nse},\)"):
            A.with_data(jnp.zeros(wrong))


@pytest.mark.parametrize("name", NAMES)
def test_with_edge_data_joins_and_drops(name):
    A = make(PROBLEMS["one column full"], name)
    slots = jnp.asarray([0, 2, 2, A.nse, -1, 10**6])
    values = jnp.asarray([1.0, 2.0, 5.0, np.nan, np.nan, np.nan])
    for dup, join, empty in ((None, 7, 0), (jsp.monoids.min_, 2, np.inf), (jsp.monoids.any_, 2, 0)):
        data = A.with_edge_data(slots, values, dup).data
        assert data.tolist() == [1, empty, join, *[empty] * (A.nse - 3)]
    with pytest.raises(ValueError, match=r"one shape; got \(6,\) and \(5,\)"):
        A.with_edge_data(slots, values[:5])


def test_repeated_places_are_kept_by_conversions_and_add_up():
    coo = COO(
        jnp.asarray([1.0, 2.0, 3.0, -3.0, np.nan]),
        jnp.asarray([0, 0, 1, 1, 2]),
        jnp.asarray([1, 1, 0, 0, 3]),
        jnp.asarray(False),
        (2, 3),
        unique=False,
    )
    for name in NAMES:
        A = coo.asformat(name)
        assert not A.unique and int(A.count) == 4
        assert A.todense(9).tolist() == [[9, 3, 9], [0, 9, 9]]
        assert A.to_scipy().toarray().tolist() == [[0, 3, 0], [0, 0, 0]]
        assert A.to_bcoo().todense().tolist() == [[0, 3, 0], [0, 0, 0]]


def test_entries_in_any_order_are_sorted_on_the_way():
    problem = PROBLEMS["shuffled"]
    m, n = problem.shape
    fields = (jnp.asarray(problem.data), jnp.asarray(problem.row), jnp.asarray(problem.col))
    coo = COO(*fields, jnp.asarray(False), (m, n), sorted=False)
    for name in NAMES:
        A = coo.asformat(name)
        np.testing.assert_array_equal(A.todense(), problem.dense[0])
        whole = A.to_coo()
        check_entries((whole.row, whole.col, whole.data), problem)
    for cls in (jsp.CSR, jsp.CSC):  # columns of a row in descending order
        A = cls(
            jnp.arange(3.0),
            jnp.array([2, 0, 1]),
            jnp.array([0, 2, 3]),
            jnp.asarray(False),
            (2, 3) if cls is jsp.CSR else (3, 2),
            sorted=False,
        )
        want = [[1, 0, 0], [0, 2, 0]]
        assert (A if cls is jsp.CSR else A.T).asformat("coo").todense().tolist() == want
        assert A.to_coo().sorted


# ---- Pytrees ----


@pytest.mark.parametrize("name", NAMES)
def test_placeholders_tracers_and_none_leaves(name):
    A = make(PROBLEMS["shuffled"], name)
    leaves, tree = jax.tree.flatten(A)
    for fill in (None, object(), 0, jax.ShapeDtypeStruct((3,), jnp.int8), "text"):
        B = jax.tree.unflatten(tree, [fill] * len(leaves))
        assert B.shape == A.shape and type(A).__name__ in repr(B)
        assert B.T.shape == A.shape[::-1] and B.ndim == 2
    nothing = jax.tree.map(lambda _: None, A)
    assert jax.tree.leaves(nothing) == [] and nothing.with_data(A.data).data is A.data
    seen = []
    jax.jit(lambda A: seen.append(repr(A)))(A)
    assert seen == [repr(A)]
    assert repr(jax.eval_shape(lambda A: A, A)) == repr(A)
    paths = [jax.tree_util.keystr(p) for p, _ in jax.tree_util.tree_leaves_with_path(A)]
    assert ".data" in paths and ".overflow" in paths
    assert jax.tree.structure(A) == jax.tree.structure(A.with_data(A.data + 1))


@pytest.mark.parametrize("name", NAMES)
def test_a_gradient_with_none_leaves_survives(name):
    A = make(PROBLEMS["shuffled"], name)
    dA = jsp.grad(lambda A: (A.todense() ** 2).sum())(A)
    assert type(dA) is type(A)
    assert len(jax.tree.leaves(dA)) == 1 and repr(dA) == repr(A)
    stored = np.asarray(A.rowcol()[0]) < A.shape[0]
    want = np.where(stored, 2 * np.asarray(A.data), 0)
    np.testing.assert_array_equal(dA.data, want)
    assert (dA.nse, dA.dtype, dA.shape, dA.T.shape) == (A.nse, A.dtype, (7, 9), (9, 7))
    assert dA.astype(jnp.float16).dtype == jnp.float16
    assert dA.with_data(A.data).data is A.data
    assert jax.block_until_ready(dA).nse == A.nse


@pytest.mark.parametrize("name", NAMES)
def test_vmap_over_values(name):
    A = make(PROBLEMS["self loops"], name)
    datas = jnp.stack([A.data, -A.data])
    dense = jax.vmap(lambda d: A.with_data(d).todense())(datas)
    np.testing.assert_array_equal(dense, np.stack([A.todense(), -A.todense()]))
    batch = dataclasses.replace(A, data=datas)
    axes = dataclasses.replace(jax.tree.map(lambda _: None, A), data=0)
    again = jax.vmap(lambda A: A.astype(jnp.int32), (axes,), axes)(batch)
    assert again.data.shape == (2, A.nse) and again.dtype == jnp.int32
    whole = jax.tree.map(lambda leaf: jnp.stack([leaf, leaf]), A)
    sums = jax.vmap(lambda A: A.asformat("coo").todense().sum())(whole)
    np.testing.assert_allclose(sums, np.full(2, A.todense().sum()))


@pytest.mark.parametrize("name", NAMES)
def test_pickles_and_copies(name):
    A = make(PROBLEMS["shuffled"], name)
    for B in (pickle.loads(pickle.dumps(A)), copy.deepcopy(A)):
        assert type(B) is type(A) and jax.tree.structure(B) == jax.tree.structure(A)
        np.testing.assert_array_equal(B.todense(), A.todense())
    with pytest.raises(dataclasses.FrozenInstanceError):
        A.data = None


@pytest.mark.parametrize("name", NAMES)
def test_host_copies_are_refused_under_jit(name):
    with pytest.raises(ValueError, match="`to_scipy` needs concrete values"):
        jax.jit(lambda A: A.to_scipy().nnz)(make(PROBLEMS["self loops"], name))


def test_formats_are_listed_under_their_names():
    assert {"coo", "csr", "csc"} <= set(FORMATS)
    for name, cls in FORMATS.items():
        assert cls.format == name and issubclass(cls, SparseMatrix)
        assert getattr(jsp, cls.__name__) is cls


@pytest.mark.parametrize("width, chosen", [(3, ("ell", "ell")), (70, ("ell", "csr"))])
def test_padded_rows_are_chosen_by_their_lengths_and_by_where_they_are(width, chosen, monkeypatch):
    row = np.repeat(np.arange(128), width)
    A = jsp.from_edges(row, (row + np.tile(np.arange(width), 128)) % 128, shape=(128, 128))
    here = jsp.choose_format(A, "mxv")
    assert (here.format, here.rows.longest, here.rows.variance) == (chosen[0], width, 0)
    monkeypatch.setattr(choose, "on_accelerator", lambda *arrays: True)
    assert jsp.choose_format(A, "mxv").format == chosen[1]


def test_a_cpu_pads_rows_of_similar_lengths_and_of_few_entries():
    def chosen(rows, slots):  # a row of `slots` entries for one of a single entry
        row = np.concatenate([np.arange(rows), np.repeat(np.arange(0, rows, 2), slots - 1)])
        near = np.concatenate([np.zeros(rows, int), np.tile(np.arange(1, slots), rows // 2)])
        A = jsp.from_edges(row, (row + near) % rows, shape=(rows, rows))
        return jsp.choose_format(A, "mxv")

    assert chosen(64, 3).format == "ell" == chosen(64, 8).format  # 1.5 and 1.78 slots an entry
    few, many = chosen(64, 16), chosen(8192, 16)  # 1.88
    assert (few.format, many.format) == ("ell", "csr") and few.rows.ell == many.rows.ell


def test_a_dense_array_beyond_memory_is_an_error_and_no_end_of_the_process():
    A = jsp.from_edges([0], [1], shape=(2**24, 2**24))
    with pytest.raises(jax.errors.JaxRuntimeError, match="(?i)memory"):
        np.asarray(A.todense())  # 2^50 bytes


@pytest.mark.parametrize("name", ["csr", "csc", "coo"])
def test_ell_is_the_same_on_the_host_and_in_a_program(name):
    row, col = np.random.default_rng(0).integers(0, 9, (2, 30))
    A = jsp.from_edges(row, col, np.arange(30.0), shape=(11, 9), nse=33, format=name)
    host = A.asformat("ell")
    traced = jax.jit(lambda coo: jsp.ELL.from_coo(coo, width=host.width))(A.asformat("coo"))
    for field in ("indices", "data", "overflow"):
        np.testing.assert_array_equal(getattr(host, field), getattr(traced, field))
    assert host.check_invariants().shape == (11, 9) and int(host.count) == int(A.count)
