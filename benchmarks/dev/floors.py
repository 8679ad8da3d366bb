"""Algorithms without a GPU peer beside their floors: python -m benchmarks.dev.floors GRAPH ...

A floor is what every form must do, at the rates that primitives have on an H200: gathers of sectors
of 32 bytes in random places of L2, atomics there, bytes streamed. Times are sums of kernel times in
a profile (by the host's clock where there is no GPU). The table names the term that binds.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp

from .. import suite
from ..harness import alone, blocking, jitted
from ..report.table import markdown
from ..timeline import timeline

RATES = {"gathers": 150e9, "atomics": 91e9, "bytes": 4.26e12}  # a second
SOURCES = 64  # of betweenness
TOGETHER = 32  # searches in one traversal
MOST_VERTICES = 20_000  # whose closeness, a search from each, is measured
CALLS = 3


class Case(NamedTuple):
    """what: the work. call: of the algorithm. floor: the amounts of its result, by RATES."""

    what: str
    call: Callable[[], Any]
    floor: Callable[[Any], dict[str, float]]


def cases(name: str) -> list[Case]:
    """The work on one graph, symmetrised."""
    graph = suite.get(name)
    A = (graph if suite.GENERATED.fullmatch(name) else graph.symmetrised()).matrix()
    n, m = A.shape[0], A.nnz
    up = sp.csr_array(sp.triu(A, 1))
    G = jsp.prepare(jsp.from_scipy(A), for_=("bfs",), symmetric=True)
    acyclic, some = jsp.from_scipy(up), jnp.arange(SOURCES, dtype=jnp.int32)
    degree = np.diff(A.indptr)
    row, col = A.tocoo().coords
    higher = (degree[row] < degree[col]) | ((degree[row] == degree[col]) & (row < col))
    many = np.bincount(row[higher], minlength=n)
    looked = np.minimum(many[row[higher]], many[col[higher]]).sum()

    def of(f, *args):
        return blocking(jitted(f), *args)

    found = [
        # both ways over the edges; a row of SOURCES float32 is 8 sectors
        Case(
            f"betweenness, {SOURCES} sources",
            of(lambda G: jsp.betweenness_centrality(G, some), G),
            lambda _: {"gathers": 2 * m * SOURCES / 8, "bytes": 8 * m},
        ),
        Case(
            f"eccentricities of {TOGETHER}",
            of(lambda G: jsp.eccentricity(G, some[:TOGETHER]), G),
            lambda _: {"gathers": m, "bytes": 4 * m},
        ),
        Case(
            "label propagation",
            of(jsp.label_propagation, G),
            lambda r: {"gathers": m * int(r.iterations), "bytes": 4 * m * int(r.iterations)},
        ),
        Case(
            "topological order",
            of(jsp.topological_sort, acyclic),
            lambda _: {"atomics": up.nnz, "bytes": 4 * up.nnz},
        ),
        Case(
            "matching",
            of(jsp.maximum_bipartite_matching, jsp.from_scipy(A)),
            lambda _: {"gathers": m, "bytes": 4 * m},
        ),
        # every triangle is found once: the shorter rows of all edges
        Case("4-truss", of(lambda G: jsp.k_truss(G, 4), G), lambda _: {"bytes": 4 * looked}),
    ]
    if n <= MOST_VERTICES:
        all_ = {"gathers": m * n / TOGETHER, "bytes": 4 * m * n / TOGETHER}
        found.append(Case("closeness", of(jsp.closeness_centrality, G), lambda _: all_))
    return found


def milliseconds(call: Callable[[], Any]) -> float:
    """Of all kernels of a call."""
    with alone():
        return _milliseconds(call)


def _milliseconds(call):
    if jax.default_backend() == "gpu":
        events = timeline(lambda: [call() for _ in range(CALLS)])
        return sum(took for _, _, took in events) / 1e3 / CALLS
    start = time.perf_counter()
    call()
    return 1e3 * (time.perf_counter() - start)


def main(argv: list[str] | None = None) -> None:
    """Prints a row for each case, then the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("graphs", nargs="+")
    parser.add_argument("--only", nargs="+", default=[""], help="beginnings of the works' names")
    args = parser.parse_args(argv)
    rows = []
    for name in args.graphs:
        for case in cases(name):
            if not case.what.startswith(tuple(args.only)):
                continue
            terms = {k: 1e3 * x / RATES[k] for k, x in case.floor(case.call()).items()}
            least = max(terms, key=lambda k: terms[k])
            took = milliseconds(case.call)
            rows.append([f"{name} {case.what}", took, terms[least], least, took / terms[least]])
            print(rows[-1], flush=True)
    print(markdown(["work", "ms", "floor", "bound by", "over the floor"], rows))


if __name__ == "__main__":
    main()
