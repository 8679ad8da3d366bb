"""Long and hostile runs of the GPU kernels within minutes: python -m benchmarks.dev.soak_gpu [FILE]

In this order, each step with a limit of its own, so that all end within about 5 minutes:

    shapes     64 sources x 20 repeats over extreme shapes, numbers of CTAs changing (`stress`)
    zeros      the same with weights of 0, warps delayed at atomics and barriers
    files      the same over every file of the data folder
    faults     an expired barrier and its status, primitives as interpreted (tests/kernels)
    memcheck   compute-sanitizer over a small selection of native tests
    racecheck  the same for shared memory

A step that reaches its limit is told as such, with what it printed last; FILE gets it as JSON.
"""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import sys
import time

STRESS = ["-m", "benchmarks.dev.stress"]
ROUNDS = ["--sources", "64", "--repeats", "20"]
TESTS = ["-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider"]
SMALL = [*TESTS, "tests/kernels/test_native.py", "-k", "expired or native_equals or two_searches"]
SANITIZER = "compute-sanitizer"
OTHERS = ["--kernel-name-exclude", "kernel_substring=xmma"]  # matrix products of cuBLAS
STEPS: dict[str, tuple[int, list[str], list[str]]] = {  # seconds, prefix, arguments of Python
    "shapes": (50, [], [*STRESS, "shapes", *ROUNDS]),
    "zeros": (60, [], [*STRESS, "shapes", *ROUNDS, "--zeros", "--delays"]),
    "files": (60, [], [*STRESS, "files", *ROUNDS]),
    "faults": (35, [], [*TESTS, "tests/kernels/test_native.py", "-k", "expired or native_equals"]),
    "memcheck": (35, [SANITIZER, "--tool", "memcheck", "--error-exitcode", "9"], SMALL),
    "racecheck": (60, [SANITIZER, "--tool", "racecheck", *OTHERS, "--error-exitcode", "9"], SMALL),
}
ENVIRONMENT = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false", "PYTHONUNBUFFERED": "1"}


def run(name: str) -> dict[str, object]:
    """What a step did: its exit code (None: out of time), seconds, and its last lines."""
    limit, prefix, arguments = STEPS[name]
    command = [*prefix, sys.executable, *arguments]
    shown = " ".join([*prefix, "python", *arguments])
    if prefix and shutil.which(prefix[0]) is None:
        return {"command": shown, "code": None, "said": [f"{prefix[0]} is not installed"]}
    start = time.perf_counter()
    try:
        done = subprocess.run(
            command,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=limit,
            env=os.environ | ENVIRONMENT,
        )
        code, said = done.returncode, done.stdout
    except subprocess.TimeoutExpired as late:
        code, said = None, (late.stdout or b"").decode(errors="replace")
    lines = said.strip().split("\n")
    return {
        "command": shown,
        "code": code,
        "seconds": round(time.perf_counter() - start, 1),
        "limit": limit,
        "said": lines[-40:],
    }


def main(path: str | None = None) -> int:
    """1 where a step failed; one that ran out of time did not."""
    report = {}
    for name in STEPS:
        report[name] = run(name)
        print(name, json.dumps(report[name], indent=1), flush=True)
    if path:
        pathlib.Path(path).write_text(json.dumps(report, indent=1) + "\n")
    return int(any(step["code"] not in (0, None) for step in report.values()))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
