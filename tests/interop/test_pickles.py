"""Pickles hold public names alone, so that they load after files have moved."""

import functools
import pickle
import pickletools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

FORMATS = ("coo", "csr", "csc", "ell", "sell", "tiled", "bittiled")
MAKE = {
    **{f: functools.partial(lambda f, A: A.asformat(f), f) for f in FORMATS},
    "vector": lambda A: jsp.vector_from_entries([1], [2.0], 3),
    "graph": lambda A: jsp.prepare(A, for_="bfs"),
    "levels": lambda A: jsp.bfs(A, 0),
    "components": jsp.connected_components,
    "condition": lambda A: jsp.until.reached(2) | jsp.until.max_iterations(3),
}


@pytest.fixture(scope="module")
def A():
    return jsp.from_edges([0, 1, 1], [1, 2, 0], [1.0, 2.0, 3.0], shape=(3, 3))


def modules_in(data):
    """The modules of this package that a pickle names."""
    found, strings = set(), []
    for code, argument, _ in pickletools.genops(data):
        if code.name == "STACK_GLOBAL":
            found.add(strings[-2])
        if isinstance(argument, str):
            strings.append(argument)
    return {name for name in found if name.startswith("jaxspv")}


@pytest.mark.parametrize("name", MAKE)
def test_a_pickle_names_the_package_alone(name, A):
    assert modules_in(pickle.dumps(MAKE[name](A), protocol=4)) <= {"jaxspv"}


def test_a_pickle_loads_after_a_move(monkeypatch, A):
    found = jsp.bfs(A, 0)
    data = pickle.dumps((A, found))
    for cls in (jsp.CSR, jsp.COO, jsp.results.BFS):
        monkeypatch.setattr(cls, "__module__", "jaxspv.another.place")
    again, levels = pickle.loads(data)
    np.testing.assert_array_equal(again.todense(), A.todense())
    assert type(again) is type(A) and type(levels) is jsp.results.BFS
    assert jnp.array_equal(levels.levels, found.levels)
