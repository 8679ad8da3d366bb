"""Failures of kernels that no call waits for: the next call, `check` and the end tell of them."""

import jax.numpy as jnp
import numpy as np
import pytest

import jaxspv as jsp
from jaxspv.algorithms.common import status
from jaxspv.algorithms.components import Components

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def as_on_a_gpu(monkeypatch):
    monkeypatch.setattr(status, "on_gpu", lambda x: True)
    monkeypatch.setattr(status, "SECONDS", 0)
    status._OPEN.clear()
    yield
    status._OPEN.clear()


def result(code):
    return Components(
        jnp.zeros(3, jnp.int32), jnp.int32(1), jnp.full((2,), code).block_until_ready()
    )


def test_the_next_call_tells_of_an_earlier_failure_once():
    failed = result(1)
    assert status.finished(failed, "bfs") is failed
    with pytest.raises(RuntimeError, match="bfs, called earlier: the kernel gave up"):
        status.finished(result(0), "sssp")
    good = result(0)
    assert status.finished(good, "sssp") is good


def test_calls_in_a_row_are_looked_at_together(monkeypatch):
    monkeypatch.setattr(status, "SECONDS", 1e9)
    asked = []
    together = status._any_bad
    monkeypatch.setattr(status, "_any_bad", lambda s: asked.append(len(s)) or together(s))

    def scalar(code):
        return result(0)._replace(status=jnp.int32(code).block_until_ready())

    for _ in range(status.TOGETHER):
        status.finished(scalar(0), "bfs")
    assert not asked and len(status._OPEN) == status.TOGETHER
    status.finished(scalar(2), "sssp")
    assert asked == [status.TOGETHER] and len(status._OPEN) == 1
    for _ in range(status.TOGETHER - 1):
        status.finished(scalar(0), "bfs")
    with pytest.raises(RuntimeError, match="sssp, called earlier"):
        status.finished(scalar(0), "bfs")
    status.finished(scalar(0), "bfs")
    status.look(0)
    assert not status._OPEN
    status.finished(scalar(3), "bfs")
    with pytest.raises(RuntimeError, match="bfs, called earlier"):
        status.look(0)


def test_check_tells_at_once_and_alone():
    failed = status.finished(result(1), "bfs")
    with pytest.raises(ValueError, match="status: a kernel gave up"):
        jsp.check(failed)
    status.finished(result(0), "bfs")
    status.look(0)


def test_what_is_not_ready_is_not_waited_for_unless_there_is_too_much():
    class Slow:
        looked = 0

        def is_ready(self):
            return False

        def is_deleted(self):
            return False

        def __array__(self, dtype=None, copy=None):
            Slow.looked += 1
            return np.zeros(())

    for _ in range(status.MOST):
        status.finished(Components(None, None, Slow()), "bfs")  # pyright: ignore
    assert Slow.looked == 0
    for _ in range(5):
        status.finished(Components(None, None, Slow()), "bfs")  # pyright: ignore
    assert 1 <= Slow.looked <= 5 and len(status._OPEN) <= status.MOST + 1


def test_a_negative_cycle_is_told_as_a_failure_is():
    cycle = jsp.from_edges([0, 1], [1, 0], [1.0, -2.0], shape=(3, 3))
    status.look(0)
    jsp.sssp(cycle, 0).converged.block_until_ready()
    with pytest.raises(jsp.NegativeCycleError, match="sssp, called earlier: a cycle of negative"):
        jsp.sssp(cycle, 2)
    status.look(0)
    found = jsp.sssp(cycle, 0)
    with pytest.raises(ValueError, match="a negative cycle is reachable"):
        jsp.check(found)
    status.look(0)
    positive = jsp.from_edges([0, 1], [1, 0], [1.0, 2.0], shape=(3, 3))
    jsp.sssp(positive, 0)
    assert len(status._OPEN) == 1, "the status alone"


def test_the_end_of_a_process_tells_too(capsys):
    status.finished(result(2), "pagerank")
    status._last()
    assert "jaxspv: pagerank, called earlier: the kernel gave up" in capsys.readouterr().err


def test_a_cpu_asks_nothing(monkeypatch):
    monkeypatch.undo()
    A = jsp.from_edges([0, 1], [1, 2], shape=(3, 3))
    jsp.bfs(A, 0)
    assert not status._OPEN
