"""Every persistent kernel once on a graph, checked: for profilers and memory checkers.

python -m benchmarks.dev.one_of_each GRAPH ... [--ctas P --threads T] [--times K] [--eager]
[--only NAME ...] [--plant WORDS]; graphs as in `benchmarks.suite`. The first result is checked; the
others must be equal bit for bit, or are checked where more than one is right. A memory checker sees
an access out of bounds only where every array is an allocation of its own and of its own size: not
in a jitted program, whose intermediate arrays share one (`--eager`), and by `cudaMallocAsync` alone
(other allocators round up to pages of 2 MB). `--plant` also stores that many words (1 to 8) beyond
the end of an array of 1000, which must be reported:

    XLA_PYTHON_CLIENT_ALLOCATOR=cuda_async compute-sanitizer --tool memcheck \\
        python3 -m benchmarks.dev.one_of_each karate grid12 --eager --ctas 8 --threads 256
    ncu --kernel-name 'regex:bfs|sssp|components|pagerank' --clock-control none --metrics ... \\
        python3 -m benchmarks.dev.one_of_each rmat18
"""

import argparse
import functools
import itertools
import types

import jax
import jax.numpy as jnp
import numpy as np
from scipy.sparse import csgraph

from jaxspv import verify
from pallas_kernels.bfs.api import bfs, default_bfs_config
from pallas_kernels.communities.louvain import moves
from pallas_kernels.components.one_gpu import components
from pallas_kernels.cores import cores
from pallas_kernels.fixpoint.pull import Steps, fixpoint_dense
from pallas_kernels.independent import in_order, waiting, waiting_colors
from pallas_kernels.layouts.adjacency import Adjacency, is_low_degree, prepare_bfs
from pallas_kernels.layouts.lengths import by_weight, prepare_sssp
from pallas_kernels.layouts.sliced_rows import prepare_pagerank
from pallas_kernels.pagerank.one_gpu import Limits, pagerank
from pallas_kernels.products.spmv_tuples import csr_spmv_tuples
from pallas_kernels.simt.device import Grid, launching
from pallas_kernels.simt.launch import launch
from pallas_kernels.simt.scalar_jaxpr import ScalarSemiring, TupleSemiring, trace
from pallas_kernels.sssp.api import default_config, sssp
from pallas_kernels.sssp.problem import Rule
from pallas_kernels.strong import strong
from pallas_kernels.trees.forest import spanning_forest
from pallas_kernels.trees.rooted import spanning_tree
from pallas_kernels.triangles.count import CARRY, triangles, triangles_of_vertices
from pallas_kernels.triangles.upward import upward

from .. import suite
from .stress import default_delta

# Parents of equal length, orders of sums, the thread that counts: each repeat is checked.
VARYING = ("bfs", "tree", "sssp", "pagerank", "fixpoint", "triangles")


def kernels(name, form):
    """(kernel, program without arguments, check of its result) for one graph, symmetrised."""
    graph = suite.get(name)
    graph = graph if suite.GENERATED.fullmatch(name) else graph.symmetrised()
    A = graph.weighted()
    n, source, degree = A.shape[0], graph.start(), np.diff(A.indptr)
    csr = tuple(map(jnp.asarray, (A.indptr, A.indices)))
    weights = jnp.asarray(A.data)
    right = csgraph.dijkstra(A, indices=source)
    hops = csgraph.dijkstra(A, indices=source, unweighted=True)
    hops = np.where(np.isfinite(hops), hops, -1)
    forms = (
        ("plain", {}, {}),
        (
            "prepared",
            prepare_bfs(A.indptr, A.indices),
            prepare_sssp(A.indptr, A.indices, A.data, renumber=True),
        ),
        ("by weight", {}, by_weight(A.indptr, A.indices, A.data)),
    )
    for kind, for_bfs, for_sssp in forms:
        low = "adjacency" in for_sssp
        config = default_bfs_config(n, low_degree=low)
        search = functools.partial(bfs, config=type(config)(**{**config.__dict__, **form}))
        arrays = jax.tree.map(jnp.asarray, for_bfs)

        def levels(search=search, arrays=arrays):
            return search(Adjacency(*csr), source, prepared=arrays)

        yield f"bfs {kind}", levels, lambda out: _same(out[0], hops)
        config = default_config(n, A.nnz, low_degree=low)
        search = functools.partial(sssp, config=type(config)(**{**config.__dict__, **form}))
        arrays = jax.tree.map(jnp.asarray, for_sssp)
        delta = default_delta(A.indptr, A.data)

        def distances(search=search, arrays=arrays, delta=delta):
            graph = *csr, weights
            return search(graph, source, delta, prepared=arrays, rule=Rule(symmetric=True))

        yield f"sssp {kind}", distances, lambda out: _same(out[0], right)
    labels = csgraph.connected_components(A, directed=False)[1]
    yield (
        "components",
        lambda: components(*csr),
        lambda out: _same(_first(np.asarray(out[0])), _first(labels)),
    )
    yield from algorithms(A, csr, weights)
    low = is_low_degree(n, degree.max(), degree.sum())
    order = "breadth_first" if low else "degree"
    arrays = jax.tree.map(jnp.asarray, prepare_pagerank(A.indptr, A.indices, order=order))
    strength, p = jnp.asarray(degree, jnp.float32), jnp.full(n, 1 / n, jnp.float32)
    yield (
        "pagerank",
        lambda: pagerank(strength, p, Limits(0.85, 1e-6, 100, 0), prepared=arrays),
        lambda out: _same(round(float(out[0].sum()), 3), 1),
    )
    valued = prepare_pagerank(A.indptr, A.indices, A.data, order=order)
    valued = jax.tree.map(jnp.asarray, valued)
    yield ("fixpoint_dense", lambda: _shortest(valued, source, n), lambda out: _same(out[0], right))


def algorithms(A, csr, weights):
    """The same of algorithms with one right result, or one for each order of the vertices."""
    n, degree, found = A.shape[0], np.diff(A.indptr), types.SimpleNamespace
    walks = (A != 0).astype(np.int64)
    around = np.asarray((walks @ walks).multiply(walks).sum(axis=1)).ravel() // 2
    smallest = _first(csgraph.connected_components(A, directed=False)[1])
    priority = jnp.asarray(np.random.default_rng(0).permutation(n).astype(np.int32))
    order = jnp.argsort(-priority).astype(jnp.int32)
    strength = jnp.asarray(np.bincount(A.tocoo().row, A.data, n).astype(np.int32))

    def total(out):
        low, high = (int(np.asarray(x, np.int64).sum()) for x in out)
        _same(low + (high << CARRY), around.sum() // 3)

    def forest(out):
        slots, tails = (np.asarray(x)[np.asarray(out[0]) < A.nnz] for x in out[:2])
        lengths = A.data[slots]
        result = found(tails=tails, heads=A.indices[slots], weights=lengths, total=lengths.sum())
        result.count = len(slots)
        verify.forest(A, result)

    def tree(out):
        verify.spanning_tree(A, int(hub), found(parents=out[0]))

    def colors(out):
        verify.coloring(A, found(colors=np.asarray(out[0]), count=np.max(out[0]) + 1))

    def members(out):
        verify.independent_set(A, found(members=np.asarray(out[0]), count=np.sum(out[0])))

    def communities(out):
        alone, joined = (verify.modularity_of(A, x) for x in (np.arange(n), np.asarray(out[0])))
        assert joined > alone, "no better than vertices alone"

    def peeled(out):
        numbers = np.asarray(out[0])
        verify.cores(A, found(cores=numbers, degeneracy=numbers.max()))

    both = np.concatenate([A.indptr, A.indptr + A.nnz]), np.tile(A.indices, 2)
    both, hub = tuple(map(jnp.asarray, both)), jnp.int32(np.argmax(degree))
    whole, per = jnp.asarray(A.data.astype(np.int32)), jnp.float32(1 / A.data.sum())
    yield "strong", lambda: strong(*both, hub), lambda out: _same(out[0], smallest)
    yield "cores", lambda: cores(*csr), peeled
    yield "forest", lambda: spanning_forest(*csr, weights), forest
    yield "tree", lambda: spanning_tree(*csr, hub), tree
    yield "set", lambda: waiting.independent_set(*csr, priority), members
    yield "colors, waiting", lambda: waiting_colors.coloring(*csr, priority), colors
    yield "colors, in order", lambda: in_order.coloring(*csr, order), colors
    yield "triangles", lambda: triangles(*csr, upward(*csr)), total
    yield (
        "triangles of vertices",
        lambda: triangles_of_vertices(*csr, upward(*csr)),
        lambda out: _same(out, around),
    )
    yield "tuples", *nearest(A, csr, weights)
    yield "louvain", lambda: moves(*csr, whole, strength, per), communities


def nearest(A, csr, weights):
    """A step of shortest paths with the tail of each, a product of tuples, and its check."""
    n, f, i = A.shape[0], jnp.float32, jnp.int32
    x = jnp.asarray(np.random.default_rng(1).integers(0, 9, n), f)

    def least(d, tail, other, also):
        first = (d < other) | ((d == other) & (tail < also))
        return jnp.where(first, d, other), jnp.where(first, tail, also)

    semiring = TupleSemiring(
        trace(lambda w, d, tail: (w + d, tail), f, f, i), trace(least, f, i, f, i), (np.inf, n)
    )

    def check(out):
        terms = A.data + np.asarray(x)[A.indices]
        for row, (start, stop) in enumerate(itertools.pairwise(A.indptr)):
            pairs = zip(terms[start:stop], A.indices[start:stop], strict=True)
            assert (out[0][row], out[1][row]) == min(pairs, default=(np.inf, n)), "a wrong result"

    def run():
        at = jnp.arange(n, dtype=i)
        return csr_spmv_tuples(*csr, None, (weights,), (x, at), semiring=semiring)

    return run, lambda out: check([np.asarray(o) for o in out])


def _shortest(arrays, source, n):
    """Bellman and Ford's steps, all elements in each."""
    f32 = jnp.float32
    return fixpoint_dense(
        jnp.full(n, jnp.inf, f32).at[source].set(0),
        (),
        (),
        Steps(
            ScalarSemiring.of(jnp.add, jnp.minimum, np.inf, f32),
            trace(lambda old, y, i: jnp.minimum(old, y), f32, f32, jnp.int32),
            lambda i, reached, unchanged, *_: (unchanged, unchanged),
            facts=("changed",),
        ),
        prepared=arrays,
    )


def planted(words):
    """Stores that many words beyond the end of its output: for a memory checker to find."""
    size = 1000

    def kernel(k, m):
        first = (k.cta == 0) & (k.thread == 0)
        k.store(m.out, size - 1 + words, k.load(m.x, 0), mask=first)

    operands = {"x": jnp.zeros(4, jnp.int32)}
    return launch(kernel, operands, {"out": size}, ctas=1, threads=128, name="planted")["out"]


def _first(labels):
    """The first place of the label at each place."""
    _, first, which = np.unique(labels, return_index=True, return_inverse=True)
    return first[which]


def _equal(x, y):
    return np.array_equal(np.asarray(x), np.asarray(y), equal_nan=x.dtype.kind == "f")


def _same(got, want):
    assert np.array_equal(np.asarray(got), want), "a wrong result"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="*")
    parser.add_argument("--ctas", type=int)
    parser.add_argument("--threads", type=int)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--eager", action="store_true")
    parser.add_argument("--only", nargs="+", metavar="NAME")
    parser.add_argument("--plant", type=int)
    args = parser.parse_args()
    jit = (lambda run: run) if args.eager else jax.jit
    if args.plant:
        jax.block_until_ready(jit(lambda: planted(args.plant))())
        print(f"stored {args.plant} words beyond the end", flush=True)
    form = {k: v for k in ("ctas", "threads") if (v := getattr(args, k))}
    with launching(Grid(**form)):
        for name in args.graphs:
            for kernel, run, check in kernels(name, form):
                if args.only and not any(kernel.startswith(x) for x in args.only):
                    continue
                run = jit(run)
                first = jax.block_until_ready(run())
                check(first)
                for _ in range(args.times - 1):
                    again = jax.block_until_ready(run())
                    if not all(map(_equal, jax.tree.leaves(again), jax.tree.leaves(first))):
                        assert kernel.startswith(VARYING), f"{kernel}: another result"
                        check(again)
                print(f"{name} {kernel}: {args.times} right", flush=True)


if __name__ == "__main__":
    main()
