"""Breadth-first search of graphs of small degree over several GPUs, a block of vertices and one
launch on each (`low_degree.py` holds the kernel)."""

import dataclasses
import types

import jax
import jax.numpy as jnp

from ...simt.barrier import MeshBarrier
from ...simt.device import resident_ctas
from ...simt.launch import launch
from ...simt.primitives import CONTROL_WORDS
from ..api import BFSConfig, bits_in_shared, free_words
from .low_degree import PAYLOAD_WORDS, Search

MORE = 512  # shared words of the barrier and of the messages


def default_config(ids: int, quads: int) -> BFSConfig:
    """Thresholds such that a frontier is expanded by one CTA while all CTAs would take longer."""
    config = BFSConfig(ctas=resident_ctas(), solo_in=1536 // quads, solo_out=2048 // quads)
    if bits_in_shared(ids, config.queue) + 2 * config.queue <= free_words() - MORE:
        return config
    return dataclasses.replace(config, shared_bits=False, queue=2048, solo_in=256, solo_out=384)


def bfs(
    adjacency: jax.Array,
    places_of: jax.Array,
    outbox: jax.Array,
    exported: jax.Array,
    positions: jax.Array,
    source: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    places: int,
    depth: int,
    config: BFSConfig | None = None,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array, jax.Array, jax.Array]:
    """A search, called inside a `shard_map`. Returns (levels int32[n], levels of the places of this
    device int32[places], num_levels int32, status int32).

    All but the second are the same on every device. Status is 0 if the result is right; otherwise a
    CTA or a device timed out at a barrier and the result is invalid.

    A device numbers its own vertices and its halo by ids, its own below `places`. adjacency
    int32[rows, 4 quads]: rows by id, as `prepare_bfs` makes them. places_of int32[ids]: the place
    of each id among those of all devices, -1 for none. exported int32[1]: the ids below it are in
    halos of other devices. outbox int32[at least exported, w]: where, as device << 26 | id there,
    then -1. positions int32[n]: the place of each vertex, the same on every device. depth: of the
    halo, in steps. axes: all axes of the mesh in their order.
    """
    devices, ids = jax.lax.axis_size(axes), places_of.shape[0]
    config = config or default_config(ids, adjacency.shape[1] // 4)
    c = types.SimpleNamespace(
        **{
            name: getattr(config, name)
            for name in ("threads", "queue", "solo_in", "solo_out", "shared_bits", "pretest")
        },
        ctas=config.ctas or resident_ctas(),
        n=ids,
        places=places,
        all_places=places * devices,
        vertices=n,
        halo=max(ids - places, 1),
        depth=depth,
        width=outbox.shape[1],
        quads=adjacency.shape[1] // 4,
        linked=adjacency.shape[0] > ids,
        parents=False,
        entry=2,
    )
    c.words = bits_in_shared(ids, c.queue + MORE // 4) if c.shared_bits else -(-ids // 128) * 4
    c.source = CONTROL_WORDS + MeshBarrier.control_words(devices, PAYLOAD_WORDS)
    c.deepest, c.sent = c.source + 1, c.source + 2
    c.read = c.sent + devices

    def kernel(k, memory):
        Search(k, c, memory).run()

    out = launch(
        kernel,
        {
            "adjacency": adjacency.reshape(-1),
            "places_of": places_of,
            "outbox": outbox.reshape(-1),
            "exported": exported,
            "positions": positions,
            "source": jnp.reshape(source, 1),
        },
        {
            "whole": n,
            "levels": places,
            "summary": 2,
            "visited": c.words,
            "log": c.entry * ids,
            "messages": max(c.all_places, devices * c.halo),
        },
        ctas=c.ctas,
        threads=c.threads,
        shared_words=2 * c.queue + (c.words if c.shared_bits else 0) + MORE,
        more_control=c.read + devices - CONTROL_WORDS,
        name="bfs_low_degree_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    return out["whole"], out["levels"], out["summary"][0], out["summary"][1]
