"""The programs of `with_jaxspv` with python-graphblas, that is SuiteSparse:GraphBLAS."""

from __future__ import annotations

from typing import Any

import graphblas as gb
import numpy as np
from graphblas import binary, monoid, select, semiring


def matrix(A: Any) -> Any:
    """A SciPy array with float32 values."""
    return gb.io.from_scipy_sparse(A.astype(np.float32))


def betweenness(A: Any, sources: Any) -> np.ndarray:
    total = np.zeros(A.nrows, np.float32)
    for source in sources:
        front = gb.Vector.from_coo([source], [1.0], dtype="FP32", size=A.nrows)
        paths, waves = front.dup(), []
        while front.nvals:
            waves.append(front)
            new = gb.Vector("FP32", A.nrows)
            new(~paths.S) << front.vxm(A, semiring.plus_first)
            paths(binary.plus) << new
            front = new
        after = None
        for here, before in zip(waves[:0:-1], waves[-2::-1], strict=True):
            share = here.ewise_mult(paths, binary.second).apply(binary.truediv, left=1).new("FP32")
            if after is not None:
                share(binary.plus) << after.ewise_mult(paths, binary.truediv)
            back = gb.Vector("FP32", A.nrows)
            back(before.S) << A.mxv(share, semiring.plus_second)
            after = back.ewise_mult(paths, binary.times).new()
            if before is not waves[0]:
                total += after.to_dense(0)
    return total


def bfs(A: Any, source: int) -> np.ndarray:
    front = gb.Vector.from_coo([source], [True], size=A.nrows)
    levels = gb.Vector.from_coo([source], [0], dtype="INT32", size=A.nrows)
    level = 0
    while front.nvals:
        new = gb.Vector(bool, A.nrows)
        new(~levels.S) << front.vxm(A, semiring.any_pair)
        level += 1
        levels(new.S) << level
        front = new
    return levels.to_dense(-1)


def triangles(A: Any) -> int:
    L = select.tril(A, -1).new()
    C = gb.Matrix("INT32", A.nrows, A.ncols)
    C(L.S) << L.mxm(L.T, semiring.plus_pair)
    return int(C.reduce_scalar(monoid.plus).value)


def truss(A: Any, k: int) -> tuple[int, int]:
    C, rounds = A, 0
    while True:
        before, rounds = C.nvals, rounds + 1
        new = gb.Matrix("FP32", A.nrows, A.ncols)
        new(C.S) << C.mxm(C, semiring.plus_pair)
        C = new.select(select.valuege, gb.Scalar.from_value(k - 2, "FP32")).new()
        if C.nvals == before:
            return before // 2, rounds


def labels(A: Any) -> np.ndarray:
    own = gb.Vector.from_dense(np.arange(A.nrows, dtype=np.int32))
    while True:
        new = own.dup()
        new(binary.min) << A.mxv(own, semiring.min_second)
        if new.isequal(own):
            return new.to_dense()
        own = new
