"""A cache of results that eager calls derived from arrays, for later calls on the same arrays."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer

from ..compilation import known_while_tracing, outside_of_traces

_T = TypeVar("_T")


class _Entry(NamedTuple):
    """Values by name, and weak references to the arrays they belong to."""

    values: dict[Hashable, Any]
    arrays: list[Any]


class _Kept:
    """An LRU cache keyed by the identity of arrays, held by weak references.

    Arrays are immutable, so what was derived from one stays valid while it lives. An entry is
    dropped as soon as one of its arrays is garbage-collected.
    """

    def __init__(self, most: int):
        self.most = most
        self.entries: collections.OrderedDict[tuple[int, ...], _Entry] = collections.OrderedDict()

    def entry(self, arrays: tuple[Any, ...]) -> _Entry | None:
        """The entry of these arrays, created if missing; None where nothing can be cached."""
        if self.most <= 0 or not all(
            isinstance(a, jax.Array) and not isinstance(a, Tracer) for a in arrays
        ):
            return None
        key = tuple(map(id, arrays))
        found = self.entries.get(key)
        if found is None:

            def gone(_, key=key):
                self.entries.pop(key, None)

            found = _Entry({}, [weakref.ref(a, gone) for a in arrays])
            self.entries[key] = found
            self.shrink()
        else:
            self.entries.move_to_end(key)
        return found

    def shrink(self) -> None:
        while len(self.entries) > max(self.most, 0):
            self.entries.popitem(last=False)


KEPT = _Kept(16)


def keep_prepared(most: int) -> int:
    """Sets for how many matrices eager calls cache what they computed about them; default 16.

    An eager call on a bare matrix checks its weights (NaN, negative ones, their mean) and converts
    other formats to CSR. Both are cached for later calls on the same arrays while these live, for
    the matrices used last. Layouts are only made by `prepare` and held by the `Graph` that it
    returns. Inside of jit nothing is cached.

    Args:
        most: the number of matrices; 0: nothing is cached.

    Returns:
        The number before.

    Raises:
        ValueError: it is no integer >= 0.

    >>> import jaxspv as jsp
    >>> before = jsp.config.keep_prepared(0)
    >>> jsp.config.keep_prepared(before)
    0
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise ValueError(f"`most` must be an integer >= 0; got {most!r}.")
    before, KEPT.most = KEPT.most, most
    KEPT.shrink()
    return before


def kept(arrays: tuple[Any, ...], name: Hashable, compute: Callable[[], _T]) -> _T:
    """`compute()`, cached by arrays and name while the arrays live; inside of traces not cached.

    `compute` may depend on nothing else. Arrays that its result shares with the key are copied, as
    the cache would keep the key alive.
    """
    if (entry := KEPT.entry(arrays) if outside_of_traces() else None) is None:
        return compute()
    if name not in entry.values:
        with known_while_tracing():
            value, own = compute(), set(map(id, arrays))
            value = jax.tree.map(lambda leaf: jnp.copy(leaf) if id(leaf) in own else leaf, value)
        entry.values[name] = value
    return entry.values[name]
