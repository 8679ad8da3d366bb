"""Checkers of `verify` pass what is right and name what is not, of results that are spoilt."""

import jax.numpy as jnp
import numpy as np
import pytest
from graph_cases import named, random_matrix

import jaxspv as jsp
from jaxspv import verify

PAIRS = np.array([0, 3, 5, 7]), np.array([1, 4, 9, 7])


def _bound(A):
    return jnp.zeros(A.shape[0])


CASES = {  # call(A), check(A, result), what spoils a result
    "astar": (
        lambda A: jsp.astar(A, 0, 7, _bound(A)),
        lambda A, r: verify.astar(A, 0, 7, r),
        lambda r: r._replace(distance=r.distance + 1),
    ),
    "similarity": (
        lambda A: jsp.similarity(A, *PAIRS),
        lambda A, r: verify.similarity(A, *PAIRS, r),
        lambda r: r._replace(jaccard=r.jaccard + 0.1),
    ),
    "eccentricity": (
        jsp.eccentricity,
        verify.eccentricity,
        lambda r: r._replace(values=r.values.at[3].add(1)),
    ),
    "diameter": (jsp.diameter, verify.diameter, lambda r: r._replace(diameter=r.diameter + 1)),
    "bipartition": (
        jsp.bipartition,
        verify.bipartition,
        lambda r: r._replace(sides=r.sides.at[2].set(1 - r.sides[2])),
    ),
    "square clustering": (
        jsp.square_clustering,
        verify.square_clustering,
        lambda r: r.at[1].add(0.1),
    ),
    "triangle centrality": (
        jsp.triangle_centrality,
        verify.triangle_centrality,
        lambda r: r.at[1].add(0.1),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("edges", [25, 90])
def test_right_results_pass_and_spoilt_ones_do_not(name, edges):
    call, check, spoil = CASES[name]
    A = random_matrix(30, edges, 1, symmetric=True)
    result = call(jsp.from_scipy(A))
    check(A, result)
    with pytest.raises(AssertionError):
        check(A, spoil(result))


@pytest.mark.long
@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("graph", ["karate", "jazz", "power"])
def test_real_graphs(name, graph):
    A = named(graph)
    call, check, _ = CASES[name]
    check(A, call(A))


def test_two_sides_of_an_even_cycle():
    A = jsp.from_edges([0, 1, 2, 3, 4], [1, 2, 3, 0, 4], shape=(6, 6))
    verify.bipartition(A, jsp.bipartition(A))
