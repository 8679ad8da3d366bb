"""The in-edge layout of kernels that pull: short rows in slices, long rows in segments."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array

from pallas_kernels.prepare.adjacency import degree_sizes, is_low_degree
from pallas_kernels.prepare.sliced_rows import Planned, pagerank_programs, plan_pagerank

from ..._core.eager.ahead import Program
from ..._core.indices import bucketed
from ...formats import CSR
from ...graph import Graph


def sliced_in_edges(graph: Graph, values: Array | None) -> dict[str, Array]:
    """The layout of a graph with its in-edges; values: of these, None where not wanted."""
    return plan_in_edges(graph, values)()


def plan_in_edges(graph: Graph, values: Array | None) -> Planned:
    """`plan_pagerank` of a graph with its in-edges; values: of these, None where not wanted.

    Meshes and roads in breadth-first order, others by degree.
    """
    assert graph.inn is not None
    sizes = np.asarray(degree_sizes(graph.inn.indptr))
    both = (sizes,) if graph.symmetric else (sizes, np.asarray(degree_sizes(graph.out.indptr)))
    low = all(is_low_degree(graph.n, *each[:2]) for each in both)
    return plan_pagerank(
        graph.inn.indptr,
        graph.inn.indices,
        values,
        out_degree=graph.out_degrees,
        order="breadth_first" if low else "degree",
        rounded=bucketed,
        sizes=sizes,
    )


def sliced_programs(A: CSR) -> list[Program]:
    """What `sliced_in_edges` runs for a symmetric graph, as far as its shapes tell."""
    return [Program(*p) for p in pagerank_programs(A.indptr, A.indices, jnp.diff(A.indptr))]
