"""What a fuzzer is: draws cases, runs them, shrinks those that fail, prints a reproducer.

A case is a structure (what is compiled) and a seed (of the data): many seeds run on one structure,
so that compiling, which takes a thousand times longer than running, is paid for seldom.
"""

from __future__ import annotations

import collections
import dataclasses
import itertools
import json
import pathlib
import random
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import jax

Case = dict[str, Any]  # plain values: a reproducer prints it
CLEARED = 100  # structures after which compiled programs are forgotten: memory stays bounded


@dataclasses.dataclass(frozen=True)
class Fuzzer:
    """One kind of program.

    Attributes:
        choices: the values of each field of a structure, the simplest first.
        run: raises where the result of a case is wrong; may return the oracles that it asked.
        draws: of data for a structure, at most; None: any number.
        programs: that one run stands for.
        possible: whether a structure makes sense; another is drawn where it does not.
    """

    choices: dict[str, tuple[Any, ...]]
    run: Callable[[Case], Any]
    draws: Callable[[Case], int | None] = lambda case: None
    programs: int = 1
    possible: Callable[[Case], bool] = lambda case: True

    def draw(self, seed: int) -> Case:
        """The case of a seed: its structure, with the seed for its data."""
        rng = random.Random(seed)
        while True:
            case = {"seed": seed} | {name: rng.choice(v) for name, v in self.choices.items()}
            if self.possible(case):
                return case

    def failure(self, case: Case) -> str | None:
        """The last lines of what the case raises, or None."""
        try:
            self.run(case)
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            text = " ".join(str(error).split())[:300]
            return f"{type(error).__name__}: {text} ({where.filename}:{where.lineno})"
        return None

    def simpler(self, case: Case) -> Iterator[Case]:
        """Cases in which one field is simpler."""
        for name, values in self.choices.items():
            for value in values[: values.index(case[name])]:
                smaller = case | {name: value}
                if self.possible(smaller):
                    yield smaller

    def shrunk(self, case: Case, tries: int = 60, seconds: float = 20) -> Case:
        """A case that fails too and of which no field can be made simpler, within `tries` steps."""
        start = time.perf_counter()
        for _ in range(tries):
            if time.perf_counter() - start > seconds:
                break
            smaller = next((c for c in self.simpler(case) if self.failure(c)), None)
            if smaller is None:
                return case
            case = smaller
        return case


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a campaign runs: `count` programs, `draws` of data for each structure."""

    count: int
    draws: int
    seed: int
    seconds: float
    now: pathlib.Path | None = None  # where the structure at hand is written: a crash names it


def campaign(fuzzer: Fuzzer, name: str, plan: Plan) -> dict[str, Any]:
    """Runs cases of the seeds from `plan.seed` on: what a file says."""
    start, found, runs, structures = time.perf_counter(), [], 0, 0
    asked: collections.Counter[str] = collections.Counter()
    for number in itertools.count(plan.seed):
        if runs * fuzzer.programs >= plan.count or time.perf_counter() - start > plan.seconds:
            break
        structure = fuzzer.draw(number)
        structures += 1
        if plan.now:
            plan.now.write_text(json.dumps({"kind": name, "case": structure}, default=str))
        if structures % CLEARED == 0:
            jax.clear_caches()
        most = fuzzer.draws(structure)
        for k in range(plan.draws if most is None else min(plan.draws, most)):
            case = structure | {"seed": number * 100_003 + k}
            runs += 1
            try:
                asked.update(fuzzer.run(case) or ())
            except Exception:
                found.append(_reproduced(fuzzer, name, case))
                break  # one of a structure
            spent = time.perf_counter() - start
            if spent > plan.seconds or runs * fuzzer.programs >= plan.count:
                break
    return {
        "programs": runs * fuzzer.programs,
        "structures": structures,
        "oracles": dict(asked),
        "first_seed": plan.seed,
        "seconds": round(time.perf_counter() - start, 1),
        "wrong": found,
    }


def _reproduced(fuzzer: Fuzzer, name: str, case: Case) -> dict[str, Any]:
    message = fuzzer.failure(case)
    if message is not None:  # else it depends on what ran before
        case = fuzzer.shrunk(case)
        message = fuzzer.failure(case)
    print(f"python -m tests.fuzz {name} --case '{case}'\n  {message}", flush=True)
    return {"case": case, "message": message}
