"""Rows of different lengths as flat arrays: what all layouts are built with.

Arrays of JAX are computed by JAX. Those of NumPy are computed by NumPy, with equal results: a small
graph is prepared before XLA would have compiled a program.
"""

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

I32 = jnp.int32
LIMIT = 2**31 - 2**22  # rows and entries together that int32 can count in a kernel
PIECES, LEAST = 8, 1 << 20  # more than LEAST entries are processed in PIECES parts, to save memory


def module_of(array: Any, *more: Any) -> Any:
    """`numpy` for an array of NumPy, without others of JAX; else `jax.numpy`."""
    by_jax = not isinstance(array, np.ndarray) or any(isinstance(x, jax.Array) for x in more)
    return jnp if by_jax else np


def of_numbers(array: Any) -> Any:
    """The array as one of int32, of the same module."""
    return module_of(array).asarray(array, I32)


def program(fn: Any = None, *, static: tuple[str, ...] = ()) -> Any:
    """Decorator: `jax.jit` of a function; the function itself where all arrays are NumPy's."""
    if fn is None:
        return functools.partial(program, static=static)
    jitted = jax.jit(fn, static_argnames=static)

    @functools.wraps(fn)
    def run(first, *rest, **options):
        by_numpy = module_of(first, *jax.tree.leaves(rest)) is np
        return (fn if by_numpy else jitted)(first, *rest, **options)

    return run


def loop(going, step, state: tuple[Any, ...]) -> tuple[Any, ...]:
    """`lax.while_loop`; in Python where the last array of the state is one of NumPy."""
    if module_of(state[-1]) is jnp:
        return lax.while_loop(going, step, state)
    while going(state):
        state = step(state)
    return state


def write(array: Any, where: Any, values: Any, how: str = "set") -> Any:
    """The array with `values` written ("set", to distinct places), added ("add") or compared
    ("max") at places >= 0; those outside are dropped. An array of NumPy is changed in place."""
    if module_of(array) is jnp:
        distinct = {"unique_indices": True} if how == "set" else {}
        return getattr(array.at[where], how)(values, mode="drop", **distinct)
    inside = where < array.shape[0]
    values = np.broadcast_to(values, where.shape + np.shape(values)[where.ndim :])[inside]
    where = where[inside]
    if how == "set":
        array[where] = values
    else:
        {"add": np.add, "max": np.maximum}[how].at(array, where, values)
    return array


def piece_of(size: int) -> int:
    """The number of entries, of `size`, that are processed together."""
    return size if size <= LEAST else -(-size // PIECES)


def owners(ends: Any, size: int) -> Any:
    """int32[size]: the row of each slot k, which is the number of rows that end at or before k.

    ends int32[m] ascends. Slots from the last end on get m. A mark for each row and a prefix sum.
    """
    xp = module_of(ends)
    return xp.cumsum(write(xp.zeros(size, I32), ends, 1, "add"), dtype=I32)


def within(begin: Any, end: Any, capacity: int) -> tuple[Any, Any]:
    """(masks, slots): `capacity` slots from `begin` on; where masked off, `begin` itself."""
    xp = np if isinstance(end, np.generic) else jnp
    nth = xp.arange(capacity, dtype=I32)
    valid = nth < end - begin
    return valid, begin + xp.where(valid, nth, 0)


def owners_from(ends: Any, begin: Any, size: int) -> Any:
    """`owners(ends, ...)[begin : begin + size]`."""
    xp = module_of(ends)
    before = xp.sum(ends <= begin, dtype=I32)
    return before + owners(xp.where(ends > begin, ends - begin, size), size)


def starts_of(counts: Any) -> Any:
    """int32[m + 1]: 0 and the prefix sums of counts."""
    xp = module_of(counts)
    return xp.concatenate([xp.zeros(1, I32), xp.cumsum(counts, dtype=I32)])


def sort_pairs(keys: Any, values: Any) -> tuple[Any, Any]:
    """Both in the order of the keys, stable."""
    if module_of(keys) is jnp:
        keys, values = lax.sort((keys, values), num_keys=1, is_stable=True)
        return keys, values
    order = np.argsort(keys, kind="stable")
    return keys[order], values[order]


def argsort(keys: Any) -> Any:
    """int32: a stable order by one key for each row, by a sort of (key, number) pairs."""
    return sort_pairs(keys, module_of(keys).arange(keys.shape[0], dtype=I32))[1]


def by_falling(counts: Any) -> Any:
    """int32: rows of the largest counts (>= 0) first, equal ones in their order."""
    return argsort(~counts.astype(jnp.uint32))


def inverse(order: Any) -> Any:
    """int32: the place of each row in a permutation."""
    xp, n = module_of(order), order.shape[0]
    return write(xp.zeros(n, I32), order, xp.arange(n, dtype=I32))


def count_of(indices: Any, n: int) -> Any:
    """int32[n]: how often each number occurs; numbers outside of [0, n) do not count."""
    xp = module_of(indices)
    return write(xp.zeros(n, I32), xp.where(indices < 0, n, indices), 1, "add")


def placed(size: int, fill, where: Any, values: Any) -> Any:
    """An array of `size` with `fill`, and `values` at distinct places; places outside are
    dropped."""
    return write(module_of(values).full(size, fill, values.dtype), where, values)


def take(array: Any, index: Any) -> Any:
    """array[index], clamped; what lies outside is masked by the caller."""
    xp = module_of(array)
    if array.shape[0] == 0:
        return xp.zeros(index.shape, array.dtype)
    return (
        array[np.clip(index, 0, len(array) - 1)] if xp is np else array.at[index].get(mode="clip")
    )
