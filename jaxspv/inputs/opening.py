"""Files opened for reading: found, decompressed, their faults told as one kind of error."""

from __future__ import annotations

import contextlib
import gzip
import io
import os
import pathlib
import zipfile
import zlib
from collections.abc import Iterator
from typing import Any

import scipy  # its modules are imported when they are first used


def existing(path: str | os.PathLike[str]) -> pathlib.Path:
    path = pathlib.Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, not a file.")
    if not path.is_file():
        raise FileNotFoundError(f"no such file: {path}")
    return path


@contextlib.contextmanager
def refusing(path: pathlib.Path, what: str) -> Iterator[None]:
    """Whatever a broken file raises becomes a ValueError with its name and the reason."""
    broken = (ValueError, OverflowError, EOFError, OSError, KeyError, zlib.error)
    broken += MemoryError, NotImplementedError, zipfile.BadZipFile
    try:
        yield
    except broken as error:
        raise ValueError(f"{path} is no readable {what}: {error}") from error


class Forwards:
    """A file that can be read and not moved in.

    SciPy's parser puts a file back to where it stopped, and where a broken number makes that place
    negative the error ends the process: it comes out of a destructor in C++. Behind a number it
    looks for the end of the line, beyond the text where there is none: the last line gets one, and
    bytes of 0, which end a text there, are replaced and counted in `zeros`.
    """

    def __init__(self, file: Any):
        self.file, self.last, self.zeros = file, b"\n", 0

    def read(self, size: int = -1) -> bytes:
        """At most `size` bytes; nothing at the end."""
        text = self.file.read(size)
        if not text and self.last != b"\n":
            text = b"\n"
        self.last = text[-1:] or b"\n"
        self.zeros += text.count(0)
        return text.replace(b"\0", b"?")


def parsed(file: Any) -> Any:
    """SciPy's matrix of an opened Matrix Market file.

    Raises:
        ValueError: it is broken, or some of its bytes are 0.
    """
    text = Forwards(file)
    matrix = scipy.io.mmread(text, spmatrix=False)
    if text.zeros:
        raise ValueError(f"it is no text: {text.zeros} of its bytes are 0")
    return matrix


@contextlib.contextmanager
def opened(path: pathlib.Path, progress: bool) -> Iterator[io.BufferedIOBase | Any]:
    """The file's bytes, decompressed; the bar counts those on the disk."""
    from tqdm import tqdm

    with path.open("rb") as raw:
        size = path.stat().st_size
        bar = tqdm.wrapattr(
            raw, "read", total=size, desc=path.name, disable=not progress, leave=False
        )
        with bar as wrapped:
            counted: Any = wrapped
            if path.name.endswith(".gz"):
                with gzip.GzipFile(fileobj=counted) as plain:
                    yield plain
            else:
                yield counted
