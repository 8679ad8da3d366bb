"""PageRank by power iteration on the XLA backend, and its derivative, of one device or a mesh.

    x <- d (x D^-1 A + dangling(x) p) + (1 - d) p

D is the out-strength, dangling(x) the mass on vertices of out-strength 0, p the personalization.
The loop carries z = x D^-1, so that the SpMV gathers from one array and an unweighted graph needs
no values; the update, the dangling mass of the new x and its L1 change are one pass over vertices.
[Page, Brin, Motwani, Winograd: The PageRank citation ranking, 1999]
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.derivatives import is_zero, jvp_of_perturbed
from ..._core.loops import linear_solve
from ..common.derivatives import richardson


class _State(NamedTuple):
    scores: Array
    scaled: Array
    dangling: Array
    change: Array
    iterations: Array


def over_vertices(x: Array) -> Array:
    """The sum over the vertices, of each column."""
    return jnp.sum(x, axis=0)


def pagerank_xla(
    pull: Callable[[Array], Array],
    strength: Array,
    personalization: Array,
    *,
    damping: Any,
    tol: Any,
    max_iterations: Any,
    min_iterations: Any = 0,
    total: Callable[[Array], Array] = over_vertices,
) -> tuple[Array, Array, Array]:
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

    def active(state: _State) -> Array:
        unsettled = (state.change > tol) | (state.iterations < min_iterations)
        return unsettled & (state.iterations < max_iterations)

    def dangling_mass(scores: Array) -> Array:
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


def implicit_tangent(
    scores: Array,
    primals: tuple[Array, Array, Array],
    tangents: tuple[Any, Any, Any],
    *,
    strength: Callable[[Array], Array],
    flow: Callable[[Array, Array], Array],
    tol: Array,
) -> Array:
    """`x' = dF/dx x' + dF/d(data, p, d) (data', p', d')` for x = F(x), one step of the iteration.

    That is the implicit function theorem.
    `strength(data)` are the row sums of A, `flow(data, v)` is v A; both transpose.
    """
    data, p, damping = primals
    x = scores
    if is_zero(tangents):
        return jnp.zeros_like(x)

    def step(data, p, damping):
        total = strength(data)
        share = jnp.where(total > 0, x / jnp.where(total > 0, total, 1), 0)
        dangling = jnp.sum(jnp.where(total > 0, 0, x))
        return damping * (flow(data, share) + dangling * p) + (1 - damping) * p

    _, source = jvp_of_perturbed(step, primals, tangents)

    total = strength(data)
    spread = total > 0
    inverse = jnp.where(spread, 1 / jnp.where(spread, total, 1), 0)

    def matvec(v):  # (I - dF/dx) v; F is affine in x
        return v - damping * (flow(data, inverse * v) + jnp.sum(jnp.where(spread, 0, v)) * p)

    # I - matvec contracts with factor d, on vectors of sum 0 mostly much faster. The scores sum to
    # 1 whatever is perturbed, so `source` sums to 0, and the solution of the transposed system
    # matters up to a constant: its slowest mode, which decays with d alone, is left out.
    solve = functools.partial(richardson, tolerance=tol, steps=1000)
    transposed = functools.partial(solve, project=lambda v: v - jnp.mean(v))
    return linear_solve(matvec, source, solve, transposed)
