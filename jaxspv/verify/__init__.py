"""Checkers of results in NumPy and SciPy; they share no code with what they check.

Each raises AssertionError naming the first vertex that is wrong, and returns None.
"""

from .orders import astar as astar
from .orders import cuthill_mckee as cuthill_mckee
from .orders import diameter as diameter
from .orders import eccentricity as eccentricity
from .orders import shortest_paths as shortest_paths
from .orders import topological_order as topological_order
from .orders import transitive_reduction as transitive_reduction
from .scores import average_clustering as average_clustering
from .scores import betweenness as betweenness
from .scores import closeness as closeness
from .scores import clustering as clustering
from .scores import eigenvector as eigenvector
from .scores import hits as hits
from .scores import katz as katz
from .subgraphs import bipartition as bipartition
from .subgraphs import coloring as coloring
from .subgraphs import communities as communities
from .subgraphs import cores as cores
from .subgraphs import forest as forest
from .subgraphs import independent_set as independent_set
from .subgraphs import label_propagation as label_propagation
from .subgraphs import matching as matching
from .subgraphs import modularity_of as modularity_of
from .subgraphs import similarity as similarity
from .subgraphs import square_clustering as square_clustering
from .subgraphs import strong_components as strong_components
from .subgraphs import triangle_centrality as triangle_centrality
from .subgraphs import truss as truss
from .traversals import bfs as bfs
from .traversals import components as components
from .traversals import levels_of as levels_of
from .traversals import pagerank as pagerank
from .traversals import spanning_tree as spanning_tree
from .traversals import sssp as sssp
from .traversals import tree as tree
from .traversals import triangles as triangles
