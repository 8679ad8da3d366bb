"""Development benchmark of the SSSP kernels on a GPU: python -m benchmarks.kernel_sssp rmat:18 ...

Graphs as in kernel_bfs.py, weights of PEERS: w(i, j) = (min * 2654435761 + max * 40503) mod 64 + 1.
Time inside one jitted program: K searches / K (K = 8), the source of each read from the result of
the one before. Every timed variant is checked: d[source] = 0 and d[v] = min over its edges of
d[u] + w, which has one solution where weights are positive. Options: --variant name=value,...
(overrides of Config; renumber=1; prepared=0; parents=1; delta=F alone; repeatable), --delta F
(multiples of `default_delta`; 0: infinity; repeatable), --sources N (more sources checked),
--repeats N (of each), --int (int32 weights), --each K.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np

from benchmarks.kernel_bfs import load, median_ms, parse
from pallas_kernels.prepare.lengths import prepare_sssp
from pallas_kernels.sssp.api import _search, default_config, default_delta


def weights_of(indptr, indices):
    """w(i, j) in 1..64, int32."""
    i = np.repeat(np.arange(len(indptr) - 1, dtype=np.int64), np.diff(indptr))
    low, high = np.minimum(i, indices), np.maximum(i, indices)
    return ((low * 2654435761 + high * 40503) % 64 + 1).astype(np.int32)


@functools.partial(jax.jit, static_argnums=0)
def wrong(n, indptr, indices, weights, source, distances):
    """Number of vertices where the equations do not hold (symmetric graph, positive weights)."""
    rows = jnp.repeat(jnp.arange(n), jnp.diff(indptr), total_repeat_length=indices.shape[0])
    infinite = jnp.inf if distances.dtype == jnp.float32 else jnp.iinfo(jnp.int32).max
    d = distances[indices]
    through = jnp.where(d == infinite, infinite, d + weights)
    best = jnp.full(n, infinite, distances.dtype).at[rows].min(through).at[source].set(0)
    return (best != distances).sum()


def run(name, variants, args):
    t = time.time()
    graph, source = load(name)
    n, nnz, degree = len(graph[0]) - 1, len(graph[1]), np.diff(graph[0])
    weights = weights_of(*graph).astype(np.int32 if args.int else np.float32)
    rng = np.random.default_rng(1)
    sources = [source, *rng.choice(np.flatnonzero(degree), args.sources - 1).tolist()]
    base = default_delta(graph[0], weights)
    print(f"== {name} n={n} nnz={nnz} delta={base} load {time.time() - t:.1f}s", flush=True)
    arrays, prepared = tuple(map(jnp.asarray, (*graph, weights))), {}
    for variant in variants:
        options = dict(variant)
        key = options.pop("renumber", 0), options.pop("prepared", 1)
        parents = options.pop("parents", 0)
        deltas = [options.pop("delta")] if "delta" in options else args.delta or [1.0]
        if key not in prepared:
            t = time.time()
            extra = prepare_sssp(*graph, weights, renumber=bool(key[0])) if key[1] else {}
            size = sum(x.nbytes for x in extra.values()) / 1e6
            print(f"   prepare {key}: {time.time() - t:.2f}s {size:.1f} MB", flush=True)
            prepared[key] = jax.tree.map(jnp.asarray, extra)
        extra = prepared[key]
        config = default_config(n, nnz, narrow="adjacency" in extra)
        config = type(config)(**{**config.__dict__, **options})
        try:
            measure(variant, arrays, extra, config, sources, base, deltas, args, parents)
        except Exception as error:
            print(f"   {variant} FAILED {repr(error)[:500]}", flush=True)


def measure(variant, arrays, extra, config, sources, base, deltas, args, parents):
    n, dtype = arrays[0].shape[0] - 1, arrays[2].dtype
    form = {"config": config, "parents": bool(parents), "symmetric": True}
    inner = jax.jit(lambda s, delta, extra, *a: _search(*a, s, delta, extra, **form))

    @jax.jit
    def many(s, delta, extra, *a):
        for _ in range(args.each):
            distances, *_ = inner(s, delta, extra, *a)
            s = s + distances[s].astype(jnp.int32)
        return s

    for multiple in deltas:
        infinite = np.inf if dtype == jnp.float32 else np.iinfo(np.int32).max
        delta = jnp.asarray(max(base * multiple, 1) if multiple else infinite, dtype)
        bad = 0
        for s in sources:
            for _ in range(args.repeats):
                out = inner(jnp.int32(s), delta, extra, *arrays)
                bad += int(wrong(n, *arrays, s, out[0])) + int(out[3])
        out = inner(jnp.int32(sources[0]), delta, extra, *arrays)
        steps, splits, work = (int(out[j]) for j in (2, 4, 5))
        times = median_ms(many, jnp.int32(sources[0]), delta, extra, *arrays)
        median, least = (t / args.each for t in times)
        each = 1e3 * median / (steps + splits + 1)
        print(
            f"   {variant} delta x{multiple}: {median:.3f} ms (min {least:.3f}), {steps} rounds "
            f"of {each:.2f} us, {splits} splits, {work / n:.2f} n relaxed, "
            f"{bad} wrong in {len(sources)}x{args.repeats}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--delta", action="append", type=float, default=[])
    parser.add_argument("--sources", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--int", action="store_true")
    args = parser.parse_args()
    for name in args.graphs:
        run(name, [parse(v) for v in args.variant] or [{}], args)
