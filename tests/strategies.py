"""Inputs for tests: dtypes, values with extremes, named small matrices, hypothesis strategies."""

import contextlib
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import strategies as st

NARROW = tuple(
    np.dtype(d)
    for d in (bool, np.int8, np.uint8, np.int32, np.uint32, np.float16, jnp.bfloat16, np.float32)
)
WIDE = tuple(np.dtype(d) for d in (np.int64, np.uint64, np.float64))
DTYPES = NARROW + WIDE


def precision(dtype):
    """A context in which JAX holds `dtype`: x64 for 64-bit numbers, nothing otherwise."""
    wide = np.dtype(dtype).itemsize == 8 and np.dtype(dtype) != np.complex64
    return jax.enable_x64() if wide else contextlib.nullcontext()


def is_float(dtype):
    return jnp.issubdtype(dtype, jnp.floating)


def bounds(dtype):
    """The smallest and the largest number of a dtype, infinities included."""
    if np.dtype(dtype).kind == "b":
        return False, True
    if is_float(dtype):
        return -np.inf, np.inf
    return np.iinfo(dtype).min, np.iinfo(dtype).max


def samples(dtype, low, high, count=16, seed=0):
    """`count` values of the closed interval: its ends, their neighbours, small and random numbers.

    The number of values is fixed, so that one compilation serves every interval. No NaN.
    """
    dtype, rng = np.dtype(dtype), np.random.default_rng(seed)
    if is_float(dtype):
        info = jnp.finfo(dtype)
        top, tiny, root = float(info.max), float(info.smallest_normal), float(info.max) ** 0.5
        special = [low, high, 0, 1, -1, 2, 0.5, tiny, -tiny, top, -top, root / 2, -root / 2]
        inner = np.clip([low, high], -8, 8)
        random = rng.uniform(*inner, 4 * count) if inner[0] < inner[1] else np.full(4, inner[0])
    else:
        low, high = int(low), int(high)
        special = [low, high, low + 1, high - 1, 0, 1, -1, 2, 3]
        random = [int(v * (high - low)) + low for v in rng.random(count)]
    kept = dict.fromkeys(v for v in [*special, *random] if low <= v <= high)
    return np.resize(np.array([*kept][:count], dtype), count)


def garbage(dtype):
    """What padding may hold: NaN, or an extreme where there is none."""
    return np.array(np.nan if is_float(dtype) else bounds(dtype)[1], dtype)


class Triplets(NamedTuple):
    """A matrix as a list of entries in any order, distinct places, and spare slots."""

    row: np.ndarray
    col: np.ndarray
    data: np.ndarray
    shape: tuple[int, int]
    spare: int = 0

    @property
    def dense(self):
        """(values, stored): 0 where nothing is stored."""
        values, stored = np.zeros(self.shape, self.data.dtype), np.zeros(self.shape, bool)
        values[self.row, self.col] = self.data
        stored[self.row, self.col] = True
        return values, stored


def _triplets(cells, shape, spare=0, data=None):
    row, col = (np.array([c[k] for c in cells], np.int32) for k in (0, 1))
    values = np.arange(1, len(cells) + 1) if data is None else data
    return Triplets(row, col, np.asarray(values, np.float32), shape, spare)


_RNG = np.random.default_rng(7)
PROBLEMS = {
    "no entries": _triplets([], (3, 4)),
    "no entries but room": _triplets([], (3, 4), 5),
    "no rows": _triplets([], (0, 3)),
    "no columns": _triplets([], (3, 0), 2),
    "nothing at all": _triplets([], (0, 0)),
    "one entry": _triplets([(0, 0)], (1, 1)),
    "empty rows and columns": _triplets([(4, 0), (1, 5), (1, 0)], (6, 8), 4),
    "self loops": _triplets([(2, 2), (0, 0), (0, 1)], (3, 3)),
    "one row full": _triplets([(1, j) for j in range(7)], (3, 7), 1),
    "one column full": _triplets([(i, 2) for i in range(7)], (7, 3), 1),
    "explicit zeros": _triplets([(0, 1), (1, 0), (1, 2)], (2, 3), 2, [0, 5, -0.0]),
    "infinities": _triplets([(0, 0), (0, 1), (2, 1)], (3, 2), 1, [np.inf, -np.inf, 1]),
    "shuffled": _triplets([divmod(int(c), 9) for c in _RNG.permutation(63)[:25]], (7, 9), 3),
}


@st.composite
def triplets(draw, shape=(6, 8), dtype=np.float32, most=20, spare=0):
    """Random `Triplets` of one shape, in any order, with values of `samples`."""
    m, n = shape
    cells = draw(st.lists(st.integers(0, m * n - 1), unique=True, max_size=most))
    values = samples(dtype, *bounds(dtype), count=64)
    picks = draw(st.lists(st.integers(0, 63), min_size=len(cells), max_size=len(cells)))
    cells = np.array(cells, np.int32)
    return Triplets(cells // n, cells % n, values[np.array(picks, int)], shape, spare)


@st.composite
def edges(draw, shape=(6, 8), count=12):
    """(senders, receivers) of `count` edges with duplicates and, in square shapes, self loops."""
    ends = [draw(st.lists(st.integers(0, s - 1), min_size=count, max_size=count)) for s in shape]
    return tuple(np.array(e, np.int32) for e in ends)
