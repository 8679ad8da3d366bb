"""Sets of vertices and edges, communities, neighbourhoods: checked by SciPy and by counting."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .common import close, expect, fail, matrix_of, partition, pattern_of, undirected_pattern


def strong_components(A: Any, result: Any) -> None:
    """Labels are the smallest vertex of each strong component, as SciPy partitions them."""
    partition(A, result, "strong")


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


def forest(A: Any, result: Any, *, rtol: float = 1e-5) -> None:
    """Edges of A without a cycle that join all that A joins, of SciPy's least total weight."""
    matrix = matrix_of(A)
    n, count = matrix.shape[0], int(result.count)
    tails, heads = (np.asarray(x)[:count] for x in (result.tails, result.heads))
    weights = np.asarray(result.weights, np.float64)[:count]
    stored = np.asarray(matrix[tails, heads]).ravel() if count else np.zeros(0)
    expect(np.allclose(stored, weights), "an edge has another weight in the graph.")
    parts = scipy.sparse.csgraph.connected_components(pattern_of(matrix), connection="weak")[0]
    chosen = scipy.sparse.csr_array((np.ones(count), (tails, heads)), shape=matrix.shape)
    joined = scipy.sparse.csgraph.connected_components(chosen, connection="weak")[0]
    expect(joined == parts, f"the forest has {joined} components, the graph {parts}.")
    expect(count == n - parts, f"{count} edges join {n} vertices to {parts} components.")
    # SciPy takes 0 for no edge: all weights are moved above it, which changes no choice.
    least = min(matrix.data.min(initial=0), 0) - 1
    ends = matrix.tocoo()
    both = scipy.sparse.csr_array((ends.data.astype(float) - least, ends.coords), shape=(n, n))
    want = scipy.sparse.csgraph.minimum_spanning_tree(both).sum() + least * count
    expect(np.isclose(weights.sum(), want, rtol=rtol), f"weighs {weights.sum()}, not {want}.")
    expect(np.isclose(float(result.total), want, rtol=1e-3), f"total is {result.total}.")


def label_propagation(A: Any, result: Any, start: Any = None) -> None:
    """Labels after as many steps of the rule, counted pair by pair; -1: none."""
    pattern = pattern_of(matrix_of(A)).tocoo()
    n = pattern.shape[0]
    want = np.arange(n) if start is None else np.asarray(start)
    want = np.where((want >= 0) & (want < n), want, -1)
    vertex = np.concatenate([pattern.row, pattern.col]).astype(np.int64)
    neighbor = np.concatenate([pattern.col, pattern.row])
    for _ in range(int(result.iterations)):
        votes = want[neighbor] >= 0
        pairs = (vertex * n + want[neighbor])[votes]
        pairs, counts = np.unique(pairs, return_counts=True)
        order = np.lexsort((pairs % n, -counts, pairs // n))
        voters, first = np.unique(pairs[order] // n, return_index=True)
        want = want.copy()
        want[voters] = pairs[order][first] % n
    got = np.asarray(result.labels)
    fail("label", got != want, got, want)


def modularity_of(A: Any, labels: Any, *, resolution: float = 1, weighted: bool = True) -> float:
    """That of an undirected graph, community by community in float64."""
    matrix = matrix_of(A).astype(np.float64)
    matrix = matrix if weighted else pattern_of(matrix)
    matrix = matrix + scipy.sparse.diags_array(matrix.diagonal())
    labels = np.asarray(labels)
    total, quality = matrix.sum(), 0.0
    member = scipy.sparse.csr_array(
        (np.ones(len(labels)), (labels, np.arange(len(labels)))), shape=matrix.shape
    )
    joined = scipy.sparse.csr_array(member @ matrix @ member.T)
    strength = np.asarray(joined.sum(axis=1)).ravel()
    if total > 0:
        quality = joined.diagonal().sum() / total - resolution * ((strength / total) ** 2).sum()
    return float(quality)


def communities(A: Any, result: Any, *, weighted: bool = True, resolution: float = 1) -> None:
    """Labels name the smallest member; the modularity is right, at least that of single vertices.

    Louvain gives no guarantee of how large it is.
    """
    labels = np.asarray(result.labels)
    n = len(labels)
    smallest = np.full(n, n)
    np.minimum.at(smallest, labels, np.arange(n))
    fail("label", labels != smallest[labels], labels, smallest[labels])
    expect(int(result.count) == len(np.unique(labels)), "count is not that of the labels.")
    how = {"weighted": weighted, "resolution": resolution}
    want, alone = modularity_of(A, labels, **how), modularity_of(A, np.arange(n), **how)
    got = float(result.modularity)
    expect(abs(got - want) < 1e-4, f"modularity is {want}, not {got}.")
    expect(want >= alone - 1e-6, f"modularity {want} is below that of one vertex each, {alone}.")


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
    """Sides by SciPy's hops from the first vertex of each component; -1 where an edge joins two of
    one side."""
    pattern = pattern_of(matrix_of(A))
    ends = pattern.tocoo()
    count, member = scipy.sparse.csgraph.connected_components(pattern, connection="weak")
    _, first = np.unique(member, return_index=True)
    how = {"directed": False, "unweighted": True, "min_only": True}
    hops = scipy.sparse.csgraph.dijkstra(pattern, indices=first, **how) if count else np.zeros(0)
    side, odd = hops.astype(int) % 2, np.zeros(count, bool)
    odd[member[ends.row[side[ends.row] == side[ends.col]]]] = True
    want, got = np.where(odd[member], -1, side), np.asarray(result.sides)
    fail("side", got != want, got, want)
    even = not odd.any()
    expect(bool(result.bipartite) == even, f"bipartite is {bool(result.bipartite)}.")
