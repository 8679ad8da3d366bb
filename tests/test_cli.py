"""The command line: what it prints for people and machines, and how it refuses."""

import json
import pathlib
import re
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
import scipy.sparse.csgraph

import jaxspv as jsp
from jaxspv import verify
from jaxspv._command_line import open_graph, reached_edges
from jaxspv.cli import main

ROOT = pathlib.Path(__file__).parent.parent

pytestmark = pytest.mark.fast


def run(capsys, *words, code=0):
    """The parsed JSON of a command and its error line."""
    assert main([*words, "--json"]) == code
    out, err = capsys.readouterr()
    return json.loads(out) if out else None, err


def test_bfs_for_people(capsys):
    assert main(["bfs", "karate", "--source", "0", "--repeat", "2"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    lines = {line[:20].strip(): line[20:].strip() for line in out.splitlines()}
    assert lines["reached"] == "34" and lines["levels"] == "4" and lines["edges"] == "78"
    for name in ("GTEPS", "time, median ms", "compile ms", "prepare ms"):
        assert float(lines[name]) > 0, name
    for name in ("format", "backend", "method", "plan"):
        assert lines[name]


def test_bfs_for_machines(capsys, tmp_path):
    out = tmp_path / "levels.npz"
    report, _ = run(capsys, "bfs", "karate", "--repeat", "1", "--output", str(out))
    club = nx.karate_club_graph()
    assert report["source"] == max(club, key=club.degree) == 33
    assert (report["vertices"], report["entries"], report["symmetric"]) == (34, 156, True)
    with np.load(out) as saved:
        lengths = nx.single_source_shortest_path_length(club, 33)
        assert saved["levels"].tolist() == [lengths[v] for v in range(34)]
        verify.tree(open_graph("karate", "csr", 0), 33, saved["parents"], saved["levels"] >= 0)
    rate = report["edges"] / report["time_ms"] / 1e6
    assert report["gteps"] == pytest.approx(rate) and report["runs"] == 1


def test_formats_agree(capsys):
    reports = [
        run(capsys, "bfs", "karate", "--repeat", "1", "--format", format)[0]
        for format in ("coo", "csr", "csc")
    ]
    assert len({(r["reached"], r["levels"], r["edges"]) for r in reports}) == 1


def test_sssp(capsys, tmp_path):
    out = tmp_path / "lengths.npz"
    report, _ = run(
        capsys, "sssp", "random:30:0.2", "--seed", "3", "--repeat", "1", "--source", "0",
        "--output", str(out),
    )  # fmt: skip
    A = open_graph("random:30:0.2", "csr", 3).to_scipy()
    want = scipy.sparse.csgraph.dijkstra(A, indices=0)
    with np.load(out) as saved:
        np.testing.assert_allclose(saved["distances"], want, rtol=1e-6)
    assert report["reached"] == np.isfinite(want).sum() and report["converged"]
    assert report["farthest"] == pytest.approx(want[np.isfinite(want)].max(), rel=1e-6)


def test_pagerank(capsys):
    report, _ = run(capsys, "pagerank", "karate", "--repeat", "1", "--top", "3")
    want = nx.pagerank(nx.karate_club_graph(), weight=None, tol=1e-9)
    best = sorted(want, key=want.get, reverse=True)[:3]
    assert [v for v, _ in report["top"]] == best and report["converged"]
    assert [s for _, s in report["top"]] == pytest.approx([want[v] for v in best], rel=1e-3)


def test_bench_times_what_it_verified(capsys):
    report, _ = run(capsys, "bench", "karate", "--repeat", "2")
    assert [row["program"] for row in report["programs"]] == ["spmv", "bfs", "sssp", "pagerank"]
    for row in report["programs"]:
        assert 0 < row["least_ms"] <= row["time_ms"] <= row["most_ms"]


def test_bench_reports_wrong_results(capsys, monkeypatch):
    monkeypatch.setattr(verify, "bfs", lambda *_: (_ for _ in ()).throw(AssertionError("wrong!")))
    report, err = run(capsys, "bench", "karate", "--repeat", "1", code=1)
    assert "bfs: wrong!" in err
    assert "bfs" not in [row["program"] for row in report["programs"]]


def test_negative_cycles_fail(capsys, tmp_path):
    A = jsp.from_edges([0, 1, 2], [1, 2, 0], [1.0, 1.0, -3.0], shape=(3, 3))
    path = tmp_path / "cycle.mtx"
    jsp.write_mtx(path, A)
    report, err = run(capsys, "sssp", str(path), "--repeat", "1", "--source", "0", code=1)
    assert not report["converged"] and "failed" in err


def test_info(capsys, tmp_path):
    path = tmp_path / "a.mtx"
    dense = np.array([[1, 0, 0, 0], [2, 0, 0, 0], [0, 0, -4, 0], [0, 0, 0, 0]], np.float32)
    jsp.write_mtx(path, jsp.from_dense(dense))
    report, _ = run(capsys, "info", str(path))
    assert report | {
        "rows": 4, "columns": 4, "entries": 3, "empty_rows": 1, "self_loops": 2,
        "weak_components": 3, "symmetric": False, "symmetric_pattern": False,
        "row_length_mean": 0.75, "row_length_max": 1, "least_value": -4, "largest_value": 2,
    } == report  # fmt: skip
    report, _ = run(capsys, "info", "arrow_head:20:0.3", "--format", "coo")
    assert report["symmetric_pattern"] and not report["symmetric"] and report["format"] == "coo"


@pytest.mark.parametrize("name", ["out.mtx", "out.mtx.gz", "out.npz"])
def test_convert(capsys, tmp_path, name):
    report, _ = run(capsys, "convert", "karate", str(tmp_path / name), "--format", "csc")
    assert report["written"].endswith(name)
    back = open_graph(str(tmp_path / name), "csr", 0)
    np.testing.assert_array_equal(back.todense(), open_graph("karate", "csr", 0).todense())


@pytest.mark.parametrize(
    ("name", "vertices"),
    [("rmat:6", 64), ("rmat:6:4", 64), ("grid:5", 25), ("grid:5:0.2", 25), ("delaunay:5", 32),
     ("erdos_renyi:20:30", 20), ("block:16", 16), ("triangular:30:0.2", 30)],
)  # fmt: skip
def test_generators_by_name(name, vertices):
    A, B = open_graph(name, "coo", 0), open_graph(name, "coo", 1)
    assert A.shape == (vertices, vertices) and int(A.count) > 0
    if name not in ("grid:5", "block:16"):
        assert A.nse != B.nse or (A.data != B.data).any() or (A.col != B.col).any()


def test_edges_are_counted_once():
    loops = sp.coo_array(([1.0] * 6, ([0, 1, 1, 2, 0, 3], [1, 0, 2, 1, 0, 3])), shape=(4, 4))
    symmetric = jsp.prepare(jsp.from_scipy(loops), for_="bfs")
    assert reached_edges(symmetric, np.array([True, True, True, False])) == 3
    directed = jsp.prepare(jsp.from_edges([0, 0, 1], [1, 2, 2], shape=(3, 3)), for_="bfs")
    assert reached_edges(directed, np.array([True, False, True])) == 2


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        ("bfs nowhere", "bundled.*karate"),
        ("bfs nowhere.mtx", "nowhere.mtx"),
        ("bfs karate --source 34", r"source.*\[0, 34\).*34"),
        ("bfs karate --source -1", r"source.*-1"),
        ("bfs karate --format xyz", "format.*csr.*xyz"),
        ("bfs karate --repeat 0", "repeat.*0"),
        ("bfs karate --backend pallas", "pallas"),
        ("bfs rmat:x", "rmat:int"),
        ("bfs rmat:", "rmat:int"),
        ("bfs rmat:3:4:5", "rmat:int"),
        ("bfs grid:3:2", "drop.*2"),
        ("bfs delaunay:99", "scale.*99"),
        ("bfs martian:3", "martian.*rmat.*block"),
        ("info triangular:10:0.9", "density.*0.55"),
        ("convert karate out.txt", "mtx.*out.txt"),
        ("pagerank karate --damping 2", "damping.*2"),
    ],
)  # fmt: skip
def test_bad_input(capsys, words, reason):
    assert main(words.split()) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.startswith("jaxspv: error: ") and err.count("\n") == 1
    assert re.search(reason, err), err


def test_rectangular_and_broken_files_are_refused(capsys, tmp_path):
    jsp.write_mtx(tmp_path / "wide.mtx", jsp.from_dense(np.ones((2, 3), np.float32)))
    (tmp_path / "broken.mtx").write_text("hello")
    for name, reason in (("wide.mtx", "square"), ("broken.mtx", "broken.mtx")):
        assert main(["bfs", str(tmp_path / name)]) == 2
        assert reason in capsys.readouterr().err


def test_usage_errors_exit_with_2(capsys):
    for words in ([], ["fly"], ["bfs"], ["bfs", "karate", "--source", "x"]):
        with pytest.raises(SystemExit) as stop:
            main(words)
        assert stop.value.code == 2
    assert "usage" in capsys.readouterr().err


def test_as_a_program():
    words = [sys.executable, "-m", "jaxspv", "info", "karate"]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0 and "weak components" in done.stdout
