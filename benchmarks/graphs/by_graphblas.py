"""Searches, paths and ranks in python-graphblas, as its users write them, on one thread.

The compiled loops of the others have one thread too, and threads that wait for cores which other
programs hold would tell of those and not of the library.
"""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas import binary, monoid, semiring

from ..road.with_graphblas import bfs as bfs
from ..road.with_graphblas import matrix as matrix
from ..road.with_graphblas import triangles as triangles

gb.ss.config["nthreads"] = 1


def vector(x: np.ndarray) -> Any:
    """A vector that has every entry."""
    return gb.Vector.from_dense(x)


def product(A: Any, x: Any) -> np.ndarray:
    """A x over (+, x); rows without entries are 0."""
    return A.mxv(x, semiring.plus_times).new().to_dense(0)


def sssp(A: Any, source: int) -> np.ndarray:
    """Distances by Bellman-Ford: only what fell in one round is relaxed in the next."""
    far = gb.Vector.from_coo([source], [0.0], dtype="FP32", size=A.nrows)
    changed = far.dup()
    while changed.nvals:
        new = changed.vxm(A, semiring.min_plus).new()
        known = new.ewise_mult(far, binary.ge).new()
        new(~known.V, replace=True) << new  # what is shorter, or was not reached
        far(binary.min) << new
        changed = new
    return far.to_dense(np.inf)


def pagerank(A: Any, damping: float, tolerance: float) -> np.ndarray:
    """Power iteration in float32 to a small L1 change; A is symmetric, so rows are pulled."""
    n = A.nrows
    share = A.reduce_rowwise(monoid.plus).new().apply(binary.truediv, left=damping).new()
    x = gb.Vector.from_scalar(1 / n, n, "FP32")
    lost = gb.Vector(bool, n)
    lost(~share.S) << True
    change = np.inf
    while change > tolerance:
        sunk = x.dup(mask=lost.S).reduce(monoid.plus).value or 0.0
        y = gb.Vector.from_scalar((1 - damping + damping * sunk) / n, n, "FP32")
        y(binary.plus) << A.mxv(x.ewise_mult(share, binary.times).new(), semiring.plus_second)
        change = float(x.ewise_add(y, binary.minus).new().apply(gb.unary.abs).reduce().new().value)
        x = y
    return x.to_dense(0)
