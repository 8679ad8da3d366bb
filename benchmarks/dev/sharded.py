"""Sharded graphs beside one device: equality, then times; on all devices of this process.

    python -m benchmarks.dev.sharded [--scale 21] [--grid 1000] [--runs 10] [--json OUT]

R-MAT graphs of 44 entries a vertex before joining and square grids, by rows over all devices:
milliseconds inside jit, medians, both ways in turn, after the results were compared. Several
devices on a CPU: XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

from ..harness import environment

COLUMNS = 128
CALLS: dict[str, Callable[[Any], Any]] = {
    "bfs": lambda G: jsp.bfs(G, 0, parents=False).levels,
    "bfs with parents": lambda G: jsp.bfs(G, 0, deterministic=True).parents,
    "sssp": lambda G: jsp.sssp(G, 0, parents=False).distances,
    "pagerank": lambda G: jsp.pagerank(G).scores,
    "components": lambda G: jsp.connected_components(G).labels,
    "mxv": lambda G: jsp.mxv(G, jnp.ones(G.shape[0])),
    f"{COLUMNS} columns": lambda G: jsp.mxm(G, jnp.ones((G.shape[0], COLUMNS))),
}
SUMS = {"pagerank", "mxv", f"{COLUMNS} columns"}  # of floats, in another order on a mesh


def compared(name: str, A: Any, G: Any, runs: int) -> dict[str, Any]:
    """Median milliseconds of one call on the matrix and on its shards; raises where they differ."""
    both = [jax.jit(CALLS[name]).lower(M).compile() for M in (A, G)]
    one, many = (np.asarray(run(M)) for run, M in zip(both, (A, G), strict=True))
    np.testing.assert_allclose(many, one, rtol=1e-3 if name in SUMS else 0, err_msg=name)
    took: list[list[float]] = [[], []]
    for _ in range(runs):
        for times, run, M in zip(took, both, (A, G), strict=True):
            start = time.perf_counter()
            run(M).block_until_ready()
            times.append(1e3 * (time.perf_counter() - start))
    one_ms, many_ms = map(statistics.median, took)
    return {"call": name, "one_ms": one_ms, "sharded_ms": many_ms, "ratio": many_ms / one_ms}


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dev.sharded", description=__doc__)
    parser.add_argument("--scale", type=int, default=21)
    parser.add_argument("--grid", type=int, default=1000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--json", metavar="OUT", help="write every record")
    args = parser.parse_args(argv)
    auto = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(auto,))
    records = []
    for graph, A in (
        (f"rmat{args.scale}", jsp.rmat(jax.random.key(0), args.scale, 22)),
        (f"grid{args.grid}", jsp.grid2d(None, args.grid)),
    ):
        start = time.perf_counter()
        G = jax.block_until_ready(jsp.shard(A, mesh, symmetric=True))
        shard_s = time.perf_counter() - start
        entries = np.asarray(G.indptr)[..., -1]
        kept = {"shard_s": shard_s, "imbalance": float(entries.max() / entries.mean())}
        for name in CALLS:
            record = {"graph": graph, "devices": jax.device_count()} | kept
            record |= compared(name, A, G, args.runs)
            records.append(record)
            print(
                f"{graph:10} {name:18} one {record['one_ms']:9.3f} ms   "
                f"{jax.device_count()} devices {record['sharded_ms']:9.3f} ms",
                flush=True,
            )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"environment": environment(), "records": records}, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
