"""`aggregate`: the entries of each row or column to one dense value; `softmax` over them."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from .._core.eager.arrays import fitting
from .._core.eager.programs import one_program
from .._core.indices import with_pattern
from .._core.loops import over_trailing
from .._core.platforms import default_promotion
from .._core.reductions import dtype_of_means
from .._core.reductions import in_float32 as wide
from ..algebra.monoids import Monoid, as_monoid, logaddexp, max_, min_, plus
from ..formats import SparseMatrix
from ..shapes import Matrix, Number, Shaped
from .reduce import broadcast_rows, checked_axis, joined, lines_of
from .write_rule.call import matrix
from .write_rule.entries import take

_MONOIDS = {"sum": plus, "max": max_, "min": min_, "logsumexp": logaddexp}
STATISTICS = (*_MONOIDS, "mean", "var", "std")
MEANS = ("mean", "var", "std", "logsumexp")  # floats, of integers too


def aggregate(
    A: Matrix, how: Any = "sum", *, axis: int = 1, fill: Number = 0
) -> Shaped[Array, " n *entry"]:
    """Dense `y[i] = how of A[i, j] over the stored j` (axis=1), or of each column (axis=0).

    What a layer of a graph network does with the messages of its edges. Missing entries are absent:
    the mean is over what is stored, unlike SciPy's. A place listed twice has two messages; `reduce`
    adds them first.

    Args:
        A: (m, n) matrix or `Graph`; an entry may be an array, data (nse, ...).
        how: "sum", "mean", "max", "min", "var", "std" (of the population: the mean of squared
            distances from the mean), "logsumexp", or a monoid.
        axis: the axis that vanishes, as in NumPy.
        fill: what a row without entries gets; the dtype of the result must hold it.

    Returns:
        An array (m, ...), for axis=0 (n, ...), of the dtype of A; of "mean", "var", "std" and
        "logsumexp" the dtype that `jnp.mean` gives. float16 and bfloat16 are summed in float32.

    Raises:
        ValueError: `how` or `axis` is none of these; the dtype does not hold `fill`.
        TypeError: A is no matrix, `fill` no number, or the monoid is not defined on the dtype.

    Differentiable in both modes: max and min through the first entry that wins, "std" with 0 where
    all entries of a row are equal. `reduce` is the same over monoids alone, with masks and a
    sparse result. O(nse) time and memory.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 3.0], [0.0, 0.0]])
    >>> aggregate(A, "mean").tolist(), aggregate(A, "max", fill=-1).tolist()
    ([2.0, 0.0], [3.0, -1.0])
    """
    A = matrix("A", A)
    axis = checked_axis(axis, optional=False)
    if isinstance(how, str) and how in STATISTICS:
        add = _MONOIDS.get(how, plus)
    else:
        names = f"one of {STATISTICS} or a monoid"
        if not isinstance(how, Monoid):
            raise ValueError(f"`how` must be {names}; got {how!r}.")
        add, how = how, "sum"  # its reduction is the result
    dtype = dtype_of_means(A.dtype) if how in MEANS else A.dtype
    operands = with_pattern(A), as_monoid(add), fitting("fill", fill, dtype)
    return one_program(_aggregated, *operands, how=how, axis=axis)


def softmax(A: Matrix, *, axis: int = 1) -> Any:
    """`P[i, j] = exp(A[i, j]) / sum_k exp(A[i, k])` over the stored entries of each row.

    Shifted by the largest of each row, so that nothing overflows; padding is ignored. Entries of
    -inf get 0, and so does a row of nothing else. A place listed twice has two entries.

    Args:
        A: (m, n) matrix of floats, or a `Graph`; an entry may be an array, data (nse, heads).
        axis: 1 for rows, 0 for columns.

    Returns:
        A matrix of the pattern, format and dtype of A; float16 and bfloat16 are summed in float32.

    Raises:
        ValueError: `axis` is neither 0 nor 1.
        TypeError: A is no matrix, or its entries are no floats.

    Differentiable in both modes, `dP = P (dA - sum_k P dA)`. O(nse) time and memory.

    >>> import jaxspv as jsp
    >>> A = jsp.from_dense([[1.0, 1.0], [0.0, 7.0]])
    >>> softmax(A).data.tolist()
    [0.5, 0.5, 1.0]
    """
    A = matrix("A", A)
    if not jnp.issubdtype(A.dtype, jnp.floating):
        raise TypeError(f"`softmax` takes floats; got {A.dtype}: use `A.astype(float)`.")
    return one_program(_softmax, with_pattern(A), axis=checked_axis(axis, optional=False))


@functools.partial(jax.jit, static_argnums=(3, 4))
@default_promotion()
def _aggregated(A: SparseMatrix, add: Monoid, fill: Any, how: str, axis: int) -> Array:
    lines, extent, ascends = lines_of(A, axis)
    valid = lines < extent
    values = jnp.where(broadcast_rows(valid, A.data), A.data, jnp.zeros((), A.dtype))
    if how in MEANS:
        values = values.astype(dtype_of_means(values.dtype))
    values, dtype = wide(values), values.dtype

    def by_line(x: Array, monoid: Monoid = plus) -> Array:
        return over_trailing(lambda v: joined(monoid, v, lines, extent, sorted=ascends), x)

    y = by_line(add.admit(values), add)
    sizes = broadcast_rows(by_line(valid.astype(jnp.int32)), y)
    if how in ("mean", "var", "std"):
        y = y / jnp.maximum(sizes, 1)
    if how in ("var", "std"):
        deviation = jnp.where(broadcast_rows(valid, values), values - take(y, lines), 0)
        squares = (deviation * deviation.conj()).real.astype(deviation.dtype)
        y = by_line(squares) / jnp.maximum(sizes, 1)
    if how == "std":
        y = jnp.where(y > 0, jnp.sqrt(jnp.where(y > 0, y, 1)), 0)
    y = y if y.dtype == bool else y.astype(dtype)
    return jnp.where(sizes > 0, y, jnp.asarray(fill, y.dtype))


@functools.partial(jax.jit, static_argnums=1)
def _softmax(A: Any, axis: int) -> Any:
    lines, extent, ascends = lines_of(A, axis)
    data = softmax_of_lines(A.data, lines, extent, ascends).astype(A.dtype)
    return dataclasses.replace(A, data=data)


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3))
def softmax_of_lines(x: Array, lines: Array, extent: int, ascends: bool) -> Array:
    """`softmax` of values (nse, ...) by their `lines`, in float32 or wider; 0 out of range."""
    is_valid = broadcast_rows(lines < extent, x)
    x = jnp.where(is_valid, wide(x), -jnp.inf)
    peak = over_trailing(lambda v: max_.segment_reduce(v, lines, extent, sorted=ascends), x)
    level = x - take(jnp.where(peak > -jnp.inf, peak, 0), lines)
    e = jnp.where(is_valid, jnp.exp(level), 0)
    sums = _sums(e, lines, extent, ascends)
    return e / take(jnp.where(sums == 0, 1, sums), lines)


@softmax_of_lines.defjvp
def _(extent, ascends, primals, tangents):
    x, lines = primals
    p = softmax_of_lines(x, lines, extent, ascends)
    moved = p * jnp.where(broadcast_rows(lines < extent, p), tangents[0].astype(p.dtype), 0)
    return p, moved - p * take(_sums(moved, lines, extent, ascends), lines)


def _sums(x: Array, lines: Array, extent: int, ascends: bool) -> Array:
    return over_trailing(lambda v: plus.segment_reduce(v, lines, extent, sorted=ascends), x)
