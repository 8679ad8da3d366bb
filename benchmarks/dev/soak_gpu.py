"""Long and hostile runs of the GPU kernels within minutes: `soak_gpu [FILE [STEP ...]]`

Side by side, since most of their time is compilation, each step with a limit of its own:

    shapes     64 sources x 20 repeats over extreme shapes, numbers of CTAs changing (`stress`)
    zeros      the same with weights of 0, warps delayed at atomics and barriers
    files      the same over every file of the data folder
    faults     an expired barrier and its status, primitives as interpreted (tests/kernels)
    memcheck   compute-sanitizer over a small selection of native tests
    racecheck  the same for shared memory, of one test a step: it slows kernels a thousandfold

Run it as `python -m benchmarks.dev.soak_gpu`; steps by their names in `STEPS`, all by default.
A step that reaches its limit is told as such, with what it printed last; FILE gets it as JSON.
"""

from __future__ import annotations

import concurrent.futures
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
NATIVE = [*TESTS, "tests/kernels/test_native.py", "-k"]
SANITIZER = "compute-sanitizer"
# No test with products of dense matrices: racecheck reports races inside cuBLAS, or breaks there.
RACES = [SANITIZER, "--tool", "racecheck", "--error-exitcode", "9"]
STEPS: dict[str, tuple[int, list[str], list[str]]] = {  # seconds, prefix, arguments of Python
    "shapes": (280, [], [*STRESS, "shapes", *ROUNDS]),
    "zeros": (400, [], [*STRESS, "shapes", *ROUNDS, "--zeros", "--delays"]),
    "files": (400, [], [*STRESS, "files", *ROUNDS, "--part", "0/2"]),
    "files, others": (400, [], [*STRESS, "files", *ROUNDS, "--part", "1/2"]),
    "faults": (60, [], [*NATIVE, "expired or native_equals"]),
    "memcheck": (
        280,
        [SANITIZER, "--tool", "memcheck", "--error-exitcode", "9"],
        [*NATIVE, "expired or native_equals or two_searches"],
    ),
    "racecheck, expired": (280, RACES, [*NATIVE, "expired"]),
    "racecheck, as interpreted": (280, RACES, [*NATIVE, "native_equals"]),
    "racecheck, searches": (280, RACES, [*NATIVE, "hundred_searches"]),
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
        "said": lines[-150:],
    }


def main(path: str | None = None, *steps: str) -> int:
    """1 where a step failed; one that ran out of time did not."""
    report = {}
    names = steps or tuple(STEPS)
    with concurrent.futures.ThreadPoolExecutor(len(names)) as pool:
        for name, step in zip(names, pool.map(run, names), strict=True):
            report[name] = step
            print(name, json.dumps(step, indent=1), flush=True)
    if path:
        pathlib.Path(path).write_text(json.dumps(report, indent=1) + "\n")
    return int(any(step["code"] not in (0, None) for step in report.values()))


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
