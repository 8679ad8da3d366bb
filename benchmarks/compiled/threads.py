"""The C++ kernels on several threads over one: `python -m benchmarks.compiled.threads`.

    python -m benchmarks.compiled.threads [--graphs rmat17 grid1600] [--threads 1 4 16] [--runs 5]

For each operation inside jit the least wall time on each number of threads, in turns, in one
process, and the speed over one thread. XLA's pool has a thread for each core.
"""

from __future__ import annotations

import argparse
import math
import time

import jax

import jaxspv as jsp

from .over_scipy import graph, operations

OPERATIONS = ("BFS", "SSSP", "SpMV", "SpMM", "components", "triangles", "PageRank")


def main() -> None:
    """Prints a line for each graph and operation."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=["rmat17", "grid1600"])
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2, 4, 8, 16])
    parser.add_argument("--only", nargs="+", default=OPERATIONS)
    parser.add_argument("--runs", type=int, default=5)
    args = parser.parse_args()
    for name in args.graphs:
        A = graph(name)
        print(f"\n{name}: {A.shape[0]:,} vertices, {A.nnz:,} entries", flush=True)
        for operation, question in operations(A, triangles=True).items():
            if operation not in args.only:
                continue
            run, operand = jax.jit(question.ours), question.operand
            jax.block_until_ready(run(operand))
            best = dict.fromkeys(args.threads, math.inf)
            for _ in range(args.runs):
                for threads in args.threads:
                    jsp.config.set_num_threads(threads)
                    start = time.perf_counter()
                    jax.block_until_ready(run(operand))
                    best[threads] = min(best[threads], time.perf_counter() - start)
            one = best[args.threads[0]]
            texts = (f"{n}: {1e3 * t:.2f} ms ({one / t:.2f})" for n, t in best.items())
            print(f"  {operation:10} {', '.join(texts)}", flush=True)


if __name__ == "__main__":
    main()
