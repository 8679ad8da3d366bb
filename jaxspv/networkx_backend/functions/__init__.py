"""The functions of NetworkX that run here; each is entered by `implements`."""

from . import (  # noqa: F401 - entered by their import
    bipartite,
    centralities,
    clusters,
    components,
    cores,
    cuts,
    degrees,
    distance_measures,
    generic_paths,
    link_analysis,
    link_prediction,
    neighbors,
    strong_components,
    trees,
    unweighted_paths,
    weighted_paths,
)
