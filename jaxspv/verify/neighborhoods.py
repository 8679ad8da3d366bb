"""Checkers of what lies around a vertex: squares, triangles, common neighbours, two sides."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from .common import close, expect, fail, matrix_of, pattern_of, undirected_pattern


def square_clustering(A: Any, result: Any) -> None:
    """Squares by pairs of neighbours: those with c neighbours in common close c - 1 through v.

    A pair with c in common, v among them, could close `d(u) + d(w) - 1 - c`, less 2 where they are
    neighbours themselves, by vertices that one of them has.
    """
    pattern = undirected_pattern(A)
    n, degree = pattern.shape[0], np.diff(pattern.indptr)
    two = scipy.sparse.csr_array(pattern @ pattern)
    want = np.zeros(n)
    for v in range(n):
        near = pattern.indices[pattern.indptr[v] : pattern.indptr[v + 1]]
        first, second = np.triu_indices(len(near), 1)
        common = two[near][:, near].toarray()[first, second]
        joined = pattern[near][:, near].toarray()[first, second]
        squares = (common - 1).sum()
        ends = degree[near[first]] + degree[near[second]]
        possible = (ends - common - 1 - 2 * joined).sum()
        want[v] = squares / possible if possible > 0 else 0
    close("square clustering", result, want, 1e-5, 1e-7)


def triangle_centrality(A: Any, result: Any) -> None:
    """Triangles around v: a third of those of v and of neighbours in them, all of the others'."""
    pattern = undirected_pattern(A)
    inside = scipy.sparse.csr_array((pattern @ pattern).multiply(pattern))
    count = np.asarray(inside.sum(axis=1)).ravel() / 2
    inside.eliminate_zeros()
    close_by = pattern_of(inside) @ count
    others = pattern @ count - close_by
    total = count.sum() / 3
    want = (close_by / 3 + count / 3 + others) / total if total else np.zeros(len(count))
    close("triangle centrality", result, want, 1e-5, 1e-7)


def similarity(A: Any, u: Any, v: Any, result: Any) -> None:
    """The measures of pairs of vertices by Python's sets."""
    pattern = pattern_of(matrix_of(A))
    rows = [set(row.tolist()) for row in np.split(pattern.indices, pattern.indptr[1:-1])]
    want = np.zeros((5, np.size(u)))
    for k, (a, b) in enumerate(zip(np.ravel(u), np.ravel(v), strict=True)):
        both, size = rows[a] & rows[b], [len(rows[a]), len(rows[b])]
        degrees = np.array([len(rows[w]) for w in both], float)
        logs = np.log(degrees[degrees > 1])
        rest = degrees[degrees > 0]
        parts = len(both) / max(len(rows[a] | rows[b]), 1), len(both) / max(min(size), 1)
        want[:, k] = len(both), *parts, (1 / logs).sum(), (1 / rest).sum()
    for name, numbers in zip(type(result)._fields, want, strict=True):
        close(name, np.ravel(getattr(result, name)), numbers, 1e-5, 1e-6)


def bipartition(A: Any, result: Any) -> None:
    """Sides by a search over each component; -1 in one with a cycle of odd length."""
    pattern = pattern_of(matrix_of(A))
    either: Any = scipy.sparse.csr_array(pattern + pattern.T)
    n = either.shape[0]
    want = np.full(n, -2)
    for root in range(n):
        if want[root] != -2:
            continue
        found, side, odd, front = [], 0, False, [root]
        want[root] = 0
        while front:
            found += front
            side, after = 1 - side, []
            for v in front:
                for w in either.indices[either.indptr[v] : either.indptr[v + 1]].tolist():
                    odd |= want[w] == want[v]
                    if want[w] == -2:
                        want[w] = side
                        after.append(w)
            front = after
        if odd:
            want[found] = -1
    got = np.asarray(result.sides)
    fail("side", got != want, got, want)
    all_even = bool((want >= 0).all())
    expect(bool(result.bipartite) == all_even, f"bipartite is {bool(result.bipartite)}.")
