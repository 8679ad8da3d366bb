"""Lanes of vmap and mesh axes: batch rules of forms, and loops with one condition for all lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax
from jax.core import Tracer
from jax.custom_batching import custom_vmap


def axes_of(leaves: Sequence[Any]) -> frozenset[Any]:
    """The mesh axes along which some array varies, inside of a `shard_map`."""
    found = [jax.typeof(x).manual_axis_type.varying for x in leaves if isinstance(x, Tracer)]
    return frozenset().union(*found)


def along(axes: frozenset[Any], leaves: Sequence[Any]) -> list[Any]:
    """The arrays, each varying along all of these axes."""

    def varying(x):
        more = axes - axes_of([x])
        return lax.pcast(x, tuple(sorted(more)), to="varying") if more else x

    return [varying(x) for x in leaves] if axes else list(leaves)


def alike(leaves: Sequence[Any]) -> list[Any]:
    """The arrays, inside of a `shard_map` all varying along the union of their mesh axes."""
    return along(axes_of(leaves), leaves)


def one_by_one(fn: Callable, axis_size: int, in_batched: Any, *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)`, as a batch rule of a form: `lax.map`, a loop on the device."""
    leaves, tree = jax.tree.flatten(operands)
    marks = jax.tree.leaves(in_batched)
    lanes = [leaf if mark else None for leaf, mark in zip(leaves, marks, strict=True)]

    def one(lane):
        full = [x if own is None else own for x, own in zip(leaves, lane, strict=True)]
        return fn(*tree.unflatten(full), **static)

    return lax.map(one, lanes)


def lanes_second(axis_size: int, values: Any, marks: Any) -> list[Array]:
    """Arrays that a batch rule gets with their lanes in axis 1, repeated where not batched."""
    each = zip(values, marks, strict=True)
    lanes = [v if mark else jnp.broadcast_to(v, (axis_size, *v.shape)) for v, mark in each]
    return [jnp.moveaxis(v, 0, 1) for v in lanes]


def over_trailing(fn: Callable[[Array], Array], x: Array) -> Array:
    """`fn(x[:, k])` for every place k of the trailing axes of x: (r, ...) of (r,) results."""
    return fn(x) if x.ndim == 1 else jax.vmap(functools.partial(over_trailing, fn), 1, 1)(x)


def vmapped(fn: Callable, axis_size: int, in_batched: Any, *operands: Any, **static: Any) -> Any:
    """`fn(*operands, **static)` under JAX's own batching, as a batch rule of a form."""
    axes = jax.tree.map(lambda b: 0 if b else None, tuple(in_batched))
    return jax.vmap(functools.partial(fn, **static), axes, axis_size=axis_size)(*operands)


def _joined(join: Callable[..., Array]) -> Callable[[Array], Array]:
    """The identity; under vmap its result is `join` of all lanes, unbatched."""
    identity = custom_vmap(lambda value: value)
    identity.def_vmap(lambda size, in_batched, value: (identity(join(value, axis=0)), False))
    return identity


# A `while_loop` on `batch_any` of a flag runs until every lane is done, without a select of its
# whole state: the body must leave a finished lane as it is.
batch_any = _joined(jnp.any)

# A `switch` on `batch_max` of an index picks one capacity that serves every lane, where a batched
# index would turn into running all of its branches.
batch_max = _joined(jnp.max)


def _carried(step: Callable[[Any], Any], state: Any) -> Callable[[Any], Any]:
    """Casts the state of a loop: every array varies as some array of it, or of `step(state)`, does.
    A loop wants one type before and after a step, and the axes of what its functions capture are
    known only from their results. Outside of a `shard_map` nothing is traced or cast."""
    if not jax.sharding.get_abstract_mesh().manual_axes:
        return lambda state: state
    found = jax.make_jaxpr(step)(state).out_avals
    axes = axes_of(jax.tree.leaves(state)).union(*(v.manual_axis_type.varying for v in found))

    def cast(state):
        leaves, tree = jax.tree.flatten(state)
        return jax.tree.unflatten(tree, along(axes, leaves))

    return cast


def while_loop(going: Callable[[Any], Any], body: Callable[[Any], Any], state: Any) -> Any:
    """`lax.while_loop` of a state that may vary only by what `going` and `body` capture."""
    cast = _carried(lambda s: (going(s), body(s)), state)
    return lax.while_loop(going, lambda s: cast(body(s)), cast(state))


def fori_loop(
    low: Any, high: Any, body: Callable[[Any, Any], Any], state: Any, unroll: bool | None = None
) -> Any:
    """`lax.fori_loop` of a state that may vary only by what `body` captures."""
    cast = _carried(lambda s: body(jnp.int32(0), s), state)
    return lax.fori_loop(low, high, lambda k, s: cast(body(k, s)), cast(state), unroll=unroll)


def scan(
    body: Callable[[Any, Any], Any], state: Any, xs: Any = None, length: int | None = None
) -> Any:
    """`lax.scan` of a state that may vary only by `xs` and what `body` captures."""

    def steps(state):  # without a carry, whose type would have to fit
        return lax.scan(lambda _, x: ((), body(state, x)[0]), (), xs, length)[1]

    cast = _carried(steps, state)

    def fitted(state, x):
        state, y = body(state, x)
        return cast(state), y

    return lax.scan(fitted, cast(state), xs, length)


def linear_solve(
    matvec: Callable[[Array], Array],
    b: Array,
    solve: Callable[[Callable[[Array], Array], Array], Array],
    transpose_solve: Callable[[Callable[[Array], Array], Array], Array],
) -> Array:
    """`lax.custom_linear_solve` of a `b` that may vary only by what `matvec` captures."""
    return lax.custom_linear_solve(matvec, _carried(matvec, b)(b), solve, transpose_solve)


def while_going(
    body: Callable[[Any], Any], state: tuple[Any, ...], *, together: bool = False
) -> tuple[Any, ...]:
    """`lax.while_loop` of `body` for as long as the last element of the state, a bool, is True.

    In the loop it is an integer that the condition compares. A condition that computes nothing,
    `lambda s: s[1]`, is a trap on NVIDIA GPUs: in a command buffer XLA (read up to version 0.11.2
    of jaxlib) orders a loop after the kernels of its condition only, so that one without any
    starts before the state is written, and its results are wrong.

    Args:
        together: under vmap until every lane is done, as `batch_any` says.
    """

    def going(c):
        return batch_any(c[-1] > 0) if together else c[-1] > 0

    def counted(state):
        *rest, flag = state
        return (*rest, flag.astype(jnp.int32))

    end = while_loop(going, lambda c: counted(body((*c[:-1], c[-1] > 0))), counted(state))
    return (*end[:-1], end[-1] > 0)
