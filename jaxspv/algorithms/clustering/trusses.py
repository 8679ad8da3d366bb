"""Trusses: subgraphs whose edges all lie in many triangles."""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from ..._core.eager.arrays import is_eager, on_accelerator, single_numbers, to_device
from ..._core.eager.programs import one_program
from ..._core.operation import Operation
from ..._core.platforms import Backend, reaching
from ..._core.pytree import is_concrete
from ...algebra.masks import structure
from ...algebra.operators import identity
from ...algebra.semirings import plus_pair
from ...formats import CSR
from ...formats.csr import sorted_csr
from ...formats.stored import in_slots
from ...graph import Graph
from ...native import bind
from ...ops.apply import apply
from ...ops.products.common.product import joined
from ...ops.products.mxm.api import mxm
from ...shapes import Count, Matrix
from ...until import iteration_limit
from ..common.derivatives import constant
from ..common.edges import endpoints_of, kept, undirected


@reaching
def k_truss(
    G: Matrix, k: Count, *, backend: Backend | None = None, method: str | None = None
) -> CSR:
    """The largest subgraph whose edges each lie in k - 2 triangles of it or more.

    `C<A> = A plus_pair A` counts the triangles of every edge; those of fewer than k - 2 go, until
    none does. Self loops are ignored.

    Args:
        G: a `Graph` or a square sparse matrix with a symmetric pattern.
        k: 2 or more, maybe traced; the 2-truss is all edges.
        backend: "pallas", "cpu", "xla" or None.
        method: "native" (edges one by one in C++, on a CPU), "peeling" (in rounds, in one launch
            after the count of triangles, on a GPU), "rounds" (elsewhere), or None.

    Returns:
        A CSR of the entries of G that are left, in its capacity; repeated ones are added up.
        Differentiable in their values.

    Raises:
        TypeError: G is no graph, or k no integer.
        ValueError: G is not square, its pattern, where it is concrete, is not symmetric, or a
            concrete k is less than 2.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: "native" and "peeling" O(edges^1.5 log(degree)) at most; "rounds" a masked product of the
    adjacency with itself a round, rounds as long as edges go.

    Source: Cohen, "Trusses: cohesive subgraphs for social network analysis", 2008; Davis, "Graph
    algorithms via SuiteSparse:GraphBLAS: triangle counting and k-truss", HPEC 2018; peeling: Wang,
    Cheng, "Truss decomposition in massive networks", VLDB 2012.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 1, 2, 2, 0, 2, 3], [1, 0, 2, 1, 0, 2, 3, 2], shape=(4, 4))
    >>> int(jsp.k_truss(A, 3).count)
    6
    """
    graph = undirected(G, "k_truss")
    how = {"backend": backend, "method": method}
    k = _checked(k)
    A = graph.out
    if is_eager(A) and A.nse and A.sorted and A.unique and not on_accelerator(A.data):
        return _on_host(A, k, **how)
    return one_program(_k_truss, graph, k, **how)


def _checked(k: Any) -> Any:
    single_numbers(k=k)
    k = iteration_limit("k", k)  # what int32 cannot hold stands for the largest
    if np.ndim(k):
        raise TypeError(f"`k` must be an integer; got {k!r}.")
    if not is_concrete(k):
        return k
    if k < 2:
        raise ValueError(f"`k` must be 2 or more; got {k}.")
    return np.int32(k)


def _on_host(A: CSR, k: Any, **how: Any) -> CSR:
    """All but the operation by NumPy, which compiles nothing for a size."""
    indptr, indices, data = (np.asarray(x) for x in (A.indptr, A.indices, A.data))
    tail = np.repeat(np.arange(A.shape[0]), np.diff(indptr))
    slots = np.flatnonzero(tail != indices[: tail.size])  # no loops

    proper = dataclasses.replace(
        A,
        indptr=np.searchsorted(slots, indptr).astype(np.int32),
        indices=in_slots(indices[slots], A.nse, A.shape[1]),
        data=in_slots(slots, A.nse, 0, np.int32),
    )
    left: Any = op(to_device(proper, A.indices), k, **how)
    chosen = np.asarray(left.data)[: int(np.asarray(left.indptr)[-1])]
    return left.with_data(to_device(in_slots(data[chosen], A.nse, 0), A.indices))


def _k_truss(graph: Graph, k: Any, *, backend, method) -> CSR:
    tail, head = endpoints_of(graph)
    proper = kept(graph.out, (tail < graph.n) & (tail != head))
    if graph.nse == 0:
        return proper
    once: Any = joined(sorted_csr(proper), plus_pair)
    slots = once.with_data(jnp.arange(once.nse, dtype=jnp.int32))
    left = op(slots, k, backend=backend, method=method)
    slot = jnp.where(jnp.arange(once.nse) < left.count, left.data, once.nse)
    return left.with_data(once.data.at[slot].get(mode="fill", fill_value=0))  # differentiable


op = Operation("k_truss", constant, types=lambda A, k: A)


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(A: CSR, k: Any) -> CSR:
    """Counts the triangles once, then removes edges with too few one after the other, in C++."""
    indptr, slots = (jax.ShapeDtypeStruct(x.shape, jnp.int32) for x in (A.indptr, A.indices))
    found = bind.call("k_truss", (indptr, slots, slots), A.indptr, A.indices, A.data, k)
    return dataclasses.replace(A, indptr=found[0], indices=found[1], data=found[2])


def _not_in_kernels(A: CSR, k: Any) -> str | None:
    return None if A.index_dtype == jnp.int32 else "it takes indices of 32 bits"


@op.register("peeling", backend="pallas", refuse=_not_in_kernels)
def _peeled(A: CSR, k: Any) -> CSR:
    """Triangles of edges by tables, then edges in too few leave in rounds, in three launches."""
    from pallas_kernels.triangles.count import triangles_of_edges
    from pallas_kernels.triangles.truss import truss
    from pallas_kernels.triangles.upward import upward

    pattern = A.indptr, A.indices
    counts = triangles_of_edges(*pattern, upward(*pattern))
    tail = A.rowcol()[0].astype(jnp.int32)
    left, status = truss(*pattern, tail, counts, k - 2)
    found = kept(A, left != 0)
    return dataclasses.replace(found, overflow=A.overflow | (status != 0))


@op.register("rounds")
def _rounds(A: CSR, k: Any) -> CSR:
    """Triangles of all edges counted anew until none has too few."""

    def round_(state):
        B, _, _ = state
        C = mxm(B, B, plus_pair, mask=structure(B), nse=B.nse)
        valid = jnp.arange(C.nse) < C.count
        C = kept(C, valid & (C.data >= k - 2))
        return C, B.count, C.overflow

    first = (A, jnp.int32(-1), A.overflow)
    found = lax.while_loop(lambda s: (s[0].count != s[1]) & (k > 2), round_, first)[0]
    return apply(A, identity, mask=structure(found), nse=A.nse)
