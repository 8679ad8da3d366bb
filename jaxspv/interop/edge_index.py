"""Graphs as graph-network libraries hold them: `edge_index` of PyG, `GraphsTuple` of jraph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from .._core.eager.arrays import unmasked
from .._core.indices import with_pattern
from .._core.pytree import is_concrete
from ..algebra.monoids import Monoid, plus
from ..construct.edges import taken
from ..construct.from_arrays import from_edges
from ..formats import SparseMatrix
from ..formats.base import ours
from ..graph import Graph
from ..shapes import ArrayLike, Int, Matrix, Shaped, Values


def from_edge_index(
    edge_index: Int[ArrayLike, "2 edges"],
    edge_attr: Values | None = None,
    *,
    num_nodes: int | None = None,
    nse: int | None = None,
    dup: Monoid = plus,
    return_slots: bool = False,
    format: str = "csr",
) -> Any:
    """The matrix with A[edge_index[0, e], edge_index[1, e]] = edge_attr[e]: source, then target.

    PyG sends messages from source to target and combines them there: its layers multiply by `A.T`
    (in an undirected graph the same).

    Args:
        edge_index: int (2, edges): an array of NumPy or JAX, or with DLPack, as PyTorch's.
        edge_attr: (edges,), or (edges, ...): an array an entry; None: float32 ones.
        num_nodes: n; None: one more than the largest index, which must be concrete.
        nse, dup, return_slots, format: as in `from_edges`.

    Returns:
        An (n, n) matrix, or (matrix, slots).

    Raises:
        ValueError: shapes do not match; `num_nodes` is missing under jit.
        TypeError: indices are no integers, values no numbers.

    >>> import numpy as np
    >>> from_edge_index(np.array([[0, 1], [1, 2]]), np.array([5.0, 6.0])).todense().tolist()
    [[0.0, 5.0, 0.0], [0.0, 0.0, 6.0], [0.0, 0.0, 0.0]]
    """
    edge_index, edge_attr = unmasked("edge_index", taken(edge_index)), taken(edge_attr)
    index = edge_index if isinstance(edge_index, jax.Array) else np.asarray(edge_index)
    if index.ndim != 2 or index.shape[0] != 2:
        raise ValueError(f"`edge_index` must have shape (2, edges); got {index.shape}.")
    if num_nodes is None:
        if not is_concrete(index):
            raise ValueError("`num_nodes` must be given under jit.")
        num_nodes = int(index.max()) + 1 if index.size else 0
    values: Any = edge_attr
    arrays = np.ndim(values) > 1
    if arrays and np.shape(values)[0] != index.shape[1]:
        raise ValueError(
            f"`edge_attr` must have shape ({index.shape[1]}, ...); got {np.shape(values)}."
        )
    A, slots = from_edges(
        index[0],
        index[1],
        None if arrays else values,
        shape=(num_nodes, num_nodes),
        nse=nse,
        dup=dup,
        return_slots=True,
        format=format,
    )
    if arrays:
        A = A.with_edge_data(slots, values, dup)
    return (A, slots) if return_slots else A


def to_edge_index(A: Matrix) -> tuple[Int[jax.Array, "2 edges"], Shaped[jax.Array, " edges"]]:
    """(edge_index, edge_attr): int (2, edges) sources and targets, and the values; eager.

    Raises:
        TypeError: A is no matrix.
        ValueError: under jit, where the number of edges is unknown.

    >>> import jaxspv as jsp
    >>> index, values = to_edge_index(jsp.from_dense([[0.0, 5.0], [6.0, 0.0]]))
    >>> index.tolist(), values.tolist()
    ([[0, 1], [1, 0]], [5.0, 6.0])
    """
    A = A.out if isinstance(A, Graph) else ours(A)
    if not isinstance(A, SparseMatrix):
        raise TypeError(f"`A` must be a sparse matrix or a Graph; got {type(A).__name__}.")
    coo = with_pattern(A).trim().to_coo()
    return jnp.stack([coo.row, coo.col]), coo.data


class GraphsTuple(NamedTuple):
    """A batch of graphs, with the fields of jraph's `GraphsTuple`; either may be passed.

    Attributes:
        nodes: features of all vertices, a pytree of (n, ...) arrays, or None.
        edges: features of all edges, a pytree of (edges, ...) arrays, or None.
        receivers, senders: int (edges,): edge e goes from senders[e] to receivers[e].
        globals: features of each graph, or None.
        n_node, n_edge: int (graphs,): vertices and edges of each.
    """

    nodes: Any
    edges: Any
    receivers: Int[ArrayLike, " edges"]
    senders: Int[ArrayLike, " edges"]
    globals: Any
    n_node: Int[ArrayLike, " graphs"]
    n_edge: Int[ArrayLike, " graphs"]


def from_graphs_tuple(graphs: Any, *, return_slots: bool = False, format: str = "csr") -> Any:
    """The block-diagonal matrix of a batch: A[senders[e], receivers[e]] = edges[e].

    Args:
        graphs: jraph's `GraphsTuple` or ours: anything with these fields.
        return_slots, format: as in `from_edges`; with the slots, `A.with_edge_data` takes other
            features of the edges.

    Returns:
        An (n, n) matrix, or (matrix, slots). Values are `edges` where that is one array, else 1;
        equal edges are added. n is the length of `nodes`, else the sum of `n_node`.

    Raises:
        ValueError: `nodes` is None under jit.

    >>> g = GraphsTuple(None, None, [1, 2], [0, 2], None, [2, 1], [1, 1])
    >>> from_graphs_tuple(g).todense().tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    leaves = jax.tree.leaves(graphs.nodes)
    if leaves:
        n = leaves[0].shape[0]
    elif is_concrete(graphs.n_node):
        n = int(np.sum(graphs.n_node))
    else:
        raise ValueError("`graphs.nodes` must be given under jit: the sum of `n_node` is traced.")
    single = isinstance(graphs.edges, (jax.Array, np.ndarray))
    ends = (graphs.senders, graphs.receivers)
    xp: Any = jnp if any(isinstance(e, jax.Array) for e in ends) else np
    return from_edge_index(
        xp.stack([xp.asarray(e) for e in ends]),
        graphs.edges if single else None,
        num_nodes=n,
        return_slots=return_slots,
        format=format,
    )


def to_graphs_tuple(
    A: SparseMatrix | Graph,
    nodes: Any = None,
    globals: Any = None,
    *,
    n_node: Any = None,
    cls: Callable[..., Any] = GraphsTuple,
) -> Any:
    """The edges of A as a batch of graphs; eager.

    Args:
        A: square matrix, block-diagonal where it holds several graphs.
        nodes, globals: put into the fields of these names.
        n_node: vertices of each graph; None: one graph of all.
        cls: what is made: `jraph.GraphsTuple`, or anything that takes its fields by name.

    Raises:
        TypeError: A is no matrix.
        ValueError: A is not square, `n_node` does not add up to its vertices; under jit.

    >>> import jaxspv as jsp
    >>> g = to_graphs_tuple(jsp.from_dense([[0.0, 5.0], [0.0, 6.0]]), n_node=[1, 1])
    >>> g.senders.tolist(), g.receivers.tolist(), g.edges.tolist(), g.n_edge.tolist()
    ([0, 1], [1, 1], [5.0, 6.0], [1, 1])
    """
    index, values = to_edge_index(A)
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"`A` must be square; got shape {A.shape}.")
    sizes = np.asarray([A.shape[0]] if n_node is None else n_node, np.int32)
    if sizes.ndim != 1 or sizes.sum() != A.shape[0] or (sizes < 0).any():
        raise ValueError(f"`n_node` must add up to {A.shape[0]}; got {sizes.tolist()}.")
    ends = np.searchsorted(np.asarray(index[0]), np.cumsum(sizes))
    counts = np.diff(ends, prepend=0).astype(np.int32)
    return cls(
        nodes=nodes,
        edges=values,
        receivers=index[1],
        senders=index[0],
        globals=globals,
        n_node=jnp.asarray(sizes),
        n_edge=jnp.asarray(counts),
    )
