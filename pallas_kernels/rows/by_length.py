"""Walks over rows of a CSR: each warp takes the shape that suits the lengths of its rows."""

import dataclasses
import functools
import operator
from typing import TYPE_CHECKING, Any

from ..simt.typed import Value

if TYPE_CHECKING:
    from .merge_path import Shape


@dataclasses.dataclass(frozen=True)
class ByLength:
    """A shape of `merge_path.CsrRows` for rows sorted by length: each warp takes the first of a
    table of (largest mean length of a row, shape) that fits its rows. The last bound is ignored.
    """

    table: "tuple[tuple[float, Shape], ...]"

    def shared_words(self, threads: int) -> int:
        return sum(shape.shared_words(threads) for _, shape in self.table)

    def walker(self, job: Any) -> Any:
        return _ByLength(job, self)


class _ByLength:
    """The walk of one warp."""

    def __init__(self, job: Any, shape: Any):
        self.job = job
        self.bounds = [bound for bound, _ in shape.table[:-1]]
        self.walkers = [shape.walker(job) for _, shape in shape.table]

    def walk(self, first: Value, stop: Value) -> None:
        job, k = self.job, self.job.k
        mean = k.cast(job.high - job.low, "f32") / k.cast(k.maximum(stop - first, 1), "f32")
        longer = [k.const(True, "i1"), *(mean > bound for bound in self.bounds)]
        for j, walker in enumerate(self.walkers):
            others = [~x for x in longer[j + 1 : j + 2]]
            mine = functools.reduce(operator.and_, others, longer[j])
            k.if_(mine, functools.partial(walker.walk, first, stop))
