"""Connected components of graphs against SciPy."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from ..harness import Candidate, blocking, chained, measure, preparation
from ..options import Options
from ..prepared import method_name, runs_here
from ..suite import Workload

BASELINE = "SciPy"


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph."""
    A = workload.matrix()
    matrix, convert_s = preparation(lambda: jsp.from_scipy(A))
    graph, prepare_s = preparation(lambda: jsp.prepare(matrix))
    found = sp.csgraph.connected_components(A, directed=True, connection="weak")
    labels = np.full(found[0], A.shape[0])
    np.minimum.at(labels, found[1], np.arange(A.shape[0]))
    labels = labels[found[1]]

    def check(result):
        wrong = np.flatnonzero(np.asarray(result.labels) != labels)
        assert not len(wrong), f"label of vertex {wrong[0]} is wrong ({len(wrong)} such)."
        assert int(result.count) == found[0], "another number of components."

    plan = jsp.explain(jsp.connected_components, graph)
    candidates = []
    for place, impl in enumerate(runs_here(plan, options.backend)):
        ask = functools.partial(jsp.connected_components, backend=impl.backend)
        name = "jaxspv" if place == 0 else f"jaxspv {impl.backend}"
        notes = {"method": method_name(impl), "convert_s": convert_s}
        candidates.append(Candidate(name, blocking(ask, graph), check, 1, prepare_s, notes))
        if options.repeats:
            call = _inside(ask, graph, options.repeats, unroll=impl.backend == "pallas")
            name = f"{name}, inside jit"
            candidates.append(Candidate(name, call, check, options.repeats, prepare_s, notes))
    if options.baselines:

        def scipy():
            return sp.csgraph.connected_components(A, directed=True, connection="weak")

        candidates.append(Candidate(BASELINE, scipy, lambda r: None))
    records = measure(candidates, **options.timing())
    for record in records:
        record.update(n=A.shape[0], entries=A.nnz, components=int(found[0]))
    return records


def _inside(ask, graph, repeats, *, unroll):
    """`repeats` computations in one program; the row offsets of the next grow by label 0, a 0."""

    def step(carry, graph):
        zero, _ = carry
        out = dataclasses.replace(graph.out, indptr=graph.out.indptr + zero)
        result = ask(dataclasses.replace(graph, out=out))
        return result.labels[0], result

    shapes = jax.eval_shape(ask, graph)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    program = chained(step, repeats, unroll=unroll)
    return lambda: jax.block_until_ready(program((jnp.int32(0), empty), graph))[1]
