"""A CSR whose entries lie on few diagonals, arranged by them, and its product with a vector.

    y[i] = add_k mul(A[i, i + offset_k], x[i + offset_k])        (diagonals k stored in row i)

No column index is read, and neighbouring rows read neighbouring elements of x: stencils, grids and
bands. A bit a place says whether an entry is stored, so that inf and NaN in x meet only these, and
any semiring is served: 4 bytes a place of a diagonal and a bit, where a CSR takes 8 bytes an entry.
"""

from __future__ import annotations

import dataclasses
import functools

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.eager.arrays import on_gpu
from ...._core.native_loops import unfused
from ...._core.platforms import situation
from ...._core.pytree import is_concrete, pytree_dataclass, static, transient
from ....formats import CSR
from ....formats.choose import FILLED, FILLED_ON_CPU, MOST_DIAGONALS, on_diagonals
from ..common.product import Fold

SAMPLE = 1024  # rows that are looked at before all are
TOGETHER, ODD_FROM = 64, 16
U32 = jnp.uint32


@pytree_dataclass
class Diagonals:
    """The pattern and the values of a CSR by diagonals.

    Attributes:
        stored: uint32 words, a bit for each row and diagonal. With b = `_held(len(offsets))` bit k
            of row i is bit (i b + k) mod 32 of word (i b + k) // 32 where b <= 32, bit k mod 32 of
            word (k // 32) stride + i where it is more.
        values: (len(offsets) * stride,), diagonal by diagonal; arbitrary where no entry is.
        offsets: column less row of each diagonal, ascending.
        rows: of the matrix.
        direct: whether a kernel that reads the CSR does better, as the values are `perturbed`.
        perturbed: as in `Rows`.
    """

    stored: Array
    values: Array
    offsets: tuple[int, ...] = static()
    rows: int = static()
    direct: bool = static(default=False)
    perturbed: bool = transient(default=False)

    @property
    def stride(self) -> int:
        """Places of a diagonal, those of the rows and a few more, so that each begins a line."""
        return _stride(self.rows)

    def in_products(self) -> Diagonals:
        """As an operand of a product of this trace."""
        return dataclasses.replace(self, direct=self.direct or self.perturbed)

    def revalued(self, A: CSR) -> Diagonals:
        """The same pattern with the values of A."""
        values = _values(self.stored, A.indptr, A.data, len(self.offsets))
        return dataclasses.replace(self, values=values, perturbed=not is_concrete(values))


def by_diagonals(A: CSR) -> Diagonals | None:
    """A by diagonals where few of them hold its entries and these fill them; eager."""
    (m, n), share = A.shape, FILLED if on_gpu(A.indices) else FILLED_ON_CPU
    if A.nse < share * m or 0 in (A.nse, m, n) or not (A.sorted and A.unique):
        return None
    if _of_first_entries(A) > MOST_DIAGONALS:
        return None
    used = _used(A) - m
    many = len(used)
    held = 0 < many <= MOST_DIAGONALS and int(A.count) >= share * many * m
    if not held or many * _stride(m) >= 2**31:
        return None
    offsets = tuple(used.tolist())
    stored = _valid(*A.rowcol(), offsets, m)
    return Diagonals(stored, _values(stored, A.indptr, A.data, many), offsets, m)


def _of_first_entries(A: CSR) -> int:
    """How many diagonals the first entries of some rows lie on."""
    rows = np.arange(0, A.shape[0], -(-A.shape[0] // SAMPLE))
    if on_gpu(A.indices):
        begin, end, column = jax.device_get(_first_entries(A.indptr, A.indices, rows))
    else:
        ends, indices = np.asarray(A.indptr), np.asarray(A.indices)
        begin, end = ends[rows], ends[rows + 1]
        column = indices[np.minimum(begin, A.nse - 1)]
    return len(np.unique((column - rows)[begin < end]))


@jax.jit
def _first_entries(indptr: Array, indices: Array, rows: Array) -> tuple[Array, Array, Array]:
    begin = indptr[rows]
    return begin, indptr[rows + 1], indices[jnp.minimum(begin, indices.shape[0] - 1)]


def _used(A: CSR) -> np.ndarray:
    """The diagonals that hold entries, by column - row + rows."""
    m, n = A.shape
    if on_gpu(A.indices):
        return np.flatnonzero(on_diagonals(*A.rowcol(), (m, n)))
    ends, seen = np.asarray(A.indptr), np.zeros(m + n, bool)
    seen[np.asarray(A.indices)[: ends[-1]] - np.repeat(np.arange(m), np.diff(ends)) + m] = True
    return np.flatnonzero(seen)


def spmv(D: Diagonals, x: Array, how: Fold) -> Array:
    """y (rows,) of x (n,): fused loops over shifted slices of x. Traceable in values and x.

    A loop takes `TOGETHER` diagonals at most: with more, XLA holds too many intermediates. With
    many diagonals and an odd number of rows each GPU thread takes one row, so that neighbouring
    threads read neighbouring elements of x; else four. A CPU takes rows in vectors only if they are
    many times a vector.
    """
    d, m, before = len(D.offsets), D.stride, max(0, -D.offsets[0])
    words, after = _words(D.stored, d), max(0, D.offsets[-1] + m - x.shape[0])
    parts = [part.tolist() for part in np.array_split(np.arange(d), -(-d // TOGETHER))]

    def product(size, stage):
        padded = stage(lambda: jnp.pad(x, (before, after)))

        def term(k):
            at = before + D.offsets[k]
            term = how.mul(D.values[k * m : k * m + size], padded[at : at + size])
            here = (words[k // 32] >> U32(k % 32)) & 1 != 0
            return jnp.where(here[:size], term, jnp.asarray(how.identity, term.dtype))

        def fold(so_far, some):
            parts = *lax.optimization_barrier(so_far), *map(term, some)
            return functools.reduce(how.combine, parts)

        y = []
        for some in parts:
            y = [stage(functools.partial(fold, y, some))]
        return y[0]

    if situation().platforms != {"cuda"}:
        return product(m, functools.partial(unfused, D.stored[0] | 1 != 0))[: D.rows]
    if d < ODD_FROM:
        return product(D.rows, lambda compute: compute())
    return lax.optimization_barrier(product(D.rows | 1, lambda compute: compute()))[: D.rows]


def _held(diagonals: int) -> int:
    """Bits that a row has in `stored`: a power of two up to 32, above that a multiple of 32."""
    return 1 << max(diagonals - 1, 0).bit_length() if diagonals <= 32 else -(-diagonals // 32) * 32


def _stride(rows: int) -> int:
    """Lines of 32, an odd number of them, so that the same place of many diagonals does not fall
    into the same set of a cache; at least a place more than rows."""
    return (rows // 32 + 1 | 1) * 32


@functools.partial(jax.jit, static_argnums=(2, 3))
def _valid(row: Array, col: Array, offsets: tuple[int, ...], rows: int) -> Array:
    """The words of `Diagonals.stored`."""
    d, held, stride = len(offsets), _held(len(offsets)), _stride(rows)
    k = jnp.searchsorted(jnp.asarray(offsets, col.dtype), col - row).astype(col.dtype)
    place = jnp.where(row < rows, k * stride + row, d * stride)
    bits = jnp.zeros(d * stride, bool).at[place].set(True, mode="drop", unique_indices=True)
    bits = jnp.pad(bits.reshape(d, stride), ((0, max(held, 32) - d), (0, 0)))
    shift = jnp.arange(32, dtype=U32)[:, None]
    words = jnp.sum(bits.reshape(-1, 32, stride).astype(U32) << shift, axis=1, dtype=U32)
    if held < 32:  # several rows a word
        words = words.reshape(-1, 32 // held) << jnp.arange(0, 32, held, dtype=U32)
        words = jnp.sum(words, axis=1, dtype=U32)
    return words.reshape(-1)


@functools.partial(jax.jit, static_argnums=3)
def _values(stored: Array, indptr: Array, data: Array, diagonals: int) -> Array:
    """The values of a CSR, whose rows are sorted, by diagonals."""
    words, k = _words(stored, diagonals), jnp.arange(diagonals)
    several = lax.population_count(words)
    before = jnp.cumsum(several, axis=0) - several
    lower = (U32(1) << (k % 32).astype(U32)) - 1
    rank = before[k // 32] + lax.population_count(words[k // 32] & lower[:, None])
    first = jnp.pad(indptr[:-1], (0, words.shape[1] - indptr.shape[0] + 1))
    slot = jnp.minimum(first + rank.astype(indptr.dtype), data.shape[0] - 1)
    return data[slot.reshape(-1)]


def _words(stored: Array, diagonals: int) -> Array:
    """uint32[words, stride]: bit k mod 32 of word k // 32, whether diagonal k has an entry."""
    held = _held(diagonals)
    if held >= 32:
        return stored.reshape(held // 32, -1)
    return (stored[:, None] >> jnp.arange(0, 32, held, dtype=U32)).reshape(1, -1)
