"""Independent sets and colours: certificates, and NetworkX's greedy colours."""

import functools

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
import scipy.sparse as sp
from graph_cases import named, networkx_of, random_matrix

import jaxspv as jsp
from jaxspv import verify
from jaxspv._core.compat import kernels_refused

BACKENDS = ("cpu", "xla")


@pytest.mark.parametrize("entries", [0, 30, 150])
def test_sets_and_colours_of_random_graphs(entries):
    A = random_matrix(30, entries, entries, symmetric=True)
    G, key = jsp.from_scipy(A), jax.random.key(entries)
    verify.independent_set(A, jsp.maximal_independent_set(key, G))
    g = networkx_of(A, symmetric=True)
    g.remove_edges_from(list(networkx.selfloop_edges(g)))
    want = networkx.greedy_color(g, "largest_first")
    largest_first = sorted(g, key=g.degree, reverse=True)
    order = jax.random.permutation(key, 30)
    own = [jsp.greedy_color(G, backend=b) for b in BACKENDS]
    np.testing.assert_array_equal(own[0].colors, own[1].colors)
    verify.coloring(A, own[0])
    for backend in BACKENDS:
        found = jsp.greedy_color(G, largest_first, backend=backend)
        assert found.colors.tolist() == [want[v] for v in range(30)]
        verify.coloring(A, jsp.greedy_color(G, order, backend=backend))


def test_vertices_of_few_edges_are_first_in_sets_and_last_in_colours():
    """A star with a tail, and rows of lengths that differ by more than the priorities tell."""
    star = sp.coo_array((np.ones(300), (np.zeros(300, int), np.arange(1, 301))), shape=(400, 400))
    tail = sp.coo_array((np.ones(1), ([300], [301])), shape=(400, 400))
    A = sp.csr_array((star + tail) + (star + tail).T)
    for seed in range(3):
        found = jsp.maximal_independent_set(jax.random.key(seed), A)
        assert not found.members[0] and found.members[1:300].all() and int(found.count) == 398
    for backend in BACKENDS:
        colors = jsp.greedy_color(A, backend=backend).colors
        assert colors[0] == 0 and (colors[1:301] == 1).all() and (colors[301:] == 0).all()


@pytest.mark.skipif(kernels_refused() is not None, reason="the kernels need a newer JAX")
def test_each_is_one_launch_on_a_gpu():
    G = jsp.prepare(named("karate"), for_=())
    for ask in (
        functools.partial(jsp.maximal_independent_set, jax.random.key(0)),
        jsp.greedy_color,
    ):
        traced = jax.jit(functools.partial(ask, backend="pallas")).trace(G)
        text = traced.lower(lowering_platforms=("cuda",)).as_text()
        assert text.count("custom_call @mosaic_gpu") == 1
        assert jsp.explain(ask, G).on("cuda").backend == "pallas"


@pytest.mark.gpu
@pytest.mark.parametrize("name", ["karate", "minnesota", "wiki-Vote", "coAuthorsDBLP"])
def test_kernels_find_what_other_forms_find(name):
    A = named(name, symmetric=True)
    G, key = jsp.prepare(A, for_=()), jax.random.key(0)
    for ask in (functools.partial(jsp.maximal_independent_set, key), jsp.greedy_color):
        found, want = (jax.jit(functools.partial(ask, backend=b))(G) for b in ("pallas", "xla"))
        assert int(found.status) == 0
        np.testing.assert_array_equal(found[0], want[0])


def test_ghosts_and_traces():
    A = random_matrix(30, 60, 3, symmetric=True)
    H = jsp.pad(jsp.from_scipy(A), n=40, nse=200)
    found = jsp.maximal_independent_set(jax.random.key(1), H)
    assert not found.members[30:].any()
    verify.independent_set(A, jsp.unpad(found, H))
    for backend in BACKENDS:
        colors = jsp.greedy_color(H, backend=backend)
        assert (colors.colors[30:] == -1).all()
        verify.coloring(A, jsp.unpad(colors, H))
    keys = jax.random.split(jax.random.key(2), 3)
    many = jax.jit(jax.vmap(lambda k: jsp.maximal_independent_set(k, H).members))(keys)
    for k, members in zip(keys, many, strict=True):
        np.testing.assert_array_equal(members, jsp.maximal_independent_set(k, H).members)


@pytest.mark.parametrize("name", ["karate", "minnesota", "wiki-Vote"])
def test_real_graphs(name):
    A = named(name, symmetric=True)
    verify.independent_set(A, jsp.maximal_independent_set(jax.random.key(0), A))
    for backend in BACKENDS:
        verify.coloring(A, jsp.greedy_color(A, backend=backend))


def test_errors_and_wrong_results():
    A = named("karate")
    with pytest.raises(ValueError, match=r"shape \(34,\)"):
        jsp.greedy_color(A, jnp.arange(3))
    with pytest.raises(ValueError, match="must have each vertex once; it lacks 1"):
        jsp.greedy_color(A, np.r_[0, 0, 2:34])
    with pytest.raises(TypeError, match="`order` must be an integer vertex; got 'smallest_last'"):
        jsp.greedy_color(A, "smallest_last")
    with pytest.raises(ValueError, match="`key` must be one key"):
        jsp.maximal_independent_set(0, A)
    found = jsp.maximal_independent_set(jax.random.key(0), A)
    with pytest.raises(AssertionError, match="membership"):
        verify.independent_set(A, found._replace(members=jnp.zeros(34, bool)))
    colors = jsp.greedy_color(A)
    with pytest.raises(AssertionError, match="colour of vertex"):
        verify.coloring(A, colors._replace(colors=jnp.zeros(34, jnp.int32)))


@pytest.mark.parametrize("backend", ["cpu", "xla"])
@pytest.mark.parametrize(
    "shape, entries",
    [((20, 30), 45), ((30, 12), 60), ((25, 25), 0), ((0, 4), 0), ((300, 280), 700)],
)
def test_matchings_are_as_large_as_those_of_scipy(shape, entries, backend):
    rng = np.random.default_rng(entries)
    ends = tuple(rng.integers(0, size, entries) for size in shape)
    A = sp.csr_array((np.ones(entries, np.float32), ends), shape=shape)
    verify.matching(A, jsp.maximum_bipartite_matching(jsp.from_scipy(A), backend=backend))


def test_long_augmenting_paths():
    """Row i holds columns i and i - 1 in the order that a first choice gets wrong."""
    n = 2000
    rows = np.concatenate([np.arange(n), np.arange(1, n)])
    columns = np.concatenate([np.arange(n), np.arange(n - 1)])
    A = sp.csr_array((np.ones(len(rows), np.float32), (rows, columns)), shape=(n, n))
    for B in (A, A[::-1], A[:, ::-1], sp.vstack([A[1:], A[:1]], format="csr")):
        verify.matching(B, jsp.maximum_bipartite_matching(jsp.from_scipy(B)))


def test_matchings_of_lanes():
    A = jsp.from_edges([0, 1, 1, 2], [0, 0, 1, 2], shape=(3, 3)).trim()
    other = jsp.from_edges([0, 1, 2, 2], [0, 0, 0, 1], shape=(3, 3)).trim()
    both = jax.tree.map(lambda a, b: jnp.stack([jnp.asarray(a), jnp.asarray(b)]), A, other)
    found = jax.vmap(lambda A: jsp.maximum_bipartite_matching(A).count)(both)
    assert found.tolist() == [3, 2]


def test_matchings_of_graphs():
    for name in ("karate", "minnesota"):
        A = named(name)
        found = jsp.maximum_bipartite_matching(A)
        verify.matching(A, found)
    A = named("karate")
    found = jax.jit(jsp.maximum_bipartite_matching)(A.asformat("coo"))
    verify.matching(A, found)
    for other in (jsp.prepare(A), A.to_scipy()):
        assert int(jsp.maximum_bipartite_matching(other).count) == int(found.count)
    with pytest.raises(AssertionError, match="row 3"):
        verify.matching(A, found._replace(columns=found.columns.at[3].set(30)))
    with pytest.raises(TypeError, match="needs a sparse matrix"):
        jsp.maximum_bipartite_matching(np.eye(3))
