"""PageRank by power iteration on the XLA backend: one SpMV and one fused update an iteration.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

D is the out-strength, dangling(x) the mass on vertices of out-strength 0, p the personalization.
The loop carries z = x D^-1, so that the SpMV gathers from one array and an unweighted graph needs
no values; the update, the dangling mass of the new x and its L1 change are one pass over vertices.
[Page, Brin, Motwani, Winograd: The PageRank citation ranking, 1999]
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import lax


class _State(NamedTuple):
    scores: jax.Array
    scaled: jax.Array
    dangling: jax.Array
    change: jax.Array
    iterations: jax.Array


def over_vertices(x: jax.Array) -> jax.Array:
    """The sum over the vertices, of each column."""
    return jnp.sum(x, axis=0)


def pagerank_xla(
    pull: Callable[[jax.Array], jax.Array],
    strength: jax.Array,
    personalization: jax.Array,
    *,
    damping: Any,
    tol: Any,
    max_iterations: Any,
    min_iterations: Any = 0,
    total: Callable[[jax.Array], jax.Array] = over_vertices,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Scores, number of iterations, and whether the last L1 change was <= tol.

    pull(z)[j] = sum over the edges i -> j of A[i, j] z[i].
    strength: (n,) row sums of A, >= 0. personalization, the start too: (n,) or (n, B), columns of
    sum 1, in the dtype of the result; of B columns each stops on its own:
    results (n, B), (B,), (B,).
    damping, tol, max_iterations and min_iterations may be traced. total: the sum over all vertices,
    of which a device may hold a part. One `pull` and O(n) an iteration.
    """
    x0 = personalization
    dtype, batch = x0.dtype, x0.shape[1:]
    per_vertex = strength.shape + (1,) * len(batch)
    has_edges = (strength > 0).reshape(per_vertex)
    weight = strength.astype(dtype).reshape(per_vertex)
    inverse = jnp.where(has_edges, 1 / jnp.where(has_edges, weight, 1), 0)
    damping, tol = jnp.asarray(damping, dtype), jnp.asarray(tol, dtype)

    def active(state: _State) -> jax.Array:
        unsettled = (state.change > tol) | (state.iterations < min_iterations)
        return unsettled & (state.iterations < max_iterations)

    def dangling_mass(scores: jax.Array) -> jax.Array:
        return total(jnp.where(has_edges, 0, scores))

    def step(state: _State) -> _State:
        going = active(state)
        teleport = damping * state.dangling + (1 - damping)
        new = damping * pull(state.scaled) + teleport * personalization
        new = jnp.where(going, new, state.scores)
        change = total(jnp.abs(new - state.scores))
        return _State(
            scores=new,
            scaled=new * inverse,
            dangling=dangling_mass(new),
            change=jnp.where(going, change, state.change),
            iterations=state.iterations + going,
        )

    start = _State(
        scores=x0,
        scaled=x0 * inverse,
        dangling=dangling_mass(x0),
        change=jnp.full(batch, jnp.inf, dtype),
        iterations=jnp.zeros(batch, jnp.int32),
    )
    end = lax.while_loop(lambda state: jnp.any(active(state)), step, start)
    return end.scores, end.iterations, end.change <= tol
