"""`fixpoint`: a user's loop of products and element-wise updates, to its end, as one program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from pallas_kernels.layouts.lengths import most_rounds

from ..._core.eager.arrays import array_of
from ..._core.forms import overloadable
from ..._core.loops import vmapped
from ..._core.operation import Operation, typed
from ..._core.platforms import Backend
from ..._core.pytree import result_tuple
from ...algebra.functions import check_function
from ...algebra.semiring import along_paths
from ...algebra.semirings import Semiring, as_semiring, min_plus, plus_times
from ...graph import as_graph
from ...ops.products.common.elementwise import trace
from ...ops.products.spmv.api import op as spmv_op
from ...shapes import Bool, Int, Matrix, Number, Shaped, Vector
from ...until import Until, check_until, max_iterations, unchanged
from ..common.status import finished
from ..common.weights import fits
from . import layout as layout
from .cpu import run_frontier
from .jvp import tangent
from .xla import Call, differs, of_call, run_dense

UNTIL = ("reached", "unchanged", "residual", "max_iterations")


@result_tuple
class Fixpoint(NamedTuple):
    """The result of `fixpoint`.

    Attributes:
        x: (n,), the vector after the last step.
        iterations: int32, steps taken.
        converged: bool; False: only a bound on the iterations stopped the loop (of a `monotone` one
            because a cycle improves x for ever, as one of negative length over min_plus), or a sum
            that is not idempotent grew to infinity or NaN, or one of integers did not fit (of a
            `closure` or a `monotone` loop).
        status: int32, 0 unless a kernel gave up; see `jaxspv.check`.
    """

    x: Shaped[Array, " n"]
    iterations: Int[Array, ""]
    converged: Bool[Array, ""]
    status: Int[Array, ""]


@overloadable
def fixpoint(
    A: Matrix,
    x0: Vector,
    semiring: Semiring | str = plus_times,
    *,
    update: Callable[..., Any] | None = None,
    operands: Sequence[Number | Vector] = (),
    sums: Mapping[str, Callable[..., Any]] | None = None,
    until: Until | None = None,
    monotone: bool = False,
    closure: bool = False,
    backend: Backend | None = None,
    method: str | None = None,
) -> Fixpoint:
    """Repeats `y = x (add.mul) A; x = update(x, y, i, *operands, sums)` until `until` holds.

    `y[j] = add over edges i -> j of mul(x[i], A[i, j])`, the identity of `add` where j has no
    in-edge (with `monotone`: none from an element that is present).

    Args:
        A: a square matrix, or a Graph; `prepare(A, for_="fixpoint")` arranges the in-edges. Where
            `monotone`, its weights and x0 must not be NaN.
        x0: (n,), the start.
        semiring: `add` combines, `mul(x[i], A[i, j])` extends.
        update: `update(old, y, i, *operands, sums)` gives the new vector, element by element, in
            the dtype of x0: old and y are (n,), i the int32 number of steps taken, sums a dict of
            scalars. It may capture arrays. None: y; with `monotone`, `add(old, y)`.
        operands: arrays of shape (n,) or () for `update` and `sums`.
        sums: name -> `f(x, *operands)`, element-wise; before each step f of the vector is summed.
        until: conditions of `jaxspv.until`: `reached` (`x[node]` differs from `x0[node]`),
            `unchanged`, `residual` (L1 change of a step) and `max_iterations`; None: `unchanged()`.
            Unless it holds `max_iterations`, max(131072, 8 n) steps are the bound.
        monotone: promises that a step may be done for the elements that changed alone: `add` is
            idempotent, `update(old, y)` leaves old where y is the identity, never undoes, and
            `update(update(old, y), z) == update(old, add(y, z))`. An element equal to the identity
            is then missing and passes nothing on. The loop ends where nothing changes.
        closure: the update is `add(x0, y)`, so that the loop solves `x = x0 + x A`: the sum over
            all walks into each vertex, as log_plus and plus_times need it. It converges where A
            contracts; x0 then has influence, and a gradient. With `monotone` it is the default.
        backend: "pallas", "cpu", "xla", or None for the fastest that accepts the call.
        method: "dense", "frontier" (on a CPU and an NVIDIA GPU) or None; see `explain`. On a GPU
            they are one launch each.

    Returns:
        `Fixpoint(x, iterations, converged, status)`.

    Raises:
        TypeError: wrong kinds of arguments; a step gives another dtype than that of x0.
        ValueError: wrong shapes; both `closure` and `update`; of tuples, another loop than
            `x = x0 + x A`.
        NotImplementedError: the form asked for cannot run; says why.

    Differentiable in `A.data`, operands, captured arrays and the semiring's parameters, both modes:
    by the implicit function theorem at the last x, where the step must contract (x0 has no
    influence); with `monotone` along the tree of the terms that won (x0 at its roots). Nothing of
    the iterates is stored. Padding of A changes nothing; NaN in x is equal to NaN.

    Source: Kepner, Gilbert, "Graph Algorithms in the Language of Linear Algebra", SIAM 2011.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_edges([0, 1, 0], [1, 2, 2], [1.0, 1.0, 5.0], shape=(3, 3))
    >>> x0 = jnp.array([0.0, jnp.inf, jnp.inf])
    >>> fixpoint(A, x0, jsp.semirings.min_plus, monotone=True).x.tolist()
    [0.0, 1.0, 2.0]
    """
    loop = _Loop(update, operands, sums, until, monotone, closure)
    call = _checked(A, x0, semiring, loop)
    found = op(*call[0], **call[1], backend=backend, method=method)
    if monotone or closure:
        exact = fits(call[0][0], call[0][1].out, found.x, x0 if closure else None)
        found = found._replace(converged=found.converged & exact)
    return finished(found, "fixpoint")


class _Loop(NamedTuple):
    """The options of `fixpoint` that say what a step does and when it ends."""

    update: Callable[..., Any] | None = None
    operands: Any = ()
    sums: Mapping[str, Callable[..., Any]] | None = None
    until: Until | None = None
    monotone: bool = False
    closure: bool = False


def _checked(A, x0, semiring, loop: _Loop):
    """(operands, static arguments) of the operation."""
    update, operands, sums, until, monotone, closure = loop
    graph = as_graph(A, "fixpoint")
    semiring = as_semiring(semiring)
    if not isinstance(operands, (tuple, list)):
        raise TypeError(f"`operands` must be a tuple of arrays; got {type(operands).__name__}.")
    x0 = _strong("x0", x0)
    if x0.shape != (graph.n,):
        raise ValueError(f"`x0` must have shape ({graph.n},); got {x0.shape}.")
    arrays = tuple(_strong("operands", v) for v in operands)
    for place, array in enumerate(arrays):
        if array.shape not in ((), (graph.n,)):
            raise ValueError(
                f"`operands[{place}]` must have shape () or ({graph.n},); got {array.shape}."
            )
    if monotone and not semiring.add.idempotent:
        raise ValueError(
            f"`monotone` needs an idempotent addition, which `{semiring.add.name}` is not declared "
            "to be (`monoid(..., idempotent=True)`)."
        )
    until = check_until(until, UNTIL, "fixpoint", graph.n) or unchanged()
    if not monotone and not until.bounds():
        # a sum that grows by a constant a step would else end where rounding lets it stand still,
        # after 2^23 steps and more, and look converged
        until = until | max_iterations(most_rounds(graph.n))
    if closure and update is not None:
        raise ValueError("`closure` is an update of its own: leave out `update`.")
    if closure and not monotone:
        semiring = along_paths(semiring, x0.dtype)
        update = lambda old, y, *_: semiring.add.op(x0, y)  # noqa: E731
    if update is not None:
        check_function("update", update, 4 + len(arrays), "(old, y, i, *operands, sums)")
    if not (sums is None or isinstance(sums, Mapping)):
        raise TypeError(f"`sums` must be a dictionary of functions; got {sums!r}.")
    named = dict(sums or {})
    traced = {name: _traced_sum(name, fn, x0, arrays) for name, fn in sorted(named.items())}
    step, captured = _traced_update(update, graph, x0, semiring, arrays, traced, monotone)
    consts = (captured, tuple(c for _, c in traced.values()))
    static = {
        "update": step,
        "sums": tuple((name, fn) for name, (fn, _) in traced.items()),
        "monotone": bool(monotone),
    }
    return (semiring, graph, x0, arrays, consts, until), static


def _strong(name: str, value: Any) -> Array:
    """An array without JAX's weak type, which would add conversions to what is traced."""
    array = array_of(name, value)
    return jnp.asarray(array, array.dtype)


def _traced_sum(name, fn, x0, arrays):
    check_function(f"sums[{name!r}]", fn, 1 + len(arrays), "(x, *operands)")
    function, captured = trace(fn, x0, *arrays)
    shape = function.result.shape
    if shape not in (x0.shape, ()):
        raise ValueError(f"`sums[{name!r}]` must be element-wise: {x0.shape}; got {shape}.")
    return function, captured


def _traced_update(update, graph, x0, semiring, arrays, traced, monotone):
    """The update as a program; checks its result."""
    y = jax.eval_shape(functools.partial(spmv_op, flip=True), semiring, graph.out.T, x0, None)
    sums = {
        name: jax.ShapeDtypeStruct((), jnp.sum(jnp.zeros(0, fn.result.dtype)).dtype)
        for name, (fn, _) in traced.items()
    }

    def full(old, y, *args):
        if update is not None:
            new = update(old, y, *args)
        else:
            new = semiring.add.op(old, y) if monotone else y
        return jnp.broadcast_to(new, x0.shape)

    step, captured = trace(full, x0, y, jnp.int32(0), *arrays, sums)
    if step.result.dtype != x0.dtype:
        raise TypeError(
            f"a step must keep the dtype of `x0`, {x0.dtype}; it gives {step.result.dtype}: "
            f"begin with `x0.astype({str(step.result.dtype)!r})`."
        )
    return step, captured


def _tangent(primals, tangents, result, **static):
    x = tangent(primals, tangents, result, **static)
    return Fixpoint(x, None, None, None)  # pyright: ignore[reportArgumentType]


def _advice(semiring, graph, *_, monotone, **__):
    found = []
    if "fixpoint" not in graph.layouts:
        found.append("`prepare(A, for_='fixpoint')` would arrange the in-edges, to pull from.")
    if monotone and semiring.mul == min_plus.mul and semiring.add == min_plus.add:
        found.append("`sssp` takes near vertices first, by buckets; a fixpoint goes in rounds.")
    return found


def _types(semiring, graph, x0, *_, **__):
    return Fixpoint(typed(x0.dtype, graph.n), typed(jnp.int32), typed(jnp.bool_), typed(jnp.int32))  # pyright: ignore[reportArgumentType]


op = Operation("fixpoint", _tangent, types=_types, advice=_advice)
op.gpu_forms_in(f"{__package__}.gpu")


@of_call
def _not_pushed(call: Call) -> str | None:
    """Why the frontier form cannot run."""
    semiring, graph, x0, *_ = call
    if not call.monotone:
        return "the loop is not declared monotone"
    if graph.n == 0 or graph.nse == 0:
        return "there is nothing to traverse"
    if semiring.add.atomic(x0.dtype) is None:
        return f"the monoid `{semiring.add.name}` has no scatter"
    if semiring.mul.position is not None:
        return f"`{semiring.mul.name}` is positional"
    if call.sums:
        return "`sums` need all elements in every step"
    reason = call.update.refuses()
    return None if reason is None else f"`update` uses `{reason}`, which is not element-wise"


def vectors_vectorised(axis_size, in_batched, *operands, **static):
    return vmapped(_dense, axis_size, in_batched, *operands, **static)


@op.register("frontier", backend="cpu", refuse=_not_pushed)
@of_call
def _frontier(call: Call) -> Fixpoint:
    """The elements that changed push to their out-neighbours, one edge after the other."""
    return Fixpoint(*run_frontier(call), jnp.int32(0))


@op.register("dense")
@of_call
def _dense(call: Call) -> Fixpoint:
    """A product and an update of all elements in every step."""
    return finite(call, Fixpoint(*run_dense(call), jnp.int32(0)))


def finite(call: Call, found: Fixpoint) -> Fixpoint:
    """The result; a sum that grew to infinity or became NaN has not converged."""
    add, x0 = call.semiring.add, call.x0
    if call.monotone or add.idempotent or not jnp.issubdtype(x0.dtype, jnp.inexact):
        return found
    nothing = jnp.full_like(x0, add.identity_of(x0.dtype)[()])
    grown = ~jnp.isfinite(found.x) & differs(found.x, nothing) & jnp.isfinite(x0)
    return found._replace(converged=found.converged & ~jnp.any(grown))
