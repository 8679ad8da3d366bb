"""Operands, schedule and static parameters of the attention kernels."""

import dataclasses
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from ..simt.device import resident_ctas

NARROW = {"bfloat16": "bf16", "float16": "f16"}  # two in a word
MOST = 128  # features of a head
LEAST = 64  # rows and entries of a warp, where there are as many


@dataclasses.dataclass(frozen=True)
class Score:
    """A score of one head: closed jaxprs of float32 scalars (`scalar_jaxpr.trace`).

    value(q, k) or value(q, k, e), and tangent(q, k, e, dq, dk, de), linear in the last ones.
    """

    value: Any
    tangent: Any


class Operands(NamedTuple):
    """The operands of attention.

    indptr int32[n + 1], indices int32[nse]: a CSR with n > 0 rows, at least one slot and column;
    slots from indptr[n] on are not read. q[n, heads, d] and, by columns, k[..., d] and v[..., f];
    with a `Score` q[n, heads], k[columns, heads] and, if it takes three arguments,
    edges[nse, heads]. bias: (nse,) or (nse, heads). All floats are float32, but v, and k where it
    has features, may both be bfloat16 or float16; d and f from 1 to MOST. n + nse <
    `merge_path.LIMIT`; no operand has 2^31 elements.
    """

    indptr: jax.Array
    indices: jax.Array
    q: jax.Array
    k: jax.Array
    v: jax.Array
    bias: jax.Array | None = None
    edges: jax.Array | None = None

    def padded(self, width: int) -> dict[str, jax.Array]:
        """By name, those that are there; features with zeros up to `width`, as words."""
        wide = self._replace(**{x: padded(getattr(self, x), width) for x in ("q", "k", "v")})
        return {name: x for name, x in wide._asdict().items() if x is not None}


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How attention is spread over the GPU.

    unroll: entries of a group of lanes under way together. waves: CTAs over those that are resident
    together. together: heads of a tile, a power of two; with few of them the part of k and v that
    is read at one time is small. ctas: for one tile of heads.
    """

    unroll: int = 4
    waves: int = 1
    together: int | None = None
    ctas: int | None = None
    threads: int = 256


@dataclasses.dataclass(frozen=True)
class Job:
    """The static parameters of one launch.

    width: features of a head, a power of two; each: of a lane; lanes of a head. narrow: the 16-bit
    floats in the words of v, and of k where that has features, or None. together: heads
    of a warp, a power of two. ctas: of one tile of heads. own: biases of an entry.
    """

    n: int
    columns: int
    heads: int
    width: int
    each: int
    narrow: str | None
    lanes: int
    together: int
    ctas: int
    own: int
    scale: float
    score: Score | None
    unroll: int


def job_of(given: Operands, scale: float, score: Score | None, schedule: Schedule) -> Job:
    """The launch for these operands."""
    n, (columns, heads, f), bias = given.q.shape[0], given.v.shape, given.bias
    width = 1 << (max(f, 1 if score else given.q.shape[2]) - 1).bit_length()
    narrow = NARROW.get(given.v.dtype.name)
    width = max(width, 2) if narrow else width
    each = min(width, 8 if narrow else 4)
    lanes = width // each
    together = min(schedule.together or heads, 32 // lanes, 1 << (heads - 1).bit_length())
    together = 1 << (together - 1).bit_length()
    ctas, threads = schedule.ctas, schedule.threads
    if ctas is None:
        most = resident_ctas() * (2048 // threads) * schedule.waves
        ctas = max(1, min(most, -(-(n + given.indices.shape[0]) // (LEAST * (threads // 32)))))
    own = 0 if bias is None else 1 if bias.ndim == 1 else heads
    sizes = n, columns, heads, width, each, narrow, lanes, together
    return Job(*sizes, ctas, own, scale, score, schedule.unroll)


def padded(x: jax.Array, width: int) -> jax.Array:
    """The last axis of three with zeros up to `width`, as words; an array of two axes as it is."""
    if x.ndim == 2:
        return x
    x = jnp.pad(x, ((0, 0), (0, 0), (0, width - x.shape[2])))
    if x.dtype.name not in NARROW:
        return x
    return jax.lax.bitcast_convert_type(x.reshape(*x.shape[:2], -1, 2), jnp.uint32)
