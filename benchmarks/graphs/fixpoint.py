"""BFS, SSSP, PageRank as a user writes them (`examples/fixpoint.py`) against the built-in ones.

And a loop that is not monotone against one dense product a step. Times are those inside one jitted
program: K computations / K.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from examples import fixpoint as written
from jaxspv import verify

from ..harness import Candidate, blocking, chained, measure
from ..options import Options
from ..prepared import inside, method_name, runs_here
from ..suite import Workload
from ..traversal.sssp import LARGE, check_certificate

STEPS, TOLERANCE = 20, 1e-6


class Found(NamedTuple):
    """A vector as a traversal's result."""

    x: Any
    parents: Any = None


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph: a case for each algorithm."""
    A, source = workload.matrix(), workload.start()
    ones = sp.csr_array((np.ones(A.nnz, np.float32), A.indices, A.indptr), shape=A.shape)
    cases = {
        "BFS": lambda: _traversal(ones, "bfs", source, options),
        "SSSP": lambda: _traversal(workload.weighted(), "sssp", source, options),
        "PageRank": lambda: _pagerank(ones, H, dangling, options),
        "20 products": lambda: _products(A, H, options),
    }
    cases = {case: cases[case] for case in options.cases or cases}
    if {"PageRank", "20 products"} & set(cases):
        P, dangling = written.transition(jsp.from_scipy(ones))
        H = jsp.prepare(P, for_=("fixpoint", "vxm") if "20 products" in cases else "fixpoint")
    records = []
    for case, candidates in cases.items():
        for record in measure(candidates(), **options.timing()):
            where = {"n": A.shape[0], "entries": A.nnz, "case": f"{workload.name} {case}"}
            records.append({**record, **where})
    return records


def _method(name, *args, **kwargs):
    return method_name(runs_here(jsp.explain(name, *args, **kwargs))[0])


def _traversal(A, purpose, source, options):
    """Levels or distances, built in and written by the user; without parents."""
    G = jsp.prepare(jsp.from_scipy(A), for_=(purpose, "fixpoint"))
    user = written.bfs_levels if purpose == "bfs" else written.sssp_distances
    builtin = getattr(jsp, purpose)
    known = verify.levels_of(A, source) if purpose == "bfs" else None
    if purpose == "sssp" and A.nnz <= LARGE:
        known = sp.csgraph.dijkstra(A, indices=source)

    def check(found):
        got = np.asarray(found.x)
        if known is None:
            return check_certificate(A, source, got.astype(np.float64))
        wrong = np.flatnonzero(got != known)
        assert not len(wrong), f"vertex {wrong[0]} has {got[wrong[0]]}, not {known[wrong[0]]}."

    x0 = jnp.full(G.n, jnp.inf).at[source].set(0)
    methods = {
        "built in": _method(purpose, G, source),
        "fixpoint": _method("fixpoint", G, x0, jsp.semirings.min_plus, monotone=True),
    }
    runs = {
        "built in": lambda G, s: Found(builtin(G, s, parents=False)[0]),
        "fixpoint": lambda G, s: Found(user(G, s)),
    }
    return [
        _candidate(name, run, G, source, check, methods[name], options)
        for name, run in runs.items()
    ]


def _candidate(name, run, G, source, check, method, options):
    notes = {"method": method}
    repeats = max(1, options.repeats)
    if options.repeats:
        call = inside(run, G, source, repeats, unroll=method.startswith("pallas"))
    else:
        call = blocking(jax.jit(run), G, source)
    return Candidate(name, call, check, repeats, None, notes)


def _pagerank(A, H, dangling, options):
    """H: of shares."""
    G = jsp.prepare(jsp.from_scipy(A), for_="pagerank")

    def check(found):
        verify.pagerank(A, _Scores(found.x), damping=0.85, atol=3 * TOLERANCE)

    def builtin(G, s):
        return Found(jsp.pagerank(G, 0.85 + 0.0 * s, TOLERANCE, 100).scores)

    def user(H, s):
        return Found(written.pagerank(H, dangling, 0.85 + 0.0 * s, TOLERANCE))

    method = _method("fixpoint", H, **written.pagerank_loop(H, dangling))
    return [
        _looped("built in", builtin, G, check, _method("pagerank", G), options),
        _looped("fixpoint", user, H, check, method, options),
    ]


class _Scores:
    def __init__(self, scores):
        self.scores = scores


def _products(A, H, options):
    """x <- x P, 20 times: steps of a fixpoint, and one product after the other."""
    S = sp.csr_array((np.asarray(H.data, np.float64), A.indices, A.indptr), shape=A.shape)
    expected = np.full(H.n, 1 / H.n)
    for _ in range(STEPS):
        expected = S.T @ expected

    def check(found):
        np.testing.assert_allclose(found.x, expected, rtol=1e-3, atol=1e-7)

    def start(s):
        return jnp.full(H.n, 1 / H.n) + 0.0 * s

    def user(H, s):
        return Found(jsp.fixpoint(H, start(s), until=jsp.until.max_iterations(STEPS)).x)

    def products(H, s):
        step = lambda _, x: jsp.vxm(x, H)  # noqa: E731
        return Found(jax.lax.fori_loop(0, STEPS, step, start(s)))

    method = _method("fixpoint", H, start(0.0), until=jsp.until.max_iterations(STEPS))
    return [
        _looped("built in", products, H, check, "vxm", options),
        _looped("fixpoint", user, H, check, method, options),
    ]


def _looped(name, run, G, check, method, options):
    """K computations in one program; a number that the next one uses is read from the result."""
    repeats = max(1, options.repeats)

    def step(carry, G):
        found = run(G, carry[0])
        return found.x[0], found

    shapes = jax.eval_shape(run, G, jnp.float32(0))
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=method.startswith("pallas"))
    call = lambda: jax.block_until_ready(program((jnp.float32(0), empty), G))[1]  # noqa: E731
    return Candidate(name, call, check, repeats, None, {"method": method})
