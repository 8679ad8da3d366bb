"""Kernels that gave up raise an error, although no eager call waits for the device."""

from __future__ import annotations

import atexit
import collections
import functools
import itertools
import sys
import time
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from ..._core.compilation import on_accelerator

_R = TypeVar("_R", bound=tuple)

MOST = 64  # calls under way whose status nobody has seen
TOGETHER, SECONDS = 16, 0.25  # statuses that are looked at together, or once one is so old
_OPEN: collections.deque[tuple[str, Any, float]] = collections.deque()


def finished(result: _R, algorithm: str) -> _R:
    """`result`; the `status` of an eager result on a GPU is checked when it is there.

    By the next eager call of an algorithm, or, as each look takes 0.3 ms, by one of the next
    `TOGETHER` where calls follow one another within `SECONDS`; by `jaxspv.check(result)`, which
    waits for it, or when the process ends: so calls follow one another on the device, and no
    failure stays unseen.

    Raises:
        RuntimeError: not all thread blocks of a kernel of an earlier call arrived at a barrier in
            time.
    """
    status: Any = result.status  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(status, Tracer) or not on_accelerator(status):
        return result
    now = time.monotonic()
    if len(_OPEN) >= TOGETHER or (_OPEN and now - _OPEN[0][2] >= SECONDS):
        look()
    _OPEN.append((algorithm, status, now))
    return result


def look(most: int = MOST) -> None:
    """Looks at what is there of earlier calls; waits for the oldest where there are too many.

    Raises:
        RuntimeError: as `finished`.
    """
    while _OPEN:
        there = _there()
        if len(there) > 1 and not np.asarray(_any_bad((there * TOGETHER)[:TOGETHER])):
            for _ in there:
                _OPEN.popleft()
        elif len(_OPEN) > most or _OPEN[0][1].is_ready():
            algorithm, status, _ = _OPEN.popleft()
            if not status.is_deleted() and np.any(np.asarray(status)):
                raise RuntimeError(
                    f"{algorithm}, called earlier: the kernel gave up waiting for its thread "
                    "blocks at a grid barrier, and its result is wrong; another program may hold "
                    "the GPU. Try again, or with backend='xla'."
                )
        else:
            break


def _there() -> list[Any]:
    """The oldest statuses, as far as they are there, scalars, and on one device."""
    first = _OPEN[0][1]

    def suits(status: Any) -> bool:
        known = hasattr(status, "devices") and not status.is_deleted() and status.is_ready()
        return known and status.ndim == 0 and status.devices() == first.devices()

    oldest = (entry[1] for entry in itertools.islice(_OPEN, TOGETHER))
    return list(itertools.takewhile(suits, oldest))


@jax.jit
def _any_bad(statuses: list[Any]) -> jax.Array:
    return functools.reduce(jnp.bitwise_or, statuses) != 0


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
