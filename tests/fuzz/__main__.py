"""`python -m tests.fuzz [KIND ...] --count N --draws D --processes P --seconds S --output FILE`."""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import pathlib
import platform
import sys
import time

import jax
import numpy as np

from .cases import Case, Fuzzer, Plan, campaign
from .processes import spread

KINDS = ("programs", "graphblas", "gradients", "graphs", "files")


def fuzzer_of(kind: str, x64: bool = False) -> Fuzzer:
    """The fuzzer of a kind; x64: only its cases under x64."""
    fuzzer = importlib.import_module(f"tests.fuzz.{kind}").FUZZER
    if not x64 or "x64" not in fuzzer.choices:
        return fuzzer
    given = fuzzer.choices | {"x64": (True,)}
    return Fuzzer(given, fuzzer.run, fuzzer.draws, fuzzer.programs, fuzzer.possible)


def main() -> int:
    """The command: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[], help=f"of {KINDS}; all by default")
    parser.add_argument("--count", type=int, default=2000, help="programs (files) of each kind")
    parser.add_argument("--draws", type=int, default=125, help="of data for each structure")
    parser.add_argument("--seed", type=int, default=0, help="of the first structure")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, a kind")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--x64", action="store_true", help="only cases under jax_enable_x64")
    parser.add_argument("--case", help="one case, as a reproducer prints it")
    parser.add_argument("--output", type=pathlib.Path, help="JSON: how many ran, what failed")
    args = parser.parse_args()
    kinds = args.kinds or list(KINDS)
    if unknown := set(kinds) - set(KINDS):
        parser.error(f"unknown kinds {sorted(unknown)}; known are {KINDS}")
    if args.case:
        case: Case = ast.literal_eval(args.case)
        listed = {name: tuple(v) if isinstance(v, list) else v for name, v in case.items()}
        fuzzer_of(kinds[0]).run(listed)
        return 0
    start = time.perf_counter()
    report = _alone(kinds, args) if args.processes < 2 else spread(kinds, args)
    text = json.dumps(_titled(report, args, start), indent=1, default=_plain)
    if args.output:
        args.output.write_text(text + "\n")
    print(text)
    return int("crashed" in report or any(report[kind]["wrong"] for kind in kinds))


def _alone(kinds: list[str], args: argparse.Namespace) -> dict:
    now = args.output and args.output.with_suffix(".now")
    plan = Plan(args.count, args.draws, args.seed, args.seconds, now)
    return {kind: campaign(fuzzer_of(kind, args.x64), kind, plan) for kind in kinds}


def _titled(report: dict, args: argparse.Namespace, start: float) -> dict:
    title = {"jax": jax.__version__, "python": platform.python_version(), "x64_only": args.x64}
    spent = {"processes": args.processes, "seconds": round(time.perf_counter() - start, 1)}
    return title | {"draws_a_structure": args.draws} | report | spent


def _plain(value):
    return value.item() if isinstance(value, np.generic) else str(value)


if __name__ == "__main__":
    sys.exit(main())
