"""Constants whose best values differ between GPUs.

`jaxspv tune` measures them on the GPU that is present and stores them in a file, which later
processes read. On a GPU that the file does not name, the values of `Constants` hold: those measured
on an H200.
"""

import contextlib
import functools
import json
import math
import os
import pathlib
import warnings
from collections.abc import Iterator
from typing import Any, NamedTuple

from .simt.device import Device, target


class Constants(NamedTuple):
    """bfs_alpha: a search in a graph of any degree pulls where the edges of the frontier, times
    this, are more than those of unvisited vertices (Beamer, Asanovic, Patterson, SC 2012).
    increments_from: vertices of a graph from which PageRank gathers changes of 16 bits.
    solo_pieces: a round of a worklist of at most so many pieces of rows is done by one CTA.
    spmm_waves: CTAs of a sparse times dense product at most, over the number that is resident.
    spmv_bounds: mean lengths of rows up to which each of `spmv.SHAPES` but the last serves.
    """

    bfs_alpha: float = 14.0
    increments_from: float = 1 << 17
    solo_pieces: int = 64
    spmm_waves: int = 2
    spmv_bounds: tuple[float, ...] = (12, 32, 64)


_used: list[Constants] = []  # by `using`


def constants() -> Constants:
    """The constants of the device that kernels traced now are for."""
    return _used[-1] if _used else stored(path()).get(name_of(target()), Constants())


@contextlib.contextmanager
def using(values: Constants) -> Iterator[None]:
    """Kernels that are traced inside take these."""
    _used.append(values)
    try:
        yield
    finally:
        _used.pop()


def name_of(device: Device) -> str:
    """The name of a device in the file: a part of a GPU has constants of its own."""
    return f"{device.kind}, {device.cores} multiprocessors"


def path() -> pathlib.Path:
    """The file: `jaxspv/tuned.json` in `$XDG_CACHE_HOME`, or in `~/.cache`."""
    base = os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache"
    return pathlib.Path(base) / "jaxspv" / "tuned.json"


@functools.cache  # every trace asks
def stored(file: pathlib.Path) -> dict[str, Constants]:
    """The constants of each device in a file; none if there is no file or it cannot be read."""
    try:
        found = json.loads(file.read_text())
        return {name: _checked(values) for name, values in found.items()}
    except FileNotFoundError:
        return {}
    except (OSError, ValueError, TypeError, AttributeError) as error:
        warnings.warn(f"{file} is ignored ({error}); `jaxspv tune` writes it anew", stacklevel=2)
        return {}


def _checked(values: dict[str, Any]) -> Constants:
    made = Constants(**values)
    made = made._replace(spmv_bounds=tuple(made.spmv_bounds))
    if len(made.spmv_bounds) != 3:
        raise ValueError("`spmv_bounds` must be three numbers")
    for number in (*made[:4], *made.spmv_bounds):
        if not isinstance(number, int | float) or not 0 <= number < math.inf:
            raise ValueError(f"constants must be numbers >= 0; got {number!r}")
    return made


def store(device: Device, values: Constants) -> pathlib.Path:
    """Puts the constants of a device into the file, with those of others; returns its path."""
    file = path()
    found = {name: old._asdict() for name, old in stored(file).items()}
    file.parent.mkdir(parents=True, exist_ok=True)
    part = file.with_suffix(f".{os.getpid()}")  # a process that reads meanwhile sees a whole file
    part.write_text(json.dumps(found | {name_of(device): values._asdict()}, indent=1))
    part.replace(file)
    stored.cache_clear()
    return file
