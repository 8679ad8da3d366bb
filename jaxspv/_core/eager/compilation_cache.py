"""The cache of compiled programs on disk, so that a new process does not compile them again."""

from __future__ import annotations

import contextlib
import os
import pathlib

import jax

LEAST_SECONDS = 0.05  # programs that compile faster than this are not cached


def caches() -> pathlib.Path:
    """jaxspv's folder among the user's caches."""
    named = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(named) / "jaxspv"


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
