"""The functions of NetworkX that run here; each is entered by `implements`."""

from . import (  # noqa: F401 - entered by their import
    components,
    degrees,
    distance_measures,
    generic_paths,
    link_analysis,
    unweighted_paths,
    weighted_paths,
)
