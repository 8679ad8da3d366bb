"""Sharded graphs whose entries are tuples: a sharded graph, and the values of its slots."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from .._core.pytree import describe, pytree_dataclass
from .._core.tuples import take
from ..formats.tuples import Tuples


@pytree_dataclass
class ShardedTuples:
    """A sharded graph whose entries are pytrees; made by `shard`, or by `with_data` of a graph.

    Attributes:
        places: the `ShardedGraph`; its own values are not read.
        values: a pytree of arrays (R, C, nse, ...), sharded by `spec`, in the order of its slots.

    >>> import jax, jax.numpy as jnp, jaxspv as jsp
    >>> mesh = jax.make_mesh((jax.device_count(),), ("d",))
    >>> A = jsp.from_edges([0, 1], [1, 0], shape=(2, 2))
    >>> G = jsp.shard(A.with_data((jnp.array([1.0, 2.0]), jnp.array([7, 8]))), mesh)
    >>> x = jnp.zeros(2), jnp.full(2, 2**31 - 1)
    >>> [v.tolist() for v in jsp.vxm(x, G, jsp.semirings.argmin_plus())]
    [[2.0, 1.0], [8, 7]]
    """

    places: Any
    values: Any

    @classmethod
    def of(cls, places: Any, values: Any) -> ShardedTuples:
        """With values in the order of the slots.

        Raises:
            ValueError: the leaves do not have one row for each slot, or a place may come twice.
        """
        values, slots = jax.tree.map(jnp.asarray, values), places.data.shape
        if wrong := [v.shape for v in jax.tree.leaves(values) if v.shape[:3] != slots]:
            raise ValueError(f"`data` must have leaves {slots} and more; got shapes {wrong}.")
        if not places.unique:
            raise ValueError("entries that are tuples need a matrix that lists each place once.")
        return cls(places, values)

    @property
    def __jaxspv_functions__(self) -> dict[str, Callable[..., Any]]:
        """As of a sharded graph; most functions refuse tuples."""
        return importlib.import_module(f"{__name__.partition('.')[0]}._on_mesh").ON_TUPLES

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.places.shape

    @property
    def spec(self) -> Any:
        """How each of its arrays is sharded."""
        return self.places.spec

    def with_data(self, data: Any) -> Any:
        """The same pattern with other values, in the order of the slots."""
        return self.places.with_data(data)

    def unshard(self) -> Tuples:
        """The whole matrix as a CSR, in every process; eager."""
        slots = np.arange(self.places.data.size, dtype=np.int32).reshape(self.places.data.shape)
        whole = dataclasses.replace(self.places, data=slots).unshard()
        everywhere = jax.jit(lambda v: v, out_shardings=self.places.part.replicated)
        values = jax.tree.map(lambda v: np.asarray(everywhere(v)), self.values)
        values = jax.tree.map(lambda v: v.reshape(-1, *v.shape[3:]), values)
        return Tuples.of(whole, take(values, whole.data))

    def __repr__(self) -> str:
        values = repr(jax.tree.map(describe, self.values)).replace("'", "")
        return f"ShardedTuples({values}, {self.places!r})"
