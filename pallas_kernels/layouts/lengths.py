"""The layout of the SSSP kernels, computed once per graph on its device."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

from .adjacency import degree_sizes, is_low_degree, low_degree_arrays
from .ragged import module_of, of_numbers


def prepare_sssp(
    indptr,
    indices,
    weights,
    *,
    renumber=False,
    rounded: Callable[[int], int] = int,
    sizes: np.ndarray | None = None,
) -> dict[str, jax.Array]:
    """Arrays for `sssp(..., prepared=)`; eager, on the device of the graph.

    Small degrees (mean <= 8, largest <= 64): adjacency int32[rows, 4 q] (as for `prepare_bfs`),
    slots of the same shape (the index into `indices` of every place, 0 for padding) and lengths
    (the weights at these places); with renumber=True vertices are in breadth-first order
    (neighbours share cache lines) and there are order (new -> old) and rank (old -> new); results
    are in the caller's numbering. Other graphs need no preparation. New weights for the same graph:
    `revalue`. rounded, sizes: as for `prepare_bfs`.
    """
    indptr, indices = of_numbers(indptr), of_numbers(indices)
    sizes = np.asarray(degree_sizes(indptr)) if sizes is None else sizes
    if not is_low_degree(indptr.shape[0] - 1, *sizes[:2]):
        return {}
    weights = module_of(weights).asarray(weights)
    return low_degree_arrays(indptr, indices, sizes, weights, renumber=renumber, rounded=rounded)


def revalue(prepared: dict, weights: jax.Array) -> dict:
    """The prepared arrays of the same graph with other weights (traced ones too): one gather."""
    if "slots" not in prepared or not weights.shape[0]:
        return prepared
    return prepared | {"lengths": jnp.asarray(weights)[prepared["slots"]]}
