"""The functions of NetworkX that run here; each is entered by `implements`."""

from . import partitions as partitions
from .connectivity import components, cores, strong_components  # noqa: F401 - entered by their import
from .paths import generic, measures, unweighted, weighted  # noqa: F401
from .scores import centralities, clusters, link_prediction  # noqa: F401
