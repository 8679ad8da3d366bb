"""Random operands of fixed capacity as arrays of NumPy, so that a program serves every draw."""

from __future__ import annotations

from typing import Any

import numpy as np

import jaxspv as jsp

Part = tuple[np.ndarray, np.ndarray]  # values, which places are stored
LAYOUTS = ("sorted", "padded", "unsorted", "duplicates")
SPARE = 3  # slots of padding, but in the layout "sorted"
FALSE = np.asarray(False)


def part_of(rng: np.random.Generator, shape: tuple[int, ...], dtype: str, layout: str) -> Part:
    """A random part of a shape; "sorted": of as many entries as half of the places, whichever."""
    size = int(np.prod(shape))
    values = rng.integers(-3, 4, shape).astype(dtype)
    if layout == "sorted":
        valid = np.zeros(size, bool)
        valid[rng.permutation(size)[: -(-size // 2)]] = True
        valid = valid.reshape(shape)
    else:
        valid = rng.random(shape) < rng.choice([0.0, 0.1, 0.5, 1.0])
    return np.where(valid, values, np.zeros((), dtype)), valid


def _slots(rng, index: list[np.ndarray], values: np.ndarray, layout: str, size: int):
    """Entries in a layout, padded to its capacity; "duplicates": every value in two halves."""
    capacity = {"sorted": -(-size // 2), "duplicates": 2 * size + SPARE}.get(layout, size + SPARE)
    if layout == "duplicates":
        first = rng.integers(-3, 4, values.shape).astype(values.dtype)
        index = [np.concatenate([i, i]) for i in index]
        values = np.concatenate([first, values - first])
    if layout in ("unsorted", "duplicates"):
        order = rng.permutation(values.size)
        index, values = [i[order] for i in index], values[order]
    return index, values, capacity


def _padded(array: np.ndarray, capacity: int, fill: Any) -> np.ndarray:
    out = np.full(capacity, fill, array.dtype)
    out[: array.size] = array
    return out


def vector(rng: np.random.Generator, part: Part, layout: str) -> jsp.SparseVector:
    """A `SparseVector` of a part."""
    n = part[0].size
    (index,), values, capacity = _slots(rng, [np.flatnonzero(part[1])], part[0][part[1]], layout, n)
    return jsp.SparseVector(
        _padded(values, capacity, np.asarray(99).astype(values.dtype)),  # pyright: ignore
        _padded(index.astype(np.int32), capacity, n),  # pyright: ignore
        np.asarray(values.size, np.int32),  # pyright: ignore
        FALSE,  # pyright: ignore
        (n,),
        layout in ("sorted", "padded"),
        layout != "duplicates",
    )


def triplets(rng: np.random.Generator, part: Part, layout: str) -> jsp.COO:
    """A `COO` of a part."""
    m, n = part[0].shape
    (row, col), values, capacity = _slots(
        rng, list(np.nonzero(part[1])), part[0][part[1]], layout, m * n
    )
    return jsp.COO(
        _padded(values, capacity, np.asarray(99).astype(values.dtype)),  # pyright: ignore
        _padded(row.astype(np.int32), capacity, m),  # pyright: ignore
        _padded(col.astype(np.int32), capacity, n),  # pyright: ignore
        FALSE,  # pyright: ignore
        (m, n),
        layout in ("sorted", "padded"),
        layout != "duplicates",
    )


def compressed(rng: np.random.Generator, part: Part, layout: str, kind: type) -> Any:
    """A CSR or CSC of a part as made by hand: its rows (columns) as the layout lists them."""
    coo, axis = triplets(rng, part, layout), int(kind is jsp.CSC)
    major, minor = ((coo.row, coo.col), (coo.col, coo.row))[axis]
    order = np.argsort(major, kind="stable")
    bounds = np.arange(part[0].shape[axis] + 1)
    indptr = np.searchsorted(np.asarray(major)[order], bounds).astype(np.int32)
    arrays = np.asarray(coo.data)[order], np.asarray(minor)[order], indptr, FALSE
    return kind(*arrays, coo.shape, coo.sorted, coo.unique)
