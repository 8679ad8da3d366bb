"""Development timings of SpMV variants on a GPU: row bins by tuning, order of columns, bare CSR."""

from __future__ import annotations

import functools
import sys
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.io
import scipy.sparse
from jax import lax

from jaxspv.algorithms.pagerank.xla import pagerank_xla, pull_row_bins
from jaxspv.ops.mxv.rows import bins, xla
from jaxspv.ops.mxv.rows.plan import Tuning

START = time.perf_counter()
PLUS = dict(mul=jnp.multiply, combine=jnp.add, identity=0)
LOOP = {
    "xla_gpu_enable_command_buffer": "FUSION,CUBLAS,CUSTOM_CALL,WHILE,CONDITIONAL,CUDNN,"
    "DYNAMIC_SLICE_FUSION",
    "xla_gpu_graph_min_graph_size": 1,
}


def say(*args):
    print(f"[{time.perf_counter() - START:6.1f}s]", *args, flush=True)


def rmat(scale, factor=44, seed=0):
    """The graph of PEERS.md, deduplicated on the device; indptr on the host, indices on it."""
    n, m = 1 << scale, (1 << scale) * factor

    @jax.jit
    def generate(key):
        def body(_, state):
            u, v, key = state
            key, k1 = jax.random.split(key)
            r = jax.random.uniform(k1, (m,))
            a, b, c = 0.57, 0.19, 0.19
            right = (r >= a + b).astype(jnp.int32)
            down = (((r >= a) & (r < a + b)) | (r >= a + b + c)).astype(jnp.int32)
            return u * 2 + right, v * 2 + down, key

        zero = jnp.zeros(m, jnp.int32)
        u, v, key = lax.fori_loop(0, scale, body, (zero, zero, key))
        p = jax.random.permutation(key, n).astype(jnp.int32)
        s, d = jnp.concatenate([p[u], p[v]]), jnp.concatenate([p[v], p[u]])
        s, d = lax.sort((s, d), num_keys=2)
        new = jnp.concatenate([jnp.ones(1, bool), (s[1:] != s[:-1]) | (d[1:] != d[:-1])])
        keep = (s != d) & new
        indptr = jnp.searchsorted(jnp.where(keep, s, s), jnp.arange(n + 1))
        kept = jnp.concatenate([jnp.zeros(1, jnp.int32), jnp.cumsum(keep, dtype=jnp.int32)])
        return keep, d, kept[indptr], kept[-1]

    keep, d, indptr, total = generate(jax.random.key(seed))
    size = int(total)
    where = jax.jit(lambda k: jnp.nonzero(k, size=size)[0])(keep)
    return np.asarray(indptr).astype(np.int64), jax.jit(lambda d, w: d[w])(d, where)


def timed(call, repeat=20, rounds=5):
    """ms a call, launches back to back, best and median of rounds."""
    jax.block_until_ready(call())
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        for _ in range(repeat):
            result = call()
        jax.block_until_ready(result)
        times.append((time.perf_counter() - begin) / repeat * 1e3)
    return f"{min(times):.3f} (median {np.median(times):.3f}) ms"


def compiled(function, *args, options=None):
    begin = time.perf_counter()
    run = jax.jit(function).lower(*args).compile(compiler_options=options)
    return run, time.perf_counter() - begin


def pieces(indptr, indices, data, x, width, how):
    """Bare CSR in pieces; how: "double" or "scatter", however many pieces there are."""
    xla.MOST_SCATTERED = 2**31
    scatter = None if how == "double" else "add"
    return xla.csr_spmv(indptr, indices, data, x, scatter=scatter, width=width, **PLUS)


def bare_csr(indptr, indices, data, x, widths):
    expected = None
    for width in widths:
        for how in ("double", "scatter"):
            function = functools.partial(pieces, width=width, how=how)
            call, took = compiled(function, indptr, indices, data, x)
            y = call(indptr, indices, data, x)
            expected = y if expected is None else expected
            error = float(jnp.max(jnp.abs(y - expected) / (1 + jnp.abs(expected))))
            ms = timed(functools.partial(call, indptr, indices, data, x), repeat=5, rounds=3)
            say(f"  csr width {width} {how}: {ms} error {error:.1e} compile {took:.1f}s")


def cusparse(indptr, indices, data, x):
    import cupy
    import cupyx.scipy.sparse

    view = cupy.from_dlpack
    n = x.shape[0]
    matrix = cupyx.scipy.sparse.csr_matrix((view(data), view(indices), view(indptr)), shape=(n, n))
    operand = view(x)
    matrix @ operand
    times = []
    for _ in range(5):
        cupy.cuda.Device().synchronize()
        begin = time.perf_counter()
        for _ in range(50):
            matrix @ operand
        cupy.cuda.Device().synchronize()
        times.append((time.perf_counter() - begin) / 50 * 1e3)
    return min(times)


def pagerank_time(layout, degree):
    n = degree.size
    strength, uniform = jnp.asarray(degree, jnp.float32), jnp.full(n, 1 / n, jnp.float32)

    def ranks(layout, strength, p):
        return pagerank_xla(
            pull_row_bins(layout, 1), strength, p, p, damping=0.85, tol=1e-6, max_iterations=200
        )

    call, took = compiled(ranks, layout, strength, uniform, options=LOOP)
    _, iterations, _ = call(layout, strength, uniform)
    ms = timed(lambda: call(layout, strength, uniform), repeat=3)
    say(f"  pagerank: {ms}, {iterations} iterations, compile {took:.1f}s")


def study(name, indptr, indices, widths, variants):
    n, nse = len(indptr) - 1, indices.shape[0]
    degree = np.diff(indptr)
    data = jax.random.uniform(jax.random.key(1), (nse,), jnp.float32)
    x = jax.random.uniform(jax.random.key(2), (n,), jnp.float32)
    ptr = jnp.asarray(indptr, jnp.int32)
    say(
        f"{name}: n {n} entries {nse} max degree {degree.max()}; "
        f"cuSPARSE {cusparse(ptr, indices, data, x):.4f} ms"
    )
    count = 10 if nse > 10**8 else 50

    def chain(layout, values, x):
        def again(_, x):
            return bins.spmv(layout, values, x, **PLUS) * jnp.float32(1e-3)

        return lax.fori_loop(0, count, again, x)

    for unroll, launch, by_degree in variants:
        begin = time.perf_counter()
        layout = bins.build(
            indptr,
            indices,
            (n, n),
            platform="gpu",
            by_degree=by_degree,
            tuning=Tuning(unroll, 256, launch),
        )
        values = jax.block_until_ready(layout.arrange(data))
        built = time.perf_counter() - begin
        call, took = compiled(chain, layout, values, x, options=LOOP)
        jax.block_until_ready(call(layout, values, x))
        times = []
        for _ in range(5):
            begin = time.perf_counter()
            jax.block_until_ready(call(layout, values, x))
            times.append((time.perf_counter() - begin) / count * 1e3)
        say(
            f"  bins unroll {unroll} launch {launch} by_degree {layout.order is not None}: "
            f"{min(times):.4f} ms in a loop; bins {[len(b) for b in layout.bins]} slots "
            f"{layout.slots / nse:.3f} build {built:.1f}s compile {took:.1f}s"
        )
        if (unroll, launch) == (8, 300_000):
            pagerank_time(layout, degree)
    bare_csr(ptr, indices, data, x, widths)


def grid(k, drop=0.1, seed=0):
    rng, i = np.random.default_rng(seed), np.arange(k * k, dtype=np.int32).reshape(k, k)
    s = np.concatenate([i[:, :-1].ravel(), i[:-1].ravel()])
    d = np.concatenate([i[:, 1:].ravel(), i[1:].ravel()])
    keep = rng.random(len(s)) > drop
    return scipy.sparse.csr_matrix((np.ones(keep.sum()), (s[keep], d[keep])), (k * k, k * k))


def main():
    say(jax.devices(), jax.__version__)
    both = ((8, 300_000, False), (8, 300_000, True))
    all_ = (*both, (8, 100_000, False), (0, 300_000, False))
    for item in sys.argv[1:]:
        kind, _, argument = item.partition(":")
        if kind == "rmat":
            indptr, indices = rmat(int(argument))
            study(item, indptr, indices, (32, 64, 128), both)
            continue
        matrix = grid(int(argument)) if kind == "grid" else scipy.io.mmread(item, spmatrix=False)
        matrix = scipy.sparse.csr_matrix(matrix)
        if (matrix != matrix.T).nnz:
            matrix = matrix + matrix.T
        matrix.sort_indices()
        mean = matrix.nnz / matrix.shape[0]
        widths = (4, 8) if mean < 8 else (16, 32)
        study(
            item,
            matrix.indptr.astype(np.int64),
            jnp.asarray(matrix.indices, jnp.int32),
            widths,
            all_,
        )


if __name__ == "__main__":
    main()
