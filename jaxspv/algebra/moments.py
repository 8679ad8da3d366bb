"""Semirings of the moments of paths: expectation, entropy, variance; each path by its weight."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.pytree import factory
from .._core.tuples import take
from .families import both_lifted
from .monoids import logaddexp, plus
from .semiring import Semiring, made


def _shares(levels, total):
    """exp(levels - total), 0 where there is nothing."""
    there = levels > -jnp.inf
    return jnp.where(there, jnp.exp(jnp.where(there, levels - total, 0)), 0)


def _moments(name: str, sizes: int, mixed: Any, of_two: Any, lift: Any) -> Semiring:
    """Values `(log weight, *moments)`: products add everything, sums mix what they join.
    `mixed(shares, logs, moments, total, spread)`, shares summing to 1, gives the moments of the
    mixture; `total` sums what it is given over the values that are mixed, `spread` brings it back
    to them. `of_two(shares, logs, x, y)` are the moments of the mixture of two, of numbers alone:
    kernels take it."""

    def add(x, y):
        nothing = (x[0] == -jnp.inf) & (y[0] == -jnp.inf)
        gap = jnp.where(nothing, 0, x[0]) - jnp.where(nothing, 0, y[0])
        shares = tuple(jnp.where(nothing, 0, jax.nn.sigmoid(g)) for g in (gap, -gap))
        logs = -logaddexp.op(0, -gap), -logaddexp.op(0, gap)
        return logaddexp.op(x[0], y[0]), *of_two(shares, logs, x[1:], y[1:])

    def mul(x, y):
        level = x[0] + y[0]
        there = level > -jnp.inf
        return level, *(jnp.where(there, a + b, 0) for a, b in zip(x[1:], y[1:], strict=True))

    def by_segments(terms, segments, count):
        level = logaddexp.segment_reduce(terms[0], segments, count)
        inside = (segments >= 0) & (segments < count)
        own = take(level, segments)
        share = jnp.where(inside, _shares(terms[0], own), 0)
        rest = tuple(jnp.where(inside, v, 0) for v in terms[1:])
        return level, *mixed(
            share,
            terms[0] - _finite(own),
            rest,
            lambda v: plus.segment_reduce(v, segments, count),
            lambda v: take(v, segments),
        )

    def whole(terms):
        peak = _finite(jnp.max(lax.stop_gradient(terms[0]), 0))
        share = jnp.exp(terms[0] - peak)
        total = jnp.sum(share, 0)
        nothing = total == 0
        total = jnp.where(nothing, 1, total)
        log = jnp.log(total) + peak
        rest = terms[0] - log, terms[1:], lambda v: jnp.sum(v, 0), lambda v: v
        return jnp.where(nothing, -jnp.inf, log), *mixed(share / total, *rest)

    zero, one = (-np.inf, *(0.0,) * sizes), (0.0,) * (1 + sizes)
    return made(name, add, mul, zero, one, lift, by_segments=by_segments, whole=whole)


def _finite(level):
    return jnp.where(level > -jnp.inf, level, 0)


@factory
def expectation() -> Semiring:
    """Values `(log weight, mean)`: the sum of the weights of paths, and the mean of a quantity.

    The quantity adds along a path; a path counts by its weight. `lift(logs, quantity)`.
    Eisner, "Parameter estimation for probabilistic finite-state transducers", ACL 2002, normalised.

    >>> import jax.numpy as jnp
    >>> level, mean = expectation().add.op((jnp.log(1.0), 4.0), (jnp.log(3.0), 8.0))
    >>> round(float(mean), 3)
    7.0
    """

    def mixed(share, logs, moments, total, spread):
        return (total(share * moments[0]),)

    def of_two(shares, logs, x, y):
        return (shares[0] * x[0] + shares[1] * y[0],)

    return _moments("expectation", 1, mixed, of_two, both_lifted)


@factory
def entropy() -> Semiring:
    """Values `(log weight, entropy)` of the distribution over paths by their weights.

    `lift(logs)`. Hernando, Crespi, Cybenko, "Efficient computation of the hidden Markov model
    entropy for a given observation sequence", IEEE Trans. Information Theory 51 (7), 2005.

    >>> import jax.numpy as jnp
    >>> level, bits = entropy().add.op((jnp.float32(0), 0.0), (jnp.float32(0), 0.0))
    >>> round(float(bits), 4)  # log 2
    0.6931
    """

    def part(share, log, moment):
        return share * (moment + jnp.where(share > 0, -log, 0))

    def mixed(share, logs, moments, total, spread):
        return (total(part(share, logs, moments[0])),)

    def of_two(shares, logs, x, y):
        return (part(shares[0], logs[0], x[0]) + part(shares[1], logs[1], y[0]),)

    def lift(logs):
        logs = jnp.asarray(logs)
        return logs, jnp.zeros_like(logs)

    return _moments("entropy", 1, mixed, of_two, lift)


@factory
def variance() -> Semiring:
    """Values `(log weight, mean, variance)` of a quantity that adds along a path.

    `lift(logs, quantity)`. Li, Eisner, "First- and second-order expectation semirings", EMNLP 2009.

    >>> import jax.numpy as jnp
    >>> variance().add.op((jnp.float32(0), 1.0, 0.0), (jnp.float32(0), 3.0, 0.0))[2].item()
    1.0
    """

    def mixed(share, logs, moments, total, spread):
        mean = total(share * moments[0])
        return mean, total(share * (moments[1] + (moments[0] - spread(mean)) ** 2))

    def of_two(shares, logs, x, y):
        p, q = shares
        return p * x[0] + q * y[0], p * x[1] + q * y[1] + p * q * (x[0] - y[0]) ** 2

    def lift(logs, quantity):
        logs, quantity = jnp.asarray(logs), jnp.asarray(quantity)
        return logs, quantity, jnp.zeros_like(quantity)

    return _moments("variance", 2, mixed, of_two, lift)
