"""Shortest paths over the rows of several GPUs in one launch on each (`rounds.py`)."""

import jax
import jax.numpy as jnp

from ...simt.barrier import MeshBarrier
from ...simt.device import resident_ctas
from ...simt.launch import launch
from ...simt.primitives import CONTROL_WORDS
from .relax import Flags, capacity
from .rounds import SENT, WORDS, Search


def sssp(
    indptr: jax.Array,
    indices: jax.Array,
    weights: jax.Array,
    positions: jax.Array,
    source: jax.Array,
    delta: jax.Array,
    most: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    ctas: int | None = None,
    threads: int = 1024,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(distances float32[n], those of the places of this device float32[places], rounds int32,
    whether that was the end int32, status int32, refused int32), inside of a `shard_map`.

    Of this device: indptr int32[places + 1], indices int32[nse] and weights float32[nse], none
    NaN, of the rows of its places, by places of all devices; positions int32[n], the same on all:
    the place of each vertex. axes: all axes of the mesh in their order. delta float32: the width of
    a round, > 0, inf too, or 0: chosen (`width.py`). At most `most` rounds. status 0: right;
    otherwise a device or a CTA waited in vain. refused 1: a length fell below 0, by negative
    weights; the distances are none.
    """
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    ctas = ctas or resident_ctas()
    more = MeshBarrier.control_words(devices, SENT)
    f32, i32 = jnp.float32, jnp.int32

    def kernel(k, m):
        Search(k, m, places, n, CONTROL_WORDS + more).run()

    out = launch(
        kernel,
        {
            "indptr": indptr,
            "indices": indices,
            "weights": weights,
            "positions": positions,
            "numbers": jnp.stack([jnp.asarray(x, i32) for x in (source, most)]),
            "delta": jnp.asarray(delta, f32).reshape(1),
        },
        {
            "whole": (n, f32),
            "labels": places * devices,
            "summary": 4,
            "done": places,
            "waiting": Flags.words(places, devices),
            "queue": 4 * capacity(places, indices.shape[0]),
            "parts": (2 * ctas, f32),
        },
        ctas=ctas,
        threads=threads,
        shared_words=MeshBarrier.shared_words(SENT) + 8,
        more_control=more + 4 * WORDS,
        name="sssp_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    first = jax.lax.axis_index(axes) * places
    own = jax.lax.dynamic_slice_in_dim(out["labels"], first, places)
    own = jax.lax.bitcast_convert_type(own, f32)
    rounds, ended, status, refused = out["summary"]
    return out["whole"], own, rounds, ended, status, refused
