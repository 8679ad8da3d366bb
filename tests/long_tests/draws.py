"""Runs the long tests in shares.

`JAXSPV_LONG_SHARE=1/8` draws an eighth of the cases, another one for every commit, whose hash is
the seed; `JAXSPV_LONG_SEED` names another seed.
"""

import fractions
import hashlib
import os
import pathlib
import subprocess

import pytest

ROOT = pathlib.Path(__file__).parents[2]


def leave_out(items):
    """Marks as `undrawn` the long tests that the share asked for leaves out: none without one."""
    share = fractions.Fraction(os.environ.get("JAXSPV_LONG_SHARE", "1"))
    if not 0 < share <= 1:
        raise ValueError(f"JAXSPV_LONG_SHARE must lie in (0, 1]; got {share}.")
    if share == 1 or os.environ.get("JAXSPV_THOROUGH") == "1":
        return
    seed = os.environ.get("JAXSPV_LONG_SEED") or commit()
    for item in items:
        if item.get_closest_marker("long") and draw(seed, item.nodeid) >= share:
            item.add_marker(pytest.mark.undrawn)


def draw(seed, nodeid):
    """A number in [0, 1) for a test: the same for equal seeds."""
    digest = hashlib.sha256(f"{seed} {nodeid}".encode()).digest()
    return fractions.Fraction(int.from_bytes(digest[:8], "big"), 2**64)


def commit():
    """The hash of the commit that is tested."""
    head = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    return subprocess.run(head, check=True, capture_output=True, text=True).stdout.strip()
