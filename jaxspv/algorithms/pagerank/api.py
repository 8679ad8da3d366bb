"""PageRank: the stationary distribution of a random surfer, by power iteration."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.eager.arrays import array_of, is_eager, on_gpu, scalar, single_numbers
from ..._core.forms import overloadable
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ..._core.reductions import is_narrow, sum_in_double
from ...algebra.semirings import Semiring, plus_second, plus_times
from ...formats import SparseMatrix
from ...graph import Graph, as_graph
from ...native import bind
from ...ops.products.mxm.api import mxm
from ...ops.products.mxv.api import mxv
from ...ops.products.spmv.api import op as spmv
from ...shapes import Bool, Count, Float, Int, Matrix, Real, Vector
from ...until import iteration_limit
from ..common.edges import unprepared
from ..common.sources import elsewhere
from ..common.status import finished
from ..common.weights import over_largest, refused, with_real_weights
from .layout import check_strength, strength_of
from .xla import implicit_tangent, pagerank_xla


@result_tuple
class PageRank(NamedTuple):
    """The result of `pagerank`.

    Attributes:
        scores: (n,), non-negative, of sum 1.
        iterations: int32, steps taken.
        converged: bool, whether the last L1 change was at most `tol`.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    scores: Float[Array, " n"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]
    status: Int[Array, ""]


@elsewhere(alpha="damping", max_iter="max_iterations")
@overloadable
def pagerank(
    G: Matrix,
    damping: Real = 0.85,
    tol: Real = 1e-6,
    max_iterations: Count = 100,
    personalization: Vector | None = None,
    *,
    min_iterations: Count = 0,
    backend: Backend | None = None,
    method: str | None = None,
) -> PageRank:
    """Scores x with `x = d (x D^-1 A + dangling(x) p) + (1 - d) p`, by iterating the right side.

    D is the out-strength (row sums of A); a vertex of strength 0 dangles: its mass goes to p.

    Args:
        G: a `Graph` from `prepare(A, for_="pagerank")`, or a square sparse matrix with weights
            A[i, j] >= 0 of the edge i -> j.
        damping: d, in [0, 1].
        tol: stop when the L1 change of a step is at most this. (NetworkX compares with n tol.)
        max_iterations: bound on the steps.
        personalization: (n,) non-negative weights p, not all zero, scaled to sum 1; uniform if
            None.
        min_iterations: steps that run in any case.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: name of an implementation, see `explain`.

    Returns:
        `PageRank(scores, iterations, converged, status)`, in the dtype of the weights (float32 for
        integers, booleans and narrower floats).

    Raises:
        TypeError: G is no graph, `personalization` is no array.
        ValueError: a concrete weight is negative, infinite or NaN, or the sum of a row is above the
            square root of the largest float; `damping` is out of [0, 1], `personalization` has a
            wrong shape or is negative, infinite or zero. Traced: scores are NaN and have not
            converged.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in `A.data`, `damping` and `personalization`, both modes, by the implicit
    function theorem: nothing of the iterates is stored.

    Source: Page, Brin, Motwani, Winograd, "The PageRank citation ranking", 1999.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 2], [1, 2, 0], shape=(3, 3))
    >>> [round(float(s), 4) for s in pagerank(A).scores]
    [0.3333, 0.3333, 0.3333]
    """
    graph = with_real_weights(as_graph(G, "pagerank", ("pagerank",)), "pagerank")
    if not jnp.issubdtype(graph.dtype, jnp.floating) or is_narrow(graph.dtype):
        graph = graph.astype(jnp.float32)
    if graph.n == 0:
        raise ValueError("pagerank needs at least one vertex.")
    links, weights = graph.layouts.get("pagerank"), graph.data
    seen = links is not None and (links.ones or links.kernel is not None)  # by `prepare`
    known = is_concrete(weights, graph.out.indptr)
    if not seen and known and (links is None or not on_gpu(weights)):
        check_strength(graph)  # of a prepared graph it would wait for a GPU
        seen = True
    exists = None if personalization is None else graph.exists  # a program for each size
    p = checked_personalization(personalization, graph.n, graph.dtype, exists)
    operands = checked_numbers(damping, tol, max_iterations, min_iterations, graph.dtype)
    found = finished(op(graph, p, *operands, backend=backend, method=method), "pagerank")
    return found if seen else _checked_scores(found, weights, graph.out.indptr)


@jax.jit
def _checked_scores(found: PageRank, weights: Array, indptr: Array) -> PageRank:
    """NaN, and not converged, if a weight, not looked at before, is refused."""
    bad = refused(weights, indptr)
    scores = jnp.where(bad, jnp.nan, found.scores)
    return found._replace(scores=scores, converged=found.converged & ~bad)


def checked_numbers(
    damping: Real, tol: Real, max_iterations: Count, min_iterations: Count, dtype: Any
) -> tuple[Any, ...]:
    """The four as arrays."""
    numbers: Any = (damping, tol, max_iterations, min_iterations, np.dtype(dtype))
    if all(type(v) in (int, float) for v in numbers[:4]) and is_eager():
        usual: Any = jax.config.jax_default_device  # pyright: ignore[reportAttributeAccessIssue]
        return _same_numbers(*numbers, usual)
    return _numbers(*numbers)


def _numbers(damping, tol, max_iterations, min_iterations, dtype) -> tuple[Any, ...]:
    single_numbers(
        damping=damping, tol=tol, max_iterations=max_iterations, min_iterations=min_iterations
    )
    if is_concrete(damping) and not 0 <= np.asarray(damping) <= 1:
        raise ValueError(f"`damping` must lie in [0, 1]; got {damping}.")
    d = scalar(damping, dtype)
    return (
        d if is_concrete(damping) else jnp.where((d >= 0) & (d <= 1), d, jnp.nan),
        scalar(tol, dtype),
        scalar(iteration_limit("max_iterations", max_iterations), jnp.int32),
        scalar(iteration_limit("min_iterations", min_iterations), jnp.int32),
    )


@functools.lru_cache(maxsize=64, typed=True)
def _same_numbers(damping, tol, max_iterations, min_iterations, dtype, usual) -> tuple[Any, ...]:
    del usual  # where `scalar` puts them
    return _numbers(damping, tol, max_iterations, min_iterations, dtype)


def checked_personalization(
    personalization: Any, n: int, dtype: Any, exists: Array | None = None
) -> Array | None:
    """Checked and scaled; None stands for the uniform one, which the programs make themselves."""
    if personalization is None:
        return None
    if isinstance(personalization, dict):
        raise TypeError(f"`personalization` must be an array of shape ({n},); got a dict.")
    p = array_of("personalization", personalization).astype(dtype)
    if p.shape != (n,):
        raise ValueError(f"`personalization` must have shape ({n},); got {p.shape}.")
    if is_concrete(p):
        host = np.asarray(p)  # under jit a captured array would be traced, and could not be asked
        if not ((host >= 0) & (host < np.inf)).all():
            raise ValueError("`personalization` must be finite and >= 0.")
        if not (host >= np.finfo(host.dtype).tiny).any():  # subnormals are zeros to XLA
            raise ValueError("`personalization` must not be zero everywhere.")
    else:
        p = jnp.where(jnp.all((p >= 0) & (p < np.inf)), p, jnp.nan)
    if exists is not None:
        p = jnp.where(exists, p, 0)
    p = over_largest(p)
    return p / jnp.sum(p)


def _distribution(p: Array | None, graph: Graph) -> Array:
    """p; without one 1 / count for each of the first `count` of n vertices, ghosts left out."""
    if p is not None:
        return p
    count, dtype = graph.num_vertices, graph.dtype
    if count is None:
        return jnp.full(graph.n, 1 / graph.n, dtype)
    is_valid = jnp.arange(graph.n, dtype=jnp.int32) < count
    return jnp.where(is_valid, 1 / count.astype(dtype), jnp.zeros((), dtype))


# ---- The derivative and the implementations ----


def _tangent(primals, tangents, result):
    graph, p, damping, tol, _, _ = primals
    graph_dot, p_dot, damping_dot = tangents[:3]
    ones = jnp.ones(graph.n, graph.dtype)

    def strength(data):
        return spmv(plus_times, graph.out.with_data(data), ones, None, flip=False)

    def flow(data, share):
        return spmv(plus_times, graph.out.with_data(data).T, share, None, flip=True)

    scores = implicit_tangent(
        result.scores,
        (graph.data, _distribution(p, graph), damping),
        (graph_dot.out.data, p_dot, damping_dot),
        strength=strength,
        flow=flow,
        tol=tol,
    )
    return PageRank(scores, None, None, None)  # pyright: ignore[reportArgumentType]


def _types(graph, *_):
    scores = typed(graph.dtype, graph.n)
    return PageRank(scores, typed(jnp.int32), typed(jnp.bool_), typed(jnp.int32))


_advice = unprepared("pagerank", "find the in-edges, to pull from")
op = Operation("pagerank", _tangent, types=_types, advice=_advice)


def _not_persistent(graph, *_) -> str | None:
    """Why the kernel cannot run."""
    if graph.dtype != np.float32:
        return f"the kernel takes float32 weights, not {graph.dtype}"
    links = graph.layouts.get("pagerank")
    if links is None or links.kernel is None:
        return "its edges are not arranged, or have new values: `prepare(A, for_='pagerank')`"
    return None


@op.register("persistent", backend="pallas", refuse=_not_persistent)
def _persistent(graph, p, damping, tol, max_iterations, min_iterations):
    """All iterations in one launch, a grid barrier after each."""
    from pallas_kernels.pagerank.one_gpu import Limits
    from pallas_kernels.pagerank.one_gpu import pagerank as kernel

    links = graph.layouts["pagerank"]
    p = _distribution(p, graph)
    limits = Limits(damping, tol, max_iterations, min_iterations)
    found = kernel(links.strength, p, limits, prepared=links.kernel)
    scores, iterations, change, status = found
    return PageRank(scores, iterations, change <= tol, status)


def _not_native(graph, *_) -> str | None:
    if graph.out.index_dtype != jnp.int32 or graph.dtype not in (np.float32, np.float64):
        return "it takes indices of 32 bits and weights in float32 or float64"
    return bind.refused()


@op.register("native", backend="cpu", refuse=_not_native, batched="vmap")
def _native(graph, p, damping, tol, max_iterations, min_iterations):
    """Each vertex gathers from its in-edges, in C++."""
    out, results = graph.out, (typed(graph.dtype, graph.n), typed(jnp.int32), typed(jnp.bool_))
    scores, iterations, converged = bind.call(
        "pagerank",
        results,
        *(out.indptr, out.indices, jnp.broadcast_to(out.data, out.indices.shape)),
        _distribution(p, graph),
        *(damping, tol, max_iterations, min_iterations),
        symmetric=graph.symmetric,
    )
    return PageRank(scores, iterations, converged, jnp.int32(0))


def _no_links(graph, *_) -> str | None:
    if "pagerank" not in graph.layouts:
        return "the in-edges are not known: `prepare(A, for_='pagerank')`"
    return None


@op.register("pull", refuse=_no_links)
def _pull(graph, p, damping, tol, max_iterations, min_iterations):
    """Each vertex gathers from its in-edges, by a product."""
    links = graph.layouts["pagerank"]
    inn = graph.out.T if graph.inn is None else graph.inn
    pull = functools.partial(_pulled, inn, plus_second if links.ones else plus_times)
    return _run(pull, graph, links.strength, p, damping, tol, max_iterations, min_iterations)


def _pulled(inn: SparseMatrix, semiring: Semiring, scaled: Array) -> Array:
    inn = inn.with_data(inn.data.astype(scaled.dtype))
    return (mxv if scaled.ndim == 1 else mxm)(inn, scaled, semiring)


@op.register("push")
def _push(graph, p, damping, tol, max_iterations, min_iterations):
    """Every edge adds to its target, in float64: a hub has many equal shares; needs no in-edges."""
    row, _ = graph.out.rowcol()

    def pull(scaled):
        # Padding adds 0 to whatever it points to, without arrays that leave it out.
        terms = jnp.where(row < graph.n, graph.data * jnp.take(scaled, row, mode="clip"), 0)
        return sum_in_double(terms, graph.out.indices, graph.n)

    return _run(pull, graph, strength_of(graph), p, damping, tol, max_iterations, min_iterations)


def _run(pull, graph, strength, p, damping, tol, max_iterations, min_iterations):
    p = _distribution(p, graph)
    scores, iterations, converged = pagerank_xla(
        pull,
        strength.astype(p.dtype),
        p,
        damping=damping,
        tol=tol,
        max_iterations=max_iterations,
        min_iterations=min_iterations,
    )
    return PageRank(scores, iterations, converged, jnp.int32(0))
