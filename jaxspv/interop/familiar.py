"""What the error for an unknown name at the top level suggests."""

import difflib
from types import ModuleType

from ..formats.methods import FUNCTIONS

SUBMODULES = (
    *("config", "generators", "graphblas", "io", "learning", "results", "sharding", "until"),
    *("operators", "monoids", "semirings", "plot", "automata"),
)
FAMILIAR = {  # name in NetworkX, SciPy, LAGraph, python-graphblas or PyG -> name here
    "Matrix": "from_edges",
    "Vector": "vector_from_entries",
    "all_pairs_dijkstra_path_length": "all_pairs_shortest_path_length",
    "astar_path": "astar",
    "bellman_ford": "sssp",
    "breadth_first_order": "bfs",
    "breadth_first_search": "bfs",
    "coalesce": "from_edges",
    "diags_array": "diag",
    "dijkstra": "sssp",
    "floyd_warshall": "all_pairs_shortest_path_length",
    "from_coo": "from_edges",
    "from_pandas": "io.from_table",
    "from_pandas_edgelist": "io.from_table",
    "from_pydata_sparse": "from_scipy",
    "from_scipy_sparse_array": "from_scipy",
    "jaccard_coefficient": "similarity",
    "label_propagation_communities": "label_propagation",
    "load": "load_npz",
    "louvain_communities": "louvain",
    "minimum_spanning_edges": "minimum_spanning_forest",
    "minimum_spanning_tree": "minimum_spanning_forest",
    "mmread": "read_mtx",
    "mmwrite": "write_mtx",
    "read_edges": "read_edgelist",
    "read_weighted_edgelist": "read_edgelist",
    "scatter": "learning.aggregate",
    "shortest_path": "sssp",
    "single_source_dijkstra": "sssp",
    "single_source_shortest_path_length": "bfs",
    "spmv": "mxv",
    "spmspv": "vxm",
    "subgraph": "extract",
    "to_pandas": "io.to_table",
    "to_pandas_edgelist": "io.to_table",
    "triangles": "triangle_count",
    "weakly_connected_components": "connected_components",
    "write_edges": "write_edgelist",
    "yen": "k_shortest_paths",
}


def suggestion(package: ModuleType, name: str) -> str:
    """The end of the message that there is no `name` in the package."""
    if name in FUNCTIONS:
        return f"; use {FUNCTIONS[name]}"
    for submodule in SUBMODULES:
        value = getattr(getattr(package, submodule), name, None)
        if getattr(value, "__module__", "").startswith(package.__name__):
            return f"; it is `jsp.{submodule}.{name}`"
    near = difflib.get_close_matches(name, [k for k in dir(package) if k[0] != "_"], 1, 0.7)
    found = FAMILIAR.get(name, next(iter(near), None))
    return f"; did you mean `jsp.{found}`?" if found else ""
