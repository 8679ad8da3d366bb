// Handlers of traversals and of trees of shortest paths.
#include "bfs.h"
#include "components.h"
#include "handlers.h"
#include "path_tree.h"
#include "several_paths.h"
#include "sssp.h"

using namespace jaxspv;

JAXSPV_SERVES(bfs, "pulls deterministic", bfs)
JAXSPV_SERVES(bfs_sources, "deterministic", bfs_sources)
JAXSPV_SERVES(components, "symmetric", components)
JAXSPV_SERVES(sssp, "", JAXSPV_NUMBERS(sssp))
JAXSPV_SERVES(shortest_path_tree, "", JAXSPV_NUMBERS(shortest_path_tree))
JAXSPV_SERVES(tight_edges, "", JAXSPV_FLOATS(tight_edges))
JAXSPV_SERVES(sums_along_paths, "down", JAXSPV_FLOATS(sums_along_paths))
JAXSPV_SERVES(k_shortest_paths, "", JAXSPV_NUMBERS(k_shortest_paths))
