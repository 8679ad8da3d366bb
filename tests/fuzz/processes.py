"""A campaign over many processes: each takes a range of seeds, the results are added up."""

from __future__ import annotations

import collections
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax

SEEDS = 1_000_000  # between the first seeds of two processes
LATE = 60  # seconds to start, and to finish a case that fails
FAST = "--xla_backend_optimization_level=0 --xla_cpu_multi_thread_eigen=false"  # to compile
OLDER = " --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1"
ALONE = {
    "XLA_FLAGS": FAST + OLDER * jax.__version__.startswith("0.10."),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}


def spread(kinds: list[str], arguments: Any) -> dict[str, Any]:
    """What `arguments.processes` processes found, each with its part of every count.

    A process that crashes, or hangs LATE seconds past its time, is found too, with the structure
    that it was at; the kinds that it had done are counted.
    """
    start, most = time.perf_counter(), arguments.seconds + LATE
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        parts = [_part(folder, kinds, arguments, k) for k in range(arguments.processes)]
        for process, _ in parts:
            left = None if most == float("inf") else most - (time.perf_counter() - start)
            try:
                process.wait(left)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        return _together(kinds, [(process.returncode, path) for process, path in parts])


def _part(folder: pathlib.Path, kinds: list[str], arguments: Any, k: int):
    path = folder / f"{k}.json"
    size = -(-arguments.cases // arguments.processes)
    options = {
        "--cases": size,
        "--draws": arguments.draws,
        "--seed": arguments.seed + k * SEEDS,
        "--seconds": arguments.seconds,
        "--out": path,
    }
    command = [sys.executable, "-m", "tests.fuzz", *kinds]
    command += [str(part) for pair in options.items() for part in pair]
    command += ["--x64"] * arguments.x64
    with open(folder / f"{k}.txt", "w") as out:
        process = subprocess.Popen(command, stdout=out, stderr=out, env=os.environ | ALONE)
    if hasattr(os, "sched_setaffinity"):  # one core: pools hold a thread for each that is allowed
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(process.pid, {cores[k % len(cores)]})
    return process, path


def _together(kinds: list[str], parts: list[tuple[int, pathlib.Path]]) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for code, path in parts:
        log = path.with_suffix(".txt").read_text()[-2000:]
        part = json.loads(path.read_text()) if path.exists() else {}
        if code not in (0, 1) or not path.exists():
            now = path.with_suffix(".now")
            where = now.read_text() if now.exists() else None
            report.setdefault("crashed", []).append({"code": code, "at": where, "log": log})
        for kind in (kind for kind in kinds if kind in part):
            report[kind] = _added(report.get(kind), part[kind])
    return report


def _added(total: dict[str, Any] | None, part: dict[str, Any]) -> dict[str, Any]:
    if total is None:
        return part | {"first_seeds": [part["first_seed"]]}
    oracles = collections.Counter(total["oracles"])
    oracles.update(part["oracles"])
    return {
        "programs": total["programs"] + part["programs"],
        "structures": total["structures"] + part["structures"],
        "oracles": dict(oracles),
        "first_seed": total["first_seed"],
        "first_seeds": [*total["first_seeds"], part["first_seed"]],
        "seconds": max(total["seconds"], part["seconds"]),
        "wrong": total["wrong"] + part["wrong"],
    }
