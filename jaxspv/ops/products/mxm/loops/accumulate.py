"""The values of a sparse product for a CPU, where its pattern is known: one native loop."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ....._core.compat import large_loops_are_native
from ....._core.native_loops import read, read_natural, write_natural
from .....algebra.semirings import Semiring
from .....formats.convert.counting_sort import Compressed
from ..result import term_dtype

# Products, and entries of C, a turn of the innermost loops: so many that all stays native.
UNROLL = 4 if large_loops_are_native() else 2


def fill(
    semiring: Semiring,
    a: Compressed,
    b: Compressed,
    ends: Array,
    columns: Array,
    n: int,
    *,
    transposed: bool = False,
) -> tuple[Array, Array]:
    """The values of C by rows, of `columns` between `ends`, and whether a product did not fit its
    dtype. Where `transposed`, a, b and C are the transposes of B, A and A B.

    `any` takes the products from the last to the first, each over the one before.
    """
    m, add, mul = a.indptr.shape[0] - 1, semiring.add, semiring.mul
    dtype = term_dtype(semiring, *(v.data.dtype for v in ((b, a) if transposed else (a, b))))
    identity = jnp.asarray(add.identity_of(dtype))
    first_wins = add.takes_first
    spare = n + 1  # for what does not count; place n is the 0 of padding

    def row(c):
        i, begin, low, acc, values, flag = c
        last, high = read(a.indptr, i + 1), read(ends, i + 1)

        def clear(c):
            p, acc = c
            for u in range(UNROLL):
                j = jnp.where(p + u < high, read_natural(columns, p + u), spare)
                acc = write_natural(acc, j, identity)
            return p + UNROLL, acc

        _, acc = lax.while_loop(lambda c: c[0] < high, clear, (low, acc))

        def entry(c):
            e, acc, flag = c
            at = begin + last - 1 - e if first_wins else e
            k, x = read(a.indices, at), read(a.data, at)
            end = read(b.indptr, k + 1)

            def products(c):
                f, acc, flag = c
                for u in range(UNROLL):
                    j = jnp.where(f + u < end, read_natural(b.indices, f + u), spare)
                    y = read_natural(b.data, f + u)
                    terms = (y, x, j, k, i) if transposed else (x, y, i, k, j)
                    value = add.admit(mul.at(*terms))
                    if not first_wins:
                        value = add.op(read_natural(acc, j), value).astype(dtype)
                    acc = write_natural(acc, j, value)
                    if mul.overflow is not None:
                        flag = flag | ((f + u < end) & mul.overflow(*terms[:2]))
                return f + UNROLL, acc, flag

            state = (read(b.indptr, k), acc, flag)
            _, acc, flag = lax.while_loop(lambda c: c[0] < end, products, state)
            return e + 1, acc, flag

        first = jnp.where(low < high, begin, last)
        _, acc, flag = lax.while_loop(lambda c: c[0] < last, entry, (first, acc, flag))

        def take(c):
            p, values = c
            for u in range(UNROLL):
                value = read_natural(acc, read_natural(columns, p + u))
                values = write_natural(values, p + u, value)
            return p + UNROLL, values

        _, values = lax.while_loop(lambda c: c[0] < high, take, (low, values))
        return i + 1, last, high, acc, values, flag

    acc, values = (
        jnp.full(n + 2, identity).at[n].set(np.zeros((), dtype)),
        jnp.zeros(columns.shape[0], dtype),
    )
    state = (jnp.int32(0), a.indptr[0], jnp.int32(0), acc, values, jnp.asarray(False))
    return lax.while_loop(lambda c: c[0] < m, row, state)[4:]
