"""SpMV for any semiring over rows in bins: each block reduced along its width, level by level.

    y[i] = add_j mul(A[i, j], x[j])        (rows without entries: the identity of add)

No value is ever combined with one of another row, so inf and NaN stay where they belong (a
difference of prefix sums would spread them). The term of a padding slot is replaced by the
identity; what mul makes of it is thrown away.

Cost: one gather of x per slot, one gather per row, no atomics.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from .bins import RowBins
from .plan import Bin


def spmv(
    layout: RowBins,
    values: Any,
    x: Any,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    reduce: Callable[[Any, int], Any] | None = None,
) -> Any:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]).

    values: (slots,) in the order of the layout (`RowBins.arrange`), or one scalar for all entries.
    x: (n_cols,), or (n_cols, B) for B vectors, or a pytree of such arrays, which `mul` gets
    gathered and `combine` gets as terms: (value, index) pairs find the winning column.
    identity: that of `combine` in the dtype `mul` returns, a pytree like the terms.
    reduce(terms, axis): the reduction of a block if the caller has a better one than `lax.reduce`.
    Returns (n_rows,), (n_rows, B), or a pytree of them. Traceable in values and x; O(slots).
    """
    n_cols = layout.shape[1]
    x = jax.tree.map(jnp.asarray, x)
    if layout.order is not None:
        x = _take(x, layout.order)
    batch = jax.tree.leaves(x)[0].shape[1:]
    values = jnp.asarray(values)

    def terms(position: slice, block: tuple[int, ...], full: bool) -> Any:
        columns = layout.columns[position].reshape(block)
        entry = values[position].reshape(block + values.shape[1:]) if values.ndim else values
        entry = entry.reshape(entry.shape + (1,) * (len(block + batch) - entry.ndim))
        entry = jnp.broadcast_to(entry, block + batch)
        operand = _take(x, columns if full else jnp.minimum(columns, n_cols - 1))
        product = jax.tree.map(lambda t: jnp.broadcast_to(t, block + batch), mul(entry, operand))
        if full:
            return product
        present = (columns < n_cols).reshape(block + (1,) * len(batch))
        return jax.tree.map(lambda t, i: jnp.where(present, t, _like(i, t)), product, identity)

    if reduce is None:
        reduce = functools.partial(_reduce, combine=combine, identity=identity)
    results = _fold(layout.bins[0], terms, combine, reduce)
    empty = _empty_result(mul, values, x, identity)
    finished = list(results)
    for inputs, bins in zip(layout.folds, layout.bins[1:], strict=True):
        below = _concatenate([*results, empty])

        def partial_results(position, block, full, inputs=inputs, below=below):
            return _take(below, inputs[position].reshape(block))

        results = _fold(bins, partial_results, combine, reduce)
        finished += results
    if layout.place is None:
        return _concatenate(finished) if finished else _take(empty, slice(0))
    return _take(_concatenate([*finished, empty]), layout.place)


def _fold(
    bins: tuple[Bin, ...],
    terms: Callable[[slice, tuple[int, ...], bool], Any],
    combine: Callable[[Any, Any], Any],
    reduce: Callable[[Any, int], Any],
) -> list[Any]:
    """The results of each block; `terms(slice of the slots, shape, full)` yields what to fold."""
    results, begin = [], 0
    for width, count, least, by_column in bins:
        if by_column:
            columns = [
                terms(slice(begin + k * count, begin + (k + 1) * count), (count,), k < least)
                for k in range(width)
            ]
            results.append(functools.reduce(combine, columns))
        else:
            block = slice(begin, begin + width * count)
            results.append(reduce(terms(block, (count, width), least == width), 1))
        begin += width * count
    return results


def _reduce(terms: Any, axis: int, *, combine: Callable, identity: Any) -> Any:
    return lax.reduce(terms, jax.tree.map(_like, identity, terms), combine, (axis,))


def _take(tree: Any, index: jax.Array | slice) -> Any:
    """Rows of every leaf; the index is in bounds by construction."""
    return jax.tree.map(lambda leaf: leaf.at[index].get(mode="promise_in_bounds"), tree)


def _concatenate(trees: list[Any]) -> Any:
    return jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *trees)


def _like(value: Any, term: jax.Array) -> jax.Array:
    return jnp.asarray(value, term.dtype)


def _empty_result(mul: Callable, values: jax.Array, x: Any, identity: Any) -> Any:
    """The identity as one more result, (1, ...) per leaf of the terms."""
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct((1, *leaf.shape[1:]), leaf.dtype), x)
    shape = jax.tree.leaves(one)[0].shape
    term = jax.eval_shape(mul, jax.ShapeDtypeStruct(shape, values.dtype), one)
    return jax.tree.map(lambda t, i: jnp.full(shape, i, t.dtype), term, identity)
