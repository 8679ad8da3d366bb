"""Helpers of the checkers: a graph as a SciPy matrix, its pattern, names of vertices."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph


def matrix_of(A: Any) -> Any:
    """SciPy's CSR of a matrix, of a Graph, or of SciPy's own."""
    matrix = A.out if hasattr(A, "out") else A
    matrix = matrix if scipy.sparse.issparse(matrix) else matrix.to_scipy()
    return scipy.sparse.csr_array(matrix)


def pattern_of(matrix: Any) -> Any:
    """Ones in place of the values: a stored zero is an edge."""
    ones = np.ones(matrix.nnz, np.float64)
    return scipy.sparse.csr_array((ones, matrix.indices, matrix.indptr), shape=matrix.shape)


def fail(what: str, wrong: np.ndarray, got: Any, want: Any) -> None:
    """AssertionError that names the first vertex where `wrong` holds, if any."""
    if wrong.any():
        v = int(np.flatnonzero(wrong)[0])
        raise AssertionError(
            f"{what} of vertex {v} is {got[v]}, not {want[v]} ({int(wrong.sum())} are wrong)."
        )


def undirected_pattern(A: Any) -> Any:
    """Ones at the entries of A, without its diagonal."""
    pattern = scipy.sparse.coo_array(pattern_of(matrix_of(A)))
    off = pattern.row != pattern.col
    ends = (pattern.row[off], pattern.col[off])
    return scipy.sparse.csr_array((pattern.data[off], ends), shape=pattern.shape)


def partition(A: Any, result: Any, connection: str) -> None:
    """Labels are the smallest vertex of each component ("weak", "strong"), as SciPy finds them."""
    pattern = pattern_of(matrix_of(A))
    count, member = scipy.sparse.csgraph.connected_components(pattern, connection=connection)
    got = np.asarray(result.labels)
    smallest = np.full(count, len(got))
    np.minimum.at(smallest, member, np.arange(len(got)))
    fail("label", got != smallest[member], got, smallest[member])
    expect(int(result.count) == count, f"{int(result.count)} are counted, not {count}.")


def expect(condition: Any, text: str) -> None:
    """AssertionError with the text unless the condition holds."""
    if not condition:
        raise AssertionError(text)


def close(what: str, got: Any, want: np.ndarray, rtol: float, atol: float) -> None:
    """Fails at the first vertex whose number is not near the one wanted."""
    got = np.asarray(got, np.float64)
    fail(what, ~np.isclose(got, want, rtol=rtol, atol=atol, equal_nan=True), got, want)
