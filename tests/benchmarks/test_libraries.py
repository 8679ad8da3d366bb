"""One question in every library: all are asked, and all agree."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.compiled.run import CASES


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
