"""Kernels that gave up raise an error, although no eager call waits for the device."""

from __future__ import annotations

import atexit
import collections
import sys
from typing import Any, TypeVar

import numpy as np
from jax.core import Tracer

from ..._core.compilation import on_accelerator

_R = TypeVar("_R", bound=tuple)

MOST = 64  # calls under way whose status nobody has seen
_OPEN: collections.deque[tuple[str, Any]] = collections.deque()


def finished(result: _R, algorithm: str) -> _R:
    """`result`; the `status` of an eager result on a GPU is checked when it has arrived.

    By the next eager call of an algorithm, by `jaxspv.check(result)`, which waits for it, or when
    the process ends: so calls follow one another on the device, and no failure stays unseen.

    Raises:
        RuntimeError: not all thread blocks of a kernel of an earlier call arrived at a barrier in
            time.
    """
    status: Any = result.status  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(status, Tracer) or not on_accelerator(status):
        return result
    look()
    status.copy_to_host_async()
    _OPEN.append((algorithm, status))
    return result


def look(most: int = MOST) -> None:
    """Looks at what is there of earlier calls; waits for the oldest where there are too many.

    Raises:
        RuntimeError: as `finished`.
    """
    while _OPEN and (len(_OPEN) > most or _OPEN[0][1].is_ready()):
        algorithm, status = _OPEN.popleft()
        if not status.is_deleted() and np.any(np.asarray(status)):
            raise RuntimeError(
                f"{algorithm}, called earlier: the kernel gave up waiting for its thread blocks "
                "at a grid barrier, and its result is wrong; another program may hold the GPU. Try "
                "again, or with backend='xla'."
            )


def seen(status: Any) -> None:
    """Somebody else has looked at this status."""
    others = [entry for entry in _OPEN if entry[1] is not status]
    if len(others) < len(_OPEN):
        _OPEN.clear()
        _OPEN.extend(others)


@atexit.register
def _last() -> None:
    try:
        look(0)
    except RuntimeError as error:
        print(f"jaxspv: {error}", file=sys.stderr)
