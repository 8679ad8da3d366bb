"""What the command line says, and when: failures first, files in errors, bars for large files."""

import contextlib
import io
import os
import pathlib
import re
import subprocess
import sys
from typing import Any

import pytest

import jaxspv as jsp
from jaxspv.cli import _jaxspv_command, commands, running
from jaxspv.cli._jaxspv_command import main
from jaxspv.formats import FORMATS

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
        running, "read_edgelist", lambda *_, progress, **__: seen.append(progress) or A
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


def test_no_output_that_can_be_written():
    """A full disk is an error of one line, a closed stdout is none; ASCII has other bars."""
    command = [sys.executable, "-m", "jaxspv", "info", "karate"]
    how: dict[str, Any] = {"stderr": subprocess.PIPE, "text": True}
    if os.path.exists("/dev/full"):
        with open("/dev/full", "w") as full:
            done = subprocess.run(command, stdout=full, **how)
        assert done.returncode == 2 and re.fullmatch("jaxspv: error: .*\n", done.stderr)
    shell = ["sh", "-c", '"$@" >&-', "sh", *command]
    done = subprocess.run(shell, **how)
    assert (done.returncode, done.stderr) == (0, "")
    env = os.environ | {"PYTHONIOENCODING": "ascii"}
    done = subprocess.run(command, env=env, stdout=subprocess.PIPE, **how)
    assert (done.returncode, done.stderr) == (0, "") and "?? 3" in done.stdout


def test_seeds_and_hints_of_the_command_line(run, tmp_path):
    code, _, err = run("info", "rmat:4", "--seed", 2**64)
    assert code == 2 and f"`--seed` must be an integer of 64 bits; got {2**64}" in err
    (tmp_path / "a.txt").write_text("0 99999999999\n")
    code, _, err = run("info", tmp_path / "a.txt")
    assert code == 2 and "--labels numbers those that there are, --format coo has" in err


def test_what_needs_no_graph_is_answered_without_jax():
    folder = pathlib.Path(_jaxspv_command.__file__).parent
    for words, text in (
        (["--version"], "jaxspv "),
        (["bfs", "--help"], "each level holds"),
        (["color"], "invalid choice: 'color'"),
        (["bfs"], "arguments are required: FILE"),
    ):
        code = (
            f"import sys, atexit; sys.path.insert(0, {str(folder)!r}); "
            f"sys.argv = ['jaxspv', *{words!r}]; "
            "atexit.register(lambda: print('jax' in sys.modules)); "
            "import _jaxspv_command as c; c.main()"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
        assert text in done.stdout + done.stderr and "Traceback" not in done.stderr
        assert done.stdout.endswith("False\n")


def test_every_command_has_its_words_and_its_function():
    assert set(_jaxspv_command.COMMANDS) == set(commands.COMMANDS)
    named = re.search("stored: (.*)", _jaxspv_command.OPTIONS["--format"]["help"])
    assert named and {*named[1].replace(" (default)", "").split(", ")} == set(FORMATS)
