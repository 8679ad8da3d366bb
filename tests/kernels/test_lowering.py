"""Kernels lower for an H200 on a machine without any GPU: every 'not implemented' shows here."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src.mesh import AbstractDevice
from jax.sharding import AbstractMesh, AxisType
from jax.sharding import PartitionSpec as P

from pallas_kernels.bfs.api import BFSConfig, bfs
from pallas_kernels.bfs.mesh.api import bfs as bfs_on_mesh
from pallas_kernels.components.mesh import components as components_on_mesh
from pallas_kernels.layouts.adjacency import Adjacency, prepare_bfs
from pallas_kernels.pagerank.mesh import pagerank as pagerank_on_mesh
from pallas_kernels.pagerank.one_gpu import Limits
from pallas_kernels.products.attention.forward import csr_attention
from pallas_kernels.products.attention.job import Operands
from pallas_kernels.products.attention.vjp import csr_attention_vjp
from pallas_kernels.products.sddmm import sddmm
from pallas_kernels.products.spmm import csr_spmm
from pallas_kernels.products.spmm_mesh import row_sharded_spmm
from pallas_kernels.products.spmm_mesh import spmm as spmm_on_mesh
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring
from pallas_kernels.sssp.mesh import sssp as sssp_on_mesh


def gpus(count, kind):
    device = AbstractDevice(device_kind=f"NVIDIA {kind}", num_cores=None, platform="gpu")
    return AbstractMesh((count,), ("x",), axis_types=(AxisType.Auto,), abstract_device=device)


def h200s(count):
    return gpus(count, "H200")


def lower(f, *args, mesh=None):
    """The StableHLO of f for one H200, or those of a mesh."""
    mesh = mesh or h200s(1)
    with jax.sharding.use_abstract_mesh(mesh):
        return jax.jit(f).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def ring(n):
    i = np.arange(n)
    return (2 * np.arange(n + 1)).astype(np.int32), np.stack(
        [(i + 1) % n, (i - 1) % n], 1
    ).ravel().astype(np.int32)


@pytest.mark.parametrize("parents", [False, True])
@pytest.mark.parametrize(
    "kind", ["low_degree", "global bits", "local queues", "any_degree", "directed"]
)
def test_bfs_is_one_launch(kind, parents):
    graph = ring(256)
    low = kind in ("low_degree", "global bits", "local queues")
    prepared = prepare_bfs(*graph) if low else {}
    in_queues = {"shared_bits": False, "solo_in": 4, "solo_out": 6, "local_most": 100}
    config = {"global bits": {"shared_bits": False}, "local queues": in_queues}
    config = BFSConfig(**config.get(kind, {}))
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


def on_mesh(devices, body, *sizes):
    """The StableHLO of `body` on each of several H200, given an int32 array of each size."""
    mesh = h200s(devices)
    run = jax.shard_map(body, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False)
    return lower(run, *(jnp.zeros(devices * size, jnp.int32) for size in sizes), mesh=mesh)


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("devices", [1, 2, 8])
def test_bfs_on_a_mesh_is_one_launch_a_device(devices, symmetric):
    def body(*graph):
        found = bfs_on_mesh(graph, jnp.int32(0), axes=("x",), n=250, symmetric=symmetric)
        return tuple(map(jnp.atleast_1d, found))

    text = on_mesh(devices, body, 257, 4096, 256 * devices)
    assert text.count("custom_call @mosaic_gpu") == 1
    assert ("uses_xla_collective_metadata = true" in text) == (devices > 1)


@pytest.mark.parametrize("entries", [2048, 65536])
def test_pagerank_on_a_mesh_is_one_launch_a_device(entries):
    def body(indptr, indices, names):
        rows, p = (indptr, indices, indices * 1.0), indptr[1:] * 1.0
        limits = Limits(0.85, 1e-6, 100, 0)
        found = pagerank_on_mesh(*rows, names[:250], p, limits, axes=("x",))
        return tuple(map(jnp.atleast_1d, found))

    assert on_mesh(2, body, 257, entries, 512).count("custom_call @mosaic_gpu") == 1


@pytest.mark.parametrize("symmetric", [True, False])
def test_components_on_a_mesh_are_one_launch_a_device(symmetric):
    def body(indptr, indices, names):
        how = {"axes": ("x",), "symmetric": symmetric}
        found = components_on_mesh(indptr, indices, names[:250], **how)
        return tuple(map(jnp.atleast_1d, found))

    assert on_mesh(2, body, 257, 4096, 512).count("custom_call @mosaic_gpu") == 1


def test_products_on_a_mesh_are_one_launch_a_device():
    semiring = ScalarSemiring.of(jnp.multiply, jnp.add, 0.0, jnp.dtype("float32"))

    def body(indptr, indices, names):
        x = jnp.ones((250, 128))
        how = {"axes": ("x",), "semiring": semiring}
        y, status = spmm_on_mesh(indptr, indices, indices * 1.0, x, names, **how)
        return y, jnp.atleast_1d(status)

    assert on_mesh(2, body, 257, 4096, 512).count("custom_call @mosaic_gpu") == 1


def test_products_with_dealt_rows_are_a_launch_a_chunk():
    semiring = ScalarSemiring.of(jnp.multiply, jnp.add, 0.0, jnp.dtype("float32"))

    def body(indptr, indices):
        x = jnp.ones((256, 132))
        y, status = row_sharded_spmm(
            indptr, indices, indices * 1.0, x, jnp.int32(200), axes=("x",), semiring=semiring
        )
        return y, jnp.atleast_1d(status)

    assert on_mesh(2, body, 257, 4096).count("custom_call @mosaic_gpu") == 4


@pytest.mark.parametrize("dtype", [jnp.float32, jnp.bfloat16])
@pytest.mark.parametrize("kind", ["A100-SXM4-80GB", "H100 80GB HBM3", "B200", "L4"])
def test_products_and_attention_lower_for_other_gpus(kind, dtype):
    """What instructions a GPU has follows from its compute capability."""
    indptr, indices = map(jnp.asarray, ring(64))
    rows, x = jnp.repeat(jnp.arange(64, dtype=jnp.int32), 2), jnp.ones((64, 4, 32), dtype)
    times = ScalarSemiring.of(jnp.multiply, jnp.add, 0.0, jnp.dtype("float32"))
    given, row_sums = Operands(indptr, indices, x, x, x), jnp.ones((64, 4))
    wide = x.astype(jnp.float32)
    for f, *operands in (
        (lambda x: csr_spmm(indptr, indices, jnp.ones(128), x, semiring=times), x[:, 0]),
        (lambda x: sddmm(rows, indices, x, x, semiring=times), x),
        (lambda x: csr_attention(given._replace(v=x), scale=0.5), x),
        (lambda w: csr_attention_vjp(given, row_sums, w, row_sums, scale=0.5), wide),
    ):
        text = lower(f, *operands, mesh=gpus(1, kind))
        assert text.count("custom_call @mosaic_gpu") == 1


def test_sssp_on_a_mesh_is_one_launch_a_device():
    def body(indptr, indices, names):
        graph = indptr, indices, indices * 1.0, names
        found = sssp_on_mesh(graph, 0, 2.0, 100, axes=("x",), n=250)
        return tuple(map(jnp.atleast_1d, found))

    assert on_mesh(2, body, 257, 4096, 512).count("custom_call @mosaic_gpu") == 1
