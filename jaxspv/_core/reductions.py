"""Reductions: XLA's own for the known monoids, scans and folds for any other."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.tree_util import Partial

from .compat import scatter_add_is_slow
from .operation import Operation, typed
from .platforms import situation
from .tuples import choose

Scatter = Literal["add", "multiply", "min", "max"]
_DROP: dict[str, Any] = {"mode": "drop", "wrap_negative_indices": False}
ROUNDED = (jnp.float32, jnp.float16, jnp.bfloat16)  # floats that are added in wider ones


class Form(NamedTuple):
    """XLA's operations for a known monoid.

    Attributes:
        whole: `(x, axes, identity) -> y`.
        segments: `(terms, segments, count, identity, sorted) -> y`, without a sort.
        scatter: the scatter of XLA, and the atomic of a GPU, that combines terms.
        weight: `(tangents, terms, totals)`: the tangents times the derivative of the result by each
            term, where the tangent of a reduction is the sum of them.
    """

    whole: Callable[..., Array]
    segments: Callable[..., Array]
    scatter: Scatter | None = None
    weight: Callable[..., Array] | None = None


def fold(op: Any, x: Array, axes: tuple[int, ...], identity: Any) -> Array:
    """`op` by halving. `lax.reduce` would refuse an operator with traced parameters."""
    last = tuple(range(-len(axes), 0))
    x = jnp.moveaxis(x, axes, last)
    x = x.reshape(*x.shape[: last[0]], -1)
    if x.shape[-1] == 0:
        return jnp.full(x.shape[:-1], identity, x.dtype)
    while x.shape[-1] > 1:
        half = x.shape[-1] // 2
        joined = op(x[..., :half], x[..., half : 2 * half]).astype(x.dtype)
        x = jnp.concatenate([joined, x[..., 2 * half :]], axis=-1)
    return x[..., 0]


def segment_scan(
    op: Any, terms: Any, segments: Array, count: int, identity: Any, *, sorted: bool
) -> Any:
    """`y[s] = op over terms[k] with segments[k] == s` by a segmented scan; see `scan_runs`."""
    identity = jax.tree.map(jnp.asarray, identity)
    if not sorted:
        order = jnp.argsort(segments, stable=True)
        segments, terms = segments[order], jax.tree.map(lambda t: t[order], terms)
    inside = (segments >= 0) & (segments < count)
    scanned = scan_runs(op, choose(inside, terms, identity), segments, identity)
    size = segments.shape[0]
    ends = jnp.append(segments[1:] != segments[:-1], True)[:size]
    slot = jnp.arange(size, dtype=segments.dtype)
    target = jnp.where(ends & inside, segments, count + slot)  # unique: it transposes

    def totals(i, s):
        start = jnp.full((count, *i.shape), i)
        return start.at[target].set(s, mode="drop", unique_indices=True)

    return jax.tree.map(totals, identity, scanned)


@jax.jit  # a scan is some forty operations: one program also where the caller is eager
def scan_runs(op: Any, terms: Any, segments: Array, identity: Any) -> Any:
    """Inclusive scan of `terms` that starts anew wherever the sorted `segments` change.

    Flags mark where a segment starts; the scanned pair (flag, value) is that of Blelloch,
    "Prefix sums and their applications", 1990. `op` is a pytree; so may the terms be.
    """
    starts = jnp.append(True, segments[1:] != segments[:-1])[: segments.shape[0]]

    def combine(left, right):
        flag_l, value_l = left
        flag_r, value_r = right
        # Both `choose`: an infinity of one run must not reach the derivative of another.
        joined = op(choose(flag_r, identity, value_l), value_r)
        joined = jax.tree.map(lambda z, v: z.astype(v.dtype), joined, value_r)
        return flag_l | flag_r, choose(flag_r, value_r, joined)

    return lax.associative_scan(combine, (starts, terms))[1]


def _along_axes(fn: Callable[..., Array], **options: Any) -> Callable[..., Array]:
    return lambda x, axes, identity: fn(x, axes, initial=identity, **options)


def _by_scatter(scatter: Scatter) -> Callable[..., Array]:
    def segmented(terms: Array, segments: Array, count: int, identity: Any, _=False) -> Array:
        start = jnp.full(count, identity, terms.dtype)
        return getattr(start.at[segments], scatter)(terms, **_DROP)

    return segmented


@functools.partial(jax.custom_jvp, nondiff_argnums=(2, 3, 4))
def _product_by_segments(terms, segments, count, identity, sorted):
    return _by_scatter("multiply")(terms, segments, count, identity)


@_product_by_segments.defjvp
def _tangent_of_products(count, identity, sorted, primals, tangents):
    terms, segments = primals  # JAX has no derivative of a scatter that multiplies at equal places

    def scan(terms):
        times = Partial(jnp.multiply)
        return segment_scan(times, terms, segments, count, identity, sorted=sorted)

    out = _product_by_segments(terms, segments, count, identity, sorted)
    return out, jax.jvp(scan, (terms,), tangents[:1])[1]


def _sum_by_segments(
    terms: Array, segments: Array, count: int, identity: Any = 0, sorted: bool = False
) -> Array:
    places = situation().platforms
    slow = "cuda" in places and scatter_add_is_slow(terms.dtype)
    if slow and len(places) > 1:  # outside of forms the platform is not known yet
        return segment_sums(terms, segments, count=count, sorted=sorted)
    if slow:
        zero = jnp.zeros((), terms.dtype)
        return segment_scan(Partial(jnp.add), terms, segments, count, zero, sorted=sorted)
    if terms.dtype in ROUNDED:  # outside of forms the operation, which has a transpose
        add = _added_in_double if len(places) == 1 else sums_in_double
        return add(terms, segments, count=count)
    return _by_scatter("add")(terms, segments, count, identity)


def _transposed_sums(w, terms, segments, *, count, sorted):
    inside = jnp.where(segments >= 0, segments, count)
    return w.at[inside].get(mode="fill", fill_value=0), None


segment_sums = Operation("sums by segments", "linear", transpose=_transposed_sums, internal=True)
segment_sums.types = lambda terms, segments, *, count, **_: typed(terms.dtype, count)
segment_sums.register("segments")(_sum_by_segments)


def _transposed_gather(w, x, index):
    return segment_sums(w, index, count=x.shape[0], sorted=False), None


gather = Operation("gather of tangents", "linear", transpose=_transposed_gather, internal=True)
gather.types = lambda x, index: typed(x.dtype, *index.shape)
gather.register("clip")(lambda x, index: jnp.take(x, index, mode="clip"))


@functools.cache  # at every eager call
def is_narrow(dtype: Any) -> bool:
    """Whether it is a float of fewer bits than float32."""
    return bool(jnp.issubdtype(dtype, jnp.floating)) and np.dtype(dtype).itemsize < 4


def dtype_of_means(dtype: Any) -> Any:
    """The dtype that `jnp.mean` gives: of integers and booleans JAX's default float."""
    return _dtype_of_means(jax.dtypes.canonicalize_dtype(dtype))  # made while x64 was enabled


@functools.cache  # a trace takes half a millisecond
def _dtype_of_means(dtype):
    return jax.eval_shape(jnp.mean, jax.ShapeDtypeStruct((1,), dtype)).dtype


def in_float32(x: Array) -> Array:
    """float16 and bfloat16 as float32, in which they are added; other dtypes as they are."""
    return x.astype(jnp.float32) if is_narrow(x.dtype) else x


def sum_in_double(terms: Array, segments: Array, count: int) -> Array:
    """Sums of (k, ...) terms by (k,) segments, added in float64 and rounded once at the end.

    Segments out of range are dropped. A scatter in float32 would round after every term: a sum of
    10^6 of them is off by up to 1%, and a sum of ones in bfloat16 never passes 256. Other dtypes
    than `ROUNDED` are added in their own.
    """
    if terms.dtype not in ROUNDED:
        start = jnp.zeros((count, *terms.shape[1:]), terms.dtype)
        return start.at[segments].add(terms, **_DROP)
    return sums_in_double(terms, segments, count=count)


# An operation: JAX would transpose the derivative of `add_in_double` outside of `enable_x64`.
_transpose = functools.partial(_transposed_sums, sorted=False)
sums_in_double = Operation("sums in double", "linear", transpose=_transpose, internal=True)
sums_in_double.types = lambda terms, segments, *, count: typed(terms.dtype, count, *terms.shape[1:])


@sums_in_double.register("scatter")
def _added_in_double(terms: Array, segments: Array, *, count: int) -> Array:
    start = zeros_in_double(count, *terms.shape[1:])
    return rounded(add_in_double(start, segments, terms), terms.dtype)


def zeros_in_double(*shape: int) -> Array:
    """float64 zeros, also where x64 is not enabled: the start of `add_in_double`."""
    with jax.enable_x64(True):
        return lax.full(shape, np.float64(0))


def add_in_double(total: Array, place: Array, terms: Array) -> Array:
    """float64 (n, ...) `total` with (k, ...) terms added at (k,) places; others are dropped."""
    with jax.enable_x64(True):
        wide = lax.convert_element_type(terms, np.float64)
        dimensions = lax.ScatterDimensionNumbers(tuple(range(1, terms.ndim)), (0,), (0,))
        drop = lax.GatherScatterMode.FILL_OR_DROP
        return lax.scatter_add(total, place[:, None], wide, dimensions, mode=drop)


def rounded(total: Array, dtype: Any) -> Array:
    """A total in the dtype of its terms."""
    with jax.enable_x64(True):
        return lax.convert_element_type(total, dtype)


def exact_sum(counts: Array) -> Array:
    """The sum of an array of integers, an int64 scalar even if x64 is not enabled."""
    with jax.enable_x64(True):
        wide = lax.convert_element_type(counts, np.int64)
        return lax.reduce(wide, np.int64(0), lax.add, tuple(range(wide.ndim)))


def _extreme_of_truth(scatter: Scatter) -> Callable[..., Array]:
    def segmented(terms: Array, segments: Array, count: int, identity: Any, _) -> Array:
        start = jnp.full(count, identity, jnp.int8)
        return getattr(start.at[segments], scatter)(terms.astype(jnp.int8), **_DROP) > 0

    return segmented


def _parity(even: bool) -> Form:
    """`xor`: whether the number of ones is odd; `xnor`: whether the number of zeros is even."""

    def whole(x: Array, axes: tuple[int, ...], _) -> Array:
        return (jnp.sum(x ^ even, axes, dtype=jnp.int32) % 2 == 1) ^ even

    def segmented(terms: Array, segments: Array, count: int, *_) -> Array:
        start = jnp.zeros(count, jnp.int32)
        return (start.at[segments].add((terms ^ even).astype(jnp.int32), **_DROP) % 2 == 1) ^ even

    return Form(whole, segmented)


def _first_along(x: Array, axes: tuple[int, ...], _) -> Array:
    if 0 in (x.shape[a] for a in axes):
        return jnp.sum(x, axes).astype(x.dtype)  # zeros
    for axis in sorted((a % x.ndim for a in axes), reverse=True):
        x = lax.index_in_dim(x, 0, axis, keepdims=False)
    return x


def _first_of_segments(terms: Array, segments: Array, count: int, *_) -> Array:
    slot = jnp.arange(terms.shape[0], dtype=jnp.int32)
    winner = jnp.full(count, terms.shape[0], jnp.int32)
    return terms.at[winner.at[segments].min(slot, **_DROP)].get(mode="fill", fill_value=0)


def log_sum_by(low: Any, most: Any, total: Any) -> Array:
    """`log sum exp`, stable: shifted by the maximum of the terms, if that is finite.

    Args:
        low: the result without terms.
        most: `most(hold)`, the maximum of `hold(terms)`.
        total: `total(shift)`, the sum of `exp(terms - shift)`.
    """
    peak = most(lax.stop_gradient)
    shift = jnp.where(jnp.isfinite(peak), peak, 0)
    sums = total(shift)
    empty = sums == 0
    return jnp.where(empty, low, jnp.log(jnp.where(empty, 1, sums)) + shift)


def _logsumexp_along(x: Array, axes: tuple[int, ...], low: Any) -> Array:
    found = log_sum_by(
        low,
        lambda hold: jnp.max(hold(x), axes, keepdims=True, initial=low),
        lambda shift: jnp.sum(jnp.exp(x - shift), axes, keepdims=True),
    )
    return jnp.squeeze(found, axes)


def _logsumexp_of_segments(
    terms: Array, segments: Array, count: int, low: Any, sorted: bool
) -> Array:
    inside = (segments >= 0) & (segments < count)
    segments = jnp.where(inside, segments, count)
    terms = jnp.where(inside, terms, low)

    def total(shift):
        each = jnp.exp(terms - shift.at[segments].get(mode="fill", fill_value=0))
        return _sum_by_segments(each, segments, count, sorted=sorted)

    most = _by_scatter("max")
    return log_sum_by(low, lambda hold: most(hold(terms), segments, count, low), total)


def _times_shares(tangents: Array, terms: Array, totals: Array) -> Array:
    alone = terms == totals  # `debug_nans` would see inf - inf
    level = jnp.where(alone, 0, terms - jnp.where(alone, 0, totals))
    return tangents * jnp.exp(jnp.where(terms > -jnp.inf, level, -jnp.inf))


_sum = _along_axes(jnp.sum, promote_integers=False)
_product = _along_axes(jnp.prod, promote_integers=False)
FORMS: dict[str | None, Form] = {
    "add": Form(_sum, _sum_by_segments, "add", lambda tangents, *_: tangents),
    "multiply": Form(_product, _product_by_segments, "multiply"),
    "min": Form(_along_axes(jnp.min), _by_scatter("min"), "min"),
    "max": Form(_along_axes(jnp.max), _by_scatter("max"), "max"),
    "or": Form(lambda x, axes, _: jnp.any(x, axes), _extreme_of_truth("max"), "max"),
    "and": Form(lambda x, axes, _: jnp.all(x, axes), _extreme_of_truth("min"), "min"),
    "xor": _parity(even=False),
    "xnor": _parity(even=True),
    "any": Form(_first_along, _first_of_segments),
    "logaddexp": Form(_logsumexp_along, _logsumexp_of_segments, weight=_times_shares),
}
OF_TRUTH = {"add": "or", "max": "or", "multiply": "and", "min": "and"}  # on booleans
