"""Matrices with duplicate entries: every product takes their sum."""

from __future__ import annotations

from ....algebra import operators
from ....algebra.semirings import Semiring
from ....formats import SparseMatrix
from ....formats.repeats import joined as _joined


def joined(A: SparseMatrix, semiring: Semiring) -> SparseMatrix:
    """A with repeated entries summed, unless the semiring gives the same without that.

    Only (plus, times) distributes over the sum of repeated entries: max_plus would take the larger
    of two, plus_pair would count both.
    """
    distributes = (semiring.add.op.fn, semiring.mul.fn) == (operators.plus.fn, operators.times.fn)
    return A if A.unique or distributes else _joined(A)
