"""The C++ kernels over SciPy on one thread: `python -m benchmarks.compiled.over_scipy`.

    python -m benchmarks.compiled.over_scipy [--graphs NAME ...] [--only BFS ...] [--runs 15]

For each operation the speed of jaxspv over that of SciPy on the same graph: geometric mean and
least, by the least wall time and by the least processor time of all runs, of a program inside jit
and of the eager call. python-graphblas and igraph are timed too where they are installed. Runs take
turns in one process, in an order drawn anew. Every answer is compared before it is timed.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import jaxspv as jsp

from .. import suite
from ..harness import geometric_mean

NEW = (  # graphs that no kernel was tuned on: other sizes and degrees than the data folder's
    "rmat13",
    "rmat15",
    "rmat17",
    "grid150",
    "grid450",
    "delaunay14",
    "delaunay15",
    "delaunay17",
)
COLUMNS = 64
LARGEST_PRODUCT = 40_000_000  # multiplications of A A from which on it is left out
SLOW_S = 0.5  # calls as long as this are timed three times


def pagerank_by_scipy(A: sp.csr_array, damping=0.85, tol=1e-6) -> np.ndarray:
    """Power iteration on the transposed matrix of shares."""
    n = A.shape[0]
    out = np.asarray(A.sum(axis=1)).ravel()
    shares = np.divide(1, out, out=np.zeros_like(out), where=out != 0)
    back = (sp.diags_array(shares) @ A).T.tocsr().astype(np.float32)
    rank, sink = np.full(n, 1 / n, np.float32), out == 0
    for _ in range(100):
        new = damping * (back @ rank + rank[sink].sum() / n) + (1 - damping) / n
        change, rank = np.abs(new - rank).sum(), new
        if change < tol:
            break
    return rank


def triangles_by_scipy(A: sp.csr_array) -> int:
    """Edges to later vertices, closed by one more."""
    lower = sp.tril(A, -1, format="csr")
    return int((lower @ lower).multiply(lower).sum())


def _equal(rtol=1e-4, of=lambda r: r):
    def check(got, want):
        np.testing.assert_allclose(np.asarray(of(got)), want, rtol=rtol, atol=1e-6)

    return check


def _same_product(got, want):
    np.testing.assert_allclose(got.to_scipy().sum(), want.sum(), rtol=1e-4)
    assert int(got.count) == want.nnz


def operations(
    A: sp.csr_array, *, triangles: bool | None = None
) -> dict[str, tuple[Callable, Any, Callable[[], Any], Callable]]:
    """name -> (jaxspv's function, its operand, SciPy's call, check(result, answer)).

    Products of sparse matrices and triangles only where SciPy's memory allows, unless asked for.
    """
    n = A.shape[0]
    B = jsp.from_scipy(A)
    ones = sp.csr_array((np.ones(A.nnz, np.float32), A.indices, A.indptr), A.shape)
    G = jsp.prepare(B, for_=("bfs",), symmetric=True)
    source = int(np.argmax(np.diff(A.indptr)))
    draw = np.random.default_rng(0)
    x = draw.random(n, np.float32)
    X = draw.random((n, COLUMNS), np.float32)
    jx, jX = jnp.asarray(x), jnp.asarray(X)
    smallest = np.full(n, np.inf, np.float32)
    np.minimum.at(smallest, np.repeat(np.arange(n), np.diff(A.indptr)), A.data + x[A.indices])

    found = {
        "BFS": (
            lambda G: jsp.bfs(G, source),
            G,
            lambda: csgraph.breadth_first_order(A, source),
            lambda got, want: _equal()(np.sum(np.asarray(got.levels) >= 0), len(want[0])),
        ),
        "SSSP": (
            lambda G: jsp.sssp(G, source),
            G,
            lambda: csgraph.dijkstra(A, indices=source, return_predecessors=True),
            lambda got, want: _equal()(got.distances, want[0]),
        ),
        "SpMV": (lambda B: B @ jx, B, lambda: A @ x, _equal()),
        "min_plus": (
            lambda B: jsp.mxv(B, jx, jsp.semirings.min_plus),
            B,
            lambda: A @ x,  # the same loads; SciPy has no other semiring
            lambda got, _: _equal()(got, smallest),
        ),
        "SpMM": (lambda B: B @ jX, B, lambda: A @ X, _equal()),
        "components": (
            jsp.connected_components,
            G,
            lambda: csgraph.connected_components(A, directed=False),
            lambda got, want: _equal()(got.count, want[0]),
        ),
        "strong": (
            jsp.strongly_connected_components,
            G,
            lambda: csgraph.connected_components(A, directed=True, connection="strong"),
            lambda got, want: _equal()(got.count, want[0]),
        ),
        "forest": (
            jsp.minimum_spanning_forest,
            G,
            lambda: csgraph.minimum_spanning_tree(A),
            lambda got, want: _equal()(got.total, want.sum()),
        ),
        "PageRank": (
            lambda G: jsp.pagerank(G),
            G,
            lambda: pagerank_by_scipy(A),
            lambda got, want: _equal(1e-2)(got.scores, want),
        ),
    }
    few = np.diff(A.indptr)[A.indices].sum() < LARGEST_PRODUCT
    if few:
        found["SpGEMM"] = (lambda B: jsp.mxm(B, B), B, lambda: A @ A, _same_product)
    if triangles or few:
        found["triangles"] = (
            jsp.triangle_count,
            G,
            lambda: triangles_by_scipy(ones),
            lambda got, want: _equal()(got.count, want),
        )
    return found


def by_igraph(A: sp.csr_array) -> dict[str, Callable[[], Any]]:
    """What igraph calls the operations, where it is installed."""
    try:
        import igraph
    except ImportError:
        return {}
    upper = sp.triu(A, 1, format="coo")
    G = igraph.Graph(A.shape[0], np.stack(upper.coords, 1), edge_attrs={"w": upper.data})
    source = int(np.argmax(np.diff(A.indptr)))
    return {
        "BFS": lambda: G.bfs(source),
        "SSSP": lambda: G.distances(source, weights="w"),
        "components": lambda: G.connected_components(),
        "strong": lambda: G.connected_components(mode="strong"),
        "forest": lambda: G.spanning_tree(weights="w", return_tree=False),
        "PageRank": lambda: G.pagerank(),
        "triangles": lambda: len(G.list_triangles()),
    }


def by_graphblas(A: sp.csr_array) -> dict[str, Callable[[], Any]]:
    """What python-graphblas calls the operations, where it is installed."""
    try:
        import graphblas as gb
    except ImportError:
        return {}
    gb.ss.config["nthreads"] = 1
    M = gb.io.from_scipy_sparse(A)
    lower = gb.io.from_scipy_sparse(sp.tril(A, -1, format="csr"))
    draw = np.random.default_rng(0)
    x = gb.Vector.from_dense(draw.random(A.shape[0], np.float32))
    X = gb.Matrix.from_dense(draw.random((A.shape[0], COLUMNS), np.float32))
    s = gb.semiring
    found = {
        "SpMV": lambda: M.mxv(x, s.plus_times).new(),
        "min_plus": lambda: M.mxv(x, s.min_plus).new(),
        "SpMM": lambda: M.mxm(X, s.plus_times).new(),
    }
    if np.diff(A.indptr)[A.indices].sum() < LARGEST_PRODUCT:
        found["SpGEMM"] = lambda: M.mxm(M, s.plus_times).new()
        found["triangles"] = lambda: (
            lower.mxm(lower.T, s.plus_pair).new(mask=lower.S).reduce_scalar().new()
        )
    return found


def least(calls: list[Callable[[], Any]], runs: int) -> list[tuple[float, float]]:
    """(seconds by the clock, by the processor) of each call, the least of all runs."""
    best = [(math.inf, math.inf)] * len(calls)
    draw = np.random.default_rng(0)
    first = []
    for call in calls:
        start = time.perf_counter()
        jax.block_until_ready(call())
        first.append(time.perf_counter() - start)
    repeats = [max(1, min(50, int(0.01 / t))) for t in first]
    for _ in range(runs if max(first) < SLOW_S else 3):
        for k in draw.permutation(len(calls)):
            wall, used = time.perf_counter(), time.process_time()
            for _ in range(repeats[k]):
                jax.block_until_ready(calls[k]())
            spent = (time.perf_counter() - wall, time.process_time() - used)
            best[k] = tuple(min(a, b / repeats[k]) for a, b in zip(best[k], spent, strict=True))
    return best


def measured(A: sp.csr_array, only: list[str], runs: int) -> dict[str, dict[str, list[float]]]:
    """operation -> program -> speed over SciPy by wall and by processor time; SciPy's seconds."""
    peers = {"igraph": by_igraph(A), "graphblas": by_graphblas(A)}
    found = {}
    for name, (ours, operand, scipys, check) in operations(A).items():
        if only and name not in only:
            continue
        programs = {"SciPy": scipys, "eager": lambda f=ours, g=operand: f(g)}
        compiled = jax.jit(ours)
        if name != "SpGEMM":  # the size of its result is learnt outside of a jit
            programs["in jit"] = lambda f=compiled, g=operand: f(g)
        answer = scipys()
        for label in list(programs)[1:]:
            check(programs[label](), answer)
        programs.update({who: calls[name] for who, calls in peers.items() if name in calls})
        (wall, used), *others = least(list(programs.values()), runs)
        speeds = [[wall / w, used / u] for w, u in others]
        found[name] = dict(zip(list(programs)[1:], speeds, strict=True), SciPy=[wall, used])
    return found


def graph(name: str) -> sp.csr_array:
    """A graph of the suite: symmetric, weighted, float32 and int32."""
    A = suite.get(name).symmetrised().weighted()
    return sp.csr_array((A.data.astype(np.float32), A.indices, A.indptr), A.shape)


def main() -> None:
    """Prints a line for each graph and operation, then the geometric means."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=[], help="default: the data folder and NEW")
    parser.add_argument("--only", nargs="+", default=[])
    parser.add_argument("--runs", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    jsp.config.set_num_threads(args.threads)
    names = args.graphs or [*(w.name for w in suite.select(["data"])), *NEW]
    all_speeds: dict[tuple[str, str, str], list[list[float]]] = {}
    for name in names:
        A = graph(name)
        print(f"\n{name}: {A.shape[0]:,} vertices, {A.nnz:,} entries", flush=True)
        for operation, programs in measured(A, args.only, args.runs).items():
            wall, _ = programs.pop("SciPy")
            texts = [f"{who} {speed:.2f} ({cpu:.2f})" for who, (speed, cpu) in programs.items()]
            print(f"  {operation:10} SciPy {1e3 * wall:8.3f} ms: {', '.join(texts)}", flush=True)
            for who, speeds in programs.items():
                for group in ("all", "new") if name in NEW else ("all",):
                    all_speeds.setdefault((group, operation, who), []).append(speeds)
    print("\n| graphs | operation | program | mean, wall | mean, processor | least, wall | of |")
    print("|-|-|-|-|-|-|-|")
    for (group, operation, who), speeds in sorted(all_speeds.items()):
        walls, used = zip(*speeds, strict=True)
        means = f"{geometric_mean(walls):.2f} | {geometric_mean(used):.2f} | {min(walls):.2f}"
        print(f"| {group} | {operation} | {who} | {means} | {len(walls)} |")


if __name__ == "__main__":
    main()
