"""Where the time of an SpMSpV inside a jitted program goes: `python -m benchmarks.dev_spmspv`.

Chains of K products, each after the one before, of two lengths: the slope is the time of one more
product, the intercept what a call costs whatever it holds. An empty chain has the same operands and
no product. cuSPARSE's chain is timed alike. A profile lists what one chain puts on the stream.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import json
import pathlib
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

import jaxspv as jsp

from . import baselines, tile_suite
from .bench_tiles import DENSITIES
from .harness import _wake, jitted, timed
from .timeline import timeline

LENGTHS = (8, 40)


def chain(product, length: int, way: str):
    """(A, x) -> the last of `length` products: "line" as any program, "graph" with command
    buffers, "loop" in a `fori_loop` that stays on the device."""
    inner = jax.jit(product)

    def again(A, x, y):
        return inner(A, dataclasses.replace(x, count=jnp.minimum(x.count, y.count + x.nse)))

    def program(A, x):
        y = inner(A, x)
        if way == "loop":
            return lax.fori_loop(1, length, lambda _, y: again(A, x, y), y)
        for _ in range(length - 1):
            y = again(A, x, y)
        return y

    return (jax.jit if way == "line" else jitted)(program)


def chains(lengths) -> dict[tuple[str, int], Any]:
    """(name, length) -> program of (A, x)."""
    made = {}
    for length in lengths:
        for way in ("line", "graph", "loop"):
            product = functools.partial(jsp.spmspv, method="auto")
            made[f"auto, {way}", length] = chain(product, length, way)
        made["empty", length] = chain(lambda A, x: x, length, "line")
    return made


def calls(made, A, density: float, lengths) -> dict[tuple[str, int], Any]:
    """(name, length) -> call, cuSPARSE's too."""
    n, columns = A.shape[0], A.T
    places = np.sort(np.random.default_rng(1).choice(n, max(1, round(density * n)), replace=False))
    room = max(1, round(DENSITIES[0] * n))
    x = jsp.vector_from_entries(
        places.astype(np.int32), np.ones(len(places), np.float32), n, nse=room
    )
    found = {key: functools.partial(f, columns, x) for key, f in made.items()}
    if baselines.has_cupy():
        for length in lengths:
            found["cuSPARSE", length] = baselines.cupy_spmv_device(
                A.indptr, A.indices, A.data, x.todense(), length
            )
    return found


def main() -> None:
    """Prints a line a program, and the timeline of the shortest chains."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--graphs", nargs="+", default=["fem-388-6"])
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--lengths", type=int, nargs=2, default=LENGTHS)
    options = parser.parse_args()
    records = []
    for name in options.graphs:
        A = jax.block_until_ready(tile_suite.NAMES[name].build())
        programs = chains(options.lengths)
        for density in DENSITIES:
            made = calls(programs, A, density, options.lengths)
            for call in made.values():
                jax.block_until_ready(call())
            _wake(list(made.values()))
            times = {key: [] for key in made}
            for _ in range(options.runs):
                for key, call in made.items():
                    times[key].append(1e6 * timed(call)[1])
            short, long = options.lengths
            for program in {key[0]: None for key in made}:
                a, b = (float(np.median(times[program, k])) for k in (short, long))
                slope = (b - a) / (long - short)
                record = {
                    "graph": name,
                    "density": density,
                    "program": program,
                    f"us_{short}": a,
                    f"us_{long}": b,
                    "each": slope,
                    "fixed": a - slope * short,
                }
                print(json.dumps(record), flush=True)
                records.append(record)
            if jax.default_backend() == "gpu":
                for program in ("auto, line", "auto, graph", "auto, loop", "cuSPARSE"):
                    events = timeline(made[program, short])
                    print(program, len(events), "events", flush=True)
                    for event, at, took in events[:14] + events[-4:]:
                        print(f"  {at:9.1f} {took:8.1f} {event[:70]}", flush=True)
    if options.json:
        options.json.write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
