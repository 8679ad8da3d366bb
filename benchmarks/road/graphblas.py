"""From a user's data to the answer: eager programs of operations, their first call and the next.

Every program runs first on one batch of sources or one graph, then on others of the same sizes, as
it is asked for once each: what is compiled for the first must serve the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..harness import summary
from ..options import Options
from ..suite import Workload
from . import sizes, with_jaxspv

SOURCES = 16
BATCHES = 5
PROGRAMS = ("betweenness", "bfs", "triangles", "truss", "labels")


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph, symmetric and without self loops or values; or of ten sizes."""
    if workload.name == sizes.NAME:
        return sizes.run()
    A = pattern(workload.matrix())
    inputs = {name: batches(name, A) for name in PROGRAMS}
    libraries = {"jaxspv": with_jaxspv}
    if options.baselines:
        from . import with_graphblas

        libraries["python-graphblas"] = with_graphblas
    records, results = [], {}
    for library, module in libraries.items():
        for name in PROGRAMS:
            found, seconds = sequence(module, name, inputs[name])
            same(results.setdefault(name, found), found, f"{library} {name}")
            records.append(
                summary(f"{library}, {name}", seconds[1:], seconds[0])
                | {"n": A.shape[0], "entries": A.nnz}
            )
    return records


def pattern(A: Any) -> Any:
    """Ones at the places of A and of its transpose, off the diagonal."""
    A = sp.coo_array(A)
    off = A.row != A.col
    half = sp.coo_array((np.ones(off.sum(), np.float32), (A.row[off], A.col[off])), shape=A.shape)
    whole = sp.csr_array(half + half.T)
    whole.data[:] = 1
    whole.sort_indices()
    return whole


def batches(name: str, A: Any) -> list[tuple[Any, tuple[Any, ...]]]:
    """(graph, other arguments) of every call: other sources, or other numbers for the vertices."""
    rng = np.random.default_rng(0)
    n = A.shape[0]
    if name == "betweenness":
        return [(A, (rng.choice(n, SOURCES, replace=False),)) for _ in range(BATCHES)]
    if name == "bfs":
        return [(A, (int(s),)) for s in rng.choice(n, BATCHES, replace=False)]
    more = (5,) if name == "truss" else ()
    orders = [rng.permutation(n) for _ in range(BATCHES)]
    return [(sp.csr_array(A[p][:, p]), more) for p in orders]


def sequence(module: Any, name: str, calls: Any) -> tuple[list[Any], list[float]]:
    """The results of all calls in turn, and the seconds of each; conversion is not timed."""
    program: Callable[..., Any] = getattr(module, name)
    matrices = [module.matrix(A) for A, _ in calls]
    found, seconds = [], []
    for A, (_, more) in zip(matrices, calls, strict=True):
        start = time.perf_counter()
        found.append(program(A, *more))
        seconds.append(time.perf_counter() - start)
    return found, seconds


def same(expected: list[Any], found: list[Any], what: str) -> None:
    """Raises AssertionError where results differ."""
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_allclose(other, one, rtol=2e-4, atol=1e-4, err_msg=what)
