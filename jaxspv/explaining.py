"""`explain`: what would run for a call, on which platform, and why not something faster."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import jax

from ._core.forms import Plan, types_of
from ._core.operation import OPERATIONS, without_dead_code
from ._core.platforms import situation


def explain(op: str | Callable[..., Any], *args: Any, **kwargs: Any) -> Plan:
    """The plan of a call: what runs on which platform, refusals with reasons, notes.

    The call is traced, abstractly, and what is written down is which form each operation in it
    takes, operations inside of these forms included. No result is computed.

    Args:
        op: an operation or algorithm, its name ("mxv", "bfs", "learning.attention", ...), or any
            function of your own that calls some.
        *args, **kwargs: as for the call itself; `source` and `root` may be left out.

    Returns:
        A `Plan`; `print` it. `plan.on("cuda")`, `plan.on("cpu")` and `plan.on("tpu")` are the
        forms for these platforms. A call of several operations has their plans in `plan.inside`.

    Raises:
        ValueError: jaxspv has no function of that name.
        Whatever the call raises.

    >>> import jax.numpy as jnp, jaxspv as jsp
    >>> A = jsp.from_dense([[0.0, 2.0], [3.0, 0.0]], format="coo")
    >>> print(explain("mxv", A, jnp.ones(2)))
    spmv: xla/segments
      not pallas/groups: `prepare(A, for_=...)` has not found the entries in aligned pairs or fours
      not pallas/merge_path: COO does not list the entries of a row side by side
      not pallas/ell_rows: it reads rows that are padded, and A is a COO
      not pallas/sell_rows: it reads rows that are padded, and A is a COO
      not cpu/native: COO has no compressed axis with indices of 32 bits
      not cpu/segments: XLA's form of this name serves
      not xla/diagonals: `prepare(A, for_=...)` has not found the entries on few diagonals
      not xla/row_bins: the rows are not arranged in bins: `prepare(A, for_=...)`
      not xla/pieces: COO does not list the entries of a row side by side
      not xla/ell: it reads rows that are padded, and A is a COO
      not xla/sell: it reads rows that are padded, and A is a COO
    """
    fn = _named(op) if isinstance(op, str) else op
    if not callable(fn):
        raise ValueError(f"`op` must be a function or the name of one; got {op!r}.")
    parameters = list(inspect.signature(fn).parameters)
    missing = {"source", "root"}.intersection(parameters[len(args) :])
    kwargs = dict.fromkeys(missing, 0) | kwargs
    closed = jax.make_jaxpr(lambda: fn(*args, **kwargs))()
    plans = list(_plans(without_dead_code(closed.jaxpr)))
    notes = tuple(dict.fromkeys(note for plan in plans for note in plan.notes))
    name = getattr(fn, "__name__", repr(fn))
    public = [plan for plan in plans if not plan.internal]
    public = [plan for plan in public if plan.op == name] or public
    main = public[0] if len(public) == 1 else Plan(name, ())
    rest = tuple(_distinct(plan for plan in plans if plan is not main))
    inside = (*main.inside, *([(None, rest)] if rest else []))
    return dataclasses.replace(main, inside=inside, notes=notes)


def _named(name: str) -> Callable[..., Any]:
    fn: Any = sys.modules[__name__.partition(".")[0]]
    for part in name.split("."):
        fn = getattr(fn, part, None)
    if not inspect.isfunction(fn):
        raise ValueError(f"`op` must be a function or the name of one in jaxspv; got {name!r}.")
    return fn


def _plans(jaxpr: Any) -> Iterator[Plan]:
    """The plans of the operations in a jaxpr, in its order."""
    for equation in equations(jaxpr):
        op = OPERATIONS.get(equation.primitive)
        if op is not None:
            types = types_of([v.aval for v in equation.invars])
            yield _plan_of(op, equation.params["call"], types, situation().platforms)


def equations(jaxpr: Any) -> Iterator[Any]:
    """All equations of a jaxpr, of loops, branches and calls in it too."""
    for equation in jaxpr.eqns:
        yield equation
        for value in jax.tree.leaves(equation.params, is_leaf=_is_jaxpr):
            if _is_jaxpr(value):
                yield from equations(getattr(value, "jaxpr", value))


def _is_jaxpr(value: Any) -> bool:
    return hasattr(getattr(value, "jaxpr", value), "eqns")


@functools.lru_cache(maxsize=256)
def _plan_of(op: Any, call: Any, types: Any, platforms: frozenset[str]) -> Plan:
    """The plan of one equation, with the plans inside of its forms for these platforms."""
    plan = op.planned(call, types)
    inside = []
    for impl in plan.chosen:
        served = (p for p in sorted(platforms, reverse=True) if plan.on(p) is impl)  # "other" first
        platform = next(served, None)
        if platform is not None and (inner := _distinct(_plans(op.traced(platform, call, types)))):
            inside.append((impl, tuple(inner)))
    return dataclasses.replace(plan, inside=tuple(inside))


def _distinct(plans: Any) -> list[Plan]:
    """Each once, without notes."""
    plans = (dataclasses.replace(plan, notes=()) for plan in plans)
    return list({str(plan): plan for plan in plans}.values())
