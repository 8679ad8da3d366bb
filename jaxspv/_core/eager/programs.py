"""Programs of eager calls: one bounded cache of them, XLA's options for GPUs, a cache on disk."""

from __future__ import annotations

import collections
import contextlib
import functools
import itertools
import os
import pathlib
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import jax

from ..forms import Call, call_of
from ..platforms import inside, situation
from .arrays import NUMPY, is_eager, number_on_device, platform_of

LOOKED = 16  # traces after which memory maps are counted: that takes up to 20 ms
LEAST_SECONDS = 0.05  # programs that compile faster than this are not cached on disk


def gpu_compiler_options() -> dict[str, Any]:
    """XLA options under which a `lax.while_loop` stays on an NVIDIA GPU.

    By default XLA brings the loop's predicate to the host in every iteration (17 to 32 us each on
    an H200); with WHILE and CONDITIONAL among the command buffers it takes 8 us. Options can only
    be set on the outermost jit, so an eager call of jaxspv sets them itself and a jitted program
    of yours has to:

    >>> import jax, jaxspv as jsp
    >>> options = jsp.config.gpu_compiler_options() if jax.default_backend() == "gpu" else None
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


def _options() -> dict[str, Any]:
    """Those of eager programs on a GPU; XLA's autotuner compiles each fusion more than once."""
    return gpu_compiler_options() | {"xla_gpu_experimental_enable_fusion_autotuner": False}


def maps() -> int:
    """The number of memory maps of this process; 0 but on Linux."""
    with contextlib.suppress(OSError):
        return pathlib.Path("/proc/self/maps").read_bytes().count(b"\n")
    return 0


def most_maps() -> int:
    """Two thirds of the memory maps that Linux lets a process have."""
    with contextlib.suppress(OSError, ValueError):
        return int(pathlib.Path("/proc/sys/vm/max_map_count").read_text()) * 2 // 3
    return 0


class _Programs:
    """The programs of eager calls: a `jax.jit` for each function and call of it.

    A jit is traced and compiled once for each types of arrays. Beyond `most` traces the oldest jits
    are dropped: they give back memory and memory maps. So is half of them where a process has
    `most_maps`: a scan by a function of the user takes over 100, and without any left XLA crashes.
    """

    def __init__(self, most: int):
        self.most, self.most_maps = most, most_maps()
        self.made = itertools.count(1)  # traces, ever
        self.programs: dict[Hashable, Callable[..., Any]] = {}
        self.traces: collections.Counter[Hashable] = collections.Counter()  # by age of the jit

    def run(self, name: str, fn: Callable[..., Any], call: Call, leaves: Sequence[Any]) -> Any:
        """`fn(call, *leaves)` by the program for arrays of these types.

        Args:
            name: of the program in profiles.
            fn: traced in the situation of the call on the platform that it runs on.
            leaves: concrete.
        """
        key = fn, call, platform_of(leaves)
        program = self.programs.get(key) or self.programs.setdefault(key, self._jit(name, key))
        try:
            if jax.config.jax_disable_jit:  # pyright: ignore[reportAttributeAccessIssue]
                with jax.disable_jit(False):
                    return program(*leaves)
            return program(*leaves)
        except KeyboardInterrupt:  # else later calls of the jit may be RecursionErrors of JAX
            self._drop(key)
            raise

    def _drop(self, key: Any) -> None:
        self.traces.pop(key, None)
        self.programs.pop(key, None)

    def _jit(self, name: str, key: Any) -> Callable[..., Any]:
        fn, call, platform = key

        def traced(*leaves):
            self.traces[key] += 1
            most = self.most
            if next(self.made) % LOOKED == 0 and maps() > self.most_maps:
                most = min(most, self.traces.total() // 2)
            while self.traces.total() > most:
                oldest, *_ = self.traces  # in one step: other threads change it
                self._drop(oldest)
            try:
                with inside(call.where.on(platform)):
                    return fn(call, *leaves)
            except BaseException:  # no program was made, so none has to be dropped for it
                self.traces[key] -= 1
                if self.traces[key] <= 0:
                    self._drop(key)
                raise

        traced.__name__ = name
        return jax.jit(traced, compiler_options=_options() if platform == "cuda" else None)


PROGRAMS = _Programs(512)  # most take 3 to 60 of the 65,530 memory maps of a process on Linux


def one_program(fn: Callable[..., Any], *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)`; eagerly as one program, where its operations would be many.

    `fn` is a function of a module, so that equal calls share a program; `static` is hashable.
    """
    leaves, tree = jax.tree.flatten(operands)
    if not is_eager(*leaves):
        with inside(situation()):
            return fn(*operands, **static)
    return on_leaves(fn, leaves, tree, **static)


def on_leaves(fn: Callable[..., Any], leaves: Sequence[Any], tree: Any, **static: Any) -> Any:
    """`one_program` of operands that are known to be eager, flattened."""
    name = static.get("rule", fn).__name__.strip("_")
    leaves = [number_on_device(x) if isinstance(x, NUMPY) else x for x in leaves]
    return PROGRAMS.run(name, _on_leaves(fn), call_of(tree, static), leaves)


@functools.lru_cache(maxsize=512)
def _on_leaves(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn` of a call and its leaves; one object for each `fn`, as programs are compared by it."""
    return lambda call, *leaves: fn(*call.tree.unflatten(leaves), **dict(call.static))


def caches() -> pathlib.Path:
    """jaxspv's folder among the user's caches. Raises FileNotFoundError: no folder is known."""
    if named := os.environ.get("XDG_CACHE_HOME"):
        return pathlib.Path(named) / "jaxspv"
    try:
        return pathlib.Path.home() / ".cache" / "jaxspv"
    except RuntimeError as error:
        raise FileNotFoundError("this user has no home: set XDG_CACHE_HOME or HOME") from error


def cache_folder() -> str | None:
    """The folder of the cache of compiled programs, or None."""
    return jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]


def enable_compilation_cache(path: str | os.PathLike[str] | None = None) -> str:
    """Turns on JAX's persistent cache of compiled programs on disk, for small programs too.

    A program that takes a second to compile in one process is read in some milliseconds by the
    next. Processes may share the folder; JAX identifies programs by their computation, versions,
    devices and options. The command line turns the cache on. A process that is killed while it
    writes may leave an entry that is cut short: results stay right, but JAX warns, compiles that
    program again in every process and keeps the entry, so empty ones are removed here.

    Args:
        path: a folder, made if it does not exist; None: `$JAX_COMPILATION_CACHE_DIR`, else `jaxspv`
            in `$XDG_CACHE_HOME` or in `~/.cache`.

    Returns:
        The folder.

    Raises:
        OSError: the folder cannot be made or written to.

    >>> import tempfile, jaxspv as jsp
    >>> folder = tempfile.mkdtemp()
    >>> jsp.config.enable_compilation_cache(folder) == folder
    True
    >>> jax.config.update("jax_compilation_cache_dir", None)  # off again
    """
    named = os.environ.get("JAX_COMPILATION_CACHE_DIR") if path is None else path
    folder = pathlib.Path(named) if named else caches()
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"`path` must be a folder that can be written to; got {folder}.")
    for entry in folder.glob("*-cache"):
        with contextlib.suppress(OSError):  # another process removes it too
            if entry.stat().st_size == 0:
                entry.unlink()
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return str(folder)
