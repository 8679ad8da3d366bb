"""Which device of a mesh holds which vertices and entries: rows, or blocks of rows and columns.

Vertices are divided into as many pieces as there are devices, R by C of them, each with r places.
Device (i, j) holds the entries whose row lies in the pieces (i, *) and whose column lies in the
pieces (*, j). With C = 1 these are whole rows, those of its own piece; with R = 1 whole columns.
"""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._core.indices import LIMIT
from ..shapes import Int, Num

WORD = 32  # bits of a word of a bitmap; the places of a piece are a multiple of it


@dataclasses.dataclass(frozen=True)
class Partition:
    """How a square matrix of n vertices lies on a mesh; static and hashable.

    Attributes:
        mesh: the devices.
        row_axes, col_axes: the axes of the mesh that split rows and columns; () splits nothing.
        n: vertices.
        places: r, of each piece; a multiple of 32.
    """

    mesh: Mesh
    row_axes: tuple[str, ...]
    col_axes: tuple[str, ...]
    n: int
    places: int

    @property
    def axes(self) -> tuple[str, ...]:
        """The axes of the mesh that split anything, rows first."""
        return self.row_axes + self.col_axes

    @property
    def grid(self) -> tuple[int, int]:
        """(R, C): pieces along rows and along columns."""
        R, C = (
            math.prod(self.mesh.shape[a] for a in axes) for axes in (self.row_axes, self.col_axes)
        )
        return R, C

    @property
    def block_shape(self) -> tuple[int, int]:
        """(C r, R r): rows and columns of the entries of one device."""
        R, C = self.grid
        return C * self.places, R * self.places

    @property
    def spec(self) -> PartitionSpec:
        """Of every array of a sharded graph, which begins with the axes (R, C)."""
        return PartitionSpec(self.row_axes or None, self.col_axes or None)

    @property
    def sharding(self) -> NamedSharding:
        """`spec` on the mesh."""
        return NamedSharding(self.mesh, self.spec)

    @property
    def replicated(self) -> NamedSharding:
        """Everything on every device."""
        return NamedSharding(self.mesh, PartitionSpec())

    def deal(self, weights: Num[Any, " n"]) -> Int[Any, "pieces places"]:
        """The vertices of each piece, heaviest first; n where there is none. Traceable.

        Round robin in the order of their weights, every other round backwards: the sums of two
        pieces differ by at most the largest weight.
        """
        R, C = self.grid
        xp: Any = jnp if isinstance(weights, jax.Array) else np
        sentinel = xp.full(self.places * R * C - self.n, self.n, np.int32)
        order = xp.argsort(-weights, stable=True).astype(np.int32)
        table = xp.concatenate([order, sentinel]).reshape(self.places, R * C)
        backwards = xp.arange(self.places)[:, None] % 2 == 1
        return xp.where(backwards, table[:, ::-1], table).T

    def positions(self, pieces: Int[np.ndarray, "pieces places"]) -> Int[np.ndarray, " n"]:
        """(n,) where each vertex lies when the pieces follow one another."""
        flat = pieces.reshape(-1)
        valid = np.flatnonzero(flat < self.n)
        positions = np.empty(self.n, np.int64)
        positions[flat[valid]] = valid
        return positions

    def place_of(
        self, row: Int[Any, " k"], col: Int[Any, " k"]
    ) -> tuple[Int[Any, " k"], Int[Any, " k"], Int[Any, " k"]]:
        """Device number, local row and local column of entries given by positions. Traceable."""
        _, C = self.grid
        r = self.places
        i, local_row = divmod(row, C * r)
        strip, offset = divmod(col, r)
        owner, j = divmod(strip, C)
        return i * C + j, local_row, owner * r + offset


def partition(mesh: Any, spec: Any, n: int) -> Partition:
    """The partition of an (n, n) matrix by a `PartitionSpec` of its rows and columns.

    Args:
        mesh: a `jax.sharding.Mesh`.
        spec: `P("d")`: rows over the axis "d"; `P("r", "c")`: rows over "r", columns over "c"; a
            tuple of axes stands for all of them; None: rows over all axes.
        n: vertices.

    Raises:
        TypeError: `mesh` is no mesh, `spec` no spec.
        ValueError: `spec` names an axis that the mesh has not, one twice, none, or more than two
            dimensions; more places than int32 can number.
    """
    if not isinstance(mesh, Mesh):
        raise TypeError(f"`mesh` must be a jax.sharding.Mesh; got {type(mesh).__name__}.")
    spec = PartitionSpec(mesh.axis_names) if spec is None else spec
    if not isinstance(spec, PartitionSpec):
        raise TypeError(f"`spec` must be a PartitionSpec or None; got {spec!r}.")
    if len(spec) > 2:
        raise ValueError(f"`spec` must have an entry for rows and one for columns; got {spec}.")
    parts = [() if s is None else (s,) if isinstance(s, str) else tuple(s) for s in spec]
    rows, cols = (*parts, (), ())[:2]
    named = rows + cols
    if not named or len(set(named)) < len(named) or not set(named) <= set(mesh.axis_names):
        raise ValueError(
            f"`spec` must name axes of the mesh, {mesh.axis_names}, each at most once and one at "
            f"least; got {spec}."
        )
    pieces = math.prod(mesh.shape[a] for a in named)
    places = WORD * max(-(-n // (WORD * pieces)), 1)
    if n >= LIMIT or places * pieces >= LIMIT:
        raise ValueError(f"a sharded graph has fewer than 2^31 - 1 vertices; got {n}.")
    return Partition(mesh, rows, cols, n, places)
