"""Sharded graphs beside one device: equality, then times; on all devices of this process.

    python -m benchmarks.dev.sharded [--scale 21] [--grid 1000] [--runs 10] [--json OUT]

R-MAT graphs of 44 entries a vertex before joining and square grids, by rows over all devices:
milliseconds inside jit, medians, all ways in turn, after the results were compared; on GPUs also in
one launch on each. Several devices on a CPU: XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import PartitionSpec as P

import jaxspv as jsp
from pallas_kernels.simt.barrier import MeshBarrier
from pallas_kernels.simt.device import resident_ctas
from pallas_kernels.simt.launch import launch

from ..harness import environment

COLUMNS = 128
CALLS: dict[str, Callable[..., Any]] = {
    "bfs": lambda G, **how: jsp.bfs(G, 0, parents=False, **how).levels,
    "bfs with parents": lambda G, **how: jsp.bfs(G, 0, deterministic=True, **how).parents,
    "sssp": lambda G, **how: jsp.sssp(G, 0, parents=False, **how).distances,
    "pagerank": lambda G, **how: jsp.pagerank(G, **how).scores,
    "components": lambda G, **how: jsp.connected_components(G, **how).labels,
    "mxv": lambda G: jsp.mxv(G, jnp.ones(G.shape[0])),
    f"{COLUMNS} columns": lambda G: jsp.mxm(G, jnp.ones((G.shape[0], COLUMNS))),
}
TOGETHER = {"bfs", "bfs with parents", "sssp", "pagerank", "components"}  # have `one_launch`
SUMS = {"pagerank", "mxv", f"{COLUMNS} columns"}  # of floats, in another order on a mesh


def compared(name: str, A: Any, G: Any, runs: int) -> dict[str, Any]:
    """Median milliseconds of one call on the matrix, on its shards and there in one launch a GPU
    where that is to be had; raises where they differ."""
    ways = {"one": (A, {}), "sharded": (G, {"backend": "xla"} if name in TOGETHER else {})}
    if name in TOGETHER and jax.default_backend() == "gpu":
        ways["one_launch"] = G, {"backend": "pallas"}
    runs_of = {
        way: jax.jit(functools.partial(CALLS[name], **how)).lower(M).compile()
        for way, (M, how) in ways.items()
    }
    want = np.asarray(runs_of["one"](A))
    took: dict[str, list[float]] = {way: [] for way in ways}
    for way, (M, _) in ways.items():
        tolerance = 1e-3 if name in SUMS else 0
        np.testing.assert_allclose(np.asarray(runs_of[way](M)), want, tolerance, err_msg=name)
    for _ in range(runs):
        for way, (M, _) in ways.items():
            start = time.perf_counter()
            runs_of[way](M).block_until_ready()
            took[way].append(1e3 * (time.perf_counter() - start))
    return {"call": name} | {f"{way}_ms": statistics.median(times) for way, times in took.items()}


def meeting(mesh: Any, rounds: int) -> float:
    """Seconds of a call whose kernels, one on each GPU of the mesh, do nothing but meet."""

    def kernel(k, m):
        barrier = MeshBarrier(k, m.control, 1)

        def meet(i, ok):
            return i + 1, ok & barrier.meet(i + 1, lambda device: (0,))

        _, ok = k.while_(lambda i, ok: (i < rounds) & (ok == 1), meet, 0, 1)
        k.store(m.ok, 0, ok, mask=(k.cta == 0) & (k.thread == 0))

    def body():
        return launch(
            kernel,
            {},
            {"ok": 1},
            ctas=resident_ctas(),
            threads=1024,
            shared_words=256,
            more_control=MeshBarrier.control_words(mesh.size, 1),
            axes=mesh.axis_names,
            name="meeting",
        )["ok"]

    run = jax.jit(jax.shard_map(body, mesh=mesh, in_specs=(), out_specs=P("d"), check_vma=False))
    assert (np.asarray(run()) == 1).all()
    times = []
    for _ in range(10):
        start = time.perf_counter()
        run().block_until_ready()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


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
    if jax.default_backend() == "gpu" and jax.device_count() > 1:
        alone, many = meeting(mesh, 0), meeting(mesh, 3000)
        print(f"meeting: {1e6 * (many - alone) / 3000:.2f} us, a call {1e3 * alone:.3f} ms")
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
                f"{jax.device_count()} devices {record['sharded_ms']:9.3f} ms   "
                f"in one launch {record.get('one_launch_ms', float('nan')):9.3f} ms",
                flush=True,
            )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"environment": environment(), "records": records}, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
