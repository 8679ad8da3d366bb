"""Seven types of sparsity of any shape and density: inputs of experiments on storage formats.

Each function has the signature `f(key, shape, sparsity=0.95, *, format="csr")`: `shape` is (m, n) or
one number for a square matrix, `sparsity` the share of missing entries, kept to within one entry
(`block`: one block). `key` is a `jax.random.key` or a `numpy.random.Generator`. Values are uniform
in (0, 1], float32. Drawn on the host, O(entries) expected.

The names and descriptions are those of the report "GraphBLAS on GPU" (see `REPORT`), section "Types
of Sparse Matrices"; the constructions are this module's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ._edges import unique_host
from ._random import distinct, random_generator
from .construct import check_shape
from .formats import COO, FORMATS

SPARSITY_TYPES: dict[str, Callable[..., Any]] = {}  # filled by `_sparsity_type`

Pattern = Callable[[np.random.Generator, int, int, int], tuple[np.ndarray, np.ndarray]]


def _sparsity_type(pattern: Pattern) -> Callable[..., Any]:
    """Makes a generator of `pattern(rng, m, n, entries) -> row, col` and enters it by its name."""

    def generate(key: Any, shape: Any, sparsity: float = 0.95, *, format: str = "csr") -> Any:
        m, n = check_shape((shape, shape) if isinstance(shape, (int, np.integer)) else shape)
        if not 0 <= sparsity <= 1:
            raise ValueError(f"`sparsity` must lie in [0, 1]; got {sparsity}.")
        if format not in FORMATS:
            raise ValueError(f"`format` must be one of {sorted(FORMATS)}; got {format!r}.")
        entries = round((1 - sparsity) * m * n)
        if entries >= 2**31 - 1:
            raise ValueError(f"{entries} entries need int64 indices: raise `sparsity`.")
        rng = random_generator(key)
        row, col, _, count = unique_host(*pattern(rng, m, n, entries), (m, n))
        data = jnp.asarray(1 - rng.random(count, np.float32))
        coo = COO(data, jnp.asarray(row), jnp.asarray(col), jnp.asarray(False), (m, n))
        return coo if format == "coo" else FORMATS[format].from_coo(coo)

    functools.update_wrapper(generate, pattern)
    del generate.__wrapped__  # the signature is that of `generate`
    SPARSITY_TYPES[pattern.__name__] = generate
    return generate


@_sparsity_type
def random(rng, m, n, entries):
    """Entries at distinct random places: row lengths vary as those of random draws.

    >>> random(jax.random.key(0), (3, 5), 0.8)
    CSR(float32[3], shape=(3, 5))
    """
    place = distinct(rng, m * n, entries)
    return place // max(n, 1), place % max(n, 1)


@_sparsity_type
def uniform(rng, m, n, entries):
    """Rows of one length, to within one entry, at random columns."""
    return _strips(rng, _shares(entries, m), np.full(m, n))


@_sparsity_type
def diagonal(rng, m, n, entries):
    """Whole diagonals, the nearest to the main one first; the last one holds evenly spaced ones."""
    rows, columns = [], []
    for k in range(m + n - 1):
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


@_sparsity_type
def power_law(rng, m, n, entries):
    """Row lengths that fall as `1 / rank`, at most n, in random order; random columns."""
    weight = 1 / np.arange(1, m + 1)
    low, high = 0.0, float(entries + 1) * m * n
    while high - low > 1e-9 * high:  # the factor at which the capped lengths sum to the entries
        middle = (low + high) / 2
        low, high = (low, middle) if np.minimum(n, middle * weight).sum() > entries else (middle, high)
    ideal = np.minimum(n, low * weight)
    lengths = ideal.astype(np.int64)
    short = entries - int(lengths.sum())
    lengths[np.argsort(lengths - ideal, kind="stable")[:short]] += 1  # largest remainders first
    return _strips(rng, rng.permutation(lengths), np.full(m, n))


@_sparsity_type
def block(rng, m, n, entries):
    """Dense aligned 8-by-8 blocks at random places, cut at the border; the number is rounded."""
    side = 8
    across = -(-n // side)
    total = -(-m // side) * across
    blocks = distinct(rng, total, min(total, round(entries / side**2)))
    inner = np.arange(side**2)
    row = (blocks // max(across, 1))[:, None] * side + inner // side
    col = (blocks % max(across, 1))[:, None] * side + inner % side
    inside = (row < m) & (col < n)
    return row[inside], col[inside]


@_sparsity_type
def arrow_head(rng, m, n, entries):
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


@_sparsity_type
def triangular(rng, m, n, entries):
    """Lower triangular: row i has entries in proportion to i + 1, at random columns up to i.

    Raises ValueError where the triangle has too few places for the sparsity.
    """
    width = np.minimum(np.arange(1, m + 1), n)
    places = np.concatenate([[0], np.cumsum(width)])
    if entries > places[-1]:
        least = 1 - places[-1] / (m * n)
        raise ValueError(f"`sparsity` must be at least {least:.6g} below the diagonal.")
    return _strips(rng, np.diff(places * entries // max(int(places[-1]), 1)), width)


def _shares(entries: int, m: int) -> np.ndarray:
    """(m,) numbers of sum `entries` that differ by at most one."""
    return np.diff(np.arange(m + 1) * entries // max(m, 1))


def _spread(k: int, extent: int) -> np.ndarray:
    """k distinct integers of [0, extent), evenly spaced."""
    return np.arange(k, dtype=np.int64) * extent // max(k, 1)


def _strips(rng, lengths, width):
    """`lengths[i]` distinct ascending columns below `width[i]` in row i: one in each equal strip."""
    row = np.repeat(np.arange(len(lengths)), lengths)
    first = np.repeat(np.cumsum(lengths) - lengths, lengths)
    j, k, w = np.arange(len(row)) - first, lengths[row], width[row]
    low, high = j * w // k, (j + 1) * w // k
    return row, low + (rng.random(len(row)) * (high - low)).astype(np.int64)
