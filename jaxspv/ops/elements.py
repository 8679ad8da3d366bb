"""Single elements of matrices and vectors: `get_element`, `has_element`, set and remove."""

from __future__ import annotations

from typing import Any

import jax.numpy as jnp
from jax import Array

from .._core.eager.arrays import to_device
from ..shapes import Bool, Count, Number, Operand, Shaped, Sparse
from .assign import subassign
from .write_rule.call import Options, call, format_of, number, operand
from .write_rule.entries import Entries, element, entries_of, find, keep
from .write_rule.index import as_indices


def get_element(
    A: Operand, i: Count, j: Count | None = None, *, fill: Number = 0
) -> Shaped[Array, ""]:
    """The value at (i, j), of a vector at i; `fill` where none is stored. GrB_extractElement.

    Args:
        A: matrix, SparseVector, or dense vector.
        i, j: integers, traced ones too; out of range under jit nothing is stored.
        fill: scalar, cast to the dtype of A.

    Returns:
        A scalar array of the dtype of A; differentiable in A.

    Raises:
        IndexError: a concrete index is out of range.
        TypeError: an index is no integer, a vector gets `j` or a matrix none.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 2.0], [0.0, 4.0]])
    >>> float(jsp.graphblas.get_element(A, 1, 1))
    4.0
    >>> float(jsp.graphblas.get_element(A, 1, 0, fill=-1))
    -1.0
    """
    M = operand("A", A)
    value, found = element(M, _places(M, i, j))
    absent = jnp.asarray(number("fill", fill, value.dtype)).astype(value.dtype)
    return jnp.where(found, value, absent)


def has_element(A: Operand, i: Count, j: Count | None = None) -> Bool[Array, ""]:
    """Whether an entry is stored at (i, j), of a vector at i.

    Args:
        A, i, j: as in `get_element`.

    Returns:
        A boolean scalar array.

    Raises:
        IndexError, TypeError: as `get_element`.

    >>> import jaxspv as jsp
    >>> bool(jsp.graphblas.has_element(jsp.vector_from_entries([1], [0.0], 3), 1))
    True
    """
    M = operand("A", A)
    return element(M, _places(M, i, j))[1]


def set_element(
    C: Sparse, value: Number, i: Count, j: Count | None = None, *, nse: int | None = None
) -> Any:
    """A copy of C with the entry (i, j), of a vector i, set. GrB_setElement.

    Args:
        C: matrix, SparseVector, or dense vector.
        value: scalar, cast to the dtype of C.
        i, j: integers, traced ones too; one out of range under jit changes nothing.
        nse: capacity; a bucket eagerly, C.nse + 1 under jit.

    Returns:
        As `assign`.

    Raises:
        IndexError, ValueError, TypeError: as `assign`.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([1], [2.0], 3)
    >>> jsp.graphblas.set_element(x, 5.0, 0).todense().tolist()
    [5.0, 2.0, 0.0]
    """
    return subassign(C, value, i, j, nse=nse)


def remove_element(C: Sparse, i: Count, j: Count | None = None) -> Any:
    """A copy of C without the entry (i, j), of a vector i, if there is one. GrB_removeElement.

    Args:
        C: matrix, SparseVector, or dense vector.
        i, j: as in `set_element`.

    Returns:
        The same kind of object, of a dense vector a SparseVector; the capacity under jit is C.nse.

    Raises:
        IndexError, TypeError: as `get_element`.

    >>> import jaxspv as jsp
    >>> x = jsp.vector_from_entries([1, 2], [2.0, 3.0], 3)
    >>> jsp.graphblas.remove_element(x, 1).trim().indices.tolist()
    [2]
    """
    M = operand("C", C)
    return call(_remove, (M, _places(M, i, j)), Options(), format=format_of(M))


def _places(A: Any, i: Any, j: Any) -> tuple[Any, ...]:
    found = as_indices(A, i, j)
    for name, index in zip("ij", found, strict=False):
        if not index.point:
            raise TypeError(f"`{name}` must be one integer; the whole of a part is `jsp.extract`.")
    return to_device(tuple(index.values for index in found))


def _remove(C, place) -> Entries:
    e = entries_of(C)
    slot, found = find(e, place)
    return keep(e, e.valid() & ~((e.slots() == slot[0]) & found[0]))
