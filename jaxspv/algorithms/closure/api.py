"""`closure`: the sum over all paths, `x0 + x0 A + x0 A A + ...`, and the ways it can be had."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax
from jax.flatten_util import ravel_pytree

from ..._core.eager.arrays import array_of, is_eager, on_gpu, to_device
from ..._core.indices import LIMIT
from ..._core.loops import scan, while_going
from ..._core.pytree import is_concrete, result_tuple
from ..._core.tuples import Each, choose, multiplied
from ...algebra.families import one_of
from ...algebra.functions import check_function
from ...algebra.monoid import values_of
from ...algebra.semiring import Semiring, along_paths
from ...algebra.semirings import as_semiring, min_plus
from ...formats.base import SparseMatrix
from ...formats.csr import joined
from ...formats.tuples import Tuples
from ...ops.products.mxv.api import vxm
from ...ops.tuples.operations import as_tuples, on_tuples, product
from ...until import Until, check_until, max_iterations, unchanged
from ..common.derivatives import fixed_point
from ..common.weights import fits
from ..fixpoint.api import Fixpoint
from ..fixpoint.xla import differs
from . import jvp, levels
from .pieces import plan

if TYPE_CHECKING:
    from jaxtyping import Bool, Int

    from ...shapes import Matrix

UNTIL = ("unchanged", "residual", "max_iterations")
MOST_VERTICES = 2048  # of a closure by `star`, which is dense


@result_tuple
class Closure(NamedTuple):
    """The result of `closure`.

    Attributes:
        x: (n,) an array, or a pytree of arrays (n, ...): the sum over all paths to each vertex.
        iterations: int32, products that were needed; of an acyclic graph its levels.
        converged: bool; False: only a bound on the iterations stopped the loop, a sum of integers
            did not fit its dtype, or a sum over a cycle diverges.
    """

    x: Any
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]


def closure(
    A: Matrix | Tuples,
    semiring: Semiring | str = min_plus,
    *,
    start: Any = None,
    star: Callable[[Any], Any] | None = None,
    until: Until | None = None,
) -> Closure:
    """The sum over all paths, `x = x0 + x0 A + x0 A A + ...`, which solves `x = x0 + x A`.

    `x[j] = x0[j] add (add over edges i -> j of mul(x[i], A[i, j]))`. Taken is the first way that
    serves: steps, if `until` is given; levels, if the graph is acyclic and its pattern is known (it
    may be captured by a jitted function of the values); elimination, if there is a `star`; steps
    until nothing changes, if addition is idempotent.

    Args:
        A: a square matrix or Graph of numbers, or a matrix of tuples. A product may take edges of
            another kind than x, so long as it gives values of the kind of x.
        semiring: its `add` need not commute: a vertex's own value comes first, then its edges by
            source.
        start: a vertex, whose x0 is the one of the semiring, zero elsewhere; or x0 itself, (n,) or
            a pytree of (n, ...). None: one at every vertex.
        star: `star(a) = one + a + a a + ...` of a value, for graphs with cycles; by default that of
            the semiring, which plus_times and log_plus have for floats: with it sums are infinite
            or NaN where they diverge. `lambda a: 1 / (1 - a)` solves `x = x0 + x A` there too.
        until: conditions of `jaxspv.until`: `unchanged`, `residual` (L1 change of a step),
            `max_iterations`. Where A contracts, `residual(tol)` ends.

    Returns:
        `Closure(x, iterations, converged)`.

    Raises:
        TypeError: values do not fit the semiring.
        ValueError: the graph has cycles (or its pattern is traced), and neither `until` nor a star
            is given, nor is addition idempotent; A is not square; too large for a `star`.

    Differentiable in the values, x0 and the semiring's parameters: through the levels, through the
    elimination; of steps implicitly at the solution (A must contract there, or a term win that no
    cycle brings back), and of `until=max_iterations(k)` alone through the k steps.

    Source: Lehmann, "Algebraic structures for transitive closure", Theoretical Computer Science 4
    (1), 1977; Mohri, "Semiring frameworks and algorithms for shortest-distance problems", 2002.

    >>> import jaxspv as jsp
    >>> A = jsp.from_edges([0, 0, 1], [1, 2, 2], [1.0, 5.0, 1.0], shape=(3, 3))
    >>> closure(A, start=0).x.tolist()
    [0.0, 1.0, 2.0]
    >>> s = jsp.semirings.k_best(2)
    >>> closure(A.with_data(s.lift(A.data)), s, start=0).x[0].tolist()  # both ways to 2
    [[0.0, inf], [1.0, inf], [2.0, 5.0]]
    """
    if isinstance(A, SparseMatrix) and not A.unique:
        A = joined(A)
    T, semiring = as_tuples("A", A), as_semiring(semiring)
    n = T.shape[0]
    if T.shape != (n, n):
        raise ValueError(f"`A` must be square; got {T.shape}.")
    until = check_until(until, UNTIL, "closure", n)
    if star is not None:
        check_function("star", star, 1, "one value")
    x0 = _start(semiring, T, start, n)
    if not semiring.add.of_tuples:
        semiring = along_paths(semiring, x0.dtype)
    found = _solved(semiring, T, x0, star, until)
    if semiring.add.of_tuples or len(jax.tree.leaves((T.values, x0))) != 2:
        return found
    exact = fits(semiring, T.places.with_data(T.data), found.x, x0)
    return found if exact is True else found._replace(converged=found.converged & exact)


def _solved(semiring: Semiring, T: Tuples, x0: Any, star: Any, until: Any) -> Closure:
    n = T.shape[0]
    if until is None and not n:
        return Closure(x0, jnp.int32(0), jnp.asarray(True))
    if until is None and is_concrete(T.places):
        found = plan(T)
        if found is not None:
            pieces, deep = found
            params, places = (semiring, T.values, x0), T.places
            if (pieces.first is not None or on_gpu(places)) and jvp.serves(*params):
                by, values, at = (p if is_concrete(p) else lax.stop_gradient(p) for p in params)
                x = levels.evaluate(by, values, at, pieces)
                x = jvp.solution(lambda: (places, pieces), params, x)
            else:
                x = levels.evaluate(*params, pieces)
            return Closure(x, jnp.int32(deep), jnp.asarray(True))
    if until is None and (star := _star_of(semiring, x0) if star is None else star) is not None:
        if n > MOST_VERTICES:
            raise ValueError(
                f"a closure by `star` is dense, of {MOST_VERTICES} vertices at most; got {n}: give "
                "`until=residual(...)` where A contracts."
            )
        x, finite = _eliminated(semiring, T, x0, star)
        return Closure(x, jnp.int32(n), finite)
    if until is None and not semiring.add.idempotent:
        why = "has cycles" if is_concrete(T.places) else "has a traced pattern"
        raise ValueError(
            f"the graph {why}, and the addition of {semiring!r} is not idempotent: a sum over all "
            "walks need not exist. Give `star`, or `until=residual(...)` where A contracts, or "
            "`until=max_iterations(k)` for walks of at most k edges."
        )
    if semiring.add.of_tuples or len(jax.tree.leaves(T.values)) != 1:
        T = Tuples(T.places.T.to_coo(), T.values)  # in the order of the targets
    else:
        T = T.places.with_data(T.data).asformat("csc")
    if until is not None and until.kind == "max_iterations" and is_concrete(until.value):
        k = int(until.value)
        return Closure(_steps(semiring, T, x0, k=k), jnp.int32(k), jnp.asarray(False))
    bounded = unchanged() | max_iterations(2 * n + 2) if until is None else until
    x, iterations, converged = _iterated(semiring, T, x0, bounded)
    return Closure(_differentiable(semiring, T, x0, x), iterations, converged)


@on_tuples
def fixpoint(A, x0, semiring, *, until=None, **options):
    """`fixpoint` of tuples: the `closure` of x0, for `closure=True` or `monotone=True` alone."""
    semiring = as_semiring(semiring)
    if options.get("monotone") and not semiring.add.idempotent:
        raise ValueError(
            f"`monotone` needs an idempotent addition, which that of {semiring!r} is not: give "
            "`closure=True`."
        )
    asked = {name for name, value in options.items() if value}
    if not asked or asked - {"closure", "monotone"}:
        raise ValueError(
            "over tuples `fixpoint` solves `x = x0 + x A`: it takes `until` and `closure` or "
            f"`monotone`; got {sorted(asked)}. For another loop call `vxm` in `jax.lax.while_loop`."
        )
    return Fixpoint(*closure(A, semiring, start=x0, until=until), jnp.int32(0))


def _start(semiring: Semiring, T: Tuples, start: Any, n: int) -> Any:
    """x0: the floats of the one and zero of the semiring in the dtype of those of A."""
    leaves = jax.tree.leaves(start)
    if start is not None and (len(leaves) != 1 or np.ndim(leaves[0])):
        x0 = jax.tree.map(lambda v: array_of("start", v), start)
        semiring.add.like(x0)
        if any(v.shape[:1] != (n,) for v in jax.tree.leaves(x0)):
            raise ValueError(f"`start` must be a vertex or have leaves of shape ({n}, ...).")
        if (found := _summed(semiring, T, x0, as_x0=True)) != (given := _dtypes(x0)):
            raise TypeError(f"x0 must have the dtypes of `x0 + x0 A`, {found}; got {given}.")
        return x0
    one = jax.tree.map(np.asarray, one_of(semiring))
    alike = jax.tree.structure(one) == jax.tree.structure(T.values)
    dtypes = [v.dtype for v in jax.tree.leaves(T.values)]
    real = next((d for d in dtypes if jnp.issubdtype(d, jnp.inexact)), jnp.float32)
    units, tree = jax.tree.flatten(one)
    if not alike:
        dtypes = [real if v.dtype.kind == "f" else np.int32 for v in units]
    one = tree.unflatten(map(jnp.zeros_like, units, dtypes))
    dtypes = _summed(semiring, T, jax.tree.map(lambda v: v[None], one))
    one = tree.unflatten(map(values_of, units, dtypes))
    if start is not None and not jnp.issubdtype(jnp.result_type(start), jnp.integer):
        raise ValueError(f"`start` must be a vertex, an integer, or x0 itself; got {start}.")
    if start is not None and is_concrete(start) and not 0 <= int(start) < n:
        raise ValueError(f"`start` must be a vertex in [0, {n}); got {start}.")
    if start is None or not is_eager((start, one)):
        everywhere = jax.tree.map(lambda v: jnp.broadcast_to(v, (n, *v.shape)), one)
        if start is None:
            return everywhere
        return choose(jnp.arange(n) == start, everywhere, semiring.add.like(everywhere))
    rows = jax.tree.map(lambda v: jax.ShapeDtypeStruct((n, *v.shape), v.dtype), one)

    def alone(o, z):  # by NumPy, which has no program for each size
        x0 = np.full((n, *np.shape(o)), z, o.dtype)
        x0[int(start)] = o
        return to_device(x0)

    return jax.tree.map(alone, one, semiring.add.like(rows))


def _dtypes(x: Any) -> list[str]:
    return [v.dtype.name for v in jax.tree.leaves(x)]


def _summed(semiring: Semiring, T: Tuples, x: Any, as_x0: bool = False) -> list[str]:
    """The dtypes of `x + x A`; as_x0: of products in those of x, if these hold as much."""

    def fitted(v, o):
        real = jnp.issubdtype(v.dtype, jnp.inexact) and not jnp.issubdtype(o.dtype, jnp.inexact)
        return v if real else v.astype(o.dtype)

    def step(x, edge):
        y = multiplied(semiring, x, edge)
        given, want = (jax.tree.map(jnp.shape, v) for v in (y, x))
        if given != want:
            raise TypeError(f"`mul` must give shapes as those of x, {want}; got {given}.")
        y = jax.tree.map(fitted, y, x) if as_x0 else y
        return Each(semiring.add.op)(x, semiring.add.segment_reduce(y, jnp.zeros(1, jnp.int32), 1))

    one = jax.tree.map(lambda v: jax.ShapeDtypeStruct((1, *v.shape[1:]), v.dtype), (x, T.values))
    return _dtypes(jax.eval_shape(step, *one))


# ---- Steps ----


def _step(semiring: Semiring, T: Any, x0: Any, x: Any) -> Any:
    """`x0 + x A`; T is the transpose of A as `Tuples`, or A itself, of numbers by columns."""
    if isinstance(T, Tuples):
        y = product(semiring, T, x, None, flip=True)
    else:
        y = vxm(x, T, semiring)
    return Each(semiring.add.op)(x0, jax.tree.map(lambda v, o: v.astype(o.dtype), y, x0))


@functools.partial(jax.jit, static_argnames="k")
def _steps(semiring: Semiring, T: Any, x0: Any, *, k: int) -> Any:
    return scan(lambda x, _: (_step(semiring, T, x0, x), None), x0, length=k)[0]


@jax.jit
def _iterated(semiring: Semiring, T: Any, x0: Any, until: Until) -> tuple[Any, Array, Array]:
    semiring, T, x0 = lax.stop_gradient((semiring, T, x0))

    def step(state):
        x, k, _, _ = state
        y = _step(semiring, T, x0, x)
        other = jax.tree.leaves(jax.tree.map(differs, x, y))
        same = ~functools.reduce(jnp.logical_or, map(jnp.any, other))
        change = sum(
            jnp.sum(jnp.where(d, jnp.abs(a - b), 0))
            for a, b, d in zip(jax.tree.leaves(x), jax.tree.leaves(y), other, strict=True)
            if jnp.issubdtype(a.dtype, jnp.inexact)
        )
        stop = until.holds(iteration=k + 1, unchanged=same, residual=change)
        endless = until.with_bounds([LIMIT] * len(until.bounds()))
        done = same | endless.holds(iteration=k + 1, unchanged=same, residual=change)
        return y, k + 1, done, ~jnp.asarray(stop)

    start = (x0, jnp.int32(0), jnp.asarray(False), jnp.asarray(True))
    x, k, done, _ = while_going(step, start)
    return x, k, done


def _differentiable(semiring: Semiring, T: Any, x0: Any, x: Any) -> Any:
    """x with the derivative of the solution of `x = x0 + x A` in its real leaves."""
    leaves, tree = jax.tree.flatten(x)
    others = [None if jnp.issubdtype(v.dtype, jnp.inexact) else v for v in leaves]

    def real(leaves):
        return ravel_pytree([v for v, o in zip(leaves, others, strict=True) if o is None])

    flat, back = real(leaves)

    def whole(flat, others):
        found = iter(back(flat))
        return tree.unflatten([next(found) if o is None else o for o in others])

    def step(flat, semiring, T, x0, others):
        return real(jax.tree.leaves(_step(semiring, T, x0, whole(flat, others))))[0]

    return whole(fixed_point(step, (semiring, T, x0, others), flat), others)


# ---- Elimination ----


def _star_of(semiring: Semiring, x0: Any) -> Callable[[Any], Any] | None:
    """The semiring's own `star`, of numbers if it gives some of their dtype: not for integers."""
    star = semiring.star
    if star is None or semiring.add.of_tuples:
        return star
    found = jax.eval_shape(star, jax.ShapeDtypeStruct((), x0.dtype))
    return star if found.dtype == x0.dtype else None


@functools.partial(jax.jit, static_argnames="star")
def _eliminated(semiring: Semiring, T: Tuples, x0: Any, star: Callable[[Any], Any]) -> Any:
    """x0 A* by Gauss' and Jordan's elimination of one vertex after another; and whether sums of
    numbers are finite, which over a cycle they need not be."""
    n, add, mul = T.shape[0], Each(semiring.add.op), semiring.mul
    row, col = T.places.rowcol()
    zero = semiring.add.like(x0)

    def laid(z, v, o):
        blank = jnp.full((n, n, *np.shape(z)), z, o.dtype)
        return blank.at[row, col].set(v.astype(o.dtype), mode="drop")

    def is_more(v, z):  # than nothing: what is missing meets no infinite sum over a cycle
        return jnp.any((v != z).reshape(n, -1), 1)

    M = jax.tree.map(laid, zero, T.data, x0)
    paths = jnp.zeros((n, n), bool).at[row, col].set(True, mode="drop")
    reached = functools.reduce(jnp.logical_or, jax.tree.leaves(jax.tree.map(is_more, x0, zero)))

    def eliminate(state, k):
        x, reached, M, paths = state
        loop = star(jax.tree.map(lambda v: v[k, k], M))
        through = jax.vmap(lambda a: mul(loop, a))(jax.tree.map(lambda v: v[k], M))
        into = jax.tree.map(lambda v: v[:, k], M)
        detour = jax.vmap(lambda a: jax.vmap(lambda b: mul(a, b))(through))(into)
        own = jax.tree.map(lambda v: v[k], x)
        more, detours = reached[k] & paths[k], paths[:, k, None] & paths[None, k]
        x = add(x, choose(more, jax.vmap(lambda b: mul(own, b))(through), zero))
        M = Each(add)(M, choose(detours, detour, zero))
        return (x, reached | more, M, paths | detours), None

    x = scan(eliminate, (x0, reached, M, paths), jnp.arange(n))[0][0]
    if semiring.add.of_tuples or not semiring.add.sums_tangents:
        return x, jnp.asarray(True)
    return x, ~jnp.any(jnp.isnan(x) | (x == jnp.inf))
