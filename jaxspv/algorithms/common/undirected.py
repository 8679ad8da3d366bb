"""Graphs that must be undirected, and whether one is: patterns that equal their transpose."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from ..._core.compilation import known_while_tracing, on_gpu
from ..._core.pytree import is_concrete
from ...formats import CSR
from ...formats.csr import sorted_csr
from ...graph import Graph, as_graph


def undirected(G: Any, algorithm: str) -> Graph:
    """`G` as a Graph; its pattern is symmetric, or traced and so taken at its word.

    Raises:
        TypeError: G is no graph.
        ValueError: it is not square, or its pattern, where it is concrete, is not symmetric.
    """
    graph = as_graph(G, algorithm, ())
    if is_undirected(graph) is False:
        raise ValueError(
            f"`G` must have a symmetric pattern: {algorithm} is of undirected graphs. "
            "Join A and its transpose first."
        )
    return graph


def is_undirected(graph: Graph) -> bool | None:
    """Whether the pattern equals its transpose; None: it is traced and nobody declared it."""
    if graph.symmetric:
        return True
    if not is_concrete(graph.out.indices, graph.out.indptr):
        return None
    A = graph.out
    if not on_gpu(A.indices):
        return _on_host(A)
    bare = dataclasses.replace(A, data=np.zeros(A.nse, bool), overflow=np.zeros((), bool))
    with known_while_tracing():
        return bool(_on_device(bare))


def _on_host(A: CSR) -> bool:
    """By SciPy's counting sort: nothing to compile."""
    import scipy.sparse

    indptr = np.asarray(A.indptr)
    indices = np.asarray(A.indices)[: indptr[-1]]
    pattern = scipy.sparse.csr_array((np.ones(len(indices), bool), indices, indptr), shape=A.shape)
    other = pattern.T.tocsr()
    return np.array_equal(other.indptr, pattern.indptr) and np.array_equal(
        other.indices, pattern.indices
    )


@jax.jit
def _on_device(A: CSR) -> Array:
    there, other = jnp.arange(A.nse) < A.count, sorted_csr(A.T)
    same = jnp.where(there, A.indices == other.indices, True)
    return jnp.all(same) & jnp.all(A.indptr == other.indptr)
