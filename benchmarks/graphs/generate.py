"""Time to generate the synthetic graphs on the device at hand: `rmat<scale>`, `grid<side>`,
`delaunay<scale>` (its triangulation is Qhull's, on the host).

The edges of a random graph differ from run to run of the key only; what is checked is what every
one must be: undirected, without self loops and repeated edges.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

import jaxspv as jsp

from .. import suite
from ..harness import Candidate, blocking, measure
from ..options import Options
from ..suite import Workload


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """The record of one graph."""
    match = suite.GENERATED.fullmatch(workload.name)
    if match is None:
        raise ValueError(f"{workload.name} is a file: name rmat<scale>, grid<side>, delaunay<k>.")
    call = blocking(_generator(match[1], int(match[2])))
    (record,) = measure([Candidate("jaxspv", call, _check)], **options.timing())
    graph = call()
    return [record | {"n": graph.shape[0], "entries": int(graph.count)}]


def _generator(kind: str, size: int) -> Callable[[], Any]:
    key = jax.random.key(0)
    makers = {
        "rmat": lambda: jsp.generators.rmat(key, size, suite.RMAT_EDGE_FACTOR),
        "grid": functools.partial(jsp.generators.grid2d, key, size, drop=0.1),
        "delaunay": lambda: jsp.generators.delaunay(key, 1 << size),
    }
    return makers[kind]


def _check(graph: Any) -> None:
    matrix = graph.to_scipy()
    matrix.data = np.ones(matrix.nnz, np.int8)
    assert matrix.diagonal().sum() == 0, "a self loop is stored."
    row = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
    key = row.astype(np.int64) * matrix.shape[1] + matrix.indices
    assert (np.diff(key) > 0).all(), "an edge is stored twice, or out of order."
    transposed = np.sort(matrix.indices.astype(np.int64) * matrix.shape[1] + row)
    assert (transposed == key).all(), "an edge has no opposite."
