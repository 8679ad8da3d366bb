"""What products share: terms of a matrix and a vector, the tangent of their reduction; and the
operations with dense matrices, which the derivatives of one another and of `mxv` are made of. Their
forms are in `spmm` and `sddmm`."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ...._core.derivatives import first_valid, is_zero, jvp_of_perturbed
from ...._core.native_loops import computed_once
from ...._core.operation import Operation
from ...._core.reductions import gather, is_narrow
from ...._core.tuples import take as take
from ....algebra import operators
from ....algebra.monoids import Monoid, plus
from ....algebra.semirings import Semiring
from ....formats import SparseMatrix
from ....formats.csr import joined as _joined


def product(
    semiring: Semiring, data: Array, out: Array, inner: Array, x: Array, *, flip: bool
) -> Array:
    """`mul(data, x)` of entries at (out, inner) with the vector's value at `inner`.

    `flip`: the vector is the first operand (vxm), the matrix the second.
    """
    if flip:
        return semiring.mul.at(x, data, 0, inner, out)
    return semiring.mul.at(data, x, out, inner, 0)


def term_dtype(semiring: Semiring, a: Any, b: Any) -> Any:
    """The dtype of a product of values of these dtypes, as the monoid takes it."""
    a, b = map(jax.dtypes.canonicalize_dtype, (a, b))  # made while x64 was enabled
    if jax.tree.leaves(semiring):
        return _term_dtype(semiring, a, b)
    return _known_term_dtype(semiring, a, b, jax.dtypes.canonicalize_dtype(np.int64))


def _term_dtype(semiring: Semiring, a: Any, b: Any, widest: Any = None) -> Any:
    del widest  # whether x64 is enabled: a key

    def one(x, y):
        zero = jnp.zeros(1, jnp.int32)
        return semiring.add.admit(semiring.mul.at(x, y, zero, zero, zero))

    shapes = (jax.ShapeDtypeStruct((1,), a), jax.ShapeDtypeStruct((1,), b))
    return jax.eval_shape(one, *shapes).dtype


# The functions are traced, longer than a small product takes.
_known_term_dtype = functools.lru_cache(maxsize=1024)(_term_dtype)


def result_dtype(semiring: Semiring, A: Any, x: Any, flip: bool) -> Any:
    """`term_dtype` of values of A and x; with `flip` x is the first factor."""
    return term_dtype(semiring, *((x.dtype, A.dtype) if flip else (A.dtype, x.dtype)))


def computed_dtype(semiring: Semiring, A: Any, x: Any, flip: bool) -> Any:
    """The dtype of A, x and their products as they are computed, float32 for narrower floats; None
    where they differ."""
    dtype = result_dtype(semiring, A, x, flip)
    if is_narrow(dtype):
        return jnp.dtype("float32")
    return dtype if A.dtype == x.dtype == dtype else None


def positions_as(semiring: Any, dtype: Any) -> Any:
    """The semiring whose positional operator gives indices of `dtype`."""
    mul = getattr(semiring, "mul", None)
    if mul is None or mul.position is None or mul.index_dtype == dtype:
        return semiring
    return dataclasses.replace(semiring, mul=dataclasses.replace(mul, index_dtype=str(dtype)))


def no_plain_product(semiring: Semiring) -> str | None:
    """Why kernels for products of two values do not take those of a semiring, or None."""
    if semiring.mul.position is not None:
        return f"`{semiring.mul.name}` is positional"
    return "the semiring has parameters" if jax.tree.leaves(semiring) else None


def entry_rows(A: SparseMatrix) -> Array:
    """(m,) bool: which rows store an entry."""
    return jnp.zeros(A.shape[0], bool).at[A.rowcol()[0]].set(True, mode="drop")


def safe(data: Array, valid: Array, fill: int = 0) -> Array:
    """`data` with `fill` in padding: nothing stored there reaches a product or its derivative.

    1 where derivatives follow: x / 0 has none, and masking one that is infinite leaves a NaN.
    """
    return jnp.where(valid, data, jnp.asarray(fill, data.dtype))


class Fold(NamedTuple):
    """How products are made and joined, for what folds dense blocks of them: `mul(a, x)`, `combine`
    and its identity, of the dtype that `mul` gives."""

    mul: Callable[[Any, Any], Any]
    combine: Callable[..., Any]
    identity: Any


class Factors(NamedTuple):
    """What a product is differentiated by, or its tangents: symbolic zeros where there is none.

    Attributes:
        semiring: with its parameters.
        data: values of the matrix.
        x: values of the vector.
    """

    semiring: Any
    data: Any
    x: Any


def product_tangent(factors: Factors, dots: Factors, out, inner, *, flip):
    """(terms, tangent of terms), element-wise; a tangent that is known to be zero costs nothing."""

    def terms(s, d, v):
        return product(s, d, out, inner, v, flip=flip)

    return jvp_of_perturbed(terms, tuple(factors), tuple(dots))


class Pairs(NamedTuple):
    """The entries of a matrix and what they meet of a vector: the factors of a product.

    Attributes:
        data: (nse,) values of the entries; arbitrary in padding.
        out, inner: (nse,) their places, as in `product`.
        x: (k,) values of the vector.
        place: (nse,) int32, where in x the value is that an entry meets.
        valid: (nse,) bool, which entries are there and meet one.
    """

    data: Array
    out: Array
    inner: Array
    x: Array
    place: Array
    valid: Array


def joined_tangent(
    semiring: Semiring,
    pairs: Pairs,
    dots: Factors,
    segments: Array,
    y: Array,
    *,
    flip: bool,
    sorted: bool = False,
    ascending: bool = False,
) -> Array:
    """The tangent of `y[s] = add of mul(data, x) over the pairs of segment s`; it transposes.

    See `picked_tangent` for selective monoids (min, max, any), of which at ties the pair of the
    smallest `inner` wins, and `reduce_tangent` for the rest.

    Args:
        dots: tangents of the semiring, of data (nse,) and of x (k,).
        segments: (nse,) int32, out of [0, len(y)) for pairs that are not valid.
        y: the result.
        sorted: whether the segments ascend.
        ascending: whether `inner` ascends with the slots of every segment.
    """
    if segments.shape[0] == 0:
        return jnp.zeros_like(y)
    real = pairs.valid
    if not (semiring.add.selective or is_zero(dots.semiring)):
        slots = first_valid(real)
        values = (take(v, slots) for v in pairs)
        pairs = Pairs(*values)._replace(x=pairs.x)
    if semiring.add.selective:
        constant = jax.tree.map(lax.stop_gradient, (semiring, pairs.data, pairs.x))
        frozen, data, x = constant
        terms = product(frozen, data, pairs.out, pairs.inner, take(x, pairs.place), flip=flip)
        by = None if ascending else pairs.inner
        slots = winners(frozen.add, terms, segments, y.shape[0], by)
        out, inner, place = (take(v, slots) for v in (pairs.out, pairs.inner, pairs.place))
        factors = Factors(semiring, pairs.data, pairs.x)
        return picked_tangent(factors, dots, slots, out, inner, place, flip=flip)

    def met(v):
        return safe(take(v, pairs.place), pairs.valid, 1)

    # The transpose adds: XLA's would add one by one, in the dtype of the values.
    place = jnp.clip(pairs.place, 0, max(pairs.x.shape[0] - 1, 0))
    moved = dots._replace(
        data=dots.data if is_zero(dots.data) else safe(dots.data, real),
        x=dots.x if is_zero(dots.x) else safe(gather(dots.x, place), real),
    )
    factors = Factors(semiring, safe(pairs.data, pairs.valid, 1), met(pairs.x))
    terms, partials = product_tangent(factors, moved, pairs.out, pairs.inner, flip=flip)
    partials = jnp.where(real, partials, 0)
    add_dot = dots.semiring.add
    return reduce_tangent(semiring.add, add_dot, terms, partials, segments, y, sorted=sorted)


def picked_tangent(factors: Factors, dots: Factors, slots, out, inner, place, *, flip) -> Array:
    """The tangent of `mul(data[slots], x[place])`: all that a selective monoid has.

    Args:
        factors, dots: semiring, data, x and their tangents.
        slots: (m,) int32 slots of data (nse,), one a result; the tangent is 0 where it is nse.
        out, inner: (m,) places of these entries in the matrix.
        place: (m,) int32 slots of x.

    Time and memory in proportion to m, whatever nse is; of the transpose too, but for its result.
    """
    is_valid = slots < factors.data.shape[0]
    nothing = factors.semiring.add.identity_of(factors.x.dtype)
    if np.isinf(nothing):  # times a cotangent of 0 it were a NaN
        is_valid &= take(factors.x, place) != nothing
        slots = jnp.where(is_valid, slots, factors.data.shape[0])
    place = jnp.where(is_valid, place, factors.x.shape[0])

    def value(v, index):
        return v.at[index].get(mode="fill", fill_value=1)

    def dot(t, index):
        return t if is_zero(t) else t.at[index].get(mode="fill", fill_value=0)

    moved = Factors(dots.semiring, dot(dots.data, slots), dot(dots.x, place))
    if not is_zero(dots.semiring):
        at = first_valid(is_valid)
        slots, place, out, inner = (take(v, at) for v in (slots, place, out, inner))
    chosen = Factors(factors.semiring, value(factors.data, slots), value(factors.x, place))
    return jnp.where(is_valid, product_tangent(chosen, moved, out, inner, flip=flip)[1], 0)


def reduce_tangent(
    add: Monoid,
    add_dot: Any,
    terms: Array,
    terms_dot: Array,
    segments: Array,
    y: Array,
    *,
    sorted: bool = False,
) -> Array:
    """The tangent of `y = add.segment_reduce(terms, segments, len(y))`, of a monoid that combines.

    A weighted sum of tangents where the monoid has weights: 1 of (+), softmax of logaddexp. Else
    through the derivative of its own operator along a segmented scan, exact where a product has
    zeros. All of it transposes.
    """
    count = y.shape[0]
    if add.sums_tangents:
        totals, inside = take(y, segments), (segments >= 0) & (segments < count)
        dots = add.weighted(terms_dot, jnp.where(inside, terms, totals), totals)
        return plus.segment_reduce(dots, segments, count, sorted=sorted)

    def scan(monoid, values):
        return monoid.segment_scan(values, segments, count, sorted=sorted)

    return jvp_of_perturbed(scan, (add, terms), (add_dot, terms_dot))[1]


def winners(
    add: Monoid, terms: Array, segments: Array, count: int, by: Array | None = None
) -> Array:
    """The first slot whose term is the result of its segment; `len(terms)` where there is none.

    The result is that of these very terms: computed elsewhere they may differ in the last bit.
    by: as of `first_equal`.
    """
    terms = computed_once(add.admit(terms))
    return first_equal(add, terms, segments, add.segment_reduce(terms, segments, count), by)


def first_equal(
    add: Monoid, terms: Array, segments: Array, y: Array, by: Array | None = None
) -> Array:
    """The first slot whose term is y of its segment; `len(terms)` where there is none.

    Args:
        terms: which y was made of, `computed_once`.
        by: (nse,) integers: of such slots those where it is smallest.
    """
    count, nse = y.shape[0], terms.shape[0]
    slot = jnp.arange(nse, dtype=jnp.int32)
    hit = (segments >= 0) & (segments < count)
    if not add.takes_first:
        hit &= terms == take(y, segments)
        if by is not None:
            least = jnp.full(count, jnp.iinfo(by.dtype).max, by.dtype)
            least = least.at[jnp.where(hit, segments, count)].min(by, mode="drop")
            hit &= by == take(least, segments)
    first = jnp.full(count, nse, jnp.int32)
    return first.at[jnp.where(hit, segments, count)].min(slot, mode="drop")


def joined(A: SparseMatrix, semiring: Semiring) -> SparseMatrix:
    """A with repeated entries summed, unless the semiring gives the same without that.

    Only (plus, times) distributes over the sum of repeated entries: max_plus would take the larger
    of two, plus_pair would count both.
    """
    distributes = (semiring.add.op.fn, semiring.mul.fn) == (operators.plus.fn, operators.times.fn)
    return A if A.unique or distributes else _joined(A)


def is_linear(semiring: Semiring, *operands: Any, **static: Any) -> bool:
    """Whether a product adds ordinary products: it has a transpose by each operand."""
    return semiring.mul.fn is jnp.multiply and semiring.add.atomic(jnp.float32) == "add"


def is_bilinear(semiring: Semiring, *arrays: Any) -> bool:
    """Whether a product adds ordinary products of arrays that all have one real dtype."""
    same = len({x.dtype for x in arrays}) == 1 and jnp.issubdtype(arrays[0].dtype, jnp.floating)
    return same and is_linear(semiring)


# transposed: A.T as a CSR, with its values, for the derivative by X; or None.
spmm = Operation("spmm", linear=is_linear)  # `spmm(semiring, A, X, transposed, flip=)`
sddmm = Operation("sddmm", linear=is_linear)  # `sddmm(semiring, A, X, Y)`
for _op in (spmm, sddmm):
    _op.gpu_forms_in(__name__.replace("common.product", f"{_op.name}.gpu"))


def bare(A: Any) -> Any:
    """The pattern of A; its values are placeholders that are never read."""
    slots = (*A.overflow.shape, A.nse) if hasattr(A.overflow, "shape") else (A.nse,)
    return dataclasses.replace(A, data=np.zeros(slots, bool)) if A.takes_arrays else A
