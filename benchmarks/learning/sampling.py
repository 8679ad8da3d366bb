"""Neighbours of 100,000 seeds with fan-outs (15, 10): one call, and one inside a jitted program.

Uniform, without replacement. What is drawn must be neighbours, none of them twice; on a GPU the CPU
must draw the same from the same key.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from ..harness import Candidate, chained, jitted, measure
from ..options import Options
from ..suite import Workload

SEEDS, FANOUTS = 100_000, (15, 10)
LOOKED_AT = 1000  # seeds whose neighbours are compared with the matrix


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph."""
    S = workload.matrix()
    A = jsp.from_scipy(S)
    seeds = jax.random.randint(jax.random.key(1), (SEEDS,), 0, A.shape[0], jnp.int32)
    check = _check(A, S, seeds)
    head = {"n": S.shape[0], "entries": S.nnz}
    found = list(_candidates(A, seeds, check, options.repeats))
    return [{**r, **head} for r in measure(found, **options.timing())]


def _drawn(key, A, seeds):
    return jsp.learning.sample_neighbors(key, A, seeds, FANOUTS)


def _candidates(A, seeds, check, repeats):
    program = jitted(_drawn)
    key = jax.random.key(0)
    yield Candidate("one call", lambda: jax.block_until_ready(program(key, A, seeds)), check)
    if repeats <= 1:
        return

    def step(carry, A, seeds):
        key, _ = carry
        drawn = jax.lax.optimization_barrier(_drawn(key, A, seeds))
        some = sum(nodes.ravel()[0] for nodes in drawn.nodes)  # no vertex is negative
        return jax.random.key(jnp.where(some < 0, 1, 0)), drawn

    shapes = jax.eval_shape(_drawn, key, A, seeds)
    empty = jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes)
    chain = chained(step, repeats, unroll=False)

    def inside():
        return jax.block_until_ready(chain((key, empty), A, seeds))[1]

    yield Candidate("inside jit", inside, check, repeats, None, {"inside": True})


def _check(A: jsp.CSR, S: Any, seeds: jax.Array) -> Callable[[Any], None]:
    """Against the matrix at some seeds; on a GPU against the CPU everywhere."""
    same = None
    if jax.default_backend() != "cpu":
        given = jax.device_put((jax.random.key(0), A, seeds), jax.devices("cpu")[0])
        same = jax.tree.map(np.asarray, jax.jit(_drawn)(*given))

    def check(drawn):
        first = np.asarray(drawn.nodes[0][:LOOKED_AT])
        for seed, found in zip(np.asarray(seeds)[:LOOKED_AT], first, strict=True):
            near = S.indices[S.indptr[seed] : S.indptr[seed + 1]]
            some = [v for v in found.tolist() if 0 <= v < S.shape[0]]
            assert len(set(some)) == len(some) == min(len(near), FANOUTS[0])
            assert set(some) <= set(near.tolist())
        if same is not None:
            for here, valid in zip(jax.tree.leaves(drawn), jax.tree.leaves(same), strict=True):
                np.testing.assert_array_equal(np.asarray(here), valid)

    return check
