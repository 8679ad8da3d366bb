"""Sharded graphs give what one device gives: one process with eight CPU devices runs `program`."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import warnings

import pytest
from graph_files import graph_files

ROOT = pathlib.Path(__file__).parents[2]
CHECKS = (
    *("on one", "on two", "on four", "on eight", "on columns", "on blocks", "on both"),
    *(
        "on one axis of two",
        "small",
        "chunks",
        "explicit",
        "gradients",
        "triangles",
        "told",
        "costs",
        "pulls",
        "edges",
        "drawn",
        "read",
        "one_launch",
        "paths",
        "stars",
        "dealt",
        "tuples",
        "inside",
        "closed_over",
        "given",
        "split",
        "narrow",
    ),
)


def run(*checks):
    """Check -> "right" or what was wrong, all in one process.

    XLA ends a process whose devices wait for each other for 40 s, which they do on busy machines
    (benchmarks/NOTES.md, "Several GPUs"). The checks that are left then run in another process,
    with a warning. A loop of ours in which devices part ends that one too: two processes one after
    the other that finish no check are one too many.
    """
    said, program, idle = {}, pathlib.Path(__file__).with_name("program.py"), 0
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    while idle < 2:
        left = [check for check in checks if check not in said]
        done = subprocess.run(
            [sys.executable, str(program), *left],
            **{"capture_output": True, "text": True, "env": os.environ | {"PYTHONPATH": path}},
        )
        found = dict(json.loads(line) for line in done.stdout.splitlines())
        said, idle = said | found, 0 if found else idle + 1
        if "rendezvous" not in done.stderr or set(said) == set(checks):
            break
        warnings.warn(f"devices waited for each other after {list(said)[-1:]}", stacklevel=2)
    assert set(said) == set(checks), done.stderr[-3000:]
    return said


@pytest.fixture(scope="module")
def said():
    return run(*CHECKS)


@pytest.mark.parametrize("check", CHECKS)
def test_meshes(check, said):
    assert said[check] == "right", said[check]


def test_two_devices():
    said = run("quick")["quick"]
    assert said == "right", said


def files():
    """One of the real graphs; a thorough run takes all."""
    for path in graph_files():
        marks = [] if path.name.startswith("rome99") else pytest.mark.slow
        yield pytest.param(path, id=path.name, marks=marks)


@pytest.mark.parametrize("path", list(files()))
def test_real_graphs(path):
    said = run(str(path))[str(path)]
    assert said == "right", said


def two(program, *arguments):
    """Exit status, output and complaints of two processes, joined by gloo."""
    program = pathlib.Path(__file__).with_name(program)
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = str(free.getsockname()[1])
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    both = [
        subprocess.Popen(
            [sys.executable, str(program), rank, port, *arguments],
            **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True},
            env={k: v for k, v in os.environ.items() if k != "XLA_FLAGS"} | {"PYTHONPATH": path},
        )
        for rank in ("0", "1")
    ]
    try:
        outputs = [process.communicate(timeout=240) for process in both]
    finally:
        for process in both:
            process.kill()
    return [(p.returncode, *texts) for p, texts in zip(both, outputs, strict=True)]


@pytest.mark.long
def test_two_processes():
    """Two hosts, as it were: two processes with two devices each."""
    for _, said, complaint in two("two_processes.py"):
        assert said.splitlines()[-1:] == ["right"], complaint[-3000:]  # gloo says hello first


@pytest.mark.long
def test_a_process_killed_while_it_reads_ends_the_other(tmp_path):
    path = tmp_path / "graph.mtx"
    line, entries = "7 8 1.5\n", 600_000
    path.write_text(
        f"%%MatrixMarket matrix coordinate real general\n9 9 {entries}\n" + line * entries
    )
    began = time.monotonic()
    (left, said, complaint), (killed, *_) = two("resuming.py", str(path), "reads")
    assert killed == -signal.SIGALRM
    assert left != 0 and "read" not in said.split(), complaint[-3000:]
    assert time.monotonic() - began < 120  # a heartbeat of 10 s


@pytest.mark.long
def test_a_killed_process_ends_the_other_and_both_resume(tmp_path):
    """Where one dies the other ends with an error, in bounded time; together they go on then."""
    pytest.importorskip("orbax.checkpoint")
    began = time.monotonic()
    (left, _, complaint), (killed, *_) = two("resuming.py", str(tmp_path / "parts"), "dies")
    assert time.monotonic() - began < 120  # a heartbeat of 10 s; the rest is starting and compiling
    assert killed == -signal.SIGKILL and left != 0, complaint[-3000:]
    for status, said, complaint in two("resuming.py", str(tmp_path / "parts"), "lives"):
        assert status == 0 and said.splitlines()[-1] == "right, from part 4", complaint[-3000:]
