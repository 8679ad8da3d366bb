"""cuSPARSE's product of a block matrix (BSR) with a vector, called through its C interface."""

from __future__ import annotations

import ctypes
import ctypes.util
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import jaxspv as jsp

ROW_MAJOR, NO_TRANSPOSE = 0, 0
MOST_BYTES = 8 << 30  # of dense blocks; larger ones are left out


def blocks(T: jsp.Tiled) -> tuple[Any, Any, Any] | None:
    """(values (t, 16, 16), indptr, indices) of a `Tiled` at nt = 16 without remainder, or None."""
    tiles = T.tile_col.shape[0]
    if T.nt != 16 or T.rest_row.shape[0] or tiles * 16 * 16 * 4 > MOST_BYTES:
        return None
    ends = jnp.zeros(T.nse, jnp.int32).at[T.slot_ptr[1:-1]].add(1, mode="drop")
    tile = jnp.cumsum(ends, dtype=jnp.int32)
    dense = jnp.zeros(tiles * 256, jnp.float32).at[tile * 256 + T.local].set(T.data)
    return jax.block_until_ready((dense, T.tile_ptr, T.tile_col))


def cusparse_bsr(T: jsp.Tiled, x: Any, repeats: int) -> Callable[[], Any] | None:
    """`repeats` products in a row, then one wait; None where they cannot be had."""
    import cupy

    library = _library()
    made = blocks(T) if library is not None else None
    if library is None or made is None:
        return None
    values, indptr, indices = (cupy.asarray(a) for a in made)
    down = indptr.shape[0] - 1
    padded = cupy.zeros(-(-T.shape[1] // 16) * 16, cupy.float32)
    padded[: T.shape[1]] = cupy.asarray(x)
    y = cupy.zeros(down * 16, cupy.float32)
    description, one, zero = ctypes.c_void_p(), ctypes.c_float(1), ctypes.c_float(0)
    library.cusparseCreateMatDescr(ctypes.byref(description))
    handle = ctypes.c_void_p(cupy.cuda.device.get_cusparse_handle())
    pointers = [ctypes.c_void_p(a.data.ptr) for a in (values, indptr, indices, padded, y)]
    count = ctypes.c_int(indices.shape[0])

    def call():
        for _ in range(repeats):
            status = library.cusparseSbsrmv(
                handle,
                ROW_MAJOR,
                NO_TRANSPOSE,
                down,
                padded.shape[0] // 16,
                count,
                ctypes.byref(one),
                description,
                *pointers[:3],
                16,
                pointers[3],
                ctypes.byref(zero),
                pointers[4],
            )
            if status:
                raise RuntimeError(f"cusparseSbsrmv returned {status}")
        cupy.cuda.get_current_stream().synchronize()
        return y[: T.shape[0]].get()

    return call


def _library() -> Any:
    """libcusparse as this process has it loaded, if it still has bsrmv."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "libcusparse.so" in line}
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        if hasattr(library, "cusparseSbsrmv"):
            return library
    return None
