"""Graph: a matrix with the layouts that the fast algorithms need, computed once by `prepare`."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.core import Tracer

from ._core.derivatives import copied
from ._core.eager.arrays import by_numpy, known_while_tracing, on_gpu, to_device
from ._core.eager.kept import kept
from ._core.html import card, pattern
from ._core.indices import narrowed, one_value
from ._core.pytree import describe, is_concrete, pytree_dataclass, static
from .formats import CSR, SparseMatrix
from .formats.base import ours
from .formats.csr import canonical, known_symmetric, transposed_with_slots
from .formats.methods import Products
from .shapes import Bool, Int, Shaped, Values

LAYOUTS: dict[str, Layout] = {}  # filled by `register_layout`


@dataclasses.dataclass(frozen=True)
class Layout:
    """How `prepare` serves one purpose.

    Attributes:
        build: `build(graph) -> pytree of arrays and statics`, eager.
        revalue: `revalue(layout, graph) -> layout` after `with_data`, traceable; None: the layout
            depends on the pattern alone.
        needs_inn: whether the transpose must be there.
        numpy: whether a graph whose arrays are NumPy's is built by NumPy, as small ones are.
    """

    build: Callable[[Graph], Any]
    revalue: Callable[[Any, Graph], Any] | None = None
    needs_inn: bool = True
    numpy: bool = False


def register_layout(
    name: str, **how: Any
) -> Callable[[Callable[[Graph], Any]], Callable[[Graph], Any]]:
    """Decorator entering a builder, with fields of its `Layout`, under the purpose `name` of
    `prepare(for_=...)`."""

    def add(build):
        LAYOUTS[name] = Layout(build, **how)
        return build

    return add


@pytree_dataclass
class Graph(Products):
    """A square matrix A with A[i, j] the edge i -> j, its transpose, and layouts by purpose.

    Attributes:
        out: CSR of A: the out-edges of each vertex.
        transposed: CSR of A transposed, or None: `inn` then shares the leaves of `out`
            (`symmetric`), or is None (a bare directed matrix is never pulled from).
        inn_slots: (nse,) int32; `inn.data == out.data[inn_slots]`. None where `transposed` is.
        layouts: purpose -> what `prepare` computed for it.
        symmetric: A equals its transpose, checked or declared, static.
        num_vertices: int32, where the ghosts of `pad` begin; None: there are none.

    >>> import jaxspv as jsp
    >>> path = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> graph = jsp.prepare(path, for_="bfs")
    >>> graph.n, graph.symmetric, graph.out_degrees.tolist()
    (3, True, [1, 2, 1])
    """

    out: CSR
    transposed: CSR | None = None
    inn_slots: Int[Array, " nse"] | None = None
    layouts: dict[str, Any] = dataclasses.field(default_factory=dict)
    symmetric: bool = static(default=False)
    num_vertices: Int[Array, ""] | None = None

    @property
    def inn(self) -> CSR | None:
        """CSR of A transposed: the in-edges of each vertex; None where it was not prepared."""
        return self.out if self.symmetric else self.transposed

    @property
    def shape(self) -> tuple[int, int]:
        """(n, n)."""
        return self.out.shape

    @property
    def n(self) -> int:
        """The number of vertices."""
        return self.out.shape[0]

    @property
    def nse(self) -> int:
        """The stored slots of A."""
        return self.out.nse

    @property
    def data(self) -> Shaped[Array, " nse"]:
        """The values of A in slot order."""
        return self.out.data

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the values."""
        return self.out.dtype

    @property
    def T(self) -> SparseMatrix:
        """The transpose of the matrix, whose arrays it shares."""
        return self.out.T

    def todense(self) -> Shaped[Array, "n n"]:
        """The matrix as an array, 0 where no edge is."""
        return self.out.todense()

    @property
    def exists(self) -> Bool[Array, " n"] | None:
        """(n,) bool: the vertices that are no ghosts of `pad`; None where all are."""
        if self.num_vertices is None:
            return None
        return jnp.arange(self.n, dtype=jnp.int32) < self.num_vertices

    @property
    def out_degrees(self) -> Int[Array, " n"]:
        """(n,) int32: stored out-edges of each vertex."""
        return jnp.diff(self.out.indptr)

    @property
    def in_degrees(self) -> Int[Array, " n"]:
        """(n,) int32: stored in-edges of each vertex."""
        if self.inn is None:
            n = self.n
            out, target = self.out.rowcol()
            return jnp.zeros(n, jnp.int32).at[jnp.where(out < n, target, n)].add(1, mode="drop")
        return jnp.diff(self.inn.indptr)

    def with_data(self, data: Values) -> Graph:
        """The same pattern with new values in the slot order of `out`. Traceable.

        On a symmetric graph the new values must be symmetric too, which no call compares again, as
        it would cost more than many calls; `jaxspv.check(G)` does.

        Layouts hold the values in other orders, so change values only by this method: an optimiser
        trains `G.data` and puts it back here. Differentiating by every leaf is an error. A pytree
        gives what `out.with_data` gives, a matrix of tuples: layouts hold numbers alone.
        """
        return self._with_values(self.out.with_data(data))

    def with_edge_data(self, slots: Any, values: Any = None, dup: Any = None) -> Graph:
        """The same pattern with values in the order of the edges that the matrix was made from.

        As `with_edge_data` of the matrix; slots are those of `out`.
        """
        return self._with_values(self.out.with_edge_data(slots, values, dup))

    def astype(self, dtype: Any) -> Graph:
        """The same pattern with values of another dtype."""
        return self._with_values(self.out.astype(dtype))

    def _with_values(self, out: CSR) -> Graph:
        if not isinstance(out, CSR):  # of tuples
            return out
        one_value("a Graph", out)
        constant = dataclasses.replace(out, data=lax.stop_gradient(out.data))
        transposed = self.transposed
        if transposed is not None and self.inn_slots is not None:
            transposed = transposed.with_data(constant.data[self.inn_slots])
        graph = dataclasses.replace(self, out=constant, transposed=transposed)
        layouts = {
            name: layout if (revalue := LAYOUTS[name].revalue) is None else revalue(layout, graph)
            for name, layout in self.layouts.items()
        }
        return dataclasses.replace(graph, out=out, layouts=layouts)

    def __repr__(self) -> str:
        kind = "symmetric" if self.symmetric else "directed"
        names = ", ".join(self.layouts) or "nothing"
        return f"Graph({self.out!r}, {kind}, prepared for {names})"

    def _repr_html_(self) -> str:
        """The HTML representation for notebooks: facts and a picture of the pattern."""
        index = self.out.rowcol()
        facts = {"values": describe(self.data), "edges": self.nse}
        facts |= {"direction": "symmetric" if self.symmetric else "directed"}
        facts |= {"prepared for": ", ".join(self.layouts) or "nothing"}
        picture = pattern(*index, self.shape) if is_concrete(*index) else ""
        return card(f"Graph of {self.n:,} vertices", facts, picture)


def prepare(
    A: SparseMatrix | Graph, *, for_: str | Sequence[str] = ("bfs",), symmetric: bool | None = None
) -> Graph:
    """Computes once what the fast algorithms need of a graph; eager.

    Args:
        A: a square matrix, A[i, j] the edge i -> j, in any format; or a Graph to extend.
        for_: a purpose or several: "bfs", "sssp", "pagerank", "fixpoint", "mxv", "vxm", "bittiled".
        symmetric: declares that A equals its transpose; None: checked.

    Returns:
        A `Graph`, a pytree to pass to jitted functions as an argument.

    Raises:
        ValueError: A is not square, a purpose is unknown, values are traced, or an extent or the
            capacity needs int64 (vertices are numbered by int32).
        TypeError: A is no matrix, or `for_` no text or several.

    >>> import jaxspv as jsp
    >>> path = jsp.from_edges([0, 1, 1, 2], [1, 0, 2, 1], shape=(3, 3))
    >>> jsp.prepare(path, for_=("bfs", "mxv"))
    Graph(CSR(float32[4], shape=(3, 3)), symmetric, prepared for bfs, mxv)
    """
    if not isinstance(for_, (str, Sequence)):
        raise TypeError(f"`for_` must be a purpose or several; got {for_!r}.")
    purposes = (for_,) if isinstance(for_, str) else tuple(for_)
    for name in purposes:
        if not isinstance(name, str) or name not in LAYOUTS:
            raise ValueError(f"`for_` must be among {sorted(LAYOUTS)}; got {name!r}.")
    A = ours(A)
    if hasattr(A, "shape") and not is_concrete(A):
        raise ValueError("`prepare` needs concrete values: call it outside of jit.")
    if isinstance(A, SparseMatrix):
        with known_while_tracing():  # of a matrix that is captured
            A.check_invariants()
    graph = as_graph(A, "`prepare`")
    if graph.inn is None and symmetric:
        graph = dataclasses.replace(graph, symmetric=True)
    needed = any(LAYOUTS[name].needs_inn for name in purposes) or not isinstance(A, Graph)
    if graph.inn is None and needed:
        graph = _with_transpose(graph, check=symmetric is None)
    indptr, indices = graph.out.indptr, graph.out.indices
    small = on_gpu(indices) and by_numpy(indices) and by_numpy(indptr)
    known = jax.device_get(graph) if small else graph  # then no program is compiled
    built = {
        n: LAYOUTS[n].build(known if LAYOUTS[n].numpy else graph)
        for n in purposes
        if n not in graph.layouts
    }
    built = to_device(built, indices)
    return dataclasses.replace(graph, layouts={**graph.layouts, **built})


def as_graph(A: Any, algorithm: str, layouts: tuple[str, ...] | None = None) -> Graph:
    """A Graph as it is; a square matrix as a bare Graph.

    Vertices are numbered by int32 whatever the indices of A are. Rows are sorted and list a column
    once: unsorted ones are sorted, repeated entries added. layouts: those that the algorithm reads,
    None for all; without the others a program does not depend on them. Raises TypeError: `A` is
    neither. ValueError: it is not square, or too large for int32.
    """
    if isinstance(A, Graph):
        if not (A.out.sorted and A.out.unique):
            return Graph(canonical(A.out), symmetric=A.symmetric, num_vertices=A.num_vertices)
        A = linked(A)
        if layouts is None or A.layouts.keys() <= {*layouts}:
            return A
        read = {name: layout for name, layout in A.layouts.items() if name in layouts}
        return Graph(A.out, A.transposed, A.inn_slots, read, A.symmetric, A.num_vertices)
    A = A if isinstance(A, SparseMatrix) else ours(A)
    if not isinstance(A, SparseMatrix):
        raise TypeError(
            f"{algorithm} needs a sparse matrix or a Graph of jaxspv; got {kind(A)}. "
            "Make one with `from_dense`, `from_scipy`, `from_edges`, ..."
        )
    if A.shape[0] != A.shape[1]:
        raise ValueError(f"a graph needs a square matrix; got shape {A.shape}.")
    return Graph(_as_csr(algorithm, A))


def _as_csr(algorithm: str, A: SparseMatrix) -> CSR:
    def convert():
        rows = narrowed(algorithm, A)[0].asformat("csr")
        if not rows.shape[0]:  # a gather from no vertices is an error, even where it is padding
            rows = dataclasses.replace(rows, data=rows.data[:0], indices=rows.indices[:0])
        return rows if rows.sorted and rows.unique else canonical(rows)

    if isinstance(A, CSR) and A.sorted and A.unique:
        return convert()
    arrays, structure = jax.tree.flatten(A)
    # What is captured stays known inside of a trace: checks read values and pattern.
    with known_while_tracing() if is_concrete(arrays) else contextlib.nullcontext():
        return kept(tuple(arrays), structure, convert)


def kind(A: Any) -> str:
    """The type of what is refused; of a sharded graph, what makes a matrix of it."""
    return type(A).__name__ + (": call `unshard()`" if hasattr(A, "unshard") else "")


def arrays_of(graph: Graph) -> tuple[Any, ...]:
    """What identifies a graph for `kept`: values and pattern of A."""
    return graph.out.data, graph.out.indices, graph.out.indptr


def linked(graph: Graph) -> Graph:
    """The graph, differentiated by `out.data` alone.

    It holds its values several times. If every copy had a gradient of its own, an optimiser that
    updates all leaves would make the copies differ from each other.
    """
    values, inn = graph.out.data, graph.transposed
    if not isinstance(values, Tracer) or not jnp.issubdtype(values.dtype, jnp.inexact):
        return graph
    if inn is not None and inn.data is not None and graph.inn_slots is not None:
        data = copied(inn.data, inn.data, values, graph.inn_slots)
        inn = dataclasses.replace(inn, data=data)
    floats = [x for x in jax.tree.leaves(graph.layouts) if jnp.issubdtype(x.dtype, jnp.inexact)]
    data = copied(values, floats, values, None) if floats else values
    return dataclasses.replace(graph, out=dataclasses.replace(graph.out, data=data), transposed=inn)


def _with_transpose(graph: Graph, check: bool) -> Graph:
    """The graph with its in-edges; check: as symmetric where it is."""
    if check and not by_numpy(graph.out.indices) and known_symmetric(graph.out):
        return dataclasses.replace(graph, symmetric=True)
    inn, slots, same = transposed_with_slots(graph.out)
    if check and bool(same):
        return dataclasses.replace(graph, symmetric=True)
    inn = dataclasses.replace(inn, overflow=np.array(inn.overflow))  # for `donate_argnums`
    inn, slots = to_device((inn, slots), graph.out.indices)
    return dataclasses.replace(graph, transposed=inn, inn_slots=slots)
