"""`python -m tests.fuzz [programs|graphs|files|all] --count N --seed S --output FILE.json`."""

from __future__ import annotations

import argparse
import ast
import json
import pathlib
import platform
import sys

import jax

from . import graphs, mutated_files, programs
from .cases import campaign

FUZZERS = {"programs": programs.FUZZER, "graphs": graphs.FUZZER, "files": mutated_files.FUZZER}


def main() -> int:
    """The command: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kind", nargs="?", default="all", choices=("all", *FUZZERS))
    parser.add_argument("--count", type=int, default=200, help="cases of each kind")
    parser.add_argument("--seed", type=int, default=0, help="of the first case")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, a kind")
    parser.add_argument("--case", help="one case, as a reproducer prints it")
    parser.add_argument("--output", type=pathlib.Path, help="JSON: how many ran, what failed")
    args = parser.parse_args()
    if args.case:
        FUZZERS[args.kind].run(ast.literal_eval(args.case))
        return 0
    kinds = FUZZERS if args.kind == "all" else {args.kind: FUZZERS[args.kind]}
    report = {"jax": jax.__version__, "python": platform.python_version()} | {
        name: campaign(fuzzer, name, args.count, args.seed, args.seconds)
        for name, fuzzer in kinds.items()
    }
    text = json.dumps(report, indent=1, default=str)
    if args.output:
        args.output.write_text(text + "\n")
    print(text)
    return int(any(report[name]["wrong"] for name in kinds))


if __name__ == "__main__":
    sys.exit(main())
