"""The edges of a graph: as arrays, as kernels pull along them; whether both directions exist."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.layouts.adjacency import degree_sizes, is_low_degree
from pallas_kernels.layouts.ragged import module_of
from pallas_kernels.layouts.sliced_rows import prepare_pagerank

from ..._core.eager.arrays import by_numpy, known_while_tracing
from ..._core.eager.kept import kept as kept_for
from ..._core.indices import bucketed
from ..._core.operation import Operation, typed
from ..._core.pytree import is_concrete
from ...formats import CSR
from ...formats.csr import PATTERN, ROUNDED, canonical, known_symmetric
from ...graph import Graph, as_graph
from ...native import bind
from ...ops.write_rule.slots import chosen_slots, search


def no_edges(graph: Graph, *_: Any, **__: Any) -> str | None:
    """Why a kernel is not launched for a graph without entries; None where it has some."""
    return "there are no edges" if graph.n == 0 or graph.nse == 0 else None


def beyond_places(graph: Any) -> str | None:
    """Why the queues of a search in one launch, two of ranges of edges, of four words each, are too
    large; None where int32 counts their words. A range may be cut at every 32nd edge."""
    if graph.n + graph.nse // 32 < 1 << 28:
        return None
    return f"{graph.n} vertices and {graph.nse} edges exceed its int32 places"


def unprepared(purpose: str, gain: str) -> Any:
    """Advice of an operation on graphs that `prepare` has not seen."""
    line = f"`prepare(A, for_={purpose!r})` would {gain}."
    return lambda graph, *_, **__: [] if purpose in graph.layouts else [line]


def endpoints_of(graph: Graph, *, loops: bool = True) -> tuple[Array, Array]:
    """(nse,) tails and heads by slot; both n for padding, and for self loops unless `loops`."""
    n = graph.n
    tail, head = graph.out.rowcol()
    valid = tail < n
    if not loops:
        valid &= tail != head
    return jnp.where(valid, tail, n), jnp.where(valid, head, n)


def by_vertex(kind: Any, dtype: Any, *numbers: Any) -> Any:
    """The `types` of an operation whose result has a value a vertex, then numbers, of dtypes."""
    return lambda graph, *_, **__: kind(typed(dtype, graph.n), *map(typed, numbers))


def vertices_of(graph: Graph) -> Any:
    """The number of vertices that are no ghosts of `pad`."""
    return graph.n if graph.num_vertices is None else graph.num_vertices


def without_ghosts(graph: Graph, x: Array, fill: Any) -> Array:
    """x (n,), with `fill` for ghosts of `pad`."""
    return x if graph.exists is None else jnp.where(graph.exists, x, fill)


def without_values(A: CSR, dtype: Any) -> CSR:
    """A with ones for values, for products that do not read them, of a dtype that kernels take."""
    return A.with_data(jnp.ones(A.nse, dtype))


# (n,) int32: out-edges to other vertices
degrees_without_loops = Operation(
    "degrees without loops", types=lambda graph: typed(jnp.int32, graph.n), internal=True
)


@degrees_without_loops.register("native", backend="cpu", refuse=bind.refused)
def _degrees_in_cpp(graph: Graph) -> Array:
    A = graph.out
    return bind.call("degrees_without_loops", typed(jnp.int32, graph.n), A.indptr, A.indices)


@degrees_without_loops.register("scatter")
def _scattered_degrees(graph: Graph) -> Array:
    tail, _ = endpoints_of(graph, loops=False)
    return jnp.zeros(graph.n, jnp.int32).at[tail].add(1, mode="drop")


def kept(A: CSR, keep: Array) -> CSR:
    """The entries of A where `keep` (nse,) holds, in the same capacity."""
    slots, _ = chosen_slots(keep, capacity=A.nse, dtype=A.indptr.dtype)
    indices = A.indices.at[slots].get(mode="fill", fill_value=A.shape[1])
    data = A.data.at[slots].get(mode="fill", fill_value=0)
    indptr = search((slots,), (A.indptr,))
    return dataclasses.replace(A, data=data, indices=indices, indptr=indptr)


def sliced_in_edges(graph: Graph, values: Array | None) -> dict[str, Array]:
    """`prepare_pagerank` of a graph with its in-edges; values: of these, None where not wanted.

    Meshes and roads in breadth-first order, others by degree.
    """
    assert graph.inn is not None
    sizes = np.asarray(degree_sizes(graph.inn.indptr))
    both = (sizes,) if graph.symmetric else (sizes, np.asarray(degree_sizes(graph.out.indptr)))
    low = all(is_low_degree(graph.n, *each[:2]) for each in both)
    return prepare_pagerank(
        graph.inn.indptr,
        graph.inn.indices,
        values,
        out_degree=module_of(graph.out.indptr).diff(graph.out.indptr),
        order="breadth_first" if low else "degree",
        rounded=bucketed,
        sizes=sizes,
    )


# ---- Undirected graphs: patterns that equal their transpose ----


def undirected(G: Any, algorithm: str, *, values: bool = False) -> Graph:
    """`G` as a Graph; its pattern is symmetric, or traced and so taken at its word.

    Args:
        values: whether its values must be symmetric too, but for rounding.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern or values, where they are concrete, are not
            symmetric.
    """
    graph = as_graph(G, algorithm, ())
    if is_undirected(graph, values=values) is not False:
        return graph
    if not values or is_undirected(graph) is False:
        raise ValueError(
            f"`G` must have a symmetric pattern: {algorithm} is of undirected graphs. "
            'Join A and its transpose first: `jsp.ewise_add(A, A.T, "max")`.'
        )
    raise ValueError(
        f"weights must be symmetric: {algorithm} is of undirected graphs, and some edge weighs "
        "more in one direction. `A + A.T` is symmetric."
    )


def is_undirected(graph: Graph, *, values: bool = False) -> bool | None:
    """Whether the pattern equals its transpose; None: it is traced and not declared.

    Args:
        values: whether the values are compared too, but for rounding.
    """
    if graph.symmetric:
        return True
    A = graph.out
    if not is_concrete(A.indices, A.indptr, A.data if values else ()):
        return None

    def compare():
        B = A
        if not values and (by_numpy(A.indices) or not is_concrete(A.data)):
            B = dataclasses.replace(A, data=np.zeros(A.nse, bool), overflow=np.zeros((), bool))
        with known_while_tracing():
            B = B if B.sorted and B.unique else canonical(B)
            return bool(known_symmetric(B, ROUNDED if values else PATTERN))

    arrays = (A.indptr, A.indices, A.data) if values else (A.indptr, A.indices)
    return kept_for(arrays, ("symmetric", values), compare)
