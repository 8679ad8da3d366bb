"""The derivatives of C = A B over (+, x) for a CPU: native loops along the pattern of C.

    by_a[e] = sum_j w[i, j] B[k, j]          for the entry e = (i, k) of A
    by_b[f] = sum_i w[i, j] A[i, k]          for the entry f = (k, j) of B

with w the cotangents at the entries of C, 0 where C has none. One pass over the products computes
both: row i of C marks its columns by its slots.
"""

from __future__ import annotations

import jax.numpy as jnp
from jax import Array, lax

from ....._core.native_loops import read, write
from .....algebra.semirings import plus_times
from .....formats import CSR
from .accumulate import fill

TURN = 2  # products a turn of the innermost loop: with 4 the body is no longer compiled natively


def product_along(A: CSR, B: CSR, C: CSR) -> Array:
    """(C.nse,) values of A B at the entries of C, which has all of them, or all that fit."""
    return fill(plus_times, A, B, C.indptr, C.indices)[0]


def cotangents(A: CSR, B: CSR, C: CSR, w: Array) -> tuple[Array, Array]:
    """(by_a, by_b) for cotangents w (C.nse,); 0 in padding."""
    (m, _), n, places = A.shape, B.shape[1], C.nse
    zero = jnp.int32(0)

    def row(c):
        i, mark, by_a, by_b = c
        low, high = read(C.indptr, i), read(C.indptr, i + 1)
        _, mark = lax.while_loop(
            lambda c: c[0] < high,
            lambda c: (c[0] + 1, write(c[1], read(C.indices, c[0]), c[0])),
            (low, mark),
        )

        def entry(c):
            e, by_a, by_b = c
            k, x = read(A.indices, e), read(A.data, e)
            end = read(B.indptr, k + 1)

            def products(c):
                f, total, by_b = c
                for u in range(TURN):
                    inside = f + u < end
                    cell = read(mark, jnp.where(inside, read(B.indices, f + u), n))
                    valid = cell >= low  # marks of rows before are smaller
                    cotangent = read(w, jnp.where(valid, cell, places))
                    total = total + jnp.where(valid, cotangent * read(B.data, f + u), 0)
                    at = jnp.where(inside, f + u, B.nse)
                    more = jnp.where(valid, cotangent * x, 0)
                    by_b = write(by_b, at, read(by_b, at) + more)
                return f + TURN, total, by_b

            start = (read(B.indptr, k), jnp.zeros((), w.dtype), by_b)
            _, total, by_b = lax.while_loop(lambda c: c[0] < end, products, start)
            return e + 1, write(by_a, e, total), by_b

        first = (read(A.indptr, i), by_a, by_b)
        last = read(A.indptr, i + 1)
        _, by_a, by_b = lax.while_loop(lambda c: c[0] < last, entry, first)
        return i + 1, mark, by_a, by_b

    marks, w = jnp.full(n + 1, -1, jnp.int32), jnp.append(w, 0)
    state = (zero, marks, jnp.zeros(A.nse, w.dtype), jnp.zeros(B.nse + 1, w.dtype))
    _, _, by_a, by_b = lax.while_loop(lambda c: c[0] < m, row, state)
    return by_a, by_b[:-1]
