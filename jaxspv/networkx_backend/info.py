"""What NetworkX asks of the backend at import; read by `_nx_jaxspv`, and so without any import."""

from typing import Any

DEFAULTS: dict[str, Any] = {
    "double_precision": True,
    "least_size": 20_000,
    "least_size_for_searches": 600,
}


def get_info() -> dict[str, Any]:
    """What the entry point `networkx.backend_info` gives."""
    return {
        "backend_name": "jaxspv",
        "project": "jaxspv",
        "package": "jaxspv",
        "short_summary": "Graph algorithms compiled by JAX, on CPU and GPU.",
        "functions": {name: {} for name in FUNCTIONS},
        "default_config": DEFAULTS,
    }


FUNCTIONS = """
adamic_adar_index all_pairs_bellman_ford_path all_pairs_bellman_ford_path_length
all_pairs_dijkstra all_pairs_dijkstra_path all_pairs_dijkstra_path_length all_pairs_shortest_path
all_pairs_shortest_path_length ancestors attracting_components average_clustering
average_shortest_path_length bellman_ford_path bellman_ford_path_length betweenness_centrality
bfs_edges bfs_layers bfs_successors bidirectional_dijkstra bidirectional_shortest_path center
closeness_centrality clustering color connected_components core_number descendants
descendants_at_distance diameter dijkstra_path dijkstra_path_length
dijkstra_predecessor_and_distance eccentricity efficiency eigenvector_centrality flow_hierarchy
floyd_warshall floyd_warshall_numpy generalized_degree global_efficiency gutman_index
harmonic_centrality harmonic_diameter has_path hits hyper_wiener_index is_arborescence
is_attracting_component is_bipartite is_branching is_connected is_directed_acyclic_graph is_forest
is_strongly_connected is_tree is_weakly_connected jaccard_coefficient k_core k_corona k_crust
k_shell k_truss katz_centrality maximum_spanning_edges maximum_spanning_tree
minimum_spanning_edges minimum_spanning_tree multi_source_dijkstra multi_source_dijkstra_path
multi_source_dijkstra_path_length node_connected_component number_attracting_components
number_connected_components number_strongly_connected_components
number_weakly_connected_components onion_layers pagerank periphery predecessor
preferential_attachment radius resource_allocation_index schultz_index sets shortest_path
shortest_path_length single_source_bellman_ford single_source_bellman_ford_path
single_source_bellman_ford_path_length single_source_dijkstra single_source_dijkstra_path
single_source_dijkstra_path_length single_source_shortest_path single_source_shortest_path_length
single_target_shortest_path single_target_shortest_path_length strongly_connected_components
tournament_is_strongly_connected transitivity triangles weakly_connected_components wiener_index
""".split()
