"""The width of buckets of shortest paths, on the host and traced."""

import jax.numpy as jnp
import numpy as np

import jaxspv as jsp
from jaxspv.algorithms.sssp.layout import delta_of, kernel_delta, traced_delta

N, EDGES, CAPACITY = 30, 150, 200


def default_delta(indptr, indices, weights):
    top = np.inf if weights.dtype == np.float32 else 2**31 - 1
    finite = weights[weights < top]
    mean = finite.mean(dtype=np.float64) if finite.size else 0.0
    return delta_of(mean, len(indptr) - 1, len(indices), weights.dtype)


def test_default_delta():
    rng = np.random.default_rng(0)
    edges = np.unique(rng.integers(0, N * N, EDGES))
    indptr = np.searchsorted(edges // N, np.arange(N + 1)).astype(np.int32)
    indices, weights = (edges % N).astype(np.int32), rng.random(len(edges)).astype(np.float32)
    padded = np.pad(weights, (0, CAPACITY - len(weights)), constant_values=np.nan)
    width = default_delta(indptr, indices, weights)
    assert 0.15 * weights.mean() <= width <= 3 * weights.mean()
    np.testing.assert_allclose(traced_delta(jnp.asarray(indptr), padded), width, rtol=1e-5)
    whole = (100 * np.nan_to_num(padded)).astype(np.int32)
    width = default_delta(indptr, indices, whole[: len(indices)])
    assert 0 <= width - traced_delta(indptr, whole) <= 1
    assert traced_delta(indptr, -padded) == np.inf
    weights[:3] = np.inf
    assert np.isfinite(default_delta(indptr, indices, weights))
    big = np.full(len(indices), 2**31 - 1, np.int32)
    assert default_delta(indptr, indices, big) == 1
    assert default_delta(np.zeros(1, np.int32), indices[:0], weights[:0]) == 0

    for dtype in (np.int64, np.uint64):  # the nearest float is beyond the largest integer
        for mean, most in ((2.0**62, np.iinfo(dtype).max), (5.0, 1 << 20)):
            assert 1 <= kernel_delta(mean, 9, 4, 16, dtype) <= most


def test_weights_near_the_largest_float():  # warnings are errors in tests: the width overflows
    A = jsp.from_edges([0, 1, 0], [1, 2, 2], np.float32([3e38, 3e38, 3.2e38]), shape=(3, 3))
    for graph in (A, jsp.prepare(A, for_="sssp")):
        np.testing.assert_array_equal(jsp.sssp(graph, 0).distances, np.float32([0, 3e38, 3.2e38]))
