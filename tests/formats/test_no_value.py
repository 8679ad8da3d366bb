"""What NumPy and Python would answer without sense about a sparse object is refused."""

import numpy as np
import pytest

import jaxspv as jsp

pytestmark = pytest.mark.fast
MAKE = {
    "csr": lambda A: A,
    "csc": lambda A: A.T,
    "coo": lambda A: A.asformat("coo"),
    "tiled": lambda A: A.asformat("tiled"),
    "vector": lambda A: jsp.vector_from_entries([0], [1.0], 2),
    "graph": jsp.prepare,
}


@pytest.fixture(scope="module")
def A():
    return jsp.from_edges([0, 1], [1, 0], shape=(2, 2))


@pytest.mark.parametrize("kind", MAKE)
def test_truth_arrays_and_equality(kind, A):
    thing = MAKE[kind](A)
    with pytest.raises(TypeError, match="no truth value"):
        bool(thing)
    with pytest.raises(TypeError, match="is no array"):
        np.asarray(thing)
    for other in (jsp.from_edges([0], [1], shape=(2, 2)), 1.0, np.ones((2, 2))):
        with pytest.raises(TypeError, match="compare identity"):
            thing == other  # noqa: B015
        with pytest.raises(TypeError, match="compare identity"):
            other == thing  # noqa: B015
    assert thing == thing  # noqa: PLR0124
    assert thing != None  # noqa: E711
    assert thing in {thing: 1}


def test_arithmetic_with_arrays_still_works(A):
    assert (np.ones((2, 2), np.float32) * A).todense().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_what_did_not_converge_is_told_its_own_cause():
    with pytest.raises(ValueError, match="`max_iterations` were too few"):
        jsp.check(jsp.pagerank(jsp.read_mtx(jsp.bundled("karate")), tol=0.0, max_iterations=1))
    cycle = jsp.from_edges([0, 1], [1, 0], [-1.0, -1.0], shape=(2, 2))
    with pytest.raises(ValueError, match="a negative cycle"):
        jsp.check(jsp.sssp(cycle, 0, max_steps=2))
