"""What a network learns is told for every seed that is asked for."""

import json

import pytest

from benchmarks.__main__ import main


@pytest.mark.long
def test_attention_learns_the_communities_of_karate(tmp_path):
    pytest.importorskip("optax")
    out = tmp_path / "out.json"
    assert main(["accuracy", "--graphs", "karate", "--runs", "3", "--json", str(out)]) == 0
    (record,) = json.loads(out.read_text())["records"]
    assert record["program"] == "jaxspv" and record["seeds"] == 3
    assert record["accuracy"] > 0.5 and record["deviation"] < 0.3
