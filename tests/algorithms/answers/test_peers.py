"""Answers of SciPy, python-graphblas and, where it is installed, igraph, on real graphs.

Cores, triangles, strong components, forests, betweenness, closeness, and how good communities are:
what `python -m benchmarks compiled` compares.
"""

import importlib.util
import itertools

import pytest
from graph_cases import named

from benchmarks import suite
from benchmarks.compiled import run as compiled
from benchmarks.options import Options

GRAPHS = "jagmesh7 west0067 wiki-Vote"
SCIPY = {"strong components", "spanning forest"}
GRAPHBLAS = {"triangles", "independent set", "betweenness of 64 sources"}
IGRAPH = {"core numbers", "Louvain", *SCIPY, "triangles", "betweenness of 64 sources"}
INSTALLED = {
    "SciPy": SCIPY,
    "python-graphblas": GRAPHBLAS if importlib.util.find_spec("graphblas") else set(),
    "igraph": IGRAPH if importlib.util.find_spec("igraph") else set(),
}


@pytest.mark.parametrize("name", GRAPHS.split())
def test_libraries_answer_alike(name):
    named(name)  # skips where it is not there
    records = compiled.run(suite.get(name), Options(runs=1))  # raises where one disagrees
    assert all("error" not in record for record in records)
    sent = {(r["program"].split(",")[0], r["case"].removeprefix(f"{name} ")) for r in records}
    for library, algorithms in INSTALLED.items():
        assert set(itertools.product([library], algorithms)) <= sent
