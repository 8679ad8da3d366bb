"""A CSR whose entries come in aligned pairs or fours of columns: one column index for each of them.

Blocks of an even side, several unknowns a point: a kernel reads 4 bytes an index for a group, and
the values and x of a group in one access each. The values stay where the CSR has them.
"""

from __future__ import annotations

import functools

import jax
import jax.numpy as jnp
from jax import Array

from ...._core.pytree import pytree_dataclass, static
from ....formats import CSR

WIDTHS = (4, 2)


@pytree_dataclass
class Groups:
    """Groups of `width` entries of a CSR, side by side in its row and in its columns.

    Attributes:
        indptr: (m + 1,) where the groups of each row begin.
        indices: (nse // width,) the first column of each group, a multiple of `width`.
        width: entries of a group.
    """

    indptr: Array
    indices: Array
    width: int = static()


def grouped(A: CSR) -> Groups | None:
    """The groups of A, the widest that all entries come in; eager."""
    for width in WIDTHS:
        if A.nse and bool(_in_groups(A.indptr, A.indices, width)):
            indptr, indices = _groups(A.indptr, A.indices, width)
            return Groups(indptr, indices, width)
    return None


@functools.partial(jax.jit, static_argnums=2)
def _in_groups(indptr: Array, indices: Array, width: int) -> Array:
    groups = indices.shape[0] // width
    each = indices[: groups * width].reshape(groups, width)
    valid = jnp.arange(groups) < indptr[-1] // width
    right = (each[:, 0] % width == 0) & jnp.all(jnp.diff(each, axis=1) == 1, axis=1)
    return jnp.all(indptr % width == 0) & jnp.all(right | ~valid)


@functools.partial(jax.jit, static_argnums=2)
def _groups(indptr: Array, indices: Array, width: int) -> tuple[Array, Array]:
    groups = indices.shape[0] // width
    return indptr // width, indices[: groups * width : width]
