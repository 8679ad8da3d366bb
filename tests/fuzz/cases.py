"""What a fuzzer is: draws cases, runs them, shrinks those that fail, prints a reproducer."""

from __future__ import annotations

import dataclasses
import random
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

Case = dict[str, Any]  # plain values: a reproducer prints it


@dataclasses.dataclass(frozen=True)
class Fuzzer:
    """One kind of program.

    Attributes:
        choices: the values of each field, the simplest first.
        run: raises where the result of a case is wrong.
    """

    choices: dict[str, tuple[Any, ...]]
    run: Callable[[Case], None]

    def draw(self, seed: int) -> Case:
        """The case of a seed."""
        rng = random.Random(seed)
        return {"seed": seed} | {name: rng.choice(v) for name, v in self.choices.items()}

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
                yield case | {name: value}

    def shrunk(self, case: Case, tries: int = 60) -> Case:
        """A case that fails too and of which no field can be made simpler, within `tries` runs."""
        for _ in range(tries):
            smaller = next((c for c in self.simpler(case) if self.failure(c)), None)
            if smaller is None:
                return case
            case = smaller
        return case


def campaign(fuzzer: Fuzzer, name: str, count: int, seed: int, seconds: float) -> dict[str, Any]:
    """Runs the cases of `count` seeds from `seed` on, for `seconds` at most: what a file says."""
    start, found, done = time.perf_counter(), [], 0
    for number in range(seed, seed + count):
        if time.perf_counter() - start > seconds:
            break
        case = fuzzer.draw(number)
        done += 1
        if fuzzer.failure(case) is not None:
            case = fuzzer.shrunk(case)
            message = fuzzer.failure(case)
            print(f"python -m tests.fuzz {name} --case '{case}'\n  {message}", flush=True)
            found.append({"case": case, "message": message})
    spent = round(time.perf_counter() - start, 1)
    return {"ran": done, "first_seed": seed, "seconds": spent, "wrong": found}
