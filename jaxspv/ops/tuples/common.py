"""What all functions of tuples share: registration, operands, results by their places."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from ..._core.operations.overload import ON_TUPLES
from ...formats import BitTiled
from ...formats.base import ours
from ...formats.stored import Stored
from ...formats.tuples import Tuples
from ...formats.vector import from_present
from ...graph import Graph, kind, linked


def on_tuples(fn: Any) -> Any:
    """Decorator: what the public function of this name does on tuples."""
    ON_TUPLES[fn.__name__] = fn
    return fn


def as_tuples(name: str, A: Any) -> Tuples:
    """A matrix or sparse vector, or that of a Graph, with its values by number. Raises TypeError:
    it is none."""
    A = linked(A).out if isinstance(A, Graph) else ours(A)
    if isinstance(A, Tuples):
        return A
    if not isinstance(A, Stored):
        raise TypeError(f"`{name}` must be sparse, on one device; got {kind(A)}.")
    A = A.asformat("csr") if isinstance(A, BitTiled) else A
    return Tuples.of(A, A.data)


def is_sparse(x: Any) -> bool:
    """Whether it is a matrix or vector of this library, of tuples or not."""
    return isinstance(x, (Tuples, Stored, Graph))


def present_elements(y: Any, present: Array, like: Any) -> Tuples:
    """The elements that are there, numbered by their places."""
    v = from_present(jnp.arange(present.shape[0], dtype=jnp.int32), present)
    return Tuples(dataclasses.replace(v, overflow=v.overflow | like.overflow), y)


def traced(semiring: Any, A: Tuples, x: Any, flip: bool) -> tuple[Any, Any, Any]:
    """`mul` and the addition as closed jaxprs of leaves, and the shape of a term."""

    def single(values):
        return jax.tree.map(lambda v: jax.ShapeDtypeStruct(v.shape[1:], v.dtype), values)

    def multiply(a, v):
        return jax.tree.map(jnp.asarray, semiring.mul(*((v, a) if flip else (a, v))))

    def add(u, v):
        return jax.tree.map(lambda z, like: jnp.asarray(z, like.dtype), semiring.add.op(u, v), u)

    a, v = single(A.values), single(x)
    term = jax.eval_shape(multiply, a, v)
    return jax.make_jaxpr(multiply)(a, v), jax.make_jaxpr(add)(term, term), term
