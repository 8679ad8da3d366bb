"""`grad` and `value_and_grad` over sparse objects: the cotangent lives on their pattern."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .graph import Graph


def value_and_grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """`jax.value_and_grad` that takes sparse matrices, vectors, graphs and other pytrees.

    Only leaves of a float or complex dtype are differentiated; the gradient is an object of the
    same type with None in every other leaf (indices, counts, flags). That of a prepared graph is a
    `Graph` with the gradient of its matrix and without layouts, which repeat the values: it is no
    step for the leaves of the graph, whose values change by `G.with_data(G.data - step * dG.data)`.

    Args:
        fn: scalar-valued function.
        argnums: which positional arguments to differentiate: an integer, or a tuple of them, which
            gives a tuple of gradients; negative ones count from the last.
        has_aux: `fn` returns (value, aux), and so does this: ((value, aux), gradients).

    Raises:
        TypeError: `argnums` is something else; a call's arguments to differentiate have no float
            leaf, or its value is no scalar.
        ValueError: a call has no such argument.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
    >>> value, dA = value_and_grad(lambda A: (A @ jnp.array([1.0, 10.0])).sum())(A)
    >>> float(value), dA.data.tolist(), dA.indices
    (23.0, [10.0, 1.0], None)
    """
    single = not isinstance(argnums, (tuple, list))
    asked: Any = (argnums,) if single else tuple(argnums)
    if not asked or not all(isinstance(k, (int, np.integer)) for k in asked):
        raise TypeError(f"`argnums` must be an integer or a tuple of integers; got {argnums!r}.")

    def wrapped(*args, **kwargs):
        for k in asked:
            if not -len(args) <= k < len(args):
                raise ValueError(
                    f"`argnums` must name one of {len(args)} positional arguments; got {k}. "
                    "Arguments passed by keyword are not differentiated."
                )
        where = [k % len(args) for k in asked]
        chosen, whole = jax.tree.flatten([args[i] for i in where], is_leaf=_is_graph)
        matrices = [Graph(x.out, symmetric=x.symmetric) if _is_graph(x) else x for x in chosen]
        live = jax.tree.map(lambda x: x if _has_gradient(x) else None, matrices)
        if not jax.tree.leaves(live):
            kinds = ", ".join(type(args[i]).__name__ for i in where)
            raise TypeError(
                f"none of the arguments to differentiate (`argnums`={argnums}: {kinds}) has a "
                "floating-point leaf; make one with `astype`."
            )

        def inner(live):
            merged = jax.tree.map(lambda x, v: x if v is None else v, matrices, live)
            given = [
                dataclasses.replace(old, out=new.out) if _is_graph(old) else new
                for old, new in zip(chosen, merged, strict=True)
            ]
            full = list(args)
            for i, arg in zip(where, jax.tree.unflatten(whole, given), strict=True):
                full[i] = arg
            return fn(*full, **kwargs)

        value, grads = jax.value_and_grad(inner, has_aux=has_aux)(live)
        grads = jax.tree.unflatten(whole, grads)
        return value, grads[0] if single else tuple(grads)

    return wrapped


def grad(
    fn: Callable[..., Any], argnums: int | Sequence[int] = 0, *, has_aux: bool = False
) -> Callable[..., Any]:
    """`jax.grad` that takes sparse matrices, vectors and graphs; see `value_and_grad`.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
    >>> grad(lambda A: (A @ jnp.array([1.0, 10.0])).sum())(A)
    CSR(float32[2], shape=(2, 2))
    """
    both = value_and_grad(fn, argnums, has_aux=has_aux)

    def wrapped(*args, **kwargs):
        value, grads = both(*args, **kwargs)
        return (grads, value[1]) if has_aux else grads

    return wrapped


def _is_graph(node: Any) -> bool:
    return isinstance(node, Graph)


def _has_gradient(leaf: Any) -> bool:
    return jnp.issubdtype(jnp.result_type(leaf), jnp.inexact)
