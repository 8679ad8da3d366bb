"""Arrays outside of traces: is a call eager, where do arrays live, how values reach a device."""

from __future__ import annotations

import contextlib
import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.backend import backends
from jax.extend.core import Primitive
from jax.sharding import NamedSharding, PartitionSpec

from ..pytree import VALUES, is_concrete

NUMPY = np.ndarray, np.generic
WORD_OF = {"cpu": "cpu", "gpu": "cuda"}  # platform of a device -> in a `Situation`
ALIGNED = 64  # bytes: memory that XLA shares begins at a multiple
COPIED = 1 << 16  # bytes of an array that is copied in no time
SMALL = 1 << 16  # entries of a graph on a GPU that NumPy prepares


# ---- Whether a call is eager ----


class _Probe(Primitive):
    """Binding it gives the innermost trace below those of vmap and grad; adds no equation."""

    def bind_with_trace(self, trace, args, params, *more):
        while type(trace).__name__ != "DynamicJaxprTrace":  # that of jit, scan, loops, eval_shape
            if (outer := getattr(trace, "parent_trace", None)) is None:
                return True
            trace = outer
        return False


_PROBE = _Probe("is_eager")


def is_eager(*operands: Any) -> bool:
    """True outside of every trace: operands are concrete, and no jit, scan or loop is traced."""
    return is_concrete(*operands) and _PROBE.bind()


def known_while_tracing() -> AbstractContextManager[Any]:
    """A context in which operations on concrete arrays give concrete arrays, inside a trace too."""
    # Outside of traces arrays are concrete anyway, and constants would be compiled.
    return contextlib.nullcontext() if is_eager() else jax.ensure_compile_time_eval()


def known(array: Any) -> Any:
    """A concrete JAX array as a NumPy array inside a trace, where JAX operations would trace it."""
    captured = isinstance(array, jax.Array) and is_concrete(array) and not is_eager(array)
    return np.asarray(array) if captured else array


def to_device(arrays: Any, like: Any = None) -> Any:
    """`jnp.asarray` of NumPy arrays that are never written again, to the device of the array `like`
    if it is committed to one, whole to those of a mesh; compiles nothing for a shape. Arrays of JAX
    stay, unless they are committed to none and `like` is."""
    if not is_eager():
        return jax.tree.map(jnp.asarray, arrays)
    where = like.sharding if is_concrete(like) and getattr(like, "committed", False) else None
    if isinstance(where, NamedSharding):  # how `like` is split need not fit another shape
        where = NamedSharding(where.mesh, PartitionSpec(), memory_kind=where.memory_kind)
    leaves, tree = jax.tree.flatten(arrays)

    def stays(x):
        return isinstance(x, jax.Array) and (where is None or not is_concrete(x) or x.committed)

    moved = iter(jax.device_put([x for x in leaves if not stays(x)], where))
    return tree.unflatten([x if stays(x) else next(moved) for x in leaves])


def zeros(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """`np.zeros`; a large one aligned, so that `to_device` copies nothing to a CPU."""
    size = math.prod(shape) * np.dtype(dtype).itemsize
    if size < COPIED:
        return np.zeros(shape, dtype)
    memory = np.zeros(size + ALIGNED, np.uint8)
    first = -memory.ctypes.data % ALIGNED
    return memory[first : first + size].view(dtype).reshape(shape)


def array_of(name: str, x: Any, *, on_host: bool = False) -> Any:
    """`jnp.asarray`, which compiles a program for each shape of an array of NumPy; or `np.asarray`.
    Raises TypeError, ValueError: x is no number and no array of numbers, or they do not fit the
    dtype that JAX gives them (see `narrow`); names the argument."""
    if on_host:
        unmasked(name, x)
    elif isinstance(x, np.ndarray) and x.dtype.kind in "iufc":
        x = narrow(x, name)  # JAX would cut 2^32 + 1 to 1
    try:
        if on_host:
            return np.asarray(x)
        moved = isinstance(x, np.ndarray) and is_eager()
        return jax.device_put(x.copy()) if moved else jnp.asarray(x)
    except (TypeError, ValueError, OverflowError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        why = str(error).split("\n")[0]
        raise kind(f"`{name}` must be a number or an array of numbers: {why}") from error


def unmasked(name: str, x: Any) -> Any:
    """x as it is; ValueError for a masked array of NumPy, unless nothing in it is masked."""
    if isinstance(x, np.ma.MaskedArray) and np.ma.is_masked(x):
        raise ValueError(f"`{name}` has masked places: `filled` or `compressed` gives an array.")
    return x


def single(name: str, x: Any) -> Any:
    """A number as it is, or as an array without axes. Raises TypeError, ValueError: it is none."""
    if type(x) in (int, float):
        return x
    array = array_of(name, x)
    if array.ndim:
        raise ValueError(
            f"`{name}` must be a number; got shape {array.shape}. `jax.vmap` maps over several."
        )
    return array


def single_numbers(**arguments: Any) -> None:
    """Refuses what is no real number. Raises TypeError, ValueError: an argument is no number, has
    axes, or is complex."""
    for name, value in arguments.items():
        if np.iscomplexobj(single(name, value)):
            raise TypeError(f"`{name}` must be a real number; got {value!r}.")


def scalar(value: Any, dtype: Any) -> Any:
    """A number as an array of a dtype.

    One of Python is moved once for all eager calls; in a trace it stays on the host.
    """
    if not isinstance(value, (int, float)):
        return jnp.asarray(value, dtype)
    number = np.asarray(value, dtype)
    return number_on_device(number) if is_eager() else number


def in_dtype(what: str, values: np.ndarray, dtype: Any) -> np.ndarray:
    """Values in another dtype; floats may be rounded.

    Args:
        what: the beginning of the error, such as "`weight` holds".
        values: numbers.
        dtype: of the result; floats of 64 bits need x64, else they are float32.

    Raises:
        ValueError: an integer or boolean dtype does not equal one of them, a finite one would be
            infinite, or an imaginary part would be lost.
    """
    dtype = np.dtype(dtype)
    if jnp.issubdtype(dtype, jnp.inexact):
        dtype = jax.dtypes.canonicalize_dtype(dtype)
    if values.dtype.kind in "iu" and dtype.kind in "iu" and values.size:
        ends = np.iinfo(dtype)
        if ends.min <= values.min() and values.max() <= ends.max:  # less time than a comparison
            return values.astype(dtype)
    with np.errstate(invalid="ignore", over="ignore"):
        made = (np.real(values) if values.dtype.kind == "c" != dtype.kind else values).astype(dtype)
    if dtype.kind in "iub":
        wrong = made != values
    else:
        wrong = np.isinf(np.real(made)) & ~np.isinf(np.real(values))
        if values.dtype.kind == "c" == dtype.kind:  # a part may be NaN, as in 1e39 + nan i
            wrong |= np.isinf(np.imag(made)) & ~np.isinf(np.imag(values))
        elif values.dtype.kind == "c":
            wrong |= np.imag(values) != 0
    if wrong.any():
        raise ValueError(f"{what} {values[wrong][0]}, which {dtype} does not.")
    return made


def narrow(values: np.ndarray, name: str = "values") -> np.ndarray:
    """Values as JAX will hold them: of 32 bits without x64, in the byte order of the machine.
    Raises TypeError: they are texts, dates, objects or long doubles. ValueError: an integer does
    not fit; a finite number would be infinite."""
    long = values.dtype.kind in "fc" and values.dtype.char in "gG"  # which JAX lacks
    if long or values.dtype.kind in "OSUmM":
        raise TypeError(f"`{name}` must be numbers; got {values.dtype}.")
    if not values.dtype.isnative:  # JAX takes no other
        values = values.astype(values.dtype.newbyteorder("="))
    target = jax.dtypes.canonicalize_dtype(values.dtype)
    if target == values.dtype:
        return values
    try:
        return in_dtype("a value is", values, target)
    except ValueError:
        why = f"`{name}`: values of {values.dtype} do not fit {target}: enable jax_enable_x64."
        raise ValueError(why) from None


def fitting(name: str, value: Any, dtype: Any) -> Any:
    """`value`, a number or an array of numbers, as an array of `dtype`. Raises TypeError: it holds
    no numbers. ValueError: `dtype` does not hold a concrete one: see `in_dtype`."""
    if not is_concrete(value):
        return jnp.asarray(value, dtype)
    if type(value) is int and value == 0:  # the default, in every dtype
        return number_on_device(np.zeros((), dtype)) if is_eager() else np.zeros((), dtype)
    wide = type(value) is int and abs(value) >= 2**63
    given = array_of(name, float(value) if wide else value, on_host=True)
    if given.dtype.kind in "OSUmM":
        raise TypeError(f"`{name}` must be a number or an array of numbers; got {value!r}.")
    made = in_dtype(f"`{name}` holds", given, dtype)
    return number_on_device(made) if is_eager() else made


def differ(x: Any, fill: Any) -> Any:
    """Where numbers of an array, of NumPy or JAX, are not `fill`; NaN counts as equal to NaN."""
    where = np if isinstance(x, np.ndarray) else jnp
    if fill != fill:
        return ~where.isnan(x)
    try:
        return x != where.asarray(fitting("fill", fill, x.dtype))
    except (ValueError, OverflowError):  # which no number of this dtype is
        return where.ones(x.shape, bool)


def as_array(leaf: Any) -> Any:
    """A leaf as an array whose type is not weak: numbers of any kind share a program."""
    if not isinstance(leaf, VALUES[:3]):
        return np.asarray(leaf, jnp.result_type(leaf))
    dtype = leaf.dtype
    if dtype.itemsize > 4 and not jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        dtype = jax.dtypes.canonicalize_dtype(dtype)  # made while x64 was enabled, or by NumPy
    if not isinstance(leaf, jax.Array):
        return np.asarray(leaf, dtype)
    same = dtype == leaf.dtype and not leaf.weak_type
    return leaf if same else lax.convert_element_type(leaf, dtype)


def as_operands(leaves: Sequence[Any]) -> list[Any]:
    """Concrete leaves as the programs of operations take them."""
    return [
        x if isinstance(x, jax.Array) and not x.weak_type else number_on_device(as_array(x))
        for x in leaves
    ]


def number_on_device(leaf: Any) -> Any:
    """A NumPy scalar as a cached array on the device; anything else as it is."""
    if not isinstance(leaf, NUMPY) or leaf.ndim:
        return leaf
    config: Any = jax.config
    where = config.jax_default_device, config.jax_enable_x64
    return _number(leaf.tobytes(), leaf.dtype, where)


@functools.lru_cache(maxsize=256)
def _number(value: bytes, dtype: np.dtype, where: Any) -> jax.Array:
    del where  # `device_put` puts it, and in which dtype
    return jax.device_put(np.frombuffer(value, dtype)[0])


# ---- Where a call runs ----


def platform_of(leaves: Sequence[Any]) -> str:
    """ "cpu", "cuda" or "other": where an eager call on these concrete arrays runs."""
    if _only_cpus():
        return "cpu"
    # JAX runs where committed arrays are, and refuses those of two platforms; without any on its
    # default device, wherever the others are.
    for leaf in leaves:
        if getattr(leaf, "committed", False):
            return WORD_OF.get(next(iter(leaf.devices())).platform, "other")
    usual: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    usual = jax.default_backend() if usual is None else getattr(usual, "platform", usual)
    return WORD_OF.get(usual, "other")


def on_gpu(operands: Any) -> bool:
    """Whether the first array lives on a GPU; without any, whether the default device is one.

    What is traced lives nowhere yet.
    """
    if _only_cpus():
        return False
    for leaf in jax.tree.leaves(operands):
        if isinstance(leaf, jax.Array) and is_concrete(leaf):
            return next(iter(leaf.devices())).platform == "gpu"
    return jax.default_backend() == "gpu"


def by_numpy(array: Any) -> bool:
    """Whether NumPy computes what is known of a concrete array: all but large ones on a GPU.

    A small one is copied in less time than a program for it is compiled in.
    """
    if isinstance(array, np.ndarray) or not on_gpu(array):
        return True
    return is_concrete(array) and array.size <= SMALL and array.is_fully_addressable


def host_if_small(array: Any) -> Any:
    """A concrete array as one of NumPy where NumPy computes with it."""
    return np.asarray(array) if by_numpy(array) else array


def on_accelerator(*arrays: Any) -> bool:
    """Whether any of the arrays lives on something else than one CPU."""
    return not _one_cpu() and any(
        len(array.devices()) > 1 or next(iter(array.devices())).platform != "cpu"
        for array in arrays
        if isinstance(array, jax.Array) and is_concrete(array)
    )


@functools.cache
def _only_cpus() -> bool:
    return set(backends()) == {"cpu"}


@functools.cache
def _one_cpu() -> bool:
    return _only_cpus() and jax.device_count() == 1
