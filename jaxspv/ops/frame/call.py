"""How an operation runs: one compiled program from the operands to what is written, then its size.

An operation is a kernel, `kernel(*operands, **static) -> Entries` (or a `Dense` vector), and the
options that every operation has. Kernels compute indices in integers and move values by gather and
where, so both modes of differentiation and vmap go through them.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.compilation import is_eager, to_device
from ..._core.indices import alike, widened, with_index_dtype
from ..._core.pytree import is_concrete
from ...formats import COO, CSC, CSR, SparseMatrix
from ...formats.vector import SparseVector
from ...graph import Graph
from ...masks import Mask, as_mask
from .entries import entries_of, keep
from .write import PLAIN, as_accum, write_matrix, write_vector


class Dense(NamedTuple):
    """A dense vector of which `present` tells the entries (None: all)."""

    values: Array
    present: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Of the vector."""
        return self.values.shape


@dataclasses.dataclass(frozen=True)
class Options:
    """What every operation takes: `mask, accum, out, replace, nse`; see docs/graphblas.md."""

    mask: Any = None
    accum: Any = None
    out: Any = None
    replace: bool = False
    nse: int | None = None

    def __post_init__(self):
        if not isinstance(self.replace, (bool, np.bool_)):
            raise TypeError(f"`replace` must be True or False; got {self.replace!r}.")
        nse = self.nse
        if nse is not None and (not isinstance(nse, (int, np.integer)) or nse < 0):
            raise ValueError(f"`nse` must be a non-negative integer; got {nse!r}.")


def call(
    kernel: Callable[..., Any],
    operands: tuple[Any, ...],
    options: Options,
    *,
    static: dict[str, Any] | None = None,
    format: str = "csr",
    fill: Any = 0,
    dense: bool = False,
) -> Any:
    """Runs a kernel and writes its result under the options.

    Args:
        kernel: a function of a module, so that equal calls share a compilation.
        operands: pytrees; operators are among them.
        static: hashable keyword arguments of the kernel.
        format: of a matrix result without `out`.
        fill: what stands for a missing entry in a dense result.
        dense: a `Dense` result without `out` stays dense, else it becomes a SparseVector.

    Indices of the result have the common dtype of those of operands and `out`, or int64 where its
    sizes need it.

    Raises:
        ValueError: `nse` is too small for concrete values; says the size needed.
    """
    out, mask = _operand(options.out), _mask(options.mask)
    accum = as_accum(options.accum)
    dtype, (out, *same) = alike(out, *operands)
    operands, mask = tuple(same), with_index_dtype(mask, dtype)
    eager = is_eager(operands, out, mask, accum)
    named = tuple(sorted((static or {}).items()))
    format = format if format in PLAIN else "csr"
    how = {"replace": bool(options.replace), "format": format, "dense": dense}
    if eager:  # two programs: a kernel is compiled once, whatever its result is written into
        T = _computed(kernel, named, operands)
        result = _written(T, out, mask, accum, fill, nse=None, **how)
        return widened(settled(result, options.nse), dtype)
    T = kernel(*operands, **dict(named))
    return widened(_write(T, out, mask, accum, fill, nse=options.nse, **how), dtype)


@functools.partial(jax.jit, static_argnums=(0, 1))
def _computed(kernel, static, operands):
    return kernel(*operands, **dict(static))


def _write(T, out, mask, accum, fill, *, replace, nse, format, dense):
    options = {"out": out, "mask": mask, "accum": accum, "replace": replace, "nse": nse}
    if len(T.shape) == 2:
        return write_matrix(T, format=None if out is not None else format, **options)
    if not isinstance(T, Dense):
        return write_vector(T, fill=fill, **options)
    if out is None and not dense:
        e = entries_of(T.values)
        return write_vector(e if T.present is None else keep(e, T.present), **options)
    return write_vector(T.values, present=T.present, fill=fill, **options)


_written = jax.jit(_write, static_argnames=("replace", "nse", "format", "dense"))


def _operand(x: Any) -> Any:
    return x if x is None or isinstance(x, (SparseMatrix, SparseVector)) else jnp.asarray(x)


def _mask(mask: Any) -> Mask | None:
    if mask is None:
        return None
    mask = as_mask(mask)
    sparse = isinstance(mask.source, SparseMatrix) or hasattr(mask.source, "todense")
    return mask if sparse else dataclasses.replace(mask, source=jnp.asarray(mask.source))


def settled(result: Any, nse: int | None) -> Any:
    """An eager result in the capacity it needs, or in `nse`."""
    if not isinstance(result, (SparseMatrix, SparseVector)) or not is_concrete(result):
        return result
    count = _counted(result)
    if nse is not None and count > nse:
        raise ValueError(f"`nse` must be at least {count} to hold the result; got {nse}.")
    return resized(result, count if nse is None else nse)


def _on_host(array: Any) -> bool:
    return not isinstance(array, jax.Array) or all(d.platform == "cpu" for d in array.devices())


def _counted(x: Any) -> int:
    """`int(x.count)`; of a matrix on the host by NumPy, without a program for every size."""
    if isinstance(x, (CSR, CSC)) and _on_host(x.indptr):
        return int(np.asarray(x.indptr)[-1])
    if isinstance(x, COO) and _on_host(x.row):
        return int(np.count_nonzero(np.asarray(x.row) < x.shape[0]))
    return int(x.count)


def resized(x: Any, nse: int) -> Any:
    """A COO, CSR, CSC or SparseVector in another capacity; what does not fit is cut."""
    if x.nse == nse:
        return x

    def cut(array, fill):
        padding = (0, max(nse - array.shape[0], 0))
        if _on_host(array):  # NumPy has no program to compile for every size
            return to_device(np.pad(np.asarray(array)[:nse], padding, constant_values=fill))
        return jnp.pad(array[:nse], padding, constant_values=fill)

    new: dict[str, Any] = {"data": cut(x.data, 0)}
    if isinstance(x, COO):
        new |= {"row": cut(x.row, x.shape[0]), "col": cut(x.col, x.shape[1])}
    else:
        extent = x.shape[0] if getattr(x, "format", "csc") == "csc" else x.shape[1]
        new["indices"] = cut(x.indices, extent)
    return dataclasses.replace(x, **new)


def matrix(name: str, A: Any) -> SparseMatrix:
    """`A` as a sparse matrix; the matrix of a Graph.

    Raises:
        TypeError: it is none.
    """
    if isinstance(A, Graph):
        return A.out
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"`{name}` must be a sparse matrix of jaxspv; got {type(A).__name__}.")
    return A


def operand(name: str, x: Any) -> Any:
    """A sparse matrix, a SparseVector, or a dense vector.

    Raises:
        TypeError: it is something else.
    """
    if isinstance(x, Graph):
        return x.out
    if isinstance(x, (SparseMatrix, SparseVector)):
        return x
    if hasattr(x, "to_sparse"):
        return x.to_sparse()
    if not isinstance(x, (jax.Array, np.ndarray, list, tuple)) or np.ndim(x) != 1:  # pyright: ignore
        raise TypeError(
            f"`{name}` must be a sparse matrix, a SparseVector or a dense vector; got "
            f"{type(x).__name__}{'' if np.ndim(x) == 0 else f' of shape {np.shape(x)}'}."
        )
    return jnp.asarray(x)


def is_dense(x: Any) -> bool:
    """Whether a checked operand is a dense vector."""
    return not isinstance(x, (SparseMatrix, SparseVector))


def format_of(*operands: Any) -> str:
    """The format of the first matrix among the operands."""
    return next((x.format for x in operands if isinstance(x, SparseMatrix)), "csr")
