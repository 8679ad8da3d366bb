"""What NetworkX asks of the backend at import, without JAX: also shipped as `_nx_jaxspv`."""

from typing import Any

DEFAULTS: dict[str, Any] = {
    "double_precision": True,
    "least_size": 2_000,
    "least_size_for_searches": 300,
}


def get_info() -> dict[str, Any]:
    """The entry point `networkx.backend_info`."""
    return {
        "backend_name": "jaxspv",
        "project": "jaxspv",
        "package": "jaxspv",
        "short_summary": "Graph algorithms compiled by JAX, on CPU and GPU.",
        "functions": {name: {} for name in FUNCTIONS},
        "default_config": DEFAULTS,
    }


FUNCTIONS = """
all_pairs_bellman_ford_path all_pairs_bellman_ford_path_length all_pairs_dijkstra
all_pairs_dijkstra_path all_pairs_dijkstra_path_length all_pairs_shortest_path
all_pairs_shortest_path_length ancestors average_shortest_path_length bellman_ford_path
bellman_ford_path_length bfs_layers bfs_predecessors bfs_successors bidirectional_dijkstra
bidirectional_shortest_path center closeness_centrality connected_components degree_centrality
descendants descendants_at_distance diameter dijkstra_path dijkstra_path_length
dijkstra_predecessor_and_distance eccentricity efficiency floyd_warshall floyd_warshall_numpy
global_efficiency gutman_index harmonic_centrality harmonic_diameter has_eulerian_path has_path
hyper_wiener_index in_degree_centrality is_arborescence is_branching is_connected is_eulerian
is_forest is_k_regular is_regular is_semieulerian is_tree is_weakly_connected isolates
multi_source_dijkstra multi_source_dijkstra_path multi_source_dijkstra_path_length
node_connected_component number_connected_components number_of_isolates
number_weakly_connected_components out_degree_centrality pagerank periphery predecessor radius
s_metric schultz_index score_sequence shortest_path shortest_path_length
single_source_bellman_ford single_source_bellman_ford_path
single_source_bellman_ford_path_length single_source_dijkstra single_source_dijkstra_path
single_source_dijkstra_path_length single_source_shortest_path
single_source_shortest_path_length single_target_shortest_path
single_target_shortest_path_length weakly_connected_components wiener_index
""".split()
