"""Pictures of matrices, graphs and runs: matplotlib's axes in, axes out; needs the extra `plot`."""

from .graphs import draw as draw
from .matrices import degree_distribution as degree_distribution
from .matrices import spy as spy
from .matrices import tiles as tiles
from .runs import frontier as frontier
