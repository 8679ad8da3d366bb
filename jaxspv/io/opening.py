"""Files opened: found, decompressed, one kind of error for all; lines of numbers; written whole."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pathlib
import shutil
import warnings
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

BLOCK = 1 << 20  # bytes of one read, after which the progress bar moves
BYTES = 4  # of an entry of a text, at least


def existing(path: str | os.PathLike[str]) -> pathlib.Path:
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, not a file.")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path


@contextlib.contextmanager
def written_whole(path: str | os.PathLike[str]) -> Iterator[str]:
    """The name of a file to write, which takes the place of `path` once it is complete.

    A process that ends meanwhile, or an error, leaves what was at `path` before. The name has the
    suffixes of `path`. Where no file can be added to the folder, and for what is no regular file
    or may not be written, such as `/dev/stdout`, it is `path` itself.
    """
    name = os.path.realpath(path)
    folder, base = os.path.split(name)
    old = os.path.exists(name)
    direct = old and not (os.path.isfile(name) and os.access(name, os.W_OK))
    if direct or not os.access(folder, os.W_OK):
        yield os.fspath(path)
        return
    part = os.path.join(folder, f".{os.getpid()}-{base}")
    try:
        yield part
        if old:
            shutil.copymode(name, part)
        os.replace(part, name)
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(part)


@contextlib.contextmanager
def refusing(
    path: pathlib.Path, what: str, more: tuple[type[Exception], ...] = ()
) -> Iterator[None]:
    """What a broken file raises, `more` too, becomes a ValueError with its name and the reason."""
    broken = (ValueError, OverflowError, EOFError, OSError, KeyError, zlib.error, *more)
    broken += MemoryError, NotImplementedError, zipfile.BadZipFile
    try:
        yield
    except broken as error:
        message = isinstance(error, (ValueError, OSError)) and str(error)
        reason = message or f"{type(error).__name__} {error}"
        raise ValueError(f"{path} is no readable {what}: {reason}") from error


def loaded(lines: Sequence[str], dtype: np.dtype, **how: Any) -> np.ndarray:
    """The rows of lines, by `np.loadtxt`; ValueError where one does not fit the dtype."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "loadtxt: input contained no data")
        warnings.simplefilter("error", DeprecationWarning)  # 1.5 as integer, in NumPy 2.0
        return np.loadtxt(lines, dtype, comments=None, ndmin=1, **how)


class _Counted(io.FileIO):
    """Bytes that move a bar, whichever way they are read."""

    def __init__(self, path: pathlib.Path, bar: Any):
        super().__init__(path)
        self.bar = bar

    def readinto(self, buffer: Any) -> int:
        count = super().readinto(buffer) or 0
        self.bar.update(count)
        return count


@contextlib.contextmanager
def opened(path: pathlib.Path, progress: bool) -> Iterator[io.BufferedIOBase | Any]:
    """The file's bytes, decompressed; the bar counts those on the disk."""
    with contextlib.ExitStack() as stack:
        if progress:
            from tqdm import tqdm

            how: dict[str, Any] = {"unit": "B", "unit_scale": True, "leave": False}
            bar = tqdm(total=path.stat().st_size, desc=path.name, **how)
            raw = io.BufferedReader(_Counted(path, stack.enter_context(bar)), BLOCK)
            file: Any = stack.enter_context(raw)
        else:
            file = stack.enter_context(path.open("rb"))
        if path.name.endswith(".gz"):
            file = stack.enter_context(gzip.GzipFile(fileobj=file))
        yield file
