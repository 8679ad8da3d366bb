"""The functions of NetworkX that run here; entered by `implements` or `enter`."""

from . import partitions as partitions
from .connectivity import components, cores  # noqa: F401 - entered by their import
from .paths import generic, measures, unweighted, weighted  # noqa: F401
from .scores import centralities, clusters, link_prediction  # noqa: F401
