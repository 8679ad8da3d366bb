"""The functions of NetworkX that run here; entered by `implements`, `enter` or `composed`."""

from ..registry import composed
from . import centralities, components, measures, neighbors, paths, subsets  # noqa: F401

# NetworkX's own code for these calls only what the modules above enter.
composed("single_source_dijkstra multi_source_dijkstra_path single_source_bellman_ford_path")
composed("single_source_dijkstra_path single_source_dijkstra_path_length dijkstra_path")
composed("bellman_ford_path all_pairs_shortest_path shortest_path shortest_path_length has_path")
composed("efficiency descendants_at_distance bfs_successors average_clustering")
composed("all_pairs_dijkstra all_pairs_dijkstra_path all_pairs_bellman_ford_path")
composed("all_pairs_bellman_ford_path_length is_attracting_component is_bipartite sets")
