"""A cache of what eager calls derived from arrays, for the next call on the same arrays."""

from __future__ import annotations

import collections
import weakref
from collections.abc import Callable, Hashable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax.core import Tracer
from jax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE

from ..compilation import known_while_tracing
from ..platforms import explains_eager_call, is_recording

_T = TypeVar("_T")


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

            found = _Entry([weakref.ref(a, gone) for a in arrays])
            self.entries[key] = found
            self.shrink()
        else:
            self.entries.move_to_end(key)
        return found

    def shrink(self) -> None:
        while len(self.entries) > max(self.most, 0):
            self.entries.popitem(last=False)


class _Entry:
    """Values and numbers of calls by name, and weak references to the arrays they belong to."""

    def __init__(self, arrays: list[Any]):
        self.values: dict[Hashable, Any] = {}
        self.calls: collections.Counter[str] = collections.Counter()
        self.arrays = arrays


KEPT = _Kept(16)


def keep_prepared(most: int) -> int:
    """For how many matrices eager calls keep what they found out about them; 16 at the start.

    An eager call on a bare matrix looks at its weights (NaN, negative ones, their mean) and, where
    that pays at once, prepares what it needs (`explain` tells): for the next call on the same
    arrays both are kept, as long as the arrays live, of the matrices used last. Inside of jit
    nothing is kept; a `Graph` from `prepare` holds its own layouts.

    Args:
        most: of matrices, 0: nothing is kept, and nothing prepared unasked.

    Returns:
        What it was before.

    Raises:
        ValueError: it is no integer >= 0.

    >>> import jaxspv as jsp
    >>> before = jsp.keep_prepared(0)
    >>> jsp.keep_prepared(before)
    0
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 0:
        raise ValueError(f"`most` must be an integer >= 0; got {most!r}.")
    before, KEPT.most = KEPT.most, most
    KEPT.shrink()
    return before


def kept(arrays: tuple[Any, ...], name: Hashable, compute: Callable[[], _T]) -> _T:
    """`compute()`, which depends on arrays and name alone: once while they live, outside of traces.

    An array that the result shares with them is copied: it would keep them alive.
    """
    if (entry := _entry_of(arrays)) is None:
        return compute()
    if name not in entry.values:
        with known_while_tracing():
            value, own = compute(), set(map(id, arrays))
            value = jax.tree.map(lambda leaf: jnp.copy(leaf) if id(leaf) in own else leaf, value)
        entry.values[name] = value
    return entry.values[name]


def calls_of(arrays: tuple[Any, ...], name: str) -> int:
    """How many calls of this name the arrays had, with this one; 0 where nothing is cached."""
    if (entry := _entry_of(arrays)) is None:
        return 0
    if not is_recording():
        entry.calls[name] += 1
    return max(entry.calls[name], 1)


def _entry_of(arrays: tuple[Any, ...]) -> _Entry | None:
    if unsafe_am_i_under_a_jit_DO_NOT_USE() and not explains_eager_call():
        return None
    return KEPT.entry(arrays)
