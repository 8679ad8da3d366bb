"""Shortest paths over the rows of several GPUs in one launch on each (`rounds.py`)."""

from collections.abc import Sequence

import jax
import jax.numpy as jnp

from ...simt.barrier import MeshBarrier
from ...simt.device import DEFAULT_GRID, Grid
from ...simt.launch import launch
from ...simt.primitives import CONTROL_WORDS
from .relax import Flags, capacity
from .rounds import PAYLOAD_WORDS, WORDS, Search


def sssp(
    graph: Sequence[jax.Array],
    source: jax.Array,
    delta: jax.Array,
    most: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    grid: Grid = DEFAULT_GRID,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array, jax.Array, jax.Array]:
    """(distances float32[n], local distances float32[places], rounds int32, ended int32, status
    int32, refused int32) of a search.

    Local distances are those of the places of this device. ended is 1 if the search is complete, 0
    if it stopped after `most` rounds. refused is 1 if a length fell below 0, by negative weights:
    then the distances are invalid. graph: (indptr, indices, weights float32[nse], none NaN,
    positions). delta float32: the width of a round, > 0 or inf; 0: chosen by the kernel
    (`width.py`).
    """
    indptr, indices, weights, positions = graph
    devices, places = jax.lax.axis_size(axes), indptr.shape[0] - 1
    form = grid.form()
    more = MeshBarrier.control_words(devices, PAYLOAD_WORDS)
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
            "parts": (2 * form["ctas"], f32),
        },
        **form,
        shared_words=MeshBarrier.shared_words(PAYLOAD_WORDS) + 8,
        more_control=more + 4 * WORDS,
        name="sssp_on_mesh",
        axes=axes,
    )
    first = jax.lax.axis_index(axes) * places
    local = jax.lax.dynamic_slice_in_dim(out["labels"], first, places)
    local = jax.lax.bitcast_convert_type(local, f32)
    rounds, ended, status, refused = out["summary"]
    return out["whole"], local, rounds, ended, status, refused
