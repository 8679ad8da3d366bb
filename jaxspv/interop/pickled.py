"""Pickles name public places: one that is made today loads after files have moved."""

from __future__ import annotations

import functools
import sys
from types import ModuleType
from typing import Any

import jax.numpy as jnp

from ..formats.stored import Edges
from ..formats.tiled.bit_tiled import Words

SUBMODULES = ("results", "learning", "sharding", "until")
_PLACES: dict[type, tuple[str, str]] = {}  # class -> submodule or "", name


def published(package: ModuleType) -> None:
    """Pickles objects of the public classes by the names that users type."""
    vars(package).update(_Words=Words, _unpickled=unpickled)  # parts without a public name
    for place in ("", *SUBMODULES):
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
