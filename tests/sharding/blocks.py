"""Searches of graphs of small degree in blocks with halos, interpreted, beside one device."""

import functools

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp
from jaxspv.algorithms.bfs.mesh_gpu import BFSConfig, in_blocks
from jaxspv.sharding.blocks import halo
from jaxspv.sharding.blocks import ordering as line
from jaxspv.sharding.builders import shard as api
from pallas_kernels.bfs.mesh import levels


def both_ways(row, col, n):
    return jsp.from_edges(np.append(row, col), np.append(col, row), shape=(n, n)), True


def graphs():
    """Name -> (matrix, whether it is symmetric, a depth)."""
    rng = np.random.default_rng(0)
    n, before = 200, np.arange(1, 200)
    near = rng.integers(0, n - 9, 900)
    random = rng.integers(0, n, (2, 450))
    return {
        "grid": (jsp.generators.grid2d(None, 14), True, 3),
        "path": (*both_ways(before - 1, before, n), 5),
        "cycle": (*both_ways(np.arange(n), (np.arange(n) + 1) % n, n), 4),
        "directed path": (jsp.from_edges(before - 1, before, shape=(230, 230)), False, 3),
        "tree": (*both_ways(before, (before - 1) // 2, n), 2),
        "bush": (*both_ways(before, (before - 1) // 6, n), 2),
        "long rows": (*both_ways(near, near + rng.integers(1, 9, near.size), n), 2),
        "random": (jsp.from_edges(*random, shape=(n, n)), False, 2),
        "tiny": (*both_ways(np.arange(2), np.arange(1, 3), 3), 1),
        "empty": (jsp.from_edges([], [], shape=(5, 5)), True, 2),
    }


def sharded(A, mesh, symmetric, depth):
    """With a halo wherever the devices are, however much of the graph is in it."""

    def made(part, out, row, positions, order, symmetric):
        into = out if symmetric else out.transposed(row)
        on = functools.partial(api._on_devices, part)
        return halo.halo_of(part, out, into, positions, order, on, depth=depth, share=0)

    kept = api._halo, line.CUT, line.UNEVEN
    api._halo, line.CUT, line.UNEVEN = made, 1.0, 99.0
    try:
        return jsp.shard(A, mesh, symmetric=symmetric)
    finally:
        api._halo, line.CUT, line.UNEVEN = kept


ALONE = BFSConfig(ctas=2, threads=64, queue=256, solo_in=250, solo_out=256)
TOGETHER = BFSConfig(ctas=2, threads=64, queue=16, solo_in=-1, solo_out=16)
GLOBAL_BITS = BFSConfig(ctas=2, threads=32, queue=256, solo_in=250, solo_out=256, shared_bits=False)
BY_TURNS = BFSConfig(ctas=2, threads=32, queue=8, solo_in=4, solo_out=6)  # one device: in lock step


def in_one_launch(mesh_of):
    """By one CTA of each device, by all, by both in turn; told in bytes and in words."""
    kept, levels.BYTE = levels.BYTE, 15
    try:
        for devices, names, configs in (
            ("one", ("grid", "bush", "tree", "long rows"), (BY_TURNS, TOGETHER)),
            ("two", tuple(graphs()), (ALONE, TOGETHER)),
            ("four", ("grid", "directed path", "long rows", "random", "tiny"), (GLOBAL_BITS,)),
        ):
            for name in names:
                for config in configs:
                    searched(name, mesh_of(devices)[0], config)
    finally:
        levels.BYTE = kept


def searched(name, mesh, config):
    A, symmetric, depth = graphs()[name]
    G = sharded(A, mesh, symmetric, depth)
    assert G.halo is not None, name
    how = {"parents": config is TOGETHER, "config": config, "interpret": True}
    run = jax.jit(functools.partial(in_blocks, **how))
    for source in sorted({0, A.shape[0] // 2, A.shape[0] - 1}):
        got, want = run(G, jnp.int32(source), None), jsp.bfs(A, source, deterministic=True)
        assert int(got.status) == 0, (name, source)
        np.testing.assert_array_equal(got.levels, want.levels, f"{name} from {source}")
        assert int(got.num_levels) == int(want.num_levels), (name, source)
        if how["parents"]:
            np.testing.assert_array_equal(got.parents, want.parents, f"{name} from {source}")


def lines(mesh_of):
    """Who is in blocks: given orders, found ones, neither; the same products and matrices."""
    mesh, _ = mesh_of("four")
    grid = jsp.generators.grid2d(None, 40)
    mixed = np.random.default_rng(1).permutation(1600)
    row, col = (np.asarray(x)[: int(grid.count)] for x in grid.rowcol())
    shuffled = jsp.from_edges(mixed[row], mixed[col], shape=grid.shape)
    for A in (grid, shuffled):
        G = jsp.shard(A, mesh, symmetric=True)
        ends = np.asarray(G.indices)[..., : int(np.asarray(G.indptr)[..., -1].min())]
        own = np.arange(4)[:, None, None] * G.part.places
        inside = (ends >= own) & (ends < own + G.part.places)
        assert inside.mean() > 0.9
        degrees = np.diff(np.asarray(G.indptr)[:, 0])
        assert (np.diff(degrees, axis=1) <= 0).all()  # heaviest first on each device
        back = G.unshard()
        np.testing.assert_array_equal(back.indptr, A.indptr)
        np.testing.assert_array_equal(back.indices, np.asarray(A.indices)[: back.indices.size])
        np.testing.assert_array_equal(jsp.bfs(G, 7).levels, jsp.bfs(A, 7).levels)
    out = halo.Rows(np.asarray(grid.indptr), np.asarray(grid.indices)[: int(grid.count)])
    part = jsp.shard(grid, mesh).part
    assert (line.ordering_of(part, *out) == np.arange(1600)).all()
    star = jsp.from_edges(np.zeros(99, int), np.arange(1, 100), shape=(100, 100))
    expander = np.random.default_rng(2).integers(0, 1600, (2, 6400))
    for A in (star, jsp.from_edges(*expander, shape=grid.shape)):
        count = int(A.indptr[-1])
        other = jsp.shard(A, mesh).part
        found = line.ordering_of(other, np.asarray(A.indptr), np.asarray(A.indices)[:count])
        assert found is None
