"""The static side of a call of an operation, the forms that may serve it, types of arrays."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax

from ..platforms import Backend, Situation, situation

Types = tuple[tuple[tuple[int, ...], Any], ...]  # (shape, dtype) of every leaf


@dataclasses.dataclass(frozen=True)
class Form:
    """One way to compute an operation.

    Attributes:
        name: the method, e.g. "scatter", "delta_stepping".
        backend: "xla" runs everywhere, "cpu" where the program is lowered for a CPU, "pallas" for
            an NVIDIA GPU.
        run: `run(*operands, **static) -> result`, traceable.
        batched: `batched(axis_size, in_batched, *operands, **static) -> result`, every leaf with a
            leading axis: what vmap does. "vmap": JAX's own batching, the default of "xla". "map":
            `lax.map` over the lanes, that of "cpu". None, that of "pallas": it refuses.
        refuse: `refuse(*operands, **static)`: why it cannot serve a call (a sentence), or None.
            Operands have shapes and dtypes alone.
    """

    name: str
    backend: Backend
    run: Callable[..., Any]
    batched: Callable[..., Any] | Literal["map", "vmap"] | None
    refuse: Callable[..., str | None]

    def __str__(self) -> str:
        return f"{self.backend}/{self.name}"


@dataclasses.dataclass(frozen=True, eq=False)
class Call:
    """The static part of a call: the only parameter of its equation. Made by `call_of`, so that
    equal ones are one object, compared by identity; no tuple, which JAX would take apart.

    Attributes:
        tree: the pytree structure of the operands.
        static: named options of the operation.
        backend, method: what was asked for; None: the fastest that serves.
        where: the situation of calls in its forms and derivatives, for every platform: by
            `backend`.
        lanes: an entry for each `vmap` around the call, the innermost first: its size, and which
            arrays have a leading axis for it.
    """

    tree: Any
    static: tuple[tuple[str, Any], ...]
    backend: Backend | None
    method: str | None
    where: Situation
    lanes: tuple[tuple[int, tuple[bool, ...]], ...]

    def __repr__(self) -> str:
        asked = *self.static, ("backend", self.backend), ("method", self.method)
        given = [f"{name}={value}" for name, value in asked if value not in (None, False)]
        given += [f"lanes={len(self.lanes)}"] if self.lanes else []
        return f"({', '.join(given)})"

    def replace(self, **changes: Any) -> Call:
        """The same call but for some attributes."""
        return _call(*(vars(self) | changes).values())

    def single(self, types: Types) -> Types:
        """Types of the arrays without the axes of `lanes`."""
        axes = [sum(on[k] for _, on in self.lanes) for k in range(len(types))]
        return tuple((s[k:], dtype) for (s, dtype), k in zip(types, axes, strict=True))


_call = functools.lru_cache(maxsize=4096)(Call)


def call_of(tree: Any, static: dict[str, Any], backend: Any = None, method: Any = None) -> Call:
    """The call with these options in the situation of the current trace. Raises TypeError: an
    option is an array, a list, ...; names it."""
    where = situation().everywhere().taking(backend)
    try:
        return _call(tree, tuple(sorted(static.items())), backend, method, where, ())
    except TypeError:
        for name, value in {"backend": backend, "method": method, **static}.items():
            try:
                hash(value)
            except TypeError:
                kind = type(value).__name__
                raise TypeError(f"`{name}` must be a single value of Python; got {kind}.") from None
        raise


def structs(types: Types) -> list[jax.ShapeDtypeStruct]:
    return [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in types]


def types_of(leaves: Sequence[Any]) -> Types:
    return tuple([(x.shape, x.dtype) for x in leaves])
