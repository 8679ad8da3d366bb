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
all_pairs_dijkstra all_pairs_dijkstra_path all_pairs_dijkstra_path_length
all_pairs_shortest_path all_pairs_shortest_path_length ancestors attracting_components
average_clustering average_degree_connectivity average_neighbor_degree
average_shortest_path_length bellman_ford_path bellman_ford_path_length betweenness_centrality
bfs_edges bfs_layers bfs_successors bidirectional_dijkstra bidirectional_shortest_path
boundary_expansion center closeness_centrality clustering color conductance connected_components
core_number cut_size degree_assortativity_coefficient degree_centrality
degree_pearson_correlation_coefficient descendants descendants_at_distance diameter
dijkstra_path dijkstra_path_length dijkstra_predecessor_and_distance eccentricity edge_expansion
efficiency eigenvector_centrality flow_hierarchy floyd_warshall floyd_warshall_numpy
generalized_degree global_efficiency group_degree_centrality group_in_degree_centrality
group_out_degree_centrality gutman_index harmonic_centrality harmonic_diameter has_eulerian_path
has_path hits hyper_wiener_index in_degree_centrality is_arborescence is_attracting_component
is_bipartite is_branching is_connected is_directed_acyclic_graph is_dominating_set is_eulerian
is_forest is_k_regular is_regular is_semieulerian is_strongly_connected is_tournament is_tree
is_weakly_connected isolates jaccard_coefficient k_core k_corona k_crust k_shell k_truss
katz_centrality maximum_spanning_edges maximum_spanning_tree minimum_spanning_edges
minimum_spanning_tree mixing_expansion modularity multi_source_dijkstra
multi_source_dijkstra_path multi_source_dijkstra_path_length node_boundary
node_connected_component node_expansion normalized_cut_size number_attracting_components
number_connected_components number_of_isolates number_strongly_connected_components
number_weakly_connected_components onion_layers out_degree_centrality overall_reciprocity
pagerank periphery predecessor preferential_attachment radius reciprocity
resource_allocation_index rich_club_coefficient s_metric schultz_index score_sequence sets
shortest_path shortest_path_length single_source_bellman_ford single_source_bellman_ford_path
single_source_bellman_ford_path_length single_source_dijkstra single_source_dijkstra_path
single_source_dijkstra_path_length single_source_shortest_path
single_source_shortest_path_length single_target_shortest_path
single_target_shortest_path_length strongly_connected_components
tournament_is_strongly_connected transitivity triangles volume weakly_connected_components
wiener_index
""".split()
