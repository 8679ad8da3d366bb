"""Graphs in files: Matrix Market, NumPy archives, edge lists, other libraries' graphs."""

from ..interop.igraph import from_igraph as from_igraph
from ..interop.igraph import to_igraph as to_igraph
from .files import load_npz as load_npz
from .files import read_mtx as read_mtx
from .files import save_npz as save_npz
from .files import write_mtx as write_mtx
from .tables.text import read_edgelist as read_edgelist
from .tables.text import write_edgelist as write_edgelist
