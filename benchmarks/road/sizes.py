"""Ten graphs of ten sizes, each searched for the first time; a fresh process; a loop of products.

    python -m benchmarks.road.sizes bare|padded|loop       (what `run` starts, a process each)

Between 10^4 and 10^6 entries, 8 a vertex, weighted, symmetric: BFS, SSSP, PageRank and components
of each, eagerly, bare or padded to one size: all first calls together, then all again. `loop`
counts the programs that a loop of twelve `vxm` compiles, and the same loop on another graph.
"""

from __future__ import annotations

import json
import os
import pathlib
import resource
import subprocess
import sys
import tempfile
import time
from typing import Any

import jax
import numpy as np
import scipy.sparse as sp
import scipy.sparse.csgraph as csgraph

import jaxspv as jsp

from ..harness import summary
from ..suite import Workload

NAME = "sizes"
ENTRIES = np.geomspace(1e4, 1e6, 10).astype(int)
COMPILED = "/jax/core/compile/backend_compile_duration"
ROOT = pathlib.Path(__file__).parents[2]


def workloads() -> list[Workload]:
    """One, of all sizes."""
    return [Workload(NAME, lambda: graph(0), "ten graphs, 10^4 to 10^6 entries, `road/sizes.py`")]


def run() -> list[dict[str, Any]]:
    """Records of the processes."""
    records = []
    for mode in ("bare", "padded"):
        sent = child("-m", "benchmarks.road.sizes", mode)
        first, *again = sent.pop("seconds")
        records.append(summary(f"first calls of ten sizes, {mode}", again, first) | sent)
    sent = child("-m", "benchmarks.road.sizes", "loop")
    records.append(summary("twelve vxm in a loop", sent.pop("seconds"), sent.pop("first")) | sent)
    records += fresh()
    return [r | {"n": 0, "entries": int(ENTRIES.sum())} for r in records]


def child(*words: str, cache: str | None = None) -> dict[str, Any]:
    """What a process of its own prints in its last line."""
    more = {"JAX_COMPILATION_CACHE_DIR": cache} if cache else {}
    others = "JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE"  # users have bytecode
    environment = {k: v for k, v in os.environ.items() if k not in others}
    done = subprocess.run(
        [sys.executable, *words],
        cwd=ROOT,
        env=environment | {"PYTHONPATH": str(ROOT)} | more,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr[-500:]}")
    last = done.stdout.strip().splitlines()
    return json.loads(last[-1]) if last and last[-1].startswith("{") else {}


def fresh() -> list[dict[str, Any]]:
    """The command line in a new process, and importing JAX alone; the first fills the cache."""
    seconds: dict[str, list[float]] = {"jaxspv bfs minnesota": [], "import jax": []}
    with tempfile.TemporaryDirectory() as cache:
        for _ in range(4):
            for name, words in (
                ("jaxspv bfs minnesota", ("-m", "jaxspv", "bfs", "minnesota")),
                ("import jax", ("-c", "import jax")),
            ):
                start = time.perf_counter()
                child(*words, cache=cache)
                seconds[name].append(time.perf_counter() - start)
    return [summary(f"fresh process: {n}", took[1:], took[0]) for n, took in seconds.items()]


def graph(k: int) -> sp.csr_array:
    """Random edges, taken both ways."""
    rng = np.random.default_rng(k)
    n = int(ENTRIES[k]) // 8
    row, col = rng.integers(0, n, (2, int(ENTRIES[k]) // 2))
    half = sp.coo_array((rng.integers(1, 65, row.size).astype(np.float32), (row, col)), (n, n))
    half = sp.csr_array(half)
    return sp.csr_array(half.maximum(half.T))


def searched(G: Any) -> list[Any]:
    """The four results, on the host."""
    found = jsp.bfs(G, 0), jsp.sssp(G, 0), jsp.pagerank(G), jsp.connected_components(G)
    return jax.device_get([found[0].levels, found[1].distances, found[2].scores, found[3].count])


def check(M: sp.csr_array, found: list[Any]) -> None:
    """Against SciPy."""
    n = M.shape[0]
    levels, distances, scores, count = found
    hops = csgraph.dijkstra(M, indices=0, unweighted=True)
    np.testing.assert_array_equal(np.where(np.isinf(hops), -1, hops), levels[:n])
    np.testing.assert_allclose(distances[:n], csgraph.dijkstra(M, indices=0), rtol=1e-6)
    np.testing.assert_allclose(scores.sum(), 1, rtol=1e-4)
    assert int(count) == csgraph.connected_components(M, directed=False)[0]


def all_sizes(padded: bool) -> dict[str, Any]:
    """Seconds of all first calls and of all calls again, programs, memory."""
    programs = counter()
    matrices = [graph(k) for k in range(len(ENTRIES))]
    capacity = {"n": max(M.shape[0] for M in matrices), "nse": max(M.nnz for M in matrices)}
    graphs: list[Any] = [jsp.from_scipy(M) for M in matrices]
    before, base, seconds = resident(), len(programs), []
    spent = time.process_time()
    for again in range(4):
        start = time.perf_counter()
        if not again and padded:
            graphs = [jsp.pad(A, **capacity) for A in graphs]
        found = [searched(G) for G in graphs]
        seconds.append(time.perf_counter() - start)
        if not again:
            spent = time.process_time() - spent
    memory = resident() - before
    for M, results in zip(matrices, found, strict=True):  # SciPy's searches take memory too
        check(M, results)
    return {
        "seconds": seconds,
        "programs": len(programs) - base,
        "memory_mb": memory,
        "cpu_s": spent,
    }


def loop() -> dict[str, Any]:
    """Programs of twelve products, and of twelve more on another graph of as many entries."""
    programs, counts, seconds = counter(), [], []
    rng = np.random.default_rng(0)
    places = [rng.choice(6000**2, 30_000, replace=False) for _ in range(2)]
    weights = np.linspace(0.1, 1, 30_000, dtype=np.float32)
    for place in places:
        A = jsp.from_edges(place // 6000, place % 6000, weights, shape=(6000, 6000))
        before, start = len(programs), time.perf_counter()
        x = jsp.vector_from_entries([0], [0.0], 6000)
        for _ in range(12):
            x = jsp.vxm(x, A, jsp.semirings.min_plus)
        jax.block_until_ready(x)
        counts.append(len(programs) - before)
        seconds.append(time.perf_counter() - start)
    sent = {"programs": counts[0], "programs_next_graph": counts[1]}
    return sent | {"first": seconds[0], "seconds": seconds[1:]}


def counter() -> list[str]:
    """A list that grows with every program that is compiled."""
    events: list[str] = []

    def listen(event, seconds, **_):
        del seconds
        if event == COMPILED:
            events.append(event)

    jax.monitoring.register_event_duration_secs_listener(listen)
    return events


def resident() -> float:
    """MB of this process at most so far.

    `getrusage` would begin with what the parent held: Linux keeps its peak through `exec`.
    """
    try:
        lines = pathlib.Path("/proc/self/status").read_text().splitlines()
        return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 2**10
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**10


if __name__ == "__main__":
    mode = sys.argv[1]
    print(json.dumps(loop() if mode == "loop" else all_sizes(mode == "padded")))
