"""What the commands share: timing, counting edges, what is said of a matrix."""

from __future__ import annotations

import contextlib
import dataclasses
import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np
import scipy  # its modules are imported when they are first used

from .._core.eager.arrays import platform_of
from .._core.operations.plan import Plan
from ..formats import SparseMatrix
from ..graph import Graph
from ..interop.labels import symmetry


@contextlib.contextmanager
def waiting(what: str, visible: bool) -> Iterator[None]:
    """A line on stderr that counts the seconds of what has no steps to count."""
    done, how = threading.Event(), {"end": "", "file": sys.stderr, "flush": True}

    def count():
        start = time.perf_counter()
        while not done.wait(0.5):
            print(f"\r{what}: {time.perf_counter() - start:.0f} s", **how)
        print("\r\x1b[K", **how)

    counter = threading.Thread(target=count, daemon=True)
    if visible:
        counter.start()
    try:
        yield
    finally:
        done.set()
        if visible:
            counter.join()


@dataclasses.dataclass(frozen=True)
class Timing:
    """Milliseconds of the first call, which compiles, and of those after it."""

    first_ms: float
    runs_ms: tuple[float, ...]

    @property
    def median_ms(self) -> float:
        """The median of the runs after the first."""
        return statistics.median(self.runs_ms)


def timed(
    call: Callable[[], Any], repeats: int, what: str = "compiling and running"
) -> tuple[Timing, Any]:
    """Runs `call` once and `repeats` times more, waiting for every result; gives the last one."""
    spent, result = [], None
    for turn in range(repeats + 1):
        start = time.perf_counter()
        with waiting(what, turn == 0 and sys.stderr.isatty()):
            result = jax.block_until_ready(call())
        spent.append(1e3 * (time.perf_counter() - start))
    return Timing(spent[0], tuple(spent[1:])), result


def out_degrees(G: Graph) -> np.ndarray:
    """(n,) stored entries of each row."""
    return np.diff(np.asarray(G.out.indptr))


def reached_edges(G: Graph, reached: np.ndarray) -> int:
    """Edges out of reached vertices: each undirected one once on a symmetric graph."""
    degrees = out_degrees(G)
    arcs = int(degrees[reached].sum())
    if not G.symmetric:
        return arcs
    row = np.repeat(np.arange(G.n), degrees)
    loops = int(reached[row[row == np.asarray(G.out.indices)[: row.size]]].sum())
    return (arcs - loops) // 2 + loops


def what_ran(plan: Plan) -> dict[str, Any]:
    """Backend and method that serve this process's default device, and the plan in words."""
    impl = plan.on(platform_of(()))
    return {
        "backend": impl.backend,
        "method": impl.name,
        "device": jax.devices()[0].device_kind,
        "jax": jax.__version__,
        "plan": str(plan),
    }


def lengths_by_doubling(values: np.ndarray) -> list[tuple[str, int]]:
    """(label, count) of non-negative integers in the ranges 0, 1, 2-3, 4-7, ..."""
    power = np.where(values > 0, np.floor(np.log2(np.maximum(values, 1))).astype(int) + 1, 0)
    counts = np.bincount(power, minlength=1).tolist()
    labels = ["0", "1"] + [f"{1 << k}-{(2 << k) - 1}" for k in range(1, len(counts))]
    return list(zip(labels, counts, strict=False))


def describe_matrix(name: str, A: SparseMatrix) -> dict[str, Any]:
    """Shape, entries, symmetry, row lengths, and the components of a square matrix."""
    csr = A.to_scipy().tocsr()
    lengths = np.diff(csr.indptr)
    m, n = csr.shape
    mean = float(lengths.mean()) if m else 0.0
    report: dict[str, Any] = {
        "graph": name,
        "rows": m,
        "columns": n,
        "entries": int(csr.nnz),
        "dtype": str(A.dtype),
        "format": A.format,
        "row_length_mean": mean,
        "row_length_max": int(lengths.max(initial=0)),
        "empty_rows": int((lengths == 0).sum()),
        "row_lengths": lengths_by_doubling(lengths),
        "row_length_variance": float(lengths.var()) if m else 0.0,
    }
    if csr.nnz:
        report |= {"least_value": csr.data.min().item(), "largest_value": csr.data.max().item()}
    if m == n:
        ones = np.ones(csr.nnz, np.int8)  # a stored zero is an edge
        pattern = scipy.sparse.csr_array((ones, csr.indices, csr.indptr), shape=csr.shape)
        pattern_equals, equals = symmetry(csr)
        components = scipy.sparse.csgraph.connected_components(pattern, directed=False)[0]
        report |= {
            "symmetric_pattern": pattern_equals,
            "symmetric": equals,
            "self_loops": int((pattern.diagonal() != 0).sum()),
            "weak_components": int(components),
        }
    return report
