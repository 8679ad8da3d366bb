"""A cache of results that eager calls derived from arrays, for later calls on the same arrays."""

from __future__ import annotations

import collections
import contextlib
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from .arrays import is_eager

_T = TypeVar("_T")


class _Kept:
    """An LRU cache keyed by the identity of arrays, held by weak references.

    Arrays are immutable, so what was derived from one stays valid while it lives. An entry is
    dropped as soon as one of its arrays is garbage-collected.
    """

    def __init__(self, most: int):
        self.most = most
        self.entries: collections.OrderedDict[tuple[int, ...], tuple[dict[Hashable, Any], Any]]
        self.entries = collections.OrderedDict()  # values by name, references to the arrays

    def values(self, arrays: tuple[Any, ...]) -> dict[Hashable, Any]:
        """The values of these arrays, by name."""
        key = tuple(map(id, arrays))
        entry = self.entries.pop(key, None)  # another thread may drop it at any time
        if entry is None:
            entry = {}, [weakref.ref(a, lambda _: self.entries.pop(key, None)) for a in arrays]
        self.entries[key] = entry
        self.shrink()
        return entry[0]

    def shrink(self) -> None:
        while len(self.entries) > self.most:
            with contextlib.suppress(KeyError):
                self.entries.popitem(last=False)


KEPT = _Kept(16)


def keep_prepared(most: int) -> int:
    """Sets for how many matrices eager calls cache what they computed about them; default 16.

    An eager call on a bare matrix checks its weights (NaN, negative ones, their mean), compares it
    with its transpose where a graph must be undirected, converts other formats to CSR, and cuts an
    acyclic pattern into levels for `closure`. All this is cached for later calls on the same arrays
    while these live, for the matrices used last.
    Layouts are only made by `prepare` and held by the `Graph` that it returns. Inside of jit
    nothing is cached.

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
    of_jax = all([isinstance(a, jax.Array) for a in arrays])
    if not (KEPT.most and of_jax and is_eager(*arrays)):
        return compute()
    values = KEPT.values(arrays)
    if name not in values or any(map(_deleted, jax.tree.leaves(values[name]))):
        own = set(map(id, arrays))
        values[name] = jax.tree.map(lambda x: jnp.copy(x) if id(x) in own else x, compute())
    return values[name]


def _deleted(leaf: Any) -> bool:
    """Whether it is an array that the user donated, as a leaf of what `prepare` gave."""
    return isinstance(leaf, jax.Array) and leaf.is_deleted()
