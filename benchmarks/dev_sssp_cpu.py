"""Development: raw shortest paths on CPU against SciPy's Dijkstra, one process, interleaved.

    python -m benchmarks.dev_sssp_cpu [--widths 0.25,0.5,1] [names ...]

`--widths` sweeps the bucket width in units of the mean weight instead.
"""

import argparse
import functools
import pathlib
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from jaxspv.algorithms.sssp.forms import default_delta, sssp_parents_xla, sssp_xla

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tests" / "algorithms"))
from graph_files import graph_files  # noqa: E402
from test_sssp_real_graphs import weighted  # noqa: E402

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


RUN = jax.jit(lambda *a: sssp_xla(*a[:4], delta=a[4]))
RUN_WITH_TREE = jax.jit(lambda *a: sssp_xla(*a[:4], delta=a[4], parents=True))
TREE = jax.jit(sssp_parents_xla)


def compare(path, widths, rounds):
    """Prints SciPy's time and ours; returns SciPy's over ours. None if the graph is too small."""
    if (found := workload(path)) is None:
        return None
    matrix, put, source = found
    at, mean = jnp.int32(source), matrix.data.mean()
    wide = jnp.float32(default_delta(*map(np.asarray, put)))
    todo = {"scipy": lambda: dijkstra(matrix, indices=source)}
    if widths:
        for k in map(float, widths.split(",")):
            todo[f"{k}"] = functools.partial(RUN_WITH_TREE, *put, at, jnp.float32(k * mean))
    else:
        distances = RUN(*put, at, wide).distances
        todo["distances"] = lambda: RUN(*put, at, wide)
        todo["and tree"] = lambda: RUN_WITH_TREE(*put, at, wide)
        todo["tree by hops"] = lambda: TREE(*put, distances, at)
    least = interleaved(todo, rounds)
    base = least.pop("scipy")
    if not widths:
        least["sum"] = least["distances"] + least["tree by hops"]
    row = "  ".join(f"{k} {t:.2f} ({base / t:.2f})" for k, t in least.items())
    print(f"{path.name:30s} width {wide / mean:.2f} mean  scipy {base:.2f}  {row}", flush=True)
    return {k: base / t for k, t in least.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--widths", default="")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    names = tuple(options.names or [""])
    files = [path for path in graph_files() if path.name.startswith(names)]
    found = [compare(path, options.widths, options.rounds) for path in files]
    ratios = [r for r in found if r is not None]
    for k in ratios[0] if ratios else ():
        column = [r[k] for r in ratios]
        print(f"{k}: geometric mean {np.exp(np.mean(np.log(column))):.2f} least {min(column):.2f}")


if __name__ == "__main__":
    main()
