"""Development benchmark of the BFS kernels on a GPU: python benchmarks/kernel_bfs.py rmat:18
grid:1000 PATH.mtx.gz ...

Time inside one jitted program: K traversals / K (K = 8), the source of each read from the result of
the one before. Every timed variant is checked against SciPy, levels and parents. Options: --sources
8 (more sources checked), --repeats 3 (of each), --variant name=value,... (overrides of BFSConfig;
renumber=1; prepared=0; repeatable), --levels-only, --each K.
"""

import argparse
import functools
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax

from pallas_kernels.bfs.api import _search, bfs, default_bfs_config
from pallas_kernels.prepare.adjacency import prepare_bfs


def csr_from_edges(s, d, n):
    s, d = jnp.concatenate([s, d]), jnp.concatenate([d, s])
    s, d = jax.jit(lambda s, d: lax.sort((s, d), num_keys=2))(s, d)
    new = jax.jit(lambda s, d: (s != d) & jnp.append(True, (s[1:] != s[:-1]) | (d[1:] != d[:-1])))
    keep = np.asarray(new(s, d))
    s, d = np.asarray(s)[keep], np.asarray(d)[keep]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(s, minlength=n))])
    return indptr.astype(np.int32), d.astype(np.int32)


def rmat(scale, edge_factor=44, seed=0):
    n, m = 1 << scale, (1 << scale) * edge_factor

    def generate(key):
        def bit(i, state):
            u, v, key = state
            key, k1 = jax.random.split(key)
            r = jax.random.uniform(k1, (m,))
            a, b, c = 0.57, 0.19, 0.19
            right = ((r >= a) & (r < a + b)) | (r >= a + b + c)
            return u * 2 + (r >= a + b), v * 2 + right, key

        zero = jnp.zeros(m, jnp.int32)
        u, v, key = lax.fori_loop(0, scale, bit, (zero, zero, key))
        p = jax.random.permutation(key, n).astype(jnp.int32)
        return p[u], p[v]

    return csr_from_edges(*jax.jit(generate)(jax.random.key(seed)), n)


def grid2d(k, drop=0.1, seed=0):
    i = np.arange(k * k, dtype=np.int32).reshape(k, k)
    s, d = (
        np.concatenate([a.ravel(), b.ravel()]) for a, b in ((i[:, :-1], i[:-1]), (i[:, 1:], i[1:]))
    )
    keep = np.random.default_rng(seed).random(len(s)) > drop
    return csr_from_edges(jnp.asarray(s[keep]), jnp.asarray(d[keep]), k * k)


def delaunay(scale):
    from scipy.spatial import Delaunay

    t = Delaunay(np.random.default_rng(0).random((1 << scale, 2))).simplices.astype(np.int32)
    s, d = np.concatenate(t.T), np.concatenate(np.roll(t, -1, 1).T)
    return csr_from_edges(jnp.asarray(s), jnp.asarray(d), 1 << scale)


def matrix_market(path):
    from scipy.io import mmread

    a = sp.csr_matrix(mmread(path, spmatrix=False))
    a = sp.csr_matrix(abs(a) + abs(a.T))
    a.setdiag(0)
    a.eliminate_zeros()
    a.sort_indices()
    return a.indptr.astype(np.int32), a.indices.astype(np.int32)


def load(name):
    kind, _, size = name.partition(":")
    make = {"rmat": rmat, "grid": grid2d, "delaunay": delaunay}.get(kind)
    graph = make(int(size)) if make else matrix_market(name)
    return graph, 0 if kind == "grid" else int(np.argmax(np.diff(graph[0])))


def oracle(indptr, indices, source):
    """Levels from SciPy's order and predecessors."""
    n = len(indptr) - 1
    a = sp.csr_matrix((np.ones(len(indices), np.int8), indices, indptr), shape=(n, n))
    order, before = sp.csgraph.breadth_first_order(a, source)
    levels = np.full(n, -1, np.int32)
    levels[source] = 0
    start = (
        1  # order is by level: vertices whose predecessor has a known level form the next stretch
    )
    position = np.empty(n, np.int64)
    position[order] = np.arange(len(order))
    place = position[before[order[1:]]]
    level = 0
    end = 1
    while start < len(order):
        stop = start + np.searchsorted(place[start - 1 :], end)
        level += 1
        levels[order[start:stop]] = level
        end, start = stop, stop
    return levels


def wrong(expected, graph_keys, source, levels, parents):
    """Number of wrong levels and of wrong parents."""
    levels = np.asarray(levels)
    bad = int((levels != expected).sum())
    if parents is None or bad:
        return bad, 0
    parents, n = np.asarray(parents), len(levels)
    reached = np.flatnonzero(expected >= 0)
    reached = reached[reached != source]
    p = parents[reached].astype(np.int64)
    if (p < 0).any() or (p >= n).any():
        return 0, int(((p < 0) | (p >= n)).sum())
    pair = p * n + reached
    at = np.minimum(np.searchsorted(graph_keys, pair), len(graph_keys) - 1)
    bad = (graph_keys[at] != pair) | (expected[p] != expected[reached] - 1)
    return 0, int(bad.sum() + (parents[source] != source) + (parents[expected < 0] != -1).sum())


def median_ms(f, *args, runs=10):
    t = time.perf_counter()
    while time.perf_counter() - t < 0.3:  # the clocks of an idle GPU take time to rise
        jax.block_until_ready(f(*args))
    times = []
    for _ in range(runs):
        t = time.perf_counter()
        jax.block_until_ready(f(*args))
        times.append(time.perf_counter() - t)
    return 1e3 * float(np.median(times)), 1e3 * min(times)


def run(name, variants, args):
    t = time.time()
    graph, source = load(name)
    n, nnz, degree = len(graph[0]) - 1, len(graph[1]), np.diff(graph[0])
    rng = np.random.default_rng(1)
    sources = (
        [source, *rng.choice(np.flatnonzero(degree), args.sources - 1).tolist()]
        if args.sources > 1
        else [source]
    )
    expected = {s: oracle(*graph, s) for s in sources}
    keys = np.repeat(np.arange(n, dtype=np.int64), degree) * n + graph[1]
    levels = expected[source].max()
    print(
        f"== {name} n={n} nnz={nnz} max degree={degree.max()} levels={levels} "
        f"load {time.time() - t:.1f}s",
        flush=True,
    )
    arrays, prepared = tuple(map(jnp.asarray, graph)), {}
    for variant in variants:
        options = dict(variant)
        key = (options.pop("renumber", 0), options.pop("prepared", 1))
        if key not in prepared:
            t = time.time()
            extra = prepare_bfs(*graph, renumber=bool(key[0])) if key[1] else {}
            print(
                f"   prepare {key}: {time.time() - t:.2f}s "
                f"{sum(x.nbytes for x in extra.values()) / 1e6:.1f} MB",
                flush=True,
            )
            prepared[key] = jax.tree.map(jnp.asarray, extra)
        extra = prepared[key]
        config = default_bfs_config(n, nnz, narrow="adjacency" in extra)
        config = type(config)(**{**config.__dict__, **options})
        for parents in (False,) if args.levels_only else (False, True):
            try:
                measure(
                    variant, arrays, extra, config, parents, sources, expected, keys, levels, args
                )
            except Exception as error:
                print(f"   {variant} parents={parents} FAILED {repr(error)[:500]}", flush=True)


def measure(variant, arrays, extra, config, parents, sources, expected, keys, levels, args):
    search = functools.partial(bfs, parents=parents, config=config)

    @jax.jit
    def once(indptr, indices, extra, source):
        return search(indptr, indices, source, prepared=extra)

    inner = jax.jit(lambda *a: search(*a[:3], prepared=a[3])) if args.each else None

    @jax.jit
    def many(indptr, indices, extra, source):
        for _ in range(args.each):
            levels, tree, _, status = inner(indptr, indices, source, extra)
            source = tree[source] if parents else source + levels[source]
        return source, status

    t = time.time()
    bad = [0, 0]
    for s in sources:
        for _ in range(args.repeats):
            got = once(*arrays, extra, jnp.int32(s))
            w = wrong(expected[s], keys, s, *got[:2])
            bad = [bad[0] + w[0] + int(got[3]), bad[1] + w[1]]
    checked = time.time() - t
    source = jnp.int32(sources[0])
    if config.trace:
        show_trace(arrays, extra, config, parents, source)
    call, _ = median_ms(once, *arrays, extra, source)
    t = time.time()
    inside, least = (x / args.each for x in median_ms(many, *arrays, extra, source))
    checked = f"{checked:.1f}s, {time.time() - t:.1f}"
    print(
        f"   {variant} parents={parents}: inside {inside:.4f} ms (min {least:.4f}, "
        f"{1e3 * inside / (levels + 1):.2f} us a level), call {call:.3f} ms, wrong levels {bad[0]} "  # noqa: E501
        f"parents {bad[1]} in {len(sources)}x{args.repeats}, check {checked}s",
        flush=True,
    )


def show_trace(arrays, extra, config, parents, source):
    """Microseconds between the steps of the wide kernel, at 1.98 GHz."""
    search = jax.jit(
        lambda a, b, s, p: _search(
            a, b, s, None, None, p, True, None, None, parents, config, False
        )[4]
    )
    for _ in range(2):
        rows = np.asarray(search(*arrays, source, extra)).reshape(-1, 8)
        rows = rows[rows[:, 0] >= 0]
    clock = rows[:, 6].astype(np.uint32)
    for row, us in zip(
        rows, np.diff(clock, append=clock[-1:]).astype(np.int32) / 1980, strict=True
    ):
        if row[0] == 0:
            print(f"      start to first level {(row[6] - row[7]) / 1980:.1f} us")
        names = "level ranges vertices edges pulling queued".split()
        print("     ", dict(zip(names, row.tolist(), strict=False)), f"{us:.1f} us")


def parse(text):
    pairs = (p.split("=") for p in text.split(",") if p)
    return {k: float(v) if "." in v else int(v) for k, v in pairs}


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--sources", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--each", type=int, default=8)
    parser.add_argument("--levels-only", action="store_true")
    args = parser.parse_args()
    for name in args.graphs:
        run(name, [parse(v) for v in args.variant] or [{}], args)
