"""Tuples moved by their places alone: transposes, extraction, assignment."""

from __future__ import annotations

from ...formats.stored import Stored
from ...formats.tuples import Tuples
from .. import assign as _assign
from .. import extract as _extract
from ..write_rule.call import Options
from .common import as_tuples, on_tuples
from .elements import behind, write


@on_tuples
def transpose(A, **options):
    """`transpose` of tuples."""
    A = as_tuples("A", A)
    return write(A.T.asformat(A.format), Options(**options))


@on_tuples
def extract(A, i=None, j=None, **options):
    """`extract` from tuples: a submatrix or subvector."""
    A = as_tuples("A", A)
    found = _extract.extract(A.places, i, j)
    if not isinstance(found, Stored):
        raise ValueError("of tuples `extract` gives matrices and vectors: give a list of places.")
    return write(Tuples(found, A.values), Options(**options))


@on_tuples
def assign(C, value, i=None, j=None, *, accum=None, **options):
    """`assign` of tuples, without `accum`."""
    if accum is not None:
        raise ValueError("`assign` of tuples takes no `accum`.")
    C = as_tuples("C", C)
    both, places = behind(C, as_tuples("value", value))
    return Tuples(_assign.assign(C.places, places, i, j, **options), both)
