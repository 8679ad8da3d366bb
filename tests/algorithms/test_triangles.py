"""Triangle counting against NetworkX, SciPy and a definition by loops over triples."""

import itertools

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
from graph_files import data_folder
from hypothesis import given
from strategies import edges

import jaxspv as jsp
from jaxspv import verify
from jaxspv._core.reductions import exact_sum

METHODS = (None, "dot")


def undirected(senders, receivers, n):
    """The matrix of both directions, values that do not matter, self loops as they come."""
    ends = np.concatenate([senders, receivers]), np.concatenate([receivers, senders])
    return jsp.from_edges(*ends, np.arange(2.0 * len(senders)) - 3, shape=(n, n), nse=40)


@given(edges((7, 7), 18))
def test_random_graphs_with_loops_and_duplicates(ends):
    senders, receivers = ends
    G = undirected(senders, receivers, 7)
    linked = {frozenset(e) for e in zip(senders.tolist(), receivers.tolist(), strict=True)}
    triples = itertools.combinations(range(7), 3)
    want = sum(all(frozenset(p) in linked for p in itertools.combinations(t, 2)) for t in triples)
    for method in METHODS:
        found = jsp.triangle_count(G, method=method)
        assert int(found.count) == want and not bool(found.overflow)
    verify.triangles(G, found)


@pytest.mark.parametrize("name", ["karate", "chesapeake", "jazz", "polblogs", "delaunay_n13"])
def test_real_graphs(name):
    if data_folder() is None:
        pytest.skip("no real graphs: put them into ../shared/data or set JAXSPV_DATA")
    (path,) = data_folder().glob(f"{name}.mtx*")
    G = jsp.read_mtx(path)
    found = jsp.triangle_count(G)
    verify.triangles(G, found)
    graph = networkx.from_scipy_sparse_array(G.to_scipy())
    graph.remove_edges_from(list(networkx.selfloop_edges(graph)))
    assert 3 * int(found.count) == sum(networkx.triangles(graph).values())


def test_under_jit_and_prepared():
    G = undirected(np.array([0, 1, 2, 3]), np.array([1, 2, 0, 3]), 5)
    assert int(jax.jit(jsp.triangle_count)(G).count) == 1
    assert int(jsp.triangle_count(jsp.prepare(G, for_=(), symmetric=True)).count) == 1
    assert "on CPUs, xla/dot elsewhere" in str(jsp.explain("triangle_count", G))


def test_complete_graphs_and_none():
    full = jsp.from_dense(jnp.ones((9, 9)) - jnp.eye(9))
    assert int(jsp.triangle_count(full).count) == 84
    assert int(jsp.triangle_count(jsp.from_edges([], [], shape=(4, 4))).count) == 0


def test_bad_graphs():
    with pytest.raises(ValueError, match="must have a symmetric pattern"):
        jsp.triangle_count(jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3)))
    with pytest.raises(ValueError, match="square"):
        jsp.triangle_count(jsp.from_edges([0], [1], shape=(2, 3)))
    with pytest.raises(TypeError, match="needs a sparse matrix or a Graph"):
        jsp.triangle_count(np.ones((3, 3)))


def test_the_checker_notices_a_wrong_count():
    G = undirected(np.array([0, 1, 2]), np.array([1, 2, 0]), 4)
    found = jsp.triangle_count(G)
    with pytest.raises(AssertionError, match="2 triangles are counted, not 1"):
        verify.triangles(G, found._replace(count=jnp.int32(2)))


def test_counts_beyond_32_bits():
    """Of the last stage: K_n with more than 2^31 triangles takes seconds."""
    counts = jnp.full(100, 2**31 - 1, jnp.int32)
    want = 100 * (2**31 - 1)
    for total in (exact_sum, jax.jit(exact_sum)):
        found = total(counts)
        assert int(found) == want == np.asarray(found) and found.dtype == np.int64
    several = jax.vmap(exact_sum)(jnp.stack([counts, counts // 2]))
    assert np.asarray(several).tolist() == [want, 100 * (2**30 - 1)]
    assert int(jax.jit(lambda x: x)(found)) == want
    assert float(jax.jit(lambda x: x.astype(jnp.float32))(found)) == np.float32(want)
