"""What a launch costs: 1000 steps of PageRank as launches, as a loop in XLA, and as one kernel.

Square matrices of 256, 1024 and 4096 with 5% of the entries (95% sparsity), as in the table of
launch overheads of the GraphBLAS-GPU report. Milliseconds are microseconds an iteration.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from ..harness import Candidate, measure
from ..options import Options
from ..prepared import runs_here
from ..suite import Workload

STEPS, DENSITY = 1000, 0.05
SIZES = (256, 1024, 4096)


def workloads() -> list[Workload]:
    """The matrices."""
    return [
        Workload(f"dense{n}", functools.partial(_build, n), "5% of all entries, seed 0")
        for n in SIZES
    ]


def _build(n: int) -> sp.csr_array:
    rng = np.random.default_rng(0)
    return sp.csr_array((rng.random((n, n)) < DENSITY).astype(np.float32))


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one matrix."""
    A = workload.matrix()
    graph = jsp.prepare(jsp.from_scipy(A), for_="pagerank")
    plan = jsp.explain("pagerank", graph)

    def steps(graph, p, count, backend):
        return jsp.pagerank(
            graph, 0.85, 0.0, count, p, min_iterations=count, backend=backend
        ).scores

    def check(scores):
        verify.pagerank(A, _Scores(np.asarray(scores)), damping=0.85, atol=1e-5)

    p = jnp.full(A.shape[0], 1 / A.shape[0], jnp.float32)
    one = jax.jit(functools.partial(_step, A.shape[0]))
    operands = tuple(map(jnp.asarray, _triplets(A)))

    def launches():
        x = p
        for _ in range(STEPS):
            x = one(x, *operands)
        return jax.block_until_ready(x)

    found = [Candidate("a launch a step", launches, check)]
    for impl in runs_here(plan, options.backend):
        loop = functools.partial(steps, count=STEPS, backend=impl.backend)
        more = {"": None}
        if impl.backend == "xla" and jax.default_backend() == "gpu":
            more[", options"] = jsp.config.gpu_compiler_options()
        for label, compiler_options in more.items():
            program = jax.jit(loop, compiler_options=compiler_options)
            call = functools.partial(lambda f: jax.block_until_ready(f(graph, p)), program)
            found.append(Candidate(f"{impl.backend}/{impl.name}{label}", call, check))
    records = measure(found, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, us_a_step=1e3 * record["median_ms"] / STEPS)
    return records


class _Scores:
    def __init__(self, scores):
        self.scores = scores


def _triplets(A):
    coo = A.T.tocoo()
    strength = A.sum(1)
    inverse = np.divide(1, strength, out=np.zeros(len(strength), np.float32), where=strength > 0)
    return coo.row, coo.col, inverse


def _step(n, x, row, col, inverse):
    """One step on the triplets of A transposed."""
    flow = jax.ops.segment_sum((x * inverse)[col], row, n, indices_are_sorted=True)
    lost = jnp.sum(jnp.where(inverse > 0, 0, x))
    return 0.85 * (flow + lost / n) + 0.15 / n
