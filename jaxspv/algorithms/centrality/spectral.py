"""Eigenvector and Katz centrality, hubs and authorities: scores by iterated products."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import array_of, single_numbers
from ..._core.eager.programs import one_program
from ..._core.loops import while_loop
from ..._core.pytree import is_concrete, result_tuple
from ..._core.reductions import is_narrow
from ...graph import Graph, as_graph
from ...ops.products.mxv.api import mxv, vxm
from ...shapes import Bool, Count, Float, Int, Matrix, Real, Vector
from ...until import iteration_limit
from ..common.derivatives import fixed_point
from ..common.edges import vertices_of, without_ghosts
from ..common.sources import elsewhere
from ..common.weights import check_weights, over_largest, with_real_weights


@result_tuple
class Scores(NamedTuple):
    """The result of `eigenvector_centrality` and `katz_centrality`.

    Attributes:
        scores: (n,) of Euclidean length 1; 0 for ghosts of `pad`.
        iterations: int32, steps taken.
        converged: bool, whether the last L1 change was below n * tol.
    """

    scores: Float[Array, " n"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


@result_tuple
class Hits(NamedTuple):
    """The result of `hits`.

    Attributes:
        hubs: (n,) of sum 1.
        authorities: (n,) of sum 1.
        iterations: int32, steps taken.
        converged: bool, whether the last L1 change was below tol.
    """

    hubs: Float[Array, " n"]
    authorities: Float[Array, " n"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


@elsewhere(max_iter="max_iterations")
def eigenvector_centrality(
    G: Matrix,
    tol: Real = 1e-6,
    max_iterations: Count = 100,
    start: Vector | None = None,
    *,
    weighted: bool = True,
) -> Scores:
    """`x <- (x + x A) / |x + x A|`: the eigenvector of the largest eigenvalue, over in-edges.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j.
        tol: stop when the L1 change of a step is below n * tol, as in NetworkX.
        max_iterations: bound on the steps.
        start: (n,) to start from, not all zero; None: ones.
        weighted: whether values are weights; otherwise each entry counts 1.

    Returns:
        `Scores(scores, iterations, converged)`, float32 or the wider dtype of the weights.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, a concrete weight is infinite or NaN, or `start` has a wrong
            shape or is zero.

    Differentiable in the weights, both modes and twice, by the implicit function theorem: as
    exact as `tol` is small.

    Cost: a product with the matrix a step.

    Source: Bonacich, "Power and centrality: a family of measures", American Journal of Sociology
    92, 1987; the shift by I, which makes bipartite graphs converge, as in NetworkX.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> [round(float(s), 3) for s in jsp.eigenvector_centrality(A).scores]
    [0.5, 0.707, 0.5]
    """
    graph = _numbers(G, "eigenvector_centrality", weighted)
    x = _start(graph, start)
    single_numbers(tol=tol, max_iterations=max_iterations)
    limit = iteration_limit("max_iterations", max_iterations)
    return one_program(_eigenvector, graph, x, jnp.asarray(tol, x.dtype), jnp.asarray(limit))


def _eigenvector(graph: Graph, x: Array, tol: Array, limit: Array) -> Scores:
    def grown(x: Array, graph: Graph) -> Array:
        return _scaled(x + _flow(x, graph), _length)

    return Scores(*_repeat(grown, graph, (), _scaled(x, jnp.sum), vertices_of(graph) * tol, limit))


@elsewhere(max_iter="max_iterations")
def katz_centrality(
    G: Matrix,
    alpha: Real = 0.1,
    beta: Real | Vector = 1.0,
    tol: Real = 1e-6,
    max_iterations: Count = 1000,
    *,
    normalized: bool = True,
    weighted: bool = True,
) -> Scores:
    """`x <- alpha x A + beta`: walks that end in a vertex, those of k edges counted alpha^k times.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j.
        alpha: below 1 over the largest eigenvalue, or nothing converges.
        beta: number, or (n,) of what each vertex has by itself.
        tol: stop when the L1 change of a step is below n * tol, as in NetworkX.
        max_iterations: bound on the steps.
        normalized: whether scores are scaled to Euclidean length 1.
        weighted: whether values are weights; otherwise each entry counts 1.

    Returns:
        `Scores(scores, iterations, converged)`, float32 or the wider dtype of the weights.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, a concrete weight is infinite or NaN, or `beta` has a wrong
            shape.

    Differentiable in the weights, `alpha` and `beta`, both modes and twice, by the implicit
    function theorem: as exact as `tol` is small.

    Cost: a product with the matrix a step.

    Source: Katz, "A new status index derived from sociometric analysis", Psychometrika 18, 1953.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> [round(float(s), 3) for s in jsp.katz_centrality(A).scores]
    [0.56, 0.611, 0.56]
    """
    graph = _numbers(G, "katz_centrality", weighted)
    offset = array_of("beta", beta).astype(graph.dtype)
    if (shape := offset.shape) not in ((), (graph.n,)):
        raise ValueError(f"`beta` must be a number or have shape ({graph.n},); got {shape}.")
    single_numbers(alpha=alpha, tol=tol, max_iterations=max_iterations)
    numbers = (jnp.asarray(v, graph.dtype) for v in (alpha, tol))
    limit = jnp.asarray(iteration_limit("max_iterations", max_iterations))
    return one_program(_katz, graph, offset, *numbers, limit, normalized=normalized)


def _katz(graph: Graph, beta, alpha, tol, limit, *, normalized: bool) -> Scores:
    beta = jnp.broadcast_to(beta, (graph.n,))
    beta = without_ghosts(graph, beta, 0)
    x = jnp.zeros_like(beta)
    found = _repeat(_walked, graph, (alpha, beta), x, vertices_of(graph) * tol, limit)
    return Scores(_scaled(found[0], _length) if normalized else found[0], *found[1:])


def _walked(x: Array, graph: Graph, alpha: Array, beta: Array) -> Array:
    return alpha * _flow(x, graph) + beta


@elsewhere(max_iter="max_iterations")
def hits(
    G: Matrix,
    tol: Real = 1e-6,
    max_iterations: Count = 100,
    start: Vector | None = None,
    *,
    weighted: bool = True,
) -> Hits:
    """`authorities <- hubs A`, `hubs <- A authorities`: good hubs point to good authorities.

    Args:
        G: a `Graph` or a square sparse matrix, A[i, j] the edge i -> j.
        tol: stop when the L1 change of the hubs in a step, scaled to a sum of 1, is below this.
        max_iterations: bound on the steps.
        start: (n,) hubs to start from, not all zero; None: equal ones.
        weighted: whether values are weights; otherwise each entry counts 1.

    Returns:
        `Hits(hubs, authorities, iterations, converged)`, float32 or the wider dtype of the weights.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, a concrete weight is infinite or NaN, or `start` has a wrong
            shape or is zero.

    Differentiable in the weights, both modes and twice, by the implicit function theorem: as
    exact as `tol` is small.

    Cost: two products with the matrix a step.

    Source: Kleinberg, "Authoritative sources in a hyperlinked environment", Journal of the ACM 46,
    1999.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1], [2, 2], shape=(3, 3))
    >>> found = jsp.hits(A)
    >>> found.hubs.tolist(), found.authorities.tolist()
    ([0.5, 0.5, 0.0], [0.0, 0.0, 1.0])
    """
    graph = _numbers(G, "hits", weighted)
    x = _start(graph, start)
    single_numbers(tol=tol, max_iterations=max_iterations)
    limit = jnp.asarray(iteration_limit("max_iterations", max_iterations))
    return one_program(_hits, graph, x, jnp.asarray(tol, x.dtype), limit)


def _hits(graph: Graph, x: Array, tol: Array, limit: Array) -> Hits:
    def sent(hubs: Array, graph: Graph) -> Array:
        return _scaled(mxv(graph, _scaled(_flow(hubs, graph), jnp.max)), jnp.sum)

    hubs, iterations, converged = _repeat(sent, graph, (), _scaled(x, jnp.sum), tol, limit)
    return Hits(hubs, _scaled(_flow(hubs, graph), jnp.sum), iterations, converged)


def _numbers(G: Any, algorithm: str, weighted: bool) -> Graph:
    """The graph with floats of 32 bits or more for values: weights, or ones.

    Raises:
        TypeError: weights are complex.
        ValueError: there is no vertex, or a concrete weight is infinite or NaN.
    """
    graph = as_graph(G, algorithm, ("mxv",))
    if graph.n == 0:
        raise ValueError(f"{algorithm} needs at least one vertex.")
    if not weighted:
        return graph.with_data(jnp.ones(graph.nse, jnp.float32))
    graph = with_real_weights(graph, algorithm)
    check_weights(graph, negative=True)
    if not jnp.issubdtype(graph.dtype, jnp.floating) or is_narrow(graph.dtype):
        return graph.with_data(graph.data.astype(jnp.float32))
    return graph


def _start(graph: Graph, start: Any) -> Array:
    x = (
        jnp.ones(graph.n, graph.dtype)
        if start is None
        else array_of("start", start).astype(graph.dtype)
    )
    if x.shape != (graph.n,):
        raise ValueError(f"`start` must have shape ({graph.n},); got {x.shape}.")
    if start is not None and is_concrete(x) and not np.asarray(x).any():
        raise ValueError("`start` must not be zero everywhere.")
    if not is_concrete(x):
        x = jnp.where(jnp.any(x != 0), x, jnp.nan)
    return without_ghosts(graph, x, 0)


def _length(x: Array) -> Array:
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1)), 0)


def _scaled(x: Array, size_of: Callable[[Array], Array]) -> Array:
    """x over its size, or as it is where that is 0."""
    unit = over_largest(x)
    size = size_of(unit)
    return jnp.where(size != 0, unit / jnp.where(size != 0, size, 1), x)


def _flow(x: Array, graph: Any) -> Array:
    """x A, over the in-edges where they are known."""
    return vxm(x, graph) if graph.inn is None else mxv(graph.inn, x)


def _repeat(
    step: Callable[..., Array],
    graph: Graph,
    params: tuple[Any, ...],
    x: Array,
    least: Any,
    limit: Array,
) -> tuple[Array, Array, Array]:
    """The solution of `x = step(x, graph, *params)`, steps, whether the change is below `least`."""
    fixed = lax.stop_gradient((graph, *params))

    def again(state):
        x, k, _ = state
        new = step(x, *fixed)
        return new, k + 1, jnp.sum(jnp.abs(new - x)) < least

    first = (lax.stop_gradient(x), jnp.int32(0), jnp.bool_(False))
    least = lax.stop_gradient(least)
    x, k, done = while_loop(lambda s: ~s[2] & (s[1] < limit), again, first)

    def of_values(x, out, data, *params):  # by the one leaf of a prepared graph with a derivative
        bare = Graph(dataclasses.replace(out, data=data), symmetric=graph.symmetric)
        return step(x, bare, *params)

    return fixed_point(of_values, (fixed[0].out, graph.data, *params), x), k, done
