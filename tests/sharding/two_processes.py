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
    print("right", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
