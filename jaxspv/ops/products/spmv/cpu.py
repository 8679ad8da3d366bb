"""SpMV on a bare CSR for CPU: one native loop over the entries, whatever the lengths of the rows.

    y[i] = add_j mul(A[i, j], x[j])        (rows without entries: the identity of add)

One native loop (see `native_loops`), the one that one would write in C: rows outside, blocks of
`unroll` entries inside, and the rest of a row by masked pairs. A block is read as one slice, so
that only its begin is clamped to the arrays. It runs on one core, at about 0.7 ns an entry and 4 ns
a row. Where rows are short, `csr_spmv_heads` shares most of the work by cores and leaves a loop
only what is behind the first entries of long rows. On other platforms, or batched by vmap, such
loops are dispatched step by step and useless: `xla` is the way there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from ...._core.native_loops import read, read_natural, unfused, write

LONG = 24  # mean entries a row from which on eight are vectorised instead of four
REST = 2  # entries of the rest of a row that are vectorised


MOST = 8  # mean entries a row up to which `heads` is faster than the loop
CACHED = 1 << 19  # entries of long rows up to which the loop is faster than bins
LEAST = 1 << 14  # entries from which on they are


def beats_bins(nse: int, n_rows: int) -> bool:
    """Whether the loop is faster than prepared bins: long rows, of so few entries in all that XLA
    does not share the bins by cores, or gains little by it."""
    return LONG * n_rows <= nse <= CACHED


def csr_spmv(indptr: jax.Array, indices: jax.Array, data: Any, x: jax.Array, **fold) -> jax.Array:
    """`csr_spmv_loop`, or `csr_spmv_heads` where rows are short: by shapes alone."""
    n_rows, nse = indptr.shape[0] - 1, indices.shape[0]
    if nse < LEAST or nse > MOST * n_rows:
        return csr_spmv_loop(indptr, indices, data, x, **fold)
    head = MOST if 2 * nse > MOST * n_rows else MOST // 2
    return csr_spmv_heads(indptr, indices, data, x, head=head, **fold)


def csr_spmv_heads(
    indptr: jax.Array,
    indices: jax.Array,
    data: Any,
    x: jax.Array,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    head: int,
    adds: bool = False,
) -> jax.Array:
    """As `csr_spmv_loop`, with two operations that XLA shares by cores and a loop over the rest.

    First all products, then of each row the first `head`, a power of two; a native loop adds what
    is behind them to the rows that are longer, if there are any.
    """
    n_rows, n_cols = indptr.shape[0] - 1, x.shape[0]
    certain, data = indptr[0] >= 0, jnp.asarray(data)

    def products():
        values = data if data.ndim else jnp.broadcast_to(data, indices.shape)
        return mul(values, _take(x, jnp.clip(indices, 0, n_cols - 1)))

    terms = unfused(certain, products)
    identity = jnp.asarray(identity, terms.dtype)
    begin, end = indptr[:-1], indptr[1:]

    def heads():
        last = terms.shape[0] - 1
        some = [
            jnp.where(begin + k < end, _take(terms, jnp.clip(begin + k, 0, last)), identity)
            for k in range(head)
        ]
        return _folded(some, combine)

    first, more, total_of = running(combine, terms.dtype, adds)

    def longer(i):
        """The next row from i on that has more entries."""
        return lax.while_loop(
            lambda i: (i < n_rows) & (read(indptr, i + 1) - read(indptr, i) <= head),
            lambda i: i + 1,
            i,
        )

    def row(state):
        i, y = state
        end = read(indptr, i + 1)
        _, *sums = lax.while_loop(
            lambda c: c[0] < end,
            lambda c: (c[0] + 1, *more(c[1:], read(terms, c[0]))),
            (read(indptr, i) + head, *first(read(y, i))),
        )
        return longer(i + 1), write(y, i, total_of(sums))

    def tails(y):
        return lax.while_loop(lambda c: c[0] < n_rows, row, (longer(jnp.int32(0)), y))[1]

    y = unfused(certain, heads)
    return lax.cond(jnp.max(end - begin) > head, tails, lambda y: y, y)


def csr_spmv_loop(
    indptr: jax.Array,
    indices: jax.Array,
    data: Any,
    x: jax.Array,
    *,
    mul: Callable[[Any, Any], Any],
    combine: Callable[[Any, Any], Any],
    identity: Any,
    unroll: int | None = None,
    adds: bool = False,
) -> jax.Array:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]); everything may be traced.

    indptr: (n_rows + 1,). indices: (nse,); entries from indptr[-1] on are padding. data: (nse,), or
    a scalar that every entry has. x: (n_cols,). identity: that of `combine` in the dtype `mul`
    returns. unroll: entries a block, a power of two. adds: `combine` is addition; see
    `running`. Returns (n_rows,). O(n_rows + entries).
    """
    n_rows, nse = indptr.shape[0] - 1, indices.shape[0]
    data = jnp.asarray(data)
    scalar = jax.ShapeDtypeStruct((), data.dtype), jax.ShapeDtypeStruct((), x.dtype)
    identity = jnp.asarray(identity, jax.eval_shape(mul, *scalar).dtype)
    y = jnp.full(n_rows, identity)
    if nse == 0 or n_rows == 0 or x.shape[0] == 0:
        return y
    wide = identity.dtype != jnp.bfloat16  # whose conversions count as bytes that a loop touches
    unroll = (8 if nse >= LONG * n_rows else 4) if unroll is None else unroll
    unroll = unroll if wide else 2
    while unroll > nse:
        unroll //= 2
    rest = min(unroll, REST if wide else 1)

    def terms(entry: jax.Array, size: int) -> list[jax.Array]:
        columns = _slice(indices, entry, size)
        values = _slice(data, entry, size) if data.ndim else jnp.broadcast_to(data, size)
        return [mul(values[k], read_natural(x, columns[k])) for k in range(size)]

    def masked(entry: jax.Array, end: jax.Array) -> jax.Array:
        at = jnp.minimum(entry, nse - rest)  # the slice stays where the masks say
        inside = [(at + k >= entry) & (at + k < end) for k in range(rest)]
        some = zip(inside, terms(at, rest), strict=True)
        return _folded([jnp.where(valid, term, identity) for valid, term in some], combine)

    first, more, total_of = running(combine, identity.dtype, adds)

    def row(state):
        i, begin, y = state
        end = read(indptr, i + 1)
        entry, *sums = lax.while_loop(
            lambda c: c[0] + unroll <= end,
            lambda c: (c[0] + unroll, *more(c[1:], _folded(terms(c[0], unroll), combine))),
            (begin, *first(identity)),
        )
        entry, total = lax.while_loop(
            lambda c: c[0] + rest < end,
            lambda c: (c[0] + rest, combine(c[1], masked(c[0], end))),
            (entry, total_of(sums)),
        )
        return i + 1, end, write(y, i, combine(total, masked(entry, end)))

    start = jnp.int32(0), read(indptr, jnp.int32(0)), y
    return lax.while_loop(lambda c: c[0] < n_rows, row, start)[2]


def running(
    combine: Callable[[Any, Any], Any], dtype: Any, adds: bool
) -> tuple[Callable[[Any], Any], Callable[[Any, Any], Any], Callable[[Any], Any]]:
    """`(first, more, total)` of a value that `combine` takes more terms into, one by one.

    `first(value)` gives what a loop carries, `more(carried, term)` adds to it, `total(carried)` is
    the value. Sums of float32 carry what rounding has lost too: without it 10^6 terms are off by
    1e-3 [Knuth, The Art of Computer Programming, volume 2, 4.2.2, theorem B].
    """
    if not adds or dtype != jnp.float32:
        return lambda v: (v,), lambda c, term: (combine(c[0], term),), lambda c: c[0]

    def more(carried, term):
        total, lost = carried
        both = total + term
        taken = both - total
        return both, lost + ((total - (both - taken)) + (term - taken))

    def total(carried):
        whole, lost = carried
        return jnp.where(jnp.isfinite(whole), whole + lost, whole)

    return lambda v: (v, jnp.zeros_like(v)), more, total


def _slice(array: jax.Array, begin: jax.Array, size: int) -> jax.Array:
    return lax.dynamic_slice(array, (begin,), (size,), allow_negative_indices=False)


def _folded(terms: list[jax.Array], combine: Callable[[Any, Any], Any]) -> jax.Array:
    """The fold of a power of two of terms, as a tree."""
    while len(terms) > 1:
        terms = [combine(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
    return terms[0]


def _take(array: jax.Array, index: jax.Array) -> jax.Array:
    """The index is in bounds by construction."""
    return array.at[index].get(mode="promise_in_bounds")
