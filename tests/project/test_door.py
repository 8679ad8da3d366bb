"""The top level: what it lists, what it suggests for another name, names of python-graphblas."""

import inspect
import operator

import jax.numpy as jnp
import networkx as nx
import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import jaxspv as jsp
from jaxspv.interop import names
from jaxspv.native import bind

pytestmark = pytest.mark.fast


@pytest.mark.parametrize(
    "name, words",
    [
        ("minimum_spanning_tree", "did you mean `jsp.minimum_spanning_forest`?"),
        ("rmat", "it is `jsp.generators.rmat`"),
        ("reached", "it is `jsp.until.reached`"),
        ("BFS", "it is `jsp.results.BFS`"),
        ("plus", "it is `jsp.operators.plus`"),
        ("pagerak", "did you mean `jsp.pagerank`?"),
        ("from_pandas", "did you mean `jsp.io.from_table`?"),
        ("Matrix", "did you mean `jsp.from_edges`?"),
        ("subgraph", "did you mean `jsp.extract`?"),
        ("yen", "did you mean `jsp.k_shortest_paths`?"),
        ("floyd_warshall", "use `jsp.all_pairs_shortest_path_length(A, weighted=True)`"),
        ("bmat", "use `jsp.from_scipy(scipy.sparse.bmat(...))`"),
        ("format", "has no attribute 'format'"),
    ],
)
def test_an_unknown_name_is_answered_with_the_one_that_was_meant(name, words):
    with pytest.raises(AttributeError, match="has no attribute") as caught:
        getattr(jsp, name)
    assert str(caught.value).endswith(words)


@pytest.mark.parametrize("name", ["np", "_nothing", "qqqqqq", "__wrapped__"])
def test_nothing_is_suggested_where_nothing_is_near(name):
    with pytest.raises(AttributeError) as caught:
        getattr(jsp, name)
    assert str(caught.value) == f"module 'jaxspv' has no attribute {name!r}"


def test_what_is_suggested_exists():
    for name in names.FAMILIAR.values():
        assert callable(operator.attrgetter(name)(jsp)), name


def test_dir_lists_names_and_submodules_and_no_folders_of_the_code():
    listed = {name for name in dir(jsp) if not name.startswith("_")}
    modules = {name for name in listed if inspect.ismodule(getattr(jsp, name))}
    assert modules == {*names.SUBMODULES, "datasets"}
    assert {"bfs", "CSR", "grad", "until"} <= listed and len(listed) < 130


def test_names_of_python_graphblas_stand_beside():
    x = jnp.asarray([-1.5, 2.0])
    np.testing.assert_array_equal(jsp.operators.abs(x), np.abs(x))
    np.testing.assert_array_equal(jsp.operators.round(x), np.round(x))
    np.testing.assert_array_equal(jsp.operators.min(x, 0.5), [-1.5, 0.5])
    np.testing.assert_array_equal(jsp.operators.max(x, 0.5), [0.5, 2.0])
    np.testing.assert_array_equal(jsp.operators.pow(x, 2.0), [2.25, 4.0])
    np.testing.assert_array_equal(jsp.operators.oneb(x, x), [1.0, 1.0])
    A = jsp.from_dense([[3.0, 1.0], [0.0, 2.0]])
    np.testing.assert_array_equal(jsp.reduce(A, jsp.monoids.min, axis=1).todense(), [1.0, 2.0])
    np.testing.assert_array_equal(jsp.reduce(A, jsp.monoids.max, axis=1).todense(), [3.0, 2.0])
    assert jsp.monoids.any is jsp.monoids.any_ and jsp.monoids.eq is jsp.monoids.lxnor


def test_explain_takes_names_of_submodules():
    A, Q = jsp.from_dense([[0.0, 1.0], [1.0, 0.0]]), jnp.ones((2, 3))
    assert jsp.explain("learning.attention", A, Q, Q, Q).on("cpu") is not None
    for wrong in ("learning.no_such", "learning", "until.Until", "no_such.attention"):
        with pytest.raises(ValueError, match="`op` must be a function"):
            jsp.explain(wrong, A)


def test_a_plan_is_of_the_operation_asked_for_where_others_run_beside():
    """louvain calls modularity for its result."""
    A = jsp.from_edges([0, 1, 2, 3], [1, 0, 3, 2], shape=(4, 4))
    plan = jsp.explain("louvain", A)
    assert plan.op == "louvain"
    assert plan.on("cpu").backend == ("xla" if bind.refused() else "cpu")
    assert "\nmodularity: " in str(plan)


def test_suggestions_for_methods_of_scipy_do_what_they_do_there():
    S = scipy.sparse.random_array((6, 6), density=0.4, format="csr", rng=np.random.default_rng(0))
    T = S.T.tocsr()
    A, B = jsp.from_scipy(S.astype(np.float32)), jsp.from_scipy(T.astype(np.float32))
    scope = {"jsp": jsp, "jnp": jnp, "A": A, "B": B, "i": 2, "j": 3}
    for name, *arguments in (
        ("maximum", T),
        ("minimum", T),
        ("trace",),
        ("count_nonzero",),
        ("argmax",),
        ("sqrt",),
        ("conj",),
    ):
        with pytest.raises(AttributeError, match=f"'CSR' has no attribute '{name}'; use `") as said:
            getattr(A, name)
        got = eval(str(said.value).split("`")[1], scope)
        want = getattr(S, name)(*arguments)
        dense = [v.toarray() if hasattr(v, "toarray") else v for v in (got, want)]
        np.testing.assert_allclose(*dense, rtol=1e-6, err_msg=name)


def test_suggestions_for_names_of_other_libraries_do_what_they_do_there():
    A = jsp.read_mtx(jsp.bundled("karate"))
    S = A.to_scipy()
    graph = nx.from_scipy_sparse_array(S)
    scope = {"jsp": jsp, "jnp": jnp, "A": A, "n": A.shape[0]}

    def meant(place, name):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'; use `") as said:
            getattr(place, name)
        return eval(str(said.value).split("`")[1], scope)

    assert meant(A, "nvals") == S.nnz and meant(A, "nrows") == meant(A, "ncols") == 34
    np.testing.assert_array_equal(meant(A, "to_dense"), S.toarray())
    laplacian = scipy.sparse.csgraph.laplacian(S).toarray()
    np.testing.assert_array_equal(meant(jsp, "laplacian").todense(), laplacian)
    distances = scipy.sparse.csgraph.floyd_warshall(S)
    np.testing.assert_array_equal(meant(jsp, "floyd_warshall").lengths, distances)
    assert bool(meant(jsp, "is_connected")) == nx.is_connected(graph)
    central = list(nx.degree_centrality(graph).values())
    np.testing.assert_allclose(meant(jsp, "degree_centrality"), central, rtol=1e-6)
    with pytest.raises(AttributeError, match="use the function `jsp.mxm`"):
        A.mxm  # noqa: B018
    assert not hasattr(A, "_repr_png_") and not hasattr(A, "nothing")


def test_scipy_takes_a_matrix_as_a_linear_operator():
    D = np.random.default_rng(0).random((7, 9)).astype(np.float32)
    operator = scipy.sparse.linalg.aslinearoperator(jsp.from_dense(D))
    np.testing.assert_allclose(operator @ np.ones(9), D.sum(1), rtol=1e-6)
    np.testing.assert_allclose(operator.H @ np.ones(7), D.sum(0), rtol=1e-6)
    np.testing.assert_allclose(operator.H @ np.ones((7, 1)), D.sum(0)[:, None], rtol=1e-6)
    np.testing.assert_allclose(operator.H @ np.ones((7, 2)), D.sum(0)[:, None] * [1, 1], rtol=1e-6)


@pytest.mark.parametrize("solver", ["bicg", "bicgstab", "cg", "cgs", "gmres", "lgmres", "qmr"])
def test_solvers_of_scipy_take_a_matrix(solver):
    D = np.random.default_rng(0).random((6, 6)).astype(np.float32)
    D = D + D.T + 9 * np.eye(6, dtype=np.float32)
    x, failed = getattr(scipy.sparse.linalg, solver)(jsp.from_dense(D), D.sum(1), rtol=1e-5)
    assert not failed
    np.testing.assert_allclose(x, 1, rtol=1e-4)


def test_a_matrix_of_scipy_is_an_operand_on_the_right():
    D = np.random.default_rng(0).random((4, 4)).astype(np.float32)
    product = jsp.from_dense(D) @ scipy.sparse.csr_array(D)
    np.testing.assert_allclose(product.todense(), D @ D, rtol=1e-6)
