"""The commands on the structure of a graph: components, triangles, core, louvain, ..."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.operations.plan import Plan
from ..algebra.monoids import min_
from ..algorithms.bfs.api import bfs
from ..algorithms.centrality.betweenness import betweenness_centrality
from ..algorithms.common.sources import path_to
from ..algorithms.communities.louvain import louvain
from ..algorithms.components.api import connected_components
from ..algorithms.connectivity.cores import core_number
from ..algorithms.sssp.api import sssp
from ..algorithms.triangles.api import triangle_count
from ..construct.from_arrays import from_edges
from ..formats import SparseMatrix
from ..graph import Graph
from ..until import reached
from .opening import vertex_of
from .output import save_table
from .running import METHOD_HELP, add_running, failure_of, prepared, report_of, shown
from .support import plan_of, reached_edges, timed

SAMPLED = 256  # sources of betweenness by default


def add_to(add: Callable[..., argparse.ArgumentParser]) -> None:
    """Enters the commands; `add(name, run, text)` makes the parser of one."""
    for sub in (
        add("components", _components, "Weakly connected components and their sizes."),
        add("triangles", _triangles, "The number of triangles."),
        add("core", _core, "Core numbers: the degeneracy and how many vertices have which."),
        add("louvain", _louvain, "Communities by Louvain's method and their modularity."),
    ):
        _common(sub)
    between = add("betweenness", _betweenness, "Vertices that most shortest paths pass.")
    _common(between)
    between.add_argument(
        "--sources", type=int, help=f"how many, drawn by --seed; at most {SAMPLED} by default"
    )
    between.add_argument("--top", type=int, default=5, help="vertices to list")
    path = add("path", _path, "A shortest path from one vertex to another.")
    path.add_argument("start", metavar="A", help="the first vertex")
    path.add_argument("end", metavar="B", help="the last vertex")
    path.add_argument("--hops", action="store_true", help="every edge counts 1, whatever it holds")
    _common(path)


def _common(sub: argparse.ArgumentParser) -> None:
    add_running(sub)
    sub.add_argument("--method", help=METHOD_HELP)
    sub.add_argument("--undirected", action="store_true", help="take every edge in both directions")
    sub.add_argument(
        "--output", metavar="OUT", help="write what was found: .npz, .csv, .tsv, .parquet"
    )


def _open(
    args: argparse.Namespace, *purposes: str
) -> tuple[SparseMatrix, Graph, float, dict[str, Any]]:
    """The matrix, its graph, the time to prepare it, and the choice of an implementation."""
    change = _both_directions if args.undirected else None
    choice = {"backend": args.backend, "method": args.method}
    return *prepared(args, *purposes, change=change), choice


def _both_directions(A: SparseMatrix) -> SparseMatrix:
    """Every entry and its mirror image; the minimum where both are stored."""
    coo = A.to_scipy().tocoo()
    row, col = np.concatenate([coo.row, coo.col]), np.concatenate([coo.col, coo.row])
    values = np.concatenate([coo.data, coo.data])
    return from_edges(row, col, values, shape=A.shape, dup=min_, format=A.format)


def _undirected_edges(G: Graph) -> int:
    return reached_edges(G, np.ones(G.n, bool))


def _run(
    args: argparse.Namespace, algorithm: Callable[..., Any], found_of: Callable, **columns: str
) -> dict[str, Any]:
    """The report of an algorithm on the whole graph; columns: of the table -> of the result."""
    A, G, prepare_ms, choice = _open(args)
    plan = plan_of(algorithm.__name__, G, **choice)
    timing, result = timed(lambda: algorithm(G, **choice), args.repeat)
    found = found_of(result)
    save_table(args, **{name: np.atleast_1d(getattr(result, of)) for name, of in columns.items()})
    return report_of(args, A, G, prepare_ms, timing, plan, found, _undirected_edges(G))


def _components(args: argparse.Namespace) -> dict[str, Any]:
    def found_of(result):
        sizes = np.bincount(np.asarray(result.labels), minlength=1)
        return {
            "components": int(result.count),
            "largest": int(sizes.max()),
            "single_vertices": int((sizes == 1).sum()),
            "failed": failure_of(result),
        }

    return _run(args, connected_components, found_of, labels="labels")


def _triangles(args: argparse.Namespace) -> dict[str, Any]:
    def found_of(result):
        return {"triangles": int(result.count), "failed": failure_of(result)}

    return _run(args, triangle_count, found_of, triangles="count")


def _core(args: argparse.Namespace) -> dict[str, Any]:
    def found_of(result):
        most = int(result.degeneracy)
        return {"degeneracy": most, "innermost": int((np.asarray(result.cores) == most).sum())}

    return _run(args, core_number, found_of, cores="cores")


def _louvain(args: argparse.Namespace) -> dict[str, Any]:
    def found_of(result):
        return {
            "communities": int(result.count),
            "largest": int(np.bincount(np.asarray(result.labels), minlength=1).max()),
            "modularity": float(result.modularity),
            "levels": int(result.levels),
        }

    return _run(args, louvain, found_of, labels="labels")


def _betweenness(args: argparse.Namespace) -> dict[str, Any]:
    A, G, prepare_ms, choice = _open(args, "bfs")
    if args.sources is not None and not 1 <= args.sources <= G.n:
        raise ValueError(f"`--sources` must be from 1 to {G.n}; got {args.sources}.")
    count = min(SAMPLED, G.n) if args.sources is None else args.sources
    drawn = np.random.default_rng(args.seed).choice(G.n, count, replace=False)
    sources = None if count == G.n else np.sort(drawn).astype(np.int32)
    plan = plan_of("betweenness_centrality", G, sources, **choice)
    timing, result = timed(lambda: betweenness_centrality(G, sources, **choice), args.repeat)
    scores = np.asarray(result.scores)
    top = np.argsort(-scores, kind="stable")[: args.top]
    found = {
        "sources": count,
        "top": [[shown(args, int(v)), float(scores[v])] for v in top],
        "failed": failure_of(result),
    }
    save_table(args, scores=scores)
    edges = count * _undirected_edges(G)
    return report_of(args, A, G, prepare_ms, timing, plan, found, edges)


def _path(args: argparse.Namespace) -> dict[str, Any]:
    A, G, prepare_ms, choice = _open(args, "bfs" if args.hops else "sssp")
    start, end = (
        vertex_of(text, args.names, name) for name, text in (("A", args.start), ("B", args.end))
    )
    for name, vertex in (("A", start), ("B", end)):
        if not 0 <= vertex < G.n:
            raise ValueError(f"`{name}` must lie in [0, {G.n}); got {vertex}.")
    search: Any = bfs if args.hops else sssp
    choice["until"] = reached(end)
    plan: Plan = plan_of(search.__name__, G, start, **choice)
    timing, result = timed(lambda: search(G, start, **choice), args.repeat)
    walk = path_to(result.parents, end)
    far = np.asarray(result.levels if args.hops else result.distances)
    found = {
        "path": " ".join(str(shown(args, int(v))) for v in walk) or "there is none",
        "hops": len(walk) - 1 if len(walk) else None,
        "length": far[end].item() if len(walk) else None,
        "failed": failure_of(result),
    }
    save_table(args, vertices=walk)
    traversed = reached_edges(G, np.asarray(result.parents) >= 0)
    return report_of(args, A, G, prepare_ms, timing, plan, found, traversed)
