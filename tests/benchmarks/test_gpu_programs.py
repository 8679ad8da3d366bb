"""`benchmarks gpu_programs`: ours without a GPU, and what a program of others is taken to say."""

import json
import sys

import pytest

from benchmarks.__main__ import main
from benchmarks.compiled import gpu_programs
from benchmarks.report.table import render

PROGRAM = """#!{python}
import os, sys
import numpy as np
n, m = np.fromfile(sys.argv[1], np.int32, 2)
assert os.path.getsize(sys.argv[1]) == 4 * (2 + n + 1 + 2 * m)
kernels, marks = (open(os.environ[name], "w") for name in ("KERNEL_TIMES", "KERNEL_MARKS"))
kernels.write("10 2000000 a<int>(x y)\\n20 1000000 memset\\n90 7 a\\n")
marks.write("5 25 Fast\\n15 30 Fast\\n5 25 Wrong\\n100 200 Ended\\n")
print("components delaunay7 Fast 4.5 min=4 runs=2 count=1")
print("components delaunay7 Wrong 4.5 count=2")
print("components delaunay7 Ended 4.5 count=1")
print("\\nbye")
"""


def test_another_program_is_timed_by_its_kernels_and_must_agree(tmp_path, monkeypatch, capsys):
    """Words that are no answer are passed over, and so is a computation without kernels: its time
    of zero ended the summary ("math domain error")."""
    (tmp_path / "cc").write_text(PROGRAM.format(python=sys.executable))
    (tmp_path / "cc").chmod(0o755)
    monkeypatch.setenv("JAXSPV_GPU_PROGRAMS", str(tmp_path))
    out = tmp_path / "out.json"
    run = ["gpu_programs", "--graphs", "delaunay7", "--cases", "components", "--runs", "2"]
    assert main([*run, "--json", str(out)]) == 0
    document = json.loads(out.read_text())
    assert "other answer: components delaunay7 Wrong" in capsys.readouterr().out
    (theirs,) = [r for r in document["records"] if not r["program"].startswith("jaxspv")]
    assert (theirs["program"], theirs["count"], theirs["own_ms"]) == ("Fast", 1, 4.5)
    assert (theirs["min_ms"], theirs["median_ms"], theirs["max_ms"]) == (1.0, 2.0, 3.0)
    for record in list(document["records"]):  # as on a GPU, where ours have kernel times
        if record["program"] == "jaxspv, call":
            document["records"].append({**record, "program": "jaxspv", "median_ms": 0.5})
    (row,) = [line for line in render(document).splitlines() if "delaunay7 components" in line]
    assert [cell.strip() for cell in row.split("|")][4:7] == ["Fast", "2.00", "4.00"]


@pytest.mark.parametrize("name", ["Louvain", "independent set", "colours"])
def test_answers_that_are_not_unique(name, tmp_path, monkeypatch):
    """No other answer is refused, and both are told."""
    assert not gpu_programs.CASES[name].unique
    out = tmp_path / "out.json"
    monkeypatch.delenv("JAXSPV_GPU_PROGRAMS", raising=False)
    run = ["gpu_programs", "--graphs", "delaunay7", "--cases", name, "--runs", "2"]
    assert main([*run, "--json", str(out)]) == 0
    (record,) = json.loads(out.read_text())["records"]
    assert {"modularity", "size", "colors"} & set(record)
