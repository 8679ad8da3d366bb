"""Compiled programs kept on disk, so that a new process need not compile them again."""

from __future__ import annotations

import os
import pathlib

import jax

LEAST_SECONDS = 0.05  # of compiling; what is faster is compiled anew


def caches() -> pathlib.Path:
    """jaxspv's folder among the user's caches."""
    named = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(named) / "jaxspv"


def default_cache_folder() -> pathlib.Path:
    """`$JAX_COMPILATION_CACHE_DIR`, or jaxspv's folder among the user's caches."""
    named = os.environ.get("JAX_COMPILATION_CACHE_DIR")
    return pathlib.Path(named) if named else caches()


def cache_folder() -> str | None:
    """Where compiled programs are kept, or None."""
    return jax.config.jax_compilation_cache_dir  # pyright: ignore[reportAttributeAccessIssue]


def enable_compilation_cache(path: str | os.PathLike[str] | None = None) -> str:
    """Keeps compiled programs on disk from here on: JAX's persistent cache, for small programs too.

    What takes a second to compile in one process is read in some milliseconds by the next. The
    folder may be shared by processes; JAX identifies programs by what they compute, versions,
    devices and options. The command line turns it on.

    Args:
        path: a folder, made if it is not there; None: `$JAX_COMPILATION_CACHE_DIR`, else `jaxspv`
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
    folder = default_cache_folder() if path is None else pathlib.Path(path)
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"`path` must be a folder that can be written to; got {folder}.")
    jax.config.update("jax_compilation_cache_dir", str(folder))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
    return str(folder)
