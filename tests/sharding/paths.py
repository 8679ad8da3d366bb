"""Checks of shortest paths in one launch, interpreted; `program.py` runs them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sharded_calls import compare, exact

import jaxspv as jsp
from jaxspv.algorithms.sssp.mesh import one_launch
from pallas_kernels.simt.device import Grid, launching


def paths(mesh_of, A):
    """On small graphs, of rows of many pieces and many flags, with weights below 0."""
    rng = np.random.default_rng(0)
    search = jax.jit(one_launch, static_argnames="parents")

    def run(*given, **options):
        with launching(Grid(2, 64, interpret=True)):
            return search(*given, **options)

    most = np.int32(2**31 - 1)
    for name in ("two", "four"):
        G = jsp.shard(A, *mesh_of(name))
        for source in (0, 34, A.shape[0] - 1):
            got = run(G, jnp.int32(source), None, None, most, parents=True)
            compare({"sssp": got}, {"sssp": jsp.sssp(A, source, deterministic=True)})
    hub = np.append(rng.integers(0, 700, 600), np.zeros(600, int)), np.arange(1200) % 700
    lengths = rng.integers(1, 64, 1200).astype(np.float32)
    both = np.append(*hub), np.append(*hub[::-1]), np.append(lengths, lengths)
    A = jsp.from_edges(*both, shape=(700, 700))
    want = jsp.sssp(A, 9).distances
    for name in ("one", "two", "four"):
        G = jsp.shard(A, *mesh_of(name))
        for width in (None, np.float32(5), np.float32(np.inf)):
            got = run(G, jnp.int32(9), None, width, most, parents=False)
            exact(got.distances, want)
            assert bool(got.converged)
    stopped = run(G, jnp.int32(9), None, np.float32(5), np.int32(2), parents=False)
    assert int(stopped.steps) == 2 and not bool(stopped.converged)
    falling = np.where(np.arange(59) % 7 == 3, -5.0, 3.0).astype(np.float32)
    A = jsp.from_edges(np.arange(59), np.arange(1, 60), falling, shape=(90, 90))
    G = jsp.shard(A, *mesh_of("two"))
    for source in (0, 3):  # no length falls below 0; some do
        got = run(G, jnp.int32(source), None, None, most, parents=False)
        exact(got.distances, jsp.sssp(A, source).distances)
    A = jsp.from_edges([0, 1, 2], [1, 2, 1], [900.0, 3.0, -4.0], shape=(40, 40))
    G = jsp.shard(A, *mesh_of("two"))  # ends before the lengths of the cycle are below 0
    got = run(G, jnp.int32(0), None, None, most, parents=False)
    assert not bool(got.converged) and float(got.distances[1]) > 0
    with pytest.raises(jsp.NegativeCycleError):  # by this call, where nothing waits for a GPU
        jsp.sssp(G, 0)
