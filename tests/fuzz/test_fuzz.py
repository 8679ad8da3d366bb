"""A fixed share of every fuzzer runs with the tests; `python -m tests.fuzz` runs any number."""

import argparse
import json

import pytest

from .__main__ import KINDS, fuzzer_of, installed, main
from .cases import Fuzzer, Plan, campaign
from .processes import LATE, spread

SHARE = {"programs": 4, "graphblas": 6, "gradients": 2, "graphs": 4, "files": 3}
SHARE |= {"views": 3, "algorithms": 6, "sums": 4, "paths": 5, "automata": 6}
DRAWS = 5  # of data for each


@pytest.mark.parametrize(
    ("kind", "seed"), [(kind, seed) for kind in KINDS for seed in range(SHARE[kind])]
)
def test_a_fixed_share(kind, seed):
    if kind == "graphblas":
        pytest.importorskip("graphblas")
    fuzzer = fuzzer_of(kind)
    case = fuzzer.draw(seed)
    if kind == "files":
        case |= {"files": 24}
    for k in range(1 if kind == "files" else DRAWS):
        case |= {"seed": seed * 100_003 + k}
        assert fuzzer.failure(case) is None, f"python -m tests.fuzz {kind} --case '{case}'"


def test_what_is_found_is_shrunk():
    def run(case):
        assert case["a"] < 2 or case["b"] < 1

    fuzzer = Fuzzer({"a": (0, 1, 2, 3), "b": (0, 1, 2), "c": (0, 1)}, run)
    assert fuzzer.shrunk({"a": 3, "b": 2, "c": 1}) == {"a": 2, "b": 1, "c": 0}


def test_what_is_found_is_told(capsys):
    def run(case):
        assert case["a"] < 2 or case["seed"] % 7
        return ("oracle",)

    fuzzer = Fuzzer({"a": (0, 1, 2)}, run)
    found = campaign(fuzzer, "programs", Plan(count=200, draws=20, seed=0, seconds=60))
    assert found["wrong"] and all(one["case"]["a"] == 2 for one in found["wrong"])
    assert found["programs"] == 200 == found["oracles"]["oracle"] + len(found["wrong"])
    assert "python -m tests.fuzz programs --case" in capsys.readouterr().out


def test_draws_are_possible_choices():
    for kind in ("programs", "gradients", "graphs", "algorithms"):
        fuzzer = fuzzer_of(kind, x64=True)
        for seed in range(50):
            case = fuzzer.draw(seed)
            assert case["x64"] and fuzzer.possible(case)
            assert all(case[name] in values for name, values in fuzzer.choices.items())


def test_all_kinds_share_the_seconds_and_one_file(tmp_path, monkeypatch):
    out = tmp_path / "found.json"
    asked = ["all", "--cases", "100000", "--seconds", "0", "--out", str(out), "--commit", "abc"]
    monkeypatch.setattr("sys.argv", ["fuzz", *asked])
    assert main() == 0
    report = json.loads(out.read_text())
    assert report["commit"] == "abc" and report["jaxspv"]
    ran = {kind for kind in report if kind in KINDS}
    assert ran == set(installed()) >= KINDS.keys() - {"graphblas"}
    assert all(report[kind]["programs"] == 0 for kind in ran)  # no second is left


def test_a_process_that_hangs_is_found():
    arguments = argparse.Namespace(
        processes=1, cases=5, draws=5, seed=0, seconds=0.2 - LATE, x64=False
    )
    assert [crash["code"] for crash in spread(["sums"], arguments)["crashed"]] == [-9]


@pytest.mark.long
def test_processes_share_the_work():
    arguments = argparse.Namespace(
        processes=2, cases=40, draws=10, seed=5, seconds=200.0, x64=False
    )
    report = spread(["gradients"], arguments)
    assert "crashed" not in report, report
    assert report["gradients"]["programs"] >= 40 and report["gradients"]["structures"] >= 4
    assert report["gradients"]["first_seeds"] == [5, 1_000_005]
