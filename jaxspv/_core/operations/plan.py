"""Plans: which form of an operation runs on which platform, and why not others."""

from __future__ import annotations

import dataclasses
import html
from typing import Any

from ..platforms import PLATFORM_OF, WORDS


@dataclasses.dataclass(frozen=True)
class Plan:
    """The result of `explain`: which implementation runs on which platform, and why not others.

    Attributes:
        op: name of the operation.
        chosen: at most one implementation for each backend: a Pallas one for NVIDIA GPUs, one for
            CPUs, and the XLA one for every platform that is left.
        refused: (implementation, reason) of those passed over before the chosen ones.
        notes: what `prepare` would gain, warnings.
        inside: (implementation, plans of the choices made within it), of those that make any.
        internal: whether the operation is a step of others.
    """

    op: str
    chosen: tuple[Any, ...]
    refused: tuple[tuple[Any, str], ...] = ()
    notes: tuple[str, ...] = ()
    inside: tuple[tuple[Any, tuple[Plan, ...]], ...] = ()
    internal: bool = False

    def on(self, platform: str) -> Any:
        """The implementation that runs on a platform: "cuda", "cpu", or any other; None: none."""
        served = (i for i in self.chosen if PLATFORM_OF.get(i.backend, platform) == platform)
        return next(served, None)  # the fastest first

    def __str__(self) -> str:
        parts = []
        for impl in self.chosen:  # that of XLA last
            platform = PLATFORM_OF.get(impl.backend)
            place = f" on {WORDS[platform]}" if platform else " elsewhere" if parts else ""
            parts.append(f"{impl}{place}")
        lines = [f"{self.op}: {', '.join(parts) or 'one program of XLA, no choice'}"]
        lines += [f"  not {impl}: {reason}" for impl, reason in self.refused]
        for impl, plans in self.inside:
            inner = [line for plan in plans for line in str(plan).splitlines()]
            title = f"  inside {impl}:"
            lines += inner if impl is None else [title, *(f"    {line}" for line in inner)]
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])

    def _repr_html_(self) -> str:
        """The HTML representation for notebooks: the text in a `<pre>` block."""
        return f"<pre>{html.escape(str(self))}</pre>"
