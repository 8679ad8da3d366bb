"""Checkers of parts of a graph: strong components, cores, trusses, sets without neighbours."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .common import expect, fail, matrix_of, pattern_of, undirected_pattern


def strong_components(A: Any, result: Any) -> None:
    """Labels are the smallest vertex of each strong component, as SciPy partitions them."""
    pattern = pattern_of(matrix_of(A))
    count, member = scipy.sparse.csgraph.connected_components(pattern, connection="strong")
    got = np.asarray(result.labels)
    smallest = np.full(count, len(got))
    np.minimum.at(smallest, member, np.arange(len(got)))
    fail("label", got != smallest[member], got, smallest[member])
    expect(int(result.count) == count, f"{int(result.count)} are counted, not {count}.")


def cores(A: Any, result: Any) -> None:
    """Core numbers by removing, for k = 0, 1, ..., vertices of degree <= k while there are any."""
    pattern = undirected_pattern(A)
    n = pattern.shape[0]
    degree, want, left, k = np.diff(pattern.indptr), np.zeros(n, int), np.ones(n, bool), 0
    while left.any():
        gone = left & (degree <= k)
        if not gone.any():
            k = degree[left].min()
            continue
        want[gone], left[gone] = k, False
        degree = degree - pattern[gone].sum(axis=0).astype(int)
    got = np.asarray(result.cores)
    fail("core number", got != want, got, want)
    expect(int(result.degeneracy) == want.max(initial=0), "degeneracy is not the largest core.")


def truss(A: Any, k: int, result: Any) -> None:
    """The entries of a k-truss: edges of fewer than k - 2 triangles go until there are none."""
    left = undirected_pattern(A)
    count = -1
    while left.nnz != count and k > 2:
        count = left.nnz
        support: Any = scipy.sparse.csr_array((left @ left).multiply(left))
        support.data = (support.data >= k - 2).astype(float)
        support.eliminate_zeros()
        left = pattern_of(support)
    got = pattern_of(matrix_of(result))
    wrong = np.diff(got.indptr) != np.diff(left.indptr)
    fail("degree in the truss", wrong, np.diff(got.indptr), np.diff(left.indptr))
    expect(abs(got - left).nnz == 0, "the truss has other edges.")


def independent_set(A: Any, result: Any) -> None:
    """No two members are neighbours, and every other vertex has one that is."""
    pattern, members = undirected_pattern(A), np.asarray(result.members)
    has_member = pattern @ members.astype(float) > 0
    fail("membership", members & has_member, members, ~has_member)
    fail("membership", ~members & ~has_member, members, ~has_member)
    expect(int(result.count) == members.sum(), "count is not the number of members.")


def coloring(A: Any, result: Any) -> None:
    """Neighbours have different colours, all from 0 to count - 1, at most 1 + largest degree."""
    pattern, colors = undirected_pattern(A).tocoo(), np.asarray(result.colors)
    clash = np.zeros(len(colors), bool)
    clash[pattern.row[colors[pattern.row] == colors[pattern.col]]] = True
    fail("colour", clash, colors, ["another"] * len(colors))
    used = np.unique(colors)
    expect(np.array_equal(used, np.arange(int(result.count))), f"colours {used} are used.")
    degrees = np.bincount(pattern.row, minlength=1)
    expect(int(result.count) <= 1 + degrees.max(initial=0), "more colours than 1 + degree.")


def matching(A: Any, result: Any) -> None:
    """Pairs are entries, no row or column is in two, and there are as many as SciPy finds."""
    pattern = pattern_of(matrix_of(A))
    columns, rows = np.asarray(result.columns), np.asarray(result.rows)
    taken = np.flatnonzero(columns >= 0)
    for row in taken:
        column = columns[row]
        inside = column < len(rows) and pattern[row, column] != 0
        expect(inside and rows[column] == row, f"row {row} is not matched with column {column}.")
    expect((rows >= 0).sum() == len(taken) == int(result.count), "sides count differently.")
    want = scipy.sparse.csgraph.maximum_bipartite_matching(pattern, perm_type="column")
    expect(len(taken) == (want >= 0).sum(), f"{len(taken)} pairs, not {(want >= 0).sum()}.")
