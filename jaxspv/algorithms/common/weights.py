"""Statistics of concrete weights that algorithms need, computed in one pass on their device."""

from __future__ import annotations

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

from ..._core.eager.arrays import by_numpy, known_while_tracing
from ..._core.eager.kept import kept
from ..._core.pytree import is_concrete
from ...algebra.semiring import Semiring
from ...graph import Graph, arrays_of


def with_real_weights(graph: Graph, algorithm: str) -> Graph:
    """The graph itself.

    Raises:
        TypeError: its weights are complex.
    """
    if graph.dtype.kind == "c":
        raise TypeError(
            f"`{algorithm}` takes real weights; got {graph.dtype}. Make some of them, as by "
            "`A.with_data(abs(A.data))`."
        )
    return graph


def fits(semiring: Semiring, A: Any, x: Any, x0: Any = None) -> Array | bool:
    """Whether no sum of integers along an edge of a matrix left its dtype and counts in x, where
    `x[j] = add over i of mul(x[i], A[i, j])`; nor, given `x0`, a sum over paths, where
    `x = x0 + x A` counts."""
    if not jnp.issubdtype(x.dtype, jnp.integer):
        return True
    if x0 is not None and semiring.add.name == "plus" and semiring.mul.name in ("times", "first"):
        return _sums_fit(semiring, A, x, x0)
    if semiring.add.name in ("min", "max") and semiring.mul.name == "times":
        return _products_fit(semiring, A, x)
    return True if getattr(semiring.mul, "overflow", None) is None else _fits(semiring, A, x)


@jax.jit
def _sums_fit(semiring: Semiring, A: Any, x: Array, x0: Any) -> Array:
    """In float32 `x0 + x A` is near x, unless integers wrapped by 2^bits."""
    row, col = A.rowcol()
    known = x.astype(jnp.float32)
    terms = semiring.mul(known.at[row].get(mode="fill", fill_value=0), A.data.astype(jnp.float32))
    exact = jnp.asarray(x0, jnp.float32).at[col].add(terms, mode="drop")
    return jnp.all(jnp.abs(exact - known) < 2.0 ** (8 * x.dtype.itemsize - 1))


@jax.jit
def _products_fit(semiring: Semiring, A: Any, x: Array) -> Array:
    """In float32 a product is near its integer, unless that wrapped by 2^bits: then none may be
    what x has, nor, unwrapped, be better."""
    row, col = A.rowcol()
    here, there = (x.at[v].get(mode="fill", fill_value=0) for v in (row, col))
    valid = (row < A.shape[0]) & (here != semiring.add.identity_of(x.dtype))
    product = jnp.where(valid, here, 0) * A.data.astype(x.dtype)
    exact = here.astype(jnp.float32) * A.data.astype(jnp.float32)
    off = exact - product.astype(jnp.float32)
    wrapped = valid & ~(jnp.abs(off) < 2.0 ** (8 * x.dtype.itemsize - 1))
    known = there.astype(jnp.float32)
    better = exact < known if semiring.add.name == "min" else exact > known
    return ~jnp.any(wrapped & ((there == product) | better))


@jax.jit
def _fits(semiring: Semiring, A: Any, x: Array) -> Array:
    assert semiring.mul.overflow is not None
    row, col = A.rowcol()
    here, there = (x.at[v].get(mode="fill", fill_value=0) for v in (row, col))
    reached = (row < A.shape[0]) & (here != semiring.add.identity_of(x.dtype))
    left = semiring.mul.overflow(here, A.data) & (there == semiring.mul(here, A.data))
    return ~jnp.any(reached & left)


class Facts(NamedTuple):
    """Statistics of the weights of a graph, padding excluded.

    Attributes:
        least: the least one, at most 0.
        nan, negative, infinite: the first slot with a NaN; with a value that is not >= 0; with one
            that is not finite; -1: none.
        ones: whether all are 1.
        finite_mean: of the finite ones (integers: below the largest); None without any.
    """

    least: Any
    nan: int
    negative: int
    infinite: int
    ones: bool
    finite_mean: float | None


def facts_of(graph: Graph) -> Facts:
    """The facts of a graph with concrete weights: in NumPy, of a large one on a GPU one program.

    Looked up once for eager calls on the same arrays.
    """
    graph = with_real_weights(graph, "prepare")
    if graph.nse == 0:
        return Facts(np.zeros((), graph.dtype)[()], -1, -1, -1, True, None)
    return kept(arrays_of(graph), "weights", lambda: _found(graph))


def _found(graph: Graph) -> Facts:
    weights = graph.data
    if not by_numpy(weights):
        with known_while_tracing():  # a captured graph is known, inside of a jit too
            found = jax.device_get(_on_device(weights, graph.out.indptr))
    else:
        count = int(np.asarray(graph.out.indptr)[-1])
        with np.errstate(invalid="ignore", over="ignore"):  # NaN is looked for, sums may be inf
            found = _facts(np.asarray(weights)[:count], np.bool_(True), np)
    least, nan, negative, infinite, ones, count, total = found
    return Facts(
        least,
        int(nan),
        int(negative),
        int(infinite),
        bool(ones),
        float(total) / float(count) if count else None,
    )


def check_weights(graph: Graph, *, negative: bool = False, infinite: bool = False) -> None:
    """Refuses weights that are NaN, or negative or infinite unless that is allowed; none where they
    or the offsets are traced."""
    if not is_concrete(graph.data, graph.out.indptr):
        return
    facts = facts_of(graph)
    slot = facts.nan if infinite else facts.infinite
    if not negative:
        slot = facts.negative if slot < 0 or 0 <= facts.negative < slot else slot
    if slot >= 0:
        words = [*([] if infinite else ["finite"]), *([] if negative else [">= 0"])]
        raise ValueError(
            f"weights must be {' and '.join(words) or 'numbers'}; "
            f"slot {slot} holds {np.asarray(graph.data)[slot]}."
        )


@jax.jit
def refused(weights: Array, indptr: Array) -> Array:
    """Whether one of these traced weights is negative, infinite or NaN: of concrete ones an
    error, of traced ones NaN in the result."""
    valid = jnp.arange(weights.shape[0], dtype=indptr.dtype) < indptr[-1]
    bad = valid & ~((weights >= 0) & (weights < np.inf))
    return jnp.max(bad.astype(jnp.float32), initial=0) > 0  # of booleans: slower on CPUs


@jax.jit
def _on_device(weights, indptr):
    return _facts(weights, jnp.arange(weights.shape[0], dtype=jnp.int32) < indptr[-1], jnp)


def _facts(weights: Any, valid: Any, xp: Any) -> tuple[Any, ...]:
    zero = weights.dtype.type(0)
    wide = np.float64 if xp is np else np.float32
    valid = xp.broadcast_to(valid, weights.shape)
    floats = jnp.issubdtype(weights.dtype, jnp.floating)
    if floats:
        finite = valid & (abs(weights) < np.inf)
    elif weights.dtype == bool:
        finite = valid
    else:
        finite = valid & (weights != np.iinfo(weights.dtype).max)

    def first(bad):
        bad = bad & valid
        return xp.where(bad.any(), xp.argmax(bad), -1) if weights.size else xp.int32(-1)

    return (
        xp.min(xp.where(valid, weights, zero), initial=zero),
        first(weights != weights),
        first(~(weights >= zero)),
        first(~finite if floats else weights != weights),
        xp.all(~valid | (weights == 1)),
        xp.sum(finite),
        xp.sum(xp.where(finite, weights, zero), dtype=wide),
    )


def over_largest(x: Array) -> Array:
    """x over its largest magnitude, which derivatives take for a constant: sums and squares of the
    result are finite. Zeros stay."""
    top = jnp.minimum(jnp.max(jnp.abs(x)), jnp.finfo(x.dtype).max / 8)  # 1 / top: no subnormal
    return x / lax.stop_gradient(jnp.where(top != 0, top, 1))
