"""`python -m tests.fuzz [KIND ...] --cases N --seed S --processes P --seconds T --out FILE`."""

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

KINDS = {  # name -> module
    "programs": "programs",
    "graphblas": "graphblas",
    "gradients": "gradients",
    "graphs": "graphs",
    "files": "files",
    "views": "answers.views",
    "algorithms": "answers.algorithms",
    "sums": "answers.sums",
}


def fuzzer_of(kind: str, x64: bool = False) -> Fuzzer:
    """The fuzzer of a kind; x64: only its cases under x64."""
    fuzzer = importlib.import_module(f"tests.fuzz.{KINDS[kind]}").FUZZER
    if not x64 or "x64" not in fuzzer.choices:
        return fuzzer
    given = fuzzer.choices | {"x64": (True,)}
    return Fuzzer(given, fuzzer.run, fuzzer.draws, fuzzer.programs, fuzzer.possible)


def main() -> int:
    """The command: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[], help=f"of {list(KINDS)}; all by default")
    parser.add_argument("--cases", type=int, default=2000, help="of each kind; a file is one")
    parser.add_argument("--draws", type=int, default=125, help="of data for each structure")
    parser.add_argument("--seed", type=int, default=0, help="of the first structure")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="at most, a kind")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--x64", action="store_true", help="only cases under jax_enable_x64")
    parser.add_argument("--case", help="one case, as a reproducer prints it")
    parser.add_argument("--out", type=pathlib.Path, help="JSON: how many ran, what failed")
    args = parser.parse_args()
    kinds = args.kinds or list(KINDS)
    if unknown := set(kinds) - KINDS.keys():
        parser.error(f"unknown kinds {sorted(unknown)}; known are {list(KINDS)}")
    if args.case:
        case: Case = ast.literal_eval(args.case)
        listed = {name: tuple(v) if isinstance(v, list) else v for name, v in case.items()}
        fuzzer_of(kinds[0]).run(listed)
        return 0
    start = time.perf_counter()
    report = _alone(kinds, args) if args.processes < 2 else spread(kinds, args)
    text = json.dumps(_titled(report, args, start), indent=1, default=_plain)
    if args.out:
        args.out.write_text(text + "\n")
    print(text)
    return int("crashed" in report or any(report[kind]["wrong"] for kind in kinds))


def _alone(kinds: list[str], args: argparse.Namespace) -> dict:
    now = args.out and args.out.with_suffix(".now")
    plan = Plan(args.cases, args.draws, args.seed, args.seconds, now)
    return {kind: campaign(fuzzer_of(kind, args.x64), kind, plan) for kind in kinds}


def _titled(report: dict, args: argparse.Namespace, start: float) -> dict:
    versions = {"jax": jax.__version__, "python": platform.python_version()}
    title = versions | {"device": jax.devices()[0].device_kind, "x64_only": args.x64}
    spent = {"processes": args.processes, "seconds": round(time.perf_counter() - start, 1)}
    return title | {"draws_a_structure": args.draws} | report | spent


def _plain(value):
    return value.item() if isinstance(value, np.generic) else str(value)


if __name__ == "__main__":
    sys.exit(main())
