"""Compiles the kernels: for the build hook of the package, and for a checkout of the sources.

Uses the standard library alone, so that the build hook can load it by its path.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import pathlib
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile

HERE = pathlib.Path(__file__).parent
FLAGS = ("-std=c++17", "-O3", "-DNDEBUG", "-fPIC", "-fvisibility=hidden", "-ffp-contract=off")
FLAGS += ("-Wno-psabi",)  # vectors stay inside of the library
FLAGS += ("-falign-loops=32",)  # else the speed of short loops depends on where they happen to lie
AVX2 = ("-mavx2", "-mbmi", "-mbmi2", "-mlzcnt")  # what most processors of x86-64 add since 2013
AVX2_FLAGS = {"avx2", "bmi1", "bmi2", "abm"}  # as Linux calls them


class NoCompiler(Exception):
    """The kernels cannot be compiled; the message says why."""


def compiler() -> str | None:
    """The C++ compiler: `$CXX`, else the first of g++, clang++ and c++; None: there is none."""
    if os.environ.get("CXX"):
        return os.environ["CXX"]
    return next((path for name in ("g++", "clang++", "c++") if (path := shutil.which(name))), None)


def sources() -> list[pathlib.Path]:
    """All files of C++."""
    return sorted([*HERE.glob("*.h"), *HERE.glob("*.cc")])


def extensions() -> tuple[tuple[str, ...], ...]:
    """Flags of the instruction sets that a wheel for this machine has a library for, best first."""
    return (AVX2, ()) if platform.machine() == "x86_64" and sys.platform == "linux" else ((),)


def supported() -> tuple[tuple[str, ...], ...]:
    """Those of `extensions` that this processor has."""
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        has = next(set(line.split()) for line in lines if line.startswith("flags"))
    except (OSError, StopIteration):
        has = set()
    return tuple(flags for flags in extensions() if not flags or has >= AVX2_FLAGS)


@functools.cache
def filename(extra: tuple[str, ...]) -> str:
    """The name of the library of these sources and flags: one of others is never loaded.

    The sources are read once in a process: that takes a millisecond.
    """
    digest = hashlib.sha256(repr((FLAGS, extra, platform.machine())).encode())
    for path in sources():
        digest.update(path.name.encode() + path.read_bytes())
    return f"kernels-{digest.hexdigest()[:16]}{'.dylib' if sys.platform == 'darwin' else '.so'}"


def build(folder: pathlib.Path, extra: tuple[str, ...]) -> pathlib.Path:
    """Compiles the sources, each by a process of its own, into `folder / filename(extra)`."""
    cxx = compiler()
    if cxx is None:
        raise NoCompiler("no C++ compiler was found (g++, clang++, c++ or $CXX)")
    static = () if sys.platform == "darwin" else ("-static-libstdc++", "-static-libgcc", "-pthread")
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as made:
        units = {path: f"{made}/{path.stem}.o" for path in sources() if path.suffix == ".cc"}
        _run([[cxx, *FLAGS, *extra, "-c", str(path), "-o", out] for path, out in units.items()])
        library = f"{made}/{filename(extra)}"
        _run([[cxx, "-shared", *static, *units.values(), "-o", library]])
        os.replace(library, folder / filename(extra))
    return folder / filename(extra)


def _run(commands: list[list[str]]) -> None:
    """Runs commands side by side."""
    pipe = subprocess.PIPE
    try:
        running = [subprocess.Popen(c, stdout=pipe, stderr=subprocess.STDOUT) for c in commands]
    except OSError as error:
        raise NoCompiler(f"the C++ compiler does not start: {error}") from error
    ended = [(process.communicate()[0], process.returncode) for process in running]
    failed = [output.decode(errors="replace") for output, code in ended if code]
    if failed:
        raise NoCompiler(f"the C++ compiler fails: {failed[0].strip()[:2000]}")


def cache_folder() -> pathlib.Path:
    """Where a checkout keeps the libraries that it compiled."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "jaxspv"


def library() -> pathlib.Path:
    """The library of these sources: the installed one; in a checkout one that is compiled once.

    Python that is started in a checkout imports its package, and takes the library that `pip
    install .` put into the environment.

    Raises:
        NoCompiler: there is none, and none can be made; says why.
    """
    folders = [HERE, pathlib.Path(sysconfig.get_path("platlib"), "jaxspv", "native")]
    with contextlib.suppress(RuntimeError):  # a user without a home
        folders.append(cache_folder())
    for extra in supported():
        for folder in folders:
            if (folder / filename(extra)).exists():
                return folder / filename(extra)
    if not (HERE.parent.parent / "pyproject.toml").exists():  # no checkout, an installation
        why = "the installation has no library for this processor"
        raise NoCompiler(f"{why}; install jaxspv again where there is a C++ compiler")
    if compiler() is None or os.name != "posix":
        raise NoCompiler("no C++ compiler was found (g++, clang++, c++ or $CXX)")
    import fcntl

    folder, extra = cache_folder(), supported()[0]
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / "lock", "w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)  # one process at a time
        found = folder / filename(extra)
        return found if found.exists() else build(folder, extra)
