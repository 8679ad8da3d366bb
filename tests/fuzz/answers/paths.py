"""Semirings of tuples on random acyclic graphs, against the list of all paths.

The oracle walks every path in Python and knows no semiring: it sums, sorts, counts, and takes
moments of what the paths weigh.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from ..cases import Case, Fuzzer

N, EDGES, K, GRAPHS = 6, 12, 3, 100  # of each graph; the graphs of a case
S = jsp.semirings
LOGS = np.log(np.linspace(0.1, 0.9, EDGES, dtype=np.float32))


class Edges:
    """The numbers of each edge: small integers, so that ties are common, and reals."""

    def __init__(self, rng: np.random.Generator, row: np.ndarray, col: np.ndarray):
        self.row, self.col = row, col
        self.cost = rng.integers(1, 4, EDGES).astype(np.float32)
        self.log = np.log(rng.integers(1, 5, EDGES) / 4).astype(np.float32)
        self.other = rng.integers(-2, 5, EDGES).astype(np.float32)
        self.fact = rng.permutation(EDGES).astype(np.int32)  # k best is exact if none comes twice
        self.poly = rng.integers(0, 3, (EDGES, 3)).astype(np.float32)


def _moments(e, paths, entropy=False):
    weights = np.array([np.exp(e.log[p].sum(dtype=float)) for p in paths])
    if not paths:
        return (-np.inf, 0.0) if entropy else (-np.inf, 0.0, 0.0)
    level, share = np.log(weights.sum()), weights / weights.sum()
    if entropy:
        return level, -(share * np.log(share)).sum()
    values = np.array([e.other[p].sum() for p in paths])
    mean = (share * values).sum()
    return level, mean, (share * (values - mean) ** 2).sum()


def _argmin(e, paths):
    return min(((e.cost[p].sum(), p[-1] if p else 2**31 - 1) for p in paths),
               default=(np.inf, 2**31 - 1))  # fmt: skip


def _k_best(e, paths):
    costs = sorted(e.cost[p].sum() for p in paths)[:K]
    return (np.array(costs + [np.inf] * (K - len(costs))),)


def _count(e, paths):
    best = min((e.cost[p].sum() for p in paths), default=np.inf)
    return best, sum(e.cost[p].sum() == best for p in paths)


def _widest(e, paths):
    best = min((e.cost[p].sum() for p in paths), default=np.inf)
    wide = [e.other[p].min(initial=np.inf) for p in paths if e.cost[p].sum() == best]
    return best, max(wide, default=-np.inf)


def _dual(e, paths):
    slope = 0.0
    for p in paths:
        for k in range(len(p)):
            slope += e.other[p[k]] * np.prod(e.cost[p[:k] + p[k + 1 :]])
    return sum(np.prod(e.cost[p]) for p in paths), slope


def _poly(e, paths):
    total = np.zeros(3)
    for p in paths:
        total += functools.reduce(lambda x, k: np.convolve(x, e.poly[k])[:3], p, np.eye(3)[0])
    return (total,)


def _proofs(e, paths):
    sets = {frozenset(e.fact[p].tolist()) for p in paths}
    logs = sorted((float(sum(LOGS[f] for f in s)) for s in sets), reverse=True)[:2]
    return (np.array(logs + [-np.inf] * (2 - len(logs))),)


CASES: dict[str, Any] = {  # name -> (semiring, values of edges, oracle, leaves that are compared)
    "argmin_plus": (S.argmin_plus(), lambda s, e: s.lift(e.cost), _argmin, 2),
    "k_best": (S.k_best(K), lambda s, e: s.lift(e.cost), _k_best, 1),
    "counting": (S.counting(S.min_plus), lambda s, e: s.lift(e.cost), _count, 2),
    "lexicographic": (
        S.lexicographic(S.min_plus, S.max_min),
        lambda s, e: s.lift(e.cost, e.other),
        _widest,
        2,
    ),
    "expectation": (S.expectation(), lambda s, e: s.lift(e.log, e.other), _moments, 2),
    "entropy": (
        S.entropy(),
        lambda s, e: s.lift(e.log),
        functools.partial(_moments, entropy=True),
        2,
    ),
    "variance": (S.variance(), lambda s, e: s.lift(e.log, e.other), _moments, 3),
    "dual": (S.dual(S.plus_times), lambda s, e: s.lift(e.cost, e.other), _dual, 2),
    "polynomials": (S.polynomials(2), lambda s, e: s.lift(e.poly), _poly, 1),
    "top_k_proofs": (S.top_k_proofs(2, LOGS), lambda s, e: s.lift(e.fact, LOGS), _proofs, 1),
}


def paths_to(e: Edges, start: int) -> list[list[list[int]]]:
    """For each vertex the paths from `start` to it, as lists of edges."""
    found: list[list[list[int]]] = [[] for _ in range(N)]

    def walk(v, path):
        found[v].append(path)
        for k in range(len(e.row)):
            if e.row[k] == v:
                walk(e.col[k], [*path, k])

    walk(start, [])
    return found


def graph(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Edges of an acyclic graph, sorted by row and column; the order of vertices is random."""
    pairs = np.array(list(itertools.combinations(range(N), 2)))
    pairs = rng.permutation(N)[pairs[rng.permutation(len(pairs))[: rng.integers(0, EDGES + 1)]]]
    pairs = pairs.reshape(-1, 2)
    row, col = pairs[np.lexsort(pairs.T[::-1])].T
    return row, col


def _one_at(semiring, starts):
    one, zero = semiring.one.value, semiring.add.identity.value

    def leaf(o, z):
        o, z = np.asarray(o), np.asarray(z)
        dtype = np.float32 if o.dtype.kind == "f" else o.dtype
        x = np.broadcast_to(z, (N * GRAPHS, *z.shape)).astype(dtype)
        x[starts] = o
        return jnp.asarray(x)

    return jax.tree.map(leaf, one, zero)


@functools.partial(jax.jit, static_argnames=("name", "way"))
def _compiled(A, x0, *, name, way):
    s = CASES[name][0]
    if way == "steps":
        return jsp.closure(A, s, start=x0, until=jsp.until.max_iterations(N)).x
    if way == "twice":
        return jsp.vxm(jsp.vxm(x0, A, s), A, s)
    if way == "from behind":
        return jsp.mxv(A, jsp.mxv(A, x0, s), s)
    C = jsp.mxm(A, A, s, chunk=EDGES * N * GRAPHS)
    return jsp.vxm(x0, C, s)


def _laid(parts, values):
    """The graphs as the blocks of one, with padding behind the edges of all."""
    row, col = (np.concatenate([v[i] + N * g for g, v in enumerate(parts)]) for i in (0, 1))
    real = np.concatenate([np.arange(EDGES) < len(row) for row, _ in parts])
    order = np.argsort(~real, kind="stable")
    n = N * GRAPHS
    rows, cols = (jnp.asarray(np.pad(v, (0, EDGES * GRAPHS - len(v)), constant_values=n), jnp.int32)
                  for v in (row, col))  # fmt: skip
    values = jax.tree.map(lambda *v: jnp.concatenate(v)[order], *values)
    return jsp.COO(jnp.zeros(len(rows)), rows, cols, jnp.asarray(False), (n, n)).with_data(values)


def run(case: Case) -> tuple[str, ...]:
    """Raises where a result is not what the lists of paths give."""
    rng = np.random.default_rng(case["seed"])
    parts = [graph(rng) for _ in range(GRAPHS)]
    edges = [Edges(rng, *part) for part in parts]
    starts, way, name = rng.integers(N, size=GRAPHS), case["way"], case["semiring"]
    semiring, lift, oracle, count = CASES[name]
    A = _laid(parts, [lift(semiring, e) for e in edges])
    x0 = _one_at(semiring, starts + N * np.arange(GRAPHS))
    if way == "levels":
        found = jsp.closure(A.asformat(case["format"]), semiring, start=x0).x
    else:
        found = _compiled(A, x0, name=name, way=way)
    got = [np.asarray(v).reshape(GRAPHS, N, *v.shape[1:]) for v in jax.tree.leaves(found)]
    for g, e in enumerate(edges):
        paths = _paths(e, starts[g], way)
        want = [np.stack(v) for v in zip(*(oracle(e, p) for p in paths), strict=True)]
        if name == "argmin_plus" and way in ("from behind", "mxm"):
            want = want[:1]  # the id of a path that ends here may be another's of its cost
        for x, w in zip(got[:count], want, strict=False):
            np.testing.assert_allclose(x[g], w, 1e-4, 1e-4, err_msg=f"graph {g}")
        if name == "k_best" and way in ("levels", "steps"):
            _follow(e, starts[g], [v[g] for v in got])
    return ("paths",)


def _paths(e, start, way):
    """Those that the result has at each vertex."""
    if way == "from behind":  # of two edges that end at `start`
        return [[p for p in paths_to(e, v)[start] if len(p) == 2] for v in range(N)]
    found = paths_to(e, start)
    return [[p for p in at if len(p) == 2] for at in found] if way in ("twice", "mxm") else found


def _follow(e, start, got) -> None:
    """Back-pointers lead to the start, over distinct paths of the costs that they are of."""
    costs, edges, ranks = got
    for v in range(N):
        seen = set()
        for r in range(K):
            if np.isinf(costs[v, r]):
                continue
            at, rank, path = v, r, []
            while edges[at, rank] < EDGES:
                edge = edges[at, rank]
                assert e.col[edge] == at
                path, at, rank = [int(edge), *path], e.row[edge], ranks[at, rank]
            assert at == start and e.cost[path].sum() == costs[v, r], (v, r, path)
            seen.add(tuple(path))
        assert len(seen) == np.isfinite(costs[v]).sum()


WAYS = ("steps", "twice", "from behind", "mxm", "levels")
FUZZER = Fuzzer(
    {
        "semiring": tuple(CASES),
        "way": WAYS,
        "format": ("csr", "coo", "csc", "ell", "sell", "tiled"),
    },
    run,
    programs=GRAPHS,
    possible=lambda case: (
        case["format"] == "csr"
        or (
            case["way"] == "levels"
            and (case["semiring"] != "polynomials" or case["format"] in ("coo", "csc"))
        )
    ),
)
