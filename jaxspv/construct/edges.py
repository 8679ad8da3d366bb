"""Edge lists: arguments checked; sorted and their duplicates combined, on the host and a device."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its modules are imported when they are first used
from jax import Array, lax

from .._core.eager.arrays import array_of, in_dtype, known, narrow, to_device, unmasked, zeros
from .._core.indices import INT32, LIMIT, checked_count, hypersparse, index_dtype_for, within
from .._core.operation import Operation
from .._core.platforms import situation
from ..algebra.monoids import Monoid
from ..formats import COO, SparseMatrix
from ..formats.base import slots_after
from ..formats.stored import Edges

ON_CPU = 1  # DLPack's kDLCPU
SMALL = 1 << 16  # keys that NumPy sorts in less time than importing scipy.sparse takes
SUMMED = ("float32", "float64", "int32", "int64")  # by NumPy as elsewhere


def check_shape(shape: Any) -> tuple[int, int]:
    """`shape` as a pair of Python integers. Raises TypeError: it is something else. ValueError: an
    extent is negative, or needs int64 indices without x64."""
    kinds = [type(s) for s in shape] if isinstance(shape, tuple) else []
    if len(kinds) != 2 or bool in kinds or not all(issubclass(k, (int, np.integer)) for k in kinds):
        raise TypeError(f"`shape` must be a pair of Python integers (m, n); got {shape!r}.")
    m, n = int(shape[0]), int(shape[1])
    if min(m, n) < 0:
        raise ValueError(f"`shape` must not be negative; got {shape}.")
    index_dtype_for(sizes=(m, n))
    return m, n


def checked_indices(name: str, values: Any) -> Any:
    """An array of integers, on the host where it was; TypeError for anything else."""
    values = unmasked(name, taken(values))
    array = known(values) if isinstance(values, (jax.Array, np.ndarray)) else np.asarray(values)
    if array.size == 0:
        return array.astype(np.int32)
    if not jnp.issubdtype(array.dtype, jnp.integer):
        names = array.dtype.kind in "USO" and name in ("senders", "receivers")
        hint = " Names of vertices: `jsp.io.from_table` numbers them." if names else ""
        raise TypeError(f"`{name}` must be integers; got {array.dtype}.{hint}")
    native = array.dtype.newbyteorder("=")  # JAX takes no other
    return array if array.dtype == native else array.astype(native)


def checked_values(values: Any, edges: int) -> Any:
    """One value an edge, ones for None; ValueError for another shape."""
    if values is None:
        return np.ones(edges, np.float32)
    values = unmasked("values", taken(values))
    if not isinstance(values, (jax.Array, np.ndarray)):
        try:
            values = np.asarray(values)
        except ValueError as error:
            raise ValueError(f"`values` must be one number an edge: {error}") from error
    if isinstance(values, np.ndarray):
        values = narrow(values)
    if values.ndim == 0:
        return jnp.broadcast_to(array_of("values", values), (edges,))
    if values.shape != (edges,):
        raise ValueError(f"`values` must have shape ({edges},); got {values.shape}.")
    return values


def values_in(dtype: Any, values: Any, what: str) -> np.ndarray:
    """Values of another library's matrix or graph in a dtype: see `in_dtype`; as booleans whether
    they are not 0."""
    values = np.asarray(values)
    if values.dtype.kind not in "biufc":  # objects, or texts
        if values.dtype == object and None in values.tolist():
            raise ValueError(f"{what} None, which is no number.")
        try:
            values = np.asarray(values, np.float64)
        except OverflowError as error:  # an integer of Python's beyond 1e308
            raise ValueError(f"{what} a number beyond float64; {error}.") from None
        except (TypeError, ValueError) as error:
            raise ValueError(f"{what} what is no number; {error}.") from None
    return values != 0 if np.dtype(dtype) == bool else narrow(in_dtype(what, values, dtype))


def checked_capacity(nse: int | None, count: Any, concrete: bool, limit: int) -> int:
    """`nse`, or the count where it is known, or the limit; ValueError where it is too small."""
    nse = checked_count("nse", nse, 0)
    if nse is None:
        return int(count) if concrete else limit
    if concrete and int(count) > nse:
        raise ValueError(f"`nse` must be at least {int(count)} to hold the entries; got {nse}.")
    return nse


def taken(values: Any) -> Any:
    """Arrays of other libraries (PyTorch, CuPy) by DLPack, on a CPU without a copy; else as is."""
    if isinstance(values, (jax.Array, np.ndarray)) or not hasattr(values, "__dlpack__"):
        return values
    if values.__dlpack_device__()[0] == ON_CPU:
        with contextlib.suppress(BufferError, RuntimeError):  # a dtype that NumPy lacks
            return np.from_dlpack(values)
    return jnp.from_dlpack(values)


def unique_host(row: Any, col: Any, shape: tuple[int, int], dtype: Any = INT32):
    """Sorted distinct pairs, the slot of each edge, their number: two counting sorts in SciPy."""
    row, col = np.asarray(row, dtype), np.asarray(col, dtype)
    if row.size == 0:
        return row, col, row, 0
    ascending = (row[1:] > row[:-1]) | ((row[1:] == row[:-1]) & (col[1:] > col[:-1]))
    if bool(ascending.all()):
        return row, col, np.arange(row.size, dtype=dtype), row.size
    if max(*shape, row.size) >= LIMIT or hypersparse(max(shape), row.size):
        order = np.lexsort((col, row))
    else:
        order = counting_argsort(col, shape[1])
        order = order[counting_argsort(row[order], shape[0])]
    row, col = row[order], col[order]
    fresh = np.append(True, (row[1:] != row[:-1]) | (col[1:] != col[:-1]))
    slots = np.empty(row.size, dtype)
    slots[order] = np.cumsum(fresh, dtype=dtype) - 1
    return row[fresh], col[fresh], slots, int(slots.max()) + 1


def joined_host(dup: Monoid, data: Any, slots: Any, count: int, capacity: int) -> Any:
    """`dup.segment_reduce` of `data` at `slots`, of which `count` are distinct; None: not here."""
    if count == data.shape[0]:
        joined = zeros((capacity,), data.dtype)
        joined[slots] = data
    elif data.dtype.name not in SUMMED or dup.atomic(data.dtype) != "add":
        return None
    elif data.dtype.kind == "f":  # in float64, rounded once
        joined = np.bincount(slots, data, capacity + 1)[:capacity].astype(data.dtype)
    else:
        joined = np.zeros(capacity + 1, data.dtype)
        np.add.at(joined, slots, data)
        joined = joined[:capacity]
    return joined


def counting_argsort(keys: np.ndarray, extent: int) -> np.ndarray:
    """The stable order of `keys` in [0, extent): O(keys + extent), on the host.

    The transposition of the matrix with entry (e, keys[e]) for every e is a counting sort.
    """
    if keys.size < SMALL:
        return np.argsort(keys, kind="stable").astype(np.int32)
    edges = np.arange(keys.size + 1, dtype=np.int32)
    one_a_row = scipy.sparse.csr_array(
        (np.ones(keys.size, np.int8), keys.astype(np.int32, copy=False), edges),
        shape=(keys.size, extent),
    )
    return one_a_row.tocsc().indices


@functools.partial(jax.jit, static_argnames=("shape", "dtype"))
def unique_traced(row: Any, col: Any, shape: tuple[int, int], dtype: Any = INT32):
    """The same by XLA sorts; edges out of range get a slot past every other."""
    m, n = shape
    edges = row.shape[0]
    if edges == 0:
        row, col = jnp.asarray(row, dtype), jnp.asarray(col, dtype)
        return row, col, row, jnp.zeros((), dtype)
    row, col = within(row, m, dtype), within(col, n, dtype)
    inside = (row < m) & (col < n)
    row, col = jnp.where(inside, row, m), jnp.where(inside, col, n)
    row, col, order = sort_pairs(row, col)
    fresh = jnp.append(True, (row[1:] != row[:-1]) | (col[1:] != col[:-1])) & (row < m)
    slot = jnp.where(row < m, jnp.cumsum(fresh, dtype=dtype) - 1, edges)
    slots = jnp.zeros(edges, dtype).at[order].set(slot, unique_indices=True)
    target = jnp.where(fresh, slot, edges)
    distinct_row = jnp.full(edges, m, dtype).at[target].set(row, mode="drop")
    distinct_col = jnp.full(edges, n, dtype).at[target].set(col, mode="drop")
    return distinct_row, distinct_col, slots, jnp.sum(fresh, dtype=dtype)


def sort_in_one_pass(row: Array, col: Array) -> tuple[Array, Array, Array]:
    """Pairs sorted by row, then column, and the stable order that sorts them."""
    row, col, order = lax.sort((row, col, _places(row)), num_keys=2, is_stable=True)
    return row, col, order


def sort_in_two_passes(row: Array, col: Array) -> tuple[Array, Array, Array]:
    """The same by column, then stably by row: XLA takes CUB's radix sort for one key, one value."""
    col, order = lax.sort((col, _places(col)), num_keys=1, is_stable=True)
    row, second = lax.sort((row[order], _places(row)), num_keys=1, is_stable=True)
    return row, col[second], order[second]


sort_pairs = Operation("sort of pairs", internal=True)


@sort_pairs.register("radix")
def _sorted(row: Array, col: Array) -> tuple[Array, Array, Array]:
    """Pairs sorted by row, then column, and the stable order; a GPU is faster in two passes."""
    on_gpu = situation().platforms == {"cuda"}
    return (sort_in_two_passes if on_gpu else sort_in_one_pass)(row, col)


def by_rows(slots: Any, count: Any) -> bool:
    """Whether concrete edges are listed as COO and CSR list their slots, each once."""
    if int(count) != slots.shape[0]:
        return False
    xp = np if isinstance(slots, np.ndarray) else jnp
    return bool((slots == xp.arange(slots.shape[0])).all())


def noted(A: SparseMatrix, coo: COO, slots: Any, count: Any) -> SparseMatrix:
    """`A`, made of the sorted `coo`, with the note of its edges, which are at `slots` of `coo`."""
    number, source = slots.shape[0], None if A.format in ("csr", "coo") else coo
    made = functools.partial(moved, type(A), source, slots)
    if (listed := by_rows(slots, count)) and source is None:
        made = functools.partial(jnp.arange, number, dtype=A.index_dtype)
    edges = Edges(number, listed, made)
    return dataclasses.replace(A, edges=edges)  # pyright: ignore[reportArgumentType]


def moved(kind: type[SparseMatrix], coo: COO | None, slots: Any) -> Array:
    """Slots of the sorted `coo` as slots of the matrix of this kind made of it, `nse` past its end.

    None: of a kind that keeps the slots.
    """
    slots = to_device(slots)
    return slots if coo is None or kind.format in ("csr", "coo") else slots_after(coo, kind, slots)


def _places(x: Array) -> Array:
    return jnp.arange(x.shape[0], dtype=index_dtype_for(sizes=(x.shape[0],)))
