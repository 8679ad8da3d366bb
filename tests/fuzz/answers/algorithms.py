"""Algorithms on objects made by hand, of every dtype and special values, against certificates.

What reads no weights must not change by them; what reads them is right, flagged or refused.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import scipy.sparse

import jaxspv as jsp
from jaxspv import verify

from ..cases import Case, Fuzzer
from ..operands import compressed, triplets

VALUES = {  # of the weights; None: the numbers 1, 2, 3
    "small": None,
    "nan": [1.0, np.nan],
    "infinite": [1.0, 2.0, np.inf, -np.inf],
    "zero": [0.0, -0.0, 1.0, 2.0],
    "negative": [1.0, -1.0, -3.0],
    "denormal": [1e-42, 6e-8, 1.0],
}
PATTERN = {  # name -> (call, certificate of (S, result), of undirected graphs alone)
    "bfs": (lambda A: jsp.bfs(A, 0), lambda S, r: verify.bfs(S, 0, r), False),
    "tree": (lambda A: jsp.spanning_tree(A, 0), lambda S, r: verify.spanning_tree(S, 0, r), False),
    "components": (jsp.connected_components, verify.components, False),
    "strong": (jsp.strongly_connected_components, verify.strong_components, False),
    "bipartition": (jsp.bipartition, verify.bipartition, False),
    "betweenness": (jsp.betweenness_centrality, verify.betweenness, True),
    "closeness": (jsp.closeness_centrality, verify.closeness, False),
    "clustering": (jsp.clustering, verify.clustering, True),
    "square_clustering": (jsp.square_clustering, verify.square_clustering, True),
    "triangle_centrality": (jsp.triangle_centrality, verify.triangle_centrality, True),
    "triangles": (jsp.triangle_count, verify.triangles, True),
    "k_truss": (lambda A: jsp.k_truss(A, 3), lambda S, r: verify.truss(S, 3, r), True),
    "core_number": (jsp.core_number, verify.cores, True),
    "coloring": (jsp.greedy_color, verify.coloring, True),
    "independent_set": (
        lambda A: jsp.maximal_independent_set(jax.random.key(0), A),
        verify.independent_set,
        True,
    ),
    "matching": (jsp.maximum_bipartite_matching, verify.matching, False),
    "cuthill_mckee": (jsp.reverse_cuthill_mckee, verify.cuthill_mckee, True),
    "eccentricity": (jsp.eccentricity, verify.eccentricity, False),
    "diameter": (jsp.diameter, verify.diameter, True),
    "label_propagation": (lambda A: jsp.label_propagation(A), verify.label_propagation, True),
}


def _lengths(S: Any, result: Any) -> None:
    """Distances of source 0 by Bellman-Ford over the stored entries, in float64."""
    S = S.tocoo()
    far = np.full(S.shape[0], np.inf)
    far[0] = 0
    for _ in range(S.shape[0]):
        valid = np.isfinite(far[S.row])
        before = far.copy()
        np.minimum.at(far, S.col[valid], before[S.row[valid]] + S.data[valid])
    again = far.copy()
    valid = np.isfinite(far[S.row])
    np.minimum.at(again, S.col[valid], far[S.row[valid]] + S.data[valid])
    loop = bool((again < far).any())
    if result is jsp.NegativeCycleError or loop:
        assert loop and result is jsp.NegativeCycleError, (loop, result)
        return
    found = np.asarray(result.distances)
    if found.dtype.kind in "iu":  # the largest integer is no path
        far = np.where(np.isinf(far), np.iinfo(found.dtype).max, far)
    np.testing.assert_allclose(found.astype(np.float64), far, rtol=1e-6)


def _scores(S: Any, result: Any) -> None:
    verify.pagerank(S, result, atol=1e-4)


def _forest(S: Any, result: Any) -> None:
    """The total weight is Kruskal's, with zero lengths kept apart from absent edges."""
    verify.forest(S, result)


WEIGHED = {  # name -> (call, certificate, undirected alone, values it must answer for)
    "sssp": (lambda A: jsp.sssp(A, 0), _lengths, False, ("small", "zero", "negative")),
    "pagerank": (lambda A: jsp.pagerank(A, tol=1e-6), _scores, False, ("small",)),
    "forest": (jsp.minimum_spanning_forest, _forest, True, ("small", "negative")),
    "louvain": (jsp.louvain, verify.communities, True, ("small",)),
    "weighted clustering": (
        lambda A: jsp.clustering(A, weighted=True),
        lambda S, r: _weighted_clustering(S, r),
        True,
        ("small",),
    ),
}
NAMES = (*PATTERN, *WEIGHED)
FLOATS = ("float32", "float16", "bfloat16", "float64")


def _weighted_clustering(S: Any, result: Any) -> None:
    D = S.toarray()
    top = D.max() if D.size and D.max() > 0 else 1.0  # of a loop too, as in NetworkX
    D = D * (1 - np.eye(S.shape[0]))
    root = np.cbrt(D / top)
    sums, degree = np.diag(root @ root @ root), (D != 0).sum(1)
    pairs = degree * (degree - 1)
    want = np.divide(sums, pairs, out=np.zeros(len(D)), where=pairs > 0)
    np.testing.assert_allclose(np.asarray(result, np.float64), want, rtol=2e-2, atol=1e-3)


def _part(rng: np.random.Generator, case: Case) -> tuple[np.ndarray, np.ndarray]:
    n, dtype = case["n"], np.dtype(getattr(ml_dtypes, case["dtype"], case["dtype"]))
    valid = rng.random((n, n)) < rng.choice([0.0, 0.05, 0.2, 0.6])
    values = rng.integers(1, 4, (n, n)).astype(np.float64)
    if VALUES[case["values"]] is not None:
        values = rng.choice(np.array(VALUES[case["values"]]), (n, n))
    if case["symmetric"]:
        valid, values = valid | valid.T, np.triu(values) + np.triu(values, 1).T
    values = np.where(valid, values, 0).astype(dtype)
    return values, valid


def _made(rng: np.random.Generator, part: Any, case: Case) -> Any:
    if case["format"] == "coo":
        A = triplets(rng, part, case["layout"])
    else:
        kind = jsp.CSR if case["format"] == "csr" else jsp.CSC
        A = compressed(rng, part, case["layout"], kind)
    return jax.tree.map(jnp.asarray, A) if case["arrays"] == "jax" else A


def _asked(call: Any, A: Any, dtype: str) -> Any:
    """The result, `NegativeCycleError`, or None where it is refused with a reason."""
    try:
        return call(A)
    except jsp.NegativeCycleError:
        return jsp.NegativeCycleError
    except (TypeError, ValueError, NotImplementedError) as error:
        assert str(error) and "Traceback" not in str(error)
        return None


def run(case: Case) -> tuple[str, ...]:
    """Raises where an algorithm gives a result that its certificate does not hold for."""
    with jax.enable_x64(case["x64"]):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    rng = np.random.default_rng(case["seed"])
    values, valid = _part(rng, case)
    A = _made(rng, (values, valid), case)
    row, col = np.nonzero(valid)
    kept = values[row, col].astype(np.float64)
    name, pattern = case["name"], case["name"] in PATTERN
    call, certificate = (PATTERN[name] if pattern else WEIGHED[name])[:2]
    found = _asked(call, A, case["dtype"])
    if found is None:
        must = pattern or case["values"] in WEIGHED[name][3]
        assert not must or name == "pagerank", "refused"
        return ("refused",)
    S = scipy.sparse.csr_array((case["n"], case["n"]))
    data = np.ones(len(row)) if pattern else kept
    S = scipy.sparse.csr_array((data, (row, col)), shape=(case["n"],) * 2)
    if not pattern and case["values"] not in WEIGHED[name][3]:
        return ("answered, not compared",)
    certificate(S, found)
    return ("certificate",)


def _possible(case: Case) -> bool:
    directed = not (PATTERN | WEIGHED)[case["name"]][2]
    if not (directed or case["symmetric"]):
        return False
    if case["values"] != "small" and case["dtype"] not in FLOATS:
        return False
    if case["layout"] == "duplicates" and (case["values"] != "small" or case["dtype"] == "bool"):
        return False
    if case["name"] in ("louvain", "pagerank") and case["dtype"] == "bool":
        return False
    return case["x64"] or case["dtype"] not in ("float64", "int64")


FUZZER = Fuzzer(
    {
        "name": NAMES,
        "dtype": ("float32", "float16", "bfloat16", "int8", "uint8", "int32", "bool", "float64"),
        "format": ("csr", "coo", "csc"),
        "layout": ("padded", "unsorted", "duplicates"),
        "arrays": ("jax", "numpy"),
        "values": tuple(VALUES),
        "n": (3, 8, 30, 1),
        "symmetric": (True, False),
        "x64": (False, True),
    },
    run,
    possible=_possible,
)
