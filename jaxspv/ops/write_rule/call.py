"""Running an operation: one compiled program from operands to result, then its capacity.

An operation is a rule, `rule(*operands, **static) -> Entries` (or a `Dense` vector), and the
options that every operation has. Rules compute indices in integers and move values by gather and
where, so both modes of differentiation and vmap go through them.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import operator
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.eager.arrays import array_of, is_eager, narrow, on_accelerator, to_device
from ..._core.eager.programs import on_leaves
from ..._core.indices import alike, eager_capacity, one_value, widened, with_index_dtype
from ..._core.pytree import is_concrete
from ...algebra.masks import Mask
from ...formats import SparseMatrix
from ...formats.base import ours
from ...formats.stored import Stored, in_slots
from ...graph import Graph, linked
from .entries import entries_of
from .write import PLAIN, Options, as_accum, write_matrix, write_vector


class Dense(NamedTuple):
    """A dense vector; `present` is True where there is an entry (None: everywhere)."""

    values: Array
    present: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the vector."""
        return self.values.shape


class _How(NamedTuple):
    """The static options of writing a result."""

    replace: bool
    format: str
    dense: bool
    nse: int | None
    keeps: bool
    on_host: bool = False


def call(
    rule: Callable[..., Any],
    operands: tuple[Any, ...],
    options: Options,
    *,
    static: dict[str, Any] | None = None,
    format: str = "csr",
    fill: Any = None,
    dense: bool = False,
    keeps: bool = False,
) -> Any:
    """Runs a rule and writes its result under the options.

    Args:
        rule: a function of a module, so that equal calls share a compilation.
        operands: pytrees; operators are among them.
        static: hashable keyword arguments of the rule.
        format: of a matrix result without `out`.
        fill: what stands for a missing entry in a dense result; None: 0.
        dense: a `Dense` result without `out` stays dense, else it becomes a SparseVector.
        keeps: the rule gives as many entries as its first operand has, in the same capacity.

    Indices of the result have the common dtype of those of operands and `out`, or int64 where its
    sizes need it. Eagerly all of this is one program, and the capacity that of `settled`.

    Raises:
        ValueError: `nse` is too small for concrete values; says the size needed.
    """
    out, mask = as_out(options.out), as_operand_mask(options.mask)
    accum = as_accum(options.accum)
    named = tuple(sorted(static.items())) if static else ()
    keeps = keeps and out is None and mask is None and options.nse is None
    format = format if format in PLAIN else "csr"
    given = (operands, out, mask, accum, fill)
    leaves, tree = jax.tree.flatten((given,))
    on_host = not on_accelerator(*leaves)
    how = _How(bool(options.replace), format, dense, options.nse, keeps, on_host)
    if not is_eager(*leaves):
        return _computed(rule, named, how, given, how.nse)
    if not keeps:
        least = tuple(map(with_least_capacity, operands)), with_least_capacity(out)
        if least[1] is not out or any(map(operator.is_not, least[0], operands)):
            leaves, tree = jax.tree.flatten(((*least, mask, accum, fill),))
    result, count = on_leaves(_steps, leaves, tree, rule=rule, named=named, how=how)
    if count is None and (keeps or not on_host):
        return result
    return settled(result, options.nse, count)


def _computed(rule, static, how, given, nse):
    operands, out, mask, accum, fill = given
    dtype, (out, *same) = alike(out, *operands)
    options = Options(with_index_dtype(mask, dtype), accum, out, how.replace, nse)
    T = rule(*same, **dict(static))
    return widened(_write(T, options, fill, how), dtype)


def _steps(given, *, rule, named, how):
    return with_capacity(_computed(rule, named, how, given, None), how.nse, how.keeps, how.on_host)


def _write(T, options, fill, how):
    if len(T.shape) == 2:
        return write_matrix(T, options, None if options.out is not None else how.format)
    values, present = T if isinstance(T, Dense) else (T, None)
    fill = 0 if fill is None else fill
    if options.out is None and not how.dense:
        values = entries_of(values)
    return write_vector(values, options, fill, present)


def as_out(x: Any) -> Any:
    """`out=` as a sparse object or an array."""
    if x is None:
        return x
    x = stored_or_same(x)
    return x if isinstance(x, (Stored, jax.Array)) else array_of("out", x)


def as_operand_mask(mask: Any) -> Mask | None:
    """`mask=` as a `Mask` of a sparse object or of an array."""
    if mask is None:
        return None
    mask = mask if isinstance(mask, Mask) else Mask(mask)
    source = stored_or_same(mask.source)
    if not isinstance(source, (Stored, jax.Array)):
        source = array_of("mask", source)
    same = source is mask.source
    return one_value("a mask", mask if same else dataclasses.replace(mask, source=source))


def matrix(name: str, A: Any) -> SparseMatrix:
    """`A` as a sparse matrix; the matrix of a Graph. Raises TypeError: it is none."""
    A = linked(A).out if isinstance(A, Graph) else A if isinstance(A, SparseMatrix) else ours(A)
    if not isinstance(A, SparseMatrix):
        raise TypeError(
            f"`{name}` must be a sparse matrix or a Graph of jaxspv; got {type(A).__name__}. "
            "Make one with `from_dense`, `from_scipy`, `from_edges`, ..."
        )
    return _in_enabled_bits(A)


def _in_enabled_bits(x: Any) -> Any:
    """A sparse object that was made while x64 was enabled, in 32 bits without it: as JAX does with
    arrays, but before a program asks for 64 bits, which JAX warns of."""
    dtype = getattr(x, "dtype", None)
    if not isinstance(dtype, np.dtype) or dtype.itemsize < 8 or jax.config.jax_enable_x64:  # pyright: ignore[reportAttributeAccessIssue]
        return x
    enabled = jax.dtypes.canonicalize_dtype(dtype)
    return x if enabled == dtype else x.astype(enabled)


def stored_or_same(x: Any) -> Any:
    """The matrix of a Graph, a tiled vector, a matrix of SciPy and others as a sparse object of
    jaxspv; anything else as it is."""
    if isinstance(x, (Stored, jax.Array)):
        return x
    x = linked(x).out if isinstance(x, Graph) else ours(x)
    return x.to_sparse() if hasattr(x, "to_sparse") else x


def operand(name: str, x: Any) -> Any:
    """A sparse matrix, a SparseVector, or a dense vector. Raises TypeError: it is something
    else."""
    x = stored_or_same(x)
    if isinstance(x, Stored):
        return _in_enabled_bits(x)
    made = array_of(name, x) if isinstance(x, (np.ndarray, list, tuple)) else x
    if not isinstance(made, jax.Array) or made.ndim != 1:
        shape = getattr(made, "shape", ())
        raise TypeError(
            f"`{name}` must be a sparse matrix, a SparseVector or a dense vector; got "
            f"{type(x).__name__}{f' of shape {shape}' if shape else ''}."
        )
    return made


def beyond(x: Any, dtype: Any) -> bool:
    """Whether x is an integer of Python or NumPy that no integer, no boolean of `dtype` equals."""
    whole = type(x) is int or isinstance(x, np.integer)
    if not whole or (ends := _ends(dtype)) is None:
        return False
    return not ends[0] <= int(x) <= ends[1]


@functools.cache
def _ends(dtype: Any) -> tuple[int, int] | None:
    """The least and the greatest integer or boolean of a dtype; None of any other."""
    if jnp.issubdtype(dtype, jnp.inexact):
        return None
    if jnp.issubdtype(dtype, jnp.bool_):
        return 0, 1
    return int(jnp.iinfo(dtype).min), int(jnp.iinfo(dtype).max)


def number(name: str, x: Any, dtype: Any) -> Any:
    """A scalar for values of `dtype`; integers that JAX's default does not hold take it. Raises
    TypeError, ValueError: it is no number; such an integer does not fit `dtype`, or NumPy's 64 bits
    do not fit 32."""
    if isinstance(x, np.generic) and x.dtype.kind in "iu":
        return narrow(np.asarray(x), name)
    if not isinstance(x, (int, float, complex)):
        return array_of(name, x)
    if not beyond(x, jax.dtypes.canonicalize_dtype(int)):
        return x
    if beyond(x, dtype):
        raise ValueError(f"`{name}` must fit {jnp.dtype(dtype)}; got {x}.")
    return float(x.real) if jnp.issubdtype(dtype, jnp.inexact) else np.asarray(x, dtype)


def is_dense(x: Any) -> bool:
    """Whether a checked operand is a dense vector."""
    return not isinstance(x, Stored)


def format_of(*operands: Any) -> str:
    """The format of the first matrix among the operands."""
    return next((x.format for x in operands if isinstance(x, SparseMatrix)), "csr")


# ---- Capacity of eager results: a bucket, by what is known before or after the program ----

SMALL = 1 << 16  # slots that are padded and cut on the host


def with_least_capacity(x: Any) -> Any:
    """A concrete vector in the least capacity of eager results or more: one program for all."""
    if not isinstance(x, Stored) or x.ndim != 1:
        return x
    capacity = eager_capacity(0, *x.shape)
    return x if x.nse >= capacity or on_accelerator(x.data) else resized(x, capacity)


def with_capacity(
    result: Any, nse: int | None, keeps: bool = False, on_host: bool = False
) -> tuple[Any, Array | None]:
    """The result in the capacity in which it leaves the program, and the number of its entries.

    Capacity: `nse` if given, else unchanged if `keeps`, else the bucket of the upper bound; a small
    one `on_host` is left to `settled`: there a program is compiled longer than it runs. The count
    is None if it is not used, or if the host can read it from the result. A small bucket that holds
    every possible result is left without reading the count; a larger one is cut by `settled`.
    """
    if not isinstance(result, Stored):
        return result, None
    found: Any = result
    read = on_host and found.ndim == 2 and found.compressed is not None
    count = None if read else found.count
    if nse is not None:
        return resized(found, nse), count
    if keeps:
        return found, None
    capacity = eager_capacity(found.nse, math.prod(found.shape))
    if on_host:
        return found if capacity <= SMALL else resized(found, capacity), count
    least = eager_capacity(0, math.prod(found.shape))
    return resized(found, capacity), count if capacity > least else None


def settled(result: Any, nse: int | None, count: Any = None) -> Any:
    """An eager result in its final capacity: `nse`, or the bucket of its number of entries.

    count: that number, if known; else it is read from the result. Raises ValueError: `nse` entries
    are too few; says the size needed.
    """
    if not isinstance(result, Stored) or not is_concrete(result):
        return result
    size = math.prod(result.shape)
    if nse is None and result.nse == eager_capacity(0, size):
        return result  # the least bucket
    total = _counted(result) if count is None else int(jax.block_until_ready(count))
    if nse is not None and total > nse:
        raise ValueError(f"`nse` must be at least {total} to hold the result; got {nse}.")
    capacity = eager_capacity(total, size) if nse is None else nse
    return result.in_capacity(capacity) if capacity < result.nse else resized(result, capacity)


def _counted(x: Any) -> int:
    """`int(x.count)`; of a compressed matrix on the host by NumPy, without a program.

    To read an array of a program that found no memory waits for ever in JAX; to wait for it raises.
    """
    if x.ndim == 2 and x.compressed is not None and not on_accelerator(x.indptr):
        return int(np.asarray(x.indptr.block_until_ready())[-1])
    return int(x.count.block_until_ready())


def resized(x: Any, nse: int) -> Any:
    """A COO, CSR, CSC or SparseVector in another capacity; entries beyond it are cut. Traceable."""
    if x.nse == nse:
        return x
    on_host = is_concrete(x) and not on_accelerator(x.data)  # NumPy has no program for each size

    def fit(array, fill):
        return in_slots(np.asarray(array) if on_host else array, nse, fill)

    new: dict[str, Any] = {"data": fit(x.data, 0)}
    if hasattr(x, "row"):
        new |= {"row": fit(x.row, x.shape[0]), "col": fit(x.col, x.shape[1])}
    else:
        extent = x.shape[0] if getattr(x, "format", "csc") == "csc" else x.shape[1]
        new["indices"] = fit(x.indices, extent)
    return dataclasses.replace(x, **to_device(new, x.data))
