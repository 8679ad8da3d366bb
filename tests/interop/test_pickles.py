"""Pickles hold public names alone, so that they load after files have moved."""

import pickle
import pickletools

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp

A = jsp.from_edges([0, 1, 1], [1, 2, 0], [1.0, 2.0, 3.0], shape=(3, 3))
OBJECTS = {
    **{f: A.asformat(f) for f in ("coo", "csr", "csc", "ell", "sell", "tiled", "bittiled")},
    "vector": jsp.vector_from_entries([1], [2.0], 3),
    "graph": jsp.prepare(A, for_="bfs"),
    "levels": jsp.bfs(A, 0),
    "components": jsp.connected_components(A),
    "condition": jsp.until.reached(2) | jsp.until.max_iterations(3),
}


def modules_in(data):
    """The modules of this package that a pickle names."""
    found, strings = set(), []
    for code, argument, _ in pickletools.genops(data):
        if code.name == "STACK_GLOBAL":
            found.add(strings[-2])
        if isinstance(argument, str):
            strings.append(argument)
    return {name for name in found if name.startswith("jaxspv")}


@pytest.mark.parametrize("name", OBJECTS)
def test_a_pickle_names_the_package_alone(name):
    assert modules_in(pickle.dumps(OBJECTS[name], protocol=4)) <= {"jaxspv"}


def test_a_pickle_loads_after_a_move(monkeypatch):
    data = pickle.dumps((A, OBJECTS["levels"]))
    for cls in (jsp.CSR, jsp.COO, jsp.results.BFS):
        monkeypatch.setattr(cls, "__module__", "jaxspv.another.place")
    again, levels = pickle.loads(data)
    np.testing.assert_array_equal(again.todense(), A.todense())
    assert type(again) is type(A) and type(levels) is jsp.results.BFS
    assert jnp.array_equal(levels.levels, OBJECTS["levels"].levels)
