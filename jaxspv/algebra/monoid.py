"""The class of monoids: an associative operator with its identity, and all it does to arrays.

What XLA and the hardware have for one stands in one table, `_core.reductions.FORMS`; the rest of
the library asks the properties and methods of `Monoid`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.typing import DTypeLike

from .._core.compat import scatter_add_is_slow
from .._core.forms import ON_TUPLES
from .._core.pytree import Algebraic, pytree_dataclass, static
from .._core.reductions import (
    FORMS,
    OF_TRUTH,
    ROUNDED,
    Form,
    Scatter,
    add_in_double,
    fold,
    scan_runs,
    segment_scan,
    zeros_in_double,
)
from .._core.tuples import Constant, Each
from .._core.tuples import fold as fold_tuples
from ..shapes import Bool, Inexact, Int, Shaped
from .operators import BinaryOp, as_binary

Kind = Literal["add", "multiply", "min", "max", "or", "and", "xor", "xnor", "any", "logaddexp"]


@pytree_dataclass
class Monoid(Algebraic):
    """`op` with `op(identity, x) == x`, associative and commutative.

    Build one with `monoid(op, identity, terminal=None)`.

    Attributes:
        op: the operator; its parameters are pytree leaves.
        identity: a number, or a function from dtype to a number; `inf` and `-inf` mean the largest
            and the smallest value of an integer dtype. None: there is none (`any`). A `Constant`
            where values are tuples (`of_tuples`); terms are then joined in their order.
        terminal: like `identity`; a value that ends a reduction early (`op(terminal, x) ==
            terminal` for every x but NaN), or None.
        kind: the reduction that XLA and the hardware have for it; None for a user's operator, which
            takes a segmented scan instead.
        name: shown in messages.
        dtypes: the kinds of dtype it is defined on, as in NumPy: b(ool), i(nt), u(int), f(loat),
            c(omplex).
        idempotent: `op(x, x) == x`: terms may come again, as in a monotone fixpoint.
        selective: the result is one of the operands, so that a reduction has the derivative of the
            first term that equals it. Implies idempotent.
        by_segments: of tuples a faster `segment_reduce`, `(terms, segments, count)`, or None.
        whole: of tuples a faster `reduce`, of terms along the first axis, or None.
        ordered: of tuples: `op` was seen not to commute; None: not known (`check=False`).

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
    idempotent: bool = static(default=False)
    selective: bool = static(default=False)
    by_segments: Callable[..., Any] | None = static(default=None)
    whole: Callable[..., Any] | None = static(default=None)
    ordered: bool | None = static(default=False)

    def __post_init__(self):
        object.__setattr__(self, "op", as_binary(self.op))

    def __repr__(self) -> str:
        return f"Monoid({self.name})"

    @property
    def of_tuples(self) -> bool:
        """Whether its values are tuples or arrays and not numbers."""
        return isinstance(self.identity, Constant)

    @property
    def __jaxspv_functions__(self) -> dict[str, Any] | None:
        return ON_TUPLES if self.of_tuples else None

    def like(self, terms: Any) -> Any:
        """The identity in the dtypes of values: a number, or a pytree of NumPy arrays.

        Raises:
            TypeError: the values have another structure, or leaves of other shapes.
        """
        if not self.of_tuples:
            if jax.tree.structure(terms) != jax.tree.structure(0):
                raise TypeError(f"the monoid `{self.name}` takes numbers; got {type(terms)}.")
            return self.identity_of(terms.dtype)
        want, tree = self.identity, jax.tree.structure(terms)
        leaves = jax.tree.leaves(terms)
        deep = leaves[0].ndim - want.leaves[0].ndim if leaves else 0
        shapes = [x.shape for x in want.leaves]
        aligned = deep > 0 and len({x.shape[:deep] for x in leaves}) == 1
        if tree != want.tree or not aligned or [x.shape[deep:] for x in leaves] != shapes:
            raise TypeError(
                f"values of the monoid `{self.name}` are {want.value!r} and the like, with leaves "
                f"of shapes {shapes}; got {tree} with {[x.shape for x in leaves]}."
            )
        found = zip(want.leaves, leaves, strict=True)
        return jax.tree.unflatten(tree, [values_of(value, leaf.dtype) for value, leaf in found])

    def accepts(self, dtype: DTypeLike) -> bool:
        """Whether the monoid is defined on `dtype`."""
        dtype = jnp.dtype(dtype)
        kind = dtype.kind
        if kind == "V" and dtype.itemsize > 1 and jnp.issubdtype(dtype, jnp.floating):
            kind = "f"  # narrower floats may lack an infinity
        return kind in self.dtypes

    def admit(self, x: Shaped[Array, "*k"]) -> Shaped[Array, "*k"]:
        """`x` in a dtype of the monoid: logical monoids take truth values of anything.

        Raises:
            TypeError: the monoid is not defined on the dtype of `x`.
        """
        if self.dtypes == "b":
            return x.astype(bool)
        if not self.accepts(x.dtype):
            raise TypeError(f"the monoid `{self.name}` is not defined on {x.dtype}.")
        return x

    def identity_of(self, dtype: DTypeLike) -> Shaped[np.ndarray, ""]:
        """The identity as a NumPy scalar array of `dtype`; 0 where the monoid has none."""
        return value_of(0 if self.identity is None else self.identity, dtype)

    def terminal_of(self, dtype: DTypeLike) -> Shaped[np.ndarray, ""] | None:
        """The terminal value as a NumPy scalar array of `dtype`, or None."""
        terminal = self.terminal
        value = terminal(np.dtype(dtype)) if callable(terminal) else terminal
        return None if value is None else value_of(value, dtype)

    def _form(self, dtype: DTypeLike) -> Form | None:
        kind = OF_TRUTH.get(str(self.kind), self.kind) if np.dtype(dtype) == np.bool_ else self.kind
        return FORMS.get(kind)

    def atomic(self, dtype: DTypeLike) -> Scatter | None:
        """The scatter of XLA, and the atomic of a GPU, that combines terms of `dtype`; or None.

        For truth values the one of 0 and 1.

        >>> from jaxspv.algebra.monoids import logaddexp, lor, plus
        >>> plus.atomic(np.int32), lor.atomic(bool), logaddexp.atomic(np.float32)
        ('add', 'max', None)
        """
        form = self._form(dtype)
        return None if form is None else form.scatter

    def scatter(self, dtype: DTypeLike) -> Scatter | None:
        """`atomic`, where the installed XLA is fast at it."""
        name = self.atomic(dtype)
        return None if name == "add" and scatter_add_is_slow(dtype) else name

    @property
    def scatters(self) -> bool:
        """Whether `segment_reduce` takes scatters; a user's operator sorts and scans instead."""
        return self.kind is not None

    @property
    def takes_first(self) -> bool:
        """Whether any term will do, whatever the others are: `any`, which takes the first."""
        return self.kind == "any"

    @property
    def sums_exponentials(self) -> bool:
        """Whether it is the logarithm of the sum of the exponentials of the terms."""
        return self.kind == "logaddexp"

    @property
    def sums_tangents(self) -> bool:
        """Whether the tangent of a reduction is the sum of `weighted` tangents of its terms."""
        return self.scatters and FORMS[self.kind].weight is not None

    def weighted(
        self,
        tangents: Inexact[Array, " k"],
        terms: Inexact[Array, " k"],
        totals: Inexact[Array, " k"],
    ) -> Inexact[Array, " k"]:
        """`tangents` times the derivative of the reduction by each term; see `sums_tangents`.

        Args:
            tangents, terms: (k,) of what is reduced.
            totals: (k,) the result that each term is part of; the term itself in padding, so that
                no weight there is infinite.
        """
        weight = FORMS[self.kind].weight
        assert weight is not None, f"{self} has no weights"
        return weight(tangents, terms, totals)

    def reduce(self, x: Any, axis: int | tuple[int, ...] = -1) -> Any:
        """`op` over `axis`; the identity where the axis is empty. Of tuples over the first."""
        if self.of_tuples:
            identity = self.like(x)
            if self.whole is not None and jax.tree.leaves(x)[0].shape[0]:
                return self.whole(x)
            return fold_tuples(Each(self.op), x, identity)
        x = self.admit(x)
        axes = (axis,) if isinstance(axis, int) else axis
        form, identity = self._form(x.dtype), self.identity_of(x.dtype)[()]
        if form is None:
            return fold(self.op, x, axes, identity)
        return form.whole(x, axes, identity)

    def segment_reduce(
        self, terms: Any, segments: Int[Array, " k"], num_segments: int, *, sorted: bool = False
    ) -> Any:
        """`y[s] = op over terms[k] with segments[k] == s`, shape (num_segments,).

        Segments out of [0, num_segments) are dropped, whatever their terms hold; an empty segment
        gives the identity. `any` picks the first term. With `sorted` the segments ascend. Float
        additions use atomics on a GPU, whose order may vary from run to run. Terms may be tuples.
        """
        if self.of_tuples:
            self.like(terms)
            if self.by_segments is None or 0 in (segments.shape[0], num_segments):
                return self.segment_scan(terms, segments, num_segments, sorted=sorted)
            return self.by_segments(terms, segments, num_segments)
        terms = self.admit(terms)
        form, identity = self._form(terms.dtype), self.identity_of(terms.dtype)[()]
        if 0 in (terms.shape[0], num_segments):
            return jnp.full(num_segments, identity, terms.dtype)
        if form is None:
            return self.segment_scan(terms, segments, num_segments, sorted=sorted)
        return form.segments(terms, segments, num_segments, identity, sorted)

    def segment_scan(
        self, terms: Any, segments: Int[Array, " k"], num_segments: int, *, sorted: bool = False
    ) -> Any:
        """`segment_reduce` by a segmented scan: for any associative `op`, and deterministic."""
        if self.of_tuples:
            identity, op = self.like(terms), Each(self.op)
            return segment_scan(op, terms, segments, num_segments, identity, sorted=sorted)
        terms = self.admit(terms)
        identity = self.identity_of(terms.dtype)
        return segment_scan(self.op, terms, segments, num_segments, identity, sorted=sorted)

    def accumulator(self, n: int, dtype: Any) -> Shaped[Array, " n"]:
        """(n,) the identity, `total` of `accumulate` for terms of a dtype; sums are in float64."""
        if self.kind == "add" and dtype in ROUNDED:
            return zeros_in_double(n)
        return jnp.full(n, self.identity_of(dtype)[()], dtype)

    def accumulate(
        self,
        total: Shaped[Array, " n"],
        present: Bool[Array, " n"],
        place: Int[Array, " k"],
        terms: Shaped[Array, " k"],
    ) -> tuple[Shaped[Array, " n"], Bool[Array, " n"]]:
        """Accumulators `total` joined with `terms[k]` at `place[k]`, and which hold something.

        Args:
            total: (n,) the identity (of `any`: anything) where not `present`; see `accumulator`.
            present: (n,) bool.
            place: (k,) int32; n or beyond drops a term.
            terms: (k,).
        """
        n, scatter = total.shape[0], self.scatter(terms.dtype)
        here = jnp.zeros(n, bool).at[place].set(True, mode="drop")
        if total.dtype != terms.dtype:
            return add_in_double(total, place, terms), present | here
        if scatter is not None and terms.dtype != bool:
            return getattr(total.at[place], scatter)(terms, mode="drop"), present | here
        part = self.segment_reduce(terms, place, n)
        both = self.op(jnp.where(present, total, 0), jnp.where(here, part, 0)).astype(total.dtype)
        return jnp.where(here, jnp.where(present, both, part), total), present | here

    def one_by_one(self, dtype: Any) -> tuple[Any, Callable[..., Any]]:
        """(dtype of the total, `(total, term) -> total`) for terms that are joined one by one.

        float32 and narrower terms in float64, rounded once at the end by `rounded`: any operator
        that float64 may enter, for a user's may add as well. Others in their own dtype. Of tuples
        the dtypes are a pytree.
        """

        def cast(values):
            return jax.tree.map(lax.convert_element_type, values, kept)

        def joined(total, term):
            with jax.enable_x64(wide):
                return cast(self.op(total, cast(term)))

        own = kept = jax.tree.map(np.dtype, dtype)
        wide = jax.config.read("jax_enable_x64")
        if self.takes_first or not any(d in ROUNDED for d in jax.tree.leaves(own)):
            return own, joined
        kept = jax.tree.map(lambda d: np.dtype(np.float64) if d in ROUNDED else d, own)
        with jax.enable_x64(True):
            total = jax.tree.map(lambda d: jax.ShapeDtypeStruct((), d), kept)
            try:
                serves = jax.eval_shape(self.op, total, total) == total
            except TypeError:  # an operator on the bits of a float32
                serves = False
        kept, wide = (kept, True) if serves else (own, wide)
        return kept, joined

    def scan_runs(
        self, terms: Shaped[Array, " k"], segments: Int[Array, " k"]
    ) -> Shaped[Array, " k"]:
        """Inclusive scan of `terms` that starts anew wherever the sorted `segments` change."""
        return scan_runs(self.op, terms, segments, self.identity_of(terms.dtype))


def value_of(value: Any, dtype: DTypeLike) -> Shaped[np.ndarray, ""]:
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


def values_of(values: Any, dtype: DTypeLike) -> Shaped[np.ndarray, "*k"]:
    """`value_of` of each number of an array."""
    values = np.asarray(values)
    each = [value_of(v.item(), dtype) for v in values.reshape(-1)]
    return np.array(each, dtype).reshape(values.shape)
