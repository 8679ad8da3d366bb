"""The path to a vertex, from the parents of a search."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..._core.pytree import is_concrete
from .names import refuse_names


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
