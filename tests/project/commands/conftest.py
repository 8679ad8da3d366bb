"""Commands of the command line run in process, and a graph for them."""

import json

import pytest

import jaxspv as jsp
from jaxspv.cli._jaxspv_command import main


@pytest.fixture
def run(capsys):
    """`run(*words)` -> (exit code, what was printed, the error)."""

    def call(*words):
        code = main([str(word) for word in words])
        printed = capsys.readouterr()
        return code, printed.out, printed.err

    return call


@pytest.fixture
def report(run):
    """`report(*words)`: the JSON of a command that succeeds."""

    def call(*words):
        code, out, err = run(*words, "--json")
        assert (code, err) == (0, "") and out.count("\n") == 1
        return json.loads(out)

    return call


@pytest.fixture
def directed(tmp_path):
    """A weighted path 0 -> 1 -> 2 -> 3 with a short cut of length 9, and a vertex apart."""
    path = tmp_path / "directed.mtx"
    A = jsp.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [1.0, 2.0, 3.0, 9.0], shape=(5, 5))
    jsp.write_mtx(path, A)
    return path
