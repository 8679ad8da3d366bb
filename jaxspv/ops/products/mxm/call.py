"""A product of two sparse matrices: its checked operands, bounds from their shapes, its result."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ...._core.indices import with_pattern
from ...._core.reductions import is_narrow
from ....algebra.masks import Mask, check_mask
from ....algebra.operators import BinaryOp
from ....algebra.semirings import Semiring, as_semiring
from ....formats import COO, CSC, CSR, SparseMatrix
from ....formats.csr import sorted_csr
from ...write_rule.call import matrix
from ..common.product import joined, term_dtype

_TRANSPOSED = {"firsti": "secondj", "firstj": "secondi", "secondi": "firstj", "secondj": "firsti"}


@dataclasses.dataclass(frozen=True)
class Call:
    """One checked product.

    Attributes:
        semiring, A, B, mask: the operands; for two CSC those of the transpose, B^T A^T.
        flip: whether they are.
        coo: whether the result is asked for as a COO.
        narrow: the dtype of a result in a float narrower than float32, in which it is computed.
    """

    semiring: Semiring
    A: SparseMatrix
    B: SparseMatrix
    mask: Mask | None
    flip: bool
    coo: bool
    narrow: Any = None

    @property
    def operands(self) -> tuple[Semiring, SparseMatrix, SparseMatrix, Mask | None]:
        """The operands of an implementation."""
        return self.semiring, self.A, self.B, self.mask

    @functools.cached_property
    def pattern(self) -> Any:
        """Everything that decides where C has entries."""
        by_value = self.mask is not None and not self.mask.structural
        mask = self.mask if by_value else self.mask and _indices(self.mask.source)
        return _indices(self.A), _indices(self.B), mask

    @functools.cached_property
    def without_values(self) -> tuple[SparseMatrix, SparseMatrix, Mask | None]:
        """The operands where only the pattern counts: values are the numbers of their slots."""
        A, B, mask = _slots(self.A), _slots(self.B), self.mask
        if mask is not None and mask.structural and isinstance(mask.source, SparseMatrix):
            mask = dataclasses.replace(mask, source=_slots(mask.source))
        return A, B, mask

    @property
    def bound(self) -> int:
        """The entries C can have, by shapes alone."""
        (m, l), (_, n), a, b = self.A.shape, self.B.shape, self.A.nse, self.B.nse
        bound = min(m * n, a * min(n, b), b * min(m, a)) if l else 0
        if self.mask is None or self.mask.complement:
            return bound
        source = self.mask.source
        return min(bound, source.nse if isinstance(source, SparseMatrix) else source.size)

    def finish(self, C: CSR) -> SparseMatrix:
        """The result in its format."""
        if self.narrow is not None:
            C = C.astype(self.narrow)
        if self.flip:
            return C.T
        return C.to_coo() if self.coo else C


def checked(A: Any, B: Any, semiring: Any, mask: Any) -> Call:
    """Validates the operands of a product. Raises TypeError, ValueError: as `mxm`."""
    semiring = as_semiring(semiring)
    A, B = (joined(_matrix(name, M), semiring) for name, M in (("A", A), ("B", B)))
    if A.shape[1] != B.shape[0]:
        raise ValueError(
            f"`B` must have {A.shape[1]} rows, as many as A of {A.shape} has columns; "
            f"got {B.shape}."
        )
    mask = check_mask(mask, (A.shape[0], B.shape[1]))
    if mask is not None and not isinstance(mask.source, SparseMatrix):
        mask = dataclasses.replace(mask, source=jnp.asarray(mask.source).astype(bool))
    elif mask is not None and mask.source.nse == 0 and mask.complement:
        mask = None
    coo = isinstance(A, COO) and isinstance(B, COO)
    dtype, narrow = term_dtype(semiring, A.dtype, B.dtype), None
    if is_narrow(dtype):
        A, B, narrow = A.astype(jnp.float32), B.astype(jnp.float32), dtype
    if not A.compressed == B.compressed == 1:
        return Call(semiring, A, B, mask, False, coo, narrow)
    if mask is not None:
        mask = dataclasses.replace(mask, source=mask.source.T)
    transposed = dataclasses.replace(semiring, mul=_transposed(semiring.mul))
    return Call(transposed, B.T, A.T, mask, True, coo, narrow)


def _matrix(name: str, A: Any) -> SparseMatrix:
    A = matrix(name, A)
    return with_pattern(A) if isinstance(A, (COO, CSC, CSR)) else A.asformat("csr")


@dataclasses.dataclass(frozen=True)
class _Reversed:
    """`fn` of its operands in reverse order; equal where `fn` is, so that programs are shared."""

    fn: Callable[..., Any]

    def __call__(self, x: Any, y: Any, *params: Any) -> Any:
        return self.fn(y, x, *params)


def _transposed(mul: BinaryOp) -> BinaryOp:
    """The operator of the transposed product: `mul(y, x)`, rows and columns exchanged."""
    return dataclasses.replace(
        mul,
        fn=mul.fn if mul.fn is jnp.multiply else _Reversed(mul.fn),
        overflow=None if mul.overflow is None else _Reversed(mul.overflow),
        position=None if mul.position is None else _TRANSPOSED[mul.position],
    )


def _indices(A: Any) -> Any:
    if not isinstance(A, SparseMatrix):
        return A
    return [leaf for leaf in jax.tree.leaves(A) if leaf is not A.data and leaf is not A.overflow]


def _slots(A: Any) -> Any:
    flag = np.zeros((), bool)  # arrays of NumPy, which no trace has seen
    return dataclasses.replace(A, data=np.arange(A.nse, dtype=np.int32), overflow=flag)


class Result(NamedTuple):
    """C by rows: offsets (m + 1,), columns and values (nse,), and what to know about them.

    Attributes:
        total: entries that C has, also where they exceed nse; 2^31 - 1 stands for any larger.
        wrapped: a product did not fit its dtype.
    """

    indptr: Array
    indices: Array
    data: Array
    total: Array
    wrapped: Array


def no_entries(m: int, n: int, nse: int, dtype: Any) -> Result:
    """What a loop adds entries to; `indptr` (m,) holds the lengths of the rows, for `offsets`."""
    lengths, indices = jnp.zeros(m, jnp.int32), jnp.full(nse, n, jnp.int32)
    return Result(lengths, indices, jnp.zeros(nse, dtype), jnp.int32(0), jnp.asarray(False))


def offsets(r: Result) -> Result:
    """The result with (m + 1,) offsets of its rows, cut at nse, in place of their lengths."""
    nse = r.data.shape[0]
    ends = jnp.cumsum(r.indptr, dtype=jnp.int32)  # wraps only where the total exceeds nse
    wrapped = jnp.cumsum((ends < 0).astype(jnp.int32)) > 0
    ends = jnp.where(wrapped, nse, jnp.minimum(ends, nse))
    return r._replace(indptr=jnp.append(jnp.int32(0), ends))


def matrix_of(r: Result, A: SparseMatrix, B: SparseMatrix) -> CSR:
    """The result as a matrix; its overflow is sticky."""
    over = (r.total > r.data.shape[0]) | r.wrapped | A.overflow | B.overflow
    shape = (A.shape[0], B.shape[1])
    return CSR(r.data, r.indices, r.indptr, over, shape, True, True)


def empty(semiring: Semiring, A: SparseMatrix, B: SparseMatrix, nse: int) -> CSR:
    """A product without entries."""
    (m, _), (_, n) = A.shape, B.shape
    data = jnp.zeros(nse, term_dtype(semiring, A.dtype, B.dtype))
    indptr = jnp.zeros(m + 1, jnp.int32)
    indices = jnp.full(nse, n, jnp.int32)
    return CSR(data, indices, indptr, A.overflow | B.overflow, (m, n), True, True)


def sorted_mask(mask: Mask | None) -> Mask | None:
    """A mask whose sparse source is a sorted CSR."""
    if mask is None or not isinstance(mask.source, SparseMatrix):
        return mask
    return Mask(sorted_csr(mask.source), mask.structural, mask.complement)


def lists_places(mask: Mask | None) -> bool:
    """Whether a mask names the places that C may have."""
    return mask is not None and not mask.complement and isinstance(mask.source, SparseMatrix)
