"""Sharded graphs give what one device gives: one process with eight CPU devices runs `program`."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[2]
CHECKS = (
    *("on one", "on two", "on four", "on eight", "on columns", "on blocks", "on both"),
    *("on one axis of two", "small", "chunks", "explicit", "gradients", "told"),
)


def run(*checks):
    """Check -> "right" or what was wrong, all in one process."""
    program = pathlib.Path(__file__).with_name("program.py")
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(program), *checks],
        **{"capture_output": True, "text": True, "env": os.environ | {"PYTHONPATH": path}},
    )
    said = dict(json.loads(line) for line in done.stdout.splitlines())
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
