"""Graphs in files, in tables and of other libraries."""

from ..construct.from_arrays import from_bcoo as from_bcoo
from ..construct.from_arrays import from_bcsr as from_bcsr
from ..interop.graphs import from_igraph as from_igraph
from ..interop.graphs import to_igraph as to_igraph
from .files import load_npz as load_npz
from .files import read_mtx as read_mtx
from .files import save_npz as save_npz
from .files import write_mtx as write_mtx
from .tables.frames import from_table as from_table
from .tables.frames import to_table as to_table
from .tables.text import read_edgelist as read_edgelist
from .tables.text import write_edgelist as write_edgelist
