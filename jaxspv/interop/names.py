"""Public names: what is meant by an unknown one; pickles, which name public places alone.

A pickle that is made today loads after files have moved.
"""

from __future__ import annotations

import difflib
import functools
import sys
from types import ModuleType
from typing import Any

import jax.numpy as jnp

from ..formats.methods import FUNCTIONS
from ..formats.stored import Edges
from ..formats.tiled.bit_tiled import Words

SUBMODULES = (
    *("config", "generators", "graphblas", "io", "learning", "results", "sharding", "until"),
    *("operators", "monoids", "semirings", "plot", "automata"),
)
ELSEWHERE = {  # name here -> what NetworkX, SciPy, LAGraph, python-graphblas or PyG call it
    "all_pairs_shortest_path_length": "all_pairs_dijkstra_path_length",
    "astar": "astar_path",
    "bfs": "breadth_first_order breadth_first_search single_source_shortest_path_length",
    "connected_components": "weakly_connected_components",
    "diag": "diags_array",
    "extract": "subgraph",
    "from_edges": "Matrix coalesce from_coo",
    "from_scipy": "from_pydata_sparse from_scipy_sparse_array",
    "io.from_table": "from_pandas from_pandas_edgelist",
    "io.to_table": "to_pandas to_pandas_edgelist",
    "k_shortest_paths": "yen",
    "label_propagation": "label_propagation_communities",
    "learning.aggregate": "scatter",
    "load_npz": "load",
    "louvain": "louvain_communities",
    "minimum_spanning_forest": "minimum_spanning_edges minimum_spanning_tree",
    "mxv": "spmv",
    "read_edgelist": "read_edges read_weighted_edgelist",
    "read_mtx": "mmread",
    "similarity": "jaccard_coefficient",
    "sssp": "bellman_ford dijkstra shortest_path single_source_dijkstra",
    "triangle_count": "triangles",
    "vector_from_entries": "Vector",
    "vxm": "spmspv",
    "write_edgelist": "write_edges",
    "write_mtx": "mmwrite",
}
FAMILIAR = {name: here for here, names in ELSEWHERE.items() for name in names.split()}
PICKLED = ("results", "learning", "sharding", "until")
_PLACES: dict[type, tuple[str, str]] = {}  # class -> submodule or "", name


def suggestion(package: ModuleType, name: str) -> str:
    """The end of the message that there is no `name` in the package."""
    if name in FUNCTIONS:
        return f"; use {FUNCTIONS[name]}"
    for submodule in SUBMODULES:
        value = getattr(getattr(package, submodule), name, None)
        if getattr(value, "__module__", "").startswith(package.__name__):
            return f"; it is `jsp.{submodule}.{name}`"
    near = difflib.get_close_matches(name, [k for k in dir(package) if k[0] != "_"], 1, 0.7)
    found = FAMILIAR.get(name, next(iter(near), None))
    return f"; did you mean `jsp.{found}`?" if found else ""


def published(package: ModuleType) -> None:
    """Pickles objects of the public classes by the names that users type."""
    vars(package).update(_Words=Words, _unpickled=unpickled)  # parts without a public name
    for place in ("", *PICKLED):
        module = getattr(package, place) if place else package
        for name, value in vars(module).items():
            plain = isinstance(value, type) and value.__reduce_ex__ is object.__reduce_ex__
            if plain and value.__module__.startswith("jaxspv.") and value not in _PLACES:
                _PLACES[value] = place, name
                setattr(value, "__reduce_ex__", _reduced)  # noqa: B010
    unpickled.__module__, unpickled.__qualname__ = package.__name__, "_unpickled"


def _reduced(self: Any, protocol: Any) -> Any:
    place = _PLACES.get(type(self))
    if place is None or type(self).__reduce__ is not object.__reduce__:  # of a user's subclass
        return object.__reduce_ex__(self, protocol)
    state = tuple(self) if isinstance(self, tuple) else dict(vars(self))
    if isinstance(state, dict) and isinstance(edges := state.get("edges"), Edges):
        state["edges"] = edges.number, edges.by_rows, edges.slots()
    return unpickled, (*place, state)


def unpickled(place: str, name: str, state: Any) -> Any:
    """The object of a public class that was pickled with this state."""
    package: Any = sys.modules["jaxspv"]
    cls = getattr(getattr(package, place) if place else package, name)
    if isinstance(state, tuple):
        return tuple.__new__(cls, state)
    if state.get("edges") is not None:
        number, by_rows, slots = state["edges"]
        state = state | {"edges": Edges(number, by_rows, functools.partial(jnp.asarray, slots))}
    made = object.__new__(cls)
    made.__dict__.update(state)
    return made
