"""Kernels lower for an H200 on a machine without any GPU: every 'not implemented' shows here."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh, AxisType

from pallas_kernels.bfs.api import BFSConfig, bfs
from pallas_kernels.prepare.adjacency import Adjacency, prepare_bfs


def lower(f, *args):
    """The StableHLO of f for one H200."""
    device = AbstractDevice(device_kind="NVIDIA H200", num_cores=None, platform="gpu")
    mesh = AbstractMesh((1,), ("x",), axis_types=(AxisType.Auto,), abstract_device=device)
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def ring(n):
    i = np.arange(n)
    return (2 * np.arange(n + 1)).astype(np.int32), np.stack(
        [(i + 1) % n, (i - 1) % n], 1
    ).ravel().astype(np.int32)


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize(
    "kind", ["low_degree", "renumbered", "global bits", "any_degree", "directed"]
)
def test_bfs_is_one_launch(kind, parents):
    graph = ring(256)
    low = kind in ("low_degree", "renumbered", "global bits")
    prepared = prepare_bfs(*graph, renumber=kind == "renumbered") if low else {}
    config = BFSConfig(shared_bits=kind != "global bits")
    search = functools.partial(
        bfs,
        parents=parents,
        config=config,
        symmetric=kind != "directed",
        stop=lambda level, reached, unchanged: reached[0] | (level >= 3),
    )
    text = lower(
        lambda g, s, p, t: search(g, s, prepared=p, targets=t),
        Adjacency(*map(jnp.asarray, graph)),
        jnp.int32(0),
        jax.tree.map(jnp.asarray, prepared),
        jnp.zeros(1, jnp.int32),
    )
    assert text.count("custom_call @mosaic_gpu") == 1
