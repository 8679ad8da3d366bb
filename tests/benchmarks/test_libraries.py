"""One question in every library: all are asked, and all agree."""

import json

import pytest

from benchmarks.__main__ import main


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
