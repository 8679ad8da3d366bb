"""The benchmark of algorithms: what it does where numbers exceed float32."""

import itertools

import numpy as np
import scipy.sparse as sp

from benchmarks.graphs import algorithms
from benchmarks.options import Options


def test_counts_beyond_float32_are_taken_in_float64():
    """Layers of eight vertices, all joined to the next: 8^43 paths exceed 2^128."""
    layers = np.arange(8 * 46).reshape(46, 8)
    pairs = [(a, b) for one, two in itertools.pairwise(layers) for a in one for b in two]
    row, col = np.array(pairs).T
    half = sp.coo_array((np.ones(len(row), np.float32), (row, col)), shape=2 * (layers.size,))
    B = sp.csr_array(half + half.T)
    label = "betweenness, 8 sources"
    how = Options(runs=1, baselines=False)
    (record,) = algorithms.records_of({label: algorithms.CASES[label]}, B, B, "layers", how)
    assert record["program"] == "jaxspv, float64" and record["verified"]
