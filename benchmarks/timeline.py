"""What a call puts on the streams of a GPU, when, and for how long: read from a profile."""

from __future__ import annotations

import pathlib
import tempfile
from collections.abc import Callable
from typing import Any

import jax


def timeline(call: Callable[[], Any]) -> list[tuple[str, float, float]]:
    """(name, start, duration) of its kernels and copies in microseconds, in order of their start;
    nothing where there is no GPU."""
    if jax.default_backend() != "gpu":
        return []
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            call()
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(path))
        events = {
            (e.start_ns / 1e3, e.name, e.duration_ns / 1e3)
            for plane in profile.planes
            if plane.name.startswith("/device:GPU")
            for line in plane.lines
            if line.name.startswith("Stream")
            for e in line.events
        }
    first = min(events, default=(0.0,))[0]
    return [(name, at - first, took) for at, name, took in sorted(events)]
