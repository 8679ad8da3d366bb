"""The tangent of a sparse product on the product's pattern, built from transposable parts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.custom_derivatives import SymbolicZero

from ...._core.derivatives import dense_tangent, first_valid, is_zero, jvp_of_perturbed
from ...._core.eager.arrays import on_gpu
from ...._core.loops import batch_any
from ...._core.native_loops import computed_once
from ...._core.operation import Operation, typed
from ...._core.reductions import ROUNDED, gather
from ....algebra.semirings import plus_times
from ....formats import CSR, SparseMatrix
from ....formats.csr import sorted_csr
from ..common.product import is_bilinear, safe, take
from .cpu import cotangents, product_along
from .expand import Operands, Position, Products, find, next_products, operands, terms_of

LOCAL_STEPS = 64  # loops of at most so many steps are one scan, longer ones a scan of scans
LEAST = 1 << 13  # a step takes at least so many products or entries of A


class Walk(NamedTuple):
    """How products are enumerated: at most `size` products and `window` entries of A a step.

    A product takes about 26 words here. A CPU makes C without listing products; there a step is so
    small that the derivative takes at most three times the memory of C and its operands. A GPU
    sorts `size` products for C and takes as many here, because small steps are slow. If steps must
    be replayed, each stores a copy of C, so there are as few as possible.
    """

    size: int
    window: int
    steps: int


def walk(
    A: SparseMatrix, B: SparseMatrix, nse: int, size: int, products: int | None, replays: bool
) -> Walk:
    """The walk of a product with `nse` entries; products: an upper bound of their number, if
    known."""
    (m, n), a, b = (A.shape[0], B.shape[1]), A.nse, B.nse
    most = min(a * min(n, b), b * min(m, a))
    if products is not None:
        most = min(most, products)
    least = max(LEAST, (a + b + nse) // 24)
    if replays or on_gpu(()):
        least = max(least, size)
    size, window = max(min(size, most, least), 1), min(a, least)
    if most <= size and window == a:
        return Walk(size, window, 1)
    return Walk(size, window, most // size + a // max(window, 1) + 2)


def tangent(primals, tangents, C, *, nse, size, products):
    """The tangent of `C = A B`: see `_product.reduce_tangent` for the rule of each monoid."""
    semiring, A, B, *_ = primals
    semiring_dot, A_dot, B_dot, *_ = tangents
    a, a_dot = _rows(A, A_dot)
    b, b_dot = _rows(B, B_dot)
    picks, sums = semiring.add.selective, semiring.add.sums_tangents
    o, way = operands(a, b), walk(A, B, nse, size, products, not (picks or sums))
    ordinary = is_bilinear(semiring, a, b, C) and 0 not in (a.nse, b.nse, C.nse)
    if picks:
        data = _of_winners(semiring, semiring_dot, o, a_dot, b_dot, C, way)
    elif ordinary and (C.dtype == jnp.float32 or not on_gpu(())):  # which kernels take
        live = not is_zero(a_dot), not is_zero(b_dot)
        dots = tuple(dense_tangent(d) for d, on in zip((a_dot, b_dot), live, strict=True) if on)
        data = pushed(a, b, C, dots, live=live, way=way) if dots else jnp.zeros_like(C.data)
    else:
        data = _of_all(semiring, semiring_dot, o, a_dot, b_dot, C, way)
    return CSR(data, None, None, None, C.shape, True, True)  # pyright: ignore[reportArgumentType]


def _rows(A: SparseMatrix, A_dot: Any) -> tuple[CSR, Any]:
    """A as a sorted CSR, and the tangent of its values in that order (or a symbolic zero)."""

    def csr(data):
        return sorted_csr(A.with_data(data))

    valid = A.rowcol()[0] < A.shape[0]
    data = safe(A.data, valid)
    if is_zero(A_dot.data):
        return csr(data), A_dot.data
    dot = jnp.where(valid, dense_tangent(A_dot.data), 0)
    return csr(data), jax.jvp(lambda d: csr(d).data, (data,), (dot,))[1]


def _slots(C: CSR, p: Products) -> Array:
    """The slot of C that each product is added to, nse for none."""
    slot = find(C.indptr, C.indices, p.row, p.col)
    return jnp.where(p.valid, slot, C.nse)


def _factors(values: Array, slots: Array) -> Array:
    """Values at slots. The transpose adds in float64; XLA's would add one by one in float32."""
    rounds = values.dtype in ROUNDED and values.shape[0] > 0
    return gather(values, slots) if rounds else take(values, slots)


def _perturbed(semiring, semiring_dot, o, p, x_dot, y_dot):
    """(products, their tangents) from values `o` and tangents of the two factors."""

    real = p if is_zero(semiring_dot) else Products(*(v[first_valid(p.valid)] for v in p))

    def terms(s, x, y):
        value = terms_of(s, o._replace(data=x, values=y), real, _factors)[0]
        return semiring.add.admit(value)

    primals, tangents = (semiring, o.data, o.values), (semiring_dot, x_dot, y_dot)
    value, dot = jvp_of_perturbed(terms, primals, tangents)
    return value, jnp.where(p.valid, dot, 0)


# ---- Ordinary products of one floating dtype: native loops on a CPU, kernels on a GPU ----


def _expanded(a, b, C, parts, *, live, way):
    """`a_dot b + a b_dot` over (+, x) from the list of all products."""
    given = iter(parts)
    none = SymbolicZero(jax.typeof(a.data))
    first, second = (next(given) if on else none for on in live)
    return _of_all(plus_times, plus_times, operands(a, b), first, second, C, way)


def _transposed(w, a, b, C, parts, *, live, way):
    zeros = tuple(jnp.zeros(p.shape, p.dtype) for p in parts)
    return None, None, None, pulled(a, b, C, zeros, w, live=live, way=way)


pushed = Operation("tangent of a product", "definition", transpose=_transposed, internal=True)
pushed.types = lambda a, b, C, *_, **__: typed(C.dtype, C.nse)


def both_sides(product, a, b, C, parts, live):
    given = iter(parts)
    first = product(a.with_data(next(given)), b, C) if live[0] else 0
    return first + (product(a, b.with_data(next(given)), C) if live[1] else 0)


@pushed.register("loop", backend="cpu")
def _pushed_sequentially(a, b, C, parts, *, live, way):
    return both_sides(product_along, a, b, C, parts, live)


pushed.register("expand")(_expanded)
pulled = Operation("cotangents of a product", "definition", internal=True)
pulled.types = lambda a, b, C, zeros, w, **_: tuple(typed(z.dtype, *z.shape) for z in zeros)
for _op in (pushed, pulled):
    _op.gpu_forms_in(f"{__package__}.gpu")


@pulled.register("loop", backend="cpu")
def _pulled_sequentially(a, b, C, zeros, w, *, live, way):
    both = cotangents(a, b, C, w)
    return tuple(cotangent for cotangent, on in zip(both, live, strict=True) if on)


@pulled.register("expand")
def _pulled_expanded(a, b, C, zeros, w, *, live, way):
    return jax.vjp(lambda parts: _expanded(a, b, C, parts, live=live, way=way), zeros)[1](w)[0]


# ---- Selective monoids: the winning product ----


def _of_winners(semiring, semiring_dot, o, a_dot, b_dot, C, way):
    constant = jax.lax.stop_gradient
    frozen = jax.tree.map(constant, semiring)
    values = jax.tree.map(constant, (o.data, o.values, C.data))
    plain = o._replace(data=values[0], values=values[1])
    first, second = _winners(frozen, plain, C.with_data(values[2]), way)
    row, col = C.rowcol()
    won = (first < o.row.shape[0]) & (row < C.shape[0])
    nothing = semiring.add.identity_of(C.data.dtype)
    if np.isinf(nothing):  # times a cotangent of 0 it were a NaN
        won &= values[2] != nothing
    place = Products(first, jnp.minimum(second, max(o.indices.shape[0] - 1, 0)), row, col, won)
    return _perturbed(semiring, semiring_dot, o, place, a_dot, b_dot)[1]


def _winners(semiring, o: Operands, C: CSR, way: Walk) -> tuple[Array, Array]:
    """Slots of A and of B of the first product that equals each entry of C."""
    add, entries, others, nse = semiring.add, o.row.shape[0], o.indices.shape[0], C.nse

    def over_products(start, visit):
        def step(c):
            at, found = c
            p, at = next_products(o, at, way.size, way.window)
            term = computed_once(add.admit(terms_of(semiring, o, p)[0]))
            return at, visit(found, p, _slots(C, p), term)

        begin = (Position(jnp.int32(0), jnp.int32(0)), start)
        return lax.while_loop(lambda c: batch_any(c[0].entry < entries), step, begin)[1]

    def best_of(best, _, slot, term):
        return add.op(best, add.segment_reduce(term, slot, nse)).astype(best.dtype)

    # C once more, by the terms it is compared with: see `winners`
    best = C.data
    if not add.takes_first:
        best = over_products(jnp.full(nse, add.identity_of(C.dtype)[()], C.dtype), best_of)

    def least(start, first=None):
        """The least slots of A, or of B among the products of the entries `first` of A."""

        def visit(found, p, slot, term):
            hit = slot < nse
            if not add.takes_first:
                hit &= term == take(best, slot)
            if first is not None:
                hit &= take(first, slot) == p.a
            own = p.a if first is None else p.b
            return found.at[jnp.where(hit, slot, nse)].min(own, mode="drop")

        return over_products(jnp.full(nse, start, jnp.int32), visit)

    first = least(entries)
    return first, least(others, first)


# ---- Any other monoid: every product ----


def _of_all(semiring, semiring_dot, o, a_dot, b_dot, C, way):
    """A sum over all products, step by step. A step is computed again for its transpose, so memory
    is proportional to the size of a step plus nse."""
    add = semiring.add
    if add.sums_tangents:

        def step(at, total):
            p, at = next_products(o, at, way.size, way.window)
            slot = _slots(C, p)
            terms, dots = _perturbed(semiring, semiring_dot, o, p, a_dot, b_dot)
            totals, is_valid = take(C.data, slot), slot < C.nse
            dots = add.weighted(dots, jnp.where(is_valid, terms, totals), totals)
            return at, total.at[slot].add(jnp.where(is_valid, dots, 0), mode="drop")

        return _repeat(step, jnp.zeros_like(C.data), o.row.shape[0], way.steps)

    def values_of(s, x, y):
        return _replay(s, o._replace(data=x, values=y), C, way)

    primals, tangents = (semiring, o.data, o.values), (semiring_dot, a_dot, b_dot)
    return jvp_of_perturbed(values_of, primals, tangents)[1]


def _replay(semiring, o, C, way):
    """Computes the values of C again, by differentiable operations."""
    add = semiring.add

    def step(at, total):
        p, at = next_products(o, at, way.size, way.window)
        slot = _slots(C, p)
        terms = add.admit(terms_of(semiring, o, p, _factors)[0])
        part = add.segment_scan(terms, slot, C.nse)
        here = jnp.zeros(C.nse, bool).at[slot].set(True, mode="drop")
        joined = add.op(jnp.where(here, total, 0), jnp.where(here, part, 0)).astype(total.dtype)
        return at, jnp.where(here, joined, total)

    identity = jnp.asarray(add.identity_of(C.dtype))
    return _repeat(step, jnp.full(C.nse, identity), o.row.shape[0], way.steps)


def _repeat(step, start, entries: int, count: int):
    """`step(at, total)` until A ends, at most `count` times, in loops of static length."""

    def while_going(carry, _):
        at, total = carry
        more = batch_any(at.entry < entries)
        return lax.cond(more, step, lambda at, total: (at, total), at, total), None

    def turns(carry, length):
        return lax.scan(jax.checkpoint(while_going), carry, length=length)[0]

    def nested(carry, _):
        more, inner = batch_any(carry[0].entry < entries), math.ceil(math.sqrt(count))
        return lax.cond(more, lambda c: turns(c, inner), lambda c: c, carry), None

    carry = (Position(jnp.int32(0), jnp.int32(0)), start)
    if count == 1:
        return step(*carry)[1]
    if count <= LOCAL_STEPS:
        return turns(carry, count)[1]
    outer = math.ceil(count / math.ceil(math.sqrt(count)))
    return lax.scan(jax.checkpoint(nested), carry, length=outer)[0][1]
