"""Algorithms on random graphs, alone and inside of transformations, against SciPy and NetworkX."""

from __future__ import annotations

import functools
import zlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp

from .cases import Case, Fuzzer
from .operands import compressed, triplets
from .wrappers import NAMES, wrapped

try:
    import networkx as nx
except ImportError:
    nx = None

NETWORKX_EVERY = 8  # draws: it takes ten times as long as the rest
PURPOSES = {"bfs": "bfs", "sources": "bfs", "until": "bfs", "sssp": "sssp", "pagerank": "pagerank"}
PURPOSES |= {"negative": "sssp", "fixpoint": "fixpoint", "widest": "fixpoint"}


def _dense(rng: np.random.Generator, case: Case, pattern: np.random.Generator) -> np.ndarray:
    """Weights 1 to 8 on a pattern drawn by `pattern`."""
    n = case["n"]
    valid = pattern.random((n, n)) < case["density"]
    weights = rng.integers(1, 9, (n, n))
    if case["algorithm"] == "negative":  # on some draws a loop of negative length
        weights = np.where(rng.random((n, n)) < rng.choice([0, 0.1, 0.5]), -1, weights)
    dense = np.where(valid, weights, 0)
    return (np.maximum(dense, dense.T) if case["symmetric"] else dense).astype(np.float32)


def _pattern(case: Case) -> np.random.Generator:
    """Of a prepared graph: one for all draws, as preparing computes with sizes."""
    words = repr([(k, v) for k, v in case.items() if k != "seed"])
    return np.random.default_rng(zlib.crc32(words.encode()))


@functools.lru_cache(maxsize=16)
def _prepared(structure: tuple[tuple[str, Any], ...]) -> jsp.Graph:
    case = dict(structure)
    dense = _dense(np.random.default_rng(0), case, _pattern(case))
    purposes = (PURPOSES.get(case["algorithm"], "pagerank"), "vxm")
    A = jsp.from_scipy(scipy.sparse.csr_array(dense), format="csr")
    return jsp.prepare(A, for_=purposes, symmetric=case["symmetric"] or None)


def _call(case: Case, G: Any, s: Any, p: Any) -> Any:
    name, backend = case["algorithm"], {"backend": case["backend"]}
    if name == "bfs":
        return jsp.bfs(G, s, **backend)[:2]
    if name == "sources":
        return jsp.bfs(G, jnp.stack([s, jnp.zeros_like(s), s]), **backend).levels
    if name == "until":
        return jsp.bfs(G, s, until=jsp.until.max_iterations(2), **backend).levels
    if name == "sssp":
        return jsp.sssp(G, s, **backend)[:2]
    if name == "negative":
        try:
            found = jsp.sssp(G, s, **backend)
        except jsp.NegativeCycleError:  # of eager calls
            return jnp.zeros(0), jnp.asarray(True)
        return found.distances, ~found.converged
    if name in ("fixpoint", "widest"):
        far, ring = (jnp.inf, "min_plus") if name == "fixpoint" else (-jnp.inf, "max_min")
        x0 = jnp.full(case["n"], far, jnp.float32).at[s].set(0 if name == "fixpoint" else jnp.inf)
        return jsp.fixpoint(G, x0, ring, monotone=True, **backend).x
    if name == "slope":

        def total(d):
            far = jsp.sssp(G.with_data(d), s, **backend).distances
            return jnp.sum(jnp.where(jnp.isfinite(far), far, 0))

        return jax.grad(total)(G.data)
    if name == "components":
        return jsp.connected_components(G, **backend).labels + 0 * s
    if name == "triangles":
        return jsp.triangle_count(G, **backend).count.astype(jnp.int32) + 0 * s
    if name == "pagerank":
        return jsp.pagerank(G, damping=0.9, tol=1e-7, max_iterations=300, **backend).scores + 0 * s
    options = {"personalization": p, "tol": 1e-7, "max_iterations": 300}
    return jsp.pagerank(G, **options, **backend).scores + 0 * s


@functools.lru_cache(maxsize=32)
def _program(structure: tuple[tuple[str, Any], ...]) -> Any:
    case = dict(structure)

    def f(G, values, s, p):
        if values is not None:
            G = G.with_data(values)
        elif isinstance(G, jsp.COO):
            G = jax.jit(lambda M: M.asformat(case["format"]))(G)
        return _call(case, G, s, p)

    return wrapped(f, case["wrapper"])


def run(case: Case) -> tuple[str, ...]:
    """Raises where the algorithm of the case gives another result than SciPy or NetworkX."""
    with jax.enable_x64(case["x64"]):
        return _run(case)


def _run(case: Case) -> tuple[str, ...]:
    rng = np.random.default_rng(case["seed"])
    structure = tuple((k, v) for k, v in case.items() if k != "seed")
    pattern = _pattern(case) if case["prepared"] else rng
    dense = _dense(rng, case, pattern)
    n = case["n"]
    source, p = np.int32(rng.integers(n)), rng.random(n).astype(np.float32) + 0.01
    if case["prepared"]:
        G, values = _prepared(structure), dense[np.nonzero(dense)]
    else:
        part, layout = (dense, dense != 0), case["layout"]
        by_hand = case["format"] == "csr by hand"
        G = compressed(rng, part, layout, jsp.CSR) if by_hand else triplets(rng, part, layout)
        values = None
    if case["wrapper"] == "eager":
        G, values, source, p = jax.tree.map(jnp.asarray, (G, values, source, p))
    got = jax.device_get(_program(structure)(G, values, source, p))
    _compare(case, dense, int(source), p, got, G)
    if nx is None or case["seed"] % NETWORKX_EVERY or case["algorithm"] not in NETWORKX:
        return ("scipy",)
    NETWORKX[case["algorithm"]](dense, int(source), got)
    return ("scipy", "networkx")


def _levels(matrix: Any, source: int) -> np.ndarray:
    far = csgraph.dijkstra(matrix, indices=source, unweighted=True)
    return np.where(np.isinf(far), -1, far)


def _compare(case: Case, dense: np.ndarray, source: int, p: np.ndarray, got: Any, G: Any) -> None:
    matrix, name = scipy.sparse.csr_array(dense), case["algorithm"]
    if name in ("bfs", "sssp"):
        reached = (
            _levels(matrix, source) if name == "bfs" else csgraph.dijkstra(matrix, indices=source)
        )
        np.testing.assert_array_equal(got[0], reached)
        _tree(dense if name == "sssp" else dense != 0, got[0], got[1], source)
    elif name == "negative":
        _negative(dense, source, got)
    elif name == "fixpoint":
        np.testing.assert_array_equal(got, csgraph.dijkstra(matrix, indices=source))
    elif name == "widest":
        np.testing.assert_array_equal(got, _widest(dense, source))
    elif name == "sources":
        np.testing.assert_array_equal(got, [_levels(matrix, s) for s in (source, 0, source)])
    elif name == "until":
        levels = _levels(matrix, source)
        np.testing.assert_array_equal(got, np.where(levels <= 2, levels, -1))
    elif name == "slope":
        if isinstance(G, jsp.COO):
            G = jax.tree.map(jnp.asarray, G).asformat(case["format"])
        _slope(dense, csgraph.dijkstra(matrix, indices=source), got, G)
    elif name == "components":
        labels = csgraph.connected_components(matrix, directed=True, connection="weak")[1]
        want = np.array([np.flatnonzero(labels == label)[0] for label in labels])
        np.testing.assert_array_equal(got, want)
    elif name == "triangles":
        simple = (dense != 0) & ~np.eye(len(dense), dtype=bool)
        assert got == np.trace(np.linalg.matrix_power(simple.astype(np.int64), 3)) // 6
    else:
        q = p / p.sum() if name == "personalized" else np.full(len(p), 1 / len(p))
        want = _pagerank(dense, q, 0.85 if name == "personalized" else 0.9)
        np.testing.assert_allclose(got, want, atol=2e-5)


def _negative(dense: np.ndarray, source: int, got: Any) -> None:
    """Lengths by Bellman and Ford; a loop of negative length that is reached is said."""
    far = np.where(np.arange(len(dense)) == source, 0.0, np.inf)
    lengths = np.where(dense != 0, dense, np.inf)
    for _ in range(len(dense)):
        before, far = far, np.minimum(far, (far[:, None] + lengths).min(0, initial=np.inf))
    loop = bool((far < before).any()) if len(dense) else False
    assert bool(got[1]) == loop, f"not converged: {got[1]}"
    if not loop:
        np.testing.assert_array_equal(got[0], far)


def _widest(dense: np.ndarray, source: int) -> np.ndarray:
    """The largest w so that a path over edges of at least w leads there."""
    wide = np.where(np.arange(len(dense)) == source, np.inf, -np.inf)
    for w in np.unique(dense[dense != 0]):
        reached = _levels(scipy.sparse.csr_array(dense >= w), source) > 0
        wide[reached] = w
    return wide


def _tree(lengths: np.ndarray, reached: np.ndarray, parents: np.ndarray, source: int) -> None:
    """Every vertex that is reached has a parent by a tight edge; the source is its own."""
    valid = (reached >= 0) & np.isfinite(reached)
    assert (parents[~valid] == -1).all() and parents[source] == source
    others = np.flatnonzero(valid & (np.arange(len(reached)) != source))
    edge = lengths[parents[others], others]
    assert (edge != 0).all(), "a parent without an edge"
    np.testing.assert_array_equal(reached[parents[others]] + edge, reached[others])


def _slope(dense: np.ndarray, far: np.ndarray, got: np.ndarray, G: Any) -> None:
    """The derivative by an edge: how many vertices lie behind it in a tree of shortest paths."""
    row, col = np.asarray((G.out if isinstance(G, jsp.Graph) else G).rowcol())
    valid = row < len(dense)
    row, col, got = row[valid], col[valid], got[valid]
    used = got > 0
    assert (far[row[used]] + dense[row[used], col[used]] == far[col[used]]).all(), "a tight edge"
    assert (got >= 0).all() and used.sum() == (np.isfinite(far) & (far > 0)).sum(), "one a vertex"
    behind = np.zeros(len(far))
    for k in np.flatnonzero(used)[np.argsort(-far[col[used]], kind="stable")]:
        behind[row[k]] += 1 + behind[col[k]]
        assert got[k] == 1 + behind[col[k]]


def _pagerank(dense: np.ndarray, p: np.ndarray, damping: float) -> np.ndarray:
    out = dense.sum(1, keepdims=True)
    move = np.where(out > 0, dense / np.where(out > 0, out, 1), p)
    n = len(dense)
    return np.linalg.solve(np.eye(n) - damping * move.T, (1 - damping) * p)


def _nx(dense: np.ndarray) -> Any:
    assert nx is not None
    return nx.from_numpy_array(dense, create_using=nx.DiGraph)


def _nx_levels(dense, source, got):
    assert nx is not None
    want = nx.single_source_shortest_path_length(_nx(dense), source)
    assert {k: v for k, v in enumerate(got[0].tolist()) if v >= 0} == dict(want)


def _nx_lengths(dense, source, got):
    assert nx is not None
    want = nx.single_source_dijkstra_path_length(_nx(dense), source)
    assert {k: v for k, v in enumerate(got[0].tolist()) if np.isfinite(v)} == dict(want)


def _nx_components(dense, source, got):
    assert nx is not None
    for part in nx.weakly_connected_components(_nx(dense)):
        assert {int(got[v]) for v in part} == {min(part)}


def _nx_pagerank(dense, source, got):
    assert nx is not None
    want = nx.pagerank(_nx(dense), alpha=0.9, tol=1e-10, max_iter=1000)
    np.testing.assert_allclose(got, [want[v] for v in range(len(dense))], atol=2e-5)


def _nx_triangles(dense, source, got):
    assert nx is not None
    graph = nx.from_numpy_array((dense != 0) & ~np.eye(len(dense), dtype=bool))
    assert got == sum(nx.triangles(graph).values()) // 3


NETWORKX = {
    "bfs": _nx_levels, "sssp": _nx_lengths, "components": _nx_components,
    "pagerank": _nx_pagerank, "triangles": _nx_triangles,
}  # fmt: skip
FUZZER = Fuzzer(
    {
        "algorithm": (
            "bfs", "sources", "until", "sssp", "components", "pagerank", "personalized",
            "triangles", "slope", "negative", "fixpoint", "widest",
        ),
        "backend": (None, "xla"),
        "wrapper": NAMES,
        "n": (3, 1, 12, 40),
        "density": (0.3, 0.0, 0.05, 0.9),
        "symmetric": (False, True),
        "format": ("csr", "csc", "coo", "tiled", "csr by hand"),
        "layout": ("padded", "unsorted", "duplicates"),
        "prepared": (False, True),
        "x64": (False, True),
    },
    run,
    draws=lambda case: 3 if case["wrapper"] == "captured" else None,
    possible=lambda case: (case["symmetric"] or case["algorithm"] != "triangles")
    and not (case["prepared"] and (case["density"] == 0.0 or case["layout"] != "padded"))
    and not (case["layout"] == "duplicates" and "tiled" == case["format"])
    and not (case["algorithm"] == "negative" and case["symmetric"])  # a loop by each such edge
    and not (case["layout"] == "duplicates" and "slope" == case["algorithm"]),
)  # fmt: skip
