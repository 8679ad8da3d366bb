"""PageRank, damping 0.85, to an L1 change of 1e-6, against SciPy's product and NetworkX."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from .. import baselines
from ..harness import Candidate, blocking, chained, measure
from ..options import Options
from ..prepared import method_name, prepared, runs_here
from ..suite import Workload

BASELINE = "SciPy"
DAMPING, TOLERANCE, MAX_ITERATIONS = 0.85, 1e-6, 200


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph; every stored entry counts as an edge of weight 1."""
    pattern = workload.matrix()
    ones = np.ones(pattern.nnz, np.float32)
    A = sp.csr_array((ones, pattern.indices, pattern.indptr), shape=pattern.shape)
    graph, costs = prepared(A, "pagerank")
    iterations = []

    def check(result):
        # float32 scores: the change of one step is known to about 1e-6 itself.
        verify.pagerank(A, result, damping=DAMPING, atol=3 * TOLERANCE)

    def check_ours(result):
        check(result)
        iterations.append(int(result.iterations))

    found = _ours(graph, costs, check_ours, options)
    if options.baselines:
        call = baselines.scipy_pagerank(A, DAMPING, TOLERANCE, MAX_ITERATIONS)
        found.append(Candidate(BASELINE, call, lambda r: check(SimpleNamespace(scores=r[0]))))
    if options.baselines and A.nnz <= baselines.SMALL_FOR_NETWORKX:
        call = baselines.networkx_pagerank(A, DAMPING, TOLERANCE)
        found.append(Candidate("NetworkX", call, lambda r: check(SimpleNamespace(scores=r[0]))))
    records = measure(found, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, iterations=iterations[0])
    return records


def _ours(graph, costs, check, options):
    found = []
    for place, impl in enumerate(runs_here(jsp.explain("pagerank", graph), options.backend)):
        notes = {**costs, "method": method_name(impl)}
        prepare_s = notes.pop("prepare_s")
        # The first is what runs unasked.
        asked = {} if place == 0 and options.backend is None else {"backend": impl.backend}
        name = "jaxspv" if place == 0 else f"jaxspv {impl.backend}"

        def rank(graph, damping, asked=asked):
            return jsp.pagerank(
                graph, damping, tol=TOLERANCE, max_iterations=MAX_ITERATIONS, **asked
            )

        found.append(Candidate(name, blocking(rank, graph, DAMPING), check, 1, prepare_s, notes))
        if options.repeats:
            call = _inside(rank, graph, options.repeats, unroll=impl.backend == "pallas")
            found.append(
                Candidate(f"{name}, inside jit", call, check, options.repeats, prepare_s, notes)
            )
    return found


def _inside(rank, graph, repeats, *, unroll):
    """`repeats` computations in one program; the damping of the next is read from the result."""

    def step(carry, graph):
        damping, _ = carry
        result = rank(graph, damping)
        # Scores are not negative, which XLA does not know: damping stays what it is.
        return damping + jnp.minimum(result.scores[0], 0), result

    start = jnp.float32(DAMPING)
    shapes = jax.eval_shape(rank, graph, start)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=unroll)
    return lambda: jax.block_until_ready(program((start, empty), graph))[1]
