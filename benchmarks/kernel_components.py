"""Development benchmark of components: python -m benchmarks.kernel_components rmat:21 ...

Time inside one jitted program: K launches / K (K = 8), each fed a value of the one before. Labels
are checked against SciPy. Graphs as in kernel_bfs.py.
"""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from benchmarks.kernel_bfs import load, median_ms
from pallas_kernels.components import components

EACH = 8


def expected(indptr, indices):
    """The least vertex of each component of a symmetric graph."""
    n = len(indptr) - 1
    a = sp.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    count, which = sp.csgraph.connected_components(a, directed=False)
    least = np.full(count, n)
    np.minimum.at(least, which, np.arange(n))
    return least[which]


def run(name):
    graph, _ = load(name)
    right = expected(*graph)
    for symmetric in (True, False):
        one = jax.jit(lambda p, i, symmetric=symmetric: components(p, i, symmetric=symmetric))

        @jax.jit
        def many(p, i, one=one):
            for _ in range(EACH):
                labels, _ = one(p, i)
                p = p + labels[0]  # vertex 0 has label 0
            return labels

        arrays = tuple(map(jnp.asarray, graph))
        wrong = sum(int((np.asarray(one(*arrays)[0]) != right).sum()) for _ in range(3))
        median, least = (t / EACH for t in median_ms(many, *arrays))
        count = len(np.unique(right))
        print(
            f"{name} n={len(right)} nnz={len(graph[1])} components={count} "
            f"symmetric={symmetric}: {median:.3f} ms (min {least:.3f}), "
            f"{wrong} wrong in 3",
            flush=True,
        )


if __name__ == "__main__":
    for graph_name in sys.argv[1:]:
        run(graph_name)
