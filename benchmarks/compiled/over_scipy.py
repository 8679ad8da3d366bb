"""The C++ kernels beside SciPy, python-graphblas and igraph on one thread: `benchmarks over_scipy`.

A case for each operation, called eagerly and as one jitted program. A call that takes less than 10
ms is timed several times in a row. Every answer is compared with SciPy's before the clocks start.
Of python-graphblas and igraph what is installed is timed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from scipy.sparse import csgraph

import jaxspv as jsp

from .. import suite
from ..harness import Candidate, blocking, measure, timed
from ..options import Options

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
TOGETHER_S, MOST = 0.01, 50  # calls of so long are timed together, at most so many


class Operation(NamedTuple):
    """One question.

    Attributes:
        ours: `ours(operand) -> result`.
        operand: a matrix or a graph.
        scipys: SciPy's call.
        of: `of(result)` is compared with
        answer: `answer(what SciPy's call returns)`.
        rtol: how close they must be, relatively.
    """

    ours: Callable[[Any], Any]
    operand: Any
    scipys: Callable[[], Any]
    of: Callable[[Any], Any] = np.asarray
    answer: Callable[[Any], Any] = np.asarray
    rtol: float = 1e-4


Peer = tuple[Callable[[], Any], Callable[[Any], Any]]  # a call, and its answer


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


def operations(A: sp.csr_array, *, triangles: bool | None = None) -> dict[str, Operation]:
    """The questions about a matrix by name.

    Products of sparse matrices and triangles only where SciPy's memory allows, unless asked for.
    """
    n = A.shape[0]
    B = jsp.from_scipy(A)
    ones = sp.csr_array((np.ones(A.nnz, np.float32), A.indices, A.indptr), A.shape)
    G = jsp.prepare(B, for_=("bfs",), symmetric=True)
    source = int(np.argmax(np.diff(A.indptr)))
    x, X = vectors(n)
    jx, jX = jnp.asarray(x), jnp.asarray(X)
    smallest = np.full(n, np.inf, np.float32)
    np.minimum.at(smallest, np.repeat(np.arange(n), np.diff(A.indptr)), A.data + x[A.indices])
    found = {
        "BFS": Operation(
            lambda G: jsp.bfs(G, source),
            G,
            lambda: csgraph.breadth_first_order(A, source),
            lambda r: np.sum(np.asarray(r.levels) >= 0),
            lambda r: len(r[0]),
        ),
        "SSSP": Operation(
            lambda G: jsp.sssp(G, source),
            G,
            lambda: csgraph.dijkstra(A, indices=source, return_predecessors=True),
            lambda r: r.distances,
            lambda r: r[0],
        ),
        "SpMV": Operation(lambda B: B @ jx, B, lambda: A @ x),
        "min_plus": Operation(
            lambda B: jsp.mxv(B, jx, jsp.semirings.min_plus),
            B,
            lambda: A @ x,  # the same loads; SciPy has no other semiring
            answer=lambda _: smallest,
        ),
        "SpMM": Operation(lambda B: B @ jX, B, lambda: A @ X),
        "components": Operation(
            jsp.connected_components,
            G,
            lambda: csgraph.connected_components(A, directed=False),
            lambda r: r.count,
            lambda r: r[0],
        ),
        "strong components": Operation(
            jsp.strongly_connected_components,
            G,
            lambda: csgraph.connected_components(A, directed=True, connection="strong"),
            lambda r: r.count,
            lambda r: r[0],
        ),
        "spanning forest": Operation(
            jsp.minimum_spanning_forest,
            G,
            lambda: csgraph.minimum_spanning_tree(A),
            lambda r: r.total,
            lambda r: r.sum(),
        ),
        "PageRank": Operation(
            lambda G: jsp.pagerank(G),
            G,
            lambda: pagerank_by_scipy(A),
            lambda r: r.scores,
            rtol=1e-2,
        ),
    }
    few = np.diff(A.indptr)[A.indices].sum() < LARGEST_PRODUCT
    if few:
        found["SpGEMM"] = Operation(
            lambda B: jsp.mxm(B, B),
            B,
            lambda: A @ A,
            lambda C: [int(C.count), C.to_scipy().sum()],
            lambda C: [C.nnz, C.sum()],
        )
    if triangles or few:
        found["triangles"] = Operation(
            jsp.triangle_count, G, lambda: triangles_by_scipy(ones), lambda r: r.count
        )
    return found


def vectors(n: int) -> tuple[np.ndarray, np.ndarray]:
    """The vector and the matrix that are multiplied by."""
    draw = np.random.default_rng(0)
    return draw.random(n, np.float32), draw.random((n, COLUMNS), np.float32)


def by_igraph(A: sp.csr_array) -> dict[str, Peer]:
    """What igraph calls the operations, where it is installed."""
    try:
        import igraph
    except ImportError:
        return {}
    upper = sp.triu(A, 1, format="coo")
    G = igraph.Graph(A.shape[0], np.stack(upper.coords, 1), edge_attrs={"w": upper.data.tolist()})
    source = int(np.argmax(np.diff(A.indptr)))
    return {
        "BFS": (lambda: G.bfs(source), lambda r: len(r[0])),
        "SSSP": (lambda: G.distances(source, weights="w"), lambda r: r[0]),
        "components": (lambda: G.connected_components(), len),
        "strong components": (lambda: G.connected_components(mode="strong"), len),
        "spanning forest": (
            lambda: G.spanning_tree(weights="w", return_tree=False),
            lambda edges: upper.data[edges].sum(),
        ),
        "PageRank": (lambda: G.pagerank(weights="w"), np.asarray),
        "triangles": (lambda: len(G.list_triangles()), np.asarray),
    }


def by_graphblas(A: sp.csr_array) -> dict[str, Peer]:
    """What python-graphblas calls the operations, where it is installed."""
    try:
        import graphblas as gb
    except ImportError:
        return {}
    gb.ss.config["nthreads"] = 1
    M = gb.io.from_scipy_sparse(A)
    lower = gb.io.from_scipy_sparse(sp.tril(A, -1, format="csr"))
    x, X = vectors(A.shape[0])
    x, X = gb.Vector.from_dense(x), gb.Matrix.from_dense(X)
    s = gb.semiring
    found: dict[str, Peer] = {
        "SpMV": (lambda: M.mxv(x, s.plus_times).new(), lambda r: r.to_dense(0)),
        "min_plus": (lambda: M.mxv(x, s.min_plus).new(), lambda r: r.to_dense(np.inf)),
        "SpMM": (lambda: M.mxm(X, s.plus_times).new(), lambda r: r.to_dense(0)),
    }
    if np.diff(A.indptr)[A.indices].sum() < LARGEST_PRODUCT:
        found["SpGEMM"] = (
            lambda: M.mxm(M, s.plus_times).new(),
            lambda C: [C.nvals, C.reduce_scalar().get(0)],
        )
        found["triangles"] = (
            lambda: lower.mxm(lower.T, s.plus_pair).new(mask=lower.S).reduce_scalar().new(),
            lambda r: r.get(0),
        )
    return found


def graph(name: str) -> sp.csr_array:
    """A graph of the suite: symmetric, weighted, float32 and int32."""
    return symmetric(suite.get(name))


def symmetric(workload: suite.Workload) -> sp.csr_array:
    """The matrix of a workload, symmetric, weighted, float32 and int32."""
    A = workload.symmetrised().weighted()
    return sp.csr_array((A.data.astype(np.float32), A.indices, A.indptr), A.shape)


def workloads() -> list[suite.Workload]:
    """The graphs of the data folder and those that no kernel was tuned on."""
    return suite.select(["data", *NEW])


def run(workload: suite.Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph; `options.cases` names some of the operations."""
    A = symmetric(workload)
    peers = {"igraph": by_igraph, "python-graphblas": by_graphblas} if options.baselines else {}
    calls = {library: made(A) for library, made in peers.items()}
    jsp.config.set_num_threads(1)
    try:
        return [
            record | {"case": f"{workload.name} {name}", "n": A.shape[0], "entries": A.nnz}
            for name, operation in operations(A).items()
            if not options.cases or name in options.cases
            for record in measure(candidates(name, operation, calls), **options.timing())
        ]
    finally:
        jsp.config.set_num_threads(0)


def candidates(name: str, o: Operation, peers: dict[str, dict[str, Peer]]) -> list[Candidate]:
    """SciPy, ours and the libraries at one question, each answer compared with SciPy's."""
    answer = o.answer(o.scipys())
    programs: dict[str, Peer] = {
        "SciPy": (o.scipys, o.answer),
        "jaxspv": (blocking(o.ours, o.operand), o.of),
    }
    if name != "SpGEMM":  # the size of its result is learnt outside of a jit
        programs["jaxspv, inside jit"] = (blocking(jax.jit(o.ours), o.operand), o.of)
    programs |= {library: calls[name] for library, calls in peers.items() if name in calls}

    def verified(of):
        def check(result):
            np.testing.assert_allclose(np.asarray(of(result)), answer, o.rtol, atol=1e-6)

        return check

    found = []
    for program, (call, of) in programs.items():
        call()
        repeats = max(1, min(MOST, int(TOGETHER_S / timed(call)[1])))
        found.append(Candidate(program, several(call, repeats), verified(of), repeats))
    return found


def several(call: Callable[[], Any], times: int) -> Callable[[], Any]:
    """So many calls in a row; the last result."""

    def calls():
        for _ in range(times - 1):
            call()
        return call()

    return calls
