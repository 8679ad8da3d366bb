"""Monoids: an associative, commutative operator with its identity, and all it does to arrays."""

import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike

from . import operators
from ._core.compat import scatter_add_is_slow
from ._core.pytree import pytree_dataclass, static
from .operators import BinaryOp, as_binary

Kind = Literal["add", "multiply", "min", "max", "or", "and", "xor", "xnor", "any", "logaddexp"]


@pytree_dataclass
class Monoid:
    """`op` with `op(identity, x) == x`, associative and commutative.

    Build one with `monoid(op, identity, terminal=None)`.

    Attributes:
        op: the operator; its parameters are pytree leaves.
        identity: a number, or a function from dtype to a number; `inf` and `-inf` mean the largest
            and the smallest value of an integer dtype. None: there is none (`any`).
        terminal: like `identity`; a value that ends a reduction early (`op(terminal, x) ==
            terminal` for every x but NaN), or None.
        kind: the reduction that XLA and the hardware have for it; None for a user's operator, which
            takes a segmented scan instead.
        name: shown in messages.
        dtypes: the kinds of dtype it is defined on, as in NumPy: b(ool), i(nt), u(int), f(loat),
            c(omplex).

    >>> import jaxspv as jsp, jax.numpy as jnp
    >>> jsp.monoids.max_, float(jsp.monoids.max_.reduce(jnp.array([1.0, 3.0, 2.0])))
    (Monoid(max), 3.0)
    """

    op: BinaryOp
    identity: Any = static(default=None)
    terminal: Any = static(default=None)
    kind: Kind | None = static(default=None)
    name: str = static(default="user")
    dtypes: str = static(default="biuf")

    def __post_init__(self):
        object.__setattr__(self, "op", as_binary(self.op))

    def __repr__(self) -> str:
        return f"Monoid({self.name})"

    def accepts(self, dtype: DTypeLike) -> bool:
        """Whether the monoid is defined on `dtype`."""
        return _dtype_kind(dtype) in self.dtypes

    def admit(self, x: Array) -> Array:
        """`x` in a dtype of the monoid: logical monoids take truth values of anything.

        Raises:
            TypeError: the monoid is not defined on the dtype of `x`.
        """
        if self.dtypes == "b":
            return x.astype(bool)
        if not self.accepts(x.dtype):
            raise TypeError(f"the monoid `{self.name}` is not defined on {x.dtype}.")
        return x

    def identity_of(self, dtype: DTypeLike) -> np.ndarray:
        """The identity as a NumPy scalar array of `dtype`; 0 where the monoid has none."""
        return value_of(0 if self.identity is None else self.identity, dtype)

    def terminal_of(self, dtype: DTypeLike) -> np.ndarray | None:
        """The terminal value as a NumPy scalar array of `dtype`, or None."""
        terminal = self.terminal
        value = terminal(np.dtype(dtype)) if callable(terminal) else terminal
        return None if value is None else value_of(value, dtype)

    def reduce(self, x: Array, axis: int | tuple[int, ...] = -1) -> Array:
        """`op` over `axis`; the identity where the axis is empty."""
        x = self.admit(x)
        axes = (axis,) if isinstance(axis, int) else axis
        if self.kind == "add" and x.dtype != bool:
            return jnp.sum(x, axes, promote_integers=False)
        if self.kind == "multiply" and x.dtype != bool:
            return jnp.prod(x, axes, promote_integers=False)
        if x.dtype == bool and self.kind in _BOOLEAN:
            return _BOOLEAN[self.kind](x, axes)
        if self.kind == "min":
            return jnp.min(x, axes, initial=self.identity_of(x.dtype)[()])
        if self.kind == "max":
            return jnp.max(x, axes, initial=self.identity_of(x.dtype)[()])
        if self.kind == "any":
            return _first_along(x, axes)
        if self.kind == "logaddexp":
            return jax.scipy.special.logsumexp(x, axes)
        return self._fold(x, axes)

    def _fold(self, x: Array, axes: tuple[int, ...]) -> Array:
        """`op` by halving. `lax.reduce` would refuse an operator with traced parameters."""
        last = tuple(range(-len(axes), 0))
        x = jnp.moveaxis(x, axes, last)
        x = x.reshape(*x.shape[: last[0]], -1)
        if x.shape[-1] == 0:
            return jnp.full(x.shape[:-1], self.identity_of(x.dtype)[()], x.dtype)
        while x.shape[-1] > 1:
            half = x.shape[-1] // 2
            joined = self.op(x[..., :half], x[..., half : 2 * half]).astype(x.dtype)
            x = jnp.concatenate([joined, x[..., 2 * half :]], axis=-1)
        return x[..., 0]

    def segment_reduce(
        self, terms: Array, segments: Array, num_segments: int, *, sorted: bool = False
    ) -> Array:
        """`y[s] = op over terms[k] with segments[k] == s`, shape (num_segments,).

        Segments out of [0, num_segments) are dropped, whatever their terms hold; an empty segment
        gives the identity. `any` picks the first term. With `sorted` the segments ascend. Float
        additions use atomics on a GPU, whose order may vary from run to run.
        """
        terms = self.admit(terms)
        if 0 in (terms.shape[0], num_segments):
            return jnp.full(num_segments, self.identity_of(terms.dtype)[()], terms.dtype)
        if self.kind == "logaddexp":
            return _segment_logsumexp(terms, segments, num_segments)
        if self.kind == "any":
            slot = jnp.arange(terms.shape[0], dtype=jnp.int32)
            winner = jnp.full(num_segments, terms.shape[0], jnp.int32)
            winner = winner.at[segments].min(slot, **_DROP)
            return terms.at[winner].get(mode="fill", fill_value=0)
        if terms.dtype == bool and self.kind in _BOOLEAN:
            return self._segment_boolean(terms, segments, num_segments)
        if self.kind in _SCATTER:
            return self._segment_scatter(terms, segments, num_segments, sorted)
        return self.segment_scan(terms, segments, num_segments, sorted=sorted)

    def _segment_boolean(self, terms, segments, num_segments):
        """By the extreme, or by the parity, of 0 and 1."""
        if self.kind in ("xor", "xnor"):
            odd = terms if self.kind == "xor" else ~terms
            counts = jnp.zeros(num_segments, jnp.int32).at[segments].add(odd, **_DROP)
            return (counts % 2 == 1) == (self.kind == "xor")
        method = "max" if _BOOLEAN[self.kind] is jnp.any else "min"
        start = jnp.full(num_segments, method == "min", jnp.int8)
        return getattr(start.at[segments], method)(terms.astype(jnp.int8), **_DROP) > 0

    def _segment_scatter(self, terms, segments, num_segments, sorted):
        def by_atomics():
            start = jnp.full(num_segments, self.identity_of(terms.dtype)[()], terms.dtype)
            scatter = getattr(start.at[segments], str(self.kind))
            return scatter(terms, **_DROP)

        if self.kind == "add" and scatter_add_is_slow(terms.dtype):
            return lax.platform_dependent(
                cuda=lambda: self.segment_scan(terms, segments, num_segments, sorted=sorted),
                default=by_atomics,
            )
        return by_atomics()

    def segment_scan(
        self, terms: Array, segments: Array, num_segments: int, *, sorted: bool = False
    ) -> Array:
        """`segment_reduce` by a segmented scan: for any associative `op`, and deterministic.

        Flags mark where a segment starts; the scanned pair (flag, value) is that of Blelloch,
        "Prefix sums and their applications", 1990.
        """
        terms = self.admit(terms)
        identity = jnp.asarray(self.identity_of(terms.dtype))
        if not sorted:
            order = jnp.argsort(segments, stable=True)
            segments, terms = segments[order], terms[order]
        inside = (segments >= 0) & (segments < num_segments)
        scanned = self.scan_runs(jnp.where(inside, terms, identity), segments)
        ends = jnp.append(segments[1:] != segments[:-1], True)[: terms.shape[0]]
        slot = jnp.arange(terms.shape[0], dtype=segments.dtype)
        target = jnp.where(ends & inside, segments, num_segments + slot)  # unique: it transposes
        start = jnp.full(num_segments, identity)
        return start.at[target].set(scanned, mode="drop", unique_indices=True)

    def scan_runs(self, terms: Array, segments: Array) -> Array:
        """Inclusive scan of `terms` that starts anew wherever the sorted `segments` change."""
        return _scan_runs(self, terms, segments)


@jax.jit  # a scan is some forty operations: one program also where the caller is eager
def _scan_runs(monoid: Monoid, terms: Array, segments: Array) -> Array:
    starts = jnp.append(True, segments[1:] != segments[:-1])[: terms.shape[0]]
    identity = jnp.asarray(monoid.identity_of(terms.dtype))

    def combine(left, right):
        flag_l, value_l = left
        flag_r, value_r = right
        # Both `where`: an infinity of one run must not reach the derivative of another.
        joined = monoid.op(jnp.where(flag_r, identity, value_l), value_r)
        return flag_l | flag_r, jnp.where(flag_r, value_r, joined.astype(value_r.dtype))

    return lax.associative_scan(combine, (starts, terms))[1]


def monoid(
    op: BinaryOp | Callable[..., Any],
    identity: Any = None,
    terminal: Any = None,
    *,
    name: str | None = None,
) -> Monoid:
    """A monoid of a `BinaryOp` or of any JAX-traceable function of two arrays.

    Well-known functions (`jnp.add`, `jnp.minimum`, `lax.max`, `jnp.logical_or`, ...) get the
    hardware's reduction; any other operator gets a segmented scan, slower and always right.

    Args:
        op: associative and commutative.
        identity: number, or function from dtype to number; `inf` is the largest value of an
            integer dtype. It may be left out where `op` is one of the well-known functions.
        terminal: a value that ends a reduction early, or None.
        name: shown in messages.

    Raises:
        TypeError: `op` is not callable.
        ValueError: `identity` is needed and missing.

    >>> import jax.numpy as jnp
    >>> monoid(jnp.maximum).identity_of(jnp.int8)
    array(-128, dtype=int8)
    """
    binary = as_binary(op)
    known = _KNOWN.get(binary.fn)
    if known is not None and (identity is None or identity == known.identity):
        end = known.terminal if terminal is None else terminal
        return dataclasses.replace(known, terminal=end, name=name or known.name)
    if identity is None:
        raise ValueError(f"`identity` is needed: `{binary.name}` is not a well-known operator.")
    return Monoid(binary, identity, terminal, None, name or binary.name)


def as_monoid(add: Any, name: str = "add") -> Monoid:
    """`add` itself, or the monoid of a name, an operator or a function that is well known.

    Raises:
        TypeError: it is no operator of two operands.
        ValueError: it is none of the well-known ones, so that its identity is not known.
    """
    if isinstance(add, Monoid):
        return add
    if isinstance(add, str):
        named = {m.name: m for m in ALL}
        if add not in named:
            raise ValueError(f"`{name}` must be one of {sorted(named)}; got {add!r}.")
        return named[add]
    binary = as_binary(add, name)
    if binary.fn not in _KNOWN:
        raise ValueError(
            f"`{name}` must be a Monoid or well known; make one of {binary.name!r} by "
            "`jaxspv.monoid(op, identity)`."
        )
    return monoid(binary)


def value_of(value: Any, dtype: DTypeLike) -> np.ndarray:
    """`value` (a number or a function of the dtype) in `dtype`; infinities become its extremes."""
    dtype = np.dtype(dtype)
    value = value(dtype) if callable(value) else value
    if dtype == np.bool_ and value in (np.inf, -np.inf):
        value = value > 0
    elif dtype.kind in "iu" and value in (np.inf, -np.inf):
        value = np.iinfo(dtype).max if value > 0 else np.iinfo(dtype).min
    elif dtype.kind in "iu" and value == -1:
        return np.array(-1).astype(dtype)  # all bits set
    return np.asarray(value, dtype)


def _dtype_kind(dtype: DTypeLike) -> str:
    dtype = jnp.dtype(dtype)
    if dtype.kind == "V" and dtype.itemsize > 1:  # narrower floats may lack an infinity
        return "f" if jnp.issubdtype(dtype, jnp.floating) else "V"
    return dtype.kind


def _first_along(x: Array, axes: tuple[int, ...]) -> Array:
    if 0 in (x.shape[a] for a in axes):
        return jnp.sum(x, axes).astype(x.dtype)  # zeros
    for axis in sorted((a % x.ndim for a in axes), reverse=True):
        x = lax.index_in_dim(x, 0, axis, keepdims=False)
    return x


def _segment_logsumexp(terms: Array, segments: Array, num_segments: int) -> Array:
    """`log sum exp` by segments, stable: each segment is shifted by its finite maximum."""
    low = jnp.asarray(-jnp.inf, terms.dtype)
    inside = (segments >= 0) & (segments < num_segments)
    segments = jnp.where(inside, segments, num_segments)
    terms = jnp.where(inside, terms, low)
    peak = jnp.full(num_segments, low).at[segments].max(lax.stop_gradient(terms), mode="drop")
    shift = jnp.where(jnp.isfinite(peak), peak, 0)
    own = shift.at[segments].get(mode="fill", fill_value=0)
    total = plus.segment_reduce(jnp.exp(terms - own), segments, num_segments)
    empty = total == 0
    return jnp.where(empty, low, jnp.log(jnp.where(empty, 1, total)) + shift)


def _parity(x: Array, axes: tuple[int, ...]) -> Array:
    return jnp.sum(x, axes, dtype=jnp.int32) % 2 == 1


def _even_zeros(x: Array, axes: tuple[int, ...]) -> Array:
    return jnp.sum(~x, axes, dtype=jnp.int32) % 2 == 0


_BOOLEAN: dict[Any, Callable[..., Array]] = {
    "or": jnp.any,
    "add": jnp.any,
    "max": jnp.any,
    "and": jnp.all,
    "multiply": jnp.all,
    "min": jnp.all,
    "xor": _parity,
    "xnor": _even_zeros,
}
_SCATTER = ("add", "multiply", "min", "max")
_DROP: dict[str, Any] = {"mode": "drop", "wrap_negative_indices": False}


def _zero_unless_float(dtype: np.dtype) -> int | None:
    """0 ends a product, but 0 times infinity is NaN."""
    return 0 if dtype.kind in "biu" else None


plus = Monoid(operators.plus, 0, None, "add", "plus", "biufc")
times = Monoid(operators.times, 1, _zero_unless_float, "multiply", "times", "biufc")
min_ = Monoid(operators.minimum, np.inf, -np.inf, "min", "min")
max_ = Monoid(operators.maximum, -np.inf, np.inf, "max", "max")
any_ = Monoid(operators.any_, None, None, "any", "any", "biufc")
lor = Monoid(operators.lor, False, True, "or", "lor", "b")
land = Monoid(operators.land, True, False, "and", "land", "b")
lxor = Monoid(operators.lxor, False, None, "xor", "lxor", "b")
lxnor = Monoid(operators.lxnor, True, None, "xnor", "lxnor", "b")
bor = Monoid(operators.bor, 0, -1, None, "bor", "biu")
band = Monoid(operators.band, -1, 0, None, "band", "biu")
bxor = Monoid(operators.bxor, 0, None, None, "bxor", "biu")
bxnor = Monoid(operators.bxnor, -1, None, None, "bxnor", "biu")
logaddexp = Monoid(operators.logaddexp, -np.inf, None, "logaddexp", "logaddexp", "f")

ALL: tuple[Monoid, ...] = tuple(v for v in list(globals().values()) if isinstance(v, Monoid))
_KNOWN: dict[Any, Monoid] = {m.op.fn: m for m in ALL}
_KNOWN |= {lax.add: plus, lax.mul: times, lax.min: min_, lax.max: max_, jnp.logaddexp: logaddexp}
