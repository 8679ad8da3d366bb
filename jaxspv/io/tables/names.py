"""Names of ends, numbered in the order in which they are met: row by row, source first."""

from __future__ import annotations

import collections
import itertools
from collections.abc import Hashable, Sequence

import numpy as np

from ...interop.labels import Labels
from ...shapes import Int

Numbers = dict[Hashable, int]


def new_numbers() -> Numbers:
    """Gives each name that it is asked for the first time the next number."""
    return collections.defaultdict(itertools.count().__next__)


def numbered(
    tails: Sequence[Hashable], heads: Sequence[Hashable], known: Numbers | Labels
) -> Int[np.ndarray, "2 edges"]:
    """The numbers of both columns; new names are added to a dictionary.

    Raises:
        ValueError: a name is not among the labels.
    """
    both = itertools.chain.from_iterable(zip(tails, heads, strict=True))
    if isinstance(known, Labels):
        found = known.vertices(both)
    else:
        found = np.fromiter(map(known.__getitem__, both), np.int32, 2 * len(tails))
    return found.reshape(-1, 2).T
