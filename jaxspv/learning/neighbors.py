"""`sample_neighbors`: some neighbours of vertices, some of theirs, and so on, in static sizes."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from .._core.eager.arrays import array_of
from .._core.eager.kept import kept
from .._core.eager.programs import one_program
from .._core.indices import check_range, within
from .._core.loops import batch_max, fori_loop, while_loop
from .._core.platforms import default_promotion
from .._core.pytree import is_concrete, result_tuple
from ..algorithms.common.sources import refuse_names
from ..construct.edges import checked_indices
from ..formats import SparseMatrix
from ..formats.base import ours
from ..formats.stored import as_values
from ..generators.graphs import check_key
from ..graph import Graph, as_graph
from ..ops.write_rule.entries import is_plain, take
from ..shapes import Int, Key, Matrix, Sources, Values

STEPS = 12  # bits of a mantissa that index the table of logarithms
UNIT = 22  # fractional bits of a logarithm


def bits(key: Any, shape: tuple[int, ...]) -> Array:
    """Random uint32."""
    return jax.random.bits(key, shape, "uint32")


def below(draw: Array, bound: Array) -> Array:
    """`floor(draw bound / 2^32)`, int32: uniform in [0, bound) up to bound / 2^32.

    In halves of 16 bits: there is no product of 64.
    """
    bound = bound.astype(jnp.uint32)
    low, high = draw & 0xFFFF, draw >> 16
    small, large = bound & 0xFFFF, bound >> 16
    middle = high * small + ((low * small) >> 16)
    carried = (low * large + (middle & 0xFFFF)) >> 16
    return (high * large + (middle >> 16) + carried).astype(jnp.int32)


def _log2_of(whole: Array, mantissa: Array, unit: int) -> Array:
    """`(whole + log2(1 + mantissa / 2^31)) 2^unit` of a mantissa below 2^31, by a table."""
    table = np.round(np.log2(1 + np.arange(2**STEPS + 1) / 2**STEPS) * 2**unit).astype(np.uint32)
    place = (mantissa >> (31 - STEPS)).astype(jnp.int32)
    rest = (mantissa >> (31 - STEPS - 16)) & 0xFFFF
    first, last = jnp.asarray(table)[place], jnp.asarray(table)[place + 1]
    return whole * (1 << unit) + (first + (((last - first) * rest) >> 16)).astype(jnp.int32)


def log2_of_integer(x: Array, unit: int = UNIT) -> Array:
    """`log2(x) 2^unit` of uint32 from 1 on; int32, for units up to 26."""
    zeros = lax.clz(x).astype(jnp.uint32)
    mantissa = (x << zeros) & jnp.uint32(0x7FFFFFFF)
    return _log2_of(31 - zeros.astype(jnp.int32), mantissa, unit)


def log2_of_float(x: Array) -> Array:
    """`log2(x) 2^UNIT` of normal numbers above 0; int32 of float32, int64 of float64."""
    if x.dtype == jnp.float32:
        raw = lax.bitcast_convert_type(x, jnp.uint32)
        return _log2_of((raw >> 23).astype(jnp.int32) - 127, (raw & 0x7FFFFF) << 8, UNIT)
    raw = lax.bitcast_convert_type(x, jnp.uint64)
    mantissa = ((raw >> 21) & 0x7FFFFFFF).astype(jnp.uint32)
    return _log2_of((raw >> 52).astype(jnp.int64) - 1023, mantissa, UNIT)


def race(draw: Array, weight: Array) -> Array:
    """`log2(E / weight) 2^UNIT`, more or less a constant, of an exponential E; see `log2_of_float`.

    `never` where the weight is not above 0. The entry with the smallest is drawn with odds in
    proportion to its weight, the k entries with the smallest like k draws without replacement:
    Gumbel keys with the sign turned.
    Source: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", IPL 97, 2006.
    """
    fine = 26  # close to 1, where the winners of long rows are, uniform numbers differ by little
    level = log2_of_integer(draw | 1, fine).astype(jnp.uint32)
    time = jnp.maximum(jnp.uint32(1 << 31) - level, 1)  # 32 - log2 of the draw
    usable = (weight >= jnp.finfo(weight.dtype).tiny) & (weight < jnp.inf)
    weight = jnp.where(usable, weight, 1)
    less = log2_of_float(weight)
    return jnp.where(usable, log2_of_integer(time).astype(less.dtype) - less, never(weight))


def never(weight: Array) -> np.integer:
    """The largest number that a `race` can have, which none has that is drawn."""
    kind = np.int64 if weight.dtype == jnp.float64 else np.int32
    return kind(np.iinfo(kind).max)


UNROLLED = 16  # fan-outs up to here are compared in one fused program
WIDTH = 32  # slots of a row that a weighted draw looks at together


@result_tuple
class Neighbors(NamedTuple):
    """The result of `sample_neighbors`, hop by hop.

    Attributes:
        nodes: of each hop an int32 array (*shape of the nodes, fan-out of hop 1, ..., of this hop):
            the neighbour; n where there is none.
        slots: in the same shape its entry of A, `A.data[slot]` being its value; nse where there is
            none.
    """

    nodes: tuple[Int[Array, "*hop"], ...]
    slots: tuple[Int[Array, "*hop"], ...]


def sample_neighbors(
    key: Key,
    G: Matrix,
    nodes: Sources,
    fanouts: int | Sequence[int],
    *,
    replace: bool = False,
    weights: Values | None = None,
) -> Neighbors:
    """Draws `fanouts[0]` out-neighbours of each node, `fanouts[1]` of each of those, ...

    On the device, under jit and vmap: sizes are static, a node with fewer neighbours has places
    without one. For the in-neighbours hand over `A.T`.

    Args:
        key: `jax.random.key`; equal keys give equal samples on every platform.
        G: square matrix or `Graph`; A[i, j] the edge i -> j.
        nodes: int array; what is out of range (of a hop before, say) has no neighbours.
        fanouts: positive integers, one a hop.
        replace: whether a neighbour may be drawn again. Without, a node with no more neighbours
            than its fan-out gets all of them, any other a set of them, each set as likely; the
            places of a set are in no random order.
        weights: (nse,) array in slot order, such as `G.data`: neighbours are drawn with odds in
            proportion, without replacement one after the other of those left; those of weight 0 or
            below, subnormal, NaN or infinity never. None: all as likely.

    Returns:
        `Neighbors(nodes, slots)`, one array a hop in each.

    Raises:
        TypeError: `nodes` are no integers, a fan-out is none, G is no matrix.
        ValueError: a fan-out is below 1, a concrete node out of range, `weights` of another shape,
            or G lists a place twice.

    Cost: O(fan-outs squared) comparisons for each node without replacement (Floyd), O(fan-out)
    with; weighted, of the largest number of neighbours of a node of the hop.

    Source: Hamilton, Ying, Leskovec, "Inductive representation learning on large graphs", NeurIPS
    2017; Bentley, Floyd, "A sample of brilliance", CACM 30 (9), 1987.

    >>> import jax, jaxspv as jsp
    >>> star = jsp.from_edges([0, 0, 0, 1], [1, 2, 3, 0], shape=(4, 4))
    >>> found = sample_neighbors(jax.random.key(0), star, [0, 1, 2], [2, 1])
    >>> found.nodes[0].shape, found.nodes[1].shape, found.nodes[0][1:].tolist()
    ((3, 2), (3, 2, 1), [[0, 4], [4, 4]])
    """
    G, own, nse = _by_rows(G)
    sizes = (fanouts,) if isinstance(fanouts, (int, np.integer)) else tuple(fanouts)
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, (int, np.integer)):
            raise TypeError(f"`fanouts` must be integers; got {size!r}.")
        if size < 1:
            raise ValueError(f"`fanouts` must be at least 1; got {size}.")
    nodes = check_nodes("nodes", nodes, G.n)
    if weights is not None:
        weights = as_values(weights, "weights")
        if weights.shape != (nse,):
            raise ValueError(f"`weights` must have shape ({nse},); got {weights.shape}.")
        weights = weights if own is None else take(weights, own)
    how = {"sizes": tuple(map(int, sizes)), "replace": bool(replace)}
    found = one_program(_sampled, check_key(key), G, nodes, weights, **how)
    if own is None:
        return found
    slots = tuple(jnp.where(s < G.nse, take(own, s), nse) for s in found.slots)
    return found._replace(slots=slots)


def _by_rows(G: Any) -> tuple[Graph, Array | None, int]:
    """`G` as a Graph; for its slots those of G, None: they are the same; how many G has.

    Raises:
        ValueError: G lists a place twice, so that no slot holds its value.
    """
    A = G.out if isinstance(G, Graph) else G if isinstance(G, SparseMatrix) else ours(G)
    if not isinstance(A, SparseMatrix) or (is_plain(A) and A.row_sorted):
        graph = as_graph(G, "`sample_neighbors`", ())
        return graph, None, graph.nse
    if not A.unique:
        raise ValueError(
            "`G` must be a matrix that lists no place twice: samples name slots. "
            "`jsp.prepare(G)` joins its entries."
        )
    arrays, structure = jax.tree.flatten(A)

    def numbered():
        rows = A
        if A.edges is not None:  # whose order is no matter here
            rows = dataclasses.replace(A, edges=None)  # pyright: ignore[reportArgumentType]
        numbers = jnp.arange(A.nse, dtype=jnp.int32)
        return as_graph(rows.with_data(numbers), "`sample_neighbors`", ())

    graph = kept(tuple(arrays), ("rows with numbers of slots", structure), numbered)
    return graph, graph.data, A.nse


def check_nodes(name: str, nodes: Any, n: int) -> Array:
    """Vertices as int32 in [0, n], n itself where there is no vertex."""
    refuse_names(name, nodes)
    array = checked_indices(name, nodes)
    if is_concrete(array):
        held = np.asarray(array)
        check_range(name, held[held != n], n)
    return within(array_of(name, array), n) if array.size else jnp.zeros(array.shape, jnp.int32)


@functools.partial(jax.jit, static_argnums=(4, 5))
@default_promotion()
def _sampled(key, G: Graph, nodes, weights, sizes, replace) -> Neighbors:
    found, places = [], []
    for hop, size in zip(jax.random.split(key, len(sizes)), sizes, strict=True):
        first, degree = rows_of(G, nodes.ravel())
        if weights is not None:
            wide = weights if weights.dtype == jnp.float64 else weights.astype(jnp.float32)
            slots = _weighted(hop, first, degree, wide, size, replace)
        else:
            draws = bits(hop, (size, degree.shape[0]))
            picked = below(draws, degree) if replace else _distinct(draws, degree, size)
            valid = jnp.where(replace, degree > 0, jnp.arange(size)[:, None] < degree)
            slots = jnp.where(valid, first + picked, G.nse)
        slots = slots.T.reshape(*nodes.shape, size)
        nodes = jnp.where(slots < G.nse, take(G.out.indices, slots), G.n).astype(jnp.int32)
        found.append(nodes)
        places.append(slots)
    return Neighbors(tuple(found), tuple(places))


def rows_of(G: Graph, nodes: Array) -> tuple[Array, Array]:
    """The first slot and the number of the entries of each node; no entries out of range."""
    last = jnp.minimum(nodes + 1, G.n)
    first = take(G.out.indptr, jnp.minimum(nodes, G.n))
    return first, take(G.out.indptr, last) - first


def _distinct(draws: Array, degree: Array, size: int) -> Array:
    """(size, nodes): a uniform set of `size` of [0, degree), by Floyd; 0, 1, ... where all fit.

    Step i draws of [0, degree - size + i]; what is there already stands for the last of them, which
    cannot be.
    """
    enough = degree > size

    def chosen_at(i, draw, before):
        last = degree - size + i
        t = below(draw, last + 1)
        t = jnp.where(jnp.any(before == t, axis=0), last, t)
        return jnp.where(enough, t, i)

    if size <= UNROLLED:
        rows: list[Array] = []
        for i in range(size):
            before = jnp.stack(rows) if rows else jnp.full((1, degree.shape[0]), -1, jnp.int32)
            rows.append(chosen_at(i, draws[i], before))
        return jnp.stack(rows)

    def step(i, chosen):
        row = chosen_at(i, lax.dynamic_index_in_dim(draws, i, keepdims=False), chosen)
        return lax.dynamic_update_index_in_dim(chosen, row, i, 0)

    return fori_loop(0, size, step, jnp.full(draws.shape, -1, jnp.int32))


def _weighted(key, first, degree, weights, size, replace) -> Array:
    """(size, nodes) slots of the smallest `race` of each row, WIDTH entries at a time."""
    count, nse = degree.shape[0], weights.shape[0]
    longest = batch_max(jnp.max(degree, initial=0))

    def step(state):
        block, best, slots = state
        at = block * WIDTH + jnp.arange(WIDTH, dtype=jnp.int32)[:, None]
        valid, slot = at < degree, first + at
        weight = jnp.where(valid, take(weights, slot), 0)
        draw = functools.partial(bits, jax.random.fold_in(key, block))
        if replace:
            times = race(draw((WIDTH, size, count)), weight[:, None])
            winner = jnp.argmin(times, axis=0)
            time = jnp.min(times, axis=0)
            slot = first + block * WIDTH + winner.astype(jnp.int32)
            better = time < best
            best, slots = jnp.where(better, time, best), jnp.where(better, slot, slots)
        else:
            times = race(draw((WIDTH, count)), weight)
            whole = jnp.concatenate([best, times]), jnp.concatenate([slots, slot])
            best, slots = (x[:size] for x in lax.sort(whole, dimension=0, num_keys=1))
        return block + 1, best, slots

    best = jnp.full((size, count), never(weights))
    start = jnp.int32(0), best, jnp.full((size, count), nse, jnp.int32)
    _, best, slots = while_loop(lambda s: s[0] * WIDTH < longest, step, start)
    return jnp.where(best < never(weights), slots, nse)
