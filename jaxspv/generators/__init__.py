"""Random and regular graphs, made on the device."""

from .graphs import delaunay as delaunay
from .graphs import erdos_renyi as erdos_renyi
from .graphs import grid2d as grid2d
from .graphs import rmat as rmat
