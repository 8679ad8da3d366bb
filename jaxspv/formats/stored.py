"""The base class of sparse matrices and vectors: capacity, dtypes, `repr`."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import NUMPY, array_of, is_eager, on_accelerator, to_device, zeros
from .._core.html import card, pattern
from .._core.indices import INT32, INT64, index_dtype_for, with_index_dtype, with_pattern
from .._core.pytree import describe, is_concrete
from .._core.tuples import is_tuple
from ..algebra.masks import Mask, as_mask
from ..shapes import Bool, Int, Shaped, Values
from .methods import SciPyMethods
from .tuples import Tuples

NUMBERS = {bool, int, float, complex}


def first_slots(arrays: tuple[Any, ...], count: int) -> list[Any]:
    """The first `count` elements of concrete arrays."""
    if on_accelerator(*arrays):
        return _first(arrays, count)
    return to_device([in_slots(np.asarray(a)[:count], count, 0) for a in arrays], arrays[0])


_first = jax.jit(lambda arrays, count: [a[:count] for a in arrays], static_argnums=1)


def in_slots(array: Any, capacity: int, fill: Any, dtype: Any = None) -> Any:
    """The first `capacity` elements of an array, and `fill` behind them; NumPy's by NumPy, which
    has no program for each size, for `to_device`."""
    dtype, kept = array.dtype if dtype is None else dtype, array[:capacity]
    if not isinstance(array, np.ndarray):
        return jnp.pad(kept.astype(dtype), (0, capacity - kept.shape[0]), constant_values=fill)
    new = zeros((capacity, *kept.shape[1:]), dtype)
    new[: len(kept)], new[len(kept) :] = kept, fill
    return new


def as_values(x: Any, name: str = "values") -> Array:
    """`array_of`, but lists of numbers of 64 bits that do not fit raise too: see `narrow`."""
    if isinstance(x, list):  # of Python's numbers, or of NumPy's of one dtype
        kinds = {v.dtype if isinstance(v, NUMPY) else type(v) for v in jax.tree.leaves(x)}
        if kinds <= NUMBERS or (len(kinds) == 1 and all(isinstance(k, np.dtype) for k in kinds)):
            x = np.asarray(x)
    return array_of(name, x)


@dataclasses.dataclass(frozen=True)
class Edges:
    """The edges that a matrix was made of, in the caller's order.

    Attributes:
        number: of edges.
        by_rows: whether they are listed as COO and CSR list their slots, each once.
        slots: gives the slot of each, (number,); `nse` where it was dropped.
    """

    number: int
    by_rows: bool
    slots: Callable[[], Array]


class Stored(SciPyMethods):
    """A frozen dataclass of `nse` slots, of which the first `count` hold entries."""

    index_fields: ClassVar[tuple[str, ...]] = ()  # those of the index dtype; without: int32
    takes_arrays: ClassVar[bool] = False  # whether an entry may be an array: data (nse, heads)
    edges: Edges | None = None  # a field of matrices
    data: Shaped[Array, " nse *entry"]
    overflow: Bool[Array, ""]
    shape: tuple[int, ...]

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.data.dtype

    @property
    def index_dtype(self) -> np.dtype:
        """The dtype of the indices: int32, or int64 under x64."""
        found = [getattr(getattr(self, name), "dtype", INT32) for name in self.index_fields]
        return INT64 if INT64 in found else INT32

    def with_index_dtype(self, dtype: Any) -> Self:
        """The same entries with indices of another dtype, int32 or int64 (under x64).

        Raises:
            ValueError: int64 without `jax_enable_x64`; sizes that need int64.
            TypeError: another dtype; a format whose indices are int32.
        """
        if not self.index_fields and index_dtype_for(asked=dtype) != INT32:
            raise TypeError(f"the indices of {type(self).__name__} are int32.")
        return with_index_dtype(self, np.dtype(dtype))

    @property
    def ndim(self) -> int:
        """2 of a matrix, 1 of a vector."""
        return len(self.shape)

    @property
    def nse(self) -> int:
        """The static capacity: slots stored, padding included."""
        shape = self.data.shape
        return shape[0] if len(shape) == 1 else shape[len(shape) - 1 - len(self.entry_shape)]

    @property
    def entry_shape(self) -> tuple[int, ...]:
        """The shape of one entry: () of numbers, (heads,) of data (nse, heads)."""
        if not self.takes_arrays:
            return ()
        slots = np.ndim(getattr(self, self.index_fields[0]))  # under `jax.vmap` an axis more
        return tuple(np.shape(self.data)[max(slots, 1) :])

    @property
    def nnz(self) -> Int[Array, ""]:
        """`count`, under SciPy's name."""
        return self.count  # pyright: ignore[reportAttributeAccessIssue]

    def check_invariants(self) -> Self:
        """This object, if its indices are what its format promises; O(nse), values are not read.

        Objects that the library made keep their promises. Those built by hand from arrays may
        break them, and methods then disagree on the result.

        Raises:
            ValueError: an index is out of range, offsets descend or go beyond the slots, padding is
                not at the extent, a flag (`sorted`, `unique`) is wrong, or indices are traced.

        >>> import jaxspv as jsp
        >>> A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
        >>> A.check_invariants() is A
        True
        """
        raise NotImplementedError(type(self).__name__)

    def trim(self) -> Self:
        """The same entries in exactly the capacity they need; eager only.

        Eager results have spare capacity, so that programs are compiled for few sizes. Trim what is
        stored, printed, or passed to code that reads all of `data` and `indices`. O(nse); programs
        on the trimmed object are compiled for its size.

        Raises:
            ValueError: under jit, where the number of entries is unknown.

        >>> import jaxspv as jsp
        >>> x = jsp.vector_from_entries([1, 3], [2.0, 4.0], 5)
        >>> y = jsp.select(x, jsp.operators.valuegt, 3.0)
        >>> y.nse, y.trim().indices.tolist()
        (5, [3])
        """
        if not is_eager(with_pattern(self)):
            raise ValueError("`trim` needs concrete values: under jit the capacity is static.")
        count = int(self.count)  # pyright: ignore[reportAttributeAccessIssue]
        return self if count == self.nse else self.in_capacity(count)

    def in_capacity(self, nse: int) -> Self:
        """The concrete object in the capacity `nse`, which holds its entries."""
        raise NotImplementedError(type(self).__name__)

    def with_data(self, data: Values) -> Self:
        """The same pattern with new values in slot order, exactly `(nse,)` of them.

        COO, CSR and CSC also take `(nse, ...)`: an entry is then an array, such as one value a head
        of attention. They are kept by `T`, `asformat` among the three, `todense` (m, n, ...),
        `to_bcoo` and `trim`, and taken by `reduce`, `aggregate` and `softmax`; what takes one value
        an entry refuses them. Of a pytree whose leaves are such arrays, in any format, entries are
        tuples: see `Tuples`, what this then gives.

        Raises:
            ValueError: `data` has another shape; or the matrix was made of as many edges as it has
                slots and in another order, so that either may be meant.

        >>> import jax.numpy as jnp, jaxspv as jsp
        >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]])
        >>> A.with_data(jnp.ones((2, 8))).todense().shape
        (2, 2, 8)
        """
        new, made_of = self._with_slots(data), self.edges
        if made_of is None or made_of.number != self.nse or self.nse < 2:
            return new
        if not (made_of.by_rows and getattr(self, "format", None) in ("coo", "csr")):
            raise ValueError(
                "`data` may be meant two ways: this matrix was made of as many edges as it has "
                "slots, in another order. In the order of the edges: `with_edge_data(data)`; in "
                "that of the slots: `with_edge_data(jnp.arange(A.nse), data)`."
            )
        return new

    def _with_slots(self, data: Any) -> Self:
        """`with_data` of what is known to be in slot order."""
        if is_tuple(data):
            return Tuples.of(self, data)  # pyright: ignore[reportReturnType]
        data = as_values(data)
        fits = data.shape == getattr(self.data, "shape", data.shape)  # no shape: a placeholder
        arrays = self.takes_arrays and np.ndim(getattr(self, self.index_fields[0])) < 2
        if not fits and not (arrays and data.shape[:1] == (self.nse,)):
            hint = "Values in the order of the edges given go through `with_edge_data(values)`."
            if data.ndim > 1 and not self.takes_arrays and data.shape[0] == self.nse:
                hint = f"Arrays as entries are for CSR, CSC and COO, not {type(self).__name__}."
            more = f" or ({self.nse}, ...)" if arrays else ""
            raise ValueError(
                f"`data` must have shape ({self.nse},){more}, one value a slot; got {data.shape}."
                + (f" {hint}" if self.ndim == 2 else "")
            )
        return dataclasses.replace(self, data=data)  # pyright: ignore[reportArgumentType]

    def astype(self, dtype: Any) -> Self:
        """The same pattern with values of another dtype."""
        data = self.data.astype(dtype)
        return dataclasses.replace(self, data=data)  # pyright: ignore[reportArgumentType]

    def __invert__(self) -> Mask:
        """The complement of what is stored, as a mask by value."""
        return ~as_mask(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({describe(self.data)}, shape={self.shape})"

    def _repr_html_(self) -> str:
        """The HTML representation for notebooks: facts, and a picture of a matrix's pattern."""
        rows: dict[str, Any] = {"shape": self.shape, "values": describe(self.data)}
        picture = ""
        try:
            of: Any = self
            index: Any = of.rowcol() if of.ndim == 2 else (getattr(of, self.index_fields[0]),)
        except (AttributeError, IndexError, TypeError, ValueError):  # nothing but values, or less
            return card(repr(self), {})
        if is_concrete(*index, of.count, self.overflow):
            count = int(of.count)
            rows["entries"] = f"{count:,} in {self.nse:,} slots"
            places = math.prod(self.shape)
            rows["density"] = f"{count / places:.3g}" if places else "-"
            if bool(self.overflow):
                rows["overflow"] = "entries were dropped"
            if self.ndim == 2:
                picture = pattern(index[0], index[1], (self.shape[0], self.shape[1]))
        return card(type(self).__name__, rows, picture)
