"""Backends and platforms: which kinds of forms there are, and what a trace allows.

A form is for NVIDIA GPUs ("pallas"), for CPUs ("cpu": loops that XLA compiles to native code) or
for every platform ("xla").
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

import jax

Backend = Literal["pallas", "cpu", "xla"]
BACKENDS: tuple[Backend, ...] = ("pallas", "cpu", "xla")  # fastest first
PLATFORM_OF: dict[str, str] = {"pallas": "cuda", "cpu": "cpu"}  # "xla" is for all there are
WORDS = {"cuda": "NVIDIA GPUs", "cpu": "CPUs", "other": "other platforms"}
EVERYWHERE = frozenset(WORDS)


class Situation(NamedTuple):
    """What a trace knows of where its program will run; part of the key of every cached trace.

    Attributes:
        allowed: the backends that calls without one of their own may take.
        platforms: those the program may be lowered for.
        portable: whether it must hold no calls of handlers that this process registered: it runs
            in other processes, or XLA divides it among devices.
    """

    allowed: tuple[Backend, ...] = BACKENDS
    platforms: frozenset[str] = EVERYWHERE
    portable: bool = False


# A context of JAX: part of the key of every cache of traces, that of a nested `jax.jit` too.
_SITUATION = jax.make_user_context(default_value=Situation())


def situation() -> Situation:
    """The situation of the current trace."""
    return _SITUATION.value


def inside(where: Situation) -> contextlib.AbstractContextManager[None]:
    """Traces in here are for this situation."""
    return _SITUATION(where)


def using(backend: Backend | None) -> contextlib.AbstractContextManager[None]:
    """A context in which operations without `backend=` use it; "cpu" falls back to "xla"."""
    if backend is None:
        return contextlib.nullcontext()
    allowed = tuple(b for b in BACKENDS if b == backend or b == "xla")
    return inside(situation()._replace(allowed=allowed))


def without_kernels() -> contextlib.AbstractContextManager[None]:
    """A context without kernels: only what XLA compiles itself, native CPU loops included."""
    return inside(situation()._replace(allowed=("cpu", "xla"), portable=True))


def needed(forms: Mapping[Backend, Any], platforms: frozenset[str]) -> dict[str, Backend]:
    """Platform -> backend of the form that runs there, of those that `platforms` may meet."""
    found = {}
    for platform in sorted(platforms):
        usable = [b for b in BACKENDS if b in forms and PLATFORM_OF.get(b, platform) == platform]
        if usable:
            found[platform] = usable[0]
    return found


def for_cuda() -> bool:
    """Whether what is traced here is for NVIDIA GPUs alone: known inside of forms."""
    return situation().platforms == {"cuda"}
