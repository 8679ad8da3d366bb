"""Semirings of dual numbers, of polynomials, and of the likeliest proofs."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from .._core.batching import over_trailing
from .._core.pytree import factory
from .._core.tuples import take
from .families import both_lifted
from .monoids import plus
from .operators import BinaryOp
from .semiring import Semiring, check_integer, check_semiring, made, one_of


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
            value, tangent = jax.jvp(op, (x[0], y[0]), (x[1], y[1]))
            if op is semiring.add.op and semiring.add.selective:  # halves would not associate
                tangent = jnp.where(x[0] == y[0], op(x[1], y[1]), tangent)
            return value, jnp.where(jnp.isinf(value), 0, tangent)

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
    add, mul = derived(semiring.add.op), derived(semiring.mul)
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
