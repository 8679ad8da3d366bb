"""Masks: which places of a result may be written, by value or by structure, complemented or not."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from .._core.eager.arrays import array_of
from .._core.pytree import describe, pytree_dataclass, static
from ..shapes import Bool, Sparse


@pytree_dataclass
class Mask:
    """What `mask=` understands: a source and how to read it, as in the GraphBLAS C API.

    Attributes:
        source: a sparse vector or matrix, or a boolean array.
        structural: a stored entry allows its place whatever its value; otherwise a true value does.
        complement: allow exactly the other places.

    >>> import jax.numpy as jnp
    >>> (~Mask(jnp.array([True, False]))).allowed().tolist()
    [False, True]
    >>> ~Mask(jnp.array([True, False]))
    Mask(not values of bool[2])
    """

    source: Any
    structural: bool = static(default=False)
    complement: bool = static(default=False)

    def __invert__(self) -> Mask:
        return Mask(self.source, self.structural, not self.complement)

    def __repr__(self) -> str:
        read = "structure" if self.structural else "values"
        source = describe(self.source) if hasattr(self.source, "dtype") else "?"
        if hasattr(self.source, "todense"):
            source = repr(self.source)
        return f"Mask({'not ' if self.complement else ''}{read} of {source})"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the result it fits."""
        return self.source.shape

    def allowed(self) -> Bool[Array, "*shape"]:
        """A dense boolean array: True where the result may be written. O(size)."""
        if hasattr(self.source, "todense"):
            if self.structural and len(self.shape) == 1:
                return self.source.structure(complement=self.complement)
            if self.structural:
                true = jnp.ones(self.source.nse, bool)
                inside = dataclasses.replace(self.source, data=true).todense(False)
            else:
                inside = self.source.astype(bool).todense(False)
        else:
            inside = jnp.asarray(self.source).astype(bool)
        return ~inside if self.complement else inside


def structure(source: Sparse) -> Mask:
    """A mask by structure: every stored entry of `source` allows its place.

    Raises:
        TypeError: it is an array, which stores every place.

    >>> from jaxspv import vector_from_entries
    >>> v = vector_from_entries([1], [0.0], 3)
    >>> (~structure(v)).allowed().tolist()
    [True, False, True]
    """
    if isinstance(source, Mask):
        return dataclasses.replace(structure(source.source), complement=source.complement)
    if isinstance(source, (Array, np.ndarray, list, tuple)):
        raise TypeError("an array stores every place: give it as the mask itself, by value.")
    source = getattr(source, "places", source)  # of entries that are tuples
    if getattr(source, "entry_shape", ()):
        source = source.with_data(jnp.ones(source.nse, bool))
    return Mask(source, structural=True)


def as_mask(mask: Any) -> Mask:
    """A `Mask` as it is; a sparse object or a boolean array as a mask by value; lists as arrays."""
    mask = mask if isinstance(mask, Mask) else Mask(mask)
    listed = not hasattr(mask.source, "shape")
    return dataclasses.replace(mask, source=array_of("mask", mask.source)) if listed else mask


def check_mask(mask: Any, shape: tuple[int, ...]) -> Mask | None:
    """`mask` as a `Mask` that fits `shape`, or None. Raises ValueError: the shapes differ."""
    if mask is None:
        return None
    checked = as_mask(mask)
    if tuple(checked.shape) != tuple(shape):
        raise ValueError(f"`mask` must have the shape {shape} of the result; got {checked.shape}.")
    return checked
