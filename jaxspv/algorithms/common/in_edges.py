"""The in-edge layout of kernels that pull: short rows in slices, long rows in segments."""

from __future__ import annotations

import numpy as np
from jax import Array

from pallas_kernels.layouts.adjacency import degree_sizes, is_low_degree
from pallas_kernels.layouts.ragged import module_of
from pallas_kernels.layouts.sliced_rows import prepare_pagerank

from ..._core.indices import bucketed
from ...graph import Graph


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
