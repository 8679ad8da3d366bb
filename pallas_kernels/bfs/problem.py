"""What a search is given: configuration, sizes, targets."""

import dataclasses
from collections.abc import Callable
from typing import Any

from ..frontier import Sizes, Spread
from ..simt.primitives import Simt
from ..simt.typed import Array, Operand, Value


@dataclasses.dataclass(frozen=True)
class BFSConfig(Spread):
    """How a search is spread over the GPU; `default_bfs_config` chooses it."""

    # low_degree: entries of the frontier queue in shared memory; frontiers up to solo_in enter
    # the mode of one CTA, which lasts while they are at most solo_out (at most `queue`); larger
    # ones up to local_most lie in queues of all CTAs
    queue: int = 2048
    solo_in: int = 1536
    solo_out: int = 2048
    local_most: int = 0
    shared_bits: bool = True
    # any_degree: edges of a queue entry; edges of a frontier that one CTA expands alone;
    # thresholds of Beamer
    span: int = 64
    solo_edges: int = 1024
    alpha: float = 14.0
    beta: int = 24
    pull_edges: int = 1 << 18  # never pull for fewer frontier edges
    # in graphs of `many` entries or more: from so many frontier edges on, the edges of the next
    # frontier are estimated by a sample
    sampled: int = 1 << 13
    many: int = 1 << 28
    lane_probes: int = 8  # in a pull: neighbours after the fourth that one lane probes
    unroll: int = 4  # vertices that a lane pulls for in one step
    buffer: int = 2048  # queue entries that a CTA buffers in shared memory


@dataclasses.dataclass(frozen=True)
class Problem(BFSConfig, Sizes):
    """The configuration with the sizes of a graph and what is asked for, known while tracing."""

    words: Any = 0  # of a bitmap
    nnz: int = 1
    parents: bool = False
    stop: Callable[..., Any] | None = None
    pull: bool = False  # any_degree: the in-edges are known
    capacity: int = 0  # any_degree: ranges of a queue

    @property
    def entry(self) -> int:
        """low_degree: words of an entry of the log."""
        return 4 if self.parents else 2


class Targets:
    """The targets of a search, and whether the caller's `stop` holds.

    place(vertex): index of the word, and mask, of the bit of a vertex in the bitmap of the visited.
    """

    def __init__(self, k: Simt, c: Any, m: Any, stop: Any, place: Callable[[Value], tuple]):
        given = [k.load(m.targets, j) for j in range(c.targets)]
        self.k, self.stop, self.known = k, stop, [k.below(t, c.n) for t in given]
        self.places = [place(k.where(ok, t, 0)) for t, ok in zip(given, self.known, strict=True)]

    def stopped(self, level: Value, found: Value, bits: Array, first: Operand = 0) -> Value:
        """Whether `stop` holds after `level`, which found so many vertices; first: of the words of
        the bitmap."""
        k = self.k
        if self.stop is None:
            return k.const(0)
        words = [k.load(bits, first + word, cache="fresh") for word, _ in self.places]
        each = zip(words, self.places, self.known, strict=True)
        reached = tuple((word & bit != 0) & known for word, (_, bit), known in each)
        return k.cast(k.const(self.stop(level, reached, found == 0), "i1"), "i32")
