"""Walks over rows of a CSR: each warp takes the shape that suits the lengths of its rows."""

import dataclasses
import functools
import operator
from collections.abc import Callable
from typing import Any

from ..simt.typed import Value
from .merge_path import Shape


@dataclasses.dataclass(frozen=True)
class ByLength:
    """A shape of `merge_path.CsrRows` for rows sorted by length: each warp takes the first of a
    table of (largest mean length of a row, shape) that fits its rows. The last bound is ignored.
    """

    table: tuple[tuple[float, Shape], ...]

    def shared_words(self, threads: int) -> int:
        return sum(shape.shared_words(threads) for _, shape in self.table)

    def walk_of(self, job: Any) -> Callable[[Value, Value], None]:
        k, walks = job.k, [shape.walk_of(job) for _, shape in self.table]

        def walk(first, stop):
            mean = k.cast(job.high - job.low, "f32") / k.cast(k.maximum(stop - first, 1), "f32")
            longer = [k.const(True, "i1"), *(mean > bound for bound, _ in self.table[:-1])]
            for j, one in enumerate(walks):
                others = [~x for x in longer[j + 1 : j + 2]]
                mine = functools.reduce(operator.and_, others, longer[j])
                k.if_(mine, functools.partial(one, first, stop))

        return walk
