"""Drawing neighbours is timed as a call and inside a program, and what is drawn is looked at."""

import json

import numpy as np
import pytest

import jaxspv as jsp
from benchmarks import suite
from benchmarks.__main__ import main
from benchmarks.learning import sampling


def test_neighbours_are_drawn_and_checked(tmp_path, monkeypatch):
    monkeypatch.setattr(sampling, "SEEDS", 200)
    out = tmp_path / "out.json"
    command = ["sampling", "--graphs", "delaunay7", "--runs", "2", "--repeats", "2"]
    assert main([*command, "--json", str(out)]) == 0
    records = json.loads(out.read_text())["records"]
    assert {r["program"] for r in records} == {"one call", "inside jit"}
    S = suite.get("delaunay7").matrix()
    A, seeds = jsp.from_scipy(S), np.arange(5, dtype=np.int32)
    drawn = sampling._drawn(sampling.jax.random.key(0), A, seeds)
    wrong = drawn._replace(nodes=(drawn.nodes[0].at[0, 0].set(0), *drawn.nodes[1:]))
    sampling._check(A, S, seeds)(drawn)
    with pytest.raises(AssertionError):
        sampling._check(A, S, seeds)(wrong)
