"""`prepare` where the graph is: seconds cold and warm, memory of host and device, the searches.

    python -m benchmarks.dev.prepare_gpu [--scales 21 24] [--for bfs sssp pagerank mxv] [--declared]
    python -m benchmarks.dev.prepare_gpu --million

R-MAT graphs are made in a process of their own and read by one process a purpose. Cold: the first
`prepare` of that process, all compilation included; warm: the median of three more. Host: how far
the resident memory rose. Device: the peak of the allocator over the CSR's bytes, before the first
search. Results are compared with those of the graph that nobody prepared.

`--million`: graphs of a million entries, padded to one shape, in a process that has prepared a
larger one: `prepare` and the first call, of a bucket never seen and of the next two graphs in it.
"""

from __future__ import annotations

import argparse
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile
import time

import jax
import jax.numpy as jnp
import numpy as np

import jaxspv as jsp

DAMPING, TOL = 0.85, 1e-6  # of PageRank
PURPOSES = ("bfs", "sssp", "pagerank", "mxv")
COMPILED = "/jax/core/compile/backend_compile_duration"


def resident() -> float:
    """GB of this process, now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize() / 2**30


def peak() -> float:
    """GB that the device held at most, 0 where that is not told."""
    stats = jax.devices()[0].memory_stats() or {}
    return stats.get("peak_bytes_in_use", 0) / 2**30


def seconds(run, times: int = 1) -> tuple[float, object]:
    """The median of several runs, and what the last one returned."""
    taken, out = [], None
    for _ in range(times):
        del out
        start = time.perf_counter()
        out = jax.block_until_ready(run())
        taken.append(time.perf_counter() - start)
    return statistics.median(taken), out


def searches(purpose: str, source: int):
    """(search of a Graph, what of it is compared, how)."""
    return {
        "bfs": (lambda G: jsp.bfs(G, source), lambda r: r.levels, jnp.array_equal),
        "sssp": (lambda G: jsp.sssp(G, source), lambda r: r.distances, jnp.array_equal),
        "pagerank": (lambda G: jsp.pagerank(G, DAMPING, TOL), lambda r: r.scores, both_converged),
        "mxv": (lambda G: jsp.mxv(G, jnp.ones(G.n)), lambda y: y, near),
    }[purpose]


def both_converged(x, y):
    """Each is within `tol d / (1 - d)` of the limit, in L1: they may stop a step apart."""
    return jnp.sum(jnp.abs(x - y)) <= 2 * TOL * DAMPING / (1 - DAMPING)


def near(x, y):
    """Up to the rounding of float32."""
    return jnp.allclose(x, y, rtol=1e-4, atol=1e-9)


def make(folder: pathlib.Path, scales: list[int]) -> None:
    """Writes the arrays of a graph a scale."""
    for scale in scales:
        A = jsp.generators.rmat(jax.random.key(0), scale)
        for name in ("data", "indices", "indptr"):
            np.save(folder / f"{scale}_{name}.npy", np.asarray(getattr(A, name)))
        del A


def read(folder: pathlib.Path, scale: int) -> jsp.CSR:
    """The graph on the device; nothing else was there before."""
    arrays = [np.load(folder / f"{scale}_{n}.npy") for n in ("data", "indices", "indptr")]
    n = arrays[2].size - 1
    no = np.bool_(False)
    return jax.block_until_ready(jsp.CSR(*jax.device_put((*arrays, no)), (n, n), True, True))


def one(folder: pathlib.Path, scale: int, purpose: str, declared: bool) -> None:
    """Prints a line."""
    A = read(folder, scale)
    size = sum(leaf.nbytes for leaf in jax.tree.leaves(A)) / 2**30

    def prepare():
        return jsp.prepare(A, for_=purpose, symmetric=True if declared else None)

    host = resident()
    cold, G = seconds(prepare)
    host = resident() - host
    del G
    warm, G = seconds(prepare, 3)
    most = peak()
    run, of, equal = searches(purpose, int(jnp.argmax(jnp.diff(A.indptr))))
    first, found = seconds(lambda: run(G))
    again, found = seconds(lambda: run(G), 11)
    bare = of(run(jsp.prepare(A, for_=(), symmetric=True)))
    right = bool(equal(of(found), bare))
    print(
        f"  {purpose:8} prepare cold {cold:7.3f} s, warm {warm:7.3f} s; host +{host:5.2f} "
        f"GB, device peak {most:6.2f} GB ({most / size:.2f} CSR); first call "
        f"{first:6.3f} s, then {1e3 * again:8.3f} ms; {'right' if right else 'WRONG'}",
        flush=True,
    )


def million() -> None:
    """Prints a line a purpose."""
    programs: list[str] = []
    jax.monitoring.register_event_duration_secs_listener(
        lambda event, _, **kw: programs.append(event) if event == COMPILED else None
    )
    jax.block_until_ready(jsp.prepare(jsp.generators.rmat(jax.random.key(9), 18), for_="bfs"))
    graphs = [jsp.generators.rmat(jax.random.key(k), 16, 8) for k in range(3)]
    capacity = max(A.nse for A in graphs)
    padded = jax.block_until_ready([jsp.pad(A, nse=capacity) for A in graphs])
    print(f"{capacity:,} slots; prepare + first call in ms (programs)")
    for purpose in PURPOSES:
        sent = []
        for G in padded:
            before = len(programs)
            prepared, G = seconds(lambda G=G, p=purpose: jsp.prepare(G, for_=p))
            run = searches(purpose, 0)[0]
            called, _ = seconds(lambda G=G, run=run: run(G))
            sent.append(f"{1e3 * prepared:.0f} + {1e3 * called:.0f} ({len(programs) - before})")
        again, _ = seconds(lambda p=purpose: jsp.prepare(padded[2], for_=p), 5)
        print(
            f"  {purpose:8} never seen {sent[0]}, seen {sent[1]}, {sent[2]}; "
            f"the same graph {1e3 * again:.1f}",
            flush=True,
        )


def child(*words: str) -> None:
    """This module in a process of its own."""
    subprocess.run([sys.executable, "-m", "benchmarks.dev.prepare_gpu", *words], check=True)


def main() -> None:
    """Prints a line a purpose and scale."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scales", type=int, nargs="+", default=[21, 24])
    parser.add_argument("--for", dest="purposes", nargs="+", default=PURPOSES)
    parser.add_argument("--declared", action="store_true", help="symmetry is declared, not checked")
    parser.add_argument("--million", action="store_true", help="small graphs of one bucket instead")
    parser.add_argument("--folder", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.million:
        million()
        return
    if args.folder is not None:  # a child
        if list(args.purposes) == ["make"]:
            make(args.folder, args.scales)
        else:
            one(args.folder, args.scales[0], args.purposes[0], args.declared)
        return
    shared = pathlib.Path("/dev/shm")
    print(f"JAX {jax.__version__}", flush=True)
    with tempfile.TemporaryDirectory(dir=shared if shared.is_dir() else None) as folder:
        scales = [str(scale) for scale in args.scales]
        child("--folder", folder, "--scales", *scales, "--for", "make")
        for scale in scales:
            entries = np.load(f"{folder}/{scale}_indices.npy", mmap_mode="r").size
            print(f"rmat{scale}-16: {2 ** int(scale):,} vertices, {entries:,} entries", flush=True)
            for purpose in args.purposes:
                more = ["--declared"] if args.declared else []
                child("--folder", folder, "--scales", scale, "--for", purpose, *more)


if __name__ == "__main__":
    main()
