"""Matrices with clustered entries, made on the device: FEM-like, banded, block, power law.

Sizes are those of Table 2 of Ji et al., "TileSpMSpV", ICPP 2022, up to 50M entries; each says which
matrix it stands for. All have a symmetric pattern.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

import jaxspv as jsp


@dataclasses.dataclass(frozen=True)
class TileWorkload:
    """A matrix by name.

    Attributes:
        name: as in tables.
        kind: "fem", "banded", "block", "power law", "mesh".
        build: makes the CSR on the device.
        stands_for: the matrix of the paper's Table 2 with these dimensions, or "".
    """

    name: str
    kind: str
    build: Callable[[], jsp.CSR]
    stands_for: str = ""

    def origin(self) -> str:
        """What tables say of it."""
        return self.kind + (f", for {self.stands_for}" if self.stands_for else "")


def stencil(dims: tuple[int, ...], offsets: np.ndarray, dof: int) -> jsp.CSR:
    """A grid whose points couple with those at `offsets` that lie inside, `dof` unknowns each.

    Unknown `dof * point + d` couples with every unknown of the neighbouring points; offsets are
    rows of integers, the last axis runs fastest.
    """
    order = np.lexsort(offsets.T[::-1])
    points = int(np.prod(dims))
    return _stencil(dims, tuple(map(tuple, offsets[order].tolist())), dof, points)


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3))
def _places(dims, offsets, dof, points):
    """(row lengths, valid (points, offsets)): what lies inside."""
    place = jnp.unravel_index(jnp.arange(points, dtype=jnp.int32), dims)
    inside = jnp.ones((points, len(offsets)), bool)
    for axis, size in enumerate(dims):
        step = jnp.array([o[axis] for o in offsets], jnp.int32)
        moved = place[axis][:, None] + step
        inside &= (moved >= 0) & (moved < size)
    return jnp.sum(inside, axis=1, dtype=jnp.int32) * dof, inside


@functools.partial(jax.jit, static_argnums=(0, 1, 2, 3, 5))
def _fill(dims, offsets, dof, points, inside, entries):
    strides = np.array([int(np.prod(dims[axis + 1 :])) for axis in range(len(dims))])
    shift = jnp.array([int(np.dot(o, strides)) for o in offsets], jnp.int32)
    rank = jnp.cumsum(inside, axis=1, dtype=jnp.int32) - 1  # among the neighbours of a point
    length = (rank[:, -1] + 1) * dof  # of a row
    first = jnp.cumsum(length * dof, dtype=jnp.int32) - length * dof
    point = jnp.arange(points, dtype=jnp.int32)
    indices = jnp.zeros(entries, jnp.int32)
    for d in range(dof):
        for e in range(dof):
            at = first[:, None] + d * length[:, None] + rank * dof + e
            col = (point[:, None] + shift) * dof + e
            indices = indices.at[jnp.where(inside, at, entries)].set(col, mode="drop")
    per_row = jnp.broadcast_to(length[:, None], (points, dof)).reshape(-1)
    indptr = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(per_row, dtype=jnp.int32)])
    return indptr, indices


def _stencil(dims, offsets, dof, points):
    lengths, inside = _places(dims, offsets, dof, points)
    entries = int(jnp.sum(lengths)) * dof
    indptr, indices = _fill(dims, offsets, dof, points, inside, entries)
    return with_values(indptr, indices, points * dof)


@jax.jit
def _values(indptr: Array, indices: Array) -> Array:
    """Reproducible values in 1 .. 64 / 64, the same on both sides of the diagonal."""
    n = indptr.shape[0] - 1
    ends = jnp.zeros(indices.shape[0], jnp.int32).at[indptr[1:n]].add(1, mode="drop")
    row = jnp.cumsum(ends, dtype=jnp.int32)
    low, high = jnp.minimum(row, indices), jnp.maximum(row, indices)
    mixed = (low.astype(jnp.uint32) * jnp.uint32(2654435761)) ^ (
        high.astype(jnp.uint32) * jnp.uint32(40503)
    )
    return (lax.shift_right_logical(mixed, jnp.uint32(8)) % 64 + 1).astype(jnp.float32) / 64


def with_values(indptr: Array, indices: Array, n: int) -> jsp.CSR:
    """A CSR of this pattern with reproducible symmetric values."""
    return jsp.CSR(_values(indptr, indices), indices, indptr, jnp.asarray(False), (n, n))


def fem(*dims: int, dof: int) -> jsp.CSR:
    """Every point with all its neighbours, diagonal ones too (9 or 27 of them)."""
    steps = np.stack(np.meshgrid(*[[-1, 0, 1]] * len(dims), indexing="ij"), -1)
    return stencil(dims, steps.reshape(-1, len(dims)), dof)


def banded(n: int, band: int, stripes: int, width: int) -> jsp.CSR:
    """Stripes of `width` adjacent diagonals, 2 * stripes + 1 of them, out to `band`."""
    far = [k * band // max(stripes, 1) for k in range(stripes + 1)]
    centre = [-c for c in far] + far
    offsets = sorted({c + w for c in centre for w in range(-(width // 2), width // 2 + 1)})
    return stencil((n,), np.array(offsets)[:, None], 1)


def block(n: int, side: int, blocks: int) -> jsp.CSR:
    """Dense side-by-side blocks: the diagonal ones and `blocks` others a row, at random places."""
    count = n // side
    rng = np.random.default_rng(0)
    i, j = np.repeat(np.arange(count), blocks // 2), rng.integers(0, count, count * (blocks // 2))
    i, j = np.concatenate([np.arange(count), i, j]), np.concatenate([np.arange(count), j, i])
    key = np.unique(i.astype(np.int64) * count + j)
    return _blocks(
        jnp.asarray(key // count, jnp.int32), jnp.asarray(key % count, jnp.int32), side, count
    )


def _blocks(down, across, side, count):
    @jax.jit
    def make(down, across):
        per = jnp.zeros(count, jnp.int32).at[down].add(1)
        first = jnp.cumsum(per, dtype=jnp.int32) - per
        k = jnp.arange(down.shape[0], dtype=jnp.int32) - first[down]
        r, c = jnp.arange(side, dtype=jnp.int32), jnp.arange(side, dtype=jnp.int32)
        start = first[down] * side * side
        at = (
            start[:, None, None]
            + r[:, None] * (per[down] * side)[:, None, None]
            + (k * side)[:, None, None]
            + c
        )
        col = jnp.broadcast_to((across * side)[:, None, None] + c, at.shape)
        indices = jnp.zeros(at.size, jnp.int32).at[at.reshape(-1)].set(col.reshape(-1))
        rows = jnp.broadcast_to((per * side)[:, None], (count, side)).reshape(-1)
        ends = jnp.cumsum(rows, dtype=jnp.int32)
        return jnp.concatenate([jnp.zeros(1, jnp.int32), ends]), indices

    return with_values(*make(down, across), count * side)


def mesh(side: int) -> jsp.CSR:
    """A triangulated square: 6 neighbours a point."""
    offsets = np.array([[-1, -1], [-1, 0], [0, -1], [0, 1], [1, 0], [1, 1]])
    return stencil((side, side), offsets, 1)


def power_law(scale: int, edge_factor: int) -> jsp.CSR:
    """R-MAT with the parameters of Graph500."""
    A = jsp.generators.rmat(jax.random.key(0), scale, edge_factor)
    return with_values(A.indptr, A.indices[: int(A.count)], A.shape[0])


def _entry(name, kind, build, *args, stands_for="", **kwargs):
    return TileWorkload(name, kind, functools.partial(build, *args, **kwargs), stands_for)


ALL = (
    _entry("fem-354-4", "fem", fem, 354, 354, dof=4, stands_for="af_5_k101"),
    _entry("fem-257-9-9-3", "fem", fem, 257, 9, 9, dof=3, stands_for="cant"),
    _entry("fem-182-6", "fem", fem, 182, 182, dof=6, stands_for="fullb"),
    _entry("fem-263-6", "fem", fem, 263, 263, dof=6, stands_for="msdoor"),
    _entry("fem-388-6", "fem", fem, 388, 388, dof=6, stands_for="ldoor"),
    _entry("fem-67-67-67-2", "fem", fem, 67, 67, 67, dof=2, stands_for="dielFilterV2clx"),
    _entry("fem-60-60-59-3", "fem", fem, 60, 60, 59, dof=3, stands_for="ML_Geer, cut to 50M"),
    _entry("band-36k", "banded", banded, 36_000, 1_000, 4, 13, stands_for="pdb1HYS"),
    _entry("band-4k", "banded", banded, 4_000, 400, 2, 7, stands_for="cavity23"),
    _entry("band-500k", "banded", banded, 500_000, 4_000, 2, 9),
    _entry("band-1m", "banded", banded, 1_000_000, 8_000, 3, 7),
    _entry("band-2m", "banded", banded, 2_000_000, 20_000, 1, 7),
    _entry("block-1m", "block", block, 1_000_000, 16, 2),
    _entry("block-400k", "block", block, 400_000, 16, 4),
    _entry("mesh-1924", "mesh", mesh, 1924, stands_for="333SP"),
    _entry("rmat-20", "power law", power_law, 20, 16, stands_for="in-2004"),
)
SMALL = (
    _entry("fem-6-5-2", "fem", fem, 6, 5, dof=2),
    _entry("band-200", "banded", banded, 200, 40, 2, 5),
    _entry("block-96", "block", block, 96, 16, 2),
    _entry("rmat-7", "power law", power_law, 7, 8),
)
NAMES = {w.name: w for w in (*ALL, *SMALL)}
