"""The functions of NetworkX that run here; each is entered by `implements`."""

from . import (  # noqa: F401 - entered by their import
    bipartite,
    clusters,
    components,
    cuts,
    degrees,
    distance_measures,
    generic_paths,
    link_analysis,
    link_prediction,
    neighbors,
    unweighted_paths,
    weighted_paths,
)
