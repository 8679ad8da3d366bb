"""Values that are pytrees: tuples, records and small arrays in the place of one number.

A list of such values is a pytree whose leaves share their first axis. Functions of single values
are mapped over it; numbers are the pytree of one leaf.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .pytree import describe, pytree_dataclass


class Constant:
    """A pytree of numbers and small arrays that is compared and hashed by value.

    Attributes:
        leaves: NumPy arrays.
        tree: the structure.
    """

    def __init__(self, value: Any):
        leaves, self.tree = jax.tree.flatten(value)
        self.leaves = tuple(np.asarray(leaf) for leaf in leaves)
        bits = tuple((x.dtype.str, x.shape, x.tobytes()) for x in self.leaves)
        self._key = self.tree, bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)

    def __repr__(self) -> str:
        return repr(self.value)

    @property
    def value(self) -> Any:
        """The pytree."""
        return jax.tree.unflatten(self.tree, self.leaves)


@pytree_dataclass
class Each:
    """A function of single values, over the first axis of all leaves. A pytree, as `op` is."""

    op: Any

    def __call__(self, *values: Any) -> Any:
        return jax.vmap(self.op)(*values)


def multiplied(semiring: Any, x: Any, y: Any) -> Any:
    """`mul` of two lists of values; TypeError where it does not take them."""
    hint = "" if semiring.lift is None else " Its `lift` makes values of edges."
    return joined(f"`mul` of {semiring!r}", semiring.mul, x, y, hint=hint)


def joined(name: str, op: Any, x: Any, y: Any, hint: str = "") -> Any:
    """`op` of two lists of values, called `name` where it does not take them (TypeError)."""
    try:
        return jax.vmap(op)(x, y)
    except Exception as error:
        kinds = (repr(jax.tree.map(describe, v)).replace("'", "") for v in (x, y))
        raise TypeError(
            f"{name} does not take values {' and '.join(kinds)}: "
            f"{type(error).__name__}, {str(error).rstrip('.')}.{hint}"
        ) from error


def is_tuple(value: Any) -> bool:
    """Whether it is a pytree of arrays and no array, number, or list of numbers."""
    if value is None or isinstance(value, (list, jax.Array, np.ndarray)):
        return False
    leaves = jax.tree.leaves(value)
    return bool(leaves) and leaves[0] is not value and any(np.ndim(leaf) for leaf in leaves)


def take(values: Any, slot: Any) -> Any:
    """`values[slot]` of every leaf; an index out of range reads the nearest."""

    def taken(v):
        if v.shape[0] == 0:
            return jnp.zeros((*jnp.shape(slot), *v.shape[1:]), v.dtype)
        return jnp.take(v, slot, axis=0, mode="clip")

    return jax.tree.map(taken, values)


def choose(where: Array, x: Any, y: Any) -> Any:
    """`x` where `where` is true along the first axes, else `y`, in every leaf."""

    def chosen(a, b):
        deep = max(np.ndim(a), np.ndim(b)) - where.ndim
        return jnp.where(where.reshape(*where.shape, *(1,) * deep), a, b)

    return jax.tree.map(chosen, x, y)


def ones_unless(valid: Array, values: Any) -> Any:
    """The values, 1 where not valid: what is stored in padding reaches no derivative."""
    return choose(valid, values, jax.tree.map(lambda v: jnp.ones((), v.dtype), values))


def fold(op: Callable[..., Any], values: Any, identity: Any) -> Any:
    """`op` over the first axis, from left to right by halves; `op` is mapped over that axis."""
    size = jax.tree.leaves(values)[0].shape[0]
    if size == 0:
        return jax.tree.map(lambda i, v: jnp.full(v.shape[1:], i, v.dtype), identity, values)
    while size > 1:
        left, right, rest = (
            jax.tree.map(lambda v, at=at: v[at], values)
            for at in (slice(0, size - 1, 2), slice(1, size, 2), slice(size - size % 2, size))
        )
        joined = op(left, right)
        values = jax.tree.map(lambda z, v: jnp.concatenate([z.astype(v.dtype), v]), joined, rest)
        size -= size // 2
    return jax.tree.map(lambda v: v[0], values)


def differing_law(op: Callable[..., Any], identity: Any, samples: Any) -> str | None:
    """The first law of a monoid of tuples that does not hold for samples, along the first axis of
    their leaves, as a sentence; None: all hold."""
    count = jax.tree.leaves(samples)[0].shape[0]
    many = jax.tree.map(lambda i, s: jnp.full(s.shape, i, s.dtype), identity, samples)
    each = jax.vmap(op)
    for left, right in ((many, samples), (samples, many)):
        if not _alike(each(left, right), samples):
            return "`identity` joined with a value is another value"
    x, y, z = (take(samples, (np.arange(count) * k + k) % count) for k in (1, 3, 5))
    if not _alike(each(each(x, y), z), each(x, each(y, z))):
        return "`op` is not associative: op(op(x, y), z) differs from op(x, op(y, z))"
    return None


def commutes(op: Callable[..., Any], samples: Any) -> bool:
    """Whether `op` gives the same for two samples in either order."""
    others, each = jax.tree.map(lambda s: jnp.roll(s, 1, 0), samples), jax.vmap(op)
    return _alike(each(samples, others), each(others, samples))


def random_values(identity: Any, count: int = 15) -> Any:
    """Samples in the structure of `identity`, which is among them."""
    random = np.random.default_rng(0)

    def drawn(i):
        i = np.asarray(i)
        shape = (count - 1, *i.shape)
        kinds = {"f": random.normal(size=shape), "b": random.random(shape) < 0.5}
        values = kinds.get(i.dtype.kind, random.integers(0, 5, shape))
        return jnp.asarray(np.concatenate([values.astype(i.dtype), i[None]]))

    return jax.tree.map(drawn, identity)


def _alike(x: Any, y: Any) -> bool:
    if jax.tree.structure(x) != jax.tree.structure(y):
        return False
    pairs = zip(jax.tree.leaves(x), jax.tree.leaves(y), strict=True)
    return all(
        a.shape == b.shape and np.allclose(a, b, 1e-3, 1e-4, equal_nan=True) for a, b in pairs
    )
