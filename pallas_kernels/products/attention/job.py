"""Operands, schedule and static parameters of the attention kernels."""

import dataclasses
from typing import NamedTuple

import jax
import jax.numpy as jnp

from ...rows.columns import NARROW, as_words
from ...simt.device import Extent, most_ctas
from ...simt.feature_jaxpr import Rowwise

MOST = 128  # features of a head
LONG = 16  # rows of more entries in the mean are long
LEAST = 64  # a warp takes at least so many rows and entries together


@dataclasses.dataclass(frozen=True)
class Score:
    """A score as functions of the values of one entry: q, k, e if there are edges, then all params.

    value gives the score of each head; gradients gives the score and its derivatives by all
    arguments, for each head. `of` makes both.
    """

    value: Rowwise
    gradients: Rowwise

    @classmethod
    def of(cls, fn, heads, features, shapes):
        """From `fn` of float32; shapes: of its arguments, rows or numbers of `Rowwise`."""

        def gradients(*values):
            value, back = jax.vjp(fn, *values)
            return value, *back(jnp.ones_like(value))

        return cls(*(Rowwise.of(f, heads, features, shapes) for f in (fn, gradients)))

    @property
    def features(self):
        """Features of the arguments that are rows; 0 if none is."""
        return self.value.features if any(self.rows) else 0

    @property
    def rows(self):
        """Which of the arguments have features."""
        return tuple(self.value.is_row(v.aval) for v in self.value.closed.jaxpr.invars)


class Operands(NamedTuple):
    """The operands of attention.

    indptr int32[n + 1], indices int32[nse]: a CSR with n > 0 rows, at least one slot and column;
    slots from indptr[n] on are not read. q[n, heads, d] and, by columns, k[..., d] and v[..., f];
    with a `Score` each of q, k, edges[nse, heads] and params[heads] with features or without. bias:
    (nse,) or (nse, heads). All floats are float32, but v, and k where there is no `Score`,
    may both be bfloat16 or float16, and then q too; d and f from 1 to MOST. n + nse <
    `merge_path.LIMIT`; no operand has 2^31 elements.
    """

    indptr: jax.Array
    indices: jax.Array
    q: jax.Array
    k: jax.Array
    v: jax.Array
    bias: jax.Array | None = None
    edges: jax.Array | None = None
    params: tuple[jax.Array, ...] = ()

    def padded(self, width: int) -> dict[str, jax.Array]:
        """The given operands by name; features padded with zeros to `width`, as words."""
        found = self._asdict() | {f"p{i}": p[None] for i, p in enumerate(self.params)}
        del found["params"]
        rows = {"q", "k", "v", "edges"} | {f"p{i}" for i in range(len(self.params))}
        return {
            name: padded(x, width) if name in rows else x
            for name, x in found.items()
            if x is not None
        }


@dataclasses.dataclass(frozen=True)
class Schedule:
    """How attention is spread over the GPU.

    unroll: entries of a group of lanes in flight together (None: 4 if rows are long and features
    have 32 bits, else 2). together: heads of a tile, a power of two; with fewer heads the part of k
    and v that is read at one time is smaller. features: 16-bit features of a lane at most, 4 or 8
    (None: 8 if rows are long); of 32-bit features it has 4. ctas: for one tile of heads (None: all
    that are resident). With 1024 threads the compiler is limited to 64 registers: latency is hidden
    by warps, not by unrolling. interpret: on the host.
    """

    unroll: int | None = None
    together: int | None = None
    features: int | None = None
    ctas: int | None = None
    threads: int = 1024
    interpret: bool = False

    def form(self, tiles: int, ctas: int) -> Extent:
        """Arguments of `launch` for some tiles of heads; ctas: of each."""
        return {"ctas": tiles * ctas, "threads": self.threads, "interpret": self.interpret}


SCHEDULE = Schedule()


@dataclasses.dataclass(frozen=True)
class Job:
    """The static parameters of one launch.

    width: features of a head, a power of two; each: of a lane; lanes of a head. narrow: the 16-bit
    floats in the words of v, and of k where that has features, or None. narrow_q, thin: in those of
    q and of y too. together: heads of a warp, a power of two. ctas: of one tile of heads. own:
    biases of an entry.
    """

    n: int
    columns: int
    heads: int
    width: int
    each: int
    narrow: str | None
    narrow_q: bool
    thin: bool
    lanes: int
    together: int
    ctas: int
    own: int
    scale: float
    score: Score | None
    unroll: int


def job_of(
    given: Operands, scale: float, score: Score | None, schedule: Schedule, thin: bool = False
) -> Job:
    """The launch for these operands. thin: y gets 16 bits where v has them."""
    n, (columns, heads, f), bias = given.q.shape[0], given.v.shape, given.bias
    width = 1 << (max(f, score.features if score else given.q.shape[2]) - 1).bit_length()
    narrow = NARROW.get(given.v.dtype.name)
    width = max(width, 2) if narrow else width
    long = given.indices.shape[0] > LONG * n
    features = schedule.features or (8 if long else 4)
    unroll = schedule.unroll or (4 if long and not narrow and score is None else 2)
    each = min(width, features if narrow else 4)
    lanes = width // each
    together = min(schedule.together or heads, 32 // lanes, 1 << (heads - 1).bit_length())
    together = 1 << (together - 1).bit_length()
    wanted = -(-(n + given.indices.shape[0]) // (LEAST * (schedule.threads // 32)))
    ctas = schedule.ctas or most_ctas(wanted, schedule.threads, 1)
    own = 0 if bias is None else 1 if bias.ndim == 1 else heads
    halves = narrow, given.q.dtype.name in NARROW, thin and narrow is not None
    sizes = n, columns, heads, width, each, *halves, lanes, together
    return Job(*sizes, ctas, own, scale, score, unroll)


def padded(x: jax.Array, width: int) -> jax.Array:
    """The last axis of three with zeros up to `width`, as words; an array of two axes as it is."""
    if x.ndim == 2:
        return x
    x = jnp.pad(x, ((0, 0), (0, 0), (0, width - x.shape[2])))
    return as_words(x) if x.dtype.name in NARROW else x
