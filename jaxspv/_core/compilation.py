"""Compilation of eager calls, and the XLA options that keep a loop on a GPU."""

from __future__ import annotations

import contextlib
import functools
import gc
import itertools
import pathlib
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.extend.backend import backends
from jax.extend.core import unsafe_am_i_under_a_jit_DO_NOT_USE

from .eager.telling import TELLER
from .platforms import Situation, inside, is_recording, situation, trace_level
from .pytree import is_concrete

WORD_OF = {"cpu": "cpu", "gpu": "cuda"}  # platform of a device -> in a `Situation`


def gpu_compiler_options() -> dict[str, Any]:
    """XLA options under which a `lax.while_loop` stays on an NVIDIA GPU.

    By default XLA brings the loop's predicate to the host in every iteration (17 to 32 us each on
    an H200); with WHILE and CONDITIONAL among the command buffers it takes 8 us. Options can only
    be set on the outermost jit, so an eager call of jaxspv sets them itself and a jitted program
    of yours has to:

    >>> import jax, jaxspv as jsp
    >>> options = jsp.gpu_compiler_options() if jax.default_backend() == "gpu" else None
    >>> f = jax.jit(lambda x: x + 1, compiler_options=options)

    The condition of every loop of yours in such a program has to compute something: XLA (jaxlib up
    to 0.11.2 at least) starts a loop in a command buffer once the kernels of its condition are
    through, and one whose condition only hands a flag of its state on, `lambda s: s[1]`, before the
    state is written. Its results are wrong, at random. An integer that is compared is right:
    `lambda s: s[1] > 0`.
    """
    return {
        "xla_gpu_enable_command_buffer": (
            "FUSION,CUBLAS,CUSTOM_CALL,WHILE,CONDITIONAL,CUDNN,DYNAMIC_SLICE_FUSION"
        ),
        "xla_gpu_graph_min_graph_size": 1,
    }


class _Programs:
    """Keeps the memory maps of compiled programs below what Linux allows a process.

    Every program of a CPU takes 10 to 60 maps; at 65,530 (`vm.max_map_count`) LLVM ends the
    process, after about 2,000 programs. Counted every `EVERY` compilations; beyond three quarters
    of the limit JAX's caches are dropped at the next eager call, outside of every trace. A process
    that calls more programs than fit in turn compiles all of them again and again, so not earlier.
    """

    EVERY = 64
    maps = pathlib.Path("/proc/self/maps")

    def __init__(self):
        self.too_many, self.compiled = False, itertools.count(1)
        try:
            self.most = int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) * 3 // 4
        except (OSError, ValueError):
            self.most = None  # no such limit here
        else:
            jax.monitoring.register_event_duration_secs_listener(self._listen)

    def _listen(self, event: str, duration_secs: float, **_: Any) -> None:
        del duration_secs
        if event == "/jax/core/compile/backend_compile_duration":
            if next(self.compiled) % self.EVERY == 0 and self.most is not None:
                self.too_many = self.number() > self.most

    def number(self) -> int:
        """The memory maps of this process."""
        try:
            with self.maps.open("rb") as lines:
                return sum(1 for _ in lines)
        except OSError:
            return 0

    def forget(self) -> None:
        """Drops every cache of compiled programs; what is called again is compiled again."""
        self.too_many = False
        jax.clear_caches()
        gc.collect()


PROGRAMS = _Programs()


def is_eager(*operands: Any) -> bool:
    """True outside of every trace: operands are concrete, and no jit, scan or loop is traced."""
    eager = is_concrete(operands) and not unsafe_am_i_under_a_jit_DO_NOT_USE()
    if eager and PROGRAMS.too_many:
        PROGRAMS.forget()
    return eager


class Eager(NamedTuple):
    """The operands of an eager call: arrays, how they are put together, and where they are.

    Attributes:
        leaves, tree: of the pytree of operands.
        platform: as `platform_of` gives it.
    """

    leaves: list[Any]
    tree: Any
    platform: str


def eager_operands(operands: Any) -> Eager | None:
    """The flattened operands of an eager call and their platform; None inside of a trace."""
    leaves, tree = jax.tree.flatten(operands)
    for leaf in leaves:
        kind = type(leaf)
        known = _HOLDS_VALUES.get(kind)
        if known is None:
            known = _HOLDS_VALUES.setdefault(kind, is_concrete(leaf))
        if not known:
            return None
    if unsafe_am_i_under_a_jit_DO_NOT_USE():
        return None
    if PROGRAMS.too_many:
        PROGRAMS.forget()
    return Eager(leaves, tree, _platform_of_leaves(leaves))


_HOLDS_VALUES: dict[type, bool] = {}  # class of a leaf -> whether its objects are concrete


def known_while_tracing() -> AbstractContextManager[Any]:
    """A context in which operations on concrete arrays give concrete arrays, inside a trace too."""
    # Outside of traces there is nothing to ensure, and constants would become programs.
    return contextlib.nullcontext() if is_eager() else jax.ensure_compile_time_eval()


def known(array: Any) -> Any:
    """A concrete JAX array as a NumPy array inside a trace, where JAX operations would trace it."""
    captured = isinstance(array, jax.Array) and is_concrete(array) and not is_eager(array)
    return np.asarray(array) if captured else array


def to_device(arrays: Any) -> Any:
    """`jnp.asarray` of NumPy arrays that nobody will write to, without a program for each shape."""
    return jax.device_put(arrays) if is_eager() else jax.tree.map(jnp.asarray, arrays)


def scalar(value: Any, dtype: Any) -> Any:
    """A number as an array of a dtype.

    One of Python is moved once for all eager calls; in a trace it stays on the host.
    """
    if not isinstance(value, (int, float)):
        return jnp.asarray(value, dtype)
    if not is_eager():
        return np.asarray(value, dtype)
    usual = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    return _number(value, repr(value), np.dtype(dtype), usual)


@functools.lru_cache(maxsize=256)
def _number(value: Any, text: str, dtype: np.dtype, usual: Any) -> jax.Array:
    del text, usual  # 0.0 and -0.0 are equal; where `device_put` puts it
    return jax.device_put(np.asarray(value, dtype))


def on_gpu(operands: Any) -> bool:
    """Whether the first array lives on a GPU; without any, whether the default device is one.

    What is traced lives nowhere yet.
    """
    for leaf in jax.tree.leaves(operands):
        if isinstance(leaf, jax.Array) and is_concrete(leaf):
            return any(device.platform == "gpu" for device in leaf.devices())
    return jax.default_backend() == "gpu"


def on_accelerator(*arrays: Any) -> bool:
    """Whether any of the arrays lives on something else than a CPU."""
    return any(
        device.platform != "cpu"
        for array in arrays
        if isinstance(array, jax.Array) and is_concrete(array)
        for device in array.devices()
    )


def platform_of(operands: Any) -> str:
    """ "cpu", "cuda" or "other": where an eager call on these runs."""
    return _platform_of_leaves(jax.tree.leaves(operands))


def _platform_of_leaves(leaves: list[Any]) -> str:
    if len(backends()) == 1:  # nothing but CPUs, mostly
        return WORD_OF.get(jax.default_backend(), "other")
    # JAX runs where committed arrays are, and refuses those of two platforms; without any on its
    # default device, wherever the others are.
    for leaf in leaves:
        if getattr(leaf, "committed", False):
            return WORD_OF.get(next(iter(leaf.devices())).platform, "other")
    usual: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
    usual = jax.default_backend() if usual is None else getattr(usual, "platform", usual)
    return WORD_OF.get(usual, "other")


@functools.lru_cache(maxsize=64)
def there(where: Situation, platform: str) -> Situation:
    """`where`, for programs of one platform."""
    return where._replace(platforms=frozenset({platform}))


def compiled_for(where: Situation, fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, traced for `where`, under a jit with the options that fit the platform.

    Of a program that is compiled JAX keeps the trace and what it was lowered to (0.5 to 1.4 MB)
    beside the machine code, for a trace around the call: outside of every one both are let go.
    Called with operands of the same types inside of one, such as an eager `jax.grad`, it is
    compiled once more, and kept.
    """

    name = getattr(fn, "__name__", "a call")
    known: set[Any] = set()  # types of operands that were traced
    traced: list[bool] = []  # of traces since the last call: whether JAX needs what it keeps

    def run(*operands):
        leaves, tree = jax.tree.flatten(operands)
        types = (tree, *map(jax.typeof, leaves))
        # Traced again: JAX does not call this one by its machine code alone.
        traced.append(types in known)
        known.add(types)
        with inside(where), TELLER.tracing(name):
            return fn(*operands)

    run.__name__ = name  # in profiles
    program = jax.jit(run, compiler_options=options_for(where))

    def call(*operands):
        result = program(*operands)
        if traced:
            if not any(traced) and trace_level() == _OUTSIDE:
                _let_traces_go(run)
            traced.clear()
        return result

    return call


_OUTSIDE = trace_level()  # inside of a trace, if this is imported there: then nothing is let go


def _let_traces_go(run: Callable[..., Any]) -> None:
    """Drops the traces of `run` and what hangs on them, not the machine code of its programs.

    JAX keeps traces by function, machine code by function and options of the jit.
    """
    other: Any = jax.jit(run, compiler_options={"never compiled": True})
    other.clear_cache()


def options_for(where: Situation) -> dict[str, Any] | None:
    """The compiler options of an eager program."""
    return gpu_compiler_options() if where.platforms == {"cuda"} else None


def jitted(fn: Callable[..., Any], key: Any, *operands: Any) -> Callable[..., Any]:
    """`fn` under a jit of its own, traced for the device of the operands, with fitting options.

    `key` names the function: equal keys share one compilation.
    """
    where = there(situation(), platform_of(operands))
    return _cached(_Keyed(fn, (key, where)), where)


def one_program(fn: Callable[..., Any], *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)`; eagerly as one program, where its operations would be many."""
    run = functools.partial(fn, **static)
    if is_recording() or not is_eager(*operands):
        return run(*operands)
    return jitted(run, (fn, tuple(sorted(static.items()))), *operands)(*operands)


def inlined(fn: Callable[..., Any], key: Any) -> Callable[..., Any]:
    """`fn`, traced once for all calls with an equal key and operands of the same types.

    Leaves no trace of its own in the program around it. Not for eager calls with loops, which want
    the options of `jitted`.
    """
    return _inlined(_Keyed(fn, key))


class _Keyed:
    """A function that hashes and compares by its key."""

    def __init__(self, fn: Callable[..., Any], key: Any):
        self.fn, self.key = fn, key

    def __hash__(self) -> int:
        return hash(self.key)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Keyed) and self.key == other.key


@functools.lru_cache(maxsize=1024)
def _cached(keyed: _Keyed, where: Situation) -> Callable[..., Any]:
    return compiled_for(where, keyed.fn)


@functools.lru_cache(maxsize=1024)
def _inlined(keyed: _Keyed) -> Callable[..., Any]:
    return jax.jit(keyed.fn, inline=True)
