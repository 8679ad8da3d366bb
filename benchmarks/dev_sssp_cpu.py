"""Development: raw shortest paths on CPU against SciPy's Dijkstra, one process, interleaved.

    python -m benchmarks.dev_sssp_cpu [--widths 0.25,0.5,1] [names ...]

`--widths` sweeps the bucket width in units of the mean weight instead.
"""

import argparse
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from jaxspv.algorithms._sssp_xla import default_delta, sssp_parents_xla, sssp_xla

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "algorithms"))
from graph_files import graph_files  # noqa: E402
from test_sssp_xla import weighted  # noqa: E402

MANY = 50_000
CLOCK = time.process_time  # of all threads: the machine may be shared


def interleaved(functions, rounds):
    """The least time of each, in ms, over rounds in which each runs once."""
    least = dict.fromkeys(functions, np.inf)
    for f in functions.values():
        jax.block_until_ready(f())
    for _ in range(rounds):
        for name, f in functions.items():
            begin = CLOCK()
            jax.block_until_ready(f())
            least[name] = min(least[name], 1e3 * (CLOCK() - begin))
    return least


def workload(path):
    """SciPy's matrix, arrays for JAX and the source of largest degree; None if too small."""
    arrays = weighted(path)
    if arrays is None or len(arrays[1]) <= MANY:
        return None
    indptr, indices, weights = arrays
    n = len(indptr) - 1
    matrix = sp.csr_matrix((weights.astype(np.float64), indices, indptr), (n, n))
    source = int(np.argmax(np.diff(indptr)))
    put = [jnp.asarray(a) for a in (indptr, indices, weights.astype(np.float32))]
    return matrix, put, source


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    run = jax.jit(lambda *a: sssp_xla(*a[:4], delta=a[4]))
    with_tree = jax.jit(lambda *a: sssp_xla(*a[:4], delta=a[4], parents=True))
    tree = jax.jit(sssp_parents_xla)
    ratios = []
    for path in graph_files():
        if options.names and not any(path.name.startswith(n) for n in options.names):
            continue
        if (found := workload(path)) is None:
            continue
        matrix, put, source = found
        mean, wide = matrix.data.mean(), default_delta(*map(np.asarray, put))
        at = jnp.int32(source)
        todo = {"scipy": lambda: dijkstra(matrix, indices=source)}
        if options.widths:
            for k in map(float, options.widths.split(",")):
                todo[f"{k}"] = lambda d=jnp.float32(k * mean): with_tree(*put, at, d)
        else:
            distances = run(*put, at, jnp.float32(wide)).distances
            todo["distances"] = lambda: run(*put, at, jnp.float32(wide))
            todo["and tree"] = lambda: with_tree(*put, at, jnp.float32(wide))
            todo["tree by hops"] = lambda: tree(*put, distances, at)
        least = interleaved(todo, options.rounds)
        base = least.pop("scipy")
        row = "  ".join(f"{k} {t:.2f} ({base / t:.2f})" for k, t in least.items())
        print(f"{path.name:30s} width {wide / mean:.2f} mean  scipy {base:.2f}  {row}", flush=True)
        both = least.get("distances", np.inf) + least.get("tree by hops", 0)
        ratios.append([*(base / t for t in least.values()), base / both])
    if ratios:
        logs = np.log(np.maximum(ratios, 1e-9))
        print(*least, "distances + tree by hops", sep=" | ")
        print("geometric mean", np.exp(logs.mean(0)).round(2), "least", np.min(ratios, 0).round(2))


if __name__ == "__main__":
    main()
