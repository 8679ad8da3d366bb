"""What a run of a benchmark may be told; filled from the command line."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from .harness import RUNS


@dataclasses.dataclass(frozen=True)
class Options:
    """Settings of one run.

    Attributes:
        runs: timed calls of each candidate.
        limit_s: a candidate that would take longer for its runs is timed once; `runs` in its
            record says so.
        repeats: K of the time inside one jitted program, K computations / K; 0: not taken.
        max_scale: largest R-MAT scale of `yang2015`.
        sources: number of sources of `yang2015`.
        profile: whether launches on a GPU are counted in a profile.
        baselines: whether other programs run too.
        cases: of `fixpoint`, `gradients`, `gpu_programs` and `over_scipy`, these alone; None: all.
        backend: of jaxspv, only this one; None: every one there is.
    """

    runs: int = RUNS
    limit_s: float = math.inf
    repeats: int = 0
    max_scale: int = 18
    sources: int = 10
    profile: bool = False
    baselines: bool = True
    backend: str | None = None
    cases: tuple[str, ...] | None = None

    def timing(self) -> dict[str, Any]:
        """The keyword arguments of `harness.measure`."""
        return {"runs": self.runs, "limit_s": self.limit_s, "profile": self.profile}
