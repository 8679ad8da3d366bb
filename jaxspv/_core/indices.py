"""The dtype of indices: int32, or int64 where asked for or needed; binary search among them."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
from collections.abc import Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .eager.arrays import known_while_tracing
from .loops import fori_loop
from .pytree import is_concrete

LIMIT = 2**31 - 1  # extents and capacities from here on need int64: padding holds the extent
INT32, INT64 = np.dtype(np.int32), np.dtype(np.int64)
SMALL = 1 << 12  # the least capacity of an eager result, unless its shape has fewer places


def eager_capacity(count: int, size: int) -> int:
    """The capacity of an eager result of `count` entries in a shape of `size` places.

    2^12, from 2^16 on powers of two, from 2^20 on four a power of two, and at most `size`: few
    capacities where a program costs more than the memory, close ones where memory does. All of a
    shape of at most 2^14 places. It depends on the count alone, so that in a loop capacities do not
    creep up.
    """
    if size <= 4 * SMALL:
        return max(size, count)
    if count <= SMALL:
        capacity = SMALL
    elif count <= 1 << 16:
        capacity = 1 << 16
    else:
        bits = (count - 1).bit_length()
        step = 1 << (bits - 3 if bits > 20 else bits)
        capacity = -(-count // step) * step
    return max(min(capacity, size), count)


def hypersparse(extent: int, entries: float) -> bool:
    """Whether an array with a place for each row is out of proportion to the entries: more than 64
    places an entry, and more than 2^24."""
    return extent > 64 * entries + (1 << 24)


def bucketed(count: int) -> int:
    """A size for `count` vertices or entries: the next of 4, 5, 6, 7 times a power of two, at
    least 4. At most a quarter more; few sizes, so that programs are compiled for few."""
    step = 1 << max(max(count - 1, 0).bit_length() - 3, 0)
    return max(-(-count // step) * step, 4)


def index_dtype_for(*operands: Any, sizes: Iterable[int] = (), asked: Any = None) -> np.dtype:
    """int64 where it is asked for, an operand has it, or a size needs it; else int32.

    Args:
        operands: sparse objects; anything without an `index_dtype` has no say.
        sizes: extents and capacities that indices must reach.
        asked: int32, int64, or None.

    Raises:
        TypeError: another dtype is asked for.
        ValueError: int32 is asked for and a size needs int64; int64 without `jax_enable_x64`; a
            size of 2^63 or more.
    """
    large = [int(size) for size in sizes if size >= LIMIT]
    if max(large, default=0) >= 2**63:
        raise ValueError(f"indices of 64 bits do not reach a size of {max(large)}.")
    wide = bool(large) or any(getattr(x, "index_dtype", INT32) == INT64 for x in operands)
    if asked is not None:
        dtype: Any = None
        with contextlib.suppress(TypeError):
            dtype = np.dtype(asked)
        if dtype not in (INT32, INT64):
            raise TypeError(f"`index_dtype` must be int32 or int64; got {asked!r}.")
        if large and dtype == INT32:
            raise ValueError(
                f"`index_dtype` must be int64 for a size of {large[0]}: int32 indices stay below "
                f"2^31 - 1."
            )
        wide = dtype == INT64 or (wide and dtype != INT32)
    if wide and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        why = f"a size of {large[0]} needs them" if large else "they were asked for"
        raise ValueError(f"int64 indices need jax_enable_x64, which is off; {why}.")
    return INT64 if wide else INT32


def within(index: Any, extent: int, dtype: Any = INT32, *, from_end: bool = False) -> jax.Array:
    """Traced `index` in `dtype`, `extent` where it is out of [0, extent).

    Compared before it is narrowed: 2^32 + 1 is not 1.

    Args:
        index: integers of any dtype.
        extent: of the axis; `dtype` holds it.
        dtype: int32 or int64.
        from_end: negative indices count from the end, as in NumPy.
    """
    return _within(jnp.asarray(index), extent, np.dtype(dtype), from_end)


@functools.partial(jax.jit, static_argnums=(1, 2, 3))  # one program, under an eager vmap too
def _within(index: jax.Array, extent: int, dtype: Any, from_end: bool) -> jax.Array:
    if index.dtype.itemsize < np.dtype(dtype).itemsize:
        index = index.astype(dtype)  # an int8 cannot be compared with 1000
    if from_end and jnp.issubdtype(index.dtype, jnp.signedinteger):
        index = jnp.where(index < 0, index + extent, index)
    return jnp.where((index >= 0) & (index < extent), index, extent).astype(dtype)


def with_index_dtype(x: Any, dtype: Any) -> Any:
    """A sparse object, or a mask of one, with indices of `dtype`; anything else as it is. Raises
    ValueError: as `index_dtype`; the extents of `x` or its capacity do not fit."""
    if (inner := _unmasked(x)) is not x:
        source = with_index_dtype(inner, dtype)
        return x if source is inner else dataclasses.replace(x, source=source)
    names = getattr(x, "index_fields", ())
    if not names or all(getattr(getattr(x, n), "dtype", dtype) == dtype for n in names):
        return x
    dtype = index_dtype_for(sizes=(*x.shape, x.nse), asked=dtype)
    return dataclasses.replace(x, **{name: _cast(getattr(x, name), dtype) for name in names})


def with_pattern(x: Any) -> Any:
    """`x`, unless it is a sparse object without a pattern, as gradients are (`jaxspv.grad`). Raises
    ValueError: it is one."""
    if hasattr(x, "index_fields") and x.overflow is None:
        raise ValueError(
            f"this {type(x).__name__} has values and no pattern, as a gradient g by A has: "
            "use `A.with_data(g.data)`."
        )
    return x


def one_value(name: str, x: Any) -> Any:
    """`x`, unless it is a sparse object, or a mask of one, with arrays as entries. Raises
    ValueError: it is one."""
    shape = getattr(_unmasked(x), "entry_shape", ())
    if shape:
        raise ValueError(
            f"{name} takes one value an entry; this {type(x).__name__} has arrays of shape {shape}."
            " Map over them: `jax.vmap(lambda d: f(A.with_data(d)), in_axes=-1)(A.data)`."
        )
    return x


def alike(*operands: Any, also: Any = ()) -> tuple[np.dtype, tuple[Any, ...]]:
    """The index dtype of all operands together, and the operands with it. `also` is asked too.
    Raises ValueError: an operand has no pattern, or arrays as entries."""
    for x in operands:
        one_value("the operation", with_pattern(x))
    dtype = index_dtype_for(*operands, *also)
    return dtype, tuple(with_index_dtype(x, dtype) for x in operands)


def narrowed(name: str, *operands: Any) -> tuple[Any, ...]:
    """The operands of `name` with int32 indices, by which it computes; one object stays one. Raises
    ValueError: an extent or a capacity does not fit; an operand has no pattern, or arrays as
    entries."""
    done: dict[int, Any] = {}  # by identity: A @ A is computed as such
    for x in operands:
        if id(x) not in done:
            plain = one_value(name, with_pattern(_unmasked(x)))
            sizes = (*plain.shape, plain.nse) if getattr(plain, "index_fields", ()) else ()
            if max(sizes, default=0) >= LIMIT:
                raise ValueError(
                    f"{name} takes extents and capacities below 2^31 - 1; got shape {plain.shape} "
                    f"and nse={plain.nse}. Renumber the rows and columns that hold entries."
                )
            done[id(x)] = with_index_dtype(x, INT32)
    return tuple(done[id(x)] for x in operands)


def widened(x: Any, dtype: np.dtype) -> Any:
    """A result with indices of `dtype`, unless its own are wider."""
    return with_index_dtype(x, dtype) if dtype == INT64 else x


def _unmasked(x: Any) -> Any:
    """What a mask is made of; anything else as it is."""
    # Sparse objects answer for an attribute that they lack with a long message: 2 us.
    return x if hasattr(type(x), "index_fields") else getattr(x, "source", x)


def _cast(array: Any, dtype: np.dtype) -> Any:
    with known_while_tracing() if is_concrete(array) else contextlib.nullcontext():
        return array.astype(dtype)


Keys = tuple[Array, ...]


def check_dense(shape: tuple[int, ...], dtype: Any) -> None:
    """Refuses a dense array whose bytes XLA cannot count: it would end the process."""
    if math.prod(shape) * dtype.itemsize >= 2**63:
        raise ValueError(f"a dense {dtype.name} array of shape {shape} takes 2^63 bytes or more.")


@functools.partial(jax.jit, static_argnames="unroll")
def lower_bound(
    keys: Keys, wanted: Keys, low: Any = None, high: Any = None, *, unroll: bool = False
) -> Array:
    """For each wanted key the first slot of [low, high) whose key is not smaller; high if none is.

    Args:
        keys: (k,) arrays that ascend within each range, the first one slowest.
        wanted: as many arrays of one shape.
        low, high: bounds of that shape; all slots where they are left out.
        unroll: as one fused kernel on a GPU, larger to compile.

    Jitted: an eager loop would be compiled anew at each call.
    """
    size, dtype = keys[0].shape[0], keys[0].dtype
    low = jnp.zeros(wanted[0].shape, dtype) if low is None else low
    high = jnp.full(wanted[0].shape, size, dtype) if high is None else high
    if size == 0:
        return low

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        smaller, tied = False, True
        for key, want in zip(keys, wanted, strict=True):
            at = key.at[middle].get(mode="clip")
            smaller, tied = smaller | (tied & (at < want)), tied & (at == want)
        up = (low < high) & smaller
        return jnp.where(up, middle + 1, low), jnp.where(up | (low >= high), high, middle)

    return fori_loop(0, size.bit_length(), step, (low, high), unroll=unroll or None)[0]


def checked_count(name: str, value: Any, least: int) -> int | None:
    """An integer argument that may be left out. Raises ValueError: it is no integer, or less than
    `least` (0 or 1)."""
    if value is None:
        return None
    if not isinstance(value, (int, np.integer)) or value < least:
        kind = "positive" if least else "non-negative"
        raise ValueError(f"`{name}` must be a {kind} integer; got {value!r}.")
    return int(value)


def check_range(name: str, index: Any, extent: int) -> None:
    """ValueError where an index lies outside of [0, extent)."""
    if index.size == 0:
        return
    low, high = int(index.min()), int(index.max())
    if low < 0 or high >= extent:
        raise ValueError(f"`{name}` must lie in [0, {extent}); got {low if low < 0 else high}.")
