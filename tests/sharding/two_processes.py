"""One of two processes with two CPU devices each, joined by gloo: `two_processes.py RANK PORT`.

Prints "right" where everything over the four devices is what one device gives.
"""

import os
import sys

if __name__ == "__main__":
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["JAX_NUM_CPU_DEVICES"] = "2"
    os.environ["JAX_CPU_COLLECTIVES_IMPLEMENTATION"] = "gloo"

import jax
import numpy as np
from jax.sharding import AxisType
from jax.sharding import PartitionSpec as P

import jaxspv as jsp
from jaxspv.sharding.builders import files


def calls(A, x):
    """What both must agree on, exactly."""
    return {
        "mxv": jsp.mxv(A, x),
        "bfs": jsp.bfs(A, 3, deterministic=True)[:3],
        "sssp": jsp.sssp(A, 3, deterministic=True)[:2],
        "components": jsp.connected_components(A).labels,
    }


def main(rank, port):
    """Joins the other process and compares."""
    jax.distributed.initialize(f"localhost:{port}", 2, int(rank))
    assert jax.device_count() == 4 and jax.local_device_count() == 2
    rng = np.random.default_rng(0)  # every process makes the same matrix
    dense = np.where(rng.random((90, 90)) < 0.04, rng.integers(1, 9, (90, 90)), 0)
    A, x = jsp.from_dense(dense.astype(np.float32)), np.arange(90, dtype=np.float32)
    want = jax.tree.map(np.asarray, jax.jit(calls)(A, x))
    mesh = jax.make_mesh((2, 2), ("r", "c"), axis_types=(AxisType.Auto,) * 2)
    G = jsp.shard(A, mesh, P("r", "c"))
    assert not G.data.is_fully_addressable
    jax.tree.map(np.testing.assert_array_equal, jax.jit(calls)(G, x), want)
    np.testing.assert_array_equal(G.unshard().todense(), dense)
    G = jsp.shard(A, mesh)  # whole rows, eagerly
    np.testing.assert_array_equal(jsp.mxv(G, x), want["mxv"])
    own_edges(int(rank), mesh, dense, (A, x), want)
    print("right", flush=True)


def own_edges(rank, mesh, dense, given, want):
    """Each process gives what the other has not, or reads its part of a file."""
    row, col = np.nonzero(dense)
    first = row.size // 3  # the shares differ
    mine = slice(0, first) if rank == 0 else slice(first, None)
    mine = row[mine], col[mine], dense[row, col][mine].astype(np.float32)
    G = jsp.sharding.shard_edges(*mine, mesh=mesh, spec=P("r", "c"), n=90)
    np.testing.assert_array_equal(G.unshard().todense(), dense)
    jax.tree.map(np.testing.assert_array_equal, jax.jit(calls)(G, given[1]), want)
    for wrong in ({"n": 90 + rank}, {"values": mine[2].astype((np.float32, np.int32)[rank])}, {}):
        how = dict(zip(("senders", "receivers", "values"), mine, strict=True)) | wrong
        if not wrong and rank == 1:
            how["senders"] = -mine[0] - 1
        try:
            jsp.sharding.shard_edges(**how, mesh=mesh)
        except ValueError as error:
            said = "must be the same" if wrong else ("of another process", "`senders` must")[rank]
            assert said in str(error), str(error)
        else:
            raise AssertionError(how)
    key = jax.random.key(0)
    drawn = jsp.sharding.shard_rmat(key, 7, 5, mesh=mesh).unshard()
    np.testing.assert_array_equal(drawn.todense(), jsp.generators.rmat(key, 7, 5).todense())
    files.BLOCK = 1000
    path = jsp.bundled("jazz")
    read = jsp.sharding.shard_file(path, mesh=mesh, spec=P("r", "c")).unshard()
    np.testing.assert_array_equal(read.todense(), jsp.read_mtx(path).todense())


if __name__ == "__main__":
    main(*sys.argv[1:])
