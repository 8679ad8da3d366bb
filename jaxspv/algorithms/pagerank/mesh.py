"""PageRank on a sharded graph: the iteration of one device, on pieces of its vectors."""

from __future__ import annotations

import functools
from collections.abc import Callable

import jax.numpy as jnp
from jax import Array, lax

from pallas_kernels.pagerank.mesh import pagerank as kernel
from pallas_kernels.pagerank.one_gpu import Limits

from ..._core.pytree import is_concrete
from ..._core.reductions import is_narrow, sum_in_double
from ...algebra.monoids import plus
from ...sharding.exchange import Local, averaged, on_mesh
from ...sharding.graph import ShardedGraph
from ...sharding.operation import extreme_weights, mesh_op, one_kernel_refused
from ..common.status import finished
from ..common.weights import refused as refused_weights
from .api import PageRank, checked_numbers, checked_personalization
from .xla import implicit_tangent, pagerank_xla

Sum = Callable[[Array, Array, int], Array]


def _strength(local: Local, add: Sum = plus.segment_reduce) -> Array:
    """A piece of the row sums. add: sums by segments."""
    row, _ = local.block.rowcol()
    return local.rows.fold(add(local.block.data, row, local.part.block_shape[0]), plus)


def _flow(local: Local, share: Array, add: Sum = plus.segment_reduce) -> Array:
    """A piece of `share A`, from one of `share`. add: sums by segments."""
    row, col = local.block.rowcol()
    rows, cols = local.part.block_shape
    terms = local.block.data * jnp.take(local.rows.along(share), row, mode="clip")
    return local.cols.fold(add(terms, jnp.where(row < rows, col, cols), cols), plus)


def _tangent(primals, tangents, result):
    G, p, damping, tol, _, _ = primals

    def everywhere(piece_of):
        def on(data, *vectors):
            def body(local, *vectors):
                return local.everywhere(piece_of(local, *map(local.piece, vectors)))

            return on_mesh(body, G.with_data(data), *(averaged(G, v) for v in vectors))

        return on

    scores = implicit_tangent(
        result.scores,
        (G.data, jnp.full(G.n, 1 / G.n, G.dtype) if p is None else p, damping),
        (tangents[0].data, tangents[1], tangents[2]),
        strength=everywhere(_strength),
        flow=everywhere(_flow),
        tol=tol,
    )
    return PageRank(scores, None, None, None)  # pyright: ignore[reportArgumentType]


op = mesh_op("pagerank", _tangent)


def start_of(local: Local, p, dtype) -> Array:
    """A piece of the personalization: uniform if p is None."""
    if p is None:
        return jnp.where(local.order < local.part.n, jnp.asarray(1 / local.part.n, dtype), 0)
    return local.piece(p)


def iterate(local: Local, mine: Array, damping, tol, max_iterations, min_iterations):
    """A piece of the scores, the number of iterations, whether they converged.

    Sums in float64: a hub has many equal shares.
    """
    return pagerank_xla(
        functools.partial(_flow, local, add=sum_in_double),
        _strength(local, sum_in_double),
        mine,
        damping=damping,
        tol=tol,
        max_iterations=max_iterations,
        min_iterations=min_iterations,
        total=lambda x: local.total(jnp.sum(x)),
    )


@op.register("collectives")
def _pieces(G, p, damping, tol, max_iterations, min_iterations):
    """An iteration is one exchange of shares and two sums over the devices."""

    def body(local: Local, p, *knobs):
        scores, iterations, converged = iterate(local, start_of(local, p, G.dtype), *knobs)
        return local.everywhere(scores), iterations, converged, jnp.int32(0)

    return PageRank(*on_mesh(body, G, p, damping, tol, max_iterations, min_iterations))


def _any_refused(local: Local) -> Array:
    """Whether a weight on some device is refused."""
    bad = refused_weights(local.block.data, local.block.indptr)
    return local.total(bad.astype(jnp.int32)) > 0


def sharded_pagerank(
    G,
    damping=0.85,
    tol=1e-6,
    max_iterations=100,
    personalization=None,
    *,
    min_iterations=0,
    backend=None,
    method=None,
):
    if not jnp.issubdtype(G.dtype, jnp.floating) or is_narrow(G.dtype):
        G = G.astype(jnp.float32)
    if G.n == 0:
        raise ValueError("pagerank needs at least one vertex.")
    if is_concrete(G.data):
        least, largest = extreme_weights(G)
        if not (least >= 0 and largest < float("inf")):
            raise ValueError(
                f"weights must be finite and >= 0; they lie between {least} and {largest}."
            )
    p = checked_personalization(personalization, G.n, G.dtype)
    numbers = checked_numbers(damping, tol, max_iterations, min_iterations, G.dtype)
    if not is_concrete(G.data):
        bad = on_mesh(_any_refused, G.with_data(lax.stop_gradient(G.data)))
        numbers = jnp.where(bad, jnp.nan, numbers[0]), *numbers[1:]
    return finished(op(G, p, *numbers, backend=backend, method=method), "pagerank")


def _not_in_one_launch(G, *_) -> str | None:
    if not G.symmetric:
        return "it pulls along the rows: the graph must be symmetric, by `shard(..., symmetric=)`"
    if G.dtype != jnp.float32:
        return f"its kernel computes in float32, not {G.dtype}"
    return one_kernel_refused(G)


@op.register("one_launch", backend="pallas", refuse=_not_in_one_launch)
def one_launch(G: ShardedGraph, p, damping, tol, max_iterations, min_iterations):
    """Shares go into the other devices' memory inside the kernel; where the weights turn out not to
    be symmetric, as the other form."""

    def body(local: Local, p, *knobs):
        mine, block = start_of(local, p, G.dtype), local.block
        rows = block.indptr, block.indices, block.data, local.positions
        found = kernel(*rows, mine, Limits(*knobs), axes=local.part.axes)
        scores, iterations, change, status, refused = found

        def by_collectives():
            scores, *rest = iterate(local, mine, *knobs)
            return local.everywhere(scores), *rest, jnp.int32(0)

        def together():
            return scores, iterations, change <= knobs[1], status

        return lax.cond(refused > 0, by_collectives, together)

    return PageRank(*on_mesh(body, G, p, damping, tol, max_iterations, min_iterations))
