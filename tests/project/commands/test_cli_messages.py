"""What the command line says, and when: failures first, files in errors, bars for large files."""

import contextlib
import io
import os
import subprocess
import sys

import pytest

import jaxspv as jsp
from jaxspv.cli import opening
from jaxspv.cli.main import main

pytestmark = pytest.mark.fast


@pytest.mark.parametrize("form", [[], ["--json"]])
def test_a_failure_is_told_before_numbers_that_mean_nothing(tmp_path, form):
    path, both = tmp_path / "cycle.mtx", io.StringIO()
    jsp.write_mtx(path, jsp.from_edges([0, 1], [1, 0], [1.0, -2.0], shape=(2, 2)))
    with contextlib.redirect_stdout(both), contextlib.redirect_stderr(both):
        code = main(["sssp", str(path), "--repeat", "1", *form])
    first, *others = both.getvalue().splitlines()
    assert code == 1 and first.startswith("jaxspv: failed: ")
    assert "cycle of negative length" in first
    assert any("converged" in line for line in others)


def test_errors_about_a_graph_name_its_file(run, tmp_path):
    path = tmp_path / "wide.npz"
    jsp.save_npz(path, jsp.from_edges([0], [2], shape=(2, 3)))
    for command in ("bfs", "pagerank", "triangles"):
        code, _, err = run(command, path)
        assert code == 2 and err.startswith(f"jaxspv: error: {path}: a graph needs a square matrix")
    jsp.save_npz(path, jsp.vector_from_entries([3, 1], [1.0, 2.0], 5))
    code, _, err = run("info", path)
    assert (
        code == 2
        and err == f"jaxspv: error: {path} holds a vector, no matrix: it has no format 'csr'.\n"
    )


@pytest.mark.parametrize("size", [10, 2_000_000])
def test_a_bar_for_large_files_alone(run, tmp_path, monkeypatch, size):
    seen = []
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(
        opening, "read_edgelist", lambda *_, progress, **__: seen.append(progress) or A
    )
    A = jsp.from_edges([0], [1])
    (tmp_path / "a.txt").write_text("0 1\n" * (size // 4))
    assert run("info", tmp_path / "a.txt")[0] == 0 and seen == [size > 10]


def test_a_reader_that_ends_is_no_error():
    """As in `jaxspv bfs minnesota | head -1`, where `head` ends first."""
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "jaxspv", "bfs", "karate"],
        **{"stdout": write, "stderr": subprocess.PIPE, "text": True},
    )
    os.close(write)
    assert done.returncode == 0 and "BrokenPipe" not in done.stderr, done.stderr
