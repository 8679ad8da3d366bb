"""Stopping conditions of traversals and iterations, combined by `|` and `&`."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jax import Array

from ._core.indices import LIMIT, within
from ._core.pytree import is_concrete, pytree_dataclass, static
from .shapes import Bool, Count, Int, Num, Real

__all__ = ["Until", "max_iterations", "reached", "residual", "unchanged"]

Kind = Literal["reached", "unchanged", "residual", "max_iterations", "or", "and"]


@pytree_dataclass
class Until:
    """A condition on the progress of an iteration; see the functions of this module.

    Attributes:
        kind: what it is, static.
        value: the node, tolerance or count it compares with, a leaf.
        minimum: the iterations that must have run before `residual` may hold, a leaf.
        parts: the two sides of `|` or `&`.

    >>> reached(3) | max_iterations(10)
    (reached(3) | max_iterations(10))
    """

    kind: Kind = static()
    value: Any = None
    minimum: Any = 0
    parts: tuple[Any, ...] = ()

    def __or__(self, other: Until) -> Until:
        return Until("or", parts=(self, other))

    def __and__(self, other: Until) -> Until:
        return Until("and", parts=(self, other))

    def __repr__(self) -> str:
        if self.kind in ("or", "and"):
            return f"({self.parts[0]!r} {'|' if self.kind == 'or' else '&'} {self.parts[1]!r})"
        return f"{self.kind}({'' if self.value is None else self.value})"

    def conditions(self) -> list[Until]:
        """The conditions that are joined, from left to right."""
        return self.folded(lambda c: [c], operator.add, operator.add)

    def postfix(self) -> list[tuple[Kind, Any]]:
        """(kind, value) of its conditions, each `or` and `and` behind its two sides."""
        return [pair for part in self.parts for pair in part.postfix()] + [(self.kind, self.value)]

    def targets(self) -> list[Any]:
        """The nodes of its `reached` conditions, from left to right."""
        return [c.value for c in self.conditions() if c.kind == "reached"]

    def found_in(self, levels: Int[Array, " n"]) -> list[Bool[Array, ""]]:
        """For each of `targets()` whether it has a level; a node out of range has none."""
        return [levels.at[node].get(mode="fill", fill_value=-1) >= 0 for node in self.targets()]

    def bounds(self) -> tuple[int | None, ...]:
        """The numbers of its `max_iterations`, from left to right; None where one is traced."""
        values = [c.value for c in self.conditions() if c.kind == "max_iterations"]
        return tuple(int(v) if is_concrete(v) else None for v in values)

    def with_bounds(self, bounds: Sequence[int | None]) -> Until:
        """The same condition with the numbers of its `max_iterations` replaced."""
        numbers = iter(bounds)

        def replaced(c: Until) -> Until:
            return dataclasses.replace(c, value=next(numbers)) if c.kind == "max_iterations" else c

        return self.folded(replaced)

    def folded(
        self,
        of: Callable[[Until], Any],
        either: Callable[[Any, Any], Any] = operator.or_,
        both: Callable[[Any, Any], Any] = operator.and_,
    ) -> Any:
        """What `of` gives for each condition, from left to right, joined as these are."""
        if not self.parts:
            return of(self)
        sides = [part.folded(of, either, both) for part in self.parts]
        return either(*sides) if self.kind == "or" else both(*sides)

    def in_kernel(
        self, bounds: Sequence[int | None]
    ) -> tuple[Callable[..., Any], Int[Array, " targets"] | None]:
        """(stop(level, reached, unchanged), targets or None) as the traversal kernels take them."""
        condition = self.with_bounds(bounds)

        def stop(level, reached, unchanged):
            return condition.holds(iteration=level, reached=reached, unchanged=unchanged)

        return stop, jnp.asarray(self.targets(), jnp.int32) if self.targets() else None

    def limit(self, values: Num[Array, " n"], infinity: Real) -> Num[Array, ""]:
        """The value beyond which nothing is settled when it stops because of `reached`.

        `reached(v)` settles everything up to `values[v]`; `|` stops at the smaller limit of its
        sides, `&` at the larger; other conditions settle everything (`infinity`).
        """
        infinity = jnp.asarray(infinity, values.dtype)
        at_targets = [
            jnp.where(v < values.shape[0], jnp.take(values, v, mode="clip"), infinity)
            for v in map(jnp.asarray, self.targets())
        ]
        return self.limit_of(at_targets, infinity, jnp.minimum, jnp.maximum)

    def limit_of(self, values: Sequence[Any], infinity: Any, minimum: Any, maximum: Any) -> Any:
        """`limit` from the values at `targets()`, which `minimum` and `maximum` understand."""
        at = iter(values)
        return self.folded(
            lambda c: next(at) if c.kind == "reached" else infinity, minimum, maximum
        )

    def holds(
        self,
        *,
        iteration: Any,
        reached: Sequence[Any] = (),
        unchanged: Any = False,
        residual: Any = jnp.inf,
    ) -> Any:
        """Whether to stop, from values that know `&`, `|` and comparisons (arrays, kernel values).

        Args:
            iteration: steps (or levels) that have run.
            reached: one flag for each of `targets()`.
            unchanged: whether the last step changed nothing.
            residual: the L1 change of the last step.
        """
        flags = iter(reached)

        def value(c: Until):
            if c.kind == "reached":
                return next(flags)
            if c.kind == "unchanged":
                return unchanged
            if c.kind == "residual":
                return (residual <= c.value) & (iteration >= c.minimum)
            return iteration >= c.value

        return self.folded(value)


def reached(node: Count) -> Until:
    """Stop once `node` is reached (BFS: after its level; SSSP: when its distance is settled).

    >>> import jaxspv as jsp
    >>> path = jsp.from_edges([0, 1, 2], [1, 2, 3], shape=(4, 4))
    >>> jsp.bfs(path, 0, until=jsp.until.reached(1)).levels.tolist()
    [0, 1, -1, -1]
    """
    return Until("reached", node)


def unchanged() -> Until:
    """Stop once a step changes nothing.

    >>> unchanged() & max_iterations(3)
    (unchanged() & max_iterations(3))
    """
    return Until("unchanged")


def residual(tol: Real, min_iterations: Count = 0) -> Until:
    """Stop once the L1 change of a step is at most `tol`, after `min_iterations` at least.

    >>> residual(1e-6, min_iterations=5).minimum
    5
    """
    return Until("residual", tol, iteration_limit("min_iterations", min_iterations))


def max_iterations(k: Count) -> Until:
    """Stop after `k` iterations (BFS: levels).

    >>> import jaxspv as jsp
    >>> path = jsp.from_edges([0, 1, 2], [1, 2, 3], shape=(4, 4))
    >>> jsp.bfs(path, 0, until=jsp.until.max_iterations(2)).levels.tolist()
    [0, 1, 2, -1]
    """
    return Until("max_iterations", iteration_limit("max_iterations", k))


def iteration_limit(name: str, k: Any) -> Any:
    """A number of iterations that int32 counters can meet: what is beyond them means "no limit".

    Args:
        name: of the argument, for messages.
        k: an integer >= 0, of any width; traced ones are clamped to [0, 2^31 - 1].

    Raises:
        TypeError: it is no integer.
        ValueError: it is negative.
    """
    if is_concrete(k) and np.ndim(k) == 0:
        if isinstance(k, bool) or not jnp.issubdtype(np.asarray(k).dtype, jnp.integer):
            raise TypeError(f"`{name}` must be an integer; got {k!r}.")
        if int(k) < 0:
            raise ValueError(f"`{name}` must not be negative; got {k}.")
        return min(int(k), LIMIT)
    if not hasattr(k, "dtype"):
        return k  # a placeholder of a pytree
    if not jnp.issubdtype(k.dtype, jnp.integer):
        raise TypeError(f"`{name}` must be an integer; got {k.dtype}.")
    low = jnp.maximum(k, 0)
    if k.dtype.itemsize >= 4:
        low = jnp.minimum(low, jnp.asarray(LIMIT, k.dtype))
    return low.astype(jnp.int32)


def check_until(until: Any, allowed: Iterable[Kind], algorithm: str, n: int) -> Until | None:
    """`until` if it is None or made of `allowed` conditions.

    Args:
        until: what the caller gave.
        allowed: the kinds that the algorithm understands.
        algorithm: its name, for messages.
        n: the vertices; a traced node out of range becomes n, which is never reached.

    Raises:
        TypeError: it is no condition.
        ValueError: one of its conditions has no meaning for the algorithm, or a concrete node is
            out of [0, n).
    """
    if until is None:
        return None
    if not isinstance(until, Until):
        raise TypeError(
            f"`until` must be made of reached, unchanged, residual, max_iterations; got {until!r}."
        )
    kinds = tuple(allowed)
    for condition in until.conditions():
        if condition.kind not in kinds:
            raise ValueError(
                f"`until` of {algorithm} understands {', '.join(kinds)}; got {condition!r}."
            )
    return until.folded(lambda c: _within_graph(c, n))


def _within_graph(until: Until, n: int) -> Until:
    """A condition with the node of `reached` in range, or n."""
    node = until.value
    if until.kind != "reached":
        return until
    dtype = node.dtype if hasattr(node, "dtype") else np.asarray(node).dtype
    if not jnp.issubdtype(dtype, jnp.integer):
        raise TypeError(f"`reached` takes an integer vertex; got {node!r}.")
    if is_concrete(node):
        if not 0 <= int(node) < n:
            raise ValueError(f"`reached` takes a vertex in [0, {n}); got {node}.")
        return until
    return dataclasses.replace(until, value=within(node, n))
