"""How times are taken: verify, warm up, then run the competitors in turn in one process.

A `Candidate` is one way to compute something. `measure` checks the result of each before it times
any, and interleaves the timed runs, so that a ratio of two candidates means something on a noisy
machine too.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import gc
import importlib.metadata
import math
import os
import pathlib
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import jax
import numpy as np
from jax import lax

import jaxspv as jsp

RUNS = 10
OUTPUTS = ("--json", "--markdown", "--plot")
WAKE_S = 0.3
PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "networkx", "python-graphblas", "cupy-cuda13x")
PACKAGES += ("cupy-cuda12x",)
LOCK = "JAXSPV_BENCHMARK_LOCK"  # a file: who shares it compiles side by side and times alone


@dataclasses.dataclass(frozen=True)
class Candidate:
    """One way to compute something.

    Attributes:
        name: of the program and its setting, as in tables.
        call: computes, waits for the result, returns it.
        verify: raises AssertionError where a result is wrong.
        repeats: computations in one call; times are divided by it.
        prepare_s: seconds of conversion and preparation before the first call, given apart.
        notes: further fields of the record.
    """

    name: str
    call: Callable[[], Any]
    verify: Callable[[Any], None]
    repeats: int = 1
    prepare_s: float | None = None
    notes: dict[str, Any] = dataclasses.field(default_factory=dict)


class WrongResult(AssertionError):
    """A candidate computed something else than the reference."""


def blocking(call: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[[], Any]:
    """`call(*args, **kwargs)` that waits for its result."""
    return lambda: jax.block_until_ready(call(*args, **kwargs))


def within(seconds: float, call: Callable[[], Any]) -> Callable[[], Any]:
    """`call` that raises TimeoutError after so many seconds; of pure Python, in the main thread."""

    def give_up(*signal_and_frame):
        del signal_and_frame
        raise TimeoutError(f"took more than {seconds:g} s")

    def bounded():
        before = signal.signal(signal.SIGALRM, give_up)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        try:
            return call()
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, before)

    return bounded


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    """The result of `call` and the seconds it took, waiting included."""
    start = time.perf_counter()
    result = jax.block_until_ready(call())
    return result, time.perf_counter() - start


def measure(
    candidates: Sequence[Candidate],
    *,
    runs: int = RUNS,
    limit_s: float = math.inf,
    profile: bool = False,
) -> list[dict[str, Any]]:
    """Verifies, warms up and times every candidate; one record each, in milliseconds.

    Args:
        runs: timed calls of each, one of every candidate a round, in an order drawn anew: who
            always ran behind the same program would have its memory and its caches.
        limit_s: a candidate whose runs would take longer keeps its one warm call as its time; its
            record says `runs: 1`.
        profile: whether the launches of one call on a GPU are counted, after the timed runs.

    Returns:
        Records with `program, median_ms, min_ms, max_ms, spread, runs, first_s, compile_s,
        prepare_s, verified` and the candidate's notes. `spread` is the interquartile range over the
        median, `first_s` the first call with its compilation, `compile_s` what it took beyond the
        median. A program that raises has NaN for times, `verified: False` and `error`.

    Raises:
        WrongResult: names the candidate; nothing is timed then.
    """
    first, errors = _first_calls(candidates)
    with alone():
        return _timed(candidates, first, errors, runs, limit_s, profile)


@contextlib.contextmanager
def alone(exclusive: bool = True) -> Iterator[None]:
    """Waits until nobody times on this device; where `exclusive`, until nobody else uses it.

    Of those whose environment names the same file (`LOCK`). Who waits to be alone holds the gate
    meanwhile, so that others who come later wait behind it.
    """
    path = os.environ.get(LOCK)
    if not path:
        yield
        return
    with open(path, "a") as capacity, open(path + ".gate", "a") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)
        fcntl.flock(capacity, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        fcntl.flock(gate, fcntl.LOCK_UN)
        yield


def preparation(make: Callable[[], Any]) -> tuple[Any, float]:
    """What `make` returns and its seconds, while no other process takes times on this device."""
    with alone(False):
        return timed(make)


def _timed(candidates, first, errors, runs, limit_s, profile):
    """What `measure` returns, of candidates whose first calls are behind them."""
    warm_up = [math.nan if c.name in errors else timed(c.call)[1] for c in candidates]
    samples = [[seconds] for seconds in warm_up]
    again = [k for k, seconds in enumerate(warm_up) if seconds * runs <= limit_s]
    for k in again:
        samples[k].clear()
    gc.collect()
    _wake([candidates[k].call for k in again])
    draw = np.random.default_rng(0)
    for _ in range(runs):
        for k in draw.permutation(again):
            samples[k].append(timed(candidates[k].call)[1])
    records = [
        summary(c.name, s, f, repeats=c.repeats, prepare_s=c.prepare_s) | c.notes
        for c, s, f in zip(candidates, samples, first, strict=True)
    ]
    for record, candidate in zip(records, candidates, strict=True):
        if candidate.name in errors:
            record.update(verified=False, error=errors[candidate.name])
            continue
        counted = launches(candidate.call) if profile else None
        if counted is not None:
            record["launches"] = counted / candidate.repeats
    return records


def _wake(calls: Sequence[Callable[[], Any]]) -> None:
    """Runs them for a while where the device is a GPU: an idle one takes that long to speed up."""
    end = time.perf_counter() + (WAKE_S if jax.default_backend() == "gpu" else 0)
    while calls and time.perf_counter() < end:
        for call in calls:
            call()


def _first_calls(candidates: Sequence[Candidate]) -> tuple[list[float], dict[str, str]]:
    """Seconds of the first call of each, verified, and what those that raise say."""
    first, errors = [], {}
    for candidate in candidates:
        with alone(False):
            try:
                result, seconds = timed(candidate.call)
            except Exception as error:  # whatever a program of others may raise
                errors[candidate.name] = f"{type(error).__name__}: {str(error)[:500]}"
                first.append(math.nan)
                continue
            try:
                candidate.verify(result)
            except AssertionError as error:
                raise WrongResult(f"{candidate.name}: {error}") from error
            first.append(seconds)
            del result
    return first, errors


def summary(
    program: str,
    samples: Sequence[float],
    first: float,
    *,
    repeats: int = 1,
    prepare_s: float | None = None,
) -> dict[str, Any]:
    """The record of verified calls that took `samples` seconds, the very first one `first`."""
    ms = np.asarray(samples) * 1e3 / repeats
    low, middle, high = np.percentile(ms, [25, 50, 75])
    return {
        "program": program,
        "median_ms": float(middle),
        "min_ms": float(ms.min()),
        "max_ms": float(ms.max()),
        "spread": float((high - low) / middle) if middle else 0.0,
        "runs": len(samples),
        "first_s": first,
        "compile_s": max(0.0, first - float(middle) * repeats / 1e3),
        "prepare_s": prepare_s,
        "verified": True,
    }


def chained(step: Callable[..., Any], repeats: int, *, unroll: bool) -> Callable[..., Any]:
    """One jitted program of `repeats` steps, `carry = step(carry, *operands)`.

    The time of one computation inside a jitted program is that of this over `repeats`. Each step
    must take something from the result of the one before that XLA cannot fold, such as the source's
    own parent. Operands are arguments, never captured: a captured matrix would become a constant.

    Args:
        unroll: a straight line of steps (persistent kernels); else a `fori_loop`.
    """

    if unroll:
        step = jax.jit(step)  # lowered once: a kernel takes longer to write down than to run

    def program(carry, *operands):
        if unroll:
            for _ in range(repeats):
                carry = step(carry, *operands)
            return carry
        return lax.fori_loop(0, repeats, lambda _, c: step(c, *operands), carry)

    return jitted(program)


def launches(call: Callable[[], Any]) -> int | None:
    """Kernels and copies that one call puts on the streams of a GPU, counted in a profile."""
    events = device_events(call)
    return None if events is None else len(events)


def device_events(call: Callable[[], Any]) -> list[str] | None:
    """Names of the kernels and copies that one call puts on a GPU's streams; None elsewhere."""
    if jax.default_backend() != "gpu":
        return None
    with tempfile.TemporaryDirectory() as folder:
        with jax.profiler.trace(folder):
            call()
        (path,) = pathlib.Path(folder).rglob("*.xplane.pb")
        profile = jax.profiler.ProfileData.from_file(str(path))
        return [
            event.name
            for plane in profile.planes
            if plane.name.startswith("/device:GPU")
            for line in plane.lines
            if line.name.startswith("Stream")
            for event in line.events
        ]


def jitted(function: Callable[..., Any]) -> Callable[..., Any]:
    """`jax.jit` with the options that keep a loop on an NVIDIA GPU."""
    options = jsp.config.gpu_compiler_options() if jax.default_backend() == "gpu" else None
    return jax.jit(function, compiler_options=options)


def geometric_mean(values: Iterable[float]) -> float:
    """exp of the mean of the logarithms; NaN of nothing."""
    logs = [math.log(value) for value in values]
    return math.exp(sum(logs) / len(logs)) if logs else math.nan


def nbytes(tree: Any) -> int:
    """Bytes in the distinct arrays of a pytree."""
    leaves = {id(x): x for x in jax.tree.leaves(tree) if hasattr(x, "nbytes")}
    return sum(leaf.nbytes for leaf in leaves.values())


def environment() -> dict[str, Any]:
    """Device, load of the host (1, 5, 15 minutes), versions, commit and command of this run."""
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    device = jax.devices()[0]
    return {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "platform": device.platform,
        "device": device.device_kind if device.platform != "cpu" else _processor(),
        "devices": jax.device_count(),
        "load": os.getloadavg(),
        "versions": versions,
        "commit": _commit(),
        "command": _command(sys.argv[1:]),
    }


def _command(arguments: Sequence[str]) -> str:
    """What was asked for, output files by their names alone."""
    words = [
        pathlib.Path(w).name if a in OUTPUTS else w
        for a, w in zip(["", *arguments], arguments, strict=False)
    ]
    return " ".join(["python -m benchmarks", *words])


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return f"{models[0] if models else platform.machine()}, {len(models)} hardware threads"


def _commit() -> str | None:
    """The commit's hash, with + where tracked files but results differ.

    What JAXSPV_COMMIT says, if it is set: for copies of a tree on a machine of its own, whose
    history may end before that tree.
    """
    if named := os.environ.get("JAXSPV_COMMIT"):
        return named

    def git(*words):
        folder = pathlib.Path(__file__).parent
        return subprocess.run(
            ["git", *words], cwd=folder, capture_output=True, text=True, check=True
        ).stdout.strip()

    try:
        code = (":/", ":(top,exclude)benchmarks/results")
        changed = git("status", "--porcelain", "-uno", "--", *code)
        return git("rev-parse", "HEAD") + ("+" if changed else "")
    except (OSError, subprocess.CalledProcessError):
        return None
