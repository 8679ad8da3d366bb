"""A process that calls for long: python -m benchmarks.dev.long_life [--calls 10000] [--shapes 300]

or, where every call meets a new shape: python -m benchmarks.dev.long_life --new mxv --calls 3000
(`jax`: a plain `jax.jit` of a product, to compare with). JAX keeps 1.5 MB a program on a CPU until
its cache drops it; jaxspv keeps the last 512 programs; the last row is after `jax.clear_caches()`.

Eager calls over many shapes, the same ones again and again in random order: one line for every
tenth of them, with the time of a call that meets a known shape, the memory and the memory maps of
the process. What grows without end, or slows down, shows. `--output FILE` writes it as JSON.
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import statistics
import sys
import time

import jax
import numpy as np
import scipy.sparse

import jaxspv as jsp

TENTHS = 10


def operands(shapes: int, rng: np.random.Generator) -> list[tuple[jsp.CSR, jax.Array]]:
    """Matrices of as many shapes, and a vector for each."""
    made = []
    for k in range(shapes):
        n = 8 + k
        matrix = scipy.sparse.random_array((n, n), density=0.1, rng=rng, dtype=np.float32)
        made.append((jsp.from_scipy(matrix.tocsr()), jax.numpy.ones(n)))
    return made


CALLS = (
    lambda A, x: A @ x,
    lambda A, x: jsp.ewise_add(A, A).data,
    lambda A, x: jsp.reduce(A, axis=1).data,
)


def status() -> dict[str, int]:
    """Resident megabytes and memory maps of this process."""
    lines = pathlib.Path("/proc/self/status").read_text().split("\n")
    resident = next(line for line in lines if line.startswith("VmRSS"))
    maps = pathlib.Path("/proc/self/maps").read_text().count("\n")
    return {"megabytes": int(resident.split()[1]) // 1024, "maps": maps}


def lived(calls: int, shapes: int, seed: int = 0) -> list[dict[str, float]]:
    """One row for every tenth of the calls."""
    rng = np.random.default_rng(seed)
    made = operands(shapes, rng)
    order = rng.integers(0, shapes * len(CALLS), calls)
    rows, times = [], []
    for number, which in enumerate(order, 1):
        A, x = made[which // len(CALLS)]
        start = time.perf_counter()
        jax.block_until_ready(CALLS[which % len(CALLS)](A, x))
        times.append(time.perf_counter() - start)
        if number % max(calls // TENTHS, 1) == 0:
            ms = {"median_ms": 1e3 * statistics.median(times), "total_s": sum(times)}
            rows.append({"calls": number, **{k: round(v, 4) for k, v in ms.items()}, **status()})
            print(json.dumps(rows[-1]), flush=True)
            times = []
    return rows


@jax.jit
def plain(x: jax.Array, row: jax.Array, col: jax.Array) -> jax.Array:
    """The product of a matrix of ones, without jaxspv."""
    return jax.numpy.zeros_like(x).at[row].add(x[col])


def met(kind: str, n: int) -> None:
    """One call on a graph of n vertices with three edges each."""
    row = np.repeat(np.arange(n, dtype=np.int32), 3)
    col = (row + np.tile(np.arange(1, 4, dtype=np.int32), n)) % n
    if kind == "jax":
        jax.block_until_ready(plain(np.ones(n, np.float32), row, col))
        return
    S = scipy.sparse.csr_array((np.ones(3 * n, np.float32), (row, col)), shape=(n, n))
    A = jsp.from_scipy(S)
    result = jsp.bfs(A, 0).levels if kind == "bfs" else jsp.mxv(A, np.ones(n, np.float32))
    jax.block_until_ready(result)


def new_shapes(kind: str, calls: int) -> list[dict[str, float]]:
    """One row for every tenth of the calls, each on a shape of its own, and a last one."""
    rows, start = [], time.perf_counter()
    for number in range(1, calls + 1):
        met(kind, 100 + number)
        if number % max(calls // TENTHS, 1) == 0:
            rows.append({"calls": number, "total_s": time.perf_counter() - start, **status()})
            print(json.dumps(rows[-1]), flush=True)
    jax.clear_caches()
    gc.collect()
    return [*rows, {"calls": calls, "cleared": True, **status()}]


def main() -> None:
    """Prints the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--shapes", type=int, default=300)
    parser.add_argument("--new", choices=("mxv", "bfs", "jax"), help="new shapes, of this call")
    parser.add_argument("--output", type=pathlib.Path)
    args = parser.parse_args()
    rows = new_shapes(args.new, args.calls) if args.new else lived(args.calls, args.shapes)
    report = {"new": args.new} if args.new else {}
    report |= {"calls": args.calls, "shapes": args.shapes, "jax": jax.__version__, "rows": rows}
    print(json.dumps(report, indent=1))
    if args.output:
        args.output.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    sys.exit(main())
