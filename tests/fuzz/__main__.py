"""`python -m tests.fuzz [KIND ...] --cases N --seed S --processes P --seconds T --out FILE`."""

from __future__ import annotations

import argparse
import ast
import importlib
import importlib.util
import json
import pathlib
import platform
import subprocess
import sys
import time

import jax
import numpy as np

import jaxspv

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
    "paths": "answers.paths",
    "automata": "answers.automata",
}


def fuzzer_of(kind: str, x64: bool = False) -> Fuzzer:
    """The fuzzer of a kind; x64: only its cases under x64."""
    fuzzer = importlib.import_module(f"tests.fuzz.{KINDS[kind]}").FUZZER
    if not x64 or "x64" not in fuzzer.choices:
        return fuzzer
    given = fuzzer.choices | {"x64": (True,)}
    return Fuzzer(given, fuzzer.run, fuzzer.draws, fuzzer.programs, fuzzer.possible)


def installed() -> list[str]:
    """All kinds, but for the one of a library that is missing."""
    return [k for k in KINDS if k != "graphblas" or importlib.util.find_spec("graphblas")]


def main() -> int:
    """The command: 1 where something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("kinds", nargs="*", default=[], help=f"of {list(KINDS)}, or all (as none)")
    parser.add_argument("--cases", type=int, default=2000, help="of each kind; a file is one")
    parser.add_argument("--draws", type=int, default=125, help="of data for each structure")
    parser.add_argument("--seed", type=int, default=0, help="of the first structure")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of all kinds")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--x64", action="store_true", help="only cases under jax_enable_x64")
    parser.add_argument("--case", help="one case, as a reproducer prints it")
    parser.add_argument("--commit", help="to write, where there is no repository to ask")
    parser.add_argument("--out", type=pathlib.Path, help="JSON: how many ran, what failed")
    args = parser.parse_args()
    kinds = installed() if args.kinds in ([], ["all"]) else args.kinds
    if unknown := set(kinds) - KINDS.keys():
        parser.error(f"unknown kinds {sorted(unknown)}; known are {list(KINDS)}")
    if args.case:
        case: Case = ast.literal_eval(args.case)
        listed = {name: tuple(v) if isinstance(v, list) else v for name, v in case.items()}
        fuzzer_of(kinds[0]).run(listed)
        return 0
    start = time.perf_counter()
    report = _alone(kinds, args) if args.processes < 2 else spread(kinds, args)
    text = _written(report, args, start)
    print(text)
    found = [kind for kind in kinds if kind not in report or report[kind]["wrong"]]
    return int("crashed" in report or bool(found))


def _alone(kinds: list[str], args: argparse.Namespace) -> dict:
    """Each kind in its share of the time that is left; written after each: a crash keeps those."""
    now, start, report = args.out and args.out.with_suffix(".now"), time.perf_counter(), {}
    for left, kind in zip(range(len(kinds), 0, -1), kinds, strict=True):
        seconds = (args.seconds - (time.perf_counter() - start)) / left
        plan = Plan(args.cases, args.draws, args.seed, seconds, now)
        report[kind] = campaign(fuzzer_of(kind, args.x64), kind, plan)
        _written(report, args, start)
    return report


def _written(report: dict, args: argparse.Namespace, start: float) -> str:
    text = json.dumps(_titled(report, args, start), indent=1, default=_plain)
    if args.out:
        args.out.write_text(text + "\n")
    return text


def _commit() -> str | None:
    asked = ["git", "-C", str(pathlib.Path(__file__).parent), "describe", "--always", "--dirty"]
    try:
        return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or None
    except OSError:
        return None


def _titled(report: dict, args: argparse.Namespace, start: float) -> dict:
    versions = {"jaxspv": jaxspv.__version__, "commit": args.commit or _commit()}
    versions |= {"jax": jax.__version__, "python": platform.python_version()}
    title = versions | {"device": jax.devices()[0].device_kind, "x64_only": args.x64}
    spent = {"processes": args.processes, "seconds": round(time.perf_counter() - start, 1)}
    return title | {"draws_a_structure": args.draws} | report | spent


def _plain(value):
    return value.item() if isinstance(value, np.generic) else str(value)


if __name__ == "__main__":
    sys.exit(main())
