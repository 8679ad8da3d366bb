"""Names where vertices are meant, arguments as other libraries call them, results as they print."""

import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms.bfs.api import BFS

pytestmark = pytest.mark.fast
CALLS = {
    "bfs": lambda A, v: jsp.bfs(A, v),
    "sssp": lambda A, v: jsp.sssp(A, v),
    "betweenness": lambda A, v: jsp.betweenness_centrality(A, [0, v]),
    "sample_neighbors": lambda A, v: jsp.learning.sample_neighbors(jax.random.key(0), A, [v], 2),
    "random_walk": lambda A, v: jsp.learning.random_walk(jax.random.key(0), A, [v], 2),
    "path_to": lambda A, v: jsp.bfs(A, 0).path_to(v),
    "has_path": lambda A, v: jsp.has_path(A, 0, v),
    "eccentricity": lambda A, v: jsp.eccentricity(A, [v]),
}


def ring():
    return jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3))


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.parametrize("vertex", ["Rome", np.str_("Rome"), b"Rome"], ids=repr)
def test_the_name_of_a_vertex_is_told_from_its_number(name, vertex):
    with pytest.raises(TypeError, match=r"must be an integer vertex; got .*'Rome'.*labels\.vertex"):
        CALLS[name](ring(), vertex)
    if name in ("bfs", "sssp"):
        with pytest.raises(TypeError, match=r"got 'Rome'.*labels\.vertex"):
            CALLS[name](ring(), np.array(["Rome", "Pisa"]))


def test_a_path_leads_to_an_integer():
    for wrong in (1.5, [1], True):
        with pytest.raises(TypeError, match="`target` must be an integer vertex"):
            jsp.bfs(ring(), 0).path_to(wrong)
    for vertex in (2, np.int64(2), jax.numpy.int32(2)):
        assert jsp.bfs(ring(), 0).path_to(vertex).tolist() == [0, 1, 2]


@pytest.mark.parametrize(
    ("function", "theirs", "ours"),
    [
        (jsp.pagerank, "alpha", "damping"),
        (jsp.pagerank, "max_iter", "max_iterations"),
        (jsp.hits, "max_iter", "max_iterations"),
        (jsp.katz_centrality, "max_iter", "max_iterations"),
        (jsp.eigenvector_centrality, "max_iter", "max_iterations"),
    ],
)
def test_arguments_as_networkx_calls_them_are_told_their_names_here(function, theirs, ours):
    assert ours in inspect.signature(function).parameters
    with pytest.raises(TypeError, match=f"no argument `{theirs}`: it is called `{ours}` here"):
        function(ring(), **{theirs: 1})


def test_a_dictionary_is_no_personalization():
    with pytest.raises(TypeError, match=r"must be an array of shape \(3,\); got a dict"):
        jsp.pagerank(ring(), personalization={0: 1.0})


def test_results_print_in_a_line():
    found = jsp.bfs(ring(), 0)
    assert repr(found) == "BFS(levels=[0, 1, 2], parents=[0, 0, 1], num_levels=3, status=0)"
    n = 1000
    star = jsp.from_edges(np.zeros(n - 1, np.int32), np.arange(1, n), shape=(n, n))
    assert repr(jsp.bfs(star, 0)).startswith("BFS(levels=int32[1000], parents=int32[1000], num")
    nodes = np.arange(100, dtype=np.int32)
    drawn = jsp.learning.sample_neighbors(jax.random.key(0), star, nodes, [2, 3])
    hops = "(int32[100,2], int32[100,2,3])"
    assert repr(drawn) == f"Neighbors(nodes={hops}, slots={hops})"
    by_name = jsp.Labels(range(n)).named(jsp.bfs(star, 0))
    assert repr(by_name).startswith(
        "BFS(levels=<dict of 1000>, parents=<dict of 1000>, num_levels=2"
    )


def test_results_print_without_values():
    """Traced, only their shapes, with holes, deleted."""
    seen = []
    jax.jit(lambda A: seen.append(repr(jsp.bfs(A, 0))))(ring())
    assert seen[0].startswith("BFS(levels=int32[3], parents=int32[3]")
    shapes = jax.eval_shape(lambda A: jsp.bfs(A, 0), ring())
    assert repr(shapes).startswith("BFS(levels=ShapeDtypeStruct(")
    gone = jax.numpy.zeros(3, np.float32)
    gone.delete()
    assert repr(BFS(gone, None, 1, jax.random.key(0))).startswith(
        "BFS(levels=float32[3], parents=None"
    )


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("damping", lambda A, v: jsp.pagerank(A, damping=v)),
        ("tol", lambda A, v: jsp.pagerank(A, tol=v)),
        ("max_iterations", lambda A, v: jsp.pagerank(A, max_iterations=v)),
        ("alpha", lambda A, v: jsp.katz_centrality(A, alpha=v)),
        ("tol", lambda A, v: jsp.eigenvector_centrality(A, tol=v)),
        ("tol", lambda A, v: jsp.hits(A, tol=v)),
        ("temperature", lambda A, v: jsp.soft_sssp(A, 0, v)),
        ("delta", lambda A, v: jsp.sssp(A, 0, delta=v)),
        ("resolution", lambda A, v: jsp.louvain(A, resolution=v)),
        ("resolution", lambda A, v: jsp.modularity(A, jnp.arange(3), resolution=v)),
    ],
)
def test_an_array_where_a_number_is_meant(name, call):
    A, several = ring(), jnp.array([0.25, 0.5])
    A = A + A.T
    message = rf"`{name}` must be a number; got shape \(2,\)"
    with pytest.raises(ValueError, match=message):
        call(A, several)
    with pytest.raises(ValueError, match=message):
        jax.jit(call)(A, several)
    if name != "max_iterations":
        assert jax.vmap(lambda v: jax.tree.leaves(call(A, v))[0])(several).shape[0] == 2
