"""The command line, in process: what it prints, its JSON, its exit codes and one-line errors."""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import jax
import networkx as nx
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv import verify
from jaxspv.cli._jaxspv_command import main
from jaxspv.cli.output import bars, histogram
from jaxspv.cli.running import reached_edges
from jaxspv.formats import FORMATS
from jaxspv.native import bind, build

pytestmark = pytest.mark.fast
ONCE = ["--repeat", "1"]
WHAT_RAN = {"format", "backend", "method", "device", "jax", "plan"}
TIMES = {"time_ms", "compile_ms", "prepare_ms"}


def test_info_without_a_file_says_what_is_installed(report, run):
    r = report("info")
    assert r["jax"] == jax.__version__ and r["backend"] == jax.default_backend()
    assert r["kernels_on_cpus"] and {"python", "jaxspv", "devices"} <= set(r)
    code, out, err = run("info")
    assert code == 0 and jax.__version__ in out and not err


def test_info(report, run):
    r = report("info", "karate")
    graph = nx.karate_club_graph()
    assert r["rows"] == r["columns"] == 34 and r["entries"] == 2 * graph.number_of_edges()
    assert r["row_length_max"] == max(dict(graph.degree).values())
    assert r["symmetric"] and r["symmetric_pattern"] and r["weak_components"] == 1
    assert r["empty_rows"] == r["self_loops"] == 0
    assert r["row_length_mean"] == pytest.approx(156 / 34)
    code, out, err = run("info", "karate")
    assert code == 0 and err == "" and "156" in out and "34" in out


def test_info_of_other_matrices(report, directed, tmp_path):
    r = report("info", directed)
    assert not r["symmetric"] and not r["symmetric_pattern"] and r["empty_rows"] == 2
    assert r["weak_components"] == 2 and r["largest_value"] == 9
    wide = tmp_path / "wide.npz"
    jsp.save_npz(wide, jsp.from_edges([0, 0], [2, 0], [1, -1], shape=(2, 3)))
    r = report("info", wide)
    assert (r["rows"], r["columns"], r["entries"]) == (2, 3, 2) and "symmetric" not in r
    assert r["least_value"] == -1 and r["dtype"] == str(jax.dtypes.canonicalize_dtype(int))


@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz", ".npz"])
@pytest.mark.parametrize("format", sorted(FORMATS))
def test_convert(run, directed, tmp_path, suffix, format):
    out = tmp_path / f"out{suffix}"
    code, _, err = run("convert", directed, out, "--format", format)
    assert (code, err) == (0, "")
    A = jsp.load_npz(out) if suffix == ".npz" else jsp.read_mtx(out)
    assert type(A) is FORMATS[format if suffix == ".npz" else "csr"]
    np.testing.assert_array_equal(A.todense(), jsp.read_mtx(directed).todense())


def test_bfs(report, run):
    r = report("bfs", "karate", "--source", 16, "--repeat", 3)
    want = nx.single_source_shortest_path_length(nx.karate_club_graph(), 16)
    assert r["source"] == 16 and r["vertices"] == r["reached"] == 34 and r["entries"] == 156
    assert r["levels"] == max(want.values()) + 1
    assert r["edges"] == 78 and r["symmetric"] and r["runs"] == 3
    assert r["gteps"] == pytest.approx(78 / r["time_ms"] / 1e6)
    assert min(r[name] for name in TIMES) > 0
    assert r["format"] == "csr" and r["backend"] in ("cpu", "xla", "pallas")
    assert f"{r['backend']}/{r['method']}" in r["plan"] and WHAT_RAN <= set(r)
    code, out, err = run("bfs", "karate", *ONCE)
    assert (code, err) == (0, "")
    for word in ("reached", "levels", "GTEPS", "compile", "prepare", "backend", "method", "format"):
        assert word in out


def test_bfs_of_a_directed_graph(report, directed):
    r = report("bfs", directed, "--source", 1, *ONCE)
    assert (r["reached"], r["levels"], r["traversed_edges"], r["symmetric"]) == (3, 3, 2, False)
    r = report("bfs", directed, "--source", 4, *ONCE)
    assert (r["reached"], r["levels"], r["traversed_edges"], r["edges"]) == (1, 1, 0, 4)
    assert report("bfs", directed, *ONCE)["source"] == 0, "the vertex of most out-edges"


def test_formats_agree(report):
    reports = [report("bfs", "karate", "--format", format, *ONCE) for format in FORMATS]
    assert len({(r["reached"], r["levels"], r["traversed_edges"]) for r in reports}) == 1


def test_edges_are_counted_once():
    senders, receivers = [0, 1, 1, 2, 0, 3], [1, 0, 2, 1, 0, 3]
    symmetric = jsp.prepare(jsp.from_edges(senders, receivers, shape=(4, 4)))
    assert reached_edges(symmetric, np.array([True, True, True, False])) == 3
    directed = jsp.prepare(jsp.from_edges([0, 0, 1], [1, 2, 2], shape=(3, 3)))
    assert reached_edges(directed, np.array([True, False, True])) == 2


def test_output_files(report, directed, tmp_path):
    out = tmp_path / "levels.npz"
    report("bfs", directed, "--source", 0, "--output", out, *ONCE)
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["levels"], [0, 1, 2, 1, -1])
        assert saved["parents"].tolist() == [0, 0, 1, 0, -1]
    report("sssp", directed, "--source", 0, "--output", out, *ONCE)
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["distances"], [0, 1, 3, 6, np.inf])
        assert saved["parents"].tolist() == [0, 0, 1, 2, -1]


def test_tables(report, run, directed, tmp_path):
    for suffix, mark in ((".csv", ","), (".tsv", "\t")):
        out = tmp_path / f"levels{suffix}"
        report("bfs", directed, "--source", 0, "--output", out, *ONCE)
        head, *rows = (line.split(mark) for line in out.read_text().splitlines())
        assert head == ["vertex", "levels", "parents"] and [r[0] for r in rows] == list("01234")
        assert [int(r[1]) for r in rows] == [0, 1, 2, 1, -1]
    report("sssp", directed, "--source", 0, "--output", out, *ONCE)
    assert out.read_text().splitlines()[5] == "4\tinf\t-1"
    out = tmp_path / "levels.parquet"
    try:
        import pyarrow.parquet
    except ImportError:
        code, _, err = run("bfs", directed, "--output", out, *ONCE)
        assert code == 2 and "pyarrow" in err
    else:
        report("bfs", directed, "--source", 0, "--output", out, *ONCE)
        assert pyarrow.parquet.read_table(out)["levels"].to_pylist() == [0, 1, 2, 1, -1]


ROADS = "from,to,km\nRome,Pisa,3\nPisa,Lucca,2\nBari,Bari,1\n"


@pytest.mark.long
def test_lists_of_edges_with_names(report, run, tmp_path):
    roads, out = tmp_path / "roads.csv", tmp_path / "far.csv"
    roads.write_text(ROADS)
    named = [roads, "--columns", "from,to,km", "--labels", *ONCE]
    r = report("sssp", *named, "--source", "Pisa", "--output", out)
    assert (r["source"], r["reached"], r["farthest"]) == ("Pisa", 2, 2)
    rows = ["vertex,distances,parents", "Rome,inf,", "Pisa,0.0,Pisa", "Lucca,2.0,Pisa"]
    assert out.read_text().splitlines() == [*rows, "Bari,inf,"]
    r = report("path", roads, "Rome", "Lucca", *named[1:])
    assert (r["path"], r["length"]) == ("Rome Pisa Lucca", 5)
    assert report("pagerank", *named, "--top", 1)["top"][0][0] == "Bari"
    code, _, err = run("bfs", *named, "--source", "Paris")
    assert code == 2 and "'Paris'" in err


def test_lists_of_edges_in_and_out(report, run, tmp_path):
    A = jsp.from_edges([0, 1, 3], [1, 2, 0], [1.0, 2.5, 3.0])
    jsp.save_npz(tmp_path / "a.npz", A)
    for suffix in (".csv", ".tsv.gz"):
        out = tmp_path / f"a{suffix}"
        assert run("convert", tmp_path / "a.npz", out)[0] == 0
        np.testing.assert_array_equal(jsp.read_edgelist(out, weight=2).todense(), A.todense())
        r = report("info", out, "--columns", "source,target,2")
        assert (r["rows"], r["entries"], r["largest_value"]) == (4, 3, 3.0)
    (tmp_path / "b.txt").write_text("0 1\n0 x\n")
    code, _, err = run("info", tmp_path / "b.txt")
    assert code == 2 and "line 2: `target` must be an integer" in err


def test_an_output_that_cannot_be_written_is_told_before_the_graph_is_read(run, tmp_path):
    for out, why in (("x.txt", "must end in"), ("absent/x.csv", "no folder"), (".", "must end")):
        code, _, err = run("bfs", "absent.mtx", "--output", tmp_path / out)
        assert code == 2 and why in err, err


def test_answers_come_first_and_the_plan_when_asked(run):
    _, out, _ = run("bfs", "karate", "--source", 16, *ONCE)
    lines = out.splitlines()
    assert lines[1].split() == ["source", "16"] and lines[2].split() == ["reached", "34"]
    assert not any(line.startswith("plan") for line in lines)
    levels = np.asarray(jsp.bfs(jsp.read_mtx(jsp.bundled("karate")), 16).levels)
    drawn = lines[lines.index("vertices by level:") + 1 :]
    assert [int(line.split()[-1]) for line in drawn] == np.bincount(levels).tolist()
    longest = max(drawn, key=lambda line: line.count("█"))
    assert longest.count("█") == 40 and int(longest.split()[-1]) == np.bincount(levels).max()
    _, out, _ = run("bfs", "karate", *ONCE, "--verbose")
    assert "\nplan" in out


def test_info_draws_the_lengths_of_rows(run, report):
    _, out, _ = run("info", "karate")
    drawn = out.split("rows by length:\n")[1].splitlines()
    degrees = [d for _, d in nx.karate_club_graph().degree]
    want = [sum(lo <= d < 2 * lo for d in degrees) for lo in (1, 2, 4, 8, 16)]
    assert [int(line.split()[-1]) for line in drawn] == want
    assert report("info", "karate")["row_lengths"][0] == ["0", 0]


def test_bars_hold_all_that_there_is():
    assert bars([]) == [] and histogram("none", bars([0, 0])) == []
    counts = np.arange(100)
    rows = bars(counts)
    assert len(rows) == 12 and sum(c for _, c in rows) == counts.sum() and rows[0][0] == "0-8"


def test_version(capsys):
    with pytest.raises(SystemExit) as done:
        main(["--version"])
    assert done.value.code == 0
    assert re.fullmatch(r"jaxspv (\d+\.\d+\.\d+\S*|\(not installed\))\n", capsys.readouterr().out)


def test_sssp(report, directed):
    r = report("sssp", directed, "--source", 0, *ONCE)
    assert (r["reached"], r["farthest"], r["converged"]) == (4, 6, True) and r["steps"] > 0
    r = report("sssp", directed, "--source", 0, "--method", "bellman_ford", *ONCE)
    assert r["method"] == "bellman_ford" and r["farthest"] == 6


def test_pagerank(report, tmp_path):
    out = tmp_path / "scores.npz"
    r = report("pagerank", "karate", "--top", 2, "--damping", 0.9, "--output", out, *ONCE)
    want = nx.pagerank(nx.karate_club_graph(), 0.9, weight=None, tol=1e-9)
    best = sorted(want, key=want.get, reverse=True)[:2]
    assert [v for v, _ in r["top"]] == best and r["converged"]
    assert r["top"][0][1] == pytest.approx(want[best[0]], abs=1e-5)
    with np.load(out) as saved:
        np.testing.assert_allclose(saved["scores"], [want[v] for v in range(34)], atol=1e-5)
    assert (r["edges"], r["traversed_edges"]) == (78, 156 * r["iterations"])
    assert r["gteps"] == pytest.approx(r["traversed_edges"] / r["time_ms"] / 1e6)


def test_bench(report):
    r = report("bench", "karate", "--source", 0, *ONCE)
    assert [row["program"] for row in r["programs"]] == ["spmv", "bfs", "sssp", "pagerank"]
    for row in r["programs"]:
        assert 0 < row["least_ms"] <= row["time_ms"] <= row["most_ms"]


def test_a_result_that_failed_has_its_exit_code(run, tmp_path):
    path = tmp_path / "cycle.mtx"
    jsp.write_mtx(path, jsp.from_edges([0, 1], [1, 0], [1.0, -2.0], shape=(2, 2)))
    code, out, err = run("sssp", path, "--method", "bellman_ford", "--json", *ONCE)
    assert code == 1 and not json.loads(out)["converged"]
    assert err.startswith("jaxspv: failed: converged") and err.count("\n") == 1


def test_a_wrong_answer_has_its_exit_code(run, monkeypatch):
    def wrong(*_):
        raise AssertionError("level of vertex 3 is 2, not 1.")

    monkeypatch.setattr(verify, "bfs", wrong)
    code, _, err = run("bench", "karate", *ONCE)
    assert code == 1 and "level of vertex 3" in err


@pytest.mark.parametrize(
    ("spec", "make"),
    [
        ("rmat:5:4", lambda key: jsp.generators.rmat(key, 5, 4)),
        ("rmat:4", lambda key: jsp.generators.rmat(key, 4)),
        ("grid:6", lambda key: jsp.generators.grid2d(key, 6)),
        ("grid:6:0.5", lambda key: jsp.generators.grid2d(key, 6, drop=0.5)),
        ("delaunay:4", lambda key: jsp.generators.delaunay(key, 16)),
        ("erdos_renyi:20:0.2", lambda key: jsp.generators.erdos_renyi(key, 20, p=0.2)),
    ],
)
def test_generators(run, tmp_path, spec, make):
    out = tmp_path / "a.npz"
    for seed in (0, 3):
        assert run("convert", spec, out, "--seed", seed)[0] == 0
        got, want = jsp.load_npz(out), make(jax.random.key(seed))
        np.testing.assert_array_equal(got.todense(), want.todense())


BAD = {
    "no command": ([], "COMMAND"),
    "another command": (["color", "karate"], "invalid choice: 'color'"),
    "no file": (["bfs"], "FILE"),
    "an absent file": (["bfs", "absent.mtx"], "no such file: absent.mtx"),
    "a file of another kind": (["bfs", __file__], "FILE must end in .mtx, .npz"),
    "an unknown name": (["bfs", "karatee"], "no file and no bundled graph.*karate, minnesota"),
    "a generator without sizes": (["bfs", "rmat:"], "'rmat:' must read rmat:int"),
    "a size that is a word": (["bfs", "grid:x"], "'grid:x' must read grid:int"),
    "too many sizes": (["bfs", "delaunay:3:4"], "must read delaunay:int"),
    "too few sizes": (["bfs", "erdos_renyi:3"], "must read erdos_renyi:int:float"),
    "a size out of range": (["bfs", "rmat:40"], "`scale` must lie in"),
    "a probability out of range": (["bfs", "erdos_renyi:9:1.5"], "`p` must lie in"),
    "an unknown generator": (["bfs", "star:4"], "no generator is called 'star'"),
    "a source out of range": (["bfs", "karate", "--source", "34"], r"`source`.*\[0, 34\); got 34"),
    "a source beyond 64 bits": (["bfs", "karate", "--source", str(10**20)], r"`source` must lie"),
    "an end beyond 64 bits": (["path", "karate", "0", str(10**20)], r"`B` must lie in \[0, 34\)"),
    "a negative number to list": (["pagerank", "karate", "--top", "-1"], "`--top` must not be"),
    "a negative source": (["sssp", "karate", "--source", "-1"], "`source`.*got -1"),
    "a source that is a word": (["bfs", "karate", "--source", "a"], "--source"),
    "another backend": (["bfs", "karate", "--backend", "cuda"], "'cuda'"),
    "another method": (["bfs", "karate", "--method", "fast"], "`method` must be one of.*'fast'"),
    "another format": (["info", "karate", "--format", "dense"], "`--format` must be one of"),
    "no repetitions": (["bfs", "karate", "--repeat", "0"], "`--repeat` must be at least 1"),
    "damping out of range": (["pagerank", "karate", "--damping", "2"], "`damping` must lie in"),
    "an output of another kind": (["convert", "karate", "a.doc"], "`OUT` must end in"),
    "an output in no folder": (["convert", "karate", "absent/a.mtx"], "absent"),
    "columns of no list": (["info", "karate", "--columns", "0,1"], "are for lists of edges"),
    "one column": (["info", "a.csv", "--columns", "0"], "must be FROM,TO or FROM,TO,WEIGHT"),
    "a list that is absent": (["info", "a.csv"], "no such file: a.csv"),
    "another option": (["info", "karate", "--frobnicate"], "frobnicate"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(run, name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words, message = BAD[name]
    code, out, err = run(*words)
    assert code == 2 and out == ""
    assert err.startswith("jaxspv: error: ") and err.count("\n") == 1, err
    assert re.search(message, err), err


def test_bad_files(run, tmp_path):
    path = tmp_path / "broken.mtx"
    path.write_text("%%MatrixMarket matrix coordinate real general\n2 2 1\n5 5 1\n")
    code, _, err = run("bfs", path)
    assert code == 2 and "broken.mtx is no readable Matrix Market file" in err
    jsp.write_mtx(path, jsp.from_edges([0], [2], shape=(2, 3)))
    for command in ("bfs", "sssp", "pagerank", "bench"):
        code, _, err = run(command, path)
        assert code == 2 and "square" in err
    jsp.write_mtx(path, jsp.from_edges([0], [1], [-1.0], shape=(2, 2)))
    code, _, err = run("pagerank", path)
    assert code == 2 and "weights must be finite and >= 0" in err
    jsp.write_mtx(path, jsp.from_edges([0, 1], [1, 0], [1j, 1j], shape=(2, 2)))
    for command in (["sssp"], ["pagerank"], ["louvain"], ["path", "0", "1"]):
        code, out, err = run(command[0], path, *command[1:])
        assert code == 2 and out == "" and err.count("\n") == 1 and "real weights" in err
    assert "least_value" not in json.loads(run("info", path, "--json")[1])


def test_pallas_needs_a_gpu(run):
    if jax.default_backend() == "gpu":
        pytest.skip("this machine has one")
    code, _, err = run("bfs", "karate", "--backend", "pallas")
    assert code == 2 and "pallas" in err


def test_help_and_module():
    with pytest.raises(SystemExit) as done:
        main(["--help"])
    assert done.value.code == 0
    root = pathlib.Path(jsp.__file__).parent.parent
    done = subprocess.run(
        [sys.executable, "-m", "jaxspv", "info", "absent"],
        cwd=root,
        text=True,
        capture_output=True,
        timeout=120,
    )
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr.splitlines()[-1].startswith("jaxspv: error: no file and no bundled graph")


@pytest.mark.long
def test_a_second_process_reads_what_the_first_compiled(tmp_path):
    env = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    env.pop("JAX_COMPILATION_CACHE_DIR", None)
    if bind.refused() is None:  # compiling the kernels again takes a minute
        (tmp_path / "jaxspv").mkdir()
        shutil.copy2(build.library(), tmp_path / "jaxspv")

    def programs(*words, **more):
        command = [sys.executable, "-m", "jaxspv", *words]
        done = subprocess.run(command, env={**env, **more}, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout, {path.name for path in tmp_path.glob("jaxspv/*-cache")}

    assert programs("bfs", "karate", "--backend", "xla", JAXSPV_COMPILATION_CACHE="0")[1] == set()
    first = programs("bfs", "karate", "--backend", "xla")[1]
    again = programs("bfs", "karate", "--backend", "xla")[1]
    functions = {path.rpartition("-cache")[0].rpartition("-")[0] for path in first}
    # What compiles as long as programs must to be kept may depend on the load of the machine.
    assert first and {path for path in again if path.startswith(tuple(functions))} == first
    assert str(tmp_path / "jaxspv") in programs("info", "karate")[0]
