"""Checkers of forests and communities."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph

from .common import expect, fail, matrix_of, pattern_of


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
    """Labels after as many steps of the rule, counted pair by pair."""
    pattern = pattern_of(matrix_of(A)).tocoo()
    n = pattern.shape[0]
    want = np.arange(n) if start is None else np.asarray(start)
    vertex = np.concatenate([pattern.row, pattern.col]).astype(np.int64)
    neighbor = np.concatenate([pattern.col, pattern.row])
    for _ in range(int(result.iterations)):
        pairs, counts = np.unique(vertex * n + want[neighbor], return_counts=True)
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
    """Labels name the smallest member, their modularity is as said and not below that of one each.

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
