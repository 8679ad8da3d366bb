"""The programs to compare with, each called as its own users would call it."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp
from jax import lax
from scipy.sparse import csgraph

from .harness import jitted

SMALL_FOR_NETWORKX = 20_000  # entries; it takes microseconds an edge


class Levels(NamedTuple):
    """What a baseline of `bfs` found: `levels`, and parents where it gives them."""

    levels: Any
    parents: Any = None


# ---- Products ----


def scipy_spmv(A: sp.csr_array, x: np.ndarray, repeats: int = 1) -> Callable[[], np.ndarray]:
    """`repeats` of SciPy's compiled CSR loop, one thread; the last result."""
    return lambda: [A @ x for _ in range(repeats)][-1]


def bcoo_spmv(A: sp.csr_array) -> tuple[Callable[..., Any], Any]:
    """`jax.experimental.sparse.BCOO` @ x, jitted, and its matrix."""
    from jax.experimental import sparse

    return jax.jit(lambda M, x: M @ x), sparse.BCOO.from_scipy_sparse(A)


def bcsr_spmv(A: sp.csr_array) -> tuple[Callable[..., Any], Any]:
    """`jax.experimental.sparse.BCSR` @ x, jitted, and its matrix."""
    from jax.experimental import sparse

    return jax.jit(lambda M, x: M @ x), sparse.BCSR.from_scipy_sparse(A)


def has_cupy() -> bool:
    """Whether CuPy is installed and JAX itself runs on a GPU."""
    return jax.default_backend() == "gpu" and importlib.util.find_spec("cupy") is not None


def cupy_spmv(A: sp.csr_array, x: np.ndarray, repeats: int) -> Callable[[], Any]:
    """`repeats` cuSPARSE products in a row, then one wait."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    matrix, vector = csr_matrix(sp.csr_matrix(A)), cupy.asarray(x)

    return _cupy_in_a_row(matrix, vector, repeats)


def cupy_spmv_device(
    indptr: Any, indices: Any, data: Any, x: Any, repeats: int
) -> Callable[[], Any]:
    """`cupy_spmv` on the arrays of a CSR that JAX holds, without a copy."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    n = indptr.shape[0] - 1
    arrays = tuple(cupy.asarray(a) for a in (data, indices, indptr))
    matrix, vector = csr_matrix(arrays, shape=(n, x.shape[0])), cupy.asarray(x)

    return _cupy_in_a_row(matrix, vector, repeats)


def _cupy_in_a_row(matrix: Any, vector: Any, repeats: int) -> Callable[[], Any]:
    import cupy

    def call():
        for _ in range(repeats):
            y = matrix @ vector
        cupy.cuda.get_current_stream().synchronize()
        return _Host(y)

    return call


def has_torch() -> bool:
    """Whether PyTorch is installed and both it and JAX run on a GPU."""
    if jax.default_backend() != "gpu" or importlib.util.find_spec("torch") is None:
        return False
    import torch

    return torch.cuda.is_available()


def torch_spmm(A: sp.csr_array, X: np.ndarray, dtype: str, repeats: int) -> Callable[[], Any]:
    """`repeats` products of a `torch.sparse_csr_tensor` (cuSPARSE) in a row, then one wait."""
    import torch

    kind = getattr(torch, dtype)
    indptr, indices = (torch.from_numpy(v.astype(np.int32)) for v in (A.indptr, A.indices))
    data = torch.from_numpy(A.data).to(kind)
    matrix = torch.sparse_csr_tensor(indptr, indices, data, size=A.shape).cuda()
    dense = torch.from_numpy(X).to(kind).cuda()

    def call():
        for _ in range(repeats):
            Y = matrix @ dense
        torch.cuda.synchronize()
        return _Torch(Y)

    return call


class _Torch:
    """A tensor that gives some of its rows to the host when asked."""

    def __init__(self, tensor: Any):
        self.tensor = tensor

    def __getitem__(self, rows: Any) -> np.ndarray:
        import torch

        return self.tensor[torch.from_numpy(np.array(rows)).cuda()].float().cpu().numpy()


def cupy_spgemm(A: sp.csr_array) -> Callable[[], Any] | None:
    """cuSPARSE's A A, with the allocation of its result, and the wait for it; None: it refuses."""
    import cupy
    from cupyx.scipy.sparse import csr_matrix

    matrix = csr_matrix(sp.csr_matrix(A))

    def call():
        C = matrix @ matrix
        cupy.cuda.get_current_stream().synchronize()
        return _HostMatrix(C)

    try:
        call()
    except RuntimeError:  # CUSPARSE_STATUS_INSUFFICIENT_RESOURCES, of some matrices
        return None
    return call


class _HostMatrix:
    """A CuPy matrix that is copied to the host when asked."""

    def __init__(self, matrix: Any):
        self.matrix = matrix

    def to_scipy(self) -> sp.csr_array:
        return sp.csr_array(self.matrix.get())


class _Host:
    """A CuPy array that NumPy may copy: CuPy's own refuses an implicit one."""

    def __init__(self, array: Any):
        self.array = array

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        return self.array.get().astype(dtype, copy=False)


# ---- Traversals ----


def as_csgraph(A: sp.csr_array) -> sp.csr_array:
    """float64 values: what `scipy.sparse.csgraph` would otherwise copy to in every call."""
    return A.astype(np.float64)


def scipy_bfs(A: sp.csr_array, source: int) -> Callable[[], Any]:
    """`csgraph.breadth_first_order`, compiled, one thread: (order, predecessors)."""
    graph = as_csgraph(A)
    return lambda: csgraph.breadth_first_order(graph, source, return_predecessors=True)


def scipy_dijkstra(A: sp.csr_array, source: int) -> Callable[[], Any]:
    """`csgraph.dijkstra`, a Fibonacci heap, one thread: (distances, predecessors)."""
    graph = as_csgraph(A)
    return lambda: csgraph.dijkstra(graph, indices=source, return_predecessors=True)


def networkx_graph(A: sp.csr_array) -> Any:
    """A `networkx.DiGraph` with the weights of A."""
    import networkx

    return networkx.from_scipy_sparse_array(A, create_using=networkx.DiGraph)


def networkx_bfs(A: sp.csr_array, source: int) -> Callable[[], Levels]:
    """`networkx.single_source_shortest_path_length`, as an array."""
    import networkx

    graph, n = networkx_graph(A), A.shape[0]

    def call():
        found = networkx.single_source_shortest_path_length(graph, source)
        levels = np.full(n, -1, np.int32)
        levels[list(found)] = list(found.values())
        return Levels(levels)

    return call


def dense_frontier_bfs(A: sp.csr_array, source: int) -> Callable[[], Levels]:
    """The loop one writes first in JAX: every level looks at every edge. O(levels * entries)."""
    n = A.shape[0]
    row = jnp.asarray(np.repeat(np.arange(n, dtype=np.int32), np.diff(A.indptr)))
    col = jnp.asarray(A.indices)

    def search(row, col, source):
        def level(state):
            depth, levels, frontier = state
            reached = jnp.zeros(n, bool).at[col].max(frontier[row])
            frontier = reached & (levels < 0)
            return depth + 1, jnp.where(frontier, depth + 1, levels), frontier

        start = jnp.arange(n) == source
        levels = jnp.where(start, 0, -1)
        state = (jnp.int32(0), levels, start)
        return lax.while_loop(lambda s: s[2].any(), level, state)[1]

    program = jitted(search)
    return lambda: Levels(jax.block_until_ready(program(row, col, jnp.int32(source))))


# ---- PageRank ----


def scipy_pagerank(
    A: sp.csr_array, damping: float, tolerance: float, max_iterations: int
) -> Callable[[], Any]:
    """Power iteration with SciPy's product: (scores, iterations).

    In float64: long rows summed one after the other in float32 miss the tolerance (cnr-2000).
    """
    n = A.shape[0]
    strength = np.asarray(A.sum(axis=1), np.float64).ravel()
    pull = sp.csr_array(A.T, dtype=np.float64)
    scale = np.divide(1, strength, out=np.zeros(n), where=strength != 0)
    lost = strength == 0

    def call():
        x, k, change = np.full(n, 1 / n), 0, np.inf
        while k < max_iterations and change > tolerance:
            y = damping * (pull @ (x * scale) + x[lost].sum() / n) + (1 - damping) / n
            change = np.abs(y - x).sum()
            x, k = y, k + 1
        return x, k

    return call


def networkx_pagerank(A: sp.csr_array, damping: float, tolerance: float) -> Callable[[], Any]:
    """`networkx.pagerank`, whose tolerance is per vertex: (scores, None)."""
    import networkx

    graph, n = networkx_graph(A), A.shape[0]

    def call():
        scores = networkx.pagerank(graph, alpha=damping, tol=tolerance / n, max_iter=500)
        return np.fromiter((scores[v] for v in range(n)), np.float64, n), None

    return call
