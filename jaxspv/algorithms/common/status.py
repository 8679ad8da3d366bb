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

from ..._core.compilation import is_eager, on_accelerator

_R = TypeVar("_R", bound=tuple)

MOST = 64  # calls under way whose status nobody has seen
TOGETHER, SECONDS = 16, 0.25  # statuses that are looked at together, or once one is so old
_OPEN: collections.deque[tuple[str, Any, float]] = collections.deque()
# the algorithm, its status (a number) or `converged` (a bool), and the time of the call


class NegativeCycleError(ValueError):
    """A cycle of negative length can be reached: paths over it get ever shorter.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 0], [1.0, -2.0], shape=(2, 2))
    >>> try:
    ...     jsp.sssp(A, 0)
    ... except jsp.NegativeCycleError:
    ...     print("there are no shortest paths")
    there are no shortest paths
    """


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


def without_negative_cycle(result: _R, algorithm: str) -> _R:
    """`result`; where `converged` of an eager one is False, an error tells of a negative cycle.

    At once on a CPU; on a GPU when `finished` would tell.

    Raises:
        NegativeCycleError: a negative cycle can be reached.
    """
    converged: Any = result.converged  # pyright: ignore[reportAttributeAccessIssue]
    if not is_eager(converged):
        return result
    if on_accelerator(converged):
        _OPEN.append((algorithm, converged, time.monotonic()))
    elif not np.all(np.asarray(converged)):
        raise _error(algorithm, cycle=True)
    return result


def _error(algorithm: str, *, cycle: bool) -> Exception:
    if cycle:
        return NegativeCycleError(
            f"{algorithm}: a cycle of negative length can be reached, so there are no shortest "
            "paths. Under jit the field `converged` tells of it."
        )
    return RuntimeError(
        f"{algorithm}: the kernel gave up waiting for its thread blocks at a grid barrier, and its "
        "result is wrong; another program may hold the GPU. Try again, or with backend='xla'."
    )


def look(most: int = MOST) -> None:
    """Looks at what is there of earlier calls; waits for the oldest where there are too many.

    Raises:
        RuntimeError, NegativeCycleError: as `finished` and `without_negative_cycle`.
    """
    while _OPEN:
        there = _valid()
        if len(there) > 1 and not np.asarray(_any_bad((there * TOGETHER)[:TOGETHER])):
            for _ in there:
                _OPEN.popleft()
        elif len(_OPEN) > most or _OPEN[0][1].is_ready():
            algorithm, status, _ = _OPEN.popleft()
            sent = np.zeros(()) if status.is_deleted() else np.asarray(status)
            cycle = sent.dtype == bool
            if not np.all(sent) if cycle else np.any(sent):
                raise _error(f"{algorithm}, called earlier", cycle=cycle)
        else:
            break


def _valid() -> list[Any]:
    """The oldest statuses, as far as they are there, numbers, and on one device."""
    first = _OPEN[0][1]

    def suits(status: Any) -> bool:
        known = hasattr(status, "devices") and not status.is_deleted() and status.is_ready()
        number = known and status.ndim == 0 and status.dtype != bool
        return number and status.devices() == first.devices()

    oldest = (entry[1] for entry in itertools.islice(_OPEN, TOGETHER))
    return list(itertools.takewhile(suits, oldest))


@jax.jit
def _any_bad(statuses: list[Any]) -> jax.Array:
    return functools.reduce(jnp.bitwise_or, statuses) != 0


def seen(status: Any) -> None:
    """Somebody else has looked at this status, or at this `converged`."""
    others = [entry for entry in _OPEN if entry[1] is not status]
    if len(others) < len(_OPEN):
        _OPEN.clear()
        _OPEN.extend(others)


@atexit.register
def _last() -> None:
    try:
        look(0)
    except (RuntimeError, NegativeCycleError) as error:
        print(f"jaxspv: {error}", file=sys.stderr)
