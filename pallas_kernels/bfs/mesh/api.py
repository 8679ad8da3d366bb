"""Breadth-first search over the rows of several GPUs: levels in one launch on each of them
(`any_degree.py` holds the kernel)."""

import types

import jax
import jax.numpy as jnp

from ...simt.barrier import MeshBarrier
from ...simt.device import resident_ctas
from ...simt.launch import launch
from ...simt.primitives import CONTROL_WORDS
from ..api import BFSConfig
from .any_degree import GROUP, SENT, SUMS, Search
from .messages import LATER


def bfs(
    indptr: jax.Array,
    indices: jax.Array,
    positions: jax.Array,
    source: jax.Array,
    *,
    axes: tuple[str, ...],
    n: int,
    symmetric: bool,
    own: bool = True,
    config: BFSConfig | None = None,
    interpret: bool = False,
) -> tuple[jax.Array, jax.Array | None, jax.Array, jax.Array]:
    """(levels int32[n], those of the places of this device int32[places] or, unless `own`, None,
    num_levels int32, status int32) of a search, inside of a `shard_map`: all but the second are the
    same on every device.

    Of this device: indptr int32[places + 1] and indices int32[nse] of the rows of its places, by
    places of all devices. positions int32[n], the same on all: the place of each vertex among them,
    one device after the other. axes: all axes of the mesh in their order, by which devices
    are numbered. symmetric: rows are columns too.
    status 0: right; otherwise a device or a CTA waited in vain and the result means nothing.
    """
    devices = jax.lax.axis_size(axes)
    places = indptr.shape[0] - 1
    config = config or BFSConfig()
    c = types.SimpleNamespace(
        **{name: getattr(config, name) for name in ("threads", "span", "alpha", "beta")},
        **{name: getattr(config, name) for name in ("pull_edges", "lane_probes", "buffer")},
        ctas=config.ctas or resident_ctas(),
        n=places,  # whom this device looks after
        words=places // 32,
        everyone=places * devices,
        vertices=n,
        symmetric=symmetric,
        own=own,
        parents=False,
    )
    c.unroll = max(min(c.words * 32 // (c.ctas * c.threads), 4), 1)
    c.capacity = places + indices.shape[0] // c.span + 1
    c.slots = CONTROL_WORDS + MeshBarrier.control_words(devices, SENT)
    c.linked, c.squares, c.deepest, c.mailed = (c.slots + 4 * GROUP + j for j in range(4))

    def kernel(k, memory):
        Search(k, c, memory).run()

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
            "summary": 2,
            "visited": 2 * c.everyone // 32,
            "sent": c.everyone // 32,
            "letters": c.everyone,
            "queue": 8 * c.capacity,
        },
        optional=("first",),
        ctas=c.ctas,
        threads=c.threads,
        shared_words=SUMS + 4 * c.buffer + 2 * LATER + c.threads + 512,
        more_control=c.mailed - CONTROL_WORDS + devices,
        name="bfs_on_mesh",
        axes=axes,
        interpret=interpret,
    )
    return out["whole"], out["levels"] if own else None, out["summary"][0], out["summary"][1]
