"""SpMV on a bare CSR for CPU: one native loop over the entries, whatever the lengths of the rows.

    y[i] = add_j mul(A[i, j], x[j])        (rows without entries: the identity of add)

XLA's CPU compiler turns a `lax.while_loop` whose body touches less than a kilobyte into one native
function, without a dispatched operation per step. So this is the loop one would write in C: rows
outside, blocks of `unroll` entries inside, the last block of a row masked. It runs on one core, at
about 1 ns an entry and 5 ns a row. On other platforms, or batched by vmap, such a loop is
dispatched step by step and useless: `xla` is the way there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax


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
) -> jax.Array:
    """y[i] = combine over the entries j of row i of mul(A[i, j], x[j]); everything may be traced.

    indptr: (n_rows + 1,). indices: (nse,); entries from indptr[-1] on are padding. data: (nse,), or
    a scalar that every entry has. x: (n_cols,). identity: that of `combine` in the dtype `mul`
    returns. unroll: entries a block, a power of two. Returns (n_rows,). O(n_rows + entries).
    """
    n_rows, nse = indptr.shape[0] - 1, indices.shape[0]
    data = jnp.asarray(data)
    scalar = jax.ShapeDtypeStruct((), data.dtype), jax.ShapeDtypeStruct((), x.dtype)
    identity = jnp.asarray(identity, jax.eval_shape(mul, *scalar).dtype)
    y = jnp.full(n_rows, identity)
    if nse == 0 or n_rows == 0 or x.shape[0] == 0:
        return y
    unroll = (8 if 2 * nse > 9 * n_rows else 4) if unroll is None else unroll

    def block(entry: jax.Array, end: jax.Array | None) -> jax.Array:
        terms = []
        for place in range(unroll):
            value = _load(data, entry + place) if data.ndim else data
            term = mul(value, _load(x, _load(indices, entry + place)))
            terms.append(term if end is None else jnp.where(entry + place < end, term, identity))
        while len(terms) > 1:
            terms = [combine(a, b) for a, b in zip(terms[::2], terms[1::2], strict=True)]
        return terms[0]

    def row(state):
        i, begin, y = state
        end = _load(indptr, i + 1)
        entry, folded = lax.while_loop(
            lambda inner: inner[0] + unroll < end,
            lambda inner: (inner[0] + unroll, combine(inner[1], block(inner[0], None))),
            (begin, identity),
        )
        folded = combine(folded, block(entry, end))
        return i + 1, end, lax.dynamic_update_slice(y, folded.reshape(1), (i,))

    state = lax.while_loop(
        lambda state: state[0] < n_rows, row, (jnp.int32(0), _load(indptr, jnp.int32(0)), y)
    )
    return state[2]


def _load(array: jax.Array, index: jax.Array) -> jax.Array:
    """array[index], clamped: what lies outside is masked by the caller."""
    return lax.dynamic_slice(array, (index,), (1,), allow_negative_indices=False).reshape(())
