"""Many small matrices as one: `block_diag`, and `unbatch` to split it again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import on_accelerator, to_device
from .._core.indices import index_dtype_for, with_pattern
from .._core.pytree import is_concrete
from ..construct.from_arrays import as_format
from ..formats import COO, FORMATS, SparseMatrix
from ..formats.coo import sort_coo
from ..ops.write_rule.call import matrix
from ..ops.write_rule.entries import take


def block_diag(matrices: Sequence[Any], *, format: str | None = None) -> Any:
    """The matrix with the given ones along its diagonal: a batch of graphs as one graph.

    Graph k keeps its own vertices, moved by the sum of the sizes before it: one program and one
    product serve them all. Pad to few shapes by `pad` where batches differ in size.

    Args:
        matrices: sparse matrices or Graphs, at least one.
        format: of the result; None: that of the first, CSR for a BitTiled.

    Returns:
        A matrix of shape (sum of rows, sum of columns), the dtype common to all. Its capacity is
        the number of entries, under jit the sum of the capacities.

    Raises:
        ValueError: there is no matrix, or their entries differ in shape.
        TypeError: one is no matrix.

    Differentiable in the values of each. `scipy.sparse.block_diag` under JAX's transformations.

    >>> import jaxspv as jsp
    >>> A, B = jsp.from_dense([[1.0, 2.0]]), jsp.from_dense([[3.0]])
    >>> block_diag([A, B]).todense().tolist()
    [[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]]
    """
    parts = [with_pattern(matrix(f"matrices[{k}]", A)) for k, A in enumerate(matrices)]
    if not parts:
        raise ValueError("`matrices` must hold at least one matrix.")
    shapes = {A.entry_shape for A in parts}
    if len(shapes) > 1:
        raise ValueError(f"entries must have one shape; got {sorted(shapes)}.")
    starts = np.cumsum([(0, 0), *(A.shape for A in parts)], axis=0)
    m, n = (int(size) for size in starts[-1])
    index = index_dtype_for(*parts, sizes=(m, n, sum(A.nse for A in parts)))
    dtype = jnp.result_type(*(A.dtype for A in parts))
    coos = [A.to_coo() for A in parts]
    on_host = is_concrete(coos) and not on_accelerator(*(c.row for c in coos))
    xp: Any = np if on_host else jnp
    rows, cols, data = [], [], []
    for coo, (down, right) in zip(coos, starts, strict=False):
        row, col, values = xp.asarray(coo.row), xp.asarray(coo.col), xp.asarray(coo.data)
        used = row < coo.shape[0]
        if on_host:
            row, col, values, used = row[used], col[used], values[used], True
        rows.append(xp.where(used, row + down, m).astype(index))
        cols.append(xp.where(used, col + right, n).astype(index))
        data.append(values.astype(dtype))
    values, row, col = (xp.concatenate(a) for a in (data, rows, cols))
    overflow = jnp.any(jnp.stack([jnp.asarray(A.overflow) for A in parts]))
    unique = all(A.unique for A in parts)
    format = format or _with_values(parts[0])
    if on_host:
        values, row, col = to_device((values, row, col), coos[0].row)
        return as_format(COO(values, row, col, overflow, (m, n), True, unique), format)
    return as_format(sort_coo(COO(values, row, col, overflow, (m, n), False, unique))[0], format)


def unbatch(
    A: Any, shapes: Sequence[Any], *, nse: int | Sequence[int] | None = None
) -> list[SparseMatrix]:
    """The blocks of a block-diagonal matrix, each by itself; the inverse of `block_diag`.

    Args:
        A: matrix.
        shapes: the (rows, columns) of each block, in their order, or matrices of these shapes.
        nse: capacity of the blocks, one for all or one each; None: the entries of each, under jit
            the capacity of A.

    Returns:
        A list of matrices in the format of A, CSR for a BitTiled.

    Raises:
        ValueError: shapes do not add up to that of A; a concrete A has entries elsewhere, or more
            in a block than `nse`. Under jit such blocks have `overflow` set.

    >>> import jaxspv as jsp
    >>> A, B = jsp.from_dense([[1.0, 2.0]]), jsp.from_dense([[3.0]])
    >>> [M.todense().tolist() for M in unbatch(block_diag([A, B]), [A, B])]
    [[[1.0, 2.0]], [[3.0]]]
    """
    A = with_pattern(matrix("A", A))
    sizes = [tuple(getattr(s, "shape", s)) for s in shapes]
    starts = np.cumsum([(0, 0), *sizes], axis=0)
    if tuple(starts[-1]) != A.shape:
        raise ValueError(f"`shapes` must add up to {A.shape}; got {tuple(map(int, starts[-1]))}.")
    coo = A.to_coo()
    ends = jnp.searchsorted(coo.row, jnp.asarray(starts[:, 0], coo.row.dtype))
    concrete = is_concrete(coo)
    counts = np.diff(np.asarray(ends)) if concrete else None
    if nse is None:
        capacities = [A.nse] * len(sizes) if counts is None else counts.tolist()
    else:
        capacities = [nse] * len(sizes) if isinstance(nse, (int, np.integer)) else list(nse)
    if len(capacities) != len(sizes):
        raise ValueError(f"`nse` must be one number or {len(sizes)}; got {len(capacities)}.")
    if counts is not None and (counts > capacities).any():
        raise ValueError(f"`nse` must be at least {counts.tolist()}; got {capacities}.")
    blocks = [
        _block(coo, ends[k], ends[k + 1], start, size, int(capacity))
        for k, (start, size, capacity) in enumerate(zip(starts, sizes, capacities, strict=False))
    ]
    if concrete and any(bool(b.overflow) for b in blocks) and not bool(A.overflow):
        raise ValueError("`A` must be block-diagonal: it has entries outside of its blocks.")
    return [as_format(block, _with_values(A)) for block in blocks]


def _with_values(A: SparseMatrix) -> str:
    """The format of A, or CSR where that holds no values."""
    return A.format if A.format in FORMATS else "csr"


def _block(coo: COO, first: Array, last: Array, start: Any, size: Any, capacity: int) -> COO:
    """The rows of one block, in a capacity of `capacity`."""
    (down, right), (m, n) = start, size
    slot = first + jnp.arange(capacity, dtype=first.dtype)
    used = slot < last
    row, col = take(coo.row, slot) - down, take(coo.col, slot) - right
    inside = (col >= 0) & (col < n)
    lost = jnp.any(used & ~inside) | (last - first > capacity)
    row = jnp.where(used, row, m).astype(coo.row.dtype)
    col = jnp.where(used, jnp.where(inside, col, 0), n).astype(coo.row.dtype)
    overflow = coo.overflow | lost
    return COO(take(coo.data, slot), row, col, overflow, (int(m), int(n)), True, coo.unique)
