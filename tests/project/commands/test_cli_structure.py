"""The commands on the structure of a graph: against NetworkX, and what they refuse."""

import networkx as nx
import numpy as np
import pytest

pytestmark = pytest.mark.fast
ONCE = ["--repeat", "1"]
ALWAYS = {"time_ms", "compile_ms", "prepare_ms", "backend", "method", "device", "plan"}


def test_components(report, directed, tmp_path):
    out = tmp_path / "labels.npz"
    r = report("components", directed, "--output", out, *ONCE)
    assert (r["components"], r["largest"], r["single_vertices"]) == (2, 4, 1)
    with np.load(out) as saved:
        np.testing.assert_array_equal(saved["labels"], [0, 0, 0, 0, 4])
    assert ALWAYS <= set(r)


def test_triangles_and_cores(report, run, directed):
    karate = nx.karate_club_graph()
    r = report("triangles", "karate", *ONCE)
    assert (r["triangles"], r["edges"]) == (sum(nx.triangles(karate).values()) // 3, 78)
    cores = nx.core_number(karate)
    r = report("core", "karate", *ONCE)
    assert r["degeneracy"] == max(cores.values())
    assert r["innermost"] == sum(k == r["degeneracy"] for k in cores.values())
    code, _, err = run("triangles", directed, *ONCE)
    assert code == 2 and "symmetric" in err
    for command in ("triangles", "core", "louvain"):
        code, out, err = run(command, directed)
        assert code == 2 and out == "" and str(directed) in err and "--undirected" in err
    assert report("triangles", directed, "--undirected", *ONCE)["triangles"] == 0
    assert report("core", directed, "--undirected", *ONCE)["degeneracy"] == 2


def test_louvain(report, tmp_path):
    out = tmp_path / "labels.npz"
    r = report("louvain", "karate", "--output", out, *ONCE)
    labels = np.load(out)["labels"]
    parts = [set(np.flatnonzero(labels == k).tolist()) for k in np.unique(labels)]
    assert len(parts) == r["communities"] and max(map(len, parts)) == r["largest"]
    want = nx.community.modularity(nx.karate_club_graph(), parts, weight=None)
    assert r["modularity"] == pytest.approx(want, abs=1e-5) and want > 0.38


def test_betweenness(report, run):
    want = nx.betweenness_centrality(nx.karate_club_graph())
    r = report("betweenness", "karate", "--top", 3, *ONCE)
    assert r["sources"] == 34 and [v for v, _ in r["top"]] == [0, 33, 32]
    assert r["top"][0][1] == pytest.approx(want[0], rel=1e-5)
    assert report("betweenness", "karate", "--sources", 5, "--seed", -3, *ONCE)["sources"] == 5
    code, _, err = run("betweenness", "karate", "--sources", 35)
    assert code == 2 and "`--sources` must be from 1 to 34" in err


def test_path(report, run, directed):
    r = report("path", directed, 0, 3, *ONCE)
    assert (r["path"], r["hops"], r["length"]) == ("0 1 2 3", 3, 6.0)
    r = report("path", directed, 0, 3, "--hops", *ONCE)
    assert (r["path"], r["hops"], r["length"]) == ("0 3", 1, 1)
    r = report("path", directed, 3, 0, *ONCE)
    assert (r["path"], r["hops"], r["length"]) == ("there is none", None, None)
    assert report("path", directed, 3, 0, "--undirected", *ONCE)["path"] == "3 2 1 0"
    assert report("path", directed, 2, 2, *ONCE)["path"] == "2"
    code, _, err = run("path", directed, 0, 5)
    assert code == 2 and "`B` must lie in [0, 5)" in err
