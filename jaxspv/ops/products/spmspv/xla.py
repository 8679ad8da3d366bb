"""The methods of sparse matrix times sparse vector on every platform."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax.numpy as jnp
from jax import Array, lax

from ...._core.loops import batch_any, batch_max
from ...._core.reductions import rounded
from ....algebra.semirings import Semiring
from ....formats import Tiled
from ....formats.base import serves
from ....formats.stored import in_slots
from ....formats.tiled.vector import TiledVector
from ....formats.vector import SparseVector, from_present
from ..common.expand import Runs, capacities, edge_slots, run_of_each, select_runs
from ..common.product import product, result_dtype, safe, take
from .api import needs_columns, op


def merge_rows(keys: Array, runs: Runs) -> tuple[Array, Array]:
    """Merges runs of ascending keys: `(sorted keys, order)` with `sorted = keys[order]`, stable.

    Keys from `runs.total` on are padding and larger than any other. In round t runs r and r ^ 2^t
    are merged: an element's new place is its own rank plus its rank in the partner run, found by
    binary search (Cole-style ranking; log2(count) rounds, each O(size log of the longest run)).

    Args:
        keys: (size,) int32.
        runs: which keys belong to the same run.
    """
    size, k = keys.shape[0], runs.ends.shape[0]
    place, total = jnp.arange(size, dtype=jnp.int32), runs.total
    ends = jnp.minimum(runs.ends, total)
    begin = jnp.concatenate([jnp.zeros(1, jnp.int32), ends])  # (k + 1,) start of run r
    run = run_of_each(runs.ends, jnp.int32(0), size)

    def round_(state):
        width, keys, order, run = state
        block = run // width
        low = begin[jnp.minimum(block * width, k)]
        partner = block ^ 1
        p_low = begin[jnp.minimum(partner * width, k)]
        p_high = begin[jnp.minimum((partner + 1) * width, k)]
        left = block < partner  # ties: the left run first
        rank = _rank(keys, keys, p_low, p_high, ~left)
        pair = jnp.minimum(low, p_low)
        target = jnp.where(place < total, pair + (place - low) + rank, place)
        return width * 2, *(
            jnp.zeros_like(v).at[target].set(v, unique_indices=True) for v in (keys, order, run)
        )

    state = (jnp.int32(1), keys, place, run)
    _, keys, order, _ = lax.while_loop(lambda s: batch_any(s[0] < runs.count), round_, state)
    return keys, order


def _rank(keys: Array, values: Array, low: Array, high: Array, or_equal: Array) -> Array:
    """The number of ascending `keys[low:high]` that are < value, or <= value where `or_equal`."""
    steps = batch_max(32 - lax.clz(jnp.max(high - low)))  # bits of the longest stretch

    def step(_, bounds):
        low, high = bounds
        middle = (low + high) // 2
        key = keys[jnp.minimum(middle, keys.shape[0] - 1)]
        goes = (low < high) & ((key < values) | (or_equal & (key == values)))
        return jnp.where(goes, middle + 1, low), jnp.where(goes | (low >= high), high, middle)

    return lax.fori_loop(0, steps, step, (low, high))[0] - low


CHUNKS = (1 << 14, 1 << 19)  # edges a step of the scatter method, for small and large frontiers
SMALL = 1024  # edges that "adaptive" sorts


class Call(NamedTuple):
    """A checked product.

    Attributes:
        allowed: (m,) bool, the rows that may be written; None: all.
        flip: `semiring.mul` gets the value of x first.
        nse: capacity of the result.
    """

    semiring: Semiring
    A: Any
    x: SparseVector
    allowed: Array | None
    flip: bool
    nse: int

    @property
    def dtype(self) -> Any:
        """The dtype of a term."""
        return result_dtype(self.semiring, self.A, self.x, self.flip)

    @property
    def runs(self) -> Runs:
        """The columns that x selects."""
        return select_runs(self.A.indptr, self.x.indices, self.x.count)

    def kept(self, flags: Array, out: Array) -> Array:
        """Those of the flags whose row may be written."""
        if self.allowed is None:
            return flags
        return flags & self.allowed.at[out].get(mode="fill", fill_value=False)

    def product(self, data, out, inner, values) -> Array:
        """Terms of entries of A and of x."""
        return product(self.semiring, data, out, inner, values, flip=self.flip)

    def beyond(self, data, values) -> Array:
        """Whether each term does not fit its dtype."""
        overflow = self.semiring.mul.overflow
        if overflow is None:
            return jnp.asarray(False)
        return overflow(values, data) if self.flip else overflow(data, values)

    def sealed(self, y: SparseVector, flag: Array) -> SparseVector:
        """y with what overflowed before."""
        overflow = y.overflow | flag | self.A.overflow | self.x.overflow
        return SparseVector(y.data, y.indices, y.count, overflow, y.shape)

    def empty(self, nse: int) -> SparseVector:
        """A result without entries."""
        (m, _), data = self.A.shape, jnp.zeros(nse, self.dtype)
        none = jnp.full(nse, m, jnp.int32)
        return SparseVector(data, none, jnp.int32(0), self.A.overflow | self.x.overflow, (m,))


def register(name: str, **how: Any) -> Callable[..., Any]:
    """Decorator: enters `rule(call)` under a name, for calls that may have products."""

    def add(rule):
        def run(semiring, A, x, allowed, *, flip, nse):
            call = Call(semiring, A, x, allowed, flip, nse)
            return call.empty(nse) if 0 in (A.nse, x.nse, *A.shape) else rule(call)

        op.register(name, **how)(run)
        return rule

    return add


def _needs_sorted_columns(semiring, A: Any, x, allowed, **_) -> str | None:
    if A.compressed == 1 and not A.sorted:
        return "it merges columns in order, and those of A are not sorted"
    return needs_columns(semiring, A, x, allowed)


def _needs_scatter(semiring, A, x, allowed, **_) -> str | None:
    if not semiring.add.scatters:
        return f"the monoid `{semiring.add.name}` has no scatter"
    return needs_columns(semiring, A, x, allowed)


@register("adaptive", refuse=needs_columns)
def _adaptive(c: Call) -> SparseVector:
    """Few edges: "sort" in a small buffer. Many: "scatter", or "sort" where there is no scatter."""
    many = _sort if _needs_scatter(c.semiring, c.A, c.x, c.allowed) else _scatter
    if c.A.nse <= SMALL:
        return _sort(c)
    runs = c.runs
    few = batch_max(runs.total) <= SMALL
    return lax.cond(few, lambda _: _sort_buffer(c, runs, SMALL), lambda _: many(c), None)


@register("scatter", refuse=_needs_scatter)
def _scatter(c: Call) -> SparseVector:
    """No sort: products go to a dense accumulator as they come, chunk by chunk. O(edges + m)."""
    runs = c.runs
    few, most = (functools.partial(_scatter_chunks, c, runs, min(k, c.A.nse)) for k in CHUNKS)
    if c.A.nse <= CHUNKS[0]:
        total, present, flag = few()
    else:
        total, present, flag = lax.cond(batch_max(runs.total) <= CHUNKS[0], few, most)
    return c.sealed(from_present(total, present, c.nse), flag)


def _scatter_chunks(c: Call, runs: Runs, size: int) -> tuple[Array, Array, Array]:
    add, m = c.semiring.add, c.A.shape[0]
    start = add.accumulator(m, c.dtype)

    def step(state):
        first, total, present, flag = state
        out, terms, over = _edge_terms(c, runs, first, size)
        return first + size, *add.accumulate(total, present, out, add.admit(terms)), flag | over

    state = (jnp.int32(0), start, jnp.zeros(m, bool), jnp.asarray(False))
    state = lax.while_loop(lambda s: batch_any(s[0] < runs.total), step, state)
    _, total, present, flag = state
    return rounded(total, c.dtype), present, flag


def _edge_terms(c: Call, runs: Runs, first: Array, size: int) -> tuple[Array, Array, Array]:
    """(out, term, term overflow) of `size` edges from `first` on; `out` is m where none is."""
    slot, owner, valid = edge_slots(runs, first, size)
    m = c.A.shape[0]
    out = take(c.A.indices, slot)
    out = jnp.where(c.kept(valid, out), out, m)
    valid = out < m
    data = safe(take(c.A.data, slot), valid)
    inner = take(c.x.indices, owner)
    values = safe(take(c.x.data, owner), valid)
    over = jnp.any(valid & c.beyond(data, values))
    return out, c.product(data, out, inner, values), over


@register("sort", refuse=needs_columns)
def _sort(c: Call) -> SparseVector:
    """Radix sort of the products by row, then segmented reduction, in the smallest buffer."""
    return _in_smallest(c, functools.partial(_sort_buffer, c))


def _in_smallest(c: Call, buffer: Callable[[Runs, int], SparseVector]) -> SparseVector:
    """`buffer(runs, size)` in the smallest of a few sizes that holds all products."""
    runs, sizes = c.runs, capacities(c.A.nse)
    branch = jnp.searchsorted(jnp.asarray(sizes, jnp.int32), batch_max(runs.total))
    return lax.switch(branch, [lambda _, size=size: buffer(runs, size) for size in sizes], None)


def _sort_buffer(c: Call, runs: Runs, size: int) -> SparseVector:
    edges = jnp.arange(size, dtype=jnp.int32)
    out, terms, over = _edge_terms(c, runs, jnp.int32(0), size)
    out, order = lax.sort((out, edges), num_keys=1, is_stable=True)
    return c.sealed(_reduced(c, out, terms[order]), over)


@register("merge", refuse=_needs_sorted_columns)
def _merge(c: Call) -> SparseVector:
    """k-way merge of the selected columns, each sorted already, then segmented reduction."""

    def buffer(runs, size):
        out, terms, over = _edge_terms(c._replace(allowed=None), runs, jnp.int32(0), size)
        out, order = merge_rows(out, runs)
        if c.allowed is not None:
            keep = c.allowed.at[out].get(mode="fill", fill_value=False)
            out, order = lax.sort((jnp.where(keep, out, c.A.shape[0]), order), num_keys=1)
        return c.sealed(_reduced(c, out, terms[order]), over)

    return _in_smallest(c, buffer)


def _reduced(c: Call, out: Array, terms: Array) -> SparseVector:
    """Products sorted by `out` (m in padding, at the end): flags, then segmented reduction."""
    m, edges = c.A.shape[0], out.shape[0]
    capacity = min(c.nse, edges)
    starts = jnp.append(True, out[1:] != out[:-1]) & (out < m)
    group = jnp.where(out < m, jnp.cumsum(starts, dtype=jnp.int32) - 1, edges)
    values = c.semiring.add.segment_reduce(terms, group, capacity, sorted=True)
    at = jnp.where(starts, group, edges)
    indices = jnp.full(capacity, m, jnp.int32).at[at].set(out, mode="drop")
    count = jnp.sum(starts, dtype=jnp.int32)
    values, indices = in_slots(values, c.nse, 0), in_slots(indices, c.nse, m)
    return SparseVector(values, indices, jnp.minimum(count, c.nse), count > c.nse, (m,))


@register("tile", refuse=serves(Tiled, reads="tiles"))
def _tile(c: Call) -> SparseVector:
    """Each entry reads the tile of x for its columns; empty tiles are skipped. O(nse)."""
    return _by_entries(c, TiledVector.from_sparse(c.x, c.A.nt).lookup)


@register("row")
def _row(c: Call) -> SparseVector:
    """Every entry searches its column in x, rows combine, prefix sums compact. O(nse log k)."""
    x = c.x
    indices = jnp.where(x.valid(), x.indices, x.shape[0])

    def look(inner):
        owner = jnp.minimum(jnp.searchsorted(indices, inner).astype(jnp.int32), x.nse - 1)
        return take(x.data, owner), indices[owner] == inner

    return _by_entries(c, look)


@register("dense")
def _dense(c: Call) -> SparseVector:
    """SpMV on x made dense, with its structure as a second array. O(nse)."""

    def look(inner):
        here = c.x.structure().at[inner].get(mode="fill", fill_value=False)
        return take(c.x.todense(), inner), here

    return _by_entries(c, look)


def _by_entries(c: Call, look: Callable[[Array], tuple[Array, Array]]) -> SparseVector:
    """A term for every entry of A, with what `look(columns)` finds: (values of x, whether any)."""
    m, (out, inner) = c.A.shape[0], c.A.rowcol()
    values, found = look(inner)
    found = c.kept(found & (out < m), out)
    data, values = safe(c.A.data, found), safe(values, found)
    terms = c.product(data, out, inner, values)
    target = jnp.where(found, out, m)
    total = c.semiring.add.segment_reduce(terms, target, m)
    present = jnp.zeros(m, bool).at[target].set(True, mode="drop")
    over = jnp.any(found & c.beyond(data, values))
    return c.sealed(from_present(total, present, c.nse), over)
