"""`benchmarks.dev.one_of_each`: its checks pass for what the kernels give, and for nothing else."""

import jax
import jax.numpy as jnp
import pytest

from benchmarks import suite
from benchmarks.dev.one_of_each import algorithms
from pallas_kernels.simt.device import Grid, launching


def test_right_results_pass_and_others_do_not():
    A = suite.get("delaunay7").weighted()
    csr = tuple(map(jnp.asarray, (A.indptr, A.indices)))
    for name, run, check in algorithms(A, csr, jnp.asarray(A.data)):
        with launching(Grid(ctas=2, threads=64, interpret=True)):
            out = run()
        check(out)
        wrong = jax.tree.map(lambda x: ~x if x.dtype == bool else x + 1, out)
        if name == "louvain":  # any names of communities will do
            wrong = jnp.arange(len(csr[0]) - 1), out[1]
        with pytest.raises(AssertionError):
            check(wrong)
