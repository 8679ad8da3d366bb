"""What eager calls keep of bare matrices: once, while the arrays live, never in a trace."""

import functools
import gc

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp
from jaxspv._core.eager import kept
from jaxspv.algorithms.closure import pieces
from jaxspv.algorithms.common import edges, weights
from jaxspv.graph import as_graph
from jaxspv.ops.products.mxm import plan

pytestmark = pytest.mark.fast
TAIL, HEAD = np.array([0, 1, 2, 0, 3]), np.array([1, 2, 3, 3, 4])


@pytest.fixture(autouse=True)
def looked(monkeypatch):
    """How often weights were looked at; nothing is kept at the start."""
    kept.KEPT.entries.clear()
    found, count = weights._found, []
    monkeypatch.setattr(weights, "_found", lambda graph: (count.append(1), found(graph))[1])
    yield count
    assert kept.KEPT.most == 16


def matrix(values=(4.0, 1.0, 1.0, 9.0, 1.0)):
    return jsp.from_edges(TAIL, HEAD, np.asarray(values, np.float32), shape=(5, 5))


def test_weights_are_looked_at_once_and_results_are_those_of_a_prepared_graph(looked):
    A = matrix()
    want = csgraph.dijkstra(A.to_scipy(), indices=0)
    for source in (0, 0, 1):
        result = jsp.sssp(A, source)
    np.testing.assert_array_equal(jsp.sssp(A, 0).distances, want)
    assert result.steps == jsp.sssp(jsp.prepare(A, for_="sssp"), 1).steps
    jsp.pagerank(A)
    assert len(looked) == 1
    same = jsp.CSR(A.data, A.indices, A.indptr, A.overflow, A.shape)
    jsp.sssp(same, 0)  # the arrays count, not the object
    assert len(looked) == 1
    jsp.sssp(A.with_data(2 * A.data), 0)
    assert len(looked) == 2


def test_a_pattern_is_cut_for_closures_once(monkeypatch):
    cut, count = pieces.cut, []
    monkeypatch.setattr(pieces, "cut", lambda *of: (count.append(1), cut(*of))[1])
    A = matrix()
    other = jsp.from_edges(TAIL, HEAD + 1, np.arange(5.0), shape=(6, 6))
    others = A, A.with_data(A.data + 2), A.T, other
    for number, B in zip((1, 1, 2, 3), others, strict=True):
        for source in (0, 3):
            want = csgraph.dijkstra(B.to_scipy(), indices=source)
            np.testing.assert_array_equal(jsp.closure(B, start=source).x, want)
        assert len(count) == number
    jax.jit(functools.partial(jsp.closure, A, start=0))()
    assert len(count) == 4  # what is traced is not kept
    del A, B, other, others
    gc.collect()
    assert not kept.KEPT.entries


def test_a_matrix_is_compared_with_its_transpose_once(monkeypatch):
    compare, count = edges.known_symmetric, []
    counted = lambda *of: (count.append(1), compare(*of))[1]  # noqa: E731
    monkeypatch.setattr(edges, "known_symmetric", counted)
    A = jsp.from_edges(np.r_[TAIL, HEAD], np.r_[HEAD, TAIL], np.ones(10, np.float32), shape=(5, 5))
    for _ in range(2):
        assert int(jsp.triangle_count(A).count) == 0
        assert int(jsp.core_number(A).cores.max()) == 2
        assert len(count) == 1
        with pytest.raises(ValueError, match="symmetric pattern"):
            jsp.triangle_count(matrix())
        count.pop()  # of another matrix


def test_another_thread_may_drop_an_entry(looked, monkeypatch):
    monkeypatch.setattr(kept._Kept, "shrink", lambda cache: cache.entries.clear())
    np.testing.assert_array_equal(jsp.sssp(matrix(), 0).distances[:3], [0, 4, 5])
    assert len(looked) == 1


def test_nothing_is_kept_alive_and_only_so_many_matrices(looked):
    A = matrix()
    jsp.sssp(A, 0)
    assert len(kept.KEPT.entries) == 1
    del A
    gc.collect()
    assert not kept.KEPT.entries
    many = [matrix(np.arange(1, 6) + k) for k in range(20)]
    for A in many:
        jsp.sssp(A, 0)
    assert len(kept.KEPT.entries) == 16
    jsp.sssp(many[-1], 0)
    assert len(looked) == 21
    jsp.sssp(many[0], 0)
    assert len(looked) == 22


def test_it_can_be_turned_off(looked):
    before = jsp.config.keep_prepared(0)
    try:
        A = matrix()
        for _ in range(2):
            assert jsp.sssp(A, 0).distances[3] == 6
        assert len(looked) == 2 and not kept.KEPT.entries
    finally:
        assert jsp.config.keep_prepared(before) == 0
    for wrong in (-1, 1.5, True, None):
        with pytest.raises(ValueError, match="`most` must be an integer >= 0"):
            jsp.config.keep_prepared(wrong)  # pyright: ignore[reportArgumentType]


def test_nothing_in_traces(looked):
    A = matrix()
    jax.jit(lambda A: jsp.sssp(A, 0).distances)(A)
    jax.jit(lambda s: jsp.sssp(A, s).distances)(0)  # captured
    jax.grad(lambda w: jsp.sssp(A.with_data(w), 0).distances[3])(A.data)
    assert not kept.KEPT.entries
    jsp.explain(jax.jit(lambda s: jsp.sssp(A, s)), 0)
    assert not kept.KEPT.entries
    many = jax.vmap(lambda s: jsp.sssp(A, s).distances)(jnp.arange(2))
    np.testing.assert_array_equal(many, csgraph.dijkstra(A.to_scipy(), indices=[0, 1]))


@pytest.mark.parametrize("name", ["sssp", "pagerank"])
def test_layouts_are_made_by_prepare_alone(name):
    A, G = matrix(), jsp.prepare(matrix(), for_=name)
    for _ in range(3):
        getattr(jsp, name)(A, *((0,) if name == "sssp" else ()))
        assert not as_graph(A, name, (name,)).layouts
    advice = f"note: `prepare(A, for_='{name}')` would"
    assert advice in str(jsp.explain(name, A)) and advice not in str(jsp.explain(name, G))


def test_errors_are_told_in_every_call():
    A = matrix((4.0, np.nan, 1.0, 9.0, 1.0))
    for _ in range(2):
        with pytest.raises(ValueError, match="weights must not be NaN; the one in slot 2 is"):
            jsp.sssp(A, 0)
    B = matrix((4.0, -1.0, 1.0, 9.0, 1.0))
    for G in (B, B, jsp.prepare(B, for_="sssp")):
        with pytest.raises(ValueError, match="negative weights need method='bellman_ford'"):
            jsp.sssp(G, 0, delta=1.0)
        with pytest.raises(ValueError, match="weights must be finite and >= 0"):
            jsp.pagerank(G)
        assert jsp.sssp(G, 0).distances[3] == 4


@pytest.mark.parametrize("format", ["coo", "csc", "tiled"])
def test_other_formats_are_converted_once(format, looked):
    A = matrix().asformat(format)
    for _ in range(2):
        np.testing.assert_array_equal(jsp.sssp(A, 0).distances, [0, 4, 5, 6, 7])
    assert len(looked) == 1
    assert len(kept.KEPT.entries) == 2
    del A
    gc.collect()
    assert not kept.KEPT.entries


def test_a_prepared_graph_may_be_donated():
    A = matrix().asformat("coo")
    for _ in range(2):
        for array in jax.tree.leaves(jsp.prepare(A)):  # as `donate_argnums` does
            array.delete()
        np.testing.assert_array_equal(jsp.sssp(A, 0).distances, [0, 4, 5, 6, 7])


def test_what_is_learnt_of_products_may_have_keys_without_an_order():
    A = matrix()
    sizes = kept.kept((A.indptr,), "sizes", plan.Sizes)
    sizes |= {"entries": 3, ("kernels", None): True, None: 4}
    assert kept.kept((A.indptr,), "sizes", plan.Sizes) is sizes


def test_arrays_of_another_shape_are_another_matrix():
    A = matrix().asformat("coo")
    assert jsp.sssp(A, 0).distances.shape == (5,)
    larger = jsp.COO(A.data, A.row, A.col, A.overflow, (7, 7))
    assert jsp.sssp(larger, 6).distances.shape == (7,)
