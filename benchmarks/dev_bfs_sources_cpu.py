"""BFS from 32 sources on CPU over BFS from one: `python -m benchmarks.dev_bfs_sources_cpu NAME ...`

NAME: rmat:16 or a Matrix Market file. Random sources of positive degree on one prepared graph; the
calls take turns in one process, medians. The search from one source is the mean over four of them.
The levels of the 32 are compared with those from one source before anything is timed, and with
parents each parent must be one level nearer and an edge.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from benchmarks.kernel_bfs import load

COUNT, ALONE = 32, 4


def check(matrix: sp.csr_array, sources: np.ndarray, result: jsp.BFS, one) -> None:
    """Every level as from one source; every parent an in-neighbour one level nearer."""
    levels = np.asarray(result.levels)
    for k, source in enumerate(sources):
        np.testing.assert_array_equal(levels[k], one(np.int32(source)).levels)
        if result.parents is None:
            continue
        parents = np.asarray(result.parents[k])
        below = np.flatnonzero(levels[k] > 0)
        above = parents[below]
        assert parents[source] == source and (parents[levels[k] < 0] == -1).all()
        assert (levels[k][above] == levels[k][below] - 1).all()
        assert (matrix[above, below] != 0).all()


def run(name: str, seconds: float) -> None:
    (indptr, indices), _ = load(name)
    n = len(indptr) - 1
    matrix = sp.csr_array((np.ones(len(indices), np.int8), indices, indptr), (n, n))
    G = jsp.prepare(jsp.from_scipy(matrix.astype(np.float32)), for_="bfs")
    rng = np.random.default_rng(1)
    sources = rng.choice(np.flatnonzero(np.diff(indptr)), COUNT, replace=False).astype(np.int32)
    for parents in (False, True):
        search = jax.jit(lambda G, s, parents=parents: jsp.bfs(G, s, parents=parents))
        check(matrix, sources, search(G, jnp.asarray(sources)), functools.partial(search, G))
        calls = [jnp.asarray(sources), *(jnp.int32(s) for s in sources[:ALONE])]
        times: list[list[float]] = [[] for _ in calls]
        end = time.perf_counter() + seconds
        while len(times[0]) < 5 or time.perf_counter() < end:
            for call, taken in zip(calls, times, strict=True):
                begin = time.perf_counter()
                jax.block_until_ready(search(G, call))
                taken.append(time.perf_counter() - begin)
        many, *alone = (statistics.median(t) * 1e3 for t in times)
        each = statistics.mean(alone)
        what = "levels, parents" if parents else "levels"
        print(
            f"{name} n={n} edges={len(indices)} {what}: {COUNT} sources {many:.2f} ms, "
            f"one {each:.2f} ms, {many / each:.1f}x",
            flush=True,
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+")
    parser.add_argument("--seconds", type=float, default=4, help="of each measurement")
    options = parser.parse_args()
    print("jax", jax.__version__)
    for name in options.names:
        run(name, options.seconds)


if __name__ == "__main__":
    main()
