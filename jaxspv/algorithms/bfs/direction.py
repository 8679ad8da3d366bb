"""When to pull a level: the estimate that the CPU and the XLA form share."""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array

# Costs; only their ratios matter, and they were fitted to the time of whole searches on a CPU.
PUSH = 14.0  # an edge pushed
PASS = 4.0  # a vertex that a pull passes by
PROBE = 8.0  # an in-neighbour that a pull looks at


def pull_is_cheaper(edges: Array, reached: Array, n: int, nse: int) -> Array:
    """Whether pulling a level costs less than pushing its `edges`, by the constants above.

    push = PUSH * edges; pull = PASS * n + PROBE * (n - reached) * probes, where an unreached vertex
    needs about nse / edges probes to hit the frontier, and at most its degree.
    """
    frontier = edges.astype(jnp.float32)
    probes = jnp.minimum(nse / (frontier + 1), nse / n)
    return frontier * PUSH > n * PASS + (n - reached).astype(jnp.float32) * probes * PROBE
