"""Draws in integer arithmetic alone, so that equal keys give equal samples on every platform.

Floats would not do: a GPU divides and takes logarithms with other last bits than a CPU.
"""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array, lax

STEPS = 12  # bits of a mantissa that index the table of logarithms
UNIT = 22  # fractional bits of a logarithm
NEVER = np.int32(2**31 - 1)


def bits(key: Any, shape: tuple[int, ...]) -> Array:
    """Random uint32."""
    return jax.random.bits(key, shape, "uint32")


def below(draw: Array, bound: Array) -> Array:
    """`floor(draw bound / 2^32)`, int32: uniform in [0, bound) up to bound / 2^32.

    In halves of 16 bits: there is no product of 64.
    """
    bound = bound.astype(jnp.uint32)
    low, high = draw & 0xFFFF, draw >> 16
    small, large = bound & 0xFFFF, bound >> 16
    middle = high * small + ((low * small) >> 16)
    carried = (low * large + (middle & 0xFFFF)) >> 16
    return (high * large + (middle >> 16) + carried).astype(jnp.int32)


def threshold(odds: float) -> int:
    """The number of 31-bit draws that a probability takes; for `draw >> 1 < threshold`."""
    return min(max(round(odds * 2**31), 0), 2**31)


def _log2_of(whole: Array, mantissa: Array, unit: int) -> Array:
    """`(whole + log2(1 + mantissa / 2^31)) 2^unit` of a mantissa below 2^31, by a table."""
    table = np.round(np.log2(1 + np.arange(2**STEPS + 1) / 2**STEPS) * 2**unit).astype(np.uint32)
    place = (mantissa >> (31 - STEPS)).astype(jnp.int32)
    rest = (mantissa >> (31 - STEPS - 16)) & 0xFFFF
    first, last = jnp.asarray(table)[place], jnp.asarray(table)[place + 1]
    return whole * (1 << unit) + (first + (((last - first) * rest) >> 16)).astype(jnp.int32)


def log2_of_integer(x: Array, unit: int = UNIT) -> Array:
    """`log2(x) 2^unit` of uint32 from 1 on; int32, for units up to 26."""
    zeros = lax.clz(x).astype(jnp.uint32)
    mantissa = (x << zeros) & jnp.uint32(0x7FFFFFFF)
    return _log2_of(31 - zeros.astype(jnp.int32), mantissa, unit)


def log2_of_float(x: Array) -> Array:
    """`log2(x) 2^UNIT` of normal float32 above 0."""
    raw = lax.bitcast_convert_type(x, jnp.uint32)
    whole = (raw >> 23).astype(jnp.int32) - 127
    return _log2_of(whole, (raw & jnp.uint32(0x7FFFFF)) << 8, UNIT)


def race(draw: Array, weight: Array) -> Array:
    """int32 `log2(E / weight) 2^UNIT`, more or less a constant, of an exponential E.

    NEVER where the weight is not above 0. The entry with the smallest is drawn with odds in
    proportion to its weight, the k entries with the smallest like k draws without replacement:
    Gumbel keys with the sign turned.
    Source: Efraimidis, Spirakis, "Weighted random sampling with a reservoir", IPL 97, 2006.
    """
    fine = 26  # close to 1, where the winners of long rows are, uniform numbers differ by little
    level = log2_of_integer(draw | 1, fine).astype(jnp.uint32)
    time = jnp.maximum(jnp.uint32(1 << 31) - level, 1)  # 32 - log2 of the draw
    tiny = np.float32(np.finfo(np.float32).tiny)
    usable = (weight >= tiny) & (weight < jnp.inf)
    weight = jnp.where(usable, weight, 1)
    return jnp.where(usable, log2_of_integer(time) - log2_of_float(weight), NEVER)
