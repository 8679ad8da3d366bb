"""Semirings of dual numbers, polynomials, the likeliest proofs, and moments of paths."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.loops import over_trailing
from .._core.pytree import factory
from .._core.tuples import take
from .families import both_lifted
from .monoids import logaddexp, plus
from .operators import BinaryOp
from .semiring import Semiring, along_paths, check_integer, check_semiring, made, one_of

# ---- Dual numbers, polynomials, proofs ----


@factory
def dual(semiring: Semiring) -> Semiring:
    """Values `(x, dx)`: those of a semiring of numbers with their derivative along a direction.

    Where min or max meets equal x, it is the least or greatest dx. `lift(values, tangents)`.

    >>> import jax.numpy as jnp
    >>> from jaxspv import semirings
    >>> s = dual(semirings.plus_times)
    >>> [float(v) for v in s.mul((2.0, 1.0), (5.0, 0.0))]
    [10.0, 5.0]
    """
    check_semiring("semiring", semiring)
    if semiring.add.of_tuples or "f" not in semiring.add.dtypes:
        raise ValueError(f"`semiring` must be one of real numbers; got {semiring!r}.")

    def derived(op):
        def both(x, y):
            value = lax.stop_gradient(op(x[0], y[0]))
            lost = jnp.isinf(value)  # no path: 0 times its derivative were a NaN
            one_if_lost = jnp.where(lost, 1, x[0]), jnp.where(lost, 1, y[0])
            found, tangent = jax.jvp(op, one_if_lost, (x[1], y[1]))
            value = jnp.where(lost, value, found)
            if op is semiring.add.op and semiring.add.selective:  # halves would not associate
                tangent = jnp.where(x[0] == y[0], op(x[1], y[1]), tangent)
            return value, jnp.where(lost, 0, tangent)

        return both

    def joined(terms, reduced, spread):
        """`reduced(monoid, terms)`; `spread` brings the results back to the terms."""
        (x, dx), add = terms, semiring.add
        value = reduced(add, x)
        if add.selective:
            best = jnp.where(x == spread(value), dx, add.identity_of(dx.dtype))
            tangent = reduced(add, best)
        else:
            tangent = reduced(plus, add.weighted(dx, x, spread(value)))
        return value, jnp.where(jnp.isinf(value), 0, tangent)

    def by_segments(terms, segments, count):
        spread = functools.partial(take, slot=segments)
        return joined(terms, lambda m, v: m.segment_reduce(v, segments, count), spread)

    def whole(terms):
        return joined(terms, lambda m, v: m.reduce(v, 0), lambda v: v)

    zero, one = semiring.add.identity, one_of(semiring)
    mul = along_paths(semiring, jnp.float32, both=True).mul
    add, mul = derived(semiring.add.op), derived(mul)
    known = semiring.add.selective or semiring.add.sums_tangents
    forms = {"by_segments": by_segments, "whole": whole} if known else {}
    return made(f"dual({semiring.name})", add, mul, (zero, 0.0), (one, 0.0), both_lifted, **forms)


@factory
def polynomials(degree: int) -> Semiring:
    """Polynomials to a degree: values of shape (degree + 1,), coefficients from the constant up.

    Higher powers are dropped. `lift(coefficients)` of shape (edges, degree + 1).

    >>> import jax.numpy as jnp
    >>> polynomials(2).mul(jnp.array([1.0, 1.0, 0.0]), jnp.array([1.0, 1.0, 0.0])).tolist()
    [1.0, 2.0, 1.0]
    """
    check_integer("degree", degree, 0)
    size = degree + 1
    at = np.arange(size)[:, None] - np.arange(size)

    def mul(x, y):
        return jnp.where(at >= 0, y[at], 0) @ x

    def by_segments(terms, segments, count):
        return over_trailing(lambda v: plus.segment_reduce(v, segments, count), terms)

    zero, one = np.zeros(size, np.float32), (np.arange(size) == 0).astype(np.float32)
    name = f"polynomials({degree})"
    return made(name, jnp.add, mul, zero, one, jnp.asarray, by_segments=by_segments)


def top_k_proofs(k: int, log_probabilities: Any) -> Semiring:
    """The k likeliest proofs: values `(logs, facts)`, (k,) and sets of facts as (k, words) bits.

    A proof is the set of facts that it uses; it weighs the sum of their log probabilities, each
    once however often it is used. Sums drop equal sets and keep the likeliest k: a closure ends on
    graphs with cycles; a superset of a proof is another. What is dropped might have been better
    with facts that it shares: exact where k is large enough, or no path uses a fact twice.
    `lift(ids, log_probabilities)`: the number of the fact that proves each
    edge, -1 for none. Differentiable in `log_probabilities` (facts,).
    Huang et al., "Scallop: from probabilistic deductive databases to scalable differentiable
    reasoning", NeurIPS 2021.

    >>> import jax.numpy as jnp
    >>> logs = jnp.log(jnp.array([0.5, 0.25]))
    >>> s = top_k_proofs(2, logs)
    >>> level, facts = s.lift(jnp.array([0, 1]), logs)
    >>> jnp.exp(s.mul((level[0], facts[0]), (level[0], facts[0]))[0]).tolist()
    [0.5, 0.0]
    """
    check_integer("k", k, 1)
    logs = jnp.asarray(log_probabilities)
    if logs.ndim != 1:
        raise ValueError(f"`log_probabilities` must have shape (facts,); got {logs.shape}.")
    shape = _proofs(k, logs.shape[0])
    return dataclasses.replace(shape, mul=dataclasses.replace(shape.mul, params=(logs,)))


@factory
def _proofs(k: int, facts: int) -> Semiring:
    words = max(-(-facts // 32), 1)
    shift = np.arange(32, dtype=np.uint32)

    def weight(bits, logs):
        flags = (bits[..., None] >> shift) & 1
        flags = flags.reshape(*bits.shape[:-1], words * 32)[..., :facts]
        return jnp.sum(jnp.where(flags > 0, logs, 0), -1)

    def likeliest(level, bits):
        columns = [bits[:, w] for w in range(words)]
        level, *columns = _sorted_by(-level, columns)
        same = functools.reduce(jnp.logical_and, (c[1:] == c[:-1] for c in columns))
        level = jnp.where(jnp.append(False, same), jnp.inf, level)
        level, *columns = _sorted_by(level, columns)
        bits = jnp.stack(columns, -1)[:k]
        return -level[:k], jnp.where(level[:k, None] == jnp.inf, np.uint32(0), bits)

    def add(x, y):
        return likeliest(*(jnp.concatenate([a, b]) for a, b in zip(x, y, strict=True)))

    def mul(x, y, logs):
        bits = (x[1][:, None] | y[1][None]).reshape(k * k, words)
        there = ((x[0][:, None] > -jnp.inf) & (y[0][None] > -jnp.inf)).reshape(-1)
        return likeliest(jnp.where(there, weight(bits, logs), -jnp.inf), bits)

    def lift(ids, logs):
        ids, logs = jnp.asarray(ids), jnp.asarray(logs)
        word = jnp.arange(words)[None] == ids[:, None] // 32
        bit = jnp.left_shift(jnp.uint32(1), (ids % 32).astype(jnp.uint32))
        own = jnp.where(word & (ids[:, None] >= 0), bit[:, None], jnp.uint32(0))
        bits = jnp.zeros((ids.shape[0], k, words), jnp.uint32).at[:, 0].set(own)
        level = jnp.full((ids.shape[0], k), -jnp.inf, logs.dtype)
        return level.at[:, 0].set(weight(own, logs)), bits

    none = np.full(k, -np.inf), np.zeros((k, words), np.uint32)
    one = np.where(np.arange(k) == 0, 0.0, -np.inf), none[1]
    union = BinaryOp(mul, "union", (None,))  # the log probabilities
    return made(f"top_k_proofs({k})", add, union, none, one, lift, idempotent=True)


def _sorted_by(level, columns):
    return lax.sort((level, *columns), num_keys=1 + len(columns))


# ---- Moments ----


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
