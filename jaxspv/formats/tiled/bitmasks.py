"""The words of a `BitTiled` from the rows of a CSR, by kernels that read its indices twice."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.layouts.tile_bitmasks import Tiling, count_tiles, fill_tiles

from ..._core.compat import kernels_refused
from ..._core.compilation import is_eager, on_gpu
from ..csr import CSR

_WORDS = 2**31  # words that int32 cannot count


def served(A: CSR) -> bool:
    """Whether the kernels can list the tiles of A: concrete on a GPU, sorted, no place twice."""
    return (
        is_eager(A)
        and on_gpu(A)
        and kernels_refused() is None
        and A.sorted
        and A.unique
        and A.nse > 0
        and A.shape[0] > 0
        and A.indices.dtype == np.int32
    )


def row_words(A: CSR, nt: int, limit: int, interpret: bool = False) -> tuple[Any, ...] | None:
    """The fields of `Words` of the rows of A; None where no tile is kept, or too many for int32.

    Tiles of at most `limit` entries go to the remainder.
    """
    tiling = Tiling(nt, A.shape[1], limit, interpret)
    tile_ptr, rest_ptr, ends = _pointers(A.indptr, A.indices, tiling=tiling)
    tiles, rest = (int(v) for v in np.asarray(ends))
    each = max(nt // 32, 1)
    if tiles == 0 or tiles * nt * each >= _WORDS:
        return None
    operands = (A.indptr, A.indices, tile_ptr, rest_ptr)
    minor, words, rest_minor = _fill(*operands, tiling=tiling, tiles=tiles, rest=rest)
    return tile_ptr, minor, words.reshape(tiles, nt, each), rest_ptr, rest_minor


@functools.partial(jax.jit, static_argnames="tiling")
def _pointers(indptr: Array, indices: Array, *, tiling: Tiling) -> tuple[Array, Array, Array]:
    tiles, moved = count_tiles(indptr, indices, tiling=tiling)
    zero = jnp.zeros(1, jnp.int32)
    tile_ptr, rest_ptr = (
        jnp.concatenate([zero, jnp.cumsum(v, dtype=jnp.int32)]) for v in (tiles, moved)
    )
    return tile_ptr, rest_ptr, jnp.stack([tile_ptr[-1], rest_ptr[-1]])


_fill = jax.jit(fill_tiles, static_argnames=("tiling", "tiles", "rest"))
