"""Sparse matrices and vectors whose entries are tuples: their places, and the values by number."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import fitting, known_while_tracing, on_accelerator, to_device
from .._core.forms import ON_TUPLES
from .._core.pytree import describe, pytree_dataclass, transient
from .._core.tuples import choose, take
from ..shapes import Int


@pytree_dataclass
class Tuples:
    """A sparse matrix or vector whose entries are pytrees: tuples, records, small arrays.

    `A.with_data(values)` makes one of a matrix or vector in any format, of values whose leaves have
    one row for each slot. Places are computed on numbers, values are gathered where they are
    joined: what keeps values as they are (`T`, formats, masks, extraction) moves numbers alone.

    Attributes:
        places: a matrix or `SparseVector` with, as int32 values, the row of each entry in `values`.
        values: a pytree of arrays that share their first axis.
        in_order: whether entry e has the value of number e; known where this object was made.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    >>> A.with_data((jnp.array([1.0, 2.0]), jnp.array([7, 8])))
    Tuples((float32[2], int32[2]), CSR, shape=(2, 2))
    """

    __jaxspv_functions__: ClassVar[dict[str, Callable[..., Any]]] = ON_TUPLES
    places: Any
    values: Any
    in_order: bool = transient(default=False)

    @classmethod
    def of(cls, places: Any, values: Any) -> Tuples:
        """With values in the order of the slots. Refuses leaves without a row for each slot, and
        matrices in which a place may come twice."""
        values = jax.tree.map(jnp.asarray, values)
        if wrong := [v.shape for v in jax.tree.leaves(values) if v.shape[:1] != (places.nse,)]:
            raise ValueError(
                f"`data` must have leaves ({places.nse}, ...), one row a slot; got shapes {wrong}."
            )
        if not places.unique:
            raise ValueError("entries that are tuples need a matrix that lists each place once.")
        with known_while_tracing():  # a pattern that is known stays known
            if on_accelerator(*jax.tree.leaves(places)):
                numbers = jnp.arange(places.nse, dtype=jnp.int32)
            else:  # by NumPy, which has no program for each size
                numbers = to_device(np.arange(places.nse, dtype=np.int32))
        note = {"edges": None} if getattr(places, "edges", None) is not None else {}
        return cls(dataclasses.replace(places, data=numbers, **note), values, in_order=True)

    def __getattr__(self, name: str) -> Any:
        if name in ("shape", "ndim", "nse", "nnz", "count", "overflow", "format", "index_dtype"):
            return getattr(self.places, name)
        raise AttributeError(f"`Tuples` has no attribute {name!r}.")

    @property
    def data(self) -> Any:
        """The values in the order of the slots; arbitrary in padding."""
        rows = {v.shape[0] for v in jax.tree.leaves(self.values)}
        as_they_are = self.in_order and rows == {self.places.nse}
        return self.values if as_they_are else take(self.values, self.places.data)

    @property
    def T(self) -> Tuples:
        """The transpose, sharing every array."""
        return dataclasses.replace(self, places=self.places.T)

    def with_data(self, data: Any) -> Any:
        """The same pattern with other values, in the order of the slots."""
        return self.places.with_data(data)

    def asformat(self, name: str) -> Tuples:
        """The same matrix in another format."""
        kept = self.in_order and name == self.format
        return dataclasses.replace(self, places=self.places.asformat(name), in_order=kept)

    def trim(self) -> Tuples:
        """The same entries in exactly the capacity they need; eager only."""
        return dataclasses.replace(self, places=self.places.trim())

    def todense(self, fill: Any = 0) -> Any:
        """Arrays (m, n, ...) or (n, ...); `fill`, a number or a value, where there is no entry."""
        number = self.places.todense(-1)
        found = take(self.values, number)
        if jax.tree.structure(fill) == jax.tree.structure(0):
            fill = jax.tree.map(lambda _: fill, found)
        fills = jax.tree.map(lambda f, v: fitting("fill", f, v.dtype), fill, found)
        return choose(number >= 0, found, fills)

    def valid(self) -> Int[Array, " nse"]:
        """(nse,) bool: which slots hold an entry."""
        if self.places.ndim == 1:
            return self.places.valid()
        return self.places.rowcol()[0] < self.places.shape[0]

    def __repr__(self) -> str:
        values = repr(jax.tree.map(describe, self.values)).replace("'", "")
        return f"Tuples({values}, {type(self.places).__name__}, shape={self.places.shape})"
