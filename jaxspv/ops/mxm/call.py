"""One product of two sparse matrices: its checked operands, their pattern, how large it is."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from ..._core.compilation import known_while_tracing, on_gpu
from ..._core.indices import bucketed, with_pattern
from ..._core.pytree import is_concrete
from ...formats import COO, CSC, CSR, SparseMatrix
from ...graph import Graph
from ...masks import Mask, check_mask
from ...semirings import Semiring
from .methods import no_cells, no_dots, op

BLOCK = 1 << 16  # entries whose products are counted together
FEW = 1 << 22  # products that a CPU makes without looking for less work
CHUNK = 1 << 26  # products expanded at once: about 4 GB
METHODS = ("auto", *(impl.name for impl in op.impls if impl.name != "auto"))


@dataclasses.dataclass(frozen=True)
class Call:
    """One checked product.

    Attributes:
        A, B, mask: the operands; for two CSC those of the transpose, B^T A^T (`flip`).
        coo: whether the result is asked for as a COO.
        method: None for "auto".
    """

    A: SparseMatrix
    B: SparseMatrix
    semiring: Semiring
    mask: Mask | None
    flip: bool
    coo: bool
    method: str | None
    chunk: int | None

    @property
    def shape(self) -> tuple[int, int]:
        return self.A.shape[0], self.B.shape[1]

    @property
    def pattern(self) -> Any:
        """Everything that decides where C has entries."""
        by_value = self.mask is not None and not self.mask.structural
        mask = self.mask if by_value else self.mask and _indices(self.mask.source)
        return _indices(self.A), _indices(self.B), mask

    @property
    def nothing(self) -> bool:
        """Whether C cannot have an entry, by shapes alone."""
        only_empty = (
            self.mask is not None
            and isinstance(self.mask.source, SparseMatrix)
            and self.mask.source.nse == 0
        )
        return 0 in (self.A.nse, self.B.nse, *self.A.shape, *self.B.shape) or only_empty

    @functools.cached_property
    def products(self) -> int:
        """The exact number of products; patterns are concrete."""
        if on_gpu(self.pattern):
            return self.on_device[0]
        return int(_lengths(self.A, 1) @ _lengths(self.B, 0))

    @functools.cached_property
    def searches(self) -> int | None:
        """About how many searches "dot" takes; None where it refuses. Patterns are concrete."""
        if on_gpu(self.pattern):
            return self.on_device[1]
        if no_dots(self.semiring, self.A, self.B, self.mask) is not None:
            return None
        with known_while_tracing():
            return int(_count_searches(*self.bare))

    @functools.cached_property
    def on_device(self) -> tuple[int, int | None]:
        """Products and searches: one program and one wait for the device."""
        dots = no_dots(self.semiring, self.A, self.B, self.mask) is None
        with known_while_tracing():
            whole = is_concrete(self.A, self.B, self.mask)
            A, B, mask = (self.A, self.B, self.mask) if whole else self.bare
            parts, searches = jax.device_get(_count(A, B, mask if dots else None))
        high, low = (int(part.astype(np.int64).sum()) for part in parts)
        return (high << 16) + low, None if searches is None else int(searches)

    def chosen(self, gpu: bool) -> str | None:
        """The method, where patterns are concrete and none is asked for.

        A search costs about as much as two products on a GPU, which sorts them; on a CPU about
        thirty, which it marks and adds.
        """
        if self.method is not None:
            return self.method
        usual, ratio = ("sort", 0.5) if gpu else ("gustavson", 30)
        operands = self.semiring, self.A, self.B, self.mask
        most = self.A.nse * min(self.B.nse, self.B.shape[1])
        if not gpu and (most < FEW or no_dots(*operands) is not None):
            return usual
        products = self.products
        if gpu and self.shape[0] * self.shape[1] < products and no_cells(*operands) is None:
            usual = "dense"
        if not gpu and products < FEW:
            return usual
        searches = self.searches
        return "dot" if searches is not None and searches * ratio < products else usual

    @property
    def bare(self) -> tuple[SparseMatrix, SparseMatrix, Mask | None]:
        """The operands without values, where only the pattern counts."""
        A, B, mask = _bare(self.A), _bare(self.B), self.mask
        if mask is not None and mask.structural and isinstance(mask.source, SparseMatrix):
            mask = dataclasses.replace(mask, source=_bare(mask.source))
        return A, B, mask

    def size(self, nse: int | None, products: int | None) -> int:
        """How many products "sort" takes at a time."""
        if self.chunk is not None:
            return self.chunk
        if products is not None:
            return min(bucketed(products), CHUNK)
        return min(max(bucketed(2 * (nse or 0)), 1 << 10), 1 << 24)

    def finish(self, C: CSR) -> SparseMatrix:
        """The result in its format."""
        if self.flip:
            return C.T
        return C.to_coo() if self.coo else C


def prepare_call(A, B, semiring, mask, method, chunk) -> Call:
    if not isinstance(semiring, Semiring):
        raise TypeError(f"`semiring` must be a Semiring; got {type(semiring).__name__}.")
    A, B = _matrix("A", A), _matrix("B", B)
    if A.shape[1] != B.shape[0]:
        raise ValueError(
            f"`B` must have {A.shape[1]} rows, as many as A of {A.shape} has columns; "
            f"got {B.shape}."
        )
    if method not in METHODS:
        raise ValueError(f"`method` must be one of {METHODS}; got {method!r}.")
    if chunk is not None and (not isinstance(chunk, (int, np.integer)) or chunk < 1):
        raise ValueError(f"`chunk` must be a positive integer; got {chunk!r}.")
    checked = _mask_operand(mask, (A.shape[0], B.shape[1]))
    flip = isinstance(A, CSC) and isinstance(B, CSC)
    coo = isinstance(A, COO) and isinstance(B, COO)
    if flip:
        A, B = B.T, A.T
        if checked is not None:
            checked = dataclasses.replace(checked, source=checked.source.T)
    name = None if method == "auto" else method
    return Call(A, B, semiring, checked, flip, coo, name, None if chunk is None else int(chunk))


def _matrix(name: str, A: Any) -> SparseMatrix:
    if isinstance(A, Graph):
        return A.out
    if not isinstance(A, SparseMatrix):
        raise TypeError(
            f"`{name}` must be a sparse matrix or a Graph of jaxspv; got {type(A).__name__}."
        )
    return with_pattern(A) if isinstance(A, (COO, CSC, CSR)) else A.asformat("csr")


def _mask_operand(mask: Any, shape: tuple[int, int]) -> Mask | None:
    checked = check_mask(mask, shape)
    if checked is None:
        return None
    source = checked.source
    if not isinstance(source, SparseMatrix):
        return dataclasses.replace(checked, source=jnp.asarray(source).astype(bool))
    if source.nse == 0 and checked.complement:
        return None
    return checked


def _indices(A: Any) -> Any:
    """The leaves of a sparse matrix that make its pattern."""
    if not isinstance(A, SparseMatrix):
        return A
    return [leaf for leaf in jax.tree.leaves(A) if leaf is not A.data and leaf is not A.overflow]


def _bare(A: Any) -> Any:
    """A pattern as a matrix: values are arrays of NumPy, which no trace has seen."""
    flag = np.zeros((), bool)
    return dataclasses.replace(A, data=np.zeros(A.nse, bool), overflow=flag)


def checked_nse(nse: Any) -> int | None:
    if nse is None:
        return None
    if not isinstance(nse, (int, np.integer)) or nse < 0:
        raise ValueError(f"`nse` must be a non-negative integer; got {nse!r}.")
    return int(nse)


def _lengths(A: SparseMatrix, axis: int) -> np.ndarray:
    """The number of entries of each row (axis 0) or column (axis 1), on the host."""
    if isinstance(A, (CSR, CSC)) and isinstance(A, CSR) == (axis == 0):
        return np.diff(np.asarray(A.indptr).astype(np.int64))
    if isinstance(A, (CSR, CSC)):
        indices = np.asarray(A.indices)[: int(np.asarray(A.indptr)[-1])]
    else:
        indices = np.asarray(A.rowcol()[axis])
        indices = indices[indices < A.shape[axis]]
    return np.bincount(indices, minlength=A.shape[axis])


@jax.jit
def _count(A: SparseMatrix, B: SparseMatrix, mask: Mask | None) -> Any:
    """The products, as `_count_products` gives them, and the searches where there is a mask."""
    return _count_products(A, B), None if mask is None else _count_searches(A, B, mask)


def _count_products(A: SparseMatrix, B: SparseMatrix) -> jax.Array:
    """(2, k) sums of the high and of the low 16 bits of what 2^16 entries of A select at a time.

    Neither wraps, and the host adds them up: no 64-bit integers, no prefix sum.
    """
    if isinstance(A, CSR):
        col, there = A.indices, jnp.arange(A.nse) < A.indptr[-1]
    else:
        row, col = A.rowcol()
        there = row < A.shape[0]
    each = jnp.where(there, jnp.take(_lengths_of_rows(B), col, mode="clip"), 0).astype(jnp.uint32)
    each = jnp.pad(each, (0, -A.nse % BLOCK)).reshape(-1, BLOCK)
    halves = jnp.stack([each >> 16, each & 0xFFFF])
    return jnp.sum(halves, axis=2, dtype=jnp.uint32)


@jax.jit
def _count_searches(A: SparseMatrix, B: SparseMatrix, mask: Mask) -> jax.Array:
    """The entries of the shorter list of each place of the mask, in float32."""
    row, col = mask.source.rowcol()
    a, b = _lengths_of_rows(A), _lengths_of_rows(B.T)
    shorter = jnp.minimum(a.at[row].get(mode="fill", fill_value=0), b.at[col].get(mode="clip"))
    return jnp.sum(shorter, dtype=jnp.float32)


def _lengths_of_rows(A: SparseMatrix) -> jax.Array:
    """The number of entries of each row, on the device."""
    if isinstance(A, CSR):
        return jnp.diff(A.indptr)
    return jnp.zeros(A.shape[0], jnp.int32).at[A.rowcol()[0]].add(1, mode="drop")
