"""Shipped as the top-level module `_jaxspv_command`: the command line as far as it needs no JAX.

Importing anything of jaxspv imports JAX, which takes a second. So words are parsed here:
`--version`, `--help` and typing errors need no more, and `cli/commands.py` runs what is asked for.
"""

import argparse
import importlib.metadata
import json
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

GRAPHS = """FILE is a path (.mtx, .npz; a list of edges: .csv, .tsv, .txt, .parquet; text also .gz),
a bundled graph (karate, jazz, minnesota, delaunay_n13), a public one that is loaded once (such
as SNAP/wiki-Vote, see `jsp.datasets.names()`), or a generator with its sizes:
  rmat:SCALE[:EDGE_FACTOR]    2^SCALE vertices, EDGE_FACTOR (16) edges each before joining
  grid:SIDE[:DROP]            SIDE x SIDE, the share DROP of the edges left out
  delaunay:SCALE              2^SCALE points
  erdos_renyi:N:P             N vertices, every edge with probability P"""


def _flag(text: str) -> dict[str, Any]:
    return {"action": "store_true", "help": text}


def _number(kind: type, text: str, default: Any = None) -> dict[str, Any]:
    return {"type": kind, "help": text, "default": default}


OPTIONS: dict[str, dict[str, Any]] = {  # one that is None is left to the function that it is for
    "file": {"metavar": "FILE", "help": "a graph, see below"},
    "[file]": {"metavar": "FILE", "help": "a graph, see below", "nargs": "?"},
    "out": {
        "metavar": "OUT",
        "help": "path: .mtx, .mtx.gz, .npz (keeps --format), or a list of edges",
    },
    "start": {"metavar": "A", "help": "the first vertex"},
    "end": {"metavar": "B", "help": "the last vertex"},
    "--json": _flag("one line of JSON on stdout"),
    "--verbose": _flag("how it was computed, or all that was measured, too"),
    "--format": {"default": "csr", "help": "storage: coo, csr (by default), csc, ell, sell, tiled"},
    "--seed": _number(int, "of what is random", 0),
    "--columns": {
        "metavar": "FROM,TO[,WEIGHT]",
        "help": "of a list of edges, by name or number from 0; 0,1 by default",
    },
    "--labels": _flag("a list of edges holds names; so does what is written"),
    "--backend": {"choices": ("pallas", "cpu", "xla"), "help": "the fastest by default"},
    "--repeat": _number(int, "timed calls after the first", 5),
    "--method": {"help": "name of an implementation; chosen by default"},
    "--output": {"metavar": "OUT", "help": "write what was found: .npz, .csv, .tsv, .parquet"},
    "--source": {"help": "vertex; that of largest out-degree by default"},
    "--damping": _number(float, "0.85 by default"),
    "--tol": _number(float, "L1 change to stop at, 1e-6 by default"),
    "--max-iterations": _number(int, "100 by default"),
    "--top": _number(int, "vertices to list", 5),
    "--undirected": _flag("take every edge in both directions"),
    "--sources": _number(int, "how many, drawn by --seed; at most 256 by default"),
    "--hops": _flag("every edge counts 1, whatever it holds"),
}
PRINTED = "--json --verbose"
OPENED = f"--format --seed --columns --labels {PRINTED}"
TIMED = f"file {OPENED} --backend --repeat"
ONE = f"{TIMED} --method --output"
COMMANDS = {  # name -> what it does, its options
    "info": (
        "Shape, entries, symmetry and row lengths of a matrix. Without FILE: what is installed.",
        f"[file] {OPENED}",
    ),
    "convert": ("Write a matrix to another file.", f"file out {OPENED}"),
    "bfs": ("Breadth-first search: levels from a source.", f"{ONE} --source"),
    "sssp": ("Shortest paths from a source along the stored weights.", f"{ONE} --source"),
    "pagerank": ("PageRank of every vertex.", f"{ONE} --damping --tol --max-iterations --top"),
    "components": ("Weakly connected components and their sizes.", f"{ONE} --undirected"),
    "triangles": ("The number of triangles.", f"{ONE} --undirected"),
    "core": (
        "Core numbers: the degeneracy and how many vertices have which.",
        f"{ONE} --undirected",
    ),
    "louvain": ("Communities by Louvain's method and their modularity.", f"{ONE} --undirected"),
    "betweenness": (
        "Vertices that most shortest paths pass.",
        f"{ONE} --undirected --sources --top",
    ),
    "path": ("A shortest path from one vertex to another.", f"{ONE} start end --undirected --hops"),
    "tune": (
        "Measure constants of kernels on this GPU, in some minutes, and store them for later "
        "processes.",
        PRINTED,
    ),
    "bench": ("Verified times of SpMV, BFS, SSSP and PageRank.", f"{TIMED} --source"),
}


class _Refused(Exception):
    """Wrong arguments; its text is the one line to print."""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line, without the usage."""

    def error(self, message: str) -> NoReturn:
        raise _Refused(f"{message} (see {self.prog} --help)")


def _parser() -> argparse.ArgumentParser:
    how: dict[str, Any] = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    text = "Sparse matrices and graphs on JAX."
    parser = _Parser(prog="jaxspv", description=text, epilog=GRAPHS, **how)
    version = _version()
    parser.set_defaults(version=version)
    parser.add_argument("--version", action="version", version=f"jaxspv {version}")
    commands = parser.add_subparsers(
        required=True, metavar="COMMAND", dest="command", parser_class=_Parser
    )
    for name, (text, options) in COMMANDS.items():
        graphs = GRAPHS if "file" in options else None
        sub = commands.add_parser(name, help=text, description=text, epilog=graphs, **how)
        for option in options.split():
            sub.add_argument(option.strip("[]"), **OPTIONS[option])
    return parser


def _version() -> str:
    """That of the installed package."""
    try:
        return importlib.metadata.version("jaxspv")
    except importlib.metadata.PackageNotFoundError:  # run from a tree that is not installed
        return "(not installed)"


def main(argv: Sequence[str] | None = None) -> int:
    """The entry point `jaxspv`: runs one command.

    Returns:
        The exit code: 0; 1 where a result failed (a negative cycle, overflow, a wrong answer); 2
        for bad input. Errors are one line on stderr.
    """
    args = None
    try:
        args = _parser().parse_args(argv)
        from jaxspv.cli import commands

        report = commands.run(args, alone=argv is None)
    except (_Refused, ValueError, OSError, ImportError, NotImplementedError) as error:
        print(f"jaxspv: error: {_error_line(error, args)}", file=sys.stderr)
        return 2
    failed = report.pop("failed", None)
    if failed:  # before numbers that mean nothing then
        print(f"jaxspv: failed: {failed}", file=sys.stderr, flush=True)
    try:
        if args.json:
            print(json.dumps(report))
        else:
            commands.show(report, verbose=args.verbose)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader has ended, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 1 if failed else 0


def _error_line(error: Exception, args: argparse.Namespace | None) -> str:
    """An error as one line, with its file and the option that helps."""
    text = " ".join(str(error).split())
    if "symmetric pattern" in text and not getattr(args, "undirected", True):
        text += " The option --undirected does so."
    file = getattr(args, "file", None)
    return text if not file or file in text or "`--" in text else f"{file}: {text}"
