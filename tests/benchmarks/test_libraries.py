"""One question in every library: all are asked, and all agree; the table beside SciPy."""

import json

import numpy as np
import pytest
import scipy.sparse as sp

from benchmarks import suite
from benchmarks.__main__ import main
from benchmarks.compiled import over_scipy
from benchmarks.compiled.run import CASES
from benchmarks.harness import WrongResult, measure
from benchmarks.options import Options
from benchmarks.report import table, write


@pytest.mark.long
def test_libraries_answer_the_same_questions(tmp_path):
    pytest.importorskip("graphblas")
    out = tmp_path / "out.json"
    assert main(["libraries", "--graphs", "delaunay7", "--runs", "2", "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    assert not document["failures"]
    asked = {(r["question"], r["program"]) for r in document["records"]}
    for question in ("product", "BFS", "shortest paths", "PageRank", "triangles"):
        assert {(question, "jaxspv"), (question, "python-graphblas")} <= asked
    assert ("product", "BCOO") in asked and ("triangles", "NetworkX") in asked


@pytest.mark.long
def test_compiled_libraries_agree_with_every_algorithm(tmp_path):
    pytest.importorskip("graphblas")
    out = tmp_path / "out.json"
    assert main(["compiled", "--graphs", "delaunay7", "--runs", "2", "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    assert not document["failures"]
    sent = {(r["case"].removeprefix("delaunay7 "), r["program"]) for r in document["records"]}
    for case in CASES:
        assert {(case, "jaxspv"), (case, "jaxspv, inside jit")} <= sent
    assert ("strong components", "SciPy") in sent and ("triangles", "python-graphblas") in sent


def test_every_operation_is_compared_and_timed():
    workload = suite.get("rmat8")
    records = over_scipy.run(workload, Options(runs=1))
    by_case = {}
    for record in records:
        by_case.setdefault(record["case"], []).append(record["program"])
    names = over_scipy.operations(over_scipy.graph("rmat8"))
    assert list(by_case) == [f"rmat8 {name}" for name in names] and len(names) == 11
    for case, programs in by_case.items():
        assert {"SciPy", "jaxspv"} <= set(programs), case
        assert ("jaxspv, inside jit" in programs) == (not case.endswith("SpGEMM"))
    assert all(r["entries"] > 0 and r["verified"] for r in records)


def test_a_wrong_answer_is_not_timed():
    A = sp.csr_array(np.eye(4, dtype=np.float32))
    operation = over_scipy.operations(A)["SpMV"]._replace(of=lambda y: np.asarray(y) + 1)
    with pytest.raises(WrongResult, match="jaxspv"):
        measure(over_scipy.candidates("SpMV", operation, {}), runs=1)


def records_of(times):
    return [
        {"benchmark": "over_scipy", "case": f"{g} {o}", "program": p, "median_ms": ms, "runs": 3}
        | {"entries": 5, "run": 0}
        for (g, o, p), ms in times.items()
    ]


def test_means_are_of_the_graphs_of_an_operation():
    jit = "jaxspv, inside jit"
    times = {("a", "BFS", "SciPy"): 4.0, ("a", "BFS", "jaxspv"): 2.0, ("a", "BFS", jit): 1.0}
    times |= {("b", "BFS", "SciPy"): 9.0, ("b", "BFS", "jaxspv"): 9.0, ("b", "BFS", jit): 9.0}
    times |= {("a", "strong components", "SciPy"): 6.0, ("a", "strong components", "jaxspv"): 2.0}
    heads, rows = table.over_scipy_means(records_of(times))
    assert heads == ["operation", "jaxspv", jit, "least of ours", "graphs"]
    assert rows[0] == ["BFS", pytest.approx(2**0.5), pytest.approx(2.0), 1.0, 2]
    assert rows[1] == ["strong components", pytest.approx(3.0), None, 3.0, 1]


def test_times_of_a_busy_host_are_not_stored(tmp_path, capsys):
    environment = {"platform": "cpu", "device": "x", "load": [1.5, 1.0, 1.0]}
    document = {"environment": environment, "records": [], "failures": []}
    assert "1.5" in write.too_busy(document)
    assert write.too_busy({"environment": environment | {"load": [0.4, 9.0, 9.0]}}) is None
    assert write.too_busy({"environment": environment | {"platform": "gpu"}}) is None
    path = tmp_path / "run.json"
    path.write_text(json.dumps(document))
    with pytest.raises(SystemExit):
        write.main(["--add", str(path)])
    assert "load" in capsys.readouterr().err
