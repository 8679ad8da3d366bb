"""Development benchmark of BFS from 32 sources: python -m benchmarks.kernel_bfs_sources rmat:18 ...

Time inside one jitted program: K launches / K (K = 8), the sources of each moved by a value of the
one before; beside it 32 launches of the kernel for one source. The levels of all 32 sources and the
parents of four are checked against SciPy. Options: --variant alpha=1.5,unroll=2,long=256,...
"""

import argparse
import functools
import json
import pathlib

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.kernel_bfs import load, median_ms, oracle, wrong
from pallas_kernels.bfs.api import bfs
from pallas_kernels.bfs.multi_source import bfs_sources
from pallas_kernels.prepare.adjacency import prepare_bfs

EACH, COUNT = 8, 32


def parse(text):
    pairs = (p.split("=") for p in text.split(",") if p)
    return {key: float(value) for key, value in pairs}


def many_launches(search, parents):
    inner = jax.jit(search)

    @jax.jit
    def many(indptr, indices, sources):
        for _ in range(EACH):
            levels, tree, status = inner(indptr, indices, sources)
            # The level of a source is 0: what follows cannot start before it is known.
            sources = sources + levels[0, sources[0]]
        return sources, status

    return many


def one_at_a_time(graph):
    prepared = jax.tree.map(jnp.asarray, prepare_bfs(*graph))
    inner = jax.jit(lambda p, i, s, extra: bfs(p, i, s, prepared=extra))

    @jax.jit
    def many(indptr, indices, sources, extra):
        source = sources[0]
        for k in range(COUNT):
            levels, *_ = inner(indptr, indices, source, extra)
            source = sources[(k + 1) % COUNT] + levels[source]
        return source

    return functools.partial(many), prepared


def run(name, variants, out):
    graph, _ = load(name)
    n, nnz, degree = len(graph[0]) - 1, len(graph[1]), np.diff(graph[0])
    chosen = np.random.default_rng(1).choice(np.flatnonzero(degree), COUNT, replace=False)
    expected = {int(s): oracle(*graph, int(s)) for s in chosen}
    keys = np.repeat(np.arange(n, dtype=np.int64), degree) * n + graph[1]
    arrays = (*map(jnp.asarray, graph), jnp.asarray(chosen, jnp.int32))
    one, prepared = one_at_a_time(graph)
    apart, _ = median_ms(one, *arrays, prepared, runs=5)
    print(f"== {name} n={n} nnz={nnz}: 32 launches of one source {apart:.3f} ms", flush=True)
    for variant in variants:
        module_options = {
            "unroll": "UNROLL",
            "long": "LONG",
            "span": "SPAN",
            "by_vertex": "BY_VERTEX",
        }
        module = __import__("pallas_kernels.bfs.multi_source", fromlist=["x"])
        saved = {name: getattr(module, name) for name in module_options.values()}
        for key, value in variant.items():
            if key in module_options:
                setattr(module, module_options[key], int(value))
        options = {key: v for key, v in variant.items() if key not in module_options}
        for parents in (True, False):
            search = functools.partial(bfs_sources, parents=parents, **options)
            levels, tree, status = jax.jit(search)(*arrays)
            bad = np.zeros(2, int)
            for k, s in enumerate(chosen.tolist()):
                seen = None if tree is None or k % 8 else tree[k]
                bad += wrong(expected[s], keys, s, levels[k], seen)
            ms, least = (t / EACH for t in median_ms(many_launches(search, parents), *arrays))
            row = {
                "graph": name,
                "variant": variant,
                "parents": parents,
                "ms": ms,
                "least": least,
                "wrong levels": int(bad[0]),
                "wrong parents": int(bad[1]),
                "status": int(status),
                "32 launches of one source, ms": apart,
            }
            out.append(row)
            print(
                f"   {variant} parents={parents}: {ms:.3f} ms (min {least:.3f}), wrong levels "
                f"{bad[0]} parents {bad[1]} status {int(status)}",
                flush=True,
            )
        for key, value in saved.items():
            setattr(module, key, value)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    rows = []
    for graph_name in args.graphs:
        run(graph_name, [parse(v) for v in args.variant] or [{}], rows)
        if args.output:
            args.output.write_text(json.dumps(rows, indent=1))
