"""Command line: `python -m benchmarks NAME`, of `BENCHMARKS`, "all", "report" or "sharded"."""

from __future__ import annotations

import argparse
import importlib
import json
import os
import pathlib
import sys
import traceback
from typing import Any

os.environ.setdefault("XLA_PYTHON_CLIENT_MEM_FRACTION", ".70")  # the rest is for CuPy

import jax  # noqa: E402
import tqdm  # noqa: E402

from . import suite  # noqa: E402
from .compiled import over_scipy  # noqa: E402
from .graphs import graphblas_sharp, launches, networkx_calls  # noqa: E402
from .harness import RUNS, WrongResult, environment  # noqa: E402
from .learning import accuracy  # noqa: E402
from .options import Options  # noqa: E402
from .products import padded_rows  # noqa: E402
from .report.plot import save  # noqa: E402
from .report.table import render  # noqa: E402
from .report.write import main as write_report  # noqa: E402
from .road import sizes  # noqa: E402
from .traversal import yang2015  # noqa: E402
from .traversal.mesh_costs import main as predict_sharded  # noqa: E402

BENCHMARKS = {
    "spmv": "products.spmv",
    "spmm": "products.spmm",
    "spmspv": "products.spmspv",
    "attention": "products.attention",
    "gnn": "products.gnn",
    "accuracy": "learning.accuracy",
    "sampling": "learning.sampling",
    "mxm": "products.mxm",
    "bfs": "traversal.bfs",
    "sources": "traversal.sources",
    "sssp": "traversal.sssp",
    "pagerank": "graphs.pagerank",
    "loops": "graphs.loops",
    "generate": "graphs.generate",
    "components": "graphs.components",
    "algorithms": "graphs.algorithms",
    "graphblas_sharp": "graphs.graphblas_sharp",
    "gradients": "products.gradients",
    "fixpoint": "graphs.fixpoint",
    "launches": "graphs.launches",
    "tiles": "products.tiles",
    "tuples": "learning.tuples",
    "gpu_report": "products.padded_rows",
    "tilebfs": "traversal.tile_bfs",
    "yang2015": "traversal.yang2015",
    "road": "road.graphblas",
    "networkx": "graphs.networkx_calls",
    "libraries": "graphs.libraries",
    "compiled": "compiled.run",
    "gpu_programs": "compiled.gpu_programs",
    "over_scipy": "compiled.over_scipy",
}

OWN = {  # what a benchmark measures unasked, and knows by name beside the graphs of `suite`
    "yang2015": yang2015.workloads,
    "gpu_report": padded_rows.workloads,
    "accuracy": lambda settings: accuracy.workloads(),
    "graphblas_sharp": graphblas_sharp.workloads,
    "launches": lambda settings: launches.workloads(),
    "over_scipy": lambda settings: over_scipy.workloads(),
}


def parser() -> argparse.ArgumentParser:
    """The arguments; defaults that depend on the device are filled in by `options`."""
    p = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    p.add_argument("benchmark", choices=[*BENCHMARKS, "all"])
    p.add_argument(
        "--graphs",
        nargs="+",
        metavar="NAME",
        help="rmat<scale>, grid<side>, delaunay<scale>, files of the data folder (NAME+lengths: "
        "paths by the values stored in it), data, peers, quick, small, tiles (groups), or one of "
        "the benchmark's own; default: data on a CPU, peers on a GPU",
    )
    p.add_argument("--json", type=pathlib.Path, metavar="OUT", help="write every record")
    p.add_argument("--markdown", type=pathlib.Path, metavar="OUT", help="write the tables")
    p.add_argument("--plot", type=pathlib.Path, metavar="OUT", help="write a picture")
    p.add_argument("--quick", action="store_true", help="small graphs, seconds in all")
    p.add_argument("--runs", type=int, default=RUNS, help="timed calls of each (default 10)")
    p.add_argument(
        "--limit",
        type=float,
        default=20,
        metavar="SECONDS",
        help="time for the runs of one program on one graph; above it, it runs once",
    )
    p.add_argument(
        "--repeats",
        type=int,
        metavar="K",
        help="time K computations inside one jitted program too; default: 8 on a GPU, "
        "0 (not) on a CPU",
    )
    p.add_argument("--max-scale", type=int, help="yang2015: default 18 on a CPU, 21 on a GPU")
    p.add_argument("--profile", action="store_true", help="count launches on a GPU")
    p.add_argument("--backend", choices=["pallas", "xla"], help="of jaxspv this one alone")
    p.add_argument(
        "--cases",
        nargs="+",
        help="these alone; fixpoint: BFS, SSSP, PageRank, 20 products; gradients: products, sssp; "
        "gpu_programs: algorithms; over_scipy: operations",
    )
    p.add_argument("--no-baselines", action="store_true", help="jaxspv alone")
    return p


def options(args: argparse.Namespace) -> Options:
    """The settings for the device at hand."""
    gpu = jax.default_backend() == "gpu"
    scale = args.max_scale if args.max_scale is not None else 21 if gpu else 18
    repeats = args.repeats if args.repeats is not None else 8 if gpu else 0
    return Options(
        args.runs,
        args.limit,
        repeats,
        scale,
        profile=args.profile,
        baselines=not args.no_baselines,
        backend=args.backend,
        cases=args.cases and tuple(args.cases),
    )


def workloads(name: str, args: argparse.Namespace, settings: Options) -> list[suite.Workload]:
    """What one benchmark runs on."""
    if args.graphs:
        own = {w.name: w for w in OWN.get(name, lambda settings: [])(settings)}
        return [w for g in args.graphs for w in ([own[g]] if g in own else suite.select([g]))]
    if args.quick:
        return suite.select(["quick"])
    if name in OWN:
        return OWN[name](settings)
    if name in ("tiles", "tilebfs"):
        return suite.select(["tiles"])
    if name == "networkx":
        data = suite.select(["data"])
        return [w for w in data if w.matrix().nnz > networkx_calls.LARGE_ENTRIES]
    if name == "road":
        return [*suite.select(["jazz", "power", "wiki-Vote"]), *sizes.workloads()]
    return suite.select(["peers" if jax.default_backend() == "gpu" else "data"])


def measure_all(args: argparse.Namespace) -> dict[str, Any]:
    """The document of a run: environment, records, failures."""
    settings = options(args)
    names = list(BENCHMARKS) if args.benchmark == "all" else [args.benchmark]
    jobs = [(name, w) for name in names for w in workloads(name, args, settings)]
    document: dict[str, Any] = {"environment": environment(), "records": [], "failures": []}
    with tqdm.tqdm(jobs, unit="graph", disable=None) as progress:
        for name, workload in progress:
            progress.set_postfix_str(f"{name} {workload.name}")
            module = importlib.import_module(f".{BENCHMARKS[name]}", __package__)
            try:
                records = module.run(workload, settings)
            except Exception as error:  # one graph must not cost the others; exit status tells
                traceback.print_exc()
                kind = "wrong result" if isinstance(error, WrongResult) else type(error).__name__
                text = f"{kind}: {str(error)[:500]}"
                document["failures"].append(
                    {"benchmark": name, "graph": workload.name, "error": text}
                )
                continue
            head = {"benchmark": name, "graph": workload.name, "origin": workload.origin}
            document["records"] += [{**head, **r} for r in records if "error" not in r]
            document["failures"] += [
                {**head, "error": f"{r['program']}: {r['error']}"} for r in records if "error" in r
            ]
            write(document, args)
    return document


def write(document: dict[str, Any], args: argparse.Namespace) -> None:
    """What was asked for; after every graph, so that a run cut short leaves what it measured."""
    if args.json:
        args.json.write_text(json.dumps(document, indent=1) + "\n")
    if args.markdown:
        args.markdown.write_text(render(document))


def main(argv: list[str] | None = None) -> int:
    """Runs, prints the tables, returns 1 if anything failed."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["report"]:
        return write_report(argv[1:])
    if argv[:1] == ["sharded"]:
        return predict_sharded(argv[1:])
    args = parser().parse_args(argv)
    for path in (args.json, args.markdown, args.plot):
        if path:
            path.parent.mkdir(parents=True, exist_ok=True)
    try:
        if args.graphs:
            names = list(BENCHMARKS) if args.benchmark == "all" else [args.benchmark]
            for name in names:
                workloads(name, args, options(args))
    except ValueError as error:
        parser().error(str(error))
    document = measure_all(args)
    write(document, args)
    if args.plot:
        save(document, args.plot)
    print(render(document))
    return 1 if document["failures"] else 0


if __name__ == "__main__":
    sys.exit(main())
