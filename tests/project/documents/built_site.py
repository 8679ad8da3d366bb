"""The documentation built once for all tests that look at it: docs/_build, anew if it is old."""

import fcntl
import os
import pathlib
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parents[3]
DOCS, BUILT = ROOT / "docs", ROOT / "docs" / "_build"
SOURCES = ("*.md", "*.toml", "docs/*.md", "docs/*.py", "docs/_ext/*.py", "docs/_static/*.*")
SOURCES += ("jaxspv/**/*.py", "examples/*.ipynb", "benchmarks/**/*.md")
NEEDED = ("sphinx", "furo", "myst_nb", "sphinx_copybutton", "sphinx_design")


def is_old():
    """Whether a source is newer than the last whole build."""
    last = BUILT / "searchindex.js"
    newest = max(p.stat().st_mtime for pattern in SOURCES for p in ROOT.glob(pattern))
    return not last.exists() or last.stat().st_mtime < newest


def site():
    """The folder of the built pages; skips where Sphinx is not installed, fails on a warning."""
    for needed in NEEDED:
        pytest.importorskip(needed)
    BUILT.mkdir(exist_ok=True)
    with open(BUILT / ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one build, whichever process of the tests comes first
        if is_old():
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "-E", "-b", "html", DOCS, BUILT]
            env = os.environ | {"JAXSPV_NOTEBOOKS": "stored"}
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=500)
            assert done.returncode == 0, done.stderr[-3000:]
    return BUILT
