"""What README and RESULTS.md say of the stored results: tables of medians and their ratios."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

from ..harness import geometric_mean
from . import peers, table_tiles
from .table import Record, cell, gpu_programs, markdown, number, over_scipy, over_scipy_means

Document = dict[str, Any]
Stored = dict[str, Document]  # by "device/benchmark"

GPU, CPU = "nvidia-h200", "cpu"  # those of README
INSIDE = "jaxspv, inside jit"
NAMES = {"bfs": "BFS", "sssp": "SSSP", "pagerank": "PageRank", "components": "components"}
GRADIENTS = ("vector", "values", "both")


def readme(stored: Stored) -> str:
    """The block of README: one table of a GPU and a bullet each on CPUs, gradients, method."""
    columns = ("bfs", "sssp", "pagerank")
    heads = ["graph (stored entries)"]
    for name in columns:
        heads += [f"[{NAMES[name]}](benchmarks/results/{GPU}/{name}.md)", "peer"]
    cells = {name: _programs(stored[f"{GPU}/{name}"])[name] for name in columns}
    graphs = [g for g in cells["bfs"] if all(INSIDE in cells[n].get(g, {}) for n in columns)]
    known = list(peers.BEST_MS["bfs"])
    graphs.sort(key=lambda g: (known.index(g) if g in known else len(known), g))
    rows = []
    for graph in graphs:
        entries = cells["bfs"][graph][INSIDE]["entries"]
        row = [f"{_titled(graph)} ({entries / 1e6:.3g}M)"]
        for name in columns:
            _, peer = peers.BEST_MS[name].get(graph, ("", None))
            row += [cell(cells[name][graph][INSIDE]), peer]
        rows.append(row)
    environment = stored[f"{GPU}/bfs"]["runs"][-1]
    versions = environment["versions"]
    head = (
        f"Milliseconds per run inside one jitted program on one {environment['device']} (Python "
        f"{versions['python']}, JAX {versions['jax']}; host's clock; `*`: a single run). Peer: the "
        "fastest program that we know of, with the same graph on such a GPU "
        "(BLEST, doubleGraph, GSWITCH, ADDS; November 2026). R-MAT graphs have 44 edges per "
        "vertex. PageRank runs to an L1 change of 1e-6."
    )
    return "\n\n".join([head, markdown(heads, rows), "\n".join(_bullets(stored))])


def _bullets(stored: Stored) -> list[str]:
    """Speed on CPUs, what gradients cost, how it was measured."""
    both = _over_forward(stored[f"{GPU}/gradients"], ("prepared, gradient by both",))
    paths = _over_forward(stored[f"{GPU}/gradients"], ("sssp, gradient by weights, inside jit",))
    cpu = [f"prepared, gradient by {what}" for what in GRADIENTS]
    here = _over_forward(stored[f"{CPU}/gradients"], cpu)
    return [
        "- Speed on one thread of a CPU inside jit (SpGEMM: called), SciPy's compiled code = 1 "
        "(above 1: jaxspv is faster), [geometric means](benchmarks/results/"
        f"{CPU}/over_scipy.md): {_on_cpus(stored)}.",
        f"- Time of a gradient, forward pass = 1: a product by values and vector {_span(both)} "
        f"(GPU); shortest paths by lengths {_span(paths)} (GPU); a product by values, vector or "
        f"both {_span(here)} (CPU).",
        "- Method: every result is verified before it is timed; all programs of a table take turns "
        "in one process; each run starts from the result of the run before, so that none can be "
        "skipped. [All tables](benchmarks/RESULTS.md) name the command and the commit of each "
        "number; the [protocol](benchmarks/README.md) has the details.",
    ]


def _on_cpus(stored: Stored) -> str:
    """`BFS 2.6, SSSP 1.9 (29 graphs, the CPU)`."""
    document = stored[f"{CPU}/over_scipy"]
    speeds = over_scipy(document["records"])
    ours = {name: s.get(INSIDE, s["jaxspv"]) for name, s in speeds.items()}
    means = ", ".join(f"{name} {number(geometric_mean(s))}" for name, s in ours.items())
    return f"{means} ({max(map(len, ours.values()))} graphs, {document['runs'][-1]['device']})"


def results(stored: Stored) -> str:
    """RESULTS.md: a section a benchmark and device, with its commands, clock and main table."""
    parts = [
        "# Results",
        "Times are milliseconds by the host's clock unless a heading says otherwise; `*`: a single "
        "run. The command and commit of each table stand below it. The [protocol](README.md) says "
        "how they were taken and names the graphs, [NOTES.md](NOTES.md) what was learnt. This page "
        "is written by `python -m benchmarks report` from the JSON files in `results/`.",
    ]
    parts += [f"## {stored[f'{GPU}/bfs']['runs'][-1]['device']}", *_of_gpu(stored)]
    document = stored[f"{CPU}/over_scipy"]
    parts += [f"## CPU: {document['runs'][-1]['device']}"]
    means = over_scipy_means(document["records"])
    parts += _section(stored, CPU, "over_scipy", "Speed over SciPy on one thread", means)
    gradients = _gradients(stored[f"{CPU}/gradients"])
    parts += _section(stored, CPU, "gradients", "Gradients", gradients)
    parts += _section(stored, CPU, "mxm", "Sparse times sparse", None)
    parts += _section(stored, CPU, "yang2015", "Yang, Wang, Owens 2015", None)
    return "\n\n".join(parts) + "\n"


def _of_gpu(stored: Stored) -> list[str]:
    """The sections of the GPU: of the benchmarks that are stored for it."""
    products = ("jaxspv", "jaxspv, bare CSR", "jaxspv min_plus")
    wanted = [*(f"{p}, inside jit" for p in products), "cuSPARSE, in a row"]
    tables: dict[str, tuple[str, Callable[..., Any] | None]] = {
        **{k: (f"{v}: one launch", functools.partial(_searches, k)) for k, v in NAMES.items()},
        "gpu_programs": ("Programs of others, sums of kernel times", _beside_programs),
        "spmv": ("SpMV inside a program", functools.partial(_times, wanted=wanted)),
        "tuples": ("Products of tuples", _times),
        "gradients": ("Gradients", _gradients),
        "tiles": ("SpMSpV: speed over cuSPARSE SpMV", _clocks),
        "mxm": ("Sparse times sparse", _times),
        "spmm": ("Sparse times dense", None),
        "attention": ("Attention", None),
        "fixpoint": ("Loops of your own", _fixpoint),
        "launches": ("A step of PageRank (us)", _steps),
        "tilebfs": ("BFS over bitmask tiles", _times),
        "yang2015": ("Yang, Wang, Owens 2015", None),
        "loops": ("Steps of XLA loops", None),
        "generate": ("Generating", _times),
    }
    parts = []
    for name, (title, table) in tables.items():
        if document := stored.get(f"{GPU}/{name}"):
            parts += _section(stored, GPU, name, title, table and table(document))
    return parts


def _section(stored, device, name, title, table):
    """A heading, the table, the link to all of it, the commands with their commits."""
    runs = stored[f"{device}/{name}"]["runs"]
    commands = [f"- `{r['command']}`, commit {r['commit']}, {r['date'][:10]}" for r in runs]
    link = f"All of it: [results/{device}/{name}.md](results/{device}/{name}.md)"
    body = [] if table is None else [markdown(*table)]
    return [f"### {title}", *body, f"{link}. Measured by:", "\n".join(commands)]


def _programs(document: Document) -> dict[str, dict[str, dict[str, Record]]]:
    """Benchmark -> case (or graph) -> program -> record, newest runs first."""
    found: dict[str, dict[str, dict[str, Record]]] = {}
    for record in sorted(document["records"], key=lambda r: -r["run"]):
        cases = found.setdefault(record["benchmark"], {})
        cases.setdefault(record.get("case", record["graph"]), {})[record["program"]] = record
    return found


def _titled(graph: str) -> str:
    """A graph's name for people: R-MAT 18, Delaunay 2^21, grid 1000 x 1000."""
    for pattern, text in (
        (r"rmat(\d+)", r"R-MAT \1"),
        (r"delaunay(\d+)", r"Delaunay 2^\1"),
        (r"grid(\d+)", r"grid \1 x \1"),
    ):
        if re.fullmatch(pattern, graph):
            return re.sub(pattern, text, graph)
    return graph


def _searches(name, document):
    """Times of one algorithm, with the fastest peer."""
    programs = (INSIDE, "jaxspv, no parents, inside jit", "jaxspv", "jaxspv, no parents")
    cases = _programs(document)[name]
    used = [p for p in programs if any(p in row for row in cases.values())]
    rows = []
    for graph, row in cases.items():
        peer, ms = peers.BEST_MS.get(name, {}).get(graph, ("", None))
        entries = next(iter(row.values()))["entries"]
        rows.append([graph, entries, *(cell(row.get(p)) for p in used), ms, peer])
    return ["graph", "entries", *used, "fastest peer", "which"], rows


def _times(document, wanted=None):
    """Medians of all programs of a benchmark, or of those wanted."""
    (cases,) = _programs(document).values()
    programs = wanted or list(dict.fromkeys(p for row in cases.values() for p in row))
    rows = [
        [case, next(iter(row.values()))["entries"], *(cell(row.get(p)) for p in programs)]
        for case, row in cases.items()
    ]
    return ["graph", "entries", *programs], rows


def _beside_programs(document):
    """How many times as fast as programs of others each algorithm is."""
    return gpu_programs(document["records"])[1]


def _clocks(document):
    """Speed of `auto` over cuSPARSE by density, in each of the clocks."""
    records = [r for r in document["records"] if r["benchmark"] == "tiles: SpMSpV"]
    rows: dict[str, list[Any]] = {}
    for key in table_tiles.CLOCKS:
        heads, body = table_tiles.summary(records, key)
        for row in body:
            rows.setdefault(row[0], [row[0]]).append(row[heads.index("auto")])
    heads = ["density", "host's clock", "one more product, profile", "kernels alone, profile"]
    return heads, list(rows.values())


def _gradients(document):
    """Milliseconds of the forward pass, and what each gradient takes in times of it."""
    rows: dict[tuple[str, str], dict[str, Record]] = {}
    cases = _programs(document)["gradients"]
    for graph, programs in cases.items():
        for program, record in programs.items():
            of, _, what = program.removesuffix(", inside jit").partition(", ")
            of += ", inside jit" * program.endswith(", inside jit")
            rows.setdefault((graph, of), {})[what] = record
    by = [f"gradient by {what}" for what in (*GRADIENTS, "weights")]
    body = [
        [f"{graph} {of}", cell(r.get("forward")), *(r.get(k, {}).get("over_forward") for k in by)]
        for (graph, of), r in rows.items()
    ]
    return ["", "forward (ms)", *(f"{k} (over forward)" for k in by)], body


def _over_forward(document: Document, programs) -> list[float]:
    """Of medians alone: what took too long has a single run."""
    found = [r for r in document["records"] if r["program"] in programs and r["runs"] > 1]
    return [r["over_forward"] for r in found]


def _span(values: list[float]) -> str:
    return f"{min(values):.1f} to {max(values):.1f}"


def _fixpoint(document):
    """Loops through `fixpoint` over the built-in ones."""
    cases = _programs(document)["fixpoint"]
    rows = []
    for case, row in cases.items():
        own, built_in = row.get("fixpoint"), row.get("built in")
        ratio = own["median_ms"] / built_in["median_ms"] if own and built_in else None
        rows.append([case, cell(built_in), cell(own), ratio])
    return ["case", "built in", "fixpoint", "ratio"], rows


def _steps(document):
    """Microseconds a step on small dense graphs."""
    cases = _programs(document)["launches"]
    programs = list(dict.fromkeys(p for row in cases.values() for p in row))
    rows = [
        [case, *(row[p]["us_a_step"] if p in row else None for p in programs)]
        for case, row in cases.items()
    ]
    return ["graph", *programs], rows
