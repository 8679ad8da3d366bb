"""What public names are for: the headings of the reference's tables, in their order."""

from __future__ import annotations

import inspect
import operator
from collections.abc import Iterable
from typing import Any

RESULTS, MORE = "Results", "More"
TASKS = {
    "Matrices": "COO CSR CSC ELL SELL Tiled BitTiled",
    "Vectors": "SparseVector TiledVector BitVector vector_from_dense vector_from_entries",
    "Choosing a format": "choose_format FormatChoice",
    "From edges and arrays": "from_edges from_dense pad unpad Labels",
    "Files and data sets": "read_mtx write_mtx read_edgelist write_edgelist "
    "load_npz save_npz bundled datasets",
    "Other libraries": "from_scipy from_bcoo from_bcsr from_networkx to_networkx from_igraph "
    "to_igraph from_table to_table from_edge_index to_edge_index from_graphs_tuple "
    "to_graphs_tuple GraphsTuple",
    "Generators": "rmat grid2d delaunay erdos_renyi",
    "Built-in algebra": "operators monoids semirings",
    "Algebra of your own": "UnaryOp BinaryOp IndexUnaryOp monoid Monoid semiring Semiring",
    "Masks": "Mask structure",
    "One device": "Graph prepare",
    "Several devices": "shard shard_edges shard_file shard_rmat ShardedGraph",
    "Products": "mxm mxv vxm sddmm kron",
    "Entry by entry": "apply select ewise_add ewise_mult ewise_union where",
    "Reduce, extract, assign": "reduce extract assign subassign transpose diag",
    "Single entries and sizes": "build dup resize get_element has_element set_element "
    "remove_element",
    "Graph networks": "attention softmax aggregate normalize add_self_loops block_diag unbatch",
    "Searches and shortest paths": "bfs sssp soft_sssp astar astar_path has_path k_shortest_paths "
    "all_pairs_shortest_path_length eccentricity diameter NegativeCycleError TileRule",
    "Ranking and centrality": "pagerank betweenness_centrality closeness_centrality "
    "eigenvector_centrality katz_centrality hits triangle_centrality",
    "Components, cores, orders, trees": "connected_components strongly_connected_components "
    "core_number k_core bipartition is_bipartite is_directed_acyclic_graph topological_sort "
    "transitive_reduction reverse_cuthill_mckee minimum_spanning_forest spanning_tree "
    "degree_histogram",
    "Triangles and similarity": "triangle_count clustering average_clustering square_clustering "
    "k_truss similarity vertex_similarity",
    "Communities, independent sets, matchings": "louvain label_propagation modularity "
    "maximal_independent_set greedy_color maximum_bipartite_matching",
    "Random neighbours and walks": "sample_neighbors random_walk",
    "Loops of your own": "fixpoint",
    "When to stop": "Until reached unchanged residual max_iterations",
    "Gradients": "grad value_and_grad",
    "Plans and checks": "explain check",
    "Compilation and export": "enable_compilation_cache gpu_compiler_options keep_prepared "
    "set_num_threads export",
}


def grouped(package: Any, names: Iterable[str]) -> dict[str, list[str]]:
    """Heading -> names in the order of TASKS; then the named tuples of results, then the rest."""
    left = {name.rpartition(".")[2]: name for name in names}
    found: dict[str, list[str]] = {}
    for heading, words in TASKS.items():
        if here := [left.pop(word) for word in words.split() if word in left]:
            found[heading] = here
    left = list(left.values())
    results = [name for name in left if _is_result(operator.attrgetter(name)(package))]
    found |= {RESULTS: results, MORE: [name for name in left if name not in results]}
    return {heading: here for heading, here in found.items() if here}


def _is_result(value: Any) -> bool:
    return inspect.isclass(value) and hasattr(value, "_fields")
