"""The base class of storage formats: fields, conversion to and from COO, the registry."""

from __future__ import annotations

import abc
import dataclasses
import functools
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import (
    fitting,
    is_eager,
    known_while_tracing,
    on_accelerator,
    to_device,
    zeros,
)
from .._core.indices import LIMIT, check_dense, one_value, with_pattern
from .._core.loops import over_trailing
from .._core.pytree import is_concrete
from ..algebra.monoids import as_monoid, plus
from ..shapes import Indices, Int, Number, Shaped, Values
from .methods import Products, SciPyMatrixMethods
from .stored import Edges, Stored, as_values

if TYPE_CHECKING:
    from .coo import COO

LARGE = 2**30  # bytes of a dense array for which an eager call waits, and which is not NumPy's


FORMATS: dict[str, type[SparseMatrix]] = {}  # filled by `register`, read by tests and `asformat`
STRUCTURES: dict[str, type[SparseMatrix]] = {}  # formats that keep the structure and no values

_M = TypeVar("_M", bound="SparseMatrix")


def register(cls: type[_M]) -> type[_M]:
    """Class decorator: enters a format into `FORMATS` under its `format` name."""
    FORMATS[cls.format] = cls
    made = cls.__init__

    @functools.wraps(made)
    def init(self: Any, *args: Any, **kwargs: Any) -> None:
        try:
            made(self, *args, **kwargs)
        except TypeError as error:  # the arguments of SciPy's class of this name, say
            hint = "`jsp.from_scipy`, `jsp.from_edges` or `jsp.from_dense` makes a matrix"
            raise TypeError(f"{error}; {hint}") from None

    cls.__init__ = init
    return cls


def serves(
    *formats: type[SparseMatrix], reads: str, refuse: Callable[..., str | None] | None = None
) -> Callable[..., str | None]:
    """The `refuse` of an implementation that is for matrices of these formats, and further refuses.

    A fast path of an operation for a format is an implementation registered with it, before the
    one for any format; nothing else asks for a format by its class. The matrix is the second
    operand, after the semiring.
    """

    def refused(semiring: Any, A: SparseMatrix, *operands: Any, **static: Any) -> str | None:
        if not isinstance(A, formats):
            return f"it reads {reads}, and A is a {type(A).__name__}"
        return None if refuse is None else refuse(semiring, A, *operands, **static)

    return refused


class SparseMatrix(Stored, SciPyMatrixMethods, Products, abc.ABC):
    """An m-by-n matrix of which `nse` slots are stored and the first `count` hold entries.

    A stored entry is an entry whatever its value; the slots from `count` on are padding: their
    index along the compressed axis is at the extent, their `data` is arbitrary and never read into
    a result. Fields are checked by the functions that build one (`from_*`), not here: JAX puts
    tracers and placeholders in them.
    """

    format: ClassVar[str]
    compressed: ClassVar[int | None] = None  # the axis whose indices list their entries in a run
    shape: tuple[int, int]
    unique: bool

    @property
    @abc.abstractmethod
    def count(self) -> Int[Array, ""]:
        """The number of stored entries, a traced integer scalar."""

    @abc.abstractmethod
    def to_coo(self) -> COO:
        """The same entries as sorted triplets; traceable, O(nse log m)."""

    @classmethod
    @abc.abstractmethod
    def from_coo(cls, coo: COO) -> SparseMatrix:
        """The inverse of `to_coo`; `coo` is sorted by row, then column. Traceable."""

    @classmethod
    def from_matrix(cls, A: SparseMatrix) -> SparseMatrix:
        """`A` in this format, by `from_coo` unless the format has a shorter way. Traceable."""
        return cls.from_coo(A.to_coo())

    @abc.abstractmethod
    def rowcol(self) -> tuple[Int[Array, " nse"], Int[Array, " nse"]]:
        """Row and column of every slot, in slot order; (m, n) in padding. Traceable, O(nse + m)."""

    @property
    def row_sorted(self) -> bool:
        """Whether the rows that `rowcol` gives ascend; static."""
        return False

    @property
    @abc.abstractmethod
    def T(self) -> SparseMatrix:
        """The transpose, sharing every array."""

    @property
    def size(self) -> int:
        """`nse`."""
        return self.nse

    def with_edge_data(
        self: _M, slots: Indices, values: Values | None = None, dup: Any = None
    ) -> _M:
        """The same pattern with values in the order of the edges that it was made of.

        `A.with_edge_data(values)`, or `A.with_edge_data(slots, values)`: slot `slots[e]` holds the
        `dup`-sum of its edges' `values[e]`. O(edges + nse), differentiable by the values.

        Args:
            slots: int array (edges,), as `from_edges(..., return_slots=True)` gives it; a slot out
                of bounds drops its edge. Left out, what `from_edges` noted on the matrix. A
                transpose (but for ELL and SELL) has no such note, nor what was an argument or a
                result of a transformed function.
            values: array (edges,), or (edges, ...) where an entry is an array.
            dup: the monoid that combines edges of one slot; plus by default.

        Raises:
            ValueError: `slots` are left out and unknown, or shapes differ.

        >>> import jax.numpy as jnp, jaxspv as jsp
        >>> A = jsp.from_edges([1, 0], [0, 1], [5.0, 6.0], shape=(2, 2))
        >>> A.with_edge_data(jnp.array([7.0, 8.0])).todense().tolist()
        [[0.0, 8.0], [7.0, 0.0]]
        """
        if values is None:
            if self.edges is None:
                raise ValueError(
                    f"this {type(self).__name__} does not know its edges: it was not made of a "
                    "list of them (a transpose is not), or it is an argument of a transformed "
                    "function, which forgets them. Make it with `A, slots = from_edges(..., "
                    "return_slots=True)` and give `with_edge_data(slots, values)`, or let the "
                    "function capture it."
                )
            values = slots
            with known_while_tracing():
                slots = self.edges.slots()
        slots, values = as_values(slots, "slots"), as_values(values)
        if slots.ndim != 1 or slots.shape != values.shape[:1]:
            raise ValueError(
                "`slots` must be 1-D, and `values` (but for axes of an entry) of one shape; got "
                f"{slots.shape} and {values.shape}."
            )
        add = as_monoid(plus if dup is None else dup, "dup")
        data = over_trailing(lambda v: add.segment_reduce(v, slots, self.nse), values)
        return self._with_slots(data)

    def asformat(self, name: str) -> Any:
        """The same matrix in the format called `name` ("coo", "csr", "csc", "tiled", ...).

        "bittiled" keeps the structure alone: its values are True.

        Raises:
            ValueError: there is no such format, or it does not take arrays as entries; the matrix
                is a gradient, without a pattern.
        """
        known: dict[str, Any] = {**FORMATS, **STRUCTURES}
        if name not in known:
            raise ValueError(f"`name` must be one of {sorted(known)}; got {name!r}.")
        if name == self.format:
            return self
        with_pattern(self)
        if not known[name].takes_arrays:
            one_value(f"the format {name!r}", self)
        if is_eager(self) and {name, self.format} <= {"coo", "csr", "csc"}:
            converted = _converted(self, name)
        else:
            converted = known[name].from_matrix(self)
        return converted if self.edges is None else _noted(converted, self, name)

    def transpose(self) -> SparseMatrix:
        """`T`."""
        return self.T

    def todense(self, fill: Number = 0) -> Shaped[Array, "m n *entry"]:
        """A dense (m, n) array, (m, n, ...) of arrays; missing entries become `fill`.

        Raises:
            ValueError: the dtype does not hold `fill` (infinity where values are integers), or the
                array takes 2^63 bytes or more.
            jax.errors.JaxRuntimeError: there is not enough memory.
        """
        with_pattern(self)
        check_dense((*self.shape, *self.entry_shape), self.dtype)
        fill = fitting("fill", fill, self.dtype)
        if not is_eager(self, fill):
            return _dense(self, fill)
        if dense := _dense_on_host(self, fill):
            return dense[0]
        dense = _dense_program(self, fill)
        # To read an array that found no memory ends the process in JAX; to wait for it raises.
        return dense.block_until_ready() if dense.nbytes > LARGE else dense

    def to_scipy(self) -> Any:
        """The stored entries as the `scipy.sparse` array of the same format (host).

        SciPy has no float16 and no bfloat16: these become float32.
        """
        import scipy.sparse

        plain: Any = one_value("`to_scipy`", with_pattern(self))
        if not is_concrete(plain):
            raise ValueError("`to_scipy` needs concrete values: it copies to the host.")
        as_it_is = self.format in ("csr", "csc") and self.unique
        coo = plain if as_it_is else plain.to_coo()
        count = int(np.asarray(plain.indptr)[-1] if as_it_is else plain.count)
        data = np.asarray(coo.data)[:count].copy()
        if jnp.issubdtype(data.dtype, jnp.floating) and data.dtype.itemsize < 4:
            data = data.astype(np.float32)
        if as_it_is:
            make = getattr(scipy.sparse, f"{self.format}_array")
            indices = np.asarray(plain.indices)[:count].copy()
            return make((data, indices, np.array(plain.indptr)), shape=self.shape)
        row, col = (np.asarray(x)[:count] for x in (coo.row, coo.col))
        matrix = scipy.sparse.coo_array((data, (row, col)), shape=self.shape)
        return matrix.asformat(self.format if self.format in ("coo", "csr", "csc") else "csr")

    def to_bcoo(self) -> Any:
        """The same entries as `jax.experimental.sparse.BCOO`, padding included.

        Arrays as entries become its dense dimensions.
        """
        from jax.experimental import sparse

        coo = with_pattern(self).to_coo()
        valid = (coo.row < self.shape[0]).reshape(-1, *(1 for _ in self.entry_shape))
        indices = jnp.stack([coo.row, coo.col], axis=1)
        data = jnp.where(valid, coo.data, jnp.zeros((), coo.dtype))
        shape = (*self.shape, *self.entry_shape)
        return sparse.BCOO(
            (data, indices), shape=shape, indices_sorted=True, unique_indices=self.unique
        )

    def to_bcsr(self) -> Any:
        """The same entries as `jax.experimental.sparse.BCSR`, padding included."""
        from jax.experimental import sparse

        return sparse.BCSR.from_bcoo(self.to_bcoo())

    def block_until_ready(self: _M) -> _M:
        """Waits for every array."""
        return jax.block_until_ready(self)


def _noted(converted: Any, A: SparseMatrix, name: str) -> Any:
    """`A` in the format called `name`, with the note of the edges of A."""
    if converted is A or not hasattr(converted, "edges") or name not in FORMATS:
        return converted
    assert (edges := A.edges) is not None
    slots = lambda: slots_after(A, FORMATS[name], edges.slots())  # noqa: E731
    return dataclasses.replace(converted, edges=Edges(edges.number, edges.by_rows, slots))


def slots_after(A: SparseMatrix, kind: type[SparseMatrix], slots: Array) -> Array:
    """Slots of A after its conversion to a format; `nse`, before and after, for none."""
    numbers = jnp.arange(A.nse, dtype=A.index_dtype)
    source = dataclasses.replace(A, data=numbers, edges=None)  # pyright: ignore
    held = kind.from_matrix(source)
    number = jnp.where(held.rowcol()[0] < A.shape[0], held.data, A.nse + 1)
    places = jnp.arange(held.nse, dtype=numbers.dtype)
    moved = jnp.full(A.nse + 1, held.nse, numbers.dtype).at[number].set(places, mode="drop")
    return moved[jnp.minimum(slots, A.nse)]


# Eager conversions as one program: loops outside of jit are compiled anew at each call.
_converted = jax.jit(lambda A, name: FORMATS[name].from_matrix(A), static_argnums=1)


def _dense(A: SparseMatrix, fill: Any) -> Array:
    """`A.todense(fill)`, `fill` a number of its dtype."""
    coo = A.to_coo()
    dense = jnp.full((*A.shape, *A.entry_shape), fill, A.dtype)
    if A.unique:
        return dense.at[coo.row, coo.col].set(coo.data, mode="drop")
    m, n = A.shape
    stored = jnp.zeros(A.shape, bool).at[coo.row, coo.col].set(True, mode="drop")
    if m * n > LIMIT:  # places have no number in int32
        at = jnp.zeros_like(dense).at[coo.row, coo.col]
        total = (at.max if dense.dtype == bool else at.add)(coo.data, mode="drop")
    else:
        flat = jnp.where(coo.row < m, coo.row * n + coo.col, m * n)
        total = over_trailing(lambda v: plus.segment_reduce(v, flat, m * n), coo.data)
    stored = stored.reshape(m, n, *(1 for _ in A.entry_shape))
    return jnp.where(stored, total.reshape(dense.shape), dense)


_dense_program = jax.jit(_dense)  # eagerly one program


def _dense_on_host(A: Any, fill: Any) -> tuple[Array] | None:
    """The same in the memory of a host by NumPy, which compiles nothing."""
    if A.format not in ("coo", "csr", "csc") or not A.unique or A.entry_shape:
        return None
    if math.prod(A.shape) * A.dtype.itemsize > LARGE or on_accelerator(*jax.tree.leaves(A)):
        return None
    row, col, value = entries_on_host(A)
    if row.size != col.size:  # a broken matrix
        return None
    inside = (row >= 0) & (row < A.shape[0]) & (col >= 0) & (col < A.shape[1])
    try:
        dense = zeros(A.shape, A.dtype)  # pages that are there once something is written
    except MemoryError:
        return None  # XLA says so
    if any(np.asarray(fill).tobytes()):  # -0 is another number
        dense[...] = fill
    dense[row[inside], col[inside]] = value[inside]
    return (to_device(dense, A.data),)


def entries_on_host(A: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, value) of a COO, CSR or CSC in the memory of a host, in its order; by NumPy,
    which has no program for each size. Slots of a COO that hold no entry are listed too."""
    if A.format == "coo":
        return np.asarray(A.row), np.asarray(A.col), np.asarray(A.data)
    indptr = np.asarray(A.indptr)
    lengths = np.maximum(indptr[1:] - indptr[:-1], 0)  # of a broken matrix too
    major = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
    minor, value = (np.asarray(x)[: major.size] for x in (A.indices, A.data))
    return (major, minor, value) if A.format == "csr" else (minor, major, value)


CONVERTERS: dict[str, Callable[[Any], Any]] = {}  # module of a type -> how; `ops/install.py`


def ours(A: Any) -> Any:
    """A matrix of jaxspv made of one of SciPy, `jax.experimental.sparse` or NetworkX; else `A`.

    It is converted at every call: convert it yourself before calling more than once.
    """
    for kind in type(A).__mro__:
        for module, convert in CONVERTERS.items():
            if f"{kind.__module__}.".startswith(f"{module}."):
                return convert(A)
    return A
