"""Automata and transducers with values on their edges: composition, projection, sums over paths."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
import scipy  # its modules are imported when they are first used

from ..._core.eager.arrays import array_of, known_while_tracing
from ..._core.indices import LIMIT, check_range
from ..._core.pytree import is_concrete, pytree_dataclass, static
from ..._core.tuples import choose, multiplied, ones_unless, take
from ...algebra.families import one_of
from ...algebra.monoid import values_of
from ...algebra.semiring import Semiring
from ...algebra.semirings import as_semiring
from ...construct.edges import checked_indices
from ...construct.from_arrays import from_edges
from .api import closure

if TYPE_CHECKING:
    from ...formats.tuples import Tuples
    from ...shapes import Indices, Matrix

__all__ = ["Automaton", "automaton", "compose", "project"]

EPSILON = 0  # the label of an edge that reads, or writes, nothing


def _of_edges(data: Any) -> Any:
    return jax.tree.map(lambda v: array_of("data", v), data)


@pytree_dataclass
class Automaton:
    """A graph whose edges read a label, write a label and have a value; `automaton` makes one.

    Edges between the same states may be many. The fields that name edges are NumPy arrays.

    Attributes:
        data: a pytree of arrays (edges, ...): the values.
        source: (edges,) int32 states.
        target: (edges,) int32 states.
        input: (edges,) int32 labels that are read; 0 is epsilon, which reads nothing.
        output: (edges,) int32 labels that are written; 0 writes nothing.
        final: int32 states in which a path may end.
        start: the state in which all paths begin, static.
        states: their number, static.

    >>> automaton([0, 1], [1, 1], [1, 2], final=[1])
    Automaton(2 states, 2 edges)
    """

    data: Any
    source: Any
    target: Any
    input: Any
    output: Any
    final: Any
    start: int = static()
    states: int = static()

    def with_data(self, data: Any) -> Automaton:
        """The same edges with other values, a pytree of arrays (edges, ...)."""
        return dataclasses.replace(self, data=_of_edges(data))

    def matrix(self, semiring: Semiring | str) -> Matrix | Tuples:
        """(states, states) the sum of the values of all edges from one state to another.

        What `jsp.closure` takes. Differentiable in the values.

        Raises:
            ValueError: the edges are traced.
        """
        semiring = as_semiring(semiring)
        source, target = _known(self, "source", "target")
        key, slot = np.unique(source * self.states + target, return_inverse=True)
        order = np.argsort(slot, kind="stable")
        row, col = key // self.states, key % self.states
        with known_while_tracing():
            A = from_edges(row, col, shape=(self.states, self.states))
        data = take(self.data, order)
        if len(key) < len(order):
            if semiring.add.of_tuples:  # edges of another kind than sums, as in `k_best`
                one = jax.tree.map(jnp.asarray, one_of(semiring))
                one = jax.tree.map(lambda v: jnp.broadcast_to(v, (len(order), *v.shape)), one)
                data = multiplied(semiring, one, data)
            slots = jnp.asarray(slot[order], jnp.int32)
            data = semiring.add.segment_scan(data, slots, len(key), sorted=True)
        return A.with_data(data)

    def total(self, semiring: Semiring | str) -> Any:
        """The sum over all paths from the start to a final state; of a path, the product.

        By `jsp.closure`, whose rules for graphs with cycles hold. Differentiable in the values.

        Raises:
            ValueError: as `jsp.closure`.
        """
        semiring = as_semiring(semiring)
        x = closure(self.matrix(semiring), semiring, start=self.start).x
        return semiring.add.reduce(take(x, self.final), 0)

    def __repr__(self) -> str:
        return f"Automaton({self.states} states, {self.source.shape[0]} edges)"


def automaton(
    source: Indices,
    target: Indices,
    input: Indices,
    output: Indices | None = None,
    data: Any = None,
    *,
    final: Any,
    start: int = 0,
) -> Automaton:
    """An automaton, or with `output` a transducer, of edges with labels.

    Args:
        source: (edges,) states, integers from 0.
        target: (edges,) states.
        input: (edges,) labels, integers from 0; 0 is epsilon, which reads nothing.
        output: (edges,) labels that are written; None: `input`.
        data: a pytree of arrays (edges, ...); None: zeros, which are one in the semirings of costs
            and of logs.
        final: a state or states in which paths may end; for weights of its own let an epsilon edge
            lead there.
        start: the state in which paths begin.

    Returns:
        An `Automaton`.

    Raises:
        TypeError: a state or a label is no integer.
        ValueError: lengths differ, a state or a label is negative or 2^31 - 1 or more, or they are
            traced.

    >>> word = automaton([0, 1], [1, 2], [3, 5], final=2)
    >>> word.output.tolist()
    [3, 5]
    """
    output = input if output is None else output
    given = dict(source=source, target=target, input=input, output=output, final=final, start=start)
    if not is_concrete(*jax.tree.leaves(given)):
        raise ValueError("states and labels must be known; `data` alone may be traced.")
    edges = [np.asarray(checked_indices(name, v)).reshape(-1) for name, v in given.items()]
    for name, index in zip(given, edges, strict=True):
        check_range(name, index, LIMIT)
    edges = [v.astype(np.int32) for v in edges[:5]]
    if len({v.shape for v in edges[:4]}) > 1:
        raise ValueError(f"edges must be of one length; got {[v.size for v in edges[:4]]}.")
    count = edges[0].size
    data = jnp.zeros(count) if data is None else _of_edges(data)
    if wrong := [v.shape for v in jax.tree.leaves(data) if v.shape[:1] != (count,)]:
        raise ValueError(f"`data` must have leaves ({count}, ...); got shapes {wrong}.")
    ends = np.concatenate([*edges[:2], edges[4], [start]])
    final = np.unique(edges[4])  # a path ends once, if its state is named twice too
    states = int(ends.max()) + 1
    return Automaton(data, *edges[:4], final=final, start=int(start), states=states)


def project(A: Automaton, side: Literal["input", "output"]) -> Automaton:
    """The automaton of what a transducer reads (`"input"`) or writes (`"output"`).

    Args:
        A: an `Automaton`.
        side: whose labels both sides of each edge get.

    Returns:
        An `Automaton` with the edges of A.

    Raises:
        ValueError: another side.

    >>> project(automaton([0], [1], [3], [5], final=1), "output").input.tolist()
    [5]
    """
    if side not in ("input", "output"):
        raise ValueError(f'`side` must be "input" or "output"; got {side!r}.')
    labels = getattr(A, side)
    return dataclasses.replace(A, input=labels, output=labels)


def compose(A: Automaton, B: Automaton, semiring: Semiring | str) -> Automaton:
    """What A writes is read by B: `C(x, z) = add over y of mul(A(x, y), B(y, z))`.

    A state is a pair of states. An edge of A that writes a label goes with each edge of B that
    reads it, and their values are multiplied. Where A writes epsilon, A alone moves; where B reads
    epsilon, B alone. Between two labels A moves first: once B has moved alone, A may not until a
    label is passed, so that each pair of paths is one path of C, and no sum counts it twice.

    Args:
        A: an `Automaton`; edges are on the host, only its `data` may be traced.
        B: an `Automaton` with values of the same kind.
        semiring: of the values. Values that number edges (`k_best`, `top_k_proofs`) are lifted
            after composition.

    Returns:
        An `Automaton` of the states on a path from the start to a final state. Differentiable in
        the values of A and B.

    Raises:
        ValueError: edges are traced.

    Source: Mohri, Pereira and Riley, "Weighted automata in text and speech processing", ECAI 1996;
    Allauzen and Mohri, "3-way composition of weighted finite-state transducers", CIAA 2008.

    >>> word = automaton([0, 1], [1, 2], [1, 2], final=2)
    >>> upper = automaton([0, 0], [0, 0], [1, 2], [11, 12], jax.numpy.array([1.0, 2.0]), final=0)
    >>> C = compose(word, upper, "min_plus")
    >>> C.output.tolist(), float(C.total("min_plus"))
    ([11, 12], 3.0)
    """
    semiring = as_semiring(semiring)
    source, target, first, second, final = _paired(A, B)
    kept, source, target, final, states = _useful(source, target, final)
    first, second = first[kept], second[kept]
    one = one_of(semiring)

    def factors(data, edge):
        found = ones_unless(edge >= 0, take(data, edge))
        ones = jax.tree.map(lambda o, v: jnp.asarray(values_of(o, v.dtype)), one, found)
        return choose(edge >= 0, found, ones)

    data = multiplied(semiring, factors(A.data, first), factors(B.data, second))
    read, written = (
        np.append(v, EPSILON)[edge].astype(np.int32)  # the last where it stays, at -1
        for v, edge in ((A.input, first), (B.output, second))
    )
    return Automaton(data, source, target, read, written, final, start=0, states=states)


def _paired(A: Automaton, B: Automaton):
    """Edges between the pairs that are reached, as source, target, edge of A, edge of B (-1: it
    stays); and the final pairs. Pairs are numbered as they are reached, the start is 0."""
    a_source, a_target, a_out, a_final = _known(A, "source", "target", "output", "final")
    b_source, b_target, b_in, b_final = _known(B, "source", "target", "input", "final")
    b_labels = int(max(a_out.max(initial=0), b_in.max(initial=0))) + 1
    a_order = np.argsort(a_source, kind="stable")
    b_key = b_source * b_labels + b_in
    b_order = np.argsort(b_key, kind="stable")
    a_sorted, b_sorted = a_source[a_order], b_key[b_order]
    number: dict[int, int] = {}
    at = np.array([2 * (A.start * B.states + B.start)])  # 2 * pair + whether B has moved alone
    number[int(at[0])] = 0
    names, found = at, []
    while at.size:
        p, q, b_moved = at // 2 // B.states, at // 2 % B.states, at % 2
        own, edge = _between(a_sorted, p, p)
        edge = a_order[edge]
        alone = a_out[edge] == EPSILON
        may = alone & (b_moved[own] == 0)
        moves = [(own[may], edge[may], np.full(may.sum(), -1), 2 * (
            a_target[edge[may]] * B.states + q[own[may]]))]  # fmt: skip
        own, edge = own[~alone], edge[~alone]
        key = q[own] * b_labels + a_out[edge]
        of, with_ = _between(b_sorted, key, key)
        own, edge, with_ = own[of], edge[of], b_order[with_]
        moves.append((own, edge, with_, 2 * (
            a_target[edge] * B.states + b_target[with_])))  # fmt: skip
        own, edge = _between(b_sorted, q * b_labels, q * b_labels)
        edge = b_order[edge]
        moves.append((own, np.full(own.size, -1), edge, 2 * (
            p[own] * B.states + b_target[edge]) + 1))  # fmt: skip
        own, first, second, key = (np.concatenate(v) for v in zip(*moves, strict=True))
        old = len(number)
        target = np.array([number.setdefault(k, len(number)) for k in key.tolist()], np.int64)
        source = np.array([number[k] for k in at.tolist()], np.int64)[own]
        found.append((source, target, first, second))
        fresh, where = np.unique(target, return_index=True)
        at = key[where[fresh >= old]]
        names = np.append(names, at)
    source, target, first, second = (np.concatenate(v) for v in zip(*found, strict=True))
    p, q = names // 2 // B.states, names // 2 % B.states
    final = np.flatnonzero(np.isin(p, a_final) & np.isin(q, b_final))
    return source, target, first, second, final


def _between(keys: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For each pair of bounds the places in sorted `keys` between them: whose, and which."""
    begin, end = np.searchsorted(keys, low), np.searchsorted(keys, high, "right")
    sizes = end - begin
    own = np.repeat(np.arange(sizes.size), sizes)
    return own, np.arange(own.size) + np.repeat(begin - np.cumsum(sizes) + sizes, sizes)


def _useful(source: np.ndarray, target: np.ndarray, final: np.ndarray):
    """The edges on paths to a final state, their states numbered anew in the same order."""
    n = int(max(source.max(initial=0), target.max(initial=0))) + 1
    rows, cols = np.append(target, np.full(final.size, n)), np.append(source, final)
    back = scipy.sparse.csr_array((np.ones(rows.size), (rows, cols)), shape=(n + 1, n + 1))
    reached = scipy.sparse.csgraph.breadth_first_order(back, n, return_predecessors=False)
    useful = np.zeros(n + 1, bool)
    useful[reached] = True
    useful[0], useful[n] = True, False  # the start stays
    kept = np.flatnonzero(useful[source] & useful[target])
    rank = (np.cumsum(useful) - 1).astype(np.int32)
    return kept, rank[source[kept]], rank[target[kept]], rank[final], int(useful.sum())


def _known(A: Automaton, *names: str) -> list[np.ndarray]:
    values = [getattr(A, name) for name in names]
    if not is_concrete(values):
        raise ValueError(
            "the edges of an automaton must be known: capture it in the jitted function and give "
            "its values alone, by `with_data`."
        )
    return [np.asarray(v, np.int64) for v in values]
