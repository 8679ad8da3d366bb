"""Checkers of numbers for each vertex: betweenness, closeness, clustering."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.csgraph
import scipy.sparse.linalg

from .common import close, expect, matrix_of, pattern_of, undirected_pattern

BLOCK = 256  # sources whose distances are held at a time


def betweenness(
    A: Any,
    result: Any,
    sources: Any = None,
    *,
    normalized: bool = True,
    directed: bool = True,
    rtol: float = 1e-4,
) -> None:
    """Scores without weights and endpoints, by products of SciPy, level after level, in float64."""
    pattern = pattern_of(matrix_of(A))
    n, back = pattern.shape[0], pattern.T.tocsr()
    chosen = np.arange(n) if sources is None else np.asarray(sources)
    total = np.zeros(n)
    for source in chosen:
        fronts, front = [], np.zeros(n)
        front[source], paths = 1, np.zeros(n)
        while front.any():
            paths += front
            fronts.append(front > 0)
            front = (back @ front) * (paths == 0)
        passed = np.zeros(n)
        for deeper, here in zip(fronts[:0:-1], fronts[-2::-1], strict=True):
            share = np.divide(1 + passed, paths, out=np.zeros(n), where=deeper)
            passed += here * paths * (pattern @ share)
        passed[source] = 0
        total += passed
    pairs = max((n - 1) * (n - 2), 1)
    scale = 1 / pairs if normalized else 1 if directed else 0.5
    factor = np.full(n, scale if n > 2 else 1.0)
    if sources is not None and n > 2:
        mine = np.isin(np.arange(n), chosen)
        with np.errstate(divide="ignore", invalid="ignore"):
            factor *= np.where(mine, (n - 1) / (len(chosen) - 1), (n - 1) / len(chosen))
    atol = 1e-6 * max(total.max() * scale, 1e-30)
    close("betweenness", result.scores, total * factor, rtol, atol)


def closeness(A: Any, result: Any, *, wf_improved: bool = True) -> None:
    """Scores and harmonic sums from SciPy's distances to every vertex."""
    back = pattern_of(matrix_of(A)).T.tocsr()
    n = back.shape[0]
    scores, harmonic = np.zeros(n), np.zeros(n)
    for first in range(0, n, BLOCK):
        some = np.arange(first, min(first + BLOCK, n))
        far = scipy.sparse.csgraph.dijkstra(back, indices=some, unweighted=True)
        others = np.isfinite(far).sum(axis=1) - 1
        total = np.where(np.isfinite(far), far, 0).sum(axis=1)
        near = np.divide(others, total, out=np.zeros(len(some)), where=total > 0)
        scores[some] = near * others / max(n - 1, 1) if wf_improved else near
        far[np.arange(len(some)), some] = np.inf
        harmonic[some] = (1 / far).sum(axis=1)
    close("closeness", result.scores, scores, 1e-5, 1e-9)
    close("harmonic centrality", result.harmonic, harmonic, 1e-4, 1e-9)


def clustering(A: Any, result: Any) -> None:
    """Coefficients of an undirected graph without weights, by SciPy's product."""
    close("clustering coefficient", result, _coefficients(A), 1e-5, 1e-7)


def average_clustering(A: Any, result: Any) -> None:
    """The mean of the coefficients."""
    want = _coefficients(A).mean()
    expect(np.isclose(float(result), want, rtol=1e-4), f"{float(result)}, not {want}.")


def _coefficients(A: Any) -> np.ndarray:
    pattern = undirected_pattern(A)
    degree = np.diff(pattern.indptr).astype(float)
    walks = np.asarray((pattern @ pattern).multiply(pattern).sum(axis=1)).ravel()
    return np.divide(walks, degree * (degree - 1), out=np.zeros(len(degree)), where=degree > 1)


def eigenvector(A: Any, result: Any, *, weighted: bool = True, atol: float = 1e-5) -> None:
    """Of length 1, not negative; a step `x + x A`, scaled, moves no score by more than `atol`."""
    matrix, x = _values(A, weighted), np.asarray(result.scores, np.float64)
    step = x + matrix.T @ x
    expect(np.isclose(np.linalg.norm(x), 1, rtol=1e-4), "the scores are not of length 1.")
    expect((x >= 0).all(), "a score is negative.")
    close("eigenvector centrality", x, step / np.linalg.norm(step), 0, atol)


def katz(
    A: Any,
    result: Any,
    alpha: float = 0.1,
    beta: Any = 1.0,
    *,
    normalized: bool = True,
    weighted: bool = True,
) -> None:
    """Scores that solve `x = alpha x A + beta`, by SciPy's direct solver."""
    matrix = _values(A, weighted)
    n = matrix.shape[0]
    system = scipy.sparse.csc_array(scipy.sparse.eye_array(n) - alpha * matrix.T)
    want: Any = scipy.sparse.linalg.spsolve(system, np.broadcast_to(beta, n).astype(float))
    want = want / np.linalg.norm(want) if normalized else want
    close("Katz centrality", result.scores, want, 1e-3, 1e-5 * abs(want).max())


def hits(A: Any, result: Any, *, weighted: bool = True, atol: float = 1e-5) -> None:
    """Sums of 1; authorities are `hubs A`, and `A authorities` are the hubs again, both scaled."""
    matrix = _values(A, weighted)
    hubs, authorities = (np.asarray(v, np.float64) for v in (result.hubs, result.authorities))
    after = matrix.T @ hubs
    close("authority", authorities, after / after.sum(), 1e-4, atol)
    back = matrix @ authorities
    close("hub", hubs, back / back.sum(), 1e-4, atol)


def _values(A: Any, weighted: bool) -> Any:
    matrix = matrix_of(A)
    return matrix.astype(np.float64) if weighted else pattern_of(matrix)
