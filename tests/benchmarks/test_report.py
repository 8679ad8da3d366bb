"""Everything generated from the stored results is up to date; how runs are merged into them."""

import copy
import json

import pytest

from benchmarks.report import stored, summary, table, write

DOCUMENTS = stored.all_stored()


def run(commit, times, failures=()):
    """A document of `python -m benchmarks --json`: {(graph, program): ms}."""
    environment = {
        "commit": commit,
        "command": "python -m benchmarks bfs",
        "date": "2026-01-01T00:00:00+00:00",
        "device": "NVIDIA Test 1",
        "platform": "gpu",
        "load": [0.0, 0.0, 0.0],
        "versions": {"python": "3.11"},
    }
    records = [
        {
            "benchmark": "bfs",
            "graph": g,
            "program": p,
            "median_ms": ms,
            "min_ms": ms,
            "runs": 10,
            "entries": 5,
        }
        for (g, p), ms in times.items()
    ]
    lost = [{"benchmark": "bfs", "graph": g, "error": "no"} for g in failures]
    return {"environment": environment, "records": records, "failures": lost}


def add(document, folder):
    """Stores a run of one benchmark; its file."""
    ((path, merged),) = stored.with_runs([document], folder).items()
    stored.save(path, merged)
    return path


def test_what_is_generated_is_up_to_date():
    assert write.stale() == [], "run `python -m benchmarks report`"


def test_a_stale_file_is_found(tmp_path, monkeypatch):
    """A number edited by hand, and a table that no JSON makes, are named."""
    results = tmp_path / "benchmarks/results"
    for path, document in DOCUMENTS.items():
        stored.save(results / path.relative_to(stored.RESULTS), document)
    (tmp_path / "README.md").write_text(f"a\n{write.BEGIN}\n{write.END}\nz\n")
    monkeypatch.setattr(write, "RESULTS", results)
    monkeypatch.setattr(write, "ROOT", tmp_path)
    monkeypatch.setattr(write, "all_stored", lambda: stored.all_stored(results))
    assert write.main(["--check", "--mixed"]) == 1
    assert write.main(["--mixed"]) == 0 and write.main(["--check", "--mixed"]) == 0
    text = (tmp_path / "README.md").read_text()
    assert text.startswith("a\n") and text.endswith("\nz\n") and "R-MAT 18" in text
    edited = results / "cpu/mxm.md"
    edited.write_text(edited.read_text().replace("1", "2", 1))
    (results / "cpu/mxm-more.md").write_text("by hand")
    assert write.stale() == ["benchmarks/results/cpu/mxm-more.md", "benchmarks/results/cpu/mxm.md"]


def test_tables_of_two_commits_are_refused_unless_allowed(monkeypatch, capsys):
    tables = {
        stored.RESULTS / f"cpu/{name}.json": {"runs": [{"commit": commit}]}
        for name, commit in [("bfs", "a" * 40), ("sssp", "a" * 8), ("mxm", "b" * 8)]
    }
    monkeypatch.setattr(write, "all_stored", lambda: tables)
    monkeypatch.setattr(write, "stale", list)
    assert write.main(["--check"]) == 1
    said = capsys.readouterr().out
    assert "aaaaaaaa: cpu/bfs cpu/sssp\nbbbbbbbb: cpu/mxm" in said
    assert write.main(["--check", "--mixed"]) == 0
    tables.popitem()
    assert write.main(["--check"]) == 0


def test_a_run_of_another_commit_is_refused_before_it_is_stored(tmp_path, monkeypatch, capsys):
    results, files = tmp_path / "results", (tmp_path / "old.json", tmp_path / "new.json")
    monkeypatch.setattr(write, "all_stored", lambda: stored.all_stored(results))
    monkeypatch.setattr(write, "with_runs", lambda runs: stored.with_runs(runs, results))
    monkeypatch.setattr(write, "stale", list)
    monkeypatch.setattr(write, "texts", dict)
    times = {("g", "jaxspv"): 2.0, ("h", "jaxspv"): 1.0}
    files[0].write_text(json.dumps(run("a" * 8, times)))
    files[1].write_text(json.dumps(run("b" * 8, {("g", "jaxspv"): 1.0})))
    assert write.main(["--add", str(files[0])]) == 0
    kept = stored.all_stored(results)
    assert write.main(["--add", str(files[1])]) == 1 and "bbbbbbbb" in capsys.readouterr().out
    assert stored.all_stored(results) == kept
    assert write.main(["--mixed", "--add", str(files[1])]) == 0
    assert stored.all_stored(results) != kept
    files[0].write_text(json.dumps(run("b" * 8, times)))
    assert write.main(["--add", *map(str, files)]) == 0  # it replaces all of the other commit


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: f"{p.parent.name}/{p.stem}")
def test_stored_records_name_their_run(path):
    document = DOCUMENTS[path]
    assert {r["run"] for r in document["records"]} == set(range(len(document["runs"])))
    assert {stored.file_of(r["benchmark"]) for r in document["records"]} == {path.stem}
    for environment in document["runs"]:
        assert environment["command"].startswith("python -m benchmarks") and environment["commit"]


def test_newer_records_replace_older_ones(tmp_path):
    first = run("a", {("g", "jaxspv"): 2.0, ("g", "SciPy"): 8.0, ("h", "jaxspv"): 1.0}, ["k"])
    second = run("b", {("g", "jaxspv"): 1.0, ("k", "jaxspv"): 3.0})
    path = add(first, tmp_path)
    assert path == tmp_path / "nvidia-test-1/bfs.json"
    assert stored.load(path)["failures"] == [
        {"benchmark": "bfs", "graph": "k", "error": "no", "run": 0}
    ]
    add(second, tmp_path)
    document = stored.load(path)
    commits = {
        (r["graph"], r["program"]): document["runs"][r["run"]]["commit"]
        for r in document["records"]
    }
    assert commits == {
        ("g", "jaxspv"): "b",
        ("g", "SciPy"): "a",
        ("h", "jaxspv"): "a",
        ("k", "jaxspv"): "b",
    }
    assert document["failures"] == [] and len(document["runs"]) == 2
    third = run("c", {key: 1.0 for key in commits})
    assert len(stored.merged(document, copy.deepcopy(third))["runs"]) == 1


def test_a_run_and_what_is_stored_of_it_render_alike(tmp_path):
    document = run("a", {("g", "jaxspv"): 2.0, ("g", "SciPy"): 8.0})
    path = add(document, tmp_path)
    assert table.render(document) == table.render(json.loads(path.read_text()))
    assert "4.00" in table.render(document)  # the ratio


def test_markers_are_needed_once():
    with pytest.raises(ValueError, match="once each"):
        write.between("no markers", "x")


def test_numbers_of_the_readme_are_medians_of_the_json():
    """Looked up without the code that writes them."""
    block = write.README.read_text().partition(write.BEGIN)[2].partition(write.END)[0]
    (line,) = (row for row in block.splitlines() if row.startswith("| R-MAT 21"))
    cells = [c.strip() for c in line.strip("| ").split("|")]
    for column, name in ((1, "bfs"), (3, "sssp"), (5, "pagerank")):
        document = json.loads((stored.RESULTS / summary.GPU / f"{name}.json").read_text())
        (median,) = (
            r["median_ms"]
            for r in document["records"]
            if (r["graph"], r["program"]) == ("rmat21", summary.INSIDE)
        )
        assert float(cells[column]) == pytest.approx(median, rel=5e-3)
