"""What one iteration of a `lax.while_loop` on the XLA backend costs, and whether it stays on a GPU.

Each algorithm runs from Python (`eager`), under `jax.jit` with the default options and under
`jax.jit` with `jsp.config.gpu_compiler_options()`; the median over the number of its iterations is
the time of one. On a GPU a profile counts the copies to the host: a loop that does not stay there
makes at least one an iteration, to read its predicate. `counter` is a loop of a single addition.
"""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp
from jaxspv import verify

from ..harness import Candidate, alone, blocking, device_events, jitted, measure
from ..options import Options
from ..suite import Workload

STEPS = 1000  # of the counter


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph; `us_per_step`, `host_copies_per_step` in each."""
    A, source = workload.matrix(), workload.start()
    graph = jsp.prepare(jsp.from_scipy(A), for_=("bfs", "pagerank"))
    levels = verify.levels_of(A, source)
    ranks = jsp.pagerank(graph, backend="xla")

    def levels_are_right(result):
        assert (np.asarray(result.levels) == levels).all(), "a level is wrong."

    def ranks_are_right(result):
        assert np.abs(np.asarray(result.scores) - np.asarray(ranks.scores)).sum() < 1e-5

    def counts(result):
        assert int(result) == STEPS, "another number of steps."

    def bfs(g, s):
        return jsp.bfs(g, s, backend="xla")

    def pagerank(g):
        return jsp.pagerank(g, backend="xla")

    jobs = [
        ("bfs", bfs, (graph, jnp.int32(source)), levels_are_right, int(levels.max()) + 1),
        ("pagerank", pagerank, (graph,), ranks_are_right, int(ranks.iterations)),
    ]
    candidates, steps = [], {}
    for name, function, operands, check, iterations in jobs:
        ways = {"eager": function, "jit": jax.jit(function), "jit, options": jitted(function)}
        for way, call in ways.items():
            steps[f"{name}, {way}"] = iterations
            candidates.append(Candidate(f"{name}, {way}", blocking(call, *operands), check))
    for way, jit in (("jit", jax.jit), ("jit, options", jitted)):
        steps[f"counter, {way}"] = STEPS
        call = blocking(jit(_count), jnp.int32(STEPS))
        candidates.append(Candidate(f"counter, {way}", call, counts))
    records = measure(candidates, **options.timing())
    for record, candidate in zip(records, candidates, strict=True):
        number = steps[candidate.name]
        record.update(steps=number, us_per_step=1e3 * record["median_ms"] / number)
        with alone():
            events = device_events(candidate.call)
        if events is not None:
            copies = sum("D2H" in name or "DtoH" in name for name in events)
            record.update(
                host_copies_per_step=copies / number, events_per_step=len(events) / number
            )
    return records


def _count(limit):
    return lax.while_loop(lambda k: k < limit, functools.partial(jnp.add, 1), jnp.int32(0))
