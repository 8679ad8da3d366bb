"""The commands on the structure of a graph: components, triangles, core, louvain, ..."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any

import numpy as np

from ..algorithms.bfs.api import bfs
from ..algorithms.centrality.betweenness import betweenness_centrality
from ..algorithms.common.sources import path_to
from ..algorithms.communities.louvain import louvain
from ..algorithms.components.api import connected_components
from ..algorithms.connectivity.cores import core_number
from ..algorithms.sssp.api import sssp
from ..algorithms.triangles.api import triangle_count
from ..until import reached
from .opening import vertex_of
from .running import Run, add_choice
from .support import reached_edges

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
    add_choice(sub, "what was found")
    sub.add_argument("--undirected", action="store_true", help="take every edge in both directions")


def _components(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(connected_components)
    sizes = np.bincount(np.asarray(result.labels), minlength=1)
    found = {
        "components": int(result.count),
        "largest": int(sizes.max()),
        "single_vertices": int((sizes == 1).sum()),
    }
    return run.report(result, found, run.edges, labels=result.labels)


def _triangles(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(triangle_count)
    count = np.atleast_1d(result.count)
    return run.report(result, {"triangles": int(count[0])}, run.edges, triangles=count)


def _core(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(core_number)
    cores, most = np.asarray(result.cores), int(result.degeneracy)
    found = {"degeneracy": most, "innermost": int((cores == most).sum())}
    return run.report(result, found, run.edges, cores=cores)


def _louvain(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(louvain)
    found = {
        "communities": int(result.count),
        "largest": int(np.bincount(np.asarray(result.labels), minlength=1).max()),
        "modularity": float(result.modularity),
        "levels": int(result.levels),
    }
    return run.report(result, found, run.edges, labels=result.labels)


def _betweenness(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs")
    n = run.G.n
    if args.sources is not None and not 1 <= args.sources <= n:
        raise ValueError(f"`--sources` must be from 1 to {n}; got {args.sources}.")
    count = min(SAMPLED, n) if args.sources is None else args.sources
    drawn = np.random.default_rng(args.seed).choice(n, count, replace=False)
    result = run.call(
        betweenness_centrality, None if count == n else np.sort(drawn).astype(np.int32)
    )
    scores = np.asarray(result.scores)
    found = {"sources": count, "top": run.top(scores)}
    return run.report(result, found, count * run.edges, scores=scores)


def _path(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs" if args.hops else "sssp")
    start, end = (
        vertex_of(text, args.names, name) for name, text in (("A", args.start), ("B", args.end))
    )
    for name, vertex in (("A", start), ("B", end)):
        if not 0 <= vertex < run.G.n:
            raise ValueError(f"`{name}` must lie in [0, {run.G.n}); got {vertex}.")
    result = run.call(bfs if args.hops else sssp, start, until=reached(end))
    walk = path_to(result.parents, end)
    far = np.asarray(result.levels if args.hops else result.distances)
    found = {
        "path": " ".join(str(run.shown(v)) for v in walk) or "there is none",
        "hops": len(walk) - 1 if len(walk) else None,
        "length": far[end].item() if len(walk) else None,
    }
    traversed = reached_edges(run.G, np.asarray(result.parents) >= 0)
    return run.report(result, found, traversed, vertices=walk)
