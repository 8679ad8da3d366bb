"""Every semiring of tuples in every way, as many graphs each: which agree with the lists of paths.

    python -m tests.fuzz.answers.all_paths [--graphs 1000] [--processes 1] [--out FILE]

Prints, as JSON, how many graphs each pair was right on; ends with 1 where one was wrong.
"""

import argparse
import concurrent.futures
import itertools
import json
import multiprocessing
import pathlib
import platform
import sys
import time

import jax

from .paths import FUZZER, GRAPHS


def checked(semiring, way, graphs):
    """How many graphs are right, and what failed, of one semiring in one way; formats in turn."""
    formats = itertools.cycle(
        f for f in FUZZER.choices["format"]
        if FUZZER.possible({"semiring": semiring, "way": way, "format": f})
    )  # fmt: skip
    cases = [
        {"seed": seed, "semiring": semiring, "way": way, "format": next(formats)}
        for seed in range(-(-graphs // GRAPHS))
    ]
    wrong = [f"{case}: {message}" for case in cases if (message := FUZZER.failure(case))]
    return (len(cases) - len(wrong)) * GRAPHS, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", type=int, default=1000)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--out", type=pathlib.Path)
    o = parser.parse_args()
    start = time.perf_counter()
    pairs = list(itertools.product(FUZZER.choices["semiring"], FUZZER.choices["way"]))
    pairs.sort(key=lambda pair: pair[1] != "levels")  # the longest first
    report = {"jax": jax.__version__, "python": platform.python_version(), "right": {}, "wrong": []}
    context = multiprocessing.get_context("spawn")
    with concurrent.futures.ProcessPoolExecutor(o.processes, context) as pool:
        asked = {pool.submit(checked, *pair, o.graphs): pair for pair in pairs}
        for done in concurrent.futures.as_completed(asked):
            semiring, way = asked[done]
            right, wrong = done.result()
            report["right"].setdefault(semiring, {})[way] = right
            report["wrong"] += wrong
            report["seconds"] = round(time.perf_counter() - start, 1)
            if o.out:
                o.out.write_text(json.dumps(report, indent=1) + "\n")
    print(json.dumps(report, indent=1))
    return int(bool(report["wrong"]))


if __name__ == "__main__":
    sys.exit(main())
