"""The line about compiling: for people who wait, and for nobody else."""

import time

import jax.numpy as jnp
import pytest

import jaxspv as jsp
from jaxspv._core.compilation import compiled_for
from jaxspv._core.eager import telling
from jaxspv._core.platforms import situation

pytestmark = pytest.mark.fast
BEGIN = "jaxspv: compiling slow, once for operands of these sizes"


@pytest.fixture
def compiles_slowly(monkeypatch):
    """A program whose trace takes three times what is waited before the line."""
    monkeypatch.setattr(telling, "SECONDS", 0.1)

    def run(seconds=0.3):
        def slow(x):
            time.sleep(seconds)
            return x + 1

        assert compiled_for(situation(), slow)(jnp.ones(3))[0] == 2

    yield run
    telling.TELLER.stop()


def test_a_terminal_is_told_and_a_pipe_is_not(compiles_slowly, monkeypatch, capsys):
    compiles_slowly()
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(telling, "somebody_reads", lambda: True)
    compiles_slowly()
    assert capsys.readouterr().err.startswith(BEGIN)
    monkeypatch.setattr(telling, "SECONDS", 60)
    compiles_slowly(0)
    assert telling.TELLER.timer is None  # compiled: nobody waits any more
    monkeypatch.setattr(telling, "SECONDS", 0.1)
    before = jsp.tell_compiling(False)
    try:
        compiles_slowly()
        assert before is True and capsys.readouterr().err == ""
    finally:
        jsp.tell_compiling(True)


def test_an_error_in_a_trace_is_no_compilation(monkeypatch, capsys):
    monkeypatch.setattr(telling, "somebody_reads", lambda: True)

    def wrong(x):
        raise KeyError("x")

    with pytest.raises(KeyError):
        compiled_for(situation(), wrong)(jnp.ones(3))
    assert capsys.readouterr().err == "" and telling.TELLER.timer is None


def test_who_reads(monkeypatch):
    class Terminal:
        def isatty(self):
            return True

    assert not telling.somebody_reads()
    monkeypatch.setattr("sys.stderr", Terminal())
    assert telling.somebody_reads()
    monkeypatch.setattr("sys.stderr", None)
    assert not telling.somebody_reads()
