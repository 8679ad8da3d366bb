"""Algorithms beside igraph, SciPy and python-graphblas on the same host: `benchmarks compiled`.

Ours is timed twice, called eagerly and as one jitted program; the libraries, each in a process of
its own that may take `LIMIT_S`, run their routine once. Answers are compared after the clocks have
stopped, since a library's checks ours; sets and forests are also held to what they must be.
"""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np
import scipy.sparse as sp

import jaxspv as jsp
from jaxspv import verify

from ..harness import Candidate, WrongResult, blocking, jitted, measure, summary
from ..options import Options
from ..suite import Workload
from .peers import LIBRARIES, sources_of

LIMIT_S = 120  # of a library on one graph, all algorithms together
MOST_VERTICES = 5_000  # from which closeness of every vertex is left out but on these graphs
CLOSENESS = ("rmat18", "coAuthorsDBLP")
QUALITY = 0.03  # by which a modularity may be lower than another heuristic's
ROOT = pathlib.Path(__file__).resolve().parents[2]


class Case(NamedTuple):
    """One question.

    Attributes:
        ours: `ours(graph) -> result`.
        same: `same(matrix, result, answer)` raises AssertionError where a library disagrees.
        check: `check(matrix, result)` the same by itself, or None.
        peer: what the libraries call it, if that is another name.
    """

    ours: Callable[[Any], Any]
    same: Callable[[Any, Any, Any], None]
    check: Callable[[Any, Any], None] | None = None
    peer: str | None = None


def _equal(of: Callable[[Any], Any], rtol: float = 0, atol: float = 0) -> Callable[..., None]:
    """Compares `of(result)` with the answer of a library."""

    def same(matrix, result, answer):
        del matrix
        np.testing.assert_allclose(np.asarray(of(result)), answer, rtol=rtol, atol=atol)

    return same


def _betweenness(G):
    sources = sources_of(G.n)
    return jsp.betweenness_centrality(G, sources, normalized=False, directed=True)


def _same_betweenness(matrix, result, answer):
    """Ours are estimates of sums over every source: scaled back to those over the chosen ones."""
    sources = sources_of(matrix.shape[0])
    n, k = matrix.shape[0], len(sources)
    factor = np.full(n, (n - 1) / k)
    factor[sources] = (n - 1) / (k - 1)
    got = np.asarray(result.scores, np.float64) / factor
    np.testing.assert_allclose(got, answer, rtol=2e-3, atol=1e-4 * np.max(answer))


def _same_closeness(matrix, result, answer):
    got = np.asarray(result.scores)[sources_of(matrix.shape[0])]
    np.testing.assert_allclose(got, np.nan_to_num(answer), rtol=1e-5)


def _as_good(matrix, result, answer):
    del matrix
    assert float(result.modularity) >= answer - QUALITY, f"{result.modularity}, others {answer}"


def _independent(matrix, result, answer):
    """Another set: it must be one too."""
    del result
    verify.independent_set(matrix, jsp.results.IndependentSet(answer, np.sum(answer), 0))


CASES = {
    "betweenness of 64 sources": Case(_betweenness, _same_betweenness),
    "triangles": Case(jsp.triangle_count, _equal(lambda r: r.count)),
    "core numbers": Case(jsp.core_number, _equal(lambda r: r.cores)),
    "strong components": Case(
        jsp.strongly_connected_components, _equal(lambda r: r.count), verify.strong_components
    ),
    "spanning forest": Case(
        jsp.minimum_spanning_forest, _equal(lambda r: r.total, 1e-5), verify.forest
    ),
    "Louvain": Case(lambda G: jsp.louvain(G, weighted=False), _as_good),
    "independent set": Case(
        lambda G: jsp.maximal_independent_set(jax.random.key(0), G),
        _independent,
        verify.independent_set,
    ),
    "closeness of every vertex": Case(
        lambda G: jsp.closeness_centrality(G, wf_improved=False),
        _same_closeness,
        peer="closeness of 64 vertices",
    ),
}


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph: a case for each algorithm."""
    given = inputs(workload)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        peers = started(given, folder) if options.baselines else {}
        end = time.monotonic() + LIMIT_S
        mine = [ours(label, given, options) for label in asked(given)]
        answers = {library: answered(*job, folder, end) for library, job in peers.items()}
        return [record for one in mine for record in with_peers(*one, answers)]


class Inputs(NamedTuple):
    """A graph as it is stored, joined with its mirror and weighted, and both as ours take them."""

    name: str
    A: sp.csr_array
    B: sp.csr_array
    directed: jsp.Graph
    undirected: jsp.Graph


def inputs(workload: Workload) -> Inputs:
    """What every algorithm is asked about."""
    A, B = workload.matrix(), workload.symmetrised().weighted()
    directed = jsp.prepare(jsp.from_scipy(A), for_=())
    undirected = jsp.prepare(jsp.from_scipy(B), for_=("bfs",), symmetric=True)
    return Inputs(workload.name, A, B, directed, undirected)


def asked(given: Inputs) -> list[str]:
    """The algorithms for this graph."""
    every = given.name in CLOSENESS or given.B.shape[0] <= MOST_VERTICES
    return [label for label in CASES if every or not label.startswith("closeness")]


def ours(
    label: str, given: Inputs, options: Options
) -> tuple[str, sp.csr_array, list[Any], list[dict[str, Any]]]:
    """(algorithm, matrix it is asked about, results, records) of jaxspv.

    The results are those of the last timed call of each program: a loop that goes wrong only when
    it is run again would pass where the first alone is looked at.
    """
    case = CASES[label]
    stored = label == "strong components"
    matrix, graph = (given.A, given.directed) if stored else (given.B, given.undirected)
    programs = {
        "jaxspv": blocking(case.ours, graph),
        "jaxspv, inside jit": blocking(jitted(case.ours), graph),
    }
    last: dict[str, Any] = {}

    def remembered(name):
        def call():
            last[name] = programs[name]()
            return last[name]

        return call

    candidates = [Candidate(name, remembered(name), lambda _: None) for name in programs]
    records = measure(candidates, **options.timing())
    for name, result in last.items():
        try:
            if case.check is not None:
                case.check(matrix, result)
        except AssertionError as error:
            raise WrongResult(f"{name}, {label}: {error}") from error
    for record in records:
        record.update(n=matrix.shape[0], entries=matrix.nnz, case=f"{given.name} {label}")
    return label, matrix, list(last.values()), records


def started(given: Inputs, folder: pathlib.Path) -> dict[str, Any]:
    """A process and its file of lines for each library; one that is not installed tells nothing."""
    for message, matrix in (("A", given.A), ("B", given.B)):
        sp.save_npz(folder / f"{message}.npz", matrix, compressed=False)
    found = {}
    for library in LIBRARIES:
        lines = folder / f"{library}.jsonl"
        command = [sys.executable, "-m", "benchmarks.compiled.peers", library, str(folder)]
        with lines.open("w") as file:
            process = subprocess.Popen(
                command, stdout=file, stderr=subprocess.PIPE, text=True, cwd=ROOT
            )
        found[library] = (process, lines)
    return found


def answered(
    process: subprocess.Popen, lines: pathlib.Path, folder: pathlib.Path, end: float
) -> dict[str, tuple[float, Any]]:
    """(seconds, answer) of each algorithm that was done in time."""
    try:
        process.communicate(timeout=max(end - time.monotonic(), 0.01))
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    found = {}
    for line in map(json.loads, lines.read_text().splitlines()):
        answer = np.load(folder / line["file"]) if "file" in line else line["answer"]
        found[line["name"]] = (line["seconds"], answer)
    return found


def with_peers(
    label: str,
    matrix: sp.csr_array,
    results: list[Any],
    records: list[dict[str, Any]],
    answers: dict[str, Any],
) -> list[dict[str, Any]]:
    """The records of one algorithm, and one for each library that answered as we did."""
    case, found = CASES[label], list(records)
    for library, sent in answers.items():
        if (case.peer or label) not in sent or not results:
            continue
        seconds, answer = sent[case.peer or label]
        try:
            for result in results:
                case.same(matrix, result, answer)
        except AssertionError as error:
            raise WrongResult(f"{library}, {label}: {error}") from error
        program = library if case.peer is None else f"{library}, {case.peer}"
        where = {key: records[0][key] for key in ("n", "entries", "case")}
        found.append(summary(program, [seconds], seconds) | where)
    return found
