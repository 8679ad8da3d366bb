"""How a form is batched under `vmap`: by its own rule, when it is lowered."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax

from ..batching import one_by_one
from .call import Call, Form
from .plan import Plan


def summed(fn: Callable[..., Any], on: list[bool], *args: Any) -> list[Any]:
    """Cotangents; summed over the axis of a vmap for operands that do not have that axis."""
    found = fn(*args)
    return [c if flag else c.sum(0) for c, flag in zip(found, on, strict=True)]


def over_lanes(plan: Plan, impl: Form, call: Call, leaves: Sequence[Any]) -> Sequence[Any]:
    """The leaves of a form's result under the vmaps of `call.lanes`: the innermost by its rule.

    The others are JAX's own batching of that rule, or a map where it calls a kernel or a loop. The
    form in XLA serves for a kernel without a rule.
    """
    kernel, static = impl, dict(call.static)
    if impl.batched is None and impl.backend == "pallas" and (impl := plan.on("other")) is None:
        raise NotImplementedError(f"{kernel} cannot be batched by vmap.")
    rule = impl.batched or ("map" if impl.backend == "cpu" else "vmap")

    def single(*leaves):
        return jax.tree.leaves(impl.run(*jax.tree.unflatten(call.tree, leaves), **static))

    def first(*leaves):
        """The result under the innermost vmap, by the form's own rule."""
        flags = call.lanes[0]
        size = next(x.shape[0] for x, on in zip(leaves, flags, strict=True) if on)
        marks = jax.tree.unflatten(call.tree, flags)
        operands = jax.tree.unflatten(call.tree, leaves)
        assert callable(rule)
        return jax.tree.leaves(rule(size, marks, *operands, **static))

    own = callable(rule) and impl.backend != "xla"
    fn = single
    for k, flags in enumerate(call.lanes):
        if k == 0 and callable(rule):
            fn = first
        elif rule == "map" or own:
            fn = functools.partial(_mapped, fn, flags)
        else:
            fn = jax.vmap(fn, in_axes=tuple(0 if on else None for on in flags))
    return fn(*leaves)


def _mapped(fn: Callable[..., Any], flags: tuple[bool, ...], *leaves: Any) -> Any:
    size = next(x.shape[0] for x, on in zip(leaves, flags, strict=True) if on)
    return one_by_one(fn, size, flags, *leaves)
