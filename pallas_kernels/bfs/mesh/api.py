"""Breadth-first search over the rows of several GPUs: levels in one launch on each of them
(`any_degree.py` holds the kernel)."""

import dataclasses
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from ...simt.device import resident_ctas
from ...simt.launch import launch
from ...simt.mesh import MeshBarrier
from ...simt.primitives import CONTROL_WORDS, Simt
from ...simt.typed import Arrays
from ..problem import BFSConfig
from .any_degree import PAYLOAD_WORDS, SUMS, Problem, Search
from .messages import LONG_ROWS
from .places import SENT_TO


def bfs(
    graph: Sequence[jax.Array],
    source: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    symmetric: bool,
    local_levels: bool = True,
    config: BFSConfig | None = None,
) -> tuple[jax.Array, jax.Array | None, jax.Array, jax.Array]:
    """(levels int32[n], local levels int32[places], num_levels int32, status int32) of a search.

    Local levels are those of the places of this device (None unless `local_levels`); the other
    results are the same on every device. graph: (indptr, indices, positions). symmetric: the matrix
    equals its transpose.
    """
    indptr, indices, positions = graph
    devices = jax.lax.axis_size(axes)
    places = indptr.shape[0] - 1
    config = config or BFSConfig()
    slots = CONTROL_WORDS + MeshBarrier.control_words(devices, PAYLOAD_WORDS)
    fixed: dict[str, Any] = dataclasses.asdict(config)
    words, threads = places // 32, (config.ctas or resident_ctas()) * config.threads
    fixed["unroll"] = max(min(words * 32 // threads, 4), 1)
    c = Problem(
        **fixed,
        n=places,
        words=words,
        capacity=places + indices.shape[0] // config.span + 1,
        all_places=places * devices,
        vertices=n,
        symmetric=symmetric,
        local_levels=local_levels,
        slots=slots,
    )

    def kernel(k: Simt, m: Arrays):
        return Search(k, c, m).run()

    out = launch(
        kernel,
        {
            "indptr": indptr,
            "indices": indices,
            "positions": positions,
            "source": jnp.reshape(source, 1),
        },
        {
            "whole": n,
            "levels": places,
            "num_levels": (),
            "status": (),
            "visited": 2 * c.all_places // 32,
            "sent": c.all_places // 32,
            "messages": c.all_places,
            "queue": 8 * c.capacity,
        },
        **c.form(),
        shared_words=SUMS + 4 * c.buffer + 2 * LONG_ROWS + c.threads + 512,
        more_control=slots + SENT_TO - CONTROL_WORDS + devices,
        name="bfs_on_mesh",
        axes=axes,
    )
    local = out["levels"] if local_levels else None
    return out["whole"], local, out["num_levels"], out["status"]
