"""Backends and platforms: which kinds of forms there are, and what a trace allows.

A form is for NVIDIA GPUs ("pallas": kernels), for CPUs ("cpu": C++, or loops that XLA compiles to
native code) or for every platform ("xla").
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, Literal, NamedTuple, TypeVar, cast

import jax

_F = TypeVar("_F", bound=Callable[..., Any])

Backend = Literal["pallas", "cpu", "xla"]
BACKENDS: tuple[Backend, ...] = ("pallas", "cpu", "xla")  # fastest first
PLATFORM_OF: dict[str, str] = {"pallas": "cuda", "cpu": "cpu"}  # "xla" runs on every platform
WORDS = {"cuda": "NVIDIA GPUs", "cpu": "CPUs", "other": "other platforms"}
EVERYWHERE = frozenset(WORDS)
# The backends that are asked for a form for a platform, in order; None: one of each is wanted.
ASKED: dict[str | None, tuple[Backend, ...]] = {
    None: BACKENDS,
    "cuda": ("pallas", "xla", "cpu"),
    "cpu": ("cpu", "xla", "pallas"),
    "other": ("xla", "cpu", "pallas"),
}


class Situation(NamedTuple):
    """Where the program of a trace may run; part of the key of every cached trace.

    Attributes:
        allowed: the backends that calls without `backend=` may take.
        platforms: the platforms that the program may be lowered for.
        portable: whether C++ handlers of this process are forbidden: the program is exported, or
            XLA divides it among devices.
    """

    allowed: tuple[Backend, ...] = BACKENDS
    platforms: frozenset[str] = EVERYWHERE
    portable: bool = False

    def everywhere(self) -> Situation:
        """The same, for a program of every platform."""
        return self if self.platforms is EVERYWHERE else self._replace(platforms=EVERYWHERE)

    def on(self, platform: str) -> Situation:
        """The same, for a program of one platform."""
        return self._replace(platforms=frozenset({platform}))

    def taking(self, backend: Backend | None) -> Situation:
        """The same for calls by a backend; "cpu" falls back to "xla"."""
        if backend is None:
            return self
        return self._replace(allowed=tuple(b for b in BACKENDS if b in (backend, "xla")))


# A user context of JAX: part of the key of every trace cache, also of a nested `jax.jit`.
_SITUATION = jax.make_user_context(default_value=Situation())


def situation() -> Situation:
    """The situation of the current trace."""
    return _SITUATION.value


def inside(where: Situation) -> contextlib.AbstractContextManager[None]:
    """A context in which traces are for this situation, by JAX's default rules of promotion.

    Stricter rules are for a user's code: under "strict" not even an int32 plus a bool is allowed.
    """
    config: Any = jax.config
    rules = config.jax_numpy_dtype_promotion, config.jax_numpy_rank_promotion
    return _SITUATION(where) if rules == ("standard", "allow") else default_promotion(where)


@contextlib.contextmanager
def default_promotion(where: Situation | None = None) -> Iterator[None]:
    """A context in which JAX's default rules of promotion hold; a decorator of what is jitted."""
    with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"):
        with _SITUATION(where or situation()):
            yield


def using(backend: Backend | None) -> contextlib.AbstractContextManager[None]:
    """A context in which operations without `backend=` use it."""
    return inside(situation().taking(backend))


def reaching(fn: _F) -> _F:
    """Decorator of a public function of several operations: its `backend=` is for all of them."""

    @functools.wraps(fn)
    def call(*args, backend=None, **kwargs):
        with using(backend):
            return fn(*args, backend=backend, **kwargs)

    return cast(_F, call)
