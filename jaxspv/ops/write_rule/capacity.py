"""The capacity of eager results: a bucket, chosen by what is known before or after the program."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from jax import Array

from ..._core.eager.arrays import on_accelerator
from ..._core.indices import eager_capacity
from ..._core.pytree import is_concrete
from ...formats.stored import Stored, in_slots

SMALL = 1 << 16  # slots that are padded and cut on the host


def with_least_capacity(x: Any) -> Any:
    """A concrete vector in the least capacity of eager results or more: one program for all."""
    if not isinstance(x, Stored) or x.ndim != 1:
        return x
    capacity = eager_capacity(0, *x.shape)
    return x if x.nse >= capacity or on_accelerator(x.data) else resized(x, capacity)


def with_capacity(
    result: Any, nse: int | None, keeps: bool = False, on_host: bool = False
) -> tuple[Any, Array | None]:
    """The result in the capacity in which it leaves the program, and the number of its entries.

    Capacity: `nse` if given, else unchanged if `keeps`, else the bucket of the upper bound; a small
    one `on_host` is left to `settled`: there a program is compiled longer than it runs. The count
    is None if it is not used, or if the host can read it from the result.
    """
    if not isinstance(result, Stored):
        return result, None
    found: Any = result
    read = on_host and found.ndim == 2 and found.compressed is not None
    count = None if read else found.count
    if nse is not None:
        return resized(found, nse), count
    if keeps:
        return found, None
    capacity = eager_capacity(found.nse, math.prod(found.shape))
    if on_host:
        return found if capacity <= SMALL else resized(found, capacity), count
    least = eager_capacity(0, math.prod(found.shape))
    return resized(found, capacity), count if capacity > least else None


def settled(result: Any, nse: int | None, count: int | None = None) -> Any:
    """An eager result in its final capacity: `nse`, or the bucket of its number of entries.

    count: that number, if known; else it is read from the result. Raises ValueError: `nse` entries
    are too few; says the size needed.
    """
    if not isinstance(result, Stored) or not is_concrete(result):
        return result
    total = _counted(result) if count is None else count
    if nse is not None and total > nse:
        raise ValueError(f"`nse` must be at least {total} to hold the result; got {nse}.")
    capacity = eager_capacity(total, math.prod(result.shape)) if nse is None else nse
    return result.in_capacity(capacity) if capacity < result.nse else resized(result, capacity)


def _counted(x: Any) -> int:
    """`int(x.count)`; of a compressed matrix on the host by NumPy, without a program."""
    if x.ndim == 2 and x.compressed is not None and not on_accelerator(x.indptr):
        return int(np.asarray(x.indptr)[-1])
    return int(x.count)


def finished(result: Any, count: Array | None, nse: int | None) -> Any:
    """The result of an eager program, as `with_capacity` gives it, in its final capacity.

    That is the bucket of its count (`eager_capacity`): a small bucket that holds every possible
    result is left without reading the count, a larger one is cut after reading it. Raises
    ValueError: `nse` entries are too few; says the size needed.
    """
    return result if count is None else settled(result, nse, int(count))


def resized(x: Any, nse: int) -> Any:
    """A COO, CSR, CSC or SparseVector in another capacity; entries beyond it are cut. Traceable."""
    if x.nse == nse:
        return x
    on_host = is_concrete(x) and not on_accelerator(x.data)  # NumPy has no program for each size

    def fit(array, fill):
        return in_slots(np.asarray(array) if on_host else array, nse, fill)

    new: dict[str, Any] = {"data": fit(x.data, 0)}
    if hasattr(x, "row"):
        new |= {"row": fit(x.row, x.shape[0]), "col": fit(x.col, x.shape[1])}
    else:
        extent = x.shape[0] if getattr(x, "format", "csc") == "csc" else x.shape[1]
        new["indices"] = fit(x.indices, extent)
    return dataclasses.replace(x, **new)
