"""BFS on CPU against SciPy's, graph by graph: `python -m benchmarks.dev_bfs_cpu DIR`.

Prints for every square graph with over 50,000 entries and for two sources (largest degree, 0) the
smallest time of interleaved calls and the ratio SciPy / jaxspv; then the geometric mean. Levels are
compared with SciPy's order before anything is timed. `--form level_synchronous` times the other
form; `--no-parents` and `--bare` (no in-edges) leave something out.
"""

from __future__ import annotations

import argparse
import functools
import pathlib
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.io
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order

from jaxspv.algorithms.bfs.forms import bfs_xla
from jaxspv.verify import levels_of


def searcher(matrix: sp.csr_array, options: argparse.Namespace):
    """`source -> result` on the prepared graph, compiled once for all sources."""
    inn = matrix.T.tocsr()
    inn.sort_indices()
    symmetric = (matrix != inn).nnz == 0
    arrays = {} if symmetric else {"in_indptr": inn.indptr, "in_indices": inn.indices}
    if options.bare:
        arrays, symmetric = {}, False
    more = jax.tree.map(jnp.asarray, arrays)
    static = {"symmetric": symmetric, "parents": not options.no_parents, "form": options.form}
    fn = jax.jit(functools.partial(bfs_xla, **static))
    graph = jnp.asarray(matrix.indptr), jnp.asarray(matrix.indices)
    return lambda source: jax.block_until_ready(fn(*graph, np.int32(source), **more))


def seconds(fns, budget: float) -> list[float]:
    """Smallest time of each function, called in turn for `budget` seconds and at least 5 times."""
    best, end, count = [np.inf] * len(fns), time.perf_counter() + budget, 0
    while count < 5 or time.perf_counter() < end:
        for i, fn in enumerate(fns):
            begin = time.perf_counter()
            fn()
            best[i] = min(best[i], time.perf_counter() - begin)
        count += 1
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--only", default="", help="graph names that contain this")
    parser.add_argument("--form")
    parser.add_argument("--no-parents", action="store_true")
    parser.add_argument("--bare", action="store_true")
    parser.add_argument("--budget", type=float, default=0.4, help="seconds a graph and source")
    options = parser.parse_args()
    ratios: dict[str, list[float]] = {"largest degree": [], "vertex 0": []}
    print("jax", jax.__version__)
    print(f"{'graph':24}{'source':>8}{'levels':>8}{'scipy ms':>10}{'ms':>9} ratio")
    for file in sorted(options.data.glob("*.mtx*")):
        if options.only not in file.name:
            continue
        matrix = scipy.io.mmread(file, spmatrix=False).tocsr()
        if matrix.shape[0] != matrix.shape[1] or matrix.nnz <= 50_000:
            continue
        values = np.ones(matrix.nnz, np.float32)
        matrix = sp.csr_array((values, matrix.indices, matrix.indptr), matrix.shape)
        search = searcher(matrix, options)
        for which, source in zip(ratios, (int(np.diff(matrix.indptr).argmax()), 0), strict=True):
            levels, _, num_levels = search(source)
            np.testing.assert_array_equal(levels, levels_of(matrix, source))
            base = functools.partial(breadth_first_order, matrix, source)
            scipy_s, ours = seconds([base, functools.partial(search, source)], options.budget)
            ratios[which].append(scipy_s / ours)
            name = file.name.split(".")[0]
            print(
                f"{name:24}{source:8}{int(num_levels):8}{scipy_s * 1e3:10.3f}{ours * 1e3:9.3f}"
                f" {scipy_s / ours:5.2f}",
                flush=True,
            )
    for which, values in ratios.items():
        mean = np.exp(np.mean(np.log(values)))
        print(f"{which}: geometric mean {mean:.2f}, least {min(values):.2f}")


if __name__ == "__main__":
    main()
