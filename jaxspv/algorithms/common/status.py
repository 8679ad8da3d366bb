"""Errors of kernels that gave up, raised later so that eager calls stay asynchronous."""

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

from ..._core.eager.arrays import is_eager, on_gpu

_R = TypeVar("_R", bound=tuple)

MOST = 64  # calls whose status is not read yet, at most
TOGETHER, SECONDS = 16, 0.25  # statuses that are read together; an older one is read alone
FEW = 4  # so many old ones are read one by one, for which no program is compiled
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
    """`result`; the `status` of an eager result on a GPU is checked later, without blocking.

    A later eager call of an algorithm reads it, in groups of `TOGETHER` because each read costs
    0.3 ms, or alone after `SECONDS`. `jaxspv.check(result)` and the end of the process read it too.
    So calls are queued on the device without a stop, and every failure is reported.

    Raises:
        RuntimeError: not all thread blocks of a kernel of an earlier call arrived at a barrier in
            time.
    """
    status: Any = result.status  # pyright: ignore[reportAttributeAccessIssue]
    if isinstance(status, Tracer) or not on_gpu(status):
        return result
    now = time.monotonic()
    if len(_OPEN) >= TOGETHER or (_OPEN and now - _OPEN[0][2] >= SECONDS):
        look()
    _OPEN.append((algorithm, status, now))
    return result


def without_negative_cycle(result: _R, algorithm: str) -> _R:
    """`result`; raises an error for a negative cycle if `converged` of an eager one is False.

    Immediately on a CPU; on a GPU when `finished` reads the status.
    """
    converged: Any = result.converged  # pyright: ignore[reportAttributeAccessIssue]
    if not is_eager(converged):
        return result
    if on_gpu(converged):
        _OPEN.append((algorithm, converged, time.monotonic()))
    elif not np.all(np.asarray(converged)):
        raise _error(algorithm, cycle=True)
    return result


def _error(algorithm: str, *, cycle: bool) -> Exception:
    if cycle:
        return NegativeCycleError(
            f"{algorithm}: a cycle of negative length can be reached, so there are no shortest "
            "paths. Under jit the field `converged` is False."
        )
    return RuntimeError(
        f"{algorithm}: the kernel gave up waiting for its thread blocks at a grid barrier, and its "
        "result is wrong; another program may hold the GPU. Try again, or with backend='xla'."
    )


def look(most: int = MOST) -> None:
    """Reads the statuses of earlier calls that have ended; waits for the oldest beyond `most`.

    Raises:
        RuntimeError, NegativeCycleError: as `finished` and `without_negative_cycle`.
    """
    while _OPEN:
        ready, alone = _ready(), 1 if len(_OPEN) >= TOGETHER else FEW
        if len(ready) > alone and not np.asarray(_any_bad((ready * TOGETHER)[:TOGETHER])):
            for _ in ready:
                _OPEN.popleft()
        elif len(_OPEN) > most or _OPEN[0][1].is_ready():
            algorithm, status, _ = _OPEN.popleft()
            value = np.zeros(()) if status.is_deleted() else np.asarray(status)
            cycle = value.dtype == bool
            if not np.all(value) if cycle else np.any(value):
                raise _error(f"{algorithm}, called earlier", cycle=cycle)
        else:
            break


def _ready() -> list[Any]:
    """The oldest statuses, up to the first that is not ready, no number, or on another device."""
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
    """Forgets a status or a `converged` that the caller has read."""
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
