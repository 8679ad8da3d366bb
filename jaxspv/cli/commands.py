"""What the commands of the command line compute, by their names in `_jaxspv_command`."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import os
import platform
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
import scipy  # its modules are imported when they are first used

from .._core.eager.programs import cache_folder, enable_compilation_cache
from ..algorithms.bfs.api import bfs
from ..algorithms.centrality.betweenness import betweenness_centrality
from ..algorithms.common.sources import path_to
from ..algorithms.common.status import NegativeCycleError
from ..algorithms.communities.louvain import louvain
from ..algorithms.components import connected_components
from ..algorithms.cores import core_number
from ..algorithms.pagerank.api import pagerank
from ..algorithms.sssp.api import sssp
from ..algorithms.triangles import triangle_count
from ..formats import SparseMatrix
from ..graph import Graph, prepare
from ..interop.labels import symmetry
from ..io import files
from ..io.tables.text import write_edgelist
from ..native import bind
from ..ops.products.mxv.api import mxv
from ..until import reached
from .output import check_reader, check_writable
from .output import show as show
from .running import Run, open_graph, timed, vertex_of

SAMPLED = 256  # sources of betweenness by default


def run(args: argparse.Namespace, *, alone: bool) -> dict[str, Any]:
    """The report of a command; alone: in a process of its own, which caches programs on disk."""
    if alone:
        atexit.register(gc.freeze)  # else all that JAX made is searched for cycles at the end
    if alone and os.environ.get("JAXSPV_COMPILATION_CACHE") != "0":
        with contextlib.suppress(OSError):  # of a folder that cannot be written to
            enable_compilation_cache()
    try:
        return COMMANDS[args.command](args)
    except NegativeCycleError as error:
        return {"graph": args.file, "converged": False, "failed": f"converged: {error}"}


def _tune(args: argparse.Namespace) -> dict[str, Any]:
    from . import tune  # imports kernels

    return tune.run(args)


def _info(args: argparse.Namespace) -> dict[str, Any]:
    if args.file:
        report = _described(args.file, open_graph(args))
    else:
        devices = ", ".join(sorted({device.device_kind for device in jax.devices()}))
        report = {"python": platform.python_version(), "jaxspv": args.version}
        report |= {"jax": jax.__version__, "backend": jax.default_backend(), "devices": devices}
    kernels = bind.refused() or "C++"
    return {**report, "compilation_cache": cache_folder(), "kernels_on_cpus": kernels}


def _described(name: str, A: SparseMatrix) -> dict[str, Any]:
    """Shape, entries, symmetry, row lengths, and the components of a square matrix."""
    csr = A.to_scipy().tocsr()
    lengths = np.diff(csr.indptr)
    m, n = csr.shape
    mean = float(lengths.mean()) if m else 0.0
    power = np.where(lengths > 0, np.floor(np.log2(np.maximum(lengths, 1))).astype(int) + 1, 0)
    counts = np.bincount(power, minlength=1).tolist()  # of the lengths 0, 1, 2-3, 4-7, ...
    ranges = ["0", "1"] + [f"{1 << k}-{(2 << k) - 1}" for k in range(1, len(counts))]
    report: dict[str, Any] = {
        "graph": name,
        "rows": m,
        "columns": n,
        "entries": int(csr.nnz),
        "dtype": str(A.dtype),
        "format": A.format,
        "row_length_mean": mean,
        "row_length_max": int(lengths.max(initial=0)),
        "empty_rows": int((lengths == 0).sum()),
        "row_lengths": list(zip(ranges, counts, strict=False)),
        "row_length_variance": float(lengths.var()) if m else 0.0,
    }
    if csr.nnz and csr.dtype.kind != "c":
        report |= {"least_value": csr.data.min().item(), "largest_value": csr.data.max().item()}
    if m == n:
        ones = np.ones(csr.nnz, np.int8)  # a stored zero is an edge
        pattern = scipy.sparse.csr_array((ones, csr.indices, csr.indptr), shape=csr.shape)
        pattern_equals, equals = symmetry(csr)
        components = scipy.sparse.csgraph.connected_components(pattern, directed=False)[0]
        report |= {
            "symmetric_pattern": pattern_equals,
            "symmetric": equals,
            "self_loops": int((pattern.diagonal() != 0).sum()),
            "weak_components": int(components),
        }
    return report


def _convert(args: argparse.Namespace) -> dict[str, Any]:
    matrix, plain = args.out.endswith((".npz", ".mtx", ".mtx.gz")), args.out.removesuffix(".gz")
    if not matrix and not plain.endswith((".csv", ".tsv", ".txt", ".parquet")):
        known = ".mtx, .mtx.gz, .npz, .csv, .tsv, .txt or .parquet"
        raise ValueError(f"`OUT` must end in {known}; got {args.out}.")
    check_reader(args.out)
    check_writable(args.out)
    A = open_graph(args)
    if not matrix:
        write_edgelist(args.out, A, args.names)
    else:
        (files.save_npz if args.out.endswith(".npz") else files.write_mtx)(args.out, A)
    return {"graph": args.file, "written": args.out, "matrix": repr(A)}


def _bfs(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs")
    source = run.source()
    result = run.call(bfs, source)
    levels = np.asarray(result.levels)
    found = {
        "source": run.shown(source),
        "reached": int((levels >= 0).sum()),
        "levels": int(result.num_levels),
        "level_sizes": np.bincount(levels[levels >= 0]).tolist(),
    }
    columns = {"levels": levels, "parents": result.parents}
    return run.report(result, found, run.edges(levels >= 0), **columns)


def _sssp(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "sssp")
    source = run.source()
    result = run.call(sssp, source)
    distances = np.asarray(result.distances)
    reached = np.asarray(result.parents) >= 0
    found = {
        "source": run.shown(source),
        "reached": int(reached.sum()),
        "farthest": float(distances[reached].max(initial=0)),
        "steps": int(result.steps),
        "converged": bool(result.converged),
    }
    columns = {"distances": distances, "parents": result.parents}
    return run.report(result, found, run.edges(reached), **columns)


def _pagerank(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "pagerank")
    asked = {name: getattr(args, name) for name in ("damping", "tol", "max_iterations")}
    result = run.call(pagerank, **{k: v for k, v in asked.items() if v is not None})
    scores, steps = np.asarray(result.scores), int(result.iterations)
    found = {"iterations": steps, "converged": bool(result.converged), "top": run.top(scores)}
    return run.report(result, found, int(run.A.count) * steps, scores=scores)


def _components(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(connected_components)
    sizes = np.bincount(np.asarray(result.labels), minlength=1)
    found = {
        "components": int(result.count),
        "largest": int(sizes.max()),
        "single_vertices": int((sizes == 1).sum()),
    }
    return run.report(result, found, run.edges(), labels=result.labels)


def _triangles(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(triangle_count)
    count = np.atleast_1d(result.count)
    return run.report(result, {"triangles": int(count[0])}, run.edges(), triangles=count)


def _core(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(core_number)
    cores, most = np.asarray(result.cores), int(result.degeneracy)
    found = {"degeneracy": most, "innermost": int((cores == most).sum())}
    return run.report(result, found, run.edges(), cores=cores)


def _louvain(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args)
    result = run.call(louvain)
    found = {
        "communities": int(result.count),
        "largest": int(np.bincount(np.asarray(result.labels), minlength=1).max()),
        "modularity": float(result.modularity),
        "levels": int(result.levels),
    }
    return run.report(result, found, run.edges(), labels=result.labels)


def _betweenness(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs")
    n = run.G.n
    if args.sources is not None and not 1 <= args.sources <= n:
        raise ValueError(f"`--sources` must be from 1 to {n}; got {args.sources}.")
    count = min(SAMPLED, n) if args.sources is None else args.sources
    drawn = np.random.default_rng(args.seed % 2**64).choice(n, count, replace=False)
    sources = None if count == n else np.sort(drawn).astype(np.int32)
    result = run.call(betweenness_centrality, sources)
    scores = np.asarray(result.scores)
    found = {"sources": count, "top": run.top(scores)}
    return run.report(result, found, count * run.edges(), scores=scores)


def _path(args: argparse.Namespace) -> dict[str, Any]:
    run = Run(args, "bfs" if args.hops else "sssp")
    ends = ("A", args.start), ("B", args.end)
    start, end = (run.inside(name, vertex_of(v, args.names, name)) for name, v in ends)
    result = run.call(bfs if args.hops else sssp, start, until=reached(end))
    walk = path_to(result.parents, end)
    far = np.asarray(result.levels if args.hops else result.distances)
    found = {
        "path": " ".join(str(run.shown(v)) for v in walk) or "there is none",
        "hops": len(walk) - 1 if len(walk) else None,
        "length": far[end].item() if len(walk) else None,
    }
    traversed = run.edges(np.asarray(result.parents) >= 0)
    return run.report(result, found, traversed, vertices=walk)


def _bench(args: argparse.Namespace) -> dict[str, Any]:
    """Each result is verified against SciPy before it is timed."""
    from .. import verify  # with parts of SciPy that no other command needs

    graph = Run(args)
    G, source, rows, wrong = graph.G, graph.source(), [], []
    x = jax.numpy.linspace(0, 1, G.n, dtype=np.float32)
    programs: dict[str, tuple[Callable[..., Any], tuple[Any, ...], Callable[..., None]]] = {
        "spmv": (mxv, (x,), _verify_product),
        "bfs": (bfs, (source,), verify.bfs),
        "sssp": (sssp, (source,), verify.sssp),
        "pagerank": (pagerank, (), verify.pagerank),
    }
    for name, (fn, operands, verifier) in programs.items():
        try:
            preparing, prepared = timed(lambda fn=fn: prepare(G, for_=fn.__name__), 0)
            verifier(G, *operands, fn(prepared, *operands, backend=args.backend))
        except (ValueError, NotImplementedError) as refusal:
            rows.append({"program": name, "refused": str(refusal).splitlines()[0]})
            continue
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
            continue
        call = lambda: fn(prepared, *operands, backend=args.backend)  # noqa: B023, E731
        timing, _ = timed(call, args.repeat)
        rows.append(
            {
                "program": name,
                "time_ms": timing.median_ms,
                "least_ms": min(timing.runs_ms),
                "most_ms": max(timing.runs_ms),
                "prepare_ms": preparing.first_ms,
            }
        )
    return {
        "graph": args.file,
        "vertices": G.n,
        "entries": int(graph.A.count),
        "source": source,
        "device": str(jax.devices()[0].device_kind),
        "runs": args.repeat,
        "programs": rows,
        "failed": "; ".join(wrong) or None,
    }


def _verify_product(G: Graph, x: Any, y: Any) -> None:
    matrix, x = G.out.to_scipy().astype(np.float64), np.asarray(x, np.float64)
    want, scale = matrix @ x, abs(matrix) @ np.abs(x)
    assert np.all(np.abs(np.asarray(y) - want) <= 1e-4 * scale + 1e-30), "the product is wrong."


_ALL = (_info, _convert, _bfs, _sssp, _pagerank, _components, _triangles, _core, _louvain)
_ALL += (_betweenness, _path, _tune, _bench)
COMMANDS = {fn.__name__.removeprefix("_"): fn for fn in _ALL}
