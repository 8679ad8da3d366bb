"""The functions of NetworkX that run here; each is entered by `implements`."""

from .connectivity import bipartite, components, cores, strong_components, trees  # noqa: F401 - entered by their import
from .partitions import communities, independent  # noqa: F401
from .paths import generic, measures, unweighted, weighted  # noqa: F401
from .scores import centralities, clusters, link_analysis, link_prediction  # noqa: F401
