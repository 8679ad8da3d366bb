"""What graph neural networks add: attention, aggregation, normalisation, batches, sampling."""

from ..interop.edge_index import GraphsTuple as GraphsTuple
from ..interop.edge_index import from_edge_index as from_edge_index
from ..interop.edge_index import from_graphs_tuple as from_graphs_tuple
from ..interop.edge_index import to_edge_index as to_edge_index
from ..interop.edge_index import to_graphs_tuple as to_graphs_tuple
from ..ops.aggregate import aggregate as aggregate
from ..ops.aggregate import softmax as softmax
from .attention import attention as attention
from .batching import block_diag as block_diag
from .batching import unbatch as unbatch
from .neighbors import sample_neighbors as sample_neighbors
from .normalize import add_self_loops as add_self_loops
from .normalize import normalize as normalize
from .walks import random_walk as random_walk
