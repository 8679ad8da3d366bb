"""A function of the two ends of each entry, evaluated and differentiated in chunks of entries.

`fn(params, X[i], Y[j], E[i, j])` at every stored (i, j). The gathered rows X[i], Y[j] are as many
times larger than the matrix as they have features: never more of them are in memory than a chunk
has, and derivatives compute them anew.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, Literal

import jax
import jax.numpy as jnp
from jax import Array, lax

from ...._core.derivatives import first_valid
from ....formats import SparseMatrix
from ...reduce import broadcast_rows
from ...write_rule.entries import take

ELEMENTS = {"cpu": 1 << 16, "xla": 1 << 23}  # gathered at a time: what caches, what memory holds
Leaves = Sequence[Any]  # arrays; None for what has no tangent


def chunk_for(backend: Literal["cpu", "xla"], *operands: Any) -> int:
    """Entries at a time for operands with so many features."""
    width = max((math.prod(leaf.shape[1:]) for leaf in jax.tree.leaves(operands)), default=1)
    return max(ELEMENTS[backend] // max(width, 1), 64)


@dataclasses.dataclass(frozen=True)
class ByEntry:
    """The entries of a matrix, and a function of what lies at their ends.

    Attributes:
        fn: `fn(params, x, y, e) -> array` at one entry, of pytrees of arrays.
        tree: how the leaves of (params, X, Y, E) make up the four.
        kinds: of each leaf: "params", "row", "col" or "entry".
        row, col: (nse,) places; the extents in padding.
        shape: of the matrix.
        chunk: the entries at a time.
    """

    fn: Callable[..., Array]
    tree: Any
    kinds: tuple[str, ...]
    row: Array
    col: Array
    shape: tuple[int, int]
    chunk: int

    @classmethod
    def of(cls, fn: Callable[..., Array], A: SparseMatrix, operands: Any, chunk: int) -> ByEntry:
        """The function `fn` at the entries of `A`; operands: (params, X, Y, E)."""
        kinds = [
            kind
            for kind, part in zip(("params", "row", "col", "entry"), operands, strict=True)
            for _ in jax.tree.leaves(part)
        ]
        row, col = A.rowcol()
        is_valid = row < A.shape[0]
        row, col = jnp.where(is_valid, row, A.shape[0]), jnp.where(is_valid, col, A.shape[1])
        tree = jax.tree.structure(tuple(operands))
        return cls(fn, tree, tuple(kinds), row, col, A.shape, chunk)

    def over(self, step: Callable[..., Any], carry: Any, *arrays: Any) -> tuple[Any, Any]:
        """`carry, out = step(carry, row, col, *arrays)` over chunks; the outs of all entries.

        `arrays` are pytrees of (nse, ...) arrays. What fills the last chunk is padding.
        """
        nse = self.row.shape[0]
        if nse <= self.chunk:
            return step(carry, self.row, self.col, *arrays)
        spare = -nse % self.chunk

        def cut(x: Array, fill: int = 0) -> Array:
            x = jnp.pad(x, ((0, spare), *((0, 0) for _ in x.shape[1:])), constant_values=fill)
            return x.reshape(-1, self.chunk, *x.shape[1:])

        places = (cut(self.row, self.shape[0]), cut(self.col, self.shape[1]))
        pieces = (*places, *(jax.tree.map(cut, a) for a in arrays))
        carry, outs = lax.scan(lambda c, piece: step(c, *piece), carry, pieces)
        return carry, jax.tree.map(lambda o: o.reshape(-1, *o.shape[2:])[:nse], outs)

    def entries(self, leaves: Leaves) -> list[Any]:
        """The leaves that every entry has its own of: an operand of `over`."""
        return [v for v, kind in zip(leaves, self.kinds, strict=True) if kind == "entry"]

    def local(self, leaves: Leaves, row: Array, col: Array, entries: Leaves, fill=1) -> list[Any]:
        """What the leaves hold for these entries; `fill` for what padding has of its own."""
        pieces, valid = iter(entries), row < self.shape[0]
        at, found = first_valid(valid) if fill and "params" in self.kinds else None, []
        if at is not None:
            row, col, valid = row[at], col[at], valid[at]
        for leaf, kind in zip(leaves, self.kinds, strict=True):
            v = next(pieces) if kind == "entry" else leaf
            if v is not None and kind == "entry":
                v = v if at is None else v[at]
                v = jnp.where(broadcast_rows(valid, v), v, jnp.asarray(fill, v.dtype))
            elif v is not None and kind != "params":
                v = take(v, row if kind == "row" else col)
            found.append(v)
        return found

    def at(self, local: Leaves) -> Array:
        """(entries, ...) values of the function."""
        axes = [None if kind == "params" else 0 for kind in self.kinds]
        size = next(iter(jax.tree.leaves([v for v, a in zip(local, axes, strict=True) if a == 0])))
        return jax.vmap(
            lambda v: self.fn(*jax.tree.unflatten(self.tree, v)),
            in_axes=(axes,),
            axis_size=size.shape[0],
        )(list(local))

    def moved(self, local: Leaves, dots: Leaves) -> tuple[Array, Array]:
        """Values, and their tangent by `dots`, the tangents of `local`."""
        perturbed = [t is not None for t in dots]
        parts = [v for v, on in zip(local, perturbed, strict=True) if on]
        dots = [t for t in dots if t is not None]
        return jax.jvp(lambda p: self.at(_put(p, local, perturbed)), (parts,), (dots,))

    def zeros(self, leaves: Leaves, perturbed: Sequence[bool], dtype: Any) -> list[Any]:
        """The zeros that `pull` adds to; None for leaves of entries and for constant leaves."""
        return [
            jnp.zeros(v.shape, dtype) if on and kind != "entry" else None
            for v, kind, on in zip(leaves, self.kinds, perturbed, strict=True)
        ]

    def pull(
        self,
        local: Leaves,
        perturbed: Sequence[bool],
        total: Leaves,
        row: Array,
        col: Array,
        cotangent: Callable[[Array], Array],
    ) -> tuple[list[Any], list[Any]]:
        """`total` plus the cotangents that `cotangent(values)` has; those of the entries' own."""
        parts = [v for v, on in zip(local, perturbed, strict=True) if on]
        values, back = jax.vjp(lambda p: self.at(_put(p, local, perturbed)), parts)
        valid = row < self.shape[0]
        g = cotangent(values)
        cotangents = iter(back(jnp.where(broadcast_rows(valid, g), g, 0).astype(values.dtype))[0])
        sums, own = list(total), []
        for k, (kind, on) in enumerate(zip(self.kinds, perturbed, strict=True)):
            found: Any = next(cotangents) if on else None
            if kind == "entry":
                own.append(jnp.where(broadcast_rows(valid, found), found, 0) if on else None)
            elif on and kind == "params":
                sums[k] = sums[k] + found.astype(sums[k].dtype)
            elif on:
                place = sums[k].at[row if kind == "row" else col]
                sums[k] = place.add(found.astype(sums[k].dtype), mode="drop")
        return sums, own

    def joined(self, sums: Leaves, own: Leaves) -> list[Any]:
        """The cotangents of all leaves, of what `pull` added up and of what it gave by entry."""
        pieces = iter(own)
        return [
            next(pieces) if kind == "entry" else v for v, kind in zip(sums, self.kinds, strict=True)
        ]


def _put(parts: Leaves, others: Leaves, perturbed: Sequence[bool]) -> list[Any]:
    given = iter(parts)
    return [next(given) if on else v for v, on in zip(others, perturbed, strict=True)]
