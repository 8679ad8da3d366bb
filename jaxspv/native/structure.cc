// Handlers of algorithms on the structure of graphs: orders, greedy choices, communities, centrality.
#include "centrality.h"
#include "communities.h"
#include "cores.h"
#include "eccentricity.h"
#include "forest.h"
#include "greedy.h"
#include "handlers.h"
#include "matching.h"
#include "orders.h"
#include "strong.h"
#include "triangles.h"

using namespace jaxspv;

JAXSPV_SERVES(triangles, "", count_triangles)
JAXSPV_SERVES(triangles_of_vertices, "", triangles_of_vertices)
JAXSPV_SERVES(k_truss, "", k_truss)
JAXSPV_SERVES(cores, "", cores)
JAXSPV_SERVES(degrees_without_loops, "", degrees_without_loops)
JAXSPV_SERVES(matching, "", matching)
JAXSPV_SERVES(strong_components, "", strong_components)
JAXSPV_SERVES(spanning_forest, "symmetric", JAXSPV_NUMBERS(spanning_forest))
JAXSPV_SERVES(betweenness, "endpoints", JAXSPV_FLOATS(betweenness))
JAXSPV_SERVES(closeness, "", closeness)
JAXSPV_SERVES(eccentricities, "", eccentricities)
JAXSPV_SERVES(diameter, "given", diameter)
JAXSPV_SERVES(independent_set, "", independent_set)
JAXSPV_SERVES(greedy_color, "ordered", greedy_color)
JAXSPV_SERVES(topological_order, "", topological_order)
JAXSPV_SERVES(reverse_cuthill_mckee, "", reverse_cuthill_mckee)
JAXSPV_SERVES(label_propagation, "symmetric", label_propagation)
JAXSPV_SERVES(louvain, "", louvain)
JAXSPV_SERVES(modularity, "directed", JAXSPV_FLOATS(modularity))
