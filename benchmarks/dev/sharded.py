"""Sharded graphs beside one device: equality, then times, memory and what the model predicts.

    python -m benchmarks.dev.sharded [rmat21-22 grid1000 ...] [--calls bfs,pagerank] [--runs 10]
        [--kernels] [--soak 20] [--json OUT]

GRAPH: rmat<scale>-<edges a vertex> (drawn on the devices), grid<side>, delaunay<scale>, by rows
over all devices. For each call: milliseconds inside jit, medians, all ways in
turn, after the results were compared: on one device (prepared), on all by XLA and, on GPUs, in one
launch on each. `next` is what one more call takes in a loop of the same program. bytes: of
arguments, results and scratch on one device, as compiled; `model`: milliseconds by `mesh_costs`.
--soak: so many repeats of each search from 64 sources, every result compared. Several devices on a
CPU: XLA_FLAGS=--xla_force_host_platform_device_count=4.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.sharding import PartitionSpec as P

import jaxspv as jsp
from jaxspv.sharding.graph import ShardedGraph
from pallas_kernels.simt.device import resident_ctas
from pallas_kernels.simt.launch import launch
from pallas_kernels.simt.mesh import MeshBarrier

from ..harness import environment
from ..suite import get
from ..traversal import mesh_costs

COLUMNS = 128
SOURCES = 64
LOOP = 8  # calls in a loop of one program
BOUNDS = {  # asked for: time on two GPUs over that on one
    ("rmat21-22", "bfs"): 0.75,
    ("rmat24-22", "bfs"): 0.62,
    ("delaunay21", "bfs"): 1.0,
    ("grid1000", "bfs"): 1.1,
    ("rmat21-22", "pagerank"): 0.58,
    ("rmat24-22", "pagerank"): 0.58,
    ("rmat21-22", "sssp"): 0.75,
    ("rmat20-22", "columns"): 0.6,
    ("rmat20-22", "kept"): 0.6,
    ("rmat20-22", "dealt"): 0.6,
}


class Call(NamedTuple):
    """A public function.

    Attributes:
        run: `run(M, source, **how)` -> the array that is compared, and a count of rounds or None.
        purpose: what one device is prepared for, or None.
        rtol: of sums, which are added in another order on a mesh.
    """

    run: Callable[..., Any]
    purpose: str | None = None
    rtol: float = 0.0


def _columns(M, source, multiply=jsp.mxm, **how):
    X = jnp.ones((M.shape[0], COLUMNS)) + jnp.arange(COLUMNS) * source.astype(jnp.float32)
    return multiply(M, X, **how), None


def _kept(M, source, **how):
    """The same; on a mesh each device has the rows of the result of its vertices."""
    multiply = jsp.sharding.row_sharded_mxm if isinstance(M, ShardedGraph) else jsp.mxm
    return _columns(M, source, multiply, **how)


def _distributed(M, source, **how):
    """The same; on a mesh each device has the rows of X and of the result of its vertices."""
    if not isinstance(M, ShardedGraph):
        return _columns(M, source, **how)
    X = jnp.ones((*M.part.grid, M.part.places, COLUMNS))
    X = X + jnp.arange(COLUMNS) * source.astype(jnp.float32)
    return jsp.mxm(M, lax.with_sharding_constraint(X, M.part.sharding), **how), None


CALLS = {
    "bfs": Call(lambda M, s, **how: jsp.bfs(M, s, parents=False, **how)[::2], "bfs"),
    "parents": Call(lambda M, s, **how: jsp.bfs(M, s, deterministic=True, **how)[1:3], "bfs"),
    "sssp": Call(lambda M, s, **how: jsp.sssp(M, s, parents=False, **how)[::2][:2], "sssp"),
    "pagerank": Call(lambda M, s, **how: jsp.pagerank(M, **how)[:2], "pagerank", 1e-3),
    "components": Call(lambda M, s, **how: jsp.connected_components(M, **how)[:2]),
    "mxv": Call(lambda M, s, **how: (jsp.mxv(M, jnp.ones(M.shape[0]), **how), None), None, 1e-4),
    "columns": Call(_columns, None, 1e-4),
    "kept": Call(_kept, None, 1e-4),
    "dealt": Call(_distributed, None, 1e-4),
}


def _length(x, i, j, thunk):
    """1 to 64, the same in both directions."""
    low, high = jnp.minimum(i, j), jnp.maximum(i, j)
    return ((low * 7919 + high * 104729) % 64 + 1).astype(x.dtype)


def graphs_of(name: str, mesh: Any) -> tuple[Any, Any]:
    """The graph on one device and on all, with lengths."""
    weighted = jax.jit(lambda M: jsp.apply(M, jsp.IndexUnaryOp(_length, "length")))
    return tuple(jax.block_until_ready(weighted(M)) for M in _drawn(name, mesh))


def _drawn(name: str, mesh: Any) -> tuple[Any, Any]:
    if found := re.fullmatch(r"rmat(\d+)-(\d+)", name):
        drawn = jax.random.key(0), int(found[1]), int(found[2])
        return jsp.generators.rmat(*drawn), jsp.sharding.shard_rmat(*drawn, mesh=mesh)
    if found := re.fullmatch(r"grid(\d+)", name):
        A = jsp.generators.grid2d(jax.random.key(0), int(found[1]))
    else:
        A = jsp.from_scipy(get(name).matrix())
    return A, jsp.shard(A, mesh, symmetric=True)


def looped(call: Call, how: dict[str, Any]) -> Callable[..., Any]:
    """`run(M, sources, k)`: k calls in one program, a number that depends on all results."""

    def run(M, sources, k):
        def one(i, total):
            found, _ = call.run(M, sources[i], **how)
            return total + jnp.sum(jnp.where(jnp.isfinite(found), found, 0).astype(jnp.float32))

        return lax.fori_loop(0, k, one, jnp.float32(0))

    return run


def took(run: Callable[..., Any], *operands: Any) -> float:
    """Milliseconds of one call."""
    start = time.perf_counter()
    jax.block_until_ready(run(*operands))
    return 1e3 * (time.perf_counter() - start)


def compared(
    name: str, call: Call, A: Any, G: Any, source: int, runs: int, loop: bool, xla: bool = True
) -> dict[str, Any]:
    """The times of one call on one device and on all; raises where results differ."""
    M = jsp.prepare(A, for_=call.purpose, symmetric=True) if call.purpose else A
    here, everywhere = jnp.int32(source), jax.device_put(jnp.int32(source), G.part.replicated)
    ways: dict[str, Any] = {"one": (M, here, {})}
    if xla:
        ways["xla"] = G, everywhere, {"backend": "xla"}
    if jax.default_backend() == "gpu" and name != "parents":
        ways["kernels"] = G, everywhere, {"backend": "pallas"}
    record: dict[str, Any] = {"call": name}
    programs, loops = {}, {}
    want = None
    for way, (graph, s, how) in ways.items():
        program = jax.jit(lambda M, s, how=how: call.run(M, s, **how)).lower(graph, s).compile()
        programs[way] = program, graph, s
        memory = program.memory_analysis()
        sizes = [f"{part}_size_in_bytes" for part in ("argument", "output", "temp")]
        record[f"{way}_bytes"] = sum(getattr(memory, size, 0) for size in sizes)
        found, rounds = program(graph, s)
        record[f"{way}_rounds"] = None if rounds is None else int(rounds)
        found = np.asarray(G.gather(found) if found.ndim > 2 else found)
        want = found if want is None else want
        np.testing.assert_allclose(found, want, call.rtol, err_msg=f"{name}, {way}")
        if loop:
            k = jnp.int32(1) if way == "one" else jax.device_put(np.int32(1), G.part.replicated)
            sources = s + jnp.zeros(LOOP, jnp.int32)
            program = jax.jit(looped(call, how)).lower(graph, sources, k).compile()
            loops[way] = program, graph, sources, k
            program(graph, sources, k)
    times: dict[str, list[float]] = {way: [] for way in ways}
    nexts: dict[str, list[float]] = {way: [] for way in loops}
    for _ in range(runs):
        for way, operands in programs.items():
            times[way].append(took(*operands))
        for way, (program, graph, sources, k) in loops.items():
            short, long = (took(program, graph, sources, j) for j in (k, k * LOOP))
            nexts[way].append((long - short) / (LOOP - 1))
    record |= {f"{way}_ms": statistics.median(ms) for way, ms in times.items()}
    return record | {f"{way}_next_ms": statistics.median(ms) for way, ms in nexts.items()}


def ordering_of(graph: str, record: dict[str, Any]) -> str:
    """What is printed of a call: ms (bytes over those of one device), the model's ms, bounds."""
    said = [f"{graph:11}{record['call']:11}one {record['one_ms']:9.3f} ms"]
    for way in ("one", "xla", "kernels"):
        if f"{way}_ms" not in record:
            continue
        if way != "one":
            over = record[f"{way}_bytes"] / max(record["one_bytes"], 1)
            said.append(
                f"{way} {record[f'{way}_ms']:9.3f} ({record[f'{way}_ms'] / record['one_ms']:.2f}x, "
                f"memory {over:.2f}x)"
            )
            if (model := record.get(f"{way}_model_ms")) is not None:
                said.append(f"model {model:.3f} ({model / record[f'{way}_ms']:.2f})")
        if f"{way}_next_ms" in record:
            said.append(f"next {record[f'{way}_next_ms']:.3f}")
    bound = BOUNDS.get((graph, record["call"]))
    said.append(f"rounds {record['one_rounds']}")
    return "  ".join(said) + (f"  asked {bound}x" if bound else "")


def soak(name: str, A: Any, G: Any, repeats: int) -> str:
    """Each search from 64 sources, so many times, in the form that runs unasked."""
    sources = np.random.default_rng(0).integers(0, G.n, SOURCES)
    said = []
    for what in ("bfs", "sssp"):
        run = CALLS[what].run
        one, many = (jax.jit(lambda M, s, run=run: run(M, s)[0]) for _ in range(2))
        wrong = 0
        for source in sources:
            want = np.asarray(one(A, jnp.int32(source)))
            valid = jax.device_put(jnp.int32(source), G.part.replicated)
            expected = jax.device_put(want, G.part.replicated)
            for _ in range(repeats):
                wrong += not bool(jnp.array_equal(many(G, valid), expected))
        said.append(f"{what} {SOURCES} x {repeats}: {wrong} wrong")
    return f"{name:11}" + ", ".join(said)


def meeting(mesh: Any, rounds: int) -> float:
    """Seconds of a call whose kernels, one on each GPU of the mesh, do nothing but meet."""

    def kernel(k, m):
        barrier = MeshBarrier(k, m.control, 1)

        def device_barrier(i, ok):
            return i + 1, ok & barrier.device_barrier(i + 1, lambda device: (0,))

        _, ok = k.while_(lambda i, ok: (i < rounds) & (ok == 1), device_barrier, 0, 1)
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
    return statistics.median(took(run) for _ in range(10)) / 1e3


def main(argv: Sequence[str] | None = None) -> int:
    """The graphs one after the other, over all devices of this process."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.dev.sharded", description=__doc__)
    parser.add_argument("graphs", nargs="*", default=["rmat21-22", "grid1000"], metavar="GRAPH")
    parser.add_argument("--calls", default="bfs,sssp,pagerank,components,mxv,columns,kept,dealt")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--loop", action="store_true", help="time `next` too")
    parser.add_argument("--kernels", action="store_true", help="leave out the form by XLA")
    parser.add_argument("--soak", type=int, default=0, metavar="REPEATS")
    parser.add_argument("--json", metavar="OUT", help="write every record")
    args = parser.parse_args(argv)
    auto = jax.sharding.AxisType.Auto
    mesh = jax.make_mesh((jax.device_count(),), ("d",), axis_types=(auto,))
    records = []
    if jax.default_backend() == "gpu" and mesh.size > 1:
        alone, many = meeting(mesh, 0), meeting(mesh, 3000)
        print(f"meeting: {1e6 * (many - alone) / 3000:.2f} us, a call {1e3 * alone:.3f} ms")
    for graph in args.graphs:
        start = time.perf_counter()
        A, G = graphs_of(graph, mesh)
        entries = np.asarray(G.indptr)[..., -1].astype(np.int64)
        source = int(np.argmax(np.diff(np.asarray(A.indptr)))) if graph.startswith("rmat") else 0
        kept = {"graph": graph, "devices": mesh.size, "made_s": time.perf_counter() - start}
        kept |= {"entries": int(entries.sum()), "imbalance": entries.max() / entries.mean()}
        print(f"{graph}: {entries.sum():,} entries, made in {kept['made_s']:.1f} s", flush=True)
        for name in filter(None, args.calls.split(",")):
            looped_too = args.loop and name in ("bfs", "sssp")
            how = source, args.runs, looped_too, not args.kernels
            record = kept | compared(name, CALLS[name], A, G, *how)
            size = G.n, int(entries.sum()), record["one_rounds"]
            if jax.default_backend() == "gpu":
                record |= mesh_costs.predicted(name, *size, mesh.size)
            records.append(record)
            print(ordering_of(graph, record), flush=True)
        if args.soak:
            print(soak(graph, A, G, args.soak), flush=True)
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"environment": environment(), "records": records}, file, indent=1)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
