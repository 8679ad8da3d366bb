"""Arguments of algorithms: vertices, errors for their names, single numbers; paths from parents."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.eager.arrays import array_of
from ..._core.indices import within
from ..._core.pytree import is_concrete
from ...construct.edges import checked_indices

_F = TypeVar("_F", bound=Callable[..., Any])


def refuse_names(argument: str, value: Any) -> None:
    """Raises an error if a vertex is given by its name."""
    if isinstance(value, np.ndarray):
        listed = value.ravel()[:1].tolist() if value.dtype.kind in "USO" else []
    else:
        listed = value if isinstance(value, (list, tuple)) else [value]
    name = next((name for name in listed if isinstance(name, (str, bytes))), None)
    if name is not None:
        raise TypeError(
            f"`{argument}` must be an integer vertex; got {name!r}. The labels of a graph give the "
            f"vertex of a name: labels.vertex({name!r})."
        )


def elsewhere(**here: str) -> Callable[[_F], _F]:
    """Decorator: an argument named as in other libraries raises an error with jaxspv's name."""

    def decorate(fn: _F) -> _F:
        @functools.wraps(fn)
        def call(*args, **kwargs):
            if not here.keys().isdisjoint(kwargs):
                name = next(name for name in kwargs if name in here)
                raise TypeError(
                    f"{fn.__name__}() has no argument `{name}`: it is called `{here[name]}` here."
                )
            return fn(*args, **kwargs)

        return cast(_F, call)

    return decorate


def check_source(source: Any, n: int, argument: str = "source") -> Any:
    """`source` as int32, out-of-range values mapped to n (nothing is reached from there).

    argument: what errors call it.

    Raises:
        TypeError: it is not an integer or an array of them.
        ValueError: a concrete value is out of [0, n), or the array has more than one axis.
    """
    if type(source) is int and 0 <= source < n:  # most eager calls
        return np.asarray(source, np.int32)
    refuse_names(argument, source)
    concrete = is_concrete(source)
    array = array_of(argument, source, on_host=concrete)
    if isinstance(source, (list, tuple)) and array.size == 0:
        array = array.astype(np.int32)  # NumPy makes floats of no numbers
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise TypeError(f"`{argument}` must be an integer vertex; got dtype {array.dtype}.")
    if array.ndim > 1:
        raise ValueError(f"`{argument}` must be a vertex or 1-D array of them; got {array.shape}.")
    if concrete:
        wrong = array[(array < 0) | (array >= n)]
        if wrong.size:
            raise ValueError(f"`{argument}` must lie in [0, {n}); got {wrong.ravel()[0]}.")
        return array.astype(np.int32)
    return within(array, n)


def check_vertex(vertex: Any, n: int, argument: str) -> Any:
    """`check_source` of one vertex."""
    vertex = check_source(vertex, n, argument)
    if vertex.ndim:
        raise ValueError(f"`{argument}` must be one vertex; got shape {vertex.shape}.")
    return vertex


def vertex_labels(labels: Any, n: int) -> jax.Array:
    """`labels` as int32, those outside of [0, n) mapped to n."""
    labels = checked_indices("labels", labels)
    if labels.shape != (n,):
        raise ValueError(f"`labels` must have shape ({n},); got {labels.shape}.")
    if isinstance(labels, np.ndarray):  # JAX would cut 2^32 + 1 to 1
        wide = labels.astype(np.int64)
        labels = np.where((wide >= 0) & (wide < n), wide, n).astype(np.int32)
    return within(labels, n)


def over(source: Any, one: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`one`, a function of a vertex, mapped over the leading axis of `source` if it has one."""
    return one if source.ndim == 0 else jax.vmap(one)


def path_to(parents: Any, target: Any) -> np.ndarray:
    """(edges + 1,) int32 vertices from the source to `target`; empty where it is unreached.

    Raises:
        TypeError: `target` is no integer.
        ValueError: there are no parents, they are traced or of several sources, or `target` is out
            of range.
    """
    if parents is None:
        raise ValueError("`path_to` needs parents: search with `parents=True`.")
    refuse_names("target", target)
    if not is_concrete(parents, target):
        raise ValueError("`path_to` needs concrete values: call it outside of jit.")
    if np.ndim(target) or not np.issubdtype(np.asarray(target).dtype, np.integer):
        raise TypeError(f"`target` must be an integer vertex; got {target!r}.")
    parents = np.asarray(parents)
    if parents.ndim != 1:
        raise ValueError(f"`path_to` is of one source; parents have shape {parents.shape}.")
    n, at = parents.shape[0], int(target)
    if not 0 <= at < n:
        raise ValueError(f"`target` must lie in [0, {n}); got {at}.")
    if parents[at] < 0:
        return np.zeros(0, np.int32)
    path = [at]
    while parents[at] != at:
        at = int(parents[at])
        path.append(at)
        if len(path) > n:
            raise ValueError("`parents` are no tree: they lead around a cycle.")
    return np.array(path[::-1], np.int32)
