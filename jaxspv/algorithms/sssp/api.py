"""Single-source shortest paths over min-plus: Bellman-Ford on the frontier, delta-stepping."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import single_numbers
from ..._core.forms import overloadable
from ..._core.loops import one_by_one, vmapped
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import is_concrete, result_tuple
from ..._core.reductions import is_narrow
from ...graph import Graph, as_graph
from ...native import bind
from ...shapes import Bool, Count, Int, Matrix, Num, Real, Sources
from ...until import Until, check_until, iteration_limit
from ..common.edges import beyond_places, unprepared
from ..common.sources import check_source, over, path_to
from ..common.status import finished, without_negative_cycle
from ..common.weights import with_real_weights
from .layout import BucketWidths, choose_delta, traced_delta, traced_kernel_delta, with_lengths
from .tree import path_tangent, refuse_tree, shortest_path_tree
from .xla import OutEdges, infinity, overflow, relax, search

UNTIL = ("reached", "unchanged", "max_iterations")


@result_tuple
class SSSP(NamedTuple):
    """The result of `sssp`; a leading axis for several sources.

    Attributes:
        distances: (n,), length of a shortest path; unreached: inf, or the largest integer.
        parents: (n,) int32, the vertex before on a shortest path; always a tree: the source is its
            own parent; -1 where unreached. None if not asked for.
        steps: int32, relaxation steps.
        converged: bool; False: a negative cycle is reachable (an eager call raises then), or
            `max_steps` were too few.
        overflow: bool; a sum of integers was clamped, and nothing shorter leads there: also with a
            weight that is the largest integer, which counts as infinity.
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    distances: Num[Array, "*sources n"]
    parents: Int[Array, "*sources n"] | None
    steps: Int[Array, "*sources"]
    converged: Bool[Array, "*sources"]
    overflow: Bool[Array, "*sources"]
    status: Int[Array, "*sources"]

    def path_to(self, target: Count) -> Int[np.ndarray, " k"]:
        """Vertices of the path from the source to `target`, both included; empty: unreached."""
        return path_to(self.parents, target)


@overloadable
def sssp(
    G: Matrix,
    source: Sources,
    *,
    until: Until | None = None,
    parents: bool = True,
    deterministic: bool = False,
    delta: Real | None = None,
    max_steps: int | None = None,
    backend: Backend | None = None,
    method: str | None = None,
) -> SSSP:
    """Lengths of the shortest paths along the edges i -> j of length A[i, j].

    `d[source] = 0`, `d[v] = min over edges u -> v of d[u] + A[u, v]`. A stored zero is an edge.

    Args:
        G: a `Graph` from `prepare(A, for_="sssp")`, or a square sparse matrix.
        source: vertex, or an array of vertices (a leading axis in the result).
        until: `reached(node)`: every distance up to that of the node is settled, the rest is
            unreached (nothing is where a weight is negative); `max_iterations(k)`: k relaxation
            steps, each of the vertices within a bucket of the nearest, or of all in Bellman-Ford;
            `unchanged()`. None: to the end.
        parents: whether to compute them.
        deterministic: of the tight predecessors take the one of fewest hops, then of smallest id,
            on every backend and by every method.
        delta: bucket width of delta-stepping, in units of the weights; None: from the weights
            (one pass over them in every call unless the graph was prepared). The method "native",
            which a CPU takes, chooses widths of its own.
        max_steps: bound on the steps; None: to the end.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: "delta_stepping" (which turns to Bellman-Ford where a weight is negative),
            "bellman_ford", "native", "persistent", "relaxation" (all edges in every step, all
            sources of a vmap in one product), or None for the fastest that accepts the call.

    Returns:
        `SSSP(distances, parents, steps, converged, overflow, status)`. The dtype of the distances
        is that of the weights (booleans count as int32 ones); those of float16 and bfloat16 are
        found in float32 and rounded once, `delta` is in float32 too. In float32 they are the
        fixpoint of the recurrence in float32 arithmetic: bit-equal to Dijkstra's algorithm in it.

    Raises:
        TypeError: G is no graph, `source` no integer.
        ValueError: a concrete source is out of range (under jit: everything unreached); a weight is
            NaN (under jit: no path takes it), or negative with delta-stepping; `delta` is not
            positive.
        NegativeCycleError: a ValueError: an eager call without `max_steps` found a negative cycle.
            On a GPU, where calls are asynchronous, a later call, `check` or the end of the process
            raises it; under jit `converged` is False.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in `A.data`, both modes and twice: along a tree of shortest paths. At ties one
    path carries all of it: every vertex takes its strictly nearer tight predecessor of smallest id;
    where edges of length 0 leave none, one as near as itself, the fewest such edges from those.

    Source: Meyer, Sanders, "Delta-stepping: a parallelizable shortest path algorithm", J.
    Algorithms 2003; Davidson et al., "Work-efficient parallel GPU methods for single source
    shortest paths", IPDPS 2014.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 5.0], shape=(3, 3))
    >>> sssp(A, 0).distances.tolist()
    [0.0, 1.0, 2.0]
    """
    given = with_real_weights(as_graph(G, "sssp", ("sssp",)), "sssp")
    graph = with_lengths(given)
    source = check_source(source, graph.n)
    until = check_until(until, UNTIL, "sssp", graph.n)
    widths, negative = choose_delta(graph, delta, method)
    if max_steps is not None:
        if not is_concrete(max_steps):
            raise TypeError("`max_steps` must be a Python integer; `max_iterations` may be traced.")
        single_numbers(max_steps=max_steps)
        max_steps = iteration_limit("max_steps", max_steps)

    def one(s):
        return op(
            graph,
            s,
            until,
            widths,
            parents=parents,
            deterministic=deterministic,
            max_steps=max_steps,
            backend=backend,
            method=method,
        )

    found = over(source, one)(source)
    if is_narrow(given.dtype):
        found = found._replace(distances=found.distances.astype(given.dtype))
    found = finished(found, "sssp")
    return without_negative_cycle(found, "sssp") if negative and max_steps is None else found


def _tangent(primals, tangents, result, **static):
    del static
    graph, source, _, _ = primals
    distances = path_tangent(graph.out, tangents[0].out, source, result.distances)
    return SSSP(distances, *(jax.tree.map(lambda _: None, v) for v in result[1:]))


def _types(graph, source, until, widths, *, parents, **_):
    tree = typed(jnp.int32, graph.n) if parents else None
    flag, number = typed(jnp.bool_), typed(jnp.int32)
    return SSSP(typed(graph.dtype, graph.n), tree, number, flag, flag, number)


_advice = unprepared("sssp", "choose the bucket width once")
op = Operation("sssp", _tangent, types=_types, advice=_advice)


def _not_persistent(graph, source, until, delta, *, max_steps, **_):
    """Why the kernel cannot run."""
    if max_steps is not None or (until is not None and until.bounds()):
        return "the kernel counts no steps: no `max_steps`, no `max_iterations`"
    if graph.dtype not in (np.float32, np.int32):
        return f"the kernel takes float32 or int32 weights, not {graph.dtype}"
    if graph.n == 0 or graph.nse == 0:
        return "there is nothing to traverse"
    if reason := beyond_places(graph):
        return reason
    if delta is not None and delta.kernel is None:
        return "a weight is negative"
    return None


def _relaxed_together(axis_size, in_batched, *operands, **static):
    """vmap over sources: one step relaxes all; over anything else one search after the other."""
    sources_alone = not any(jax.tree.leaves((in_batched[0], in_batched[3])))
    if sources_alone and operands[2] is None:
        return vmapped(_relaxation, axis_size, in_batched, *operands, **static)
    return one_by_one(op, axis_size, in_batched, *operands, **static)


@op.register("persistent", backend="pallas", refuse=_not_persistent, batched="map")
def _persistent(graph, source, until, delta, *, parents, deterministic, max_steps):
    """Near and far queues, the whole search in one launch; non-negative weights.

    Where weights and `delta` are traced, a look at the weights says whether Bellman-Ford runs
    instead.
    """
    how = {"parents": parents, "deterministic": deterministic}
    if delta is not None:
        return _in_one_launch(graph, source, until, delta.kernel, _negative(graph, delta), **how)
    width = traced_kernel_delta(graph.out.indptr, graph.data)
    return lax.cond(
        width < infinity(width.dtype),
        lambda: _in_one_launch(graph, source, until, width, jnp.bool_(False), **how),
        lambda: _run(graph, source, until, None, max_steps=max_steps, **how),
    )


def _negative(graph: Graph, widths: BucketWidths | None) -> Any:
    """Whether a weight is negative, by a look at them where it is not known."""
    if widths is not None and widths.negative is not None:
        return widths.negative
    valid = jnp.arange(graph.nse) < graph.out.count
    return jnp.any(valid & (graph.data < 0))


def _in_one_launch(graph, source, until, width, negative, *, parents, deterministic):
    from pallas_kernels.sssp.api import sssp as sssp_kernel
    from pallas_kernels.sssp.problem import Rule

    out = graph.out
    layout = graph.layouts.get("sssp", {})
    rule, targets = Rule(symmetric=graph.symmetric, parents=parents and not deterministic), None
    if until is not None:
        targets = jnp.asarray(until.targets(), jnp.int32).reshape(-1)
        rule = rule._replace(limit=until.limit_of)
    distances, tree, steps, status = sssp_kernel(
        (out.indptr, out.indices, out.data),
        source,
        width,
        prepared=layout.get("pallas"),
        targets=targets,
        rule=rule,
    )
    found = distances, tree
    distances, tree = _asked(graph, source, until, negative, found, parents, deterministic)
    return SSSP(distances, tree, steps, ~negative, overflow(OutEdges.of(out), distances), status)


def _asked(graph, source, until, negative, found, parents: bool, deterministic: bool):
    """Distances and tree as asked for: vertices beyond the limit of `until` are unreached. If a
    weight is negative, paths to the target may lead beyond it, and all stay as they are."""
    distances, tree = found
    if until is not None:
        top = infinity(distances.dtype)
        limit = jnp.where(negative, top, until.limit(distances, top))
        distances = jnp.where(distances <= limit, distances, top)
        tree = None if tree is None else jnp.where(distances == top, -1, tree)
    if parents and deterministic:
        tree = shortest_path_tree(OutEdges.of(graph.out), distances, source)
    return distances, tree if parents else None


def _not_native(graph, source, until, delta, *, max_steps, **_):
    if max_steps is not None or (until is not None and until.bounds()):
        return "it counts no steps: no `max_steps`, no `max_iterations`"
    return refuse_tree(graph.out, graph.data, source)


@op.register("native", backend="cpu", refuse=_not_native, batched="vmap")
def _native(graph, source, until, delta, *, parents, deterministic, max_steps):
    """A radix heap or delta-stepping by the weights; Bellman-Ford where one is negative. In C++.

    With `until` it may end before it has settled the vertices beyond the limit of `until`.
    """
    if graph.n == 0 or graph.nse == 0:
        how = {"parents": parents, "deterministic": deterministic, "max_steps": max_steps}
        return _run(graph, source, until, None, **how)
    targets: Any = np.zeros(0, np.int32)  # to the end
    if until is not None and all(c.kind == "reached" for c in until.conditions()):
        targets = jnp.stack([jnp.asarray(v, jnp.int32) for v in until.targets()])
    out, results = graph.out, _types(graph, source, until, None, parents=True)[:5]
    operands = out.indptr, out.indices, out.data, jnp.asarray(source, jnp.int32), targets
    *found, steps, converged, wrapped = bind.call("sssp", results, *operands)
    negative = None if until is None else _negative(graph, delta)
    distances, tree = _asked(graph, source, until, negative, found, parents, deterministic)
    return SSSP(distances, tree, steps, converged, wrapped, jnp.int32(0))


def _has_delta(graph, source, until, delta, **_):
    return "a bucket width was given" if delta is not None else None


@op.register("delta_stepping", batched=_relaxed_together)
def _delta_stepping(graph, source, until, delta, **options):
    """Buckets of a width; one bucket, which is Bellman-Ford, where a weight is negative."""
    width = traced_delta(graph.out.indptr, graph.data) if delta is None else delta.xla
    return _run(graph, source, until, width, delta, **options)


@op.register("bellman_ford", refuse=_has_delta, batched="map")
def _bellman_ford(graph, source, until, delta, **options):
    """Rounds over the vertices whose length fell."""
    del delta
    return _run(graph, source, until, None, **options)


@op.register(
    "relaxation",
    refuse=lambda graph, source, until, delta, **_: (
        "it relaxes to the end: no `until`" if until is not None else None
    ),
)
def _relaxation(graph, source, until, delta, *, parents, deterministic, max_steps):
    """All edges in every step: `d = min(d, d (min.+) A)`; under vmap a product with all d."""
    del until, delta, deterministic
    distances, steps, still, wrapped = relax(graph, source, max_steps)
    tree = shortest_path_tree(OutEdges.of(graph.out), distances, source) if parents else None
    return SSSP(distances, tree, steps, still, wrapped, jnp.int32(0))


def _run(graph, source, until, delta, widths=None, *, parents, deterministic, max_steps):
    def stop(step, distances, settled_threshold, frontier_size):
        reached = [distances[jnp.asarray(node)] < settled_threshold for node in until.targets()]
        return until.holds(iteration=step, reached=reached, unchanged=frontier_size == 0)

    distances, tree, steps, converged, wrapped = search(
        OutEdges.of(graph.out),
        source,
        delta=delta,
        stop=None if until is None else stop,
        max_steps=max_steps,
    )
    negative = None if until is None else _negative(graph, widths)
    found = distances, tree
    distances, tree = _asked(graph, source, until, negative, found, parents, deterministic)
    return SSSP(distances, tree, steps, converged, wrapped, jnp.int32(0))
