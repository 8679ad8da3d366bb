"""Transformations that leave the result of a function as it is, alone and inside of each other."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

Function = Callable[..., Any]


def _zeros(f: Function) -> Function:
    return lambda *args: jax.tree.map(jnp.zeros_like, f(*args))


def _last(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[-1], tree)


def _twice(tree: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * 2), tree)


def _conditional(f: Function) -> Function:
    return lambda b, *args: lax.cond(b > 0, f, _zeros(f), *args)


def _switched(f: Function) -> Function:
    return lambda b, *args: lax.switch(b, [_zeros(f), f, _zeros(f)], *args)


def _while(f: Function) -> Function:
    def run(b, *args):
        zeros = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), jax.eval_shape(f, *args))
        return lax.while_loop(lambda c: c[0] < b, lambda c: (c[0] + 1, f(*args)), (0, zeros))[1]

    return run


def _scanned(f: Function) -> Function:
    return lambda b, *args: _last(lax.scan(lambda c, _: (c, f(*args)), b, None, length=2)[1])


def _over_all(f: Function) -> Function:
    """vmap over every argument."""
    return lambda *args: _last(jax.vmap(f)(*_twice(args)))


def _over_first(g: Function) -> Function:
    """vmap over the number that decides, as a batch of (0, 1) or (1, 1)."""
    return lambda *args: _last(jax.vmap(lambda b: g(b, *args))(jnp.array([0, 1])))


def _one(g: Function) -> Function:
    return lambda *args: g(jnp.int32(1), *args)


WRAPPERS: dict[str, Callable[[Function], Function]] = {
    "jit": lambda f: f,
    "vmap": _over_all,
    "vmap of vmap": lambda f: _over_all(_over_all(f)),
    "nested": lambda f: lambda *args: jax.jit(f)(*args),
    "checkpoint": lambda f: jax.checkpoint(f),
    "cond": lambda f: _one(_conditional(f)),
    "switch": lambda f: _one(_switched(f)),
    "while": lambda f: _one(_while(f)),
    "scan": lambda f: _one(_scanned(f)),
    "vmap of cond": lambda f: _over_first(_conditional(f)),
    "vmap of switch": lambda f: _over_first(_switched(f)),
    "vmap of while": lambda f: _over_first(_while(f)),
    "vmap of scan": lambda f: _over_first(_scanned(f)),
    "vmap of checkpoint": lambda f: _over_all(jax.checkpoint(f)),
    "scan of vmap": lambda f: _one(_scanned(_over_all(f))),
    "cond of vmap": lambda f: _one(_conditional(_over_all(f))),
}
NAMES = ("eager", *WRAPPERS, "captured")


def wrapped(f: Function, kind: str) -> Function:
    """`f` inside of a transformation; "captured": its arguments are constants of the program."""
    if kind == "eager":
        return f
    if kind == "captured":
        return lambda *args: jax.jit(lambda: f(*args))()
    return jax.jit(WRAPPERS[kind](f))
