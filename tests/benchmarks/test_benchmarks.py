"""The benchmark harness: it refuses wrong results, times the rest, records what it must."""

import functools
import json
import math
import types

import jax
import jax.numpy as jnp
import networkx
import numpy as np
import pytest
import scipy.sparse as sp

import jaxspv as jsp
from benchmarks import baselines, harness, suite
from benchmarks.__main__ import main
from benchmarks.graphs import algorithms, generate, graphblas_sharp
from benchmarks.harness import Candidate, WrongResult, geometric_mean, measure
from benchmarks.options import Options
from benchmarks.prepared import candidates, component_edges, runs_here
from benchmarks.products import gnn, spmspv
from benchmarks.report import table
from benchmarks.traversal import bfs, sssp, yang2015
from jaxspv import verify

RECORD = {
    "benchmark",
    "graph",
    "origin",
    "program",
    "median_ms",
    "min_ms",
    "max_ms",
    "spread",
    "runs",
    "first_s",
    "compile_s",
    "prepare_s",
    "verified",
    "entries",
}


@pytest.fixture(autouse=True)
def no_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSPV_CACHE", str(tmp_path / "cache"))


def must_be(value):
    def check(result):
        assert result == value

    return check


def test_measure_counts_calls_and_divides_by_repeats():
    calls = []
    slow = Candidate("slow", lambda: calls.append("s") or 1, must_be(1), repeats=4)
    fast = Candidate("fast", lambda: calls.append("f") or 2, must_be(2), notes={"edges": 7})
    first, second = measure([slow, fast], runs=10)
    assert calls.count("s") == calls.count("f") == 1 + 1 + 10  # verified, warmed up, timed
    rounds = ["".join(calls[k : k + 2]) for k in range(4, len(calls), 2)]
    assert set(rounds) == {"sf", "fs"}  # one of each a round, the order drawn anew
    assert first["runs"] == 10 and second["edges"] == 7
    assert 0 < first["min_ms"] <= first["median_ms"] <= first["max_ms"]


def test_wrong_results_are_not_timed():
    calls = []
    liar = Candidate("liar", lambda: calls.append(1) or 3, must_be(4))
    with pytest.raises(WrongResult, match="liar"):
        measure([liar], runs=10)
    assert len(calls) == 1


def test_a_program_that_raises_does_not_cost_the_others():
    broken = Candidate("broken", lambda: 1 // 0, must_be(1))
    failed, record = measure([broken, Candidate("good", lambda: 1, must_be(1))], runs=10)
    assert "ZeroDivisionError" in failed["error"] and not failed["verified"]
    assert record["runs"] == 10 and "error" not in record


def test_what_exceeds_the_limit_runs_once():
    (record,) = measure([Candidate("slow", lambda: 1, must_be(1))], runs=10, limit_s=0)
    assert record["runs"] == 1


def test_summary_statistics():
    record = harness.summary("x", [0.004, 0.002, 0.008], 1.004, repeats=2)
    assert record["median_ms"] == pytest.approx(2)
    assert record["min_ms"] == pytest.approx(1) and record["max_ms"] == pytest.approx(4)
    assert record["compile_s"] == pytest.approx(1.0)
    assert record["spread"] == pytest.approx(0.75)


def test_geometric_mean():
    assert geometric_mean([2, 8]) == pytest.approx(4)
    assert math.isnan(geometric_mean([]))


def test_the_table_gives_the_geometric_mean_of_speeds():
    def record(graph, program, median, least):
        times = {"median_ms": median, "min_ms": least, "runs": 10, "entries": 5}
        return {"benchmark": "bfs", "graph": graph, "program": program, **times}

    records = [
        record("a", "ours", 2.0, 1.0),
        record("a", "SciPy", 4.0, 4.0),
        record("b", "ours", 1.0, 1.0),
        record("b", "SciPy", 8.0, 9.0),
        record("c", "ours", 1.0, 1.0),
    ]
    document = {"environment": harness.environment(), "records": records, "failures": []}
    rows = [line.split() for line in table.render(document).splitlines()]
    (mean,) = [row for row in rows if "mean**" in row]
    (least,) = [row for row in rows if "runs**" in row]
    (smallest,) = [row for row in rows if "**smallest**" in row]
    assert mean[-2] == "4.00" and least[-2] == "6.00" and smallest[-2] == "2.00"


def test_a_chain_depends_on_every_step():
    def step(carry, scale):
        return carry * scale + 1

    for unroll in (False, True):
        program = harness.chained(step, 5, unroll=unroll)
        assert float(program(jnp.float32(1), jnp.float32(2))) == 63


# ---- Workloads ----


ENTRIES = {"rmat8": 8_110, "rmat10": 44_334, "grid12": 470, "delaunay7": 738}


@pytest.mark.parametrize("name", suite.SMALL)
def test_generated_graphs(name):
    A = suite.get(name).matrix()
    assert A.nnz == ENTRIES[name], "the graphs of published numbers must stay what they were."
    assert A.has_sorted_indices and A.dtype == np.float32 and A.indices.dtype == np.int32
    assert abs(A - A.T).nnz == 0 and not A.diagonal().any() and (A.data == 1).all()
    weighted = suite.get(name).weighted()
    assert abs(weighted - weighted.T).nnz == 0
    i, j = weighted.nonzero()
    want = [
        (min(a, b) * 2654435761 + max(a, b) * 40503) % 64 + 1
        for a, b in zip(i.tolist(), j.tolist(), strict=True)
    ]
    np.testing.assert_array_equal(weighted.data, want)


def test_sources_and_files(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSPV_DATA", str(tmp_path))
    star = sp.coo_array(([2.0, 3.0, 4.0], ([2, 2, 0], [0, 1, 1])), shape=(3, 3))
    (tmp_path / "star.mtx").write_text(
        "%%MatrixMarket matrix coordinate real general\n3 3 3\n3 1 2\n3 2 3\n1 2 4\n"
    )
    assert suite.files() == ["star"] and suite.large_files() == []
    workload = suite.get("star")
    np.testing.assert_array_equal(workload.matrix().toarray(), star.toarray())
    assert workload.start() == 2 and suite.get("grid12").start() == 0
    both = workload.symmetrised().matrix().toarray()
    np.testing.assert_array_equal(both, (star + star.T).toarray() > 0)
    with pytest.raises(ValueError, match="star"):
        suite.get("no-such-graph")


def test_the_cache_gives_the_same_matrix(tmp_path):
    made = sp.csr_array(np.eye(3, k=1, dtype=np.float32))
    builds = []
    for _ in range(2):
        workload = suite.Workload("kept", lambda: builds.append(1) or made, "", cached=True)
        np.testing.assert_array_equal(workload.matrix().toarray(), made.toarray())
    assert len(builds) == 1


# ---- Checks of results ----


def path(n=5):
    """0 -> 1 -> ... with weights 1, 2, ..."""
    return sp.csr_array(np.diag(np.arange(1, n, dtype=np.float32), k=1))


def test_the_certificate_of_distances():
    A = path()
    right = np.array([0, 1, 3, 6, 10.0])
    sssp.check_certificate(A, 0, right)
    for vertex, value in ((3, 5.0), (3, 7.0), (4, np.inf), (0, 1.0)):
        wrong = right.copy()
        wrong[vertex] = value
        with pytest.raises(AssertionError):
            sssp.check_certificate(A, 0, wrong)
    unreached = np.array([np.inf, 0, 2, 5, 9])
    sssp.check_certificate(A, 1, unreached)
    unreached[0] = 3.0
    with pytest.raises(AssertionError, match="vertex 0"):
        sssp.check_certificate(A, 1, unreached)


def test_edges_are_counted_once():
    A = suite.get("grid12").matrix()
    reached = verify.levels_of(A, 0) >= 0
    graph = networkx.from_scipy_sparse_array(A).subgraph(np.flatnonzero(reached))
    assert component_edges(A, reached, True) == graph.number_of_edges()
    assert component_edges(path(), np.arange(5) >= 2, False) == 2


@pytest.mark.parametrize("make", [baselines.networkx_bfs, baselines.dense_frontier_bfs])
def test_baseline_levels(make):
    for A, source in ((suite.get("rmat8").matrix(), 27), (path(), 1)):
        np.testing.assert_array_equal(make(A, source)().levels, verify.levels_of(A, source))


def test_baseline_pagerank():
    A = path()
    for call in (
        baselines.scipy_pagerank(A, 0.85, 1e-6, 200),
        baselines.networkx_pagerank(A, 0.85, 1e-7),
    ):
        verify.pagerank(A, types.SimpleNamespace(scores=call()[0]), atol=3e-6)


# ---- Yang 2015 ----


@pytest.mark.parametrize("method", yang2015.METHODS)
def test_searches_by_products(method):
    matrix = suite.get("grid12").matrix()
    A = jsp.from_scipy(matrix.astype(bool))
    got = jax.jit(lambda A, s: yang2015.search(A, s, method=method))(A, jnp.int32(5))
    np.testing.assert_array_equal(got, verify.levels_of(matrix, 5))


def test_yang2015_records_and_tables():
    options = Options(runs=2, sources=3)
    records = yang2015.run(suite.get("delaunay7"), options)
    assert [r["program"] for r in records] == list(yang2015.METHODS.values())
    for record in records:
        edges = suite.get("delaunay7").matrix().nnz // 2
        assert [e for e, _ in record["points"]] == [edges] * 3
        assert record["mteps"] > 0
    document = {
        "environment": harness.environment(),
        "records": [{"benchmark": "yang2015", "graph": "delaunay7", **r} for r in records],
        "failures": [],
    }
    text = table.render(document)
    assert all(f"Table {k}:" in text for k in ("I", "II", "III", "IV"))


def test_every_backend_of_a_gpu_is_timed(monkeypatch):
    impls = [types.SimpleNamespace(backend=b, name="m") for b in ("pallas", "xla")]
    plan = types.SimpleNamespace(chosen=impls)
    assert runs_here(plan) == ([impls[1]] if jax.default_backend() == "cpu" else impls)
    monkeypatch.setattr(jax, "default_backend", lambda: "gpu")
    assert runs_here(plan) == impls
    monkeypatch.setattr(jsp, "explain", lambda *_: plan)
    graph = jsp.prepare(jsp.from_scipy(suite.get("delaunay7").matrix()), for_="bfs")
    found = candidates(jsp.bfs, graph, 0, must_be(0), {"prepare_s": 1.0}, Options())
    names = ["jaxspv", "jaxspv, no parents", "jaxspv xla", "jaxspv xla, no parents"]
    assert [c.name for c in found] == names
    assert [c.notes["method"] for c in found] == ["pallas/m"] * 2 + ["xla/m"] * 2


# ---- The command line ----


def test_the_command_line_writes_verified_records(tmp_path, capsys):
    files = {k: tmp_path / f"out.{k}" for k in ("json", "markdown", "plot")}
    files["plot"] = tmp_path / "out.png"
    arguments = [part for k, f in files.items() for part in (f"--{k}", str(f))]
    assert main(["bfs", "--graphs", "grid12", "--repeats", "2", *arguments]) == 0
    document = json.loads(files["json"].read_text())
    programs = {r["program"]: r for r in document["records"]}
    assert {"jaxspv", "jaxspv, inside jit", "SciPy", "NetworkX"} <= set(programs)
    for record in document["records"]:
        assert set(record) >= RECORD
        assert record["verified"] and record["runs"] == 10
        edges = suite.get("grid12").matrix().nnz // 2
        assert record["gteps"] == pytest.approx(edges / record["median_ms"] * 1e-6)
    assert {"device", "versions", "commit", "command", "platform"} <= set(document["environment"])
    assert {"python", "jax", "jaxlib", "numpy", "scipy"} <= set(document["environment"]["versions"])
    assert files["markdown"].read_text() in capsys.readouterr().out
    assert files["plot"].stat().st_size > 10_000


def test_a_planted_wrong_answer_fails_the_run(monkeypatch, capsys):
    right = jsp.bfs

    @functools.wraps(right)
    def off_by_one(*args, **kwargs):
        result = right(*args, **kwargs)
        return result._replace(levels=result.levels.at[7].add(1))

    monkeypatch.setattr(bfs.jsp, "bfs", off_by_one)
    assert main(["bfs", "--graphs", "grid12", "--no-baselines"]) == 1
    out = capsys.readouterr().out
    assert "wrong result" in out and "level of vertex 7" in out


@pytest.mark.parametrize("layer", gnn.LAYERS)
def test_layers_of_graph_networks(layer, tmp_path, monkeypatch):
    monkeypatch.setattr(gnn, "LAYERS", {layer: gnn.LAYERS[layer]})
    out = tmp_path / "out.json"
    assert main(["gnn", "--graphs", "delaunay7", "--runs", "2", "--json", str(out)]) == 0
    records = json.loads(out.read_text())["records"]
    cases = {f"gnn: {layer}", f"gnn: {layer}, with gradients"}
    assert {r["benchmark"] for r in records} == cases
    assert {r["program"] for r in records} == {*gnn.LAYERS[layer].forms}


def test_a_layer_of_wrong_slopes_is_refused():
    forms = gnn.LAYERS["GCN"]
    M = forms.matrix(suite.get("grid12").matrix())
    weights = (jnp.eye(gnn.FEATURES),)
    x = np.random.default_rng(0).random((M.shape[0], gnn.FEATURES), np.float32)
    matrix = gnn._operand("segment_sum", M)
    gradients = gnn._with_slopes(gnn._product)(jnp.asarray(x), (matrix, weights))
    check = gnn._check_slopes(gnn._product, matrix, weights, x)
    check(gradients)
    with pytest.raises(AssertionError, match="is not"):
        check(jax.tree.map(lambda v: 2 * v, gradients))


def test_operations_of_graphblas_sharp(tmp_path, monkeypatch):
    monkeypatch.setenv("JAXSPV_DATA", str(tmp_path))
    assert graphblas_sharp.workloads(Options()) == []
    (rmat,) = graphblas_sharp.workloads(Options(max_scale=21))
    assert "cit-Patents" in rmat.origin
    out = tmp_path / "out.json"
    arguments = ["--graphs", "delaunay7", "--runs", "2", "--json", str(out)]
    assert main(["graphblas_sharp", *arguments]) == 0
    records = json.loads(out.read_text())["records"]
    assert {r["case"].removeprefix("delaunay7 ").split(",")[0] for r in records} == {
        *("mxv", "mxm", "ewise_add", "BFS", "SSSP", "triangles", "betweenness")
    }


@pytest.mark.parametrize("benchmark", ["spmv", "spmm", "spmspv", "sssp", "sources", "pagerank"])
def test_every_benchmark_runs(benchmark, tmp_path, monkeypatch):
    monkeypatch.setattr(spmspv, "DENSITIES", (0.1,))
    out = tmp_path / "out.json"
    arguments = ["--graphs", "delaunay7", "--runs", "2", "--repeats", "2", "--json", str(out)]
    assert main([benchmark, *arguments]) == 0
    records = json.loads(out.read_text())["records"]
    assert {"jaxspv", "SciPy"} <= {r["program"].split()[0].rstrip(",") for r in records}
    assert all(set(r) >= RECORD for r in records)


def test_products_of_tuples_stand_beside_one_word(tmp_path):
    out = tmp_path / "out.json"
    arguments = ["--graphs", "delaunay7", "--runs", "2", "--repeats", "2", "--json", str(out)]
    assert main(["tuples", *arguments]) == 0
    records = json.loads(out.read_text())["records"]
    assert [r["program"] for r in records] == [
        f"jaxspv, {name}" for name in ("min_plus", "argmin_plus", "lexicographic")
    ]
    assert all(set(r) >= RECORD for r in records)


def test_networkx_calls_are_timed_on_old_and_new_graphs(tmp_path):
    out = tmp_path / "out.json"
    arguments = ["--graphs", "delaunay7", "--runs", "2", "--json", str(out)]
    assert main(["networkx", *arguments]) == 0
    records = json.loads(out.read_text())["records"]
    assert {r["program"] for r in records} == {"NetworkX", "jaxspv", "jaxspv, new graph"}
    assert len({r["call"] for r in records}) > 10 and all(r["verified"] for r in records)


def test_algorithms_stand_beside_networkx(tmp_path, monkeypatch):
    kept = ("core numbers", "strong components", "colors")
    monkeypatch.setattr(algorithms, "CASES", {k: algorithms.CASES[k] for k in kept})
    out = tmp_path / "out.json"
    assert main(["algorithms", "--graphs", "delaunay7", "--runs", "2", "--json", str(out)]) == 0
    records = json.loads(out.read_text())["records"]
    assert {r["program"] for r in records} == {"jaxspv", "NetworkX", "SciPy"}
    assert {r["case"] for r in records} == {f"delaunay7 {case}" for case in kept}
    assert all(set(r) >= RECORD for r in records)


def test_loops_give_the_time_of_a_step(tmp_path):
    out = tmp_path / "out.json"
    assert main(["loops", "--graphs", "grid12", "--runs", "2", "--json", str(out)]) == 0
    records = json.loads(out.read_text())["records"]
    assert {r["program"].split(",")[0] for r in records} == {"bfs", "pagerank", "counter"}
    for r in records:
        assert r["us_per_step"] * r["steps"] == pytest.approx(1e3 * r["median_ms"])


def test_generate_checks_what_it_times(tmp_path):
    out = tmp_path / "out.json"
    arguments = ["--graphs", "rmat8", "grid12", "delaunay7", "--runs", "2", "--json", str(out)]
    assert main(["generate", *arguments]) == 0
    assert len(json.loads(out.read_text())["records"]) == 3
    with pytest.raises(AssertionError, match="opposite"):
        generate._check(jsp.from_edges([0], [1], shape=(2, 2)))
    with pytest.raises(AssertionError, match="self loop"):
        generate._check(jsp.from_edges([0], [0], shape=(2, 2)))
