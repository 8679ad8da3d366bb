"""Algorithms beside GPU programs of others, both sides by the sum of kernel times in a profile.

`python -m benchmarks gpu_programs` with the folder of their binaries in JAXSPV_GPU_PROGRAMS: `cc`,
`kcore`, `mst`, `mis`, `gc`, `tc`, `louvain`, and `libinject.so`, which writes the kernels of a CUDA
program to a file (CUPTI). Each reads a graph from a file, computes several times, says which
kernels belong to which computation ("start end label" in the file KERNEL_MARKS) and prints its
answer, which must be ours where it is unique. Without that folder ours run alone. "jaxspv, call" is
one call of a jitted program by the host's clock.
"""

from __future__ import annotations

import functools
import math
import os
import pathlib
import re
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxspv as jsp
from jaxspv import verify

from ..harness import Candidate, alone, blocking, jitted, measure
from ..options import Options
from ..suite import GENERATED, Workload
from ..timeline import timeline

LIMIT_S = 60  # of a program on one graph
CALLS = 3  # in a profile
WARM_S = 0.2  # of calls before it, so that clocks have risen, as the programs do
Answer = dict[str, float]
ORIENTED = {"GroupTC_OPT": "RidDcsr", "GroupTC": "RidDcsr", "Polak": "Dcsr", "TriCore": "Dcsr"}


class Case(NamedTuple):
    """One algorithm.

    Attributes:
        program: the binary that computes it too.
        ours: `ours(graph) -> result`.
        answer: numbers of the result, by the names that the program prints.
        check: `check(matrix, result)` raises AssertionError, or None.
        unique: whether the answer is.
    """

    program: str
    ours: Callable[[Any], Any]
    answer: Callable[[Any], Answer]
    check: Callable[[Any, Any], None] | None = None
    unique: bool = True


def _louvain(G):
    return jsp.louvain(G, weighted=False)


def _set(G):
    return jsp.maximal_independent_set(jax.random.key(0), G)


CASES = {
    "triangles": Case("tc", jsp.triangle_count, lambda r: {"count": int(r.count)}),
    "core numbers": Case(
        "kcore", jsp.core_number, lambda r: {"sum": int(np.asarray(r.cores, np.int64).sum())}
    ),
    "components": Case("cc", jsp.connected_components, lambda r: {"count": int(r.count)}),
    "spanning forest": Case(
        "mst", jsp.minimum_spanning_forest, lambda r: {"total": float(r.total)}, verify.forest
    ),
    "Louvain": Case(
        "louvain", _louvain, lambda r: {"modularity": float(r.modularity)}, unique=False
    ),
    "independent set": Case(
        "mis", _set, lambda r: {"size": int(r.count)}, verify.independent_set, unique=False
    ),
    "colours": Case(
        "gc",
        jsp.greedy_color,
        lambda r: {"colors": int(np.max(np.asarray(r.colors))) + 1},
        verify.coloring,
        unique=False,
    ),
}


def run(workload: Workload, options: Options) -> list[dict[str, Any]]:
    """Records of one graph; `options.cases` names some of the algorithms."""
    undirected = GENERATED.fullmatch(workload.name)
    matrix = (workload if undirected else workload.symmetrised()).weighted()
    matrix.sort_indices()
    graph = jsp.prepare(jsp.from_scipy(matrix), for_=("bfs",), symmetric=True)
    where = os.environ.get("JAXSPV_GPU_PROGRAMS")
    found = []
    with tempfile.TemporaryDirectory() as name:
        path = pathlib.Path(name) / f"{workload.name}.egr"
        for label in options.cases or CASES:
            case = CASES[label]
            records, answer = ours(case, matrix, graph, options)
            if where and options.baselines:
                write(path, matrix, triangles=case.program == "tc")
                run_once = functools.partial(theirs, pathlib.Path(where), path, case, answer)
                records += run_once() or run_once()  # some end before their kernels are written
            size = {"n": len(matrix.indptr) - 1, "entries": matrix.nnz}
            found += [{**r, **size, "case": f"{workload.name} {label}"} for r in records]
    return found


def ours(case: Case, matrix, graph, options: Options) -> tuple[list[dict[str, Any]], Answer]:
    """Records of jaxspv, and its answer."""
    call = blocking(jitted(case.ours), graph)
    result = call()
    if case.check is not None:
        case.check(matrix, result)
    answer = case.answer(result)

    def verified(result):
        assert not case.unique or case.answer(result) == answer, "another answer"

    records = measure([Candidate("jaxspv, call", call, verified)], **options.timing())
    with alone():
        until = time.monotonic() + WARM_S
        while time.monotonic() < until:
            call()
        events = timeline(lambda: [call() for _ in range(CALLS)])
    kernels = sum(took for _, _, took in events) / 1e3 / CALLS
    if events:
        records.insert(0, {**records[0], **_record("jaxspv", [kernels] * CALLS)})
    return [record | answer for record in records], answer


def theirs(folder: pathlib.Path, path, case: Case, ours_: Answer) -> list[dict[str, Any]]:
    """Records of the programs in one binary that gave the same answer, if that is unique."""
    lists = [path.with_suffix(".kernels"), path.with_suffix(".marks")]
    for file in lists:
        file.unlink(missing_ok=True)
    names = dict(zip(("KERNEL_TIMES", "KERNEL_MARKS"), map(str, lists), strict=True))
    injected = {"CUDA_INJECTION64_PATH": str(folder / "libinject.so")}
    command = [str(folder / case.program), str(path)]
    if case.program == "tc":
        command = [command[0], str(folder / "tc.ini"), str(path.with_suffix(".tc"))]
    with alone():
        try:
            out = subprocess.run(
                command,
                env=os.environ | names | injected,
                capture_output=True,
                text=True,
                timeout=LIMIT_S,
                check=False,
            ).stdout
        except subprocess.TimeoutExpired as error:
            out = (error.stdout or b"").decode()
    times = kernel_times(*lists) if all(file.exists() for file in lists) else {}
    found = []
    for line in out.splitlines():
        words = line.split()
        if len(words) < 4 or words[0] == "triangles-prepare":
            continue
        label = words[2].replace("GroupTC-", "GroupTC_").replace("-V2", "_V2")
        answer = {k: float(v) for k, v in re.findall(r"(\w+)=([-+.\de]+)", line)}
        samples = times.get(label) or times.get(words[2])
        if not samples:
            continue
        same = all(math.isclose(answer.get(k, math.nan), v, rel_tol=1e-6) for k, v in ours_.items())
        if case.unique and not same:  # a float32 total may be rounded
            print(f"other answer: {line}, ours {ours_}", flush=True)
            continue
        record = _record(words[2], samples)
        if case.program == "tc":  # all iterations together; the orientation of the edges too
            each, (orient, *_) = answer["runs"], times[ORIENTED.get(label, "TrustDcsr")][::-1]
            record = _record(words[2], [samples[-1] / each + orient])
            record |= {"orient_ms": orient}
        own = {"own_ms": float(words[3])}
        found.append(record | own | {k: answer[k] for k in ours_ if k in answer})
    return found


def kernel_times(kernels: pathlib.Path, marks: pathlib.Path) -> dict[str, list[float]]:
    """ms of all kernels and memsets within each computation that has some, by its label."""
    table = [line.split(maxsplit=2)[:2] for line in kernels.read_text().splitlines()]
    start, took = np.array(table, np.int64).reshape(-1, 2).T
    found: dict[str, list[float]] = {}
    for line in marks.read_text().splitlines():
        first, last, label = line.split()
        inside = (start >= int(first)) & (start <= int(last))
        if inside.any():  # not so if it was ended before its kernels were written
            found.setdefault(label, []).append(float(took[inside].sum()) / 1e6)
    return found


def _record(program: str, samples: list[float]) -> dict[str, Any]:
    """A record of times in ms."""
    low, middle, high = min(samples), statistics.median(samples), max(samples)
    return {
        "program": program,
        "median_ms": middle,
        "min_ms": low,
        "max_ms": high,
        "spread": (high - low) / middle if middle else 0.0,
        "runs": len(samples),
        "verified": True,
    }


def write(path: pathlib.Path, matrix, *, triangles: bool) -> None:
    """The files that the programs read: binary CSR, or every edge once from its smaller end."""
    n, ptr, col = matrix.shape[0], matrix.indptr, matrix.indices
    if not triangles and not path.exists():
        with path.open("wb") as file:
            for part in (np.array([n, matrix.nnz]), ptr, col, matrix.data):
                np.ascontiguousarray(part, np.int32).tofile(file)
    if triangles:
        folder = path.with_suffix(".tc")
        folder.mkdir(exist_ok=True)
        row = np.repeat(np.arange(n, dtype=np.uint32), np.diff(ptr))
        up = row < col
        begin = np.zeros(n + 1, np.uint64)
        begin[1:] = np.cumsum(np.bincount(row[up], minlength=n))
        begin.tofile(folder / "begin.bin")
        row[up].tofile(folder / "source.bin")
        col[up].astype(np.uint32).tofile(folder / "adjacent.bin")
