"""Maximum matchings of bipartite graphs."""

from __future__ import annotations

from typing import NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ..._core.indices import narrowed
from ..._core.loops import while_going
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...formats import CSR, SparseMatrix
from ...formats.base import ours
from ...formats.csr import sorted_csr
from ...native import bind
from ...shapes import Int, Matrix


@result_tuple
class Matching(NamedTuple):
    """The result of `maximum_bipartite_matching`.

    Attributes:
        columns: (m,) int32, the column that each row is matched with; -1 for none.
        rows: (n,) int32, the row that each column is matched with; -1 for none.
        count: int32, the pairs.
    """

    columns: Int[Array, " m"]
    rows: Int[Array, " n"]
    count: Int[Array, ""]


def maximum_bipartite_matching(
    A: Matrix, *, backend: Backend | None = None, method: str | None = None
) -> Matching:
    """As many entries of A as possible, no two of which share a row or a column.

    A search goes from an unmatched row along entries to columns, and from a matched column back to
    its row. If it reaches an unmatched column, its path is augmenting: swapping the matched and
    unmatched entries of the path adds one pair. A matching without such a path is maximum.

    Args:
        A: (m, n) sparse matrix or `Graph`, rows on one side, columns on the other, whatever its
            values.
        backend: "cpu", "xla" or None.
        method: "native" (a search after the other in C++, on a CPU), "phases" (searches from all
            unmatched rows together, elsewhere), or None. Both find as many pairs; they may be
            others.

    Returns:
        `Matching(columns, rows, count)`.

    Raises:
        TypeError: A is no sparse matrix.
        ValueError: `backend` or `method` is none of these.
        NotImplementedError: the form asked for cannot run; says why.

    Cost: a phase passes over the entries once ("native") or once for each level of its searches;
    in theory up to min(m, n) phases, in practice a few.

    Source: Berge, "Two theorems in graph theory", PNAS 43, 1957; "native": Pothen, Fan, "Computing
    the block triangular form of a sparse matrix", ACM TOMS 16, 1990; "phases": Azad, Buluc,
    "Distributed-memory algorithms for maximum cardinality matching in bipartite graphs", IPDPS
    2016.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1], [0, 1, 0], shape=(2, 3))
    >>> jsp.maximum_bipartite_matching(A).columns.tolist()
    [1, 0]
    """
    A = getattr(A, "out", A)  # of a Graph
    A = A if isinstance(A, SparseMatrix) else ours(A)
    if not isinstance(A, SparseMatrix):
        name = type(A).__name__
        raise TypeError(f"maximum_bipartite_matching needs a sparse matrix; got {name}.")
    csr = narrowed("maximum_bipartite_matching", A)[0].asformat("csr")
    return op(csr, backend=backend, method=method)


def _types(A):
    m, n = A.shape
    return Matching(typed(jnp.int32, m), typed(jnp.int32, n), typed(jnp.int32))


op = Operation("maximum_bipartite_matching", types=_types)


def _of(columns: Array, rows: Array) -> Matching:
    return Matching(columns, rows, jnp.sum(columns >= 0, dtype=jnp.int32))


@op.register("native", backend="cpu", refuse=bind.refused)
def _native(A: CSR) -> Matching:
    """Depth-first searches, in C++; rows are sorted, so that equal matrices give one matching."""
    A = sorted_csr(A)
    return _of(*bind.call("matching", _types(A)[:2], A.indptr, A.indices, columns=A.shape[1]))


@op.register("phases")
def _phases(A: CSR) -> Matching:
    """Trees of a phase share no vertex, so that all of its augmenting paths are used."""
    m, n = A.shape
    row, col = A.rowcol()
    row, col = jnp.where(row < m, row, m), jnp.where(row < m, col, n)

    def phase(state):
        columns, rows, _ = state
        parents, ends = _search(A.shape, row, col, columns, rows)
        columns, rows = _augmented(columns, rows, parents, ends)
        return columns, rows, jnp.any(ends < n)

    def fill(shape):
        return jnp.full(shape, -1, jnp.int32)

    if min(m, n, A.nse) == 0:
        return _of(fill(m), fill(n))
    start = (fill(m), fill(n), jnp.asarray(True))
    columns, rows, _ = while_going(phase, start)
    return _of(columns, rows)


def _search(shape: tuple[int, int], row, col, columns, rows) -> tuple[Array, Array]:
    """(n,) the row that each column was found from, m for none; (m,) the free column at the end of
    the tree of each root, n for none."""
    m, n = shape

    def level(state):
        parents, roots, ends, front = state
        root = roots.at[row].get(mode="fill", fill_value=m)
        open_ = ends.at[root].get(mode="fill", fill_value=0) == n  # its tree has no end yet
        live = front.at[row].get(mode="fill", fill_value=False) & open_
        live &= parents.at[col].get(mode="fill", fill_value=0) == m
        found = parents.at[jnp.where(live, col, n)].min(row, mode="drop")
        new = found != parents
        origin = roots.at[found].get(mode="fill", fill_value=m)
        free = new & (rows < 0)
        column = jnp.arange(n, dtype=jnp.int32)
        ends = ends.at[jnp.where(free, origin, m)].min(column, mode="drop")
        following = jnp.where(new & ~free, rows, m)
        roots = roots.at[following].set(origin, mode="drop")
        front = jnp.zeros(m, bool).at[following].set(True, mode="drop")
        return found, roots, ends, front

    vertex = jnp.arange(m, dtype=jnp.int32)
    lonely = columns < 0
    start = (
        jnp.full(n, m, jnp.int32),
        jnp.where(lonely, vertex, m),
        jnp.full(m, n, jnp.int32),
        lonely,
    )
    parents, _, ends, _ = lax.while_loop(lambda s: jnp.any(s[3]), level, start)
    return parents, ends


def _augmented(columns, rows, parents, ends) -> tuple[Array, Array]:
    """The matching after swapping matched and unmatched entries on all augmenting paths."""
    m, n = columns.shape[0], rows.shape[0]

    def step(state):
        columns, rows, at = state
        row = jnp.where(at < n, parents.at[at].get(mode="fill", fill_value=m), m)
        before = columns.at[row].get(mode="fill", fill_value=-1)
        columns = columns.at[row].set(at, mode="drop")
        rows = rows.at[at].set(row, mode="drop")
        return columns, rows, jnp.where(before >= 0, before, n)

    return lax.while_loop(lambda s: jnp.any(s[2] < n), step, (columns, rows, ends))[:2]
