"""What the NetworkX backend costs a new process: `python -m benchmarks.dev.networkx_first`.

Each program runs in new processes with and without `backend_priority = ["jaxspv"]`, alternately,
and prints the processor time and its ratio:
  pagerank   one call on 100,000 edges: at most one second more than without
  calls      13 calls on 30,000 nodes: less than without
  small      three calls on each of 20 small graphs: at most 1.2 times
The cache of compiled programs is a new, empty folder for the first run and kept for the second.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from typing import Any

import networkx as nx

ROOT = pathlib.Path(__file__).parents[2]


def pagerank() -> Iterator[Any]:
    """One call."""
    G = nx.gnm_random_graph(20_000, 100_000, seed=1)
    yield lambda: nx.pagerank(G)


def calls() -> Iterator[Any]:
    """Thirteen calls on one graph."""
    G = nx.barabasi_albert_graph(30_000, 5, seed=1)
    for k, (_, _, data) in enumerate(G.edges(data=True)):
        data["length"] = k % 9 + 1
    yield lambda: nx.pagerank(G)
    yield lambda: nx.is_connected(G)
    yield lambda: nx.single_source_shortest_path_length(G, 0)
    yield lambda: nx.single_source_dijkstra_path_length(G, 0, weight="length")
    yield lambda: nx.core_number(G)
    yield lambda: nx.clustering(G)
    yield lambda: nx.transitivity(G)
    yield lambda: nx.average_clustering(G)
    yield lambda: nx.betweenness_centrality(G, k=16, seed=0)
    yield lambda: nx.eigenvector_centrality(G, max_iter=300)
    yield lambda: nx.katz_centrality(G, alpha=1e-3)
    yield lambda: nx.minimum_spanning_tree(G, weight="length")
    yield lambda: nx.triangles(G)


def small() -> Iterator[Any]:
    """Three calls on each of 20 graphs of 30 to 220 nodes."""
    for k in range(20):
        G = nx.connected_watts_strogatz_graph(30 + 10 * k, 6, 0.2, seed=k)
        yield lambda G=G: nx.diameter(G)
        yield lambda G=G: nx.betweenness_centrality(G)
        yield lambda G=G: nx.closeness_centrality(G)


PROGRAMS: dict[str, Callable[[], Iterator[Any]]] = {
    "pagerank": pagerank,
    "calls": calls,
    "small": small,
}


def run(name: str) -> None:
    """One program in this process; prints seconds of its calls, all of them and each."""
    nx.config.warnings_to_ignore.add("cache")
    spent = []
    for call in PROGRAMS[name]():
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    loaded = "jaxspv" in sys.modules
    print(json.dumps({"seconds": sum(spent), "each": spent, "jaxspv": loaded}))


def in_new_process(name: str, folder: pathlib.Path, priority: str, cache: str) -> dict[str, Any]:
    """What `run` prints in a process that finds the backend in a folder of entry points."""
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)]),
        "NETWORKX_BACKEND_PRIORITY": priority,
        "JAX_COMPILATION_CACHE_DIR": cache,
    }
    command = [sys.executable, "-m", "benchmarks.dev.networkx_first", "--run", name]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="*", default=list(PROGRAMS))
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--each", action="store_true", help="seconds of each call, too")
    parser.add_argument("--run", help="one program in this process")
    args = parser.parse_args()
    if args.run:
        return run(args.run)
    sys.path.insert(0, str(ROOT / "tests"))
    import networkx_suite  # lays out the entry points of the source tree

    with tempfile.TemporaryDirectory() as place:
        folder = networkx_suite.lay_out(pathlib.Path(place) / "entries")
        for name in args.programs:
            cache = str(pathlib.Path(place) / f"cache-{name}")
            runs = [
                [in_new_process(name, folder, priority, cache) for priority in ("", "jaxspv")]
                for _ in range(args.runs)
            ]
            without, cold = runs[0]
            medians = [statistics.median(r[k]["seconds"] for r in runs) for k in (0, 1)]
            print(
                f"{name:10} without {medians[0]:.2f} s, with {medians[1]:.2f} s"
                f" (first run {without['seconds']:.2f} and {cold['seconds']:.2f}),"
                f" ratio {medians[1] / medians[0]:.2f},"
                f" jaxspv {'imported' if cold['jaxspv'] else 'not imported'}"
            )
            if args.each:
                for k, pair in enumerate(zip(without["each"], cold["each"], strict=True)):
                    print(f"  call {k:2}: {pair[0]:.3f} {pair[1]:.3f}")


if __name__ == "__main__":
    main()
