"""`python -m benchmarks.measure OUT`: every table of a device, on the tree as it is.

Each line of `tables/<device>.txt` holds the arguments of one run. Run k writes OUT/k.json and
OUT/k.log; `python -m benchmarks report --add OUT/*.json` stores what was measured. On several
GPUs each run has one of them to itself while it times.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys
import time

from .harness import LOCK

QUIET = 0.8  # load of a host whose CPU is measured
TABLES = pathlib.Path(__file__).parent / "tables"


def main(argv: list[str] | None = None) -> int:
    """Runs the lines; 1 if one of them failed."""
    p = argparse.ArgumentParser(prog="python -m benchmarks.measure", description=__doc__)
    p.add_argument("out", type=pathlib.Path, help="a folder")
    p.add_argument("--device", choices=[f.stem for f in TABLES.glob("*.txt")], default="cpu")
    p.add_argument("--only", nargs="+", metavar="NAME", help="these benchmarks alone")
    p.add_argument("--processes", type=int, default=1, help="compile side by side, time alone")
    p.add_argument("--gpus", type=int, default=1, help="share the runs between so many")
    p.add_argument("--seconds", type=float, default=3600, help="limit of one run")
    args = p.parse_args(argv)
    args.out.mkdir(parents=True, exist_ok=True)
    lines = (TABLES / f"{args.device}.txt").read_text().splitlines()
    chosen = [k for k, line in enumerate(lines) if not args.only or line.split()[0] in args.only]

    def environment(k: int) -> dict[str, str]:
        gpu = str(k % args.gpus)
        lock = {LOCK: str(args.out / f"lock{gpu}")} if args.processes > 1 else {}
        return os.environ | lock | ({"CUDA_VISIBLE_DEVICES": gpu} if args.gpus > 1 else {})

    def one(k: int) -> int:
        while args.device == "cpu" and os.getloadavg()[0] > QUIET:  # of the run before, or others
            time.sleep(1)
        start = time.monotonic()
        command = [sys.executable, "-m", "benchmarks", *lines[k].split()]
        with (args.out / f"{k}.log").open("w") as log:
            try:
                code = subprocess.run(
                    [*command, "--json", str(args.out / f"{k}.json")],
                    stdout=log,
                    stderr=subprocess.STDOUT,
                    env=environment(k),
                    timeout=args.seconds,
                    check=False,
                ).returncode
            except subprocess.TimeoutExpired:
                code = 124
        print(f"{code} {time.monotonic() - start:6.0f} s  {lines[k]}", flush=True)
        return code

    with concurrent.futures.ThreadPoolExecutor(args.processes) as pool:
        return int(any(list(pool.map(one, chosen))))


if __name__ == "__main__":
    sys.exit(main())
