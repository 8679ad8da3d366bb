"""Soft shortest paths: every walk weighed by exp(-length / temperature), differentiable."""

from __future__ import annotations

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.derivatives import dense_tangent, is_zero
from .._core.eager.arrays import single_numbers
from .._core.loops import batch_any, linear_solve
from .._core.operation import Operation, typed
from .._core.pytree import is_concrete, result_tuple
from .._core.reductions import is_narrow
from ..algebra.semirings import plus_times
from ..formats import CSR
from ..graph import as_graph
from ..ops.products.spmv.api import op as spmv
from ..shapes import Bool, Float, Int, Matrix, Real, Sources
from ..until import iteration_limit
from .common.derivatives import richardson
from .common.sources import check_source, over
from .common.weights import check_weights, with_real_weights


@result_tuple
class SoftSSSP(NamedTuple):
    """The result of `soft_sssp`; a leading axis for several sources.

    Attributes:
        distances: (n,), the soft distance of each vertex; inf where no walk leads.
        iterations: int32, relaxations of all edges.
        converged: bool, whether the last relaxation changed no distance by more than `tol`, in
            proportion. False: the sum over walks diverges, or `max_iterations` were too few.
    """

    distances: Float[Array, "*sources n"]
    iterations: Int[Array, "*sources"]
    converged: Bool[Array, "*sources"]


def soft_sssp(
    G: Matrix,
    source: Sources,
    temperature: Real,
    *,
    tol: Real | None = None,
    max_iterations: int | None = None,
) -> SoftSSSP:
    """The soft minimum of the lengths of all walks from the source along the edges i -> j.

    `d[v] = -T log(sum over walks p: source -> v of exp(-length(p) / T))`, the fixpoint of
    `d[v] = softmin over edges u -> v of d[u] + A[u, v]` with the empty walk, of length 0, added at
    the source, where `softmin(x) = -T log(sum exp(-x / T))`.

    The sum converges where the spectral radius of `exp(-A / T)` (over stored entries) is below 1:
    on a graph without cycles always, with positive lengths for every T that is small enough. As T
    falls d rises to the distances of `sssp`; a high T counts walks, and d may be negative. After k
    iterations d holds the walks of at most k edges.

    Args:
        G: a `Graph` or a square sparse matrix; negative lengths are allowed.
        source: vertex, or an array of vertices (a leading axis in the result), relaxed together.
        temperature: T > 0.
        tol: stop when no distance changes by more than `tol * (1 + |d|)`; None: 8 times the
            machine epsilon.
        max_iterations: bound on the relaxations; None: the larger of 1000 and the vertices.

    Returns:
        `SoftSSSP(distances, iterations, converged)` in the dtype of the weights (float32 for
        integers and booleans).

    Raises:
        TypeError: G is no graph, `source` no integer.
        ValueError: a concrete source is out of range, a concrete weight is NaN or -inf (traced:
            `converged` is False), a concrete `temperature` is not positive.

    Differentiable in `A.data` and `temperature`, both modes and twice, by the implicit function
    theorem: nothing of the iterates is stored, and the solve converges as fast as the relaxation
    does (the matrix of edge probabilities is similar to `exp(-A / T)`). The gradient of `d[v]` by
    the length of an edge is the expected number of times that a walk to v, drawn with probability
    in proportion to `exp(-length / T)`, takes the edge. Unreached vertices have gradient 0.

    Source: Saerens et al., "Randomized shortest-path problems", Neural Computation 2009; Mensch,
    Blondel, "Differentiable dynamic programming", ICML 2018.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 2.0], shape=(3, 3))
    >>> [round(float(d), 3) for d in soft_sssp(A, 0, 0.1).distances]  # two walks of length 2
    [0.0, 1.0, 1.931]
    """
    graph = with_real_weights(as_graph(G, "soft_sssp"), "soft_sssp")
    check_weights(graph, negative=True, infinite=True)
    A = graph.out
    if is_concrete(A) and (np.asarray(A.data)[: int(np.asarray(A.indptr)[-1])] == -np.inf).any():
        raise ValueError("weights must be above -inf: a walk of length -inf outweighs all others.")
    if not jnp.issubdtype(A.dtype, jnp.floating) or is_narrow(A.dtype):
        A = A.astype(jnp.float32)
    source = check_source(source, graph.n)
    single_numbers(temperature=temperature, tol=0 if tol is None else tol)
    if is_concrete(temperature) and not 0 < np.asarray(temperature) < np.inf:
        raise ValueError(f"`temperature` must be positive and finite; got {temperature}.")
    if max_iterations is None:
        max_iterations = max(1000, graph.n)
    elif not is_concrete(max_iterations):
        raise TypeError("`max_iterations` must be a Python integer.")
    else:
        single_numbers(max_iterations=max_iterations)
        max_iterations = iteration_limit("max_iterations", max_iterations)
    T = jnp.asarray(temperature, A.dtype)
    tol = jnp.asarray(8 * float(jnp.finfo(A.dtype).eps) if tol is None else tol, A.dtype)

    def one(s):
        return op(A, s, T, tol, max_iterations=max_iterations)

    return over(source, one)(source)


class _Walks(NamedTuple):
    """One relaxation: its distances, and the probability and length behind each slot."""

    distances: Array
    probability: Array
    length: Array


def _relax(A: CSR, distances: Array, source: Array, T: Array) -> _Walks:
    """`softmin` over in-edges, each vertex shifted by its shortest candidate.

    A slot that is padding, or whose tail is unreached, has probability 0; the whole exponent is
    masked, so nothing of it reaches a derivative.
    """
    n = distances.shape[0]
    tail, head = A.rowcol()
    length = jnp.take(distances, tail, mode="clip") + A.data
    live = (tail < n) & jnp.isfinite(length)
    length = jnp.where(live, length, 0)
    at = jnp.where(live, head, n)
    at_source = jnp.arange(n, dtype=jnp.int32) == source
    top = jnp.asarray(jnp.inf, distances.dtype)
    least = jnp.where(at_source, 0, top).at[at].min(lax.stop_gradient(length), mode="drop")
    shift = jnp.where(jnp.isfinite(least), least, 0)
    excess = jnp.where(live, length - jnp.take(shift, head, mode="clip"), 0)
    weight = jnp.where(live, jnp.exp(-excess / T), 0)
    empty_walk = jnp.where(at_source, jnp.exp(jnp.where(at_source, shift, 0) / T), 0)
    total = empty_walk.at[at].add(weight, mode="drop")
    reached = total > 0
    total = jnp.where(reached, total, 1)
    result = jnp.where(reached, shift - T * jnp.log(total), top)
    return _Walks(result, weight / jnp.take(total, head, mode="clip"), length)


def _tangent(primals, tangents, result, *, max_iterations):
    """`d' = P d' + sum over in-edges of p A' + (d - E[length]) / T T'`, P the probabilities."""
    A, source, T, tol = primals
    A_dot, _, T_dot, _ = tangents
    d = result.distances
    n = d.shape[0]
    if is_zero(A_dot.data) and is_zero(T_dot):
        return SoftSSSP(jnp.zeros_like(d), None, None)  # pyright: ignore[reportArgumentType]
    tail, head = A.rowcol()
    valid = tail < n
    walks = _relax(A, d, source, T)

    def into(values):  # expectation over the last edge of a walk
        terms = jnp.where(valid, walks.probability * values, 0)
        return jnp.zeros(n, d.dtype).at[jnp.where(valid, head, n)].add(terms, mode="drop")

    reached = jnp.isfinite(d)
    force = jnp.zeros_like(d)
    if not is_zero(A_dot.data):
        force += into(jnp.where(valid, dense_tangent(A_dot.data), 0))
    if not is_zero(T_dot):
        spread = jnp.where(reached, jnp.where(reached, d, 0) - into(walks.length), 0)
        force += spread / T * dense_tangent(T_dot)

    into_heads = A.with_data(walks.probability).T

    def matvec(v):
        return v - spmv(plus_times, into_heads, v, None, flip=True)

    largest = functools.partial(jnp.max, initial=0)
    neumann = functools.partial(richardson, tolerance=tol, steps=max_iterations, norm=largest)
    distances = linear_solve(matvec, force, neumann, neumann)
    return SoftSSSP(distances, None, None)  # pyright: ignore[reportArgumentType]


def _types(A, source, T, tol, *, max_iterations):
    return SoftSSSP(typed(A.dtype, A.shape[0]), typed(jnp.int32), typed(jnp.bool_))


op = Operation("soft_sssp", _tangent, types=_types)


@op.register("log_sum_exp")
def _iterate(A, source, T, tol, *, max_iterations):
    """Relaxes every edge until nothing moves."""
    n = A.shape[0]

    def going(s):
        return batch_any(~s[2] & (s[1] < max_iterations))

    def step(s):
        d, iterations, converged = s
        new = _relax(A, d, source, T).distances
        both = jnp.isfinite(new) & jnp.isfinite(d)
        moved = jnp.abs(jnp.where(both, new, 0) - jnp.where(both, d, 0))
        still = jnp.where(both, moved <= tol * (1 + jnp.abs(d)), jnp.isinf(new) & jnp.isinf(d))
        done = converged | (iterations >= max_iterations)
        return (
            jnp.where(done, d, new),
            iterations + ~done,
            jnp.where(done, converged, jnp.all(still)),
        )

    at_source = jnp.arange(n, dtype=jnp.int32) == source
    start = jnp.where(at_source, 0, jnp.asarray(jnp.inf, A.dtype))
    first = (start, jnp.int32(0), jnp.bool_(False))
    d, iterations, converged = jax.lax.while_loop(going, step, first)
    stored = jnp.arange(A.nse, dtype=jnp.int32) < A.indptr[-1]
    least = jnp.any(stored & (A.data == -jnp.inf))  # a walk over it outweighs all others
    d = jnp.where(T > 0, d, jnp.nan)  # traced: a concrete one is refused
    return SoftSSSP(d, iterations, converged & ~least & (T > 0))
