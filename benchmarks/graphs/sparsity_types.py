"""Seven types of sparsity of any shape and density: inputs of experiments on storage formats.

The names and descriptions are those of the report "GraphBLAS on GPU", section "Types of Sparse
Matrices"; the constructions are this module's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from jaxspv.construct.edges import check_shape, unique_host
from jaxspv.construct.from_arrays import as_format
from jaxspv.formats import COO, FORMATS
from jaxspv.generators.graphs import distinct, random_generator

if TYPE_CHECKING:
    from jaxspv.shapes import Key


def sparsity(
    key: Key, kind: str, n: int | tuple[int, int], density: float = 0.05, *, format: str = "csr"
) -> Any:
    """A random matrix whose entries lie as `kind` says; values uniform in (0, 1], float32 (host).

    Args:
        key: `jax.random.key`.
        kind: one of `SPARSITY_TYPES`:
            "random": distinct places of the whole matrix;
            "uniform": rows of one length, to within one entry;
            "diagonal": whole diagonals, the nearest to the main one first;
            "power_law": row lengths that fall as 1 / rank, in random order;
            "block": dense 8-by-8 blocks;
            "arrow_head": the main diagonal, then whole first rows and columns;
            "triangular": lower triangular, row lengths in proportion to the row's number.
        n: number of rows and of columns, or a pair of them.
        density: share of places that hold an entry, kept to within one entry ("block": one block).
        format: name of the format.

    Raises:
        ValueError: `kind` is unknown, `density` out of [0, 1] or beyond what the kind has places
            for, or `key` is no key.

    Cost: O(entries) expected.

    >>> import jax
    >>> sparsity(jax.random.key(0), "diagonal", 4, 0.25).todense().astype(bool).diagonal().tolist()
    [True, True, True, True]
    """
    if kind not in _PATTERNS:
        raise ValueError(f"`kind` must be one of {', '.join(SPARSITY_TYPES)}; got {kind!r}.")
    rows, cols = check_shape((n, n) if isinstance(n, (int, np.integer)) else n)
    if not 0 <= density <= 1:
        raise ValueError(f"`density` must lie in [0, 1]; got {density}.")
    if format not in FORMATS:
        raise ValueError(f"`format` must be one of {sorted(FORMATS)}; got {format!r}.")
    entries = round(density * rows * cols)
    if entries >= 2**31 - 1:
        raise ValueError(f"{entries} entries need int64 indices: lower `density`.")
    rng = random_generator(key)
    row, col, _, count = unique_host(*_PATTERNS[kind](rng, rows, cols, entries), (rows, cols))
    data = jnp.asarray(1 - rng.random(count, np.float32))
    coo = COO(data, jnp.asarray(row), jnp.asarray(col), jnp.asarray(False), (rows, cols))
    return as_format(coo, format)


# ---- Patterns: `pattern(rng, m, n, entries) -> row, col`, distinct places in any order ----


def _random(rng, m, n, entries):
    """Distinct random places: row lengths vary as those of random draws."""
    place = distinct(rng, m * n, entries)
    return place // max(n, 1), place % max(n, 1)


def _uniform(rng, m, n, entries):
    """Rows of one length, to within one entry, at random columns."""
    return _strips(rng, _shares(entries, m), np.full(m, n))


def _diagonal(rng, m, n, entries):
    """Whole diagonals, the nearest to the main one first; the last one holds evenly spaced ones."""
    rows, columns = [], []
    for k in range(2 * max(m, n)):
        offset = (k + 1) // 2 if k % 2 else -(k // 2)  # 0, 1, -1, 2, -2, ...
        first, last = max(0, -offset), min(m, n - offset)
        if last <= first:
            continue
        i = first + _spread(min(entries, last - first), last - first)
        rows.append(i)
        columns.append(i + offset)
        entries -= len(i)
        if not entries:
            break
    empty = np.zeros(0, np.int64)
    return np.concatenate([empty, *rows]), np.concatenate([empty, *columns])


def _power_law(rng, m, n, entries):
    """Row lengths that fall as `1 / rank`, at most n, in random order; random columns."""
    weight = 1 / np.arange(1, m + 1)
    low, high = 0.0, float(entries + 1) * m * n
    for _ in range(100):  # halves in on the factor at which the capped lengths sum to the entries
        middle = (low + high) / 2
        above = np.minimum(n, middle * weight).sum() > entries
        low, high = (low, middle) if above else (middle, high)
    ideal = np.minimum(n, low * weight)
    lengths = ideal.astype(np.int64)
    short = entries - int(lengths.sum())
    lengths[np.argsort(lengths - ideal, kind="stable")[:short]] += 1  # largest remainders first
    return _strips(rng, rng.permutation(lengths), np.full(m, n))


def _block(rng, m, n, entries):
    """Dense aligned 8-by-8 blocks at random places, cut at the border; to within one block."""
    side = 8
    down, across = -(-m // side), -(-n // side)
    # So many that those not cut by the border suffice, or all of them.
    enough = min(down * across, round(entries / side**2) + down + across)
    i, j = np.divmod(distinct(rng, down * across, enough), max(across, 1))
    places = np.cumsum(np.minimum(side, m - side * i) * np.minimum(side, n - side * j))
    kept = np.argmin(np.abs(np.append(0, places) - entries))
    inner = np.arange(side**2)
    row = i[:kept, None] * side + inner // side
    col = j[:kept, None] * side + inner % side
    inside = (row < m) & (col < n)
    return row[inside], col[inside]


def _arrow_head(rng, m, n, entries):
    """The main diagonal, then whole first rows and columns in turn; the last one evenly spaced."""
    i = _spread(min(entries, min(m, n)), min(m, n))
    rows, columns = [i], [i]
    entries -= len(i)
    for k in range(min(m, n)):
        if not entries:
            break
        along = k + 1 + _spread(min(entries, n - k - 1), n - k - 1)
        entries -= len(along)
        down = k + 1 + _spread(min(entries, m - k - 1), m - k - 1)
        entries -= len(down)
        rows += [np.full(len(along), k), down]
        columns += [along, np.full(len(down), k)]
    return np.concatenate(rows), np.concatenate(columns)


def _triangular(rng, m, n, entries):
    """Lower triangular: row i has entries in proportion to i + 1, at random columns up to i.

    Raises ValueError where the triangle has too few places for the entries.
    """
    width = np.minimum(np.arange(1, m + 1), n)
    places = np.concatenate([[0], np.cumsum(width)])
    if entries > places[-1]:
        most = places[-1] / (m * n)
        raise ValueError(f"`density` of a triangular matrix must be at most {most:.6g}.")
    return _strips(rng, np.diff(places * entries // max(int(places[-1]), 1)), width)


def _shares(entries: int, m: int) -> np.ndarray:
    """(m,) numbers of sum `entries` that differ by at most one."""
    return np.diff(np.arange(m + 1) * entries // max(m, 1))


def _spread(k: int, extent: int) -> np.ndarray:
    """k distinct integers of [0, extent), evenly spaced."""
    return np.arange(k, dtype=np.int64) * extent // max(k, 1)


def _strips(rng, lengths, width):
    """`lengths[i]` distinct ascending columns below `width[i]` in row i, one to a strip."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    j, k, w = np.arange(len(row)) - first, lengths[row], width[row]
    low, high = j * w // k, (j + 1) * w // k
    return row, low + (rng.random(len(row)) * (high - low)).astype(np.int64)


_PATTERNS: dict[str, Callable[..., tuple[np.ndarray, np.ndarray]]] = {
    "random": _random,
    "uniform": _uniform,
    "diagonal": _diagonal,
    "power_law": _power_law,
    "block": _block,
    "arrow_head": _arrow_head,
    "triangular": _triangular,
}
SPARSITY_TYPES = tuple(_PATTERNS)
