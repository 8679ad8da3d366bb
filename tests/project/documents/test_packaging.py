"""Wheel and source distribution: what is in them, and that they run outside of the tree."""

import os
import pathlib
import re
import subprocess
import sys
import tarfile
import tomllib
import venv
import zipfile

import pytest

ROOT = pathlib.Path(__file__).parents[3]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SMOKE = """
import pathlib, jax, jax.numpy as jnp, jaxspv as jsp, pallas_kernels
assert pathlib.Path(jsp.__file__).is_relative_to({where!r}), jsp.__file__
A = jsp.read_mtx(jsp.bundled("minnesota"))
assert jax.jit(lambda A: jsp.bfs(A, 0).levels.max())(A) == 99
assert jax.grad(lambda d: jsp.sssp(A.with_data(d), 0).distances[5])(A.data).sum() > 0
import networkx as nx
assert abs(sum(nx.pagerank(nx.path_graph(4), backend="jaxspv").values()) - 1) < 1e-5
print("smoke", (pathlib.Path(jsp.__file__).parent / "py.typed").exists())
"""


def test_extras_are_those_that_the_pages_name():
    extras = set(PROJECT["optional-dependencies"])
    assert {"all", "cuda12", "cuda13", "docs", "examples", "networkx", "plot", "test"} <= extras
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    named = re.findall(r"(?:\.|jaxspv)\[([\w,]+)\]['`]", "".join(p.read_text() for p in pages))
    assert named and {extra for each in named for extra in each.split(",")} <= extras


def test_version_is_one():
    citation = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    assert citation and citation[1] == PROJECT["version"]
    assert PROJECT["version"] in (ROOT / "CHANGELOG.md").read_text()


def built(kind, folder):
    """The file that the build backend makes; isolated, so that what the project says is enough."""
    backend = "hatchling.build"
    code = f"import sys, {backend} as b; print(getattr(b, 'build_{kind}')(sys.argv[1]))"
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder)],
        **{"cwd": ROOT, "capture_output": True},
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.split()[-1]


def smoke(artifact, folder):
    """Installs an artifact without its dependencies, and uses it from an empty folder."""
    venv.create(folder, with_pip=True)
    python = folder / "bin/python"
    install = [python, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation"]
    env = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    packages = [p for p in sys.path if p.endswith("site-packages")]
    env["PYTHONPATH"] = os.pathsep.join(packages)  # hatchling, jax and the rest
    subprocess.run([*install, str(artifact)], check=True, env=env)
    site = next(folder.glob("lib/python*/site-packages"))
    env["PYTHONPATH"] = os.pathsep.join([str(site), *packages])
    (folder / "empty").mkdir()
    run = {"cwd": folder / "empty", "capture_output": True, "text": True, "env": env}
    done = subprocess.run([python, "-c", SMOKE.format(where=str(site))], **run, timeout=300)
    assert done.returncode == 0 and done.stdout == "smoke True\n", done.stderr
    done = subprocess.run([folder / "bin/jaxspv", "bfs", "karate"], **run, timeout=300)
    assert done.returncode == 0 and "reached              34" in done.stdout, done.stderr


@pytest.mark.long
def test_a_wheel_holds_the_packages_and_runs_elsewhere(tmp_path):
    pytest.importorskip("hatchling")
    wheel = built("wheel", tmp_path)
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    tops = {name.split("/")[0] for name in names}
    assert tops == {
        "_jaxspv_command.py",
        "_nx_jaxspv.py",
        "jaxspv",
        "pallas_kernels",
        f"jaxspv-{PROJECT['version']}.dist-info",
    }
    assert "jaxspv/data/karate.mtx" in names and "jaxspv/py.typed" in names
    smoke(wheel, tmp_path / "env")


@pytest.mark.long
def test_a_source_distribution_runs_elsewhere(tmp_path):
    pytest.importorskip("hatchling")
    sdist = built("sdist", tmp_path)
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"README.md", "LICENSE", "CITATION.cff", "SECURITY.md", "docs/start.md"} <= names
    assert not [n for n in names if n.startswith(("docs/_build", ".venv", "docs/api"))]
    smoke(sdist, tmp_path / "env")
