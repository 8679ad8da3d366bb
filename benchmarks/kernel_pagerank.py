"""Development benchmark of the PageRank kernel on a GPU: python -m benchmarks.kernel_pagerank ...

Names of graphs as in `benchmarks.suite`. Time inside one jitted program: K computations / K
(--each K, 8), the damping of each read from the result of the one before; damping 0.85, tol 1e-6.
Every variant is checked against SciPy's product in float64, and two runs bit for bit. Options:
--variant name=value,... (order, thread_row, threads, programs, batch, unroll; repeatable),
--weighted.
"""

import argparse
import time

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

from benchmarks import suite
from benchmarks.kernel_bfs import median_ms
from pallas_kernels.prepare.sliced_rows import prepare_pagerank
from pallas_kernels.pull.pagerank import pagerank

KNOBS = 0.85, 1e-6, 200


def parse(text):
    pairs = (item.split("=") for item in text.split(",") if item)
    return {name: int(value) if value.isdigit() else value for name, value in pairs}


def expected(A, T, steps):
    """Scores after that many steps, in float64; T is A transposed."""
    n, strength = A.shape[0], A.sum(1, dtype=np.float64)
    inverse = np.divide(1, strength, out=np.zeros(n), where=strength > 0)
    x = np.full(n, 1 / n)
    for _ in range(steps):
        x = KNOBS[0] * (T @ (x * inverse) + x[strength == 0].sum() / n) + (1 - KNOBS[0]) / n
    return x


def run(name, variants, weighted, each):
    A = suite.get(name).weighted() if weighted else suite.get(name).matrix()
    A = sp.csr_array((A.data if weighted else np.ones_like(A.data), A.indices, A.indptr), A.shape)
    n = A.shape[0]
    r = np.random.default_rng(0).random(n)
    T = A if np.allclose(A @ r, A.T @ r) else A.T.tocsr()  # symmetric, all but surely
    strength = jnp.asarray(A.sum(1), jnp.float32)
    print(f"== {name} n={n} nnz={A.nnz}", flush=True)
    known, prepared = {}, {}
    for variant in variants:
        form = dict(variant)
        layout = {key: form.pop(key) for key in ("order", "thread_row") if key in form}
        key = tuple(sorted(layout.items()))
        if key not in prepared:
            start = time.time()
            arrays = prepare_pagerank(T.indptr, T.indices, T.data if weighted else None, **layout)
            size = sum(x.nbytes for x in arrays.values()) / 1e6
            print(f"   prepare {layout}: {time.time() - start:.2f}s {size:.1f} MB", flush=True)
            prepared = {key: jax.tree.map(jnp.asarray, arrays)}  # one at a time: memory

        def one(damping, s, extra, form=form):
            p = jnp.full(n, 1 / n, jnp.float32)
            return pagerank(s, p, damping, *KNOBS[1:], 0, prepared=extra, **form)

        @jax.jit
        def many(damping, s, extra, one=one):
            for _ in range(each):
                scores, *_ = one(damping, s, extra)
                damping = damping + jnp.minimum(scores[0], 0)
            return damping

        operands = jnp.float32(KNOBS[0]), strength, prepared[key]
        scores, steps, change, status = jax.jit(one)(*operands)
        again, *_ = jax.jit(one)(*operands)
        steps = int(steps)
        if steps not in known:
            known[steps] = expected(A, T, steps)
        error = np.abs(np.asarray(scores, np.float64) - known[steps]).sum()
        median, least = (t / each for t in median_ms(many, *operands))
        same = bool((np.asarray(scores) == np.asarray(again)).all())
        print(
            f"   {variant}: {median:.3f} ms (min {least:.3f}), {steps} steps of "
            f"{1e3 * median / steps:.2f} us, change {float(change):.2e}, L1 error {error:.1e}, "
            f"two runs equal: {same}, status {int(status)}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--variant", action="append", default=[])
    parser.add_argument("--weighted", action="store_true")
    parser.add_argument("--each", type=int, default=8)
    args = parser.parse_args()
    for graph_name in args.graphs:
        run(graph_name, [parse(v) for v in args.variant] or [{}], args.weighted, args.each)
