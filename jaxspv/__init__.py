"""GraphBLAS for JAX: sparse matrices and vectors as pytrees, algebra over any semiring."""

import gc as _gc
import sys as _sys
from typing import TYPE_CHECKING as _TYPE_CHECKING

_collects = _gc.isenabled()
_gc.disable()  # a full collection, of all that JAX made, would take a fifth of the import
try:
    from . import config as config
    from . import generators as generators
    from . import graphblas as graphblas
    from . import io as io
    from . import learning as learning
    from . import plot as plot
    from . import results as results
    from . import sharding as sharding
    from . import until as until
    from .algebra import monoids as monoids
    from .algebra import operators as operators
    from .algebra import semirings as semirings
    from .algebra.masks import Mask as Mask
    from .algebra.masks import structure as structure
    from .algebra.monoids import Monoid as Monoid
    from .algebra.monoids import monoid as monoid
    from .algebra.operators import BinaryOp as BinaryOp
    from .algebra.operators import IndexUnaryOp as IndexUnaryOp
    from .algebra.operators import UnaryOp as UnaryOp
    from .algebra.semirings import Semiring as Semiring
    from .algebra.semirings import semiring as semiring
    from .algorithms.bfs.api import bfs as bfs
    from .algorithms.bfs.tiles import TileRule as TileRule
    from .algorithms.centrality.betweenness import betweenness_centrality as betweenness_centrality
    from .algorithms.centrality.closeness import closeness_centrality as closeness_centrality
    from .algorithms.centrality.spectral import eigenvector_centrality as eigenvector_centrality
    from .algorithms.centrality.spectral import hits as hits
    from .algorithms.centrality.spectral import katz_centrality as katz_centrality
    from .algorithms.closure import automata as automata
    from .algorithms.closure.api import closure as closure
    from .algorithms.clustering.coefficients import average_clustering as average_clustering
    from .algorithms.clustering.coefficients import clustering as clustering
    from .algorithms.clustering.squares import square_clustering as square_clustering
    from .algorithms.clustering.squares import triangle_centrality as triangle_centrality
    from .algorithms.clustering.trusses import k_truss as k_truss
    from .algorithms.common.status import NegativeCycleError as NegativeCycleError
    from .algorithms.communities.label_propagation import label_propagation as label_propagation
    from .algorithms.communities.louvain import louvain as louvain
    from .algorithms.communities.modularity import modularity as modularity
    from .algorithms.components import bipartition as bipartition
    from .algorithms.components import connected_components as connected_components
    from .algorithms.components import is_bipartite as is_bipartite
    from .algorithms.cores import core_number as core_number
    from .algorithms.cores import k_core as k_core
    from .algorithms.cuthill_mckee import reverse_cuthill_mckee as reverse_cuthill_mckee
    from .algorithms.degrees import degree_histogram as degree_histogram
    from .algorithms.fixpoint.api import fixpoint as fixpoint
    from .algorithms.independent.matching import (
        maximum_bipartite_matching as maximum_bipartite_matching,
    )
    from .algorithms.independent.sets import greedy_color as greedy_color
    from .algorithms.independent.sets import maximal_independent_set as maximal_independent_set
    from .algorithms.pagerank.api import pagerank as pagerank
    from .algorithms.paths.acyclic import is_directed_acyclic_graph as is_directed_acyclic_graph
    from .algorithms.paths.acyclic import topological_sort as topological_sort
    from .algorithms.paths.acyclic import transitive_reduction as transitive_reduction
    from .algorithms.paths.eccentricities import diameter as diameter
    from .algorithms.paths.eccentricities import eccentricity as eccentricity
    from .algorithms.paths.several import k_shortest_paths as k_shortest_paths
    from .algorithms.paths.targets import (
        all_pairs_shortest_path_length as all_pairs_shortest_path_length,
    )
    from .algorithms.paths.targets import astar as astar
    from .algorithms.paths.targets import has_path as has_path
    from .algorithms.similarity import similarity as similarity
    from .algorithms.soft_sssp import soft_sssp as soft_sssp
    from .algorithms.sssp.api import sssp as sssp
    from .algorithms.strong_components import (
        strongly_connected_components as strongly_connected_components,
    )
    from .algorithms.trees.forest import minimum_spanning_forest as minimum_spanning_forest
    from .algorithms.trees.rooted import spanning_tree as spanning_tree
    from .algorithms.triangles import triangle_count as triangle_count
    from .autodiff import grad as grad
    from .autodiff import value_and_grad as value_and_grad
    from .checking import check as check
    from .construct.from_arrays import from_dense as from_dense
    from .construct.from_arrays import from_edges as from_edges
    from .construct.from_arrays import from_scipy as from_scipy
    from .construct.padding import pad as pad
    from .construct.padding import unpad as unpad
    from .explaining import explain as explain
    from .exporting import export as export
    from .formats import COO as COO
    from .formats import CSC as CSC
    from .formats import CSR as CSR
    from .formats import ELL as ELL
    from .formats import SELL as SELL
    from .formats import BitTiled as BitTiled
    from .formats import Tiled as Tiled
    from .formats.choose import choose_format as choose_format
    from .formats.tiled.vector import BitVector as BitVector
    from .formats.tiled.vector import TiledVector as TiledVector
    from .formats.vector import SparseVector as SparseVector
    from .formats.vector import vector_from_dense as vector_from_dense
    from .formats.vector import vector_from_entries as vector_from_entries
    from .graph import Graph as Graph
    from .graph import prepare as prepare
    from .interop.graphs import from_networkx as from_networkx
    from .interop.graphs import to_networkx as to_networkx
    from .interop.labels import Labels as Labels
    from .interop.names import published as _published
    from .interop.names import suggestion as _suggestion
    from .io import datasets as datasets
    from .io.files import bundled as bundled
    from .io.files import load_npz as load_npz
    from .io.files import read_mtx as read_mtx
    from .io.files import save_npz as save_npz
    from .io.files import write_mtx as write_mtx
    from .io.tables.text import read_edgelist as read_edgelist
    from .io.tables.text import write_edgelist as write_edgelist
    from .ops.apply import apply as apply
    from .ops.apply import select as select
    from .ops.assign import assign as assign
    from .ops.ewise import ewise_add as ewise_add
    from .ops.ewise import ewise_mult as ewise_mult
    from .ops.ewise import ewise_union as ewise_union
    from .ops.extract import extract as extract
    from .ops.install import install as install
    from .ops.products.mxm.api import mxm as mxm
    from .ops.products.mxv.api import mxv as mxv
    from .ops.products.mxv.api import vxm as vxm
    from .ops.products.sddmm.api import sddmm as sddmm
    from .ops.reduce import reduce as reduce
    from .ops.structure import diag as diag
    from .ops.structure import kron as kron
    from .ops.structure import transpose as transpose
    from .ops.sugar import where as where
    from .ops.tuples import products as _products  # noqa: F401  registers
    from .sharding.builders.shard import shard as shard
finally:
    if _collects:
        _gc.enable()

__version__ = "0.1.0"  # as in pyproject.toml; a test holds it

install()  # operators and methods
del install
_published(_sys.modules[__name__])

_INSIDE = set("algebra algorithms autodiff checking construct explaining exporting formats".split())
_INSIDE |= set("cli graph interop native networkx_backend ops shapes verify".split())


def __dir__() -> list[str]:
    """The public names; folders of the code are no part of the interface."""
    return sorted(name for name in globals() if name not in _INSIDE)


if not _TYPE_CHECKING:  # checkers know the names

    def __getattr__(name: str) -> None:
        """Says where a name is, or what it is called here."""
        hint = "" if name.startswith("_") else _suggestion(_sys.modules[__name__], name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")
