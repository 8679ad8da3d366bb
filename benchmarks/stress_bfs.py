"""Hunts races in the BFS kernels on a GPU: python benchmarks/stress_bfs.py [--sources 64]
[--repeats 20] [shapes] FILES

Every source of every graph is searched `repeats` times, the number of programs and threads varying
from one to the next; levels are compared bit for bit with SciPy's on the device, parents checked
for being one level above and (first repeat) an edge away. Shapes: star (hub of 200,000), path,
cliques, comb, two stars, grid, random directed.
"""

import argparse
import dataclasses
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.kernel_bfs import csr_from_edges, grid2d, matrix_market, oracle, wrong
from pallas_kernels import bfs, default_bfs_config, prepare_bfs

LAUNCHES = ((132, 1024), (97, 512), (31, 256), (7, 1024))  # programs, threads


def shapes():
    i = np.arange(200_000, dtype=np.int32)
    yield "star", csr_from_edges(jnp.zeros(199_999, jnp.int32), jnp.asarray(i[1:]), 200_000)
    two = np.concatenate([i[2:] % 2, np.array([0])]), np.concatenate([i[2:], np.array([5])])
    yield "two stars", csr_from_edges(*map(jnp.asarray, np.array(two, np.int32)), 200_000)
    yield "path", csr_from_edges(jnp.asarray(i[:5000]), jnp.asarray(i[1:5001]), 5001)
    a, b = (x.ravel().astype(np.int32) for x in np.meshgrid(np.arange(80), np.arange(80)))
    s = np.concatenate([a + 80 * c for c in range(30)] + [80 * np.arange(29)])
    d = np.concatenate([b + 80 * c for c in range(30)] + [80 * np.arange(29) + 81])
    yield "cliques", csr_from_edges(*map(jnp.asarray, np.array([s, d], np.int32)), 2400)
    comb = np.concatenate([i[:999], i[:1000]]), np.concatenate([i[1:1000], i[1000:2000]])
    yield "comb", csr_from_edges(*map(jnp.asarray, np.array(comb, np.int32)), 2000)
    yield "grid 300", grid2d(300)


def check(name, graph, args):
    n, degree = len(graph[0]) - 1, np.diff(graph[0])
    rng = np.random.default_rng(2)
    sources = np.unique(np.append(rng.integers(0, n, args.sources - 1), degree.argmax()))
    keys = np.repeat(np.arange(n, dtype=np.int64), degree) * n + graph[1]
    arrays = tuple(map(jnp.asarray, graph))
    forms = {"prepared": prepare_bfs(*graph), "plain": {}}
    if "adjacency" in forms["prepared"]:
        forms["renumbered"] = prepare_bfs(*graph, renumber=True)
    levels = {int(s): oracle(*graph, int(s)) for s in sources}
    for form, extra in forms.items():
        start, bad, runs = time.time(), 0, 0
        extra = jax.tree.map(jnp.asarray, extra)
        config = default_bfs_config(n, len(graph[1]), narrow="adjacency" in extra)

        @functools.partial(jax.jit, static_argnums=5)
        def compare(indptr, indices, extra, source, expected, config):
            got, tree, _, status = bfs(indptr, indices, source, prepared=extra, config=config)
            above = got[jnp.maximum(tree, 0)] == got - 1
            fine = jnp.where(got > 0, above, tree == jnp.where(got == 0, source, -1))
            return jnp.sum(got != expected) + jnp.sum(~fine) + status, got, tree

        kinds = [dataclasses.replace(config, programs=p, threads=t) for p, t in LAUNCHES]
        for s, expected in levels.items():
            on_device = jnp.asarray(expected)
            for r in range(args.repeats):
                kind = kinds[r % len(kinds)]
                count, got, tree = compare(*arrays, extra, jnp.int32(s), on_device, kind)
                bad += int(count) if r else int(count) + sum(wrong(expected, keys, s, got, tree))
                runs += 1
        print(f"{name} {form}: n={n} nnz={len(graph[1])} {len(levels)} sources, "
              f"{runs} searches, wrong {bad}, "
              f"{time.time() - start:.0f}s", flush=True)  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--sources", type=int, default=64)
    parser.add_argument("--repeats", type=int, default=20)
    args = parser.parse_args()
    for name in args.graphs:
        if name == "shapes":
            for shape, graph in shapes():
                check(shape, graph, args)
        else:
            check(name.rpartition("/")[2], matrix_market(name), args)
